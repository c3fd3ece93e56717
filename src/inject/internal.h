/* SPDX-License-Identifier: MIT */
/* internal.h - shared by the files of this room. */
#ifndef INJECT_INTERNAL_H
#define INJECT_INTERNAL_H

#include "inject/inject.h"

/* ---- match.c ---- */

/* The directories that are cut from the front of absolute paths. */
struct inject_places {
	const char *root, *mnt; /* either may be NULL */
};

/*
 * Each function makes a match in `out`, which must be empty. `key` is for messages. A plain path
 * may be given as in the mount, below ROOT or below MNT; a path with * or ? is a pattern, in which
 * these match slashes as well.
 */
int match_path(struct path_match *out, const char *key, const char *text,
	       const struct inject_places *at, struct err *err) must_check;
/* A glob: as match_path(), but brackets have their meaning, too. */
int match_glob(struct path_match *out, const char *key, const char *text,
	       const struct inject_places *at, struct err *err) must_check;
/*
 * A regular expression in LazyFS's language, which may match anywhere in the path. The path is
 * tried as in the mount, and with ROOT or MNT in front; then the match must reach into the path
 * itself. If `as_lazyfs`, a path that matches ROOT alone is a match as well.
 */
int match_regex(struct path_match *out, const char *key, const char *text,
		const struct inject_places *at, bool as_lazyfs, struct err *err) must_check;
void match_release(struct path_match *m);
bool match_same(const struct path_match *a, const struct path_match *b);

/* ---- inject_fault.c ---- */

struct fault *fault_new(enum fault_type type);
/* Checks the fault by itself. */
int fault_check(const struct fault *f, struct err *err) must_check;
/* True if both tear the same file: only the first could ever strike. */
bool fault_conflicts(const struct fault *a, const struct fault *b);
bool fault_wants(const struct fault *f, const struct inject_op *op);

/* ---- keys.c: makes a fault from keys and values ---- */

enum dialect {
	DIALECT_OURS,
	DIALECT_LINE, /* LazyFS's FIFO */
	DIALECT_FILE, /* LazyFS's configuration, and ours */
};

struct draft {
	struct fault *f;
	enum dialect dialect;
	struct inject_places at;
	uint64_t given; /* a bit for each key */
	bool now;	/* timing=now */
};

/*
 * The type of a key's value; a file must have the right type for it. KEY_PAGES is a string or an
 * array of integers, KEY_EITHER a string or an integer.
 */
enum key_kind { KEY_TEXT, KEY_NUMBER, KEY_NUMBERS, KEY_BOOL, KEY_PAGES, KEY_EITHER };

/* Begins a fault by the name of its type; false if there is none. Old names of LazyFS are known. */
bool draft_begin(struct draft *d, const char *type, enum dialect dialect,
		 const struct inject_places *at);
void draft_release(struct draft *d);
/* Finds a key; NULL if there is none. */
const char *draft_key(const char *name, enum key_kind *kind);
int draft_set(struct draft *d, const char *key, const char *value, struct err *err) must_check;
/* "; did you mean 'occurrence'?", or the keys that there are. */
void draft_hint(const struct draft *d, const char *key, struct strbuf *out);
/*
 * Checks the draft, and gives the fault, which the caller owns. Returns 1, or 0 if the fault waits
 * for no operation and strikes now.
 */
int draft_finish(struct draft *d, struct fault **out, struct err *err) must_check;

#endif
