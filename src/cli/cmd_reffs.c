/* SPDX-License-Identifier: MIT */
/* cmd_reffs.c - outage reffs: mount the reference file system, and save and restore its states. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <outage/reffs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/cli.h"
#include "fs/pool.h"
#include "fuse/reffs_mount.h"

static const char usage[] =
	"usage: outage reffs [OPTIONS] MNT\n"
	"       outage reffs save | restore | drop KEY MNT\n"
	"       outage reffs pickle FILE [KEY] MNT\n"
	"       outage reffs load FILE MNT\n"
	"       outage reffs hash MNT\n"
	"\n"
	"Mounts the reference file system on the directory MNT: a POSIX file system in memory "
	"that\n"
	"can save all of its state under a number, and go back to it, in no time. The other forms\n"
	"talk to one that is mounted. Programs use the calls of <outage/reffs.h>.\n"
	"\n"
	"      --daemon         go into the background once it is mounted\n"
	"      --allow-other    other users may use it, too\n"
	"      --size SIZE      room for that much data; default: no limit\n"
	"      --inodes N       room for so many files and directories; default: no limit\n"
	"      --mode MODE      permissions of the root; default 0755\n"
	"      --atime HOW      when reading sets access times: none, relative, strict;\n"
	"                       default relative\n"
	"      --direct         keep no data in the kernel; mmap for writing is not possible then\n"
	"      --load FILE      begin with a state that `pickle` wrote\n"
	"      --key KEY        the one under this key; default 0\n"
	"      --keep           restore: the state stays under its key; else it is given up\n"
	"\n"
	"It is served until it is unmounted (`fusermount3 -u MNT`, `umount MNT`) or a signal ends\n"
	"it. Its content is gone then.\n"
	"\n"
	"Exit status: 0 done, 2 failed.\n"
	"\n"
	"example: outage reffs --daemon /mnt && outage reffs save 1 /mnt\n";

struct options {
	struct reffs_mount_opts mount;
	bool daemon, keep;
};

/* ---- talking to one that is mounted ---- */

static int fails(const char *what, const char *dir)
{
	if (errno == ENOTTY)
		return cli_failf("%s is no mounted reference file system; 'outage reffs %s' mounts "
				 "one",
				 dir, dir);
	if (errno == ENOENT)
		return cli_failf("cannot %s: no state is saved under this key", what);
	return cli_failf("cannot %s: %m", what);
}

static int call(const char *what, const char *dir, unsigned long cmd, void *arg)
{
	auto_fd fd = open(dir, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return cli_failf("cannot open %s: %m", dir);
	return ioctl(fd, cmd, arg) < 0 ? fails(what, dir) : EXIT_OK;
}

/*
 * The call that loads a file gives a number only: what is wrong with it we find out by reading it
 * ourselves.
 */
static int load(const char *dir, struct outage_reffs_file *f)
{
	struct reffs_pool pool = { 0 };
	struct err err = ERR_INIT;
	auto_fd fd = open(dir, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return cli_failf("cannot open %s: %m", dir);
	if (ioctl(fd, OUTAGE_REFFS_LOAD, f) == 0)
		return EXIT_OK;
	int error = errno;
	if (error == ENOTTY)
		return fails("load", dir);
	struct reffs *scratch = reffs_new(NULL);
	int rc = reffs_load_file(scratch, &pool, f->path, &err);
	reffs_pool_release(&pool);
	reffs_free(scratch);
	errno = error;
	return rc ? cli_fail(&err) : fails("load", dir);
}

/* Whether the file can be made at all; what fails then is about the key. */
static int check_place(const char *path)
{
	auto_free char *dir = xstrdup(path);

	*strrchr(dir, '/') = '\0';
	if (access(*dir ? dir : "/", F_OK) < 0)
		return cli_failf("cannot write %s: its directory is not there", path);
	return EXIT_OK;
}

static int with_key(const struct options *o, int argc, char **argv)
{
	static const struct {
		const char *name;
		unsigned long cmd;
	} calls[] = { { "save", OUTAGE_REFFS_SAVE },
		      { "restore", OUTAGE_REFFS_RESTORE },
		      { "drop", OUTAGE_REFFS_DROP } };
	struct outage_reffs_key k = { .flags = o->keep ? OUTAGE_REFFS_KEEP : 0 };
	uint64_t key;

	if (argc != 3)
		return cli_usage(&cmd_reffs, "%s takes a key and a directory", argv[0]);
	if (number_parse(argv[1], &key))
		return cli_usage(&cmd_reffs, "'%.60s' is no key, which is a number", argv[1]);
	k.key = key;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (streq(argv[0], calls[i].name))
			return call(argv[0], argv[2], calls[i].cmd, &k);
	return EXIT_FAILED;
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

static int with_file(int argc, char **argv)
{
	bool pickles = streq(argv[0], "pickle");
	struct outage_reffs_file f = { 0 };
	uint64_t key = 0;

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
	if (!pickles && access(f.path, R_OK))
		return cli_failf("cannot read %s: %m", f.path);
	if (!pickles)
		return load(argv[argc - 1], &f);
	rc = check_place(f.path);
	return rc ? rc : call(argv[0], argv[argc - 1], OUTAGE_REFFS_PICKLE, &f);
}

static int print_hash(int argc, char **argv)
{
	struct outage_reffs_hash h;

	if (argc != 2)
		return cli_usage(&cmd_reffs, "hash takes a directory");
	int rc = call("hash", argv[1], OUTAGE_REFFS_HASH, &h);
	if (!rc)
		printf("%016llx%016llx\n", (unsigned long long)h.hi, (unsigned long long)h.lo);
	return rc;
}

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

enum {
	OPT_DAEMON = 256,
	OPT_OTHER,
	OPTION_SIZE,
	OPT_INODES,
	OPT_MODE,
	OPT_ATIME,
	OPT_DIRECT,
	OPT_LOAD,
	OPT_KEY,
	OPT_KEEP
};

static const struct option long_options[] = {
	{ "daemon", no_argument, NULL, OPT_DAEMON },
	{ "allow-other", no_argument, NULL, OPT_OTHER },
	{ "size", required_argument, NULL, OPTION_SIZE },
	{ "inodes", required_argument, NULL, OPT_INODES },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "atime", required_argument, NULL, OPT_ATIME },
	{ "direct", no_argument, NULL, OPT_DIRECT },
	{ "load", required_argument, NULL, OPT_LOAD },
	{ "key", required_argument, NULL, OPT_KEY },
	{ "keep", no_argument, NULL, OPT_KEEP },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static int parse_mode(const char *text, mode_t *out)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	if (!*text || *end || mode > 07777 || !mode)
		return cli_usage(&cmd_reffs, "--mode takes permissions such as 0755, not '%.60s'",
				 text);
	*out = (mode_t)mode;
	return EXIT_OK;
}

static int parse_atime(const char *text, enum reffs_atime *out)
{
	static const char *const names[] = { "none", "relative", "strict" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(text, names[i])) {
			*out = (enum reffs_atime)i;
			return EXIT_OK;
		}
	return cli_usage(&cmd_reffs, "--atime takes none, relative or strict, not '%.60s'", text);
}

static int parse_option(struct options *o, int option, char *const *argv)
{
	struct reffs_opts *fs = &o->mount.fs;
	struct err err = ERR_INIT;
	uint64_t size;

	switch (option) {
	case OPT_DAEMON:
		o->daemon = true;
		return EXIT_OK;
	case OPT_OTHER:
		o->mount.allow_other = true;
		return EXIT_OK;
	case OPTION_SIZE:
		if (number_parse_size(optarg, &size, &err))
			return cli_fail(&err);
		fs->pages_max = max(size / REFFS_PAGE, (uint64_t)1);
		return EXIT_OK;
	case OPT_INODES:
		if (number_parse_count(optarg, &fs->inodes_max, &err))
			return cli_fail(&err);
		return fs->inodes_max ? EXIT_OK
				      : cli_usage(&cmd_reffs, "--inodes 0 leaves no root");
	case OPT_MODE:
		return parse_mode(optarg, &fs->root_mode);
	case OPT_ATIME:
		return parse_atime(optarg, &fs->atime);
	case OPT_DIRECT:
		o->mount.direct = true;
		return EXIT_OK;
	case OPT_LOAD:
		o->mount.load = optarg;
		return EXIT_OK;
	case OPT_KEY:
		if (number_parse(optarg, &o->mount.key))
			return cli_usage(&cmd_reffs, "'%.60s' is no key, which is a number",
					 optarg);
		return EXIT_OK;
	case OPT_KEEP:
		o->keep = true;
		return EXIT_OK;
	}
	return cli_unknown(&cmd_reffs, option, argv);
}

static bool is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (streq(word, *list))
			return true;
	return false;
}

static int run(int argc, char **argv)
{
	static const char *const key_words[] = { "save", "restore", "drop", NULL };
	static const char *const file_words[] = { "pickle", "load", NULL };
	struct options o = {
		.mount.fs = { .uid = geteuid(), .gid = getegid(), .atime = REFFS_RELATIME }
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return cli_flush();
		}
		int rc = parse_option(&o, option, argv);
		if (rc)
			return rc;
	}
	argc -= optind;
	argv += optind;
	if (argc && is_one_of(argv[0], key_words))
		return with_key(&o, argc, argv);
	if (argc && is_one_of(argv[0], file_words))
		return with_file(argc, argv);
	if (argc && streq(argv[0], "hash"))
		return print_hash(argc, argv);
	if (argc != 1)
		return cli_usage(&cmd_reffs, "one directory to mount on is needed");
	return serve(&o, argv[0]);
}

const struct command cmd_reffs = {
	.name = "reffs",
	.summary = "mount the reference file system, which can save and restore itself",
	.usage = usage,
	.run = run,
};
