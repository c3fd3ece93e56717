/* SPDX-License-Identifier: MIT */
/*
 * trust.h - tells whether a run or a finding was made by this user on this machine; and what a
 * stranger's would do.
 *
 * A run or a finding gets a mark beside it when it is made: the file "mark", with a keyed hash of
 * every file from which a command, a path, an option or an image is taken. The key is this user's
 * (key.h), so a directory from an archive, or from version control, has no mark that fits; nor has
 * one that was changed since. A directory that was moved or copied as a whole still has its mark.
 *
 * The hashed text, with BLAKE2b, is a sequence of records: a letter, two numbers and a length of 8
 * bytes each, little-endian, and as many bytes as the length says:
 *
 *	K  kind of the run or finding
 *	N  name of a file that does not exist
 *	F  name of a file; the first number is 1 if its owner may execute it, and it is in a tree
 *	B  64 KiB of the file that are not all zeros; the first number is their offset
 *	E  the end of the file; the first number is its size
 *	D  name of a directory, U: its end; L: name of a symbolic link, T: its target
 *	S  name of a file of another type; the numbers are its type and its device
 *
 * So a hole is equal to zeros; owners, times and modes do not count, as a copy has others.
 *
 * M1: a mark of one kind does not fit another kind.
 * M2: without a key nothing is marked, and no mark verified; a run goes on.
 * M3: where directories are held (base/below.h), only what lies in them is verified: what was read
 *     before, and is read later, is of the directory that was verified.
 */
#ifndef TRUST_TRUST_H
#define TRUST_TRUST_H

#include "base/err.h"
#include "base/strbuf.h"

#define TRUST_MARK "mark"

/* ---- marks ---- */

struct trust_file {
	const char *name; /* a file in the directory, which need not exist */
	const void *text; /* the file's future text, or another file's; NULL: its content */
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

/* Makes the key if there is none. On failure nothing is marked, and the sentence says why. */
int trust_ready(struct err *err) must_check;
/* Writes the mark of a directory; without a key, removes it. */
int trust_mark(const char *dir, const struct trust_set *set, struct err *err) must_check;
/*
 * Returns 0 if the mark is this user's, and fits, and no other user may write to the directory,
 * those from the run down to it, and the files of the set, nor to the tree, if others can reach
 * that. The group of a file counts as other users, unless it is the user's own. Otherwise returns
 * -EPERM, and `why` says of the directory: "was not made by you on this machine".
 */
int trust_verify(const char *dir, const struct trust_set *set, struct err *why) must_check;

/* ---- what a value of a record leads to ---- */

enum trust_leads {
	TRUST_UNKNOWN,	/* not decided yet */
	TRUST_HARMLESS, /* a number, a word of a list that is known, words for people */
	TRUST_COMMAND,	/* a command, or arguments of one */
	TRUST_CODE,	/* the path of code that is loaded: a kernel, modules */
	TRUST_FILE,	/* the path of a file or directory of this machine */
	TRUST_TARGET,	/* a target: a server's command, or a mount by this kernel */
	TRUST_IMAGE,	/* a disk that the target mounts; the effect depends on the target */
};

/* A table of keys has one of these for each; see plan.c, store.c and keep.c. */
struct trust_key {
	const char *name;
	enum trust_leads leads;
};

/*
 * Adds in words the use of a key's value; adds nothing if that is harmless. `leads` is neither
 * TRUST_TARGET nor TRUST_IMAGE: a room that knows targets adds words for these.
 */
void trust_would(struct trust_key key, const char *value, struct strbuf *would);
/* Adds words for another effect: "mount its disk". */
void trust_would_also(struct strbuf *would, const char *fmt, ...) printf_like(2, 3);
/*
 * Returns -EPERM and one sentence: which directory is not known to be this user's, why, what it
 * would do, where to look, how to go on. `file` is the file to look at, below `dir`; `or_else` is
 * another way to go on, or "".
 */
int trust_refuse(const char *dir, const char *file, const struct err *why,
		 const struct strbuf *would, const char *or_else, struct err *err);

#endif
