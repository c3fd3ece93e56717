/* SPDX-License-Identifier: MIT */
/*
 * json.h - a streaming JSON writer. Commas and nesting are its business; a call that would make
 * invalid JSON is a programmer's error and asserts. Text that is not UTF-8 (file names) comes out
 * with U+FFFD in place of what cannot be said.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/strbuf.h"

enum { JSON_DEPTH_MAX = 32 };

struct json {
	struct strbuf *out; /* the caller writes it out whenever it likes */
	bool pretty;	    /* one member a line */
	int depth;
	struct {
		char close; /* '}' or ']' */
		bool any;   /* something was written at this level */
	} level[JSON_DEPTH_MAX];
	bool after_key;
};

void json_init(struct json *j, struct strbuf *out, bool pretty);

void json_object(struct json *j); /* { */
void json_array(struct json *j);  /* [ */
void json_end(struct json *j);	  /* closes the innermost */
void json_key(struct json *j, const char *key);

void json_string(struct json *j, const char *s);
void json_string_len(struct json *j, const char *s, size_t len);
void json_uint(struct json *j, uint64_t v);
void json_int(struct json *j, int64_t v);
void json_double(struct json *j, double v); /* null if not finite */
void json_bool(struct json *j, bool v);
void json_null(struct json *j);

/* Key and value in one call, for the usual case. */
void json_kv_string(struct json *j, const char *key, const char *s);
void json_kv_uint(struct json *j, const char *key, uint64_t v);
void json_kv_double(struct json *j, const char *key, double v);
void json_kv_bool(struct json *j, const char *key, bool v);

#endif
