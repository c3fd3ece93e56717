/* SPDX-License-Identifier: MIT */
/*
 * fuzz_toml.c - whatever the bytes, a document is read or refused with its line, and what was read
 * keeps the bounds.
 */
#include "base/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const struct toml_value *v, unsigned depth)
{
	size_t n = 0;

	/* a header's name, a key's, and values in it */
	assert(depth <= 4 * TOML_DEPTH_MAX && v->line >= 1);
	if (v->type == TOML_STRING)
		assert(strlen(v->string) < SIZE_MAX);
	for (const struct toml_value *i = v->first; i; i = i->next, n++) {
		assert((v->type == TOML_TABLE) == (i->key != NULL));
		if (v->type == TOML_TABLE && n < 64)
			assert(toml_get(v, i->key) == i);
		walk(i, depth + 1);
	}
	assert(n == v->n && (v->type != TOML_TABLE || n <= TOML_KEYS_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct toml doc;

	if (toml_parse((const char *)data, size, "f", &doc, &err)) {
		assert(err.code < 0 && strncmp(err.msg, "f:", 2) == 0);
		return 0;
	}
	walk(doc.root, 0);
	toml_release(&doc);
	return 0;
}
