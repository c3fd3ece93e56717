/* SPDX-License-Identifier: MIT */
/* cmd_reffs.c - outage reffs: mount the reference file system, and save and restore its states. */
#include <errno.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/cli.h"
#include "fsmount/reffs_call.h"
#include "fsmount/reffs_mount.h"

struct options {
	struct reffs_mount_opts mount;
	uint64_t size;
	bool daemon, keep;
};

/* ---- talking to one that is mounted ---- */

static int call(const char *what, const char *dir, unsigned long cmd, void *arg)
{
	struct err err = ERR_INIT;

	return reffs_call(what, dir, cmd, arg, &err) ? cli_fail(&err) : EXIT_OK;
}

static int with_key(const struct options *o, unsigned long cmd, int argc, char **argv)
{
	struct outage_reffs_key k = { .flags = o->keep ? OUTAGE_REFFS_KEEP : 0 };
	uint64_t key;

	if (argc != 3)
		return cli_usage(&cmd_reffs, "%s takes a key and a directory", argv[0]);
	if (number_parse(argv[1], &key))
		return cli_usage(&cmd_reffs, "'%.60s' is no key, which is a number", argv[1]);
	k.key = key;
	return call(argv[0], argv[2], cmd, &k);
}

/* The server has a working directory of its own. */
static int absolute(const char *path, char *out, size_t size)
{
	auto_free char *dir = path[0] == '/' ? xstrdup("") : getcwd(NULL, 0);

	if (!dir)
		return cli_failf("cannot tell the working directory: %m");
	if ((size_t)snprintf(out, size, "%s%s%s", dir, *dir ? "/" : "", path) >= size)
		return cli_failf("the name of the file is too long");
	return EXIT_OK;
}

static int with_file(const struct options *o, unsigned long cmd, int argc, char **argv)
{
	bool pickles = cmd == OUTAGE_REFFS_PICKLE;
	struct outage_reffs_file f = { 0 };
	struct err err = ERR_INIT;
	uint64_t key = 0;

	(void)o;
	if (argc != 3 && !(pickles && argc == 4))
		return cli_usage(&cmd_reffs, "%s takes a file%s and a directory", argv[0],
				 pickles ? ", a key if it is to be one state alone," : "");
	if (argc == 4 && number_parse(argv[2], &key))
		return cli_usage(&cmd_reffs, "'%.60s' is no key, which is a number", argv[2]);
	f.key = key;
	f.flags = pickles && argc == 3 ? OUTAGE_REFFS_ALL : 0;
	int rc = absolute(argv[1], f.path, sizeof(f.path));
	if (rc)
		return rc;
	if ((pickles ? reffs_call_pickle : reffs_call_load)(argv[argc - 1], &f, &err))
		return cli_fail(&err);
	return EXIT_OK;
}

static int print_hash(const struct options *o, unsigned long cmd, int argc, char **argv)
{
	struct outage_reffs_hash h;

	(void)o;
	if (argc != 2)
		return cli_usage(&cmd_reffs, "hash takes a directory");
	int rc = call("hash", argv[1], cmd, &h);
	if (!rc)
		printf("%016llx%016llx\n", llu(h.hi), llu(h.lo));
	return rc;
}

static const struct {
	const char *word;
	int (*run)(const struct options *o, unsigned long cmd, int argc, char **argv);
	unsigned long cmd;
} calls[] = {
	{ "save", with_key, OUTAGE_REFFS_SAVE },  { "restore", with_key, OUTAGE_REFFS_RESTORE },
	{ "drop", with_key, OUTAGE_REFFS_DROP },  { "pickle", with_file, OUTAGE_REFFS_PICKLE },
	{ "load", with_file, OUTAGE_REFFS_LOAD }, { "hash", print_hash, OUTAGE_REFFS_HASH },
};

/* ---- mounting ---- */

static int serve(const struct options *o, const char *dir)
{
	struct err err = ERR_INIT;
	struct reffs_mount *m;
	int rc = reffs_mount_new(dir, &o->mount, &m, &err);

	if (rc)
		return cli_fail(&err);
	if (o->daemon) {
		cli_flush();
		rc = reffs_mount_detach(m, &err);
	}
	if (!rc)
		rc = reffs_mount_serve(m, &err);
	reffs_mount_free(m);
	return rc ? cli_fail(&err) : EXIT_OK;
}

static int parse_mode(void *at, const char *arg, struct err *err)
{
	char *end;
	unsigned long mode = strtoul(arg, &end, 8);

	if (!*arg || *end || mode > 07777 || !mode)
		return err_set(err, -EINVAL, "--mode is permissions such as 0755, not '%.40s'",
			       arg);
	*(mode_t *)at = (mode_t)mode;
	return 0;
}

#define AT(member) OPT_AT(struct options, member)
static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "MNT", .hint = HINT_DIR,
	  .words = "save restore drop pickle load hash",
	  .help = "the directory to mount on, or where it is mounted" },
	{ OPT_FLAG, "daemon", 0, NULL, AT(daemon),
	  .help = "go into the background once it is mounted" },
	{ OPT_FLAG, "allow-other", 0, NULL, AT(mount.allow_other),
	  .help = "other users may use it, too" },
	{ OPT_SIZE, "size", 0, "SIZE", AT(size),
	  .help = "room for that much data; default: no limit" },
	{ OPT_COUNT, "inodes", 0, "N", AT(mount.fs.inodes_max), .rare = true, .least = 1,
	  .help = "room for so many files and directories; default: no limit" },
	{ OPT_CALL, "mode", 0, "MODE", AT(mount.fs.root_mode), .rare = true, .call = parse_mode,
	  .help = "permissions of the root; default: 0755" },
	{ OPT_CHOICE, "atime", 0, "HOW", AT(mount.fs.atime), .rare = true,
	  .words = "none relative strict",
	  .help = "when reading sets access times: none, relative or strict",
	  .otherwise = "relative" },
	{ OPT_FLAG, "direct", 0, NULL, AT(mount.direct), .rare = true,
	  .help = "keep no data in the kernel; mmap for writing is not possible then" },
	{ OPT_TEXT, "load", 0, "FILE", AT(mount.load), .hint = HINT_FILE,
	  .help = "begin with a state that 'pickle' wrote" },
	{ OPT_NUMBER, "key", 0, "KEY", AT(mount.key), .help = "the one under this key",
	  .otherwise = "0" },
	{ OPT_FLAG, "keep", 0, NULL, AT(keep),
	  .help = "restore: the state stays under its key; else it is given up" },
	OPT_END
};

static int run(void *given, struct args *args)
{
	struct options *o = given;
	const char *word = args->n ? args->v[0] : "";

	o->mount.fs.uid = geteuid();
	o->mount.fs.gid = getegid();
	if (args_given(args, "size"))
		o->mount.fs.pages_max = max(o->size / REFFS_PAGE, (uint64_t)1);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (streq(word, calls[i].word))
			return calls[i].run(o, calls[i].cmd, args->n, args->v);
	if (args->n != 1)
		return cli_usage(&cmd_reffs, "one directory to mount on is needed");
	return serve(o, word);
}

const struct command cmd_reffs = {
	.name = "reffs",
	.summary = "mount the reference file system, which can save and restore itself",
	.usage = "[OPTIONS] MNT\n"
		 "save | restore | drop KEY MNT\n"
		 "pickle FILE [KEY] MNT\n"
		 "load FILE MNT\n"
		 "hash MNT",
	.about = "Mounts the reference file system on the directory MNT: a POSIX file system in "
		 "memory that can save all of its state under a number, and go back to it, in no "
		 "time. It is gone when it is unmounted (`fusermount3 -u MNT`, `umount MNT`), or "
		 "a signal ends it. The other forms talk to one that is mounted. Programs use the "
		 "calls of <outage/reffs.h>.",
	.status = "0 done, 2 failed",
	.example = "outage reffs --daemon /mnt && outage reffs save 1 /mnt",
	.options = options,
	.size = sizeof(struct options),
	.run = run,
};
