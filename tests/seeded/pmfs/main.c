/* SPDX-License-Identifier: MIT */
/* main.c - the command: pmfs mkfs|run|dump|check POOL. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "pmfs.h"

struct command {
	const char *verb, *pool, *script;
	uint64_t bugs;
	int flush; /* -1: the best */
	bool read_only;
};

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "pmfs: %s: %s\n", what, why);
	return 2;
}

static int usage(void)
{
	fputs("usage: pmfs mkfs POOL\n"
	      "       pmfs run POOL SCRIPT\n"
	      "       pmfs dump POOL [--read-only]\n"
	      "       pmfs check POOL\n"
	      "       pmfs --list-bugs\n"
	      "options: -o bug=NAME[,NAME...], --flush clwb|clflushopt|clflush\n",
	      stderr);
	return 2;
}

static int list_bugs(void)
{
	for (int i = 0; i < N_BUGS; i++)
		printf("%-20s %s: %s (%s)\n", bug_table[i].name, bug_table[i].wrong,
		       bug_table[i].consequence, bug_table[i].stems);
	return 0;
}

static bool parse(int argc, char **argv, struct command *c)
{
	const char *word[3] = { 0 };
	int n = 0;

	for (int i = 1; i < argc; i++)
		if (streq(argv[i], "--read-only")) {
			c->read_only = true;
		} else if (streq(argv[i], "-o") && i + 1 < argc) {
			if (strncmp(argv[++i], "bug=", 4) || bugs_parse(argv[i] + 4, &c->bugs))
				return false;
		} else if (streq(argv[i], "--flush") && i + 1 < argc) {
			c->flush = pm_flush_by_name(argv[++i]);
			if (c->flush < 0)
				return false;
		} else if (n < 3 && *argv[i] != '-') {
			word[n++] = argv[i];
		} else {
			return false;
		}
	c->verb = word[0];
	c->pool = word[1];
	c->script = word[2];
	return n >= 2 && (n == 3) == streq(c->verb, "run");
}

/* ---- the pool ---- */

static int map_pool(const struct command *c, unsigned char **out)
{
	bool make = streq(c->verb, "mkfs");
	auto_fd fd = open(c->pool,
			  c->read_only ? O_RDONLY
			  : make       ? O_RDWR | O_CREAT
				       : O_RDWR,
			  0644);
	off_t size;

	if (fd < 0)
		return fail(c->pool, strerror(errno));
	if (make && ftruncate(fd, POOL_SIZE))
		return fail(c->pool, strerror(errno));
	size = lseek(fd, 0, SEEK_END);
	if (size < POOL_SIZE)
		return fail(c->pool, "is too short for a pmfs");
	*out = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE,
		    c->read_only ? MAP_PRIVATE : MAP_SHARED, fd, 0);
	return *out == MAP_FAILED ? fail(c->pool, strerror(errno)) : 0;
}

/* ---- commands ---- */

static int write_stream(struct pmfs *fs, const char *path)
{
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	pm_trace_end(&fs->m);
	if (fd < 0 || io_write_full(fd, fs->m.stream, fs->m.len))
		return fail(path, "cannot be written");
	return 0;
}

static int run_lines(struct pmfs *fs, FILE *f)
{
	struct err err = ERR_INIT;
	char line[1024];
	int result;

	for (unsigned number = 0; fgets(line, sizeof(line), f); number++) {
		line[strcspn(line, "\n")] = '\0';
		if (script_run_line(fs, line, number, &result, &err))
			return fail("script", err.msg);
		if (result)
			printf("%s: %s\n", line, strerror(-result));
	}
	return 0;
}

/* With PMFS_STREAM=FILE in the environment, what it does to the memory is written there. */
static int run(struct pmfs *fs, const struct command *c)
{
	const char *stream = getenv("PMFS_STREAM");
	auto_file f = fopen(c->script, "r");
	int rc;

	if (!f)
		return fail(c->script, strerror(errno));
	if (stream)
		pm_trace_start(&fs->m);
	rc = run_lines(fs, f);
	if (!rc && stream)
		rc = write_stream(fs, stream);
	return rc;
}

/* Using it is its end: a copy will do. */
static int use_copy(struct pmfs *fs)
{
	auto_free unsigned char *copy = aligned_alloc(PM_LINE_SIZE, POOL_SIZE);
	struct err err = ERR_INIT;

	assert(copy);
	memcpy(copy, fs->m.base, POOL_SIZE);
	fs->m.base = copy;
	if (!pmfs_use(fs, &err))
		return 0;
	printf("%s\n", err.msg);
	return 1;
}

static int act(struct pmfs *fs, const struct command *c)
{
	struct err err = ERR_INIT;
	auto_strbuf text = STRBUF_INIT;

	if (streq(c->verb, "mkfs")) {
		pmfs_mkfs(fs);
		return 0;
	}
	if (pmfs_recover(fs, &err)) {
		printf("%s\n", err.msg);
		return 1;
	}
	if (streq(c->verb, "run"))
		return run(fs, c);
	if (streq(c->verb, "check") && pmfs_check_links(fs, &err)) {
		printf("%s\n", err.msg);
		return 1;
	}
	pmfs_dump(fs, &text);
	if (streq(c->verb, "dump"))
		fputs(strbuf_str(&text), stdout);
	return use_copy(fs);
}

int main(int argc, char **argv)
{
	static struct pmfs fs;
	struct command c = { .flush = -1 };
	unsigned char *memory;
	int rc;

	if (argc == 2 && streq(argv[1], "--list-bugs"))
		return list_bugs();
	if (!parse(argc, argv, &c))
		return usage();
	c.read_only |= streq(c.verb, "check");
	if (!streq(c.verb, "mkfs") && !streq(c.verb, "run") && !streq(c.verb, "dump") &&
	    !streq(c.verb, "check"))
		return usage();
	rc = map_pool(&c, &memory);
	if (rc)
		return rc;
	pmfs_init(&fs, memory, c.bugs);
	if (c.flush >= 0)
		fs.m.how = (enum pm_flush)c.flush;
	rc = act(&fs, &c);
	pmfs_release(&fs);
	munmap(memory, POOL_SIZE);
	return rc;
}
