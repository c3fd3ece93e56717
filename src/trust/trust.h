/* SPDX-License-Identifier: MIT */
/*
 * trust.h - whether a run, or a finding, was made by this user on this machine; and what one that
 * was not would do.
 *
 * A run or a finding gets a mark beside it when it is made: the file "mark", with a keyed hash of
 * every file from which a command, a path, an option or an image is taken. The key is this user's
 * (key.h), so what came in an archive, or by version control, has no mark that fits; nor has what
 * was changed since. A directory that was moved or copied as a whole still has its mark.
 *
 * The hashed text, with BLAKE2b, is a sequence of records: a letter, two numbers and a length of 8
 * bytes each, little-endian, and as many bytes as the length says:
 *
 *	K  kind of what is marked
 *	N  name of a file that is not there
 *	F  name of a file; the first number is 1 if its owner may execute it, and it is in a tree
 *	B  64 KiB of it that are not all zeros; the first number is where they begin
 *	E  the end of it; the first number is its size
 *	D  name of a directory, U: its end; L: name of a symbolic link, T: where it leads
 *	S  name of something else; the numbers are its type and its device
 *
 * So a hole is equal to zeros; owners, times and modes do not count, as a copy has others.
 *
 * M1: a mark of one kind does not fit another kind.
 * M2: without a key nothing is marked, and nothing verified; a run goes on.
 */
#ifndef TRUST_TRUST_H
#define TRUST_TRUST_H

#include "base/err.h"
#include "base/strbuf.h"

#define TRUST_MARK "mark"

/* ---- marks ---- */

struct trust_file {
	const char *name; /* of a file in the directory, which need not be there */
	const void *text; /* the file's future text, or that of a file elsewhere; NULL: as it is */
	size_t len;
};

struct trust_set {
	const char *kind;
	const char *mark; /* its name; NULL: TRUST_MARK */
	const struct trust_file *files;
	size_t n;
	const char *tree; /* a directory with all that is in it, or NULL */
	bool keep;	  /* the mark is on disk when trust_mark() returns */
};

/* Makes the key if there is none. If it fails, nothing is marked, and the sentence says why. */
int trust_ready(struct err *err) must_check;
/* Writes the mark of a directory; without a key, removes it. */
int trust_mark(const char *dir, const struct trust_set *set, struct err *err) must_check;
/*
 * 0 if the mark is this user's, and fits, and no other user may write to the directory, to those
 * files, and to the tree, unless no other user can reach that. The group of a file counts as other
 * users, unless it is the user's own. Else -EPERM, and `why` says what the directory did: "was not
 * made by you on this machine".
 */
int trust_verify(const char *dir, const struct trust_set *set, struct err *why) must_check;

/* ---- what a key of a file leads to ---- */

enum trust_leads {
	TRUST_UNKNOWN,	/* not decided yet */
	TRUST_HARMLESS, /* a number, a word of a list that is known, words for people */
	TRUST_COMMAND,	/* a command, or arguments of one */
	TRUST_CODE,	/* the path of code that is loaded: a kernel, modules */
	TRUST_FILE,	/* the path of a file or directory of this machine */
	TRUST_TARGET,	/* a target: a server's command, or what this kernel mounts, and how */
	TRUST_IMAGE,	/* a disk that the target mounts; what that means depends on the target */
};

/* A table of keys has one of these for each; see plan.c, store.c and keep.c. */
struct trust_key {
	const char *name;
	enum trust_leads leads;
};

/*
 * Adds in words what would be done with the value of a key; nothing, if that is harmless. `leads`
 * is none of TRUST_TARGET and TRUST_IMAGE: for those, words are added by a room that knows targets.
 */
void trust_would(struct trust_key key, const char *value, struct strbuf *would);
/* Adds words for something else: "mount its disk". */
void trust_would_also(struct strbuf *would, const char *fmt, ...) printf_like(2, 3);
/*
 * -EPERM and one sentence: what it is, that it is not known to be this user's, why, what it would
 * do, where to look, how to go on. `file` is what to look at, below `dir`; `or_else` is another way
 * to go on, or "".
 */
int trust_refuse(const char *dir, const char *file, const struct err *why,
		 const struct strbuf *would, const char *or_else, struct err *err);

#endif
