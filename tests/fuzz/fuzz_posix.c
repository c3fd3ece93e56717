/* SPDX-License-Identifier: MIT */
/*
 * fuzz_posix.c - whatever an application is said to have called, it is reported on, and no byte of
 * it gets to a terminal or out of its place in the picture.
 *
 * A call takes 10 bytes, and a name in the input as many more as its length says. Inodes are few,
 * so that directories meet themselves, files come back, and names are taken by others.
 */
#include "app/posix_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at, *end;
};

static uint8_t byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static char *name(struct input *in)
{
	static const char *const known[] = { "a", "b", "c", ".", "..", "", "x/y" };
	uint8_t b = byte(in);
	size_t len = min((size_t)(b & 15), (size_t)(in->end - in->at));
	char *text;

	if (b < 64)
		return NULL;
	if (b < 192)
		return xstrdup(known[b % ARRAY_SIZE(known)]);
	text = xmemdupz(in->at, len);
	in->at += len;
	return text;
}

static void add_call(struct posix_log *log, struct input *in, uint64_t n)
{
	auto_strbuf buf = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct event ev;
	struct posix_event p = { .op = (enum posix_op)(byte(in) % POSIX_OP_END) };
	uint8_t b = byte(in);

	p.ino = b & 7;
	p.ino2 = b >> 3 & 7;
	b = byte(in);
	p.dir = b & 7;
	p.dir2 = b >> 3 & 7;
	p.flags = byte(in) & POSIX_FLAGS_ALL;
	p.len = (uint64_t)byte(in) << byte(in) % 40;
	p.result = (int8_t)byte(in);
	p.arg = byte(in);
	auto_free char *first = name(in), *second = name(in);
	p.name = first;
	p.name2 = second;
	posix_to_event(&p, n, &buf, &ev);
	if (posix_log_add(log, n, &ev, &err))
		abort();
}

static void must_be_plain(const struct strbuf *sb)
{
	for (size_t i = 0; i < sb->len; i++)
		if (sb->buf[i] != '\n' && (sb->buf[i] < ' ' || sb->buf[i] > '~'))
			abort();
}

/* Every tag is one of ours: what came in has no bracket. */
static void must_be_svg(const struct strbuf *sb)
{
	long depth = 0;

	for (size_t i = 0; i < sb->len; i++) {
		depth += sb->buf[i] == '<';
		depth -= sb->buf[i] == '>';
		if (depth < 0 || depth > 1 || (unsigned char)sb->buf[i] < '\n')
			abort();
	}
	if (depth)
		abort();
}

static void report(const struct posix_log *log, const struct posix_filter *f)
{
	auto_strbuf out = STRBUF_INIT;
	struct posix_selection sel;
	struct posix_suggestions found;
	struct posix_graph_cut cut;
	struct json j;

	posix_select(log, f, &sel);
	posix_text_runs(log, &sel, &out);
	for (size_t i = 0; i < sel.n; i++) {
		const struct posix_call *c = &log->calls.v[sel.v[i]];
		struct posix_event p;
		struct err err = ERR_INIT;

		if (posix_decode(&log->trace.events.v[c->at], &p, &err))
			abort();
		posix_add_line(&out, c, &p);
	}
	must_be_plain(&out);
	strbuf_clear(&out);
	posix_suggest(log, &sel, 10, &found);
	for (size_t i = 0; i < found.list.n; i++)
		strbuf_adds(&out, found.list.v[i].why);
	must_be_plain(&out);
	posix_suggestions_release(&found);
	strbuf_clear(&out);
	json_init(&j, &out, false);
	posix_json_runs(log, &sel, &j);
	strbuf_clear(&out);
	posix_graph(log, &sel, &(struct posix_graph_opts){ .lanes_max = 4, .rows_max = 50 }, &out,
		    &cut);
	must_be_svg(&out);
	vec_release(&sel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, data + size };
	auto_posix_log log;

	posix_log_init(&log);
	for (uint64_t n = 0; in.at < in.end; n++)
		add_call(&log, &in, n);
	posix_log_finish(&log);
	report(&log, &(struct posix_filter){ .ops = POSIX_OPS_ALL, .to = UINT64_MAX });
	report(&log,
	       &(struct posix_filter){ .ops = posix_ops_effective(), .to = 20, .file = "*[a-c]" });
	return 0;
}
