/* SPDX-License-Identifier: MIT */
/*
 * workload.h - a workload: a list of operations, as text and in memory.
 *
 *	# lines that begin with a hash are comments
 *	workload rename-then-sync
 *	setup mkdir A
 *	setup creat A/foo
 *	rename A/foo A/bar
 *	fsync A/bar
 *	f1 = open A/bar rdwr
 *	write f1 0 4096
 *	fsync f1
 *
 * One operation a line, words separated by blanks. A line "workload NAME" begins the next workload
 * of a file; a file without one holds a single workload, named by its reader. "setup" in front of
 * an operation says that it only prepares. A name given by "NAME = open ..." means that handle from
 * there on; a path of the same spelling is then written "./NAME". Bytes that cannot be in a word
 * are written \xHH. A word may stand between '"', with blanks in it; there a '"' is written \", and
 * a '\' \\. The empty word is "".
 *
 * Printing a parsed workload gives the same text, with comments, except extra blanks, the form of
 * numbers (printed in decimal, modes in octal) and needless "./" or "//" in paths.
 */
#ifndef WORKLOAD_WORKLOAD_H
#define WORKLOAD_WORKLOAD_H

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "workload/op.h"

enum {
	WORKLOAD_OPS_MAX = 65536,
	WORKLOAD_LINE_MAX = 64 * 1024,
	WORKLOAD_NAME_MAX = 255,
	WORKLOAD_HANDLES_MAX = 1024,
};

/* A handle's name, and the operation that makes it first. */
struct workload_handle {
	const char *name;
	size_t op;
};

struct workload {
	const char *name;   /* "" if it has none */
	bool named;	    /* by a "workload NAME" line of its own */
	const char *before; /* comments and empty lines above that line, or NULL */
	const char *after;  /* comments and empty lines at the end, or NULL */
	struct vec_of(struct op) ops;
	struct vec_of(struct workload_handle) handles; /* each name once */
	struct arena arena;			       /* holds every text above and in ops */
};

void workload_init(struct workload *w);
void workload_release(struct workload *w);
void workload_clear(struct workload *w);
#define auto_workload __attribute__((cleanup(workload_release))) struct workload

/* Appends an operation; its texts are copied. */
void workload_add(struct workload *w, const struct op *op);
/* Appends an operation whose texts are in the workload's arena already. */
void workload_push(struct workload *w, const struct op *op);
/*
 * True if operation `i` makes a promise. Beyond op_persists(), a write through a handle that was
 * opened with sync or dsync makes one.
 */
bool workload_persists(const struct workload *w, size_t i);
/* Returns the first operation that runs a command, or NULL. */
const struct op *workload_command(const struct workload *w);
/* The handle of that name, or NULL. */
const struct workload_handle *workload_handle(const struct workload *w, const char *name);
/* Parses one line without comment and appends it: for tests, importers and callers in C. */
int workload_add_line(struct workload *w, const char *line, struct err *err) must_check;

/*
 * Parses a text that holds one workload. `source` names it in messages ("FILE:LINE:COLUMN: ...").
 * On failure `out` is empty.
 */
int workload_parse(const char *text, size_t len, const char *source, struct workload *out,
		   struct err *err) must_check;

/* Reads many workloads from one stream, without holding more than one of them. */
struct workload_reader {
	FILE *in;
	const char *source;
	unsigned line;
	char *buf;
	size_t cap;
	ssize_t pending; /* the length of a line read and not yet used, or -1 */
	struct strbuf comments;
	bool any;
};

void workload_reader_init(struct workload_reader *r, FILE *in, const char *source);
void workload_reader_release(struct workload_reader *r);
/* Returns 1 and a workload, 0 at the end, or -errno. `w` must be initialised, and may be reused. */
int workload_reader_next(struct workload_reader *r, struct workload *w, struct err *err) must_check;

void workload_print(const struct workload *w, struct strbuf *out);
/* Prints one operation without line end, comments or "setup". */
void op_print(const struct op *op, struct strbuf *out);

/* Prints the form of the operation: "rename OLD NEW [FLAGS]". */
void op_usage(const struct op_def *def, struct strbuf *out);

/* True if the text of a path argument is acceptable; else `why` gets the reason. */
bool workload_path_ok(const char *path, const char **why);

#endif
