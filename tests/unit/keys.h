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
#include "trust/trust.h"

static void check_keys(const char *what, bool (*next)(size_t i, struct trust_key *out),
		       const struct trust_key *known, size_t n)
{
	struct trust_key k;
	size_t found = 0;

	for (size_t i = 0; next(i, &k); i++) {
		size_t j = 0;

		while (j < n && strcmp(known[j].name, k.name) != 0)
			j++;
		found += j < n;
		ok(j < n && k.leads == known[j].leads && k.leads != TRUST_UNKNOWN,
		   "%s: %s is known, and what it leads to", what, k.name);
	}
	is_u(found, n, "%s: no key is gone", what);
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
