/* SPDX-License-Identifier: MIT */
/*
 * toml.h - reads TOML, the format of configuration files.
 *
 * The language is TOML 1.0 without dates and times, which are refused, as no file of ours needs
 * them. One extension: a name in brackets may have several plain words, as in [file system]. Text
 * from outside is hostile: nesting and the number of keys are bounded, and strings hold no NUL.
 *
 * The result is one tree, which lives as long as the document.
 */
#ifndef BASE_TOML_H
#define BASE_TOML_H

#include "base/arena.h"
#include "base/err.h"

enum toml_type {
	TOML_TABLE,
	TOML_ARRAY,
	TOML_STRING,
	TOML_INTEGER,
	TOML_FLOAT,
	TOML_BOOL,
};

enum {
	TOML_DEPTH_MAX = 32,  /* nested tables and arrays */
	TOML_KEYS_MAX = 4096, /* in one table */
};

struct toml_value {
	enum toml_type type;
	unsigned line;		  /* where it begins, from 1 */
	const char *key;	  /* in a table; NULL in an array */
	struct toml_value *next;  /* in the same table or array, in the order of the text */
	struct toml_value *first; /* the first value of a table or an array */
	size_t n;		  /* the number of values in it */
	const char *string;
	int64_t integer;
	double number;
	bool boolean;

	/* used by the parser only */
	struct toml_value *last;
	unsigned char how; /* how a table or an array was made */
};

struct toml {
	struct arena arena;
	struct toml_value *root; /* a table */
};

/* `name` is the file's, for messages: "NAME:LINE: what is wrong". */
int toml_parse(const char *text, size_t len, const char *name, struct toml *out, struct err *err)
	must_check;
void toml_release(struct toml *t);
#define auto_toml __attribute__((cleanup(toml_release))) struct toml

/* Returns the value of a key; NULL if the table has no such key. */
const struct toml_value *toml_get(const struct toml_value *table, const char *key);
/* "a string", "an integer", ... */
const char *toml_type_name(enum toml_type type);

#endif
