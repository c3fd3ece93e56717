/* SPDX-License-Identifier: MIT */
/*
 * keys.h - what the tests of trust share. Each works in a directory of its own, with a key of its
 * own: that of who runs it is left alone.
 *
 * Every key of a file that may come from a stranger is known here, with what its value
 * leads to. A key that is new must be thought about twice: in its table, and in the test.
 */
#ifndef TESTS_KEYS_H
#define TESTS_KEYS_H

#include <stdlib.h>
#include <sys/stat.h>

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

static char dir[] = "/tmp/outage-trust-XXXXXX";

static void remove_dir(void)
{
	auto_free char *clear = xasprintf("rm -rf %s", dir);

	if (system(clear))
		printf("# %s stays\n", dir);
}

/* Makes the directory, which goes when the test ends, and the key. */
static bool begin_trust(void)
{
	struct err err = ERR_INIT;

	umask(022);
	if (!mkdtemp(dir))
		return false;
	atexit(remove_dir);
	auto_free char *state = xasprintf("%s/state", dir);
	setenv("XDG_STATE_HOME", state, 1);
	return ok(trust_ready(&err) == 0, "a key");
}

static void write_below(const char *where, const char *name, const char *text)
{
	struct err err = ERR_INIT;

	if (io_write_file(where, name, text, strlen(text), 0, &err))
		ok(false, "%s", err.msg);
}

/* The file with its first byte changed. */
static inline void change_file(const char *where, const char *name)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (io_slurp_file(where, name, 1 << 20, &text, &err) || !text.len)
		ok(false, "%s/%s: %s", where, name, err.msg);
	text.buf[text.len - 1] ^= 1;
	if (io_write_file(where, name, text.buf, text.len, 0, &err))
		ok(false, "%s", err.msg);
}

#endif
