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

static const char usage[] =
	"usage: lazyfs MNT --config-path FILE -o subdir=ROOT [-o OPTION[,OPTION...]...] [-f]\n"
	"\n"
	"Mounts the directory ROOT on MNT as LazyFS does, with its configuration: what programs\n"
	"write is kept in memory until they sync it, and commands that are written to the FIFO of\n"
	"the configuration lose or tear it. This is 'outage mount --profile lazyfs'.\n"
	"\n"
	"      --config-path FILE  the configuration; default config/default.toml\n"
	"  -o subdir=ROOT          where the data is kept; modules=subdir may be said, too\n"
	"  -o allow_other          other users may use it, too\n"
	"  -o OPTION               any other option is mount.fuse3(8)'s\n"
	"  -f                      stay in the foreground\n"
	"  -d                      the same\n"
	"  -s                      accepted; has no meaning here\n"
	"  -V, --version           print the version\n"
	"\n"
	"Exit status: 0 unmounted, 2 failed, 3 a fault or a command crashed it.\n";

static const char default_config[] = "config/default.toml";

struct lazyfs {
	struct forget_run_opts run;
	bool foreground;
	int status; /* -1: go on */
};

static int wrong(const char *fmt, const char *what)
{
	auto_free char *text = NULL;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (asprintf(&text, fmt, what) < 0)
		text = NULL;
#pragma GCC diagnostic pop
	return cli_failf("%s; try 'lazyfs --help'", text ? text : fmt);
}

static int take_mount_option(struct lazyfs *l, char *option)
{
	if (strncmp(option, "subdir=", 7) == 0) {
		l->run.root = option + 7;
	} else if (strncmp(option, "modules=", 8) == 0) {
		if (!streq(option + 8, "subdir"))
			return wrong("'-o %s': there is no module here but subdir", option);
	} else if (streq(option, "allow_other")) {
		l->run.allow_other = true;
	} else if (!streq(option, "rellinks") && !streq(option, "norellinks") && *option) {
		vec_push(&l->run.fuse_options, option);
	}
	return EXIT_OK;
}

static int take_mount_options(struct lazyfs *l, char *list)
{
	char *save = NULL;
	int rc = EXIT_OK;

	for (char *o = strtok_r(list, ",", &save); o && rc == EXIT_OK;
	     o = strtok_r(NULL, ",", &save))
		rc = take_mount_option(l, o);
	return rc;
}

/* The letters of "-fds", as getopt would join them. */
static int take_letters(struct lazyfs *l, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		if (*c == 'f' || *c == 'd')
			l->foreground = true;
		else if (*c != 's')
			return wrong("unknown option '%s'", word);
	}
	return EXIT_OK;
}

static int take_word(struct lazyfs *l, char *word, char *next, int *used)
{
	static const char config[] = "--config-path";

	if (streq(word, config) || streq(word, "-o")) {
		if (!next)
			return wrong("%s needs a value", word);
		*used = 2;
		if (streq(word, "-o"))
			return take_mount_options(l, next);
		l->run.config = next;
		return EXIT_OK;
	}
	if (strncmp(word, config, sizeof(config) - 1) == 0 && word[sizeof(config) - 1] == '=') {
		l->run.config = word + sizeof(config);
		return EXIT_OK;
	}
	if (strncmp(word, "-o", 2) == 0)
		return take_mount_options(l, word + 2);
	if (streq(word, "-h") || streq(word, "--help")) {
		fputs(usage, stdout);
		l->status = cli_flush();
		return EXIT_OK;
	}
	if (streq(word, "-V") || streq(word, "--version")) {
		printf("lazyfs, which is outage %s\n", OUTAGE_VERSION);
		l->status = cli_flush();
		return EXIT_OK;
	}
	if (word[0] == '-')
		return take_letters(l, word);
	if (l->run.mnt)
		return wrong("'%s': there is one directory to mount on already", word);
	l->run.mnt = word;
	return EXIT_OK;
}

static int check(struct lazyfs *l)
{
	if (!l->run.mnt)
		return wrong("%s", "a directory to mount on is needed");
	if (!l->run.root)
		return wrong("%s", "where the data is kept must be said: -o subdir=ROOT");
	if (!l->run.config)
		l->run.config = default_config;
	if (access(l->run.config, R_OK) < 0)
		return cli_failf(
			"cannot read the configuration %s: %m; --config-path FILE names it",
			l->run.config);
	return EXIT_OK;
}

int lazyfs_main(int argc, char **argv)
{
	struct lazyfs l = { .run = { .real_sync = true, .lazyfs = true }, .status = -1 };
	int rc = EXIT_OK;

	for (int i = 1; i < argc && rc == EXIT_OK && l.status < 0;) {
		int used = 1;

		rc = take_word(&l, argv[i], argv[i + 1], &used);
		i += used;
	}
	if (rc == EXIT_OK && l.status >= 0)
		rc = l.status;
	else if (rc == EXIT_OK && (rc = check(&l)) == EXIT_OK)
		/* Harnesses read the log from standard output, whether there is a file or not. */
		rc = mounting_run(&l.run, !l.foreground, stdout);
	forget_run_opts_release(&l.run);
	return rc;
}
