/* SPDX-License-Identifier: MIT */
/*
 * record.h - reads and prints records of runs and findings: a struct, as a text for people.
 *
 * A table of fields says which members of the struct are kept, under which key, and what the value
 * of each leads to in the record of a stranger (trust.h). The text is
 *
 *	outage-TYPE FORMAT	such as "outage-pm-case 2"
 *	version X.Y.Z		of the program that wrote it
 *	KEY VALUE		one line for each value, a blank between them
 *
 * In a value, the end of a line, a tab and a backslash are \n, \t and \\. A flag is "yes". A member
 * that is at its default has no line.
 *
 * R1: a text may come from anywhere. One with an unknown key, a key that is there twice, a key
 *     without a value, a value that its field cannot have, a NUL, or without a key that is required
 *     is refused as a whole, with the number of the line. So what is taken for one line in scripts
 *     and messages is one.
 * R2: a printed text is read back as the same struct (a double to nine digits, an empty text as
 *     none), and printed as the same text.
 * R3: every key has been thought about: none leads to TRUST_UNKNOWN.
 */
#ifndef CASE_RECORD_H
#define CASE_RECORD_H

#include "base/words.h"
#include "trust/trust.h"

enum {
	RECORD_FORMAT = 2,    /* of all types: it changes when one of them does */
	RECORD_MAX = 64 << 20 /* bytes of a file */
};

enum record_kind {
	RECORD_TEXT,   /* char *: one line; NULL, or "": it is not said */
	RECORD_PROSE,  /* the same, of any number of lines */
	RECORD_LINES,  /* char *: lines, and each is a value of the key */
	RECORD_LIST,   /* struct words: each is a value of the key */
	RECORD_NUMBER, /* uint64_t */
	RECORD_COUNT,  /* uint64_t, which may be written as 20k */
	RECORD_SIZE,   /* uint64_t, which may be written as 4M */
	RECORD_CHOICE, /* uint64_t: the place of the value among `words` */
	RECORD_SET,    /* uint64_t, "a,c": bit 0 for the first of `words`, and so on */
	RECORD_FLAG,   /* bool */
	RECORD_REAL,   /* double */
	RECORD_OTHER,  /* known to set() and put() only; owns no memory */
	RECORD_PARTS,  /* struct record_parts: structs with fields of their own */
};

struct record_field {
	struct trust_key key; /* its name, and what its value leads to */
	enum record_kind kind;
	size_t at; /* of the member */
	bool required;
	uint64_t otherwise;   /* the default of a number */
	const char *words;    /* the values that there are, with a blank between them */
	uint64_t least, most; /* for a number; most 0: no bound */
	const char *option;   /* that sets it, if it has another name; "": none does; for plans */
	/* Instead of what the kind does, or NULL; set() refuses a value that cannot be. */
	int (*set)(void *member, const char *value, struct err *err);
	/* Adds nothing if the member is at its default. */
	void (*put)(const void *member, struct strbuf *out);
	/* A value that leads nowhere, although those of the key do; or NULL. */
	bool (*harmless)(const char *value);
	/*
	 * Of RECORD_PARTS: its first field has the name of this one, and begins another struct;
	 * lines with its other keys say more of the struct before them.
	 */
	const struct record_type *part;
};

/* Further members of struct record_field may follow. */
#define RECORD_FIELD(struct_, name_, leads_, kind_, member_, ...)                                  \
	{                                                                                          \
		.key = { (name_), (leads_) }, .kind = RECORD_##kind_,                              \
		.at = offsetof(struct_, member_), ##__VA_ARGS__                                    \
	}

struct record_type {
	const char *name; /* "pm-case" */
	const struct record_field *fields;
	size_t n;    /* at most 64 */
	size_t size; /* of the struct */
};

#define RECORD_TYPE(name_, fields_, struct_)                                                       \
	{                                                                                          \
		.name = (name_), .fields = (fields_), .n = ARRAY_SIZE(fields_),                    \
		.size = sizeof(struct_)                                                            \
	}

/* A vector of structs of any type: struct vec_of(TYPE) has the same members. */
struct record_parts vec_of(void);

/* Sets the members of the table to their defaults; others are left alone. */
void record_init(const struct record_type *t, void *s);
/* Releases what they own, and makes them empty. */
void record_release(const struct record_type *t, void *s);

/* One member, as an option or a line sets it. */
int record_set(const struct record_field *f, void *s, const char *value, struct err *err)
	must_check;
/* Its value, not escaped, several of them as lines; nothing if it is at its default. */
void record_put(const struct record_field *f, const void *s, struct strbuf *out);

void record_print(const struct record_type *t, const void *s, struct strbuf *out);
/*
 * `source` names the text in messages. `out` is initialised first, and released on failure. `given`
 * gets a bit for each field that has a line; or it is NULL.
 */
int record_parse(const struct record_type *t, const char *text, size_t len, const char *source,
		 void *out, uint64_t *given, struct err *err) must_check;

/* The file NAME below DIR (below.h). */
int record_load(const struct record_type *t, const char *dir, const char *name, void *out,
		struct err *err) must_check;
/* The type and the version in the first two lines of a record. */
struct record_head {
	char *type, *version;
};
int record_head_of(const char *dir, const char *name, struct record_head *out, struct err *err)
	must_check;
void record_head_release(struct record_head *h);
#define auto_record_head auto_call(record_head_release) struct record_head
int record_save(const struct record_type *t, const char *dir, const char *name, const void *s,
		struct err *err) must_check;

/* Key by key, those of parts as well, what its value leads to: false after the last. */
bool record_key(const struct record_type *t, size_t i, struct trust_key *out);
/*
 * Adds in words what the record of a stranger would do, commands first. TRUST_TARGET and
 * TRUST_IMAGE are left to callers that know targets, and so are parts.
 */
void record_would(const struct record_type *t, const void *s, struct strbuf *would);

#endif
