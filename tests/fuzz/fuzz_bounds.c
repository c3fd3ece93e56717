/* SPDX-License-Identifier: MIT */
/*
 * fuzz_bounds.c - bounds are read or refused with a sentence; what is read is printed as bounds
 * that give the same text again; and the first, the middle and the last workload inside them are
 * workloads.
 *
 * A line "base FILE" would make the target read any file, or wait for standard input: inputs with
 * a base that is not a named set are left alone. So are bounds that take long to count.
 */
#include "workload/bounds.h"
#include "workload/gen.h"
#include "workload/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_set(const char *name, size_t len)
{
	for (const struct bounds_set *set = bounds_sets; set->name; set++)
		if (strlen(set->name) == len && memcmp(set->name, name, len) == 0)
			return true;
	return false;
}

/* Whether every "base" in the text, wherever it stands, is followed by a set's name. */
static bool stays_inside(const char *text)
{
	for (const char *p = text; (p = strstr(p, "base"));) {
		p += 4;
		if (*p != ' ' && *p != '\t')
			continue;
		p += strspn(p, " \t");
		if (!is_set(p, strcspn(p, " \t\r\n#")))
			return false;
	}
	return true;
}

static bool is_small(const struct bounds *b)
{
	size_t names = 1 + b->directories.n + b->files.n * (b->directories.n + 1);

	return !b->parts.n && b->length <= 3 && names <= (b->length < 3 ? 12 : 8) && b->falloc_modes.n <= 6 &&
	       b->sizes.n <= 4 && b->xattrs.n <= 3;
}

static void check_print(const struct bounds *b)
{
	auto_bounds again;
	auto_strbuf once = STRBUF_INIT, twice = STRBUF_INIT;
	struct err err = ERR_INIT;

	bounds_init(&again);
	bounds_print(b, &once);
	if (bounds_parse(once.buf, once.len, "printed", &again, &err)) {
		fprintf(stderr, "%s\n%s", err.msg, once.buf);
		abort();
	}
	bounds_print(&again, &twice);
	assert(streq(once.buf, twice.buf));
}

static void check_workload(struct gen *g, uint64_t index)
{
	auto_workload w;
	auto_strbuf name = STRBUF_INIT;
	struct err err = ERR_INIT;
	const char *text;
	size_t len;
	uint64_t back;

	workload_init(&w);
	gen_seek(g, index);
	if (!gen_next(g, &text, &len))
		abort();
	if (workload_parse(text, len, "generated", &w, &err)) {
		fprintf(stderr, "%s\n%s", err.msg, text);
		abort();
	}
	gen_name(g, index, &name);
	assert(streq(w.name, strbuf_str(&name)));
	if (gen_name_index(g, strbuf_str(&name), &back, &err) || back != index)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_bounds b;
	auto_free char *text = xmemdupz(data, size);
	struct gen *g = NULL;
	struct err err = ERR_INIT;

	bounds_init(&b);
	if (!stays_inside(text))
		return 0;
	if (bounds_parse(text, size, "fuzz", &b, &err)) {
		assert(err.code < 0 && strncmp(err.msg, "fuzz:", 5) == 0);
		return 0;
	}
	check_print(&b);
	if (!is_small(&b))
		return 0;
	if (gen_new(&b, &g, &err)) {
		assert(err.msg[0]);
		return 0;
	}
	uint64_t count = gen_count(g);
	assert(count > 0 && count < (uint64_t)1 << 63);
	check_workload(g, 0);
	check_workload(g, count / 2);
	check_workload(g, count - 1);
	gen_seek(g, count);
	const char *end;
	size_t len;
	assert(!gen_next(g, &end, &len));
	gen_free(g);
	return 0;
}
