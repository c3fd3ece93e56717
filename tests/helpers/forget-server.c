/* SPDX-License-Identifier: MIT */
/*
 * forget-server.c - the mount that forgets, with nothing around it: commands come as lines on
 * standard input, words of `outage ctl`, and each answer ends with a line "ok" or "error: ...".
 *
 *	forget-server PROFILE ROOT MNT [key=value...] [-- FAULT-WORDS...]
 *
 * Keys: trace=FILE, data=1, reads=1, log=1, page=BYTES, pages=N, evict=1, other=1, sync=1.
 * It says "mounted" when it is; at the end it prints how the mount ended.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/util.h"
#include "forget/forget.h"

static struct forget *mount;
static char *root, *mnt;

static void log_line(void *ctx, const char *line)
{
	(void)ctx;
	fprintf(stderr, "%s\n", line);
}

static void answer(char *line)
{
	auto_strbuf text = STRBUF_INIT, json = STRBUF_INIT;
	struct inject_command c = { 0 };
	struct err err = ERR_INIT;
	char *words[64], *save = NULL;
	bool as_json = line[0] == '{';
	size_t n = 0;
	int rc;

	line[strcspn(line, "\n")] = '\0';
	for (char *w = strtok_r(line + as_json, " ", &save); w && n < ARRAY_SIZE(words);
	     w = strtok_r(NULL, " ", &save))
		words[n++] = w;
	rc = inject_command_parse(words, n, root, mnt, &c, &err);
	if (!rc)
		rc = forget_command(mount, &c, as_json ? NULL : &text, as_json ? &json : NULL,
				    &err);
	fputs(strbuf_str(as_json ? &json : &text), stdout);
	if (as_json)
		puts("");
	printf(rc ? "error: %s\n" : "ok\n", err.msg);
	fflush(stdout);
	inject_command_release(&c);
}

static atomic_bool done;

/* One line at a time comes, and is waited for; so nothing is left in a buffer. */
static void *read_commands(void *ctx)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char *line = NULL;
	size_t cap = 0;

	(void)ctx;
	while (!done) {
		if (poll(&in, 1, 50) <= 0)
			continue;
		if (getline(&line, &cap, stdin) <= 0)
			break;
		answer(line);
	}
	free(line);
	return NULL;
}

static int add_fault(struct inject *set, char **words, size_t n, struct err *err)
{
	struct inject_command c = { 0 };
	uint64_t id;
	int rc = inject_command_parse(words, n, root, mnt, &c, err);

	if (!rc && !c.fault)
		rc = err_set(err, -EINVAL, "that is no fault");
	if (!rc)
		rc = inject_add(set, c.fault, &id, err);
	if (!rc)
		c.fault = NULL;
	inject_command_release(&c);
	return rc;
}

static void set_option(struct forget_opts *o, char *arg)
{
	char *value = strchr(arg, '=');

	if (!value)
		return;
	*value++ = '\0';
	unsigned long n = strtoul(value, NULL, 10);
	if (streq(arg, "trace"))
		o->trace = value;
	else if (streq(arg, "data"))
		o->trace_data = n;
	else if (streq(arg, "reads"))
		o->trace_reads = n;
	else if (streq(arg, "log"))
		o->log_all = n;
	else if (streq(arg, "page"))
		o->cache.page_size = (uint32_t)n;
	else if (streq(arg, "pages"))
		o->cache.pages_max = n;
	else if (streq(arg, "evict"))
		o->cache.evict = n;
	else if (streq(arg, "other"))
		o->allow_other = n;
	else if (streq(arg, "sync"))
		o->real_sync = n;
}

static int fail(const struct err *err)
{
	fprintf(stderr, "forget-server: %s\n", err->msg);
	return 2;
}

int main(int argc, char **argv)
{
	static const char *const ends[] = { "unmounted", "crashed", "signal", "lost" };
	struct forget_opts o = { .log = log_line };
	struct inject *set = inject_new();
	struct err err = ERR_INIT;
	enum forget_end end;
	pthread_t reader;
	int i = 4, rc;

	if (argc < 4)
		return 2;
	o.profile = profile_find(argv[1]);
	o.root = root = argv[2];
	o.mnt = mnt = argv[3];
	for (; i < argc && !streq(argv[i], "--"); i++)
		set_option(&o, argv[i]);
	while (i < argc) { /* each after a "--" */
		int from = ++i;

		while (i < argc && !streq(argv[i], "--"))
			i++;
		if (i > from && add_fault(set, argv + from, (size_t)(i - from), &err))
			return fail(&err);
	}
	if (!o.profile || forget_mount(&o, set, &mount, &err))
		return fail(&err);
	puts("mounted");
	fflush(stdout);
	if (pthread_create(&reader, NULL, read_commands, NULL))
		return 2;
	rc = forget_serve(mount, &end, &err);
	printf("%s\n", ends[end]);
	fflush(stdout);
	if (rc)
		fail(&err);
	done = true;
	pthread_join(reader, NULL);
	forget_free(mount);
	return end == FORGET_CRASHED ? 3 : rc ? 2 : 0;
}
