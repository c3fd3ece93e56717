/* SPDX-License-Identifier: MIT */
/* given.c - sets fields of a record by options, and compares those that were given again. */
#include "case/given.h"

#include <errno.h>

const char *given_option(const struct record_field *f)
{
	return f->option ? f->option : f->key.name;
}

static size_t field_of(const struct record_type *t, const char *option)
{
	size_t i = 0;

	while (i < t->n && !streq(given_option(&t->fields[i]), option))
		i++;
	assert(i < t->n);
	return i;
}

bool given_has(const struct record_type *t, uint64_t given, const char *option)
{
	return given >> field_of(t, option) & 1;
}

int given_set(const struct record_type *t, void *s, uint64_t *given, const char *option,
	      const char *value, struct err *err)
{
	size_t i = field_of(t, option);

	if (strchr(value, '\n') && t->fields[i].kind != RECORD_PROSE)
		return err_set(err, -EINVAL, "--%s has a line end in it, which cannot be kept",
			       option);
	if (given)
		*given |= 1ULL << i;
	return record_set(&t->fields[i], s, value, err);
}

/*
 * "xfs, 6.1.0, mkfs -q": the values of parts, after the option that sets them, but for the first
 * field. One that no option sets, as the run notes it by itself, is put only if `noted`.
 */
static void put_parts(const struct record_field *f, const struct record_parts *parts, bool noted,
		      struct strbuf *out)
{
	for (size_t i = 0; i < parts->n; i++)
		for (size_t k = 0; k < f->part->n; k++) {
			const struct record_field *one = &f->part->fields[k];
			const char *name = given_option(one), *before = k ? name : "";
			auto_strbuf value = STRBUF_INIT;

			if (!noted && !*name)
				continue;
			record_put(one, (const char *)parts->v + i * f->part->size, &value);
			if (!value.len)
				continue;
			strbuf_addf(out, "%s%s%s%s", out->len ? ", " : "", before,
				    *before ? " " : "", value.buf);
		}
}

static void put(const struct record_field *f, const void *s, bool noted, struct strbuf *out)
{
	if (f->kind == RECORD_PARTS)
		put_parts(f, (const void *)((uintptr_t)s + f->at), noted, out);
	else
		record_put(f, s, out);
}

void given_put(const struct record_field *f, const void *s, struct strbuf *out)
{
	put(f, s, true, out);
}

static int differs(const struct record_field *f, const struct strbuf *was, const struct strbuf *is,
		   struct err *err)
{
	static const char then[] = "leave the option out, or begin a new run";
	const char *name = given_option(f);

	/* A text of many lines would be no sentence. */
	if (f->kind == RECORD_PROSE)
		return err_set(err, -EINVAL, "the run began with another --%s: %s", name, then);
	return err_set(err, -EINVAL, "the run began with --%s %s and cannot go on with %s: %s",
		       name, was->len ? was->buf : "left out", is->len ? is->buf : "another value",
		       then);
}

int given_agree(const struct record_type *t, const void *saved, const void *now, uint64_t given,
		struct err *err)
{
	for (size_t i = 0; i < t->n; i++) {
		auto_strbuf was = STRBUF_INIT, is = STRBUF_INIT;

		if (!(given >> i & 1))
			continue;
		put(&t->fields[i], saved, false, &was);
		put(&t->fields[i], now, false, &is);
		if (!streq(strbuf_str(&was), strbuf_str(&is)))
			return differs(&t->fields[i], &was, &is, err);
	}
	return 0;
}
