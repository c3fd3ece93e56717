/* SPDX-License-Identifier: MIT */
/*
 * lazyfs.c - the program under the name `lazyfs`: LazyFS's own command line, so that scripts made
 * for it need no change.
 *
 *	lazyfs MNT --config-path FILE -o allow_other -o modules=subdir -o subdir=ROOT -f
 */
#include <errno.h>
#include <unistd.h>

#include "cli/mounting.h"

static const char default_config[] = "config/default.toml";

struct lazyfs {
	struct forget_run_opts run;
	bool foreground, ignored, version;
	struct words lists; /* the values of -o */
};

static int take_mount_option(struct lazyfs *l, const char *option, struct err *err)
{
	if (strncmp(option, "subdir=", 7) == 0) {
		l->run.root = option + 7;
	} else if (strncmp(option, "modules=", 8) == 0) {
		if (!streq(option + 8, "subdir"))
			return err_set(err, -EINVAL, "'-o %s': there is no module here but subdir",
				       option);
	} else if (streq(option, "allow_other")) {
		l->run.allow_other = true;
	} else if (!streq(option, "rellinks") && !streq(option, "norellinks") && *option) {
		vec_push(&l->run.fuse_options, option);
	}
	return 0;
}

static int take_mount_options(void *into, const char *list, struct err *err)
{
	struct lazyfs *l = into;
	char *rest = xstrdup(list);
	int rc = 0;

	vec_push(&l->lists, rest);
	for (char *o; !rc && (o = strsep(&rest, ","));)
		rc = take_mount_option(l, o, err);
	return rc;
}

#define AT(member) OPT_AT(struct lazyfs, member)
static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "MNT", .hint = HINT_DIR, .help = "the directory to mount on" },
	{ OPT_TEXT, "config-path", 0, "FILE", AT(run.config), .hint = HINT_FILE,
	  .help = "the configuration", .otherwise = default_config },
	{ OPT_CALL, NULL, 'o', "OPTION,...", .call = take_mount_options,
	  .words = "allow_other modules=subdir subdir=",
	  .help = "subdir=ROOT: where the data is kept, and modules=subdir may be said, too; "
		  "allow_other: other users may use it; any other is mount.fuse3(8)'s" },
	{ OPT_FLAG, NULL, 'f', NULL, AT(foreground), .help = "stay in the foreground" },
	{ OPT_FLAG, NULL, 'd', NULL, AT(foreground), .help = "the same" },
	{ OPT_FLAG, NULL, 's', NULL, AT(ignored), .help = "accepted; has no meaning here" },
	{ OPT_FLAG, "version", 'V', NULL, AT(version), .help = "print the version" },
	OPT_END
};

static void init(void *given)
{
	struct lazyfs *l = given;

	l->run.real_sync = l->run.lazyfs = true;
}

static void release(void *given)
{
	struct lazyfs *l = given;

	words_release(&l->lists);
	forget_run_opts_release(&l->run);
}

static int run(void *given, struct args *args)
{
	struct lazyfs *l = given;

	if (l->version) {
		printf("lazyfs, which is outage %s\n", OUTAGE_VERSION);
		return cli_flush();
	}
	if (!args->n)
		return cli_usage(&cmd_lazyfs, "a directory to mount on is needed");
	if (args->n > 1)
		return cli_usage(&cmd_lazyfs, "'%s': there is one directory to mount on already",
				 args->v[1]);
	l->run.mnt = args->v[0];
	if (!l->run.root)
		return cli_usage(&cmd_lazyfs,
				 "where the data is kept must be said: -o subdir=ROOT");
	if (access(l->run.config, R_OK) < 0)
		return cli_failf(
			"cannot read the configuration %s: %m; --config-path FILE names it",
			l->run.config);
	/* Harnesses read the log from standard output, whether there is a file or not. */
	return mounting_run(&l->run, !l->foreground, stdout);
}

const struct command cmd_lazyfs = {
	.name = "lazyfs",
	.alone = true,
	.usage = "MNT --config-path FILE -o subdir=ROOT [-o OPTION,...] [-f]",
	.about = "Mounts the directory ROOT on MNT as LazyFS does, with its configuration: what "
		 "programs write is kept in memory until they sync it, and commands that are "
		 "written to the FIFO of the configuration lose or tear it. This is 'outage mount "
		 "--profile lazyfs'.",
	.status = "0 unmounted, 2 failed, 3 a fault or a command crashed it",
	.options = options,
	.size = sizeof(struct lazyfs),
	.init = init,
	.release = release,
	.run = run,
};
