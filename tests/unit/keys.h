/* SPDX-License-Identifier: MIT */
/*
 * keys.h - every key of a file that may come from a stranger is known here, with what its value
 * leads to. A key that is new must be thought about twice: in its table, and in the test.
 */
#ifndef TESTS_KEYS_H
#define TESTS_KEYS_H

#include "base/io.h"
#include "case/record.h"

static inline void check_record(const struct record_type *type, const struct trust_key *known,
				size_t n)
{
	struct trust_key k;
	size_t found = 0;

	for (size_t i = 0; record_key(type, i, &k); i++) {
		size_t j = 0;

		while (j < n && strcmp(known[j].name, k.name) != 0)
			j++;
		found += j < n;
		ok(j < n && k.leads == known[j].leads && k.leads != TRUST_UNKNOWN,
		   "%s: %s is known, and what it leads to", type->name, k.name);
	}
	is_u(found, n, "%s: no key is gone", type->name);
}

static inline const struct record_field *find_key(const struct record_type *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct record_field *f = &t->fields[i];

		f = f->part ? find_key(f->part, name) : strcmp(f->key.name, name) == 0 ? f : NULL;
		if (f)
			return f;
	}
	return NULL;
}

/* A value that a key can have; if that is a text, one that leads somewhere. */
static inline const char *evil(const struct record_type *t, const char *name)
{
	const struct record_field *f = find_key(t, name);

	return !f || f->kind == RECORD_TEXT || f->kind == RECORD_LINES ? "/evil"
	       : f->kind == RECORD_FLAG				       ? "yes"
								       : "4096";
}

/* A key of its own for each test: that of who runs it is left alone. */
static inline void use_own_key(const char *dir)
{
	auto_free char *state = xasprintf("%s/state", dir);
	struct err err = ERR_INIT;

	setenv("XDG_STATE_HOME", state, 1);
	ok(trust_ready(&err) == 0, "a key");
}

/* The file with its first byte changed. */
static inline void change_file(const char *dir, const char *name)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (io_slurp_file(dir, name, 1 << 20, &text, &err) || !text.len)
		ok(false, "%s/%s: %s", dir, name, err.msg);
	text.buf[text.len - 1] ^= 1;
	if (io_write_file(dir, name, text.buf, text.len, 0, &err))
		ok(false, "%s", err.msg);
}

#endif
