/* SPDX-License-Identifier: MIT */
/*
 * json.h - a streaming JSON writer. The writer adds commas and indentation; an assertion stops a
 * call that would make invalid JSON. In text that is not UTF-8 (file names), U+FFFD replaces each
 * invalid byte.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/strbuf.h"

enum { JSON_DEPTH_MAX = 32 };

struct json {
	struct strbuf *out; /* the caller writes it to a file */
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
void json_end(struct json *j);	  /* closes the innermost object or array */
void json_key(struct json *j, const char *key);

void json_string(struct json *j, const char *s);
void json_string_len(struct json *j, const char *s, size_t len);
void json_uint(struct json *j, uint64_t v);
void json_int(struct json *j, int64_t v);
void json_double(struct json *j, double v); /* writes null if not finite */
void json_bool(struct json *j, bool v);
void json_null(struct json *j);

void json_kv_object(struct json *j, const char *key); /* the key, and { */
void json_kv_array(struct json *j, const char *key);

/*
 * Members, each by the type of its value: json_kvs(j, KV("name", name), KV_SOME("line", line)).
 * NULL is written as null; a member of KV_SOME is left out if it is NULL or 0.
 */
#define json_kvs(j, ...)                                                                           \
	json_add_members(j, (const struct json_member[]){ __VA_ARGS__ },                           \
			 ARRAY_SIZE(((const struct json_member[]){ __VA_ARGS__ })))
/* An object with exactly these members. */
#define json_object_of(j, ...)                                                                     \
	do {                                                                                       \
		json_object(j);                                                                    \
		json_kvs(j, __VA_ARGS__);                                                          \
		json_end(j);                                                                       \
	} while (0)
struct json_member {
	const char *key;
	enum { JSON_STRING, JSON_STRBUF, JSON_UINT, JSON_DOUBLE, JSON_BOOL } type;
	bool left_out;
	union {
		const char *string;
		const struct strbuf *strbuf;
		uint64_t uint;
		double real;
		bool truth;
	};
};
void json_add_members(struct json *j, const struct json_member *m, size_t n);

/* The value of a comparison is an int, and is written as a number unless it is cast to bool. */
#define KV(key, value)                                                                             \
	_Generic((value), char *                                                                   \
		 : kv_string, const char *                                                         \
		 : kv_string, struct strbuf *                                                      \
		 : kv_strbuf, const struct strbuf *                                                \
		 : kv_strbuf, double                                                               \
		 : kv_double, bool                                                                 \
		 : kv_bool, default                                                                \
		 : kv_uint)(key, value)
#define KV_OF(name_, type_, TYPE_, member_)                                                        \
	static inline struct json_member name_(const char *key, type_ value)                       \
	{                                                                                          \
		return (struct json_member){ .key = key, .type = TYPE_, .member_ = value };        \
	}
KV_OF(kv_string, const char *, JSON_STRING, string)
KV_OF(kv_strbuf, const struct strbuf *, JSON_STRBUF, strbuf)
KV_OF(kv_uint, uint64_t, JSON_UINT, uint)
KV_OF(kv_double, double, JSON_DOUBLE, real)
KV_OF(kv_bool, bool, JSON_BOOL, truth)
#undef KV_OF
#define KV_SOME(key, value) kv_some(KV(key, value))
static inline struct json_member kv_some(struct json_member m)
{
	m.left_out = m.type == JSON_UINT ? !m.uint : !m.string;
	return m;
}

#endif
