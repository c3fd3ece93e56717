/* SPDX-License-Identifier: MIT */
/*
 * posix-trace.c - makes a trace of an application's calls from text, for the tests:
 *
 *	create ino=10 dir=1 name=foo
 *	write ino=10 len=4096 pid=7
 *	fsync ino=10 result=-5
 *	text the power failed
 *
 * A call, and its fields. %XX in a name is a byte. A write gives its length unless `result` says
 * something else; each call comes a millisecond after the one before.
 *
 * usage: posix-trace FILE <TEXT
 */
#include <errno.h>

#include "base/number.h"
#include "core/posix.h"
#include "core/trace_file.h"
#include "../unit/trace-build.h"

static _Noreturn void bad(const char *line)
{
	fprintf(stderr, "posix-trace: what is '%s'?\n", line);
	exit(2);
}

static int digit(char c)
{
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static char *unquote(const char *text)
{
	struct strbuf sb = STRBUF_INIT;

	for (; *text; text++) {
		if (*text == '%' && digit(text[1]) >= 0 && digit(text[2]) >= 0) {
			strbuf_addch(&sb, (char)(digit(text[1]) * 16 + digit(text[2])));
			text += 2;
		} else {
			strbuf_addch(&sb, *text);
		}
	}
	return strbuf_detach(&sb);
}

static uint32_t flag_of(const char *name)
{
	for (uint32_t flag = 1; flag & POSIX_FLAGS_ALL; flag <<= 1)
		if (streq(posix_flag_name(flag), name))
			return flag;
	bad(name);
}

static void set_field(struct posix_event *p, const char *word)
{
	const char *value = strchr(word, '=');
	struct {
		const char *key;
		uint64_t *to;
	} const wide[] = { { "ino", &p->ino },	     { "ino2", &p->ino2 },
			   { "dir", &p->dir },	     { "dir2", &p->dir2 },
			   { "offset", &p->offset }, { "len", &p->len },
			   { "number", &p->number }, { NULL, NULL } };
	size_t len = value ? (size_t)(value - word) : 0, i = 0;
	uint64_t n;

	if (!value++)
		bad(word);
	while (wide[i].key && (strlen(wide[i].key) != len || memcmp(wide[i].key, word, len) != 0))
		i++;
	if (wide[i].key && !number_parse(value, wide[i].to))
		return;
	if (len == 4 && !memcmp(word, "name", 4))
		p->name = unquote(value);
	else if (len == 5 && !memcmp(word, "name2", 5))
		p->name2 = unquote(value);
	else if (len == 7 && !memcmp(word, "payload", 7))
		p->payload = unquote(value), p->payload_len = strlen(p->payload);
	else if (len == 5 && !memcmp(word, "flags", 5))
		p->flags |= flag_of(value);
	else if (len == 6 && !memcmp(word, "result", 6))
		p->result = strtol(value, NULL, 10);
	else if (number_parse(value, &n))
		bad(word);
	else if (len == 3 && !memcmp(word, "pid", 3))
		p->pid = (uint32_t)n;
	else if (len == 3 && !memcmp(word, "tid", 3))
		p->tid = (uint32_t)n;
	else if (len == 3 && !memcmp(word, "arg", 3))
		p->arg = (uint32_t)n;
	else
		bad(word);
}

/* The words of a line, which is cut up. */
static void read_call(char *line, struct posix_event *p)
{
	char *word, *rest = line;

	*p = (struct posix_event){ .op = POSIX_OP_END, .result = INT64_MAX };
	while ((word = strsep(&rest, " "))) {
		if (!*word)
			continue;
		if (p->op == POSIX_OP_END && (p->op = posix_op_find(word)) == POSIX_OP_END)
			bad(word);
		else if (strchr(word, '='))
			set_field(p, word);
	}
	if (p->result == INT64_MAX)
		p->result = p->op == POSIX_WRITE ? (int64_t)p->len : 0;
}

static void put_event(struct trace *t, char *line)
{
	static uint64_t time_ns;
	struct strbuf buf = STRBUF_INIT;
	struct posix_event p;
	struct event ev;

	if (strncmp(line, "text ", 5) == 0) {
		trace_text(t, line + 5);
		return;
	}
	read_call(line, &p);
	posix_to_event(&p, time_ns += 1000000, &buf, &ev);
	trace_append(t, &ev);
	strbuf_release(&buf);
	free((char *)p.name);
	free((char *)p.name2);
	free((void *)p.payload);
}

int main(int argc, char **argv)
{
	auto_trace t;
	struct err err = ERR_INIT;
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	if (argc != 2)
		bad("the command line");
	trace_init(&t);
	snprintf(t.info.target, sizeof(t.info.target), "test");
	while ((len = getline(&line, &cap, stdin)) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (*line && *line != '#')
			put_event(&t, line);
	}
	free(line);
	if (trace_validate(&t, &err) || trace_save(argv[1], &t, &err)) {
		fprintf(stderr, "posix-trace: %s\n", err.msg);
		return 1;
	}
	return 0;
}
