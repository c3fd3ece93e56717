/* SPDX-License-Identifier: MIT */
/*
 * bounds.h - the description of a set of workloads.
 *
 * Bounds are text, one key a line; the named sets (seq-1, seq-2, ...) are texts of the same form,
 * kept in bounds_sets.c and shown by `outage gen --show NAME`. A file may start from another one
 * with "base". outage-bounds(5) describes the keys; they are in the table in bounds.c.
 */
#ifndef WORKLOAD_BOUNDS_H
#define WORKLOAD_BOUNDS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "workload/op.h"

enum {
	BOUNDS_LENGTH_MAX = 8,
	BOUNDS_NAMES_MAX = 62, /* files and directories together; a set of names is a 64-bit mask */
	BOUNDS_FILE_MAX = 64 * 1024,
	BOUNDS_DEPTH_MAX = 16, /* depth of "base" */
};

/* The range of a data operation, relative to the file's size at that moment. */
enum range {
	RANGE_APPEND, /* from the end on */
	RANGE_START,  /* from the beginning, to the middle of a page */
	RANGE_MIDDLE, /* inside, neither end on a page boundary */
	RANGE_END,    /* up to the end exactly */
	RANGE_EXTEND, /* across the end */
	RANGE_BEYOND, /* behind the end, leaving a hole */
	/* Whole pages, for every operation; the end is rounded up to a page. */
	RANGE_FIRST_PAGE,
	RANGE_LAST_PAGE,
	RANGE_LATER_PAGES, /* from the second page to the end */
	RANGE_OVER_END,	   /* from two pages before the end to two behind it */
	RANGE_GAP,	   /* behind the end, leaving a hole, also in an empty file */
	RANGE_COUNT,
};

enum persist_kind { PERSIST_FSYNC, PERSIST_FDATASYNC, PERSIST_SYNC, PERSIST_SYNCFS, PERSIST_COUNT };

/*
 * The names that fsync acts on: those of the operation before it, or of all operations so far, and
 * their neighbours.
 */
enum persist_on {
	ON_LATEST = 1,
	ON_USED = 2,
	ON_SIBLINGS = 4,
	ON_PARENTS = 8,
	ON_ANCESTORS = 16, /* parents, and theirs */
	ON_CHILDREN = 32,  /* the used files in a directory, and an unused one */
};

/* Whether the last operation may be followed by two persistence points. */
enum persist_twice { TWICE_NO, TWICE_SPARE, TWICE_ALWAYS };

/* Which flags a write, or a mapping, may have: bits. */
enum write_mode { MODE_PLAIN = 1, MODE_SYNC = 2, MODE_DSYNC = 4 };
enum map_mode { MODE_MSYNC = 1, MODE_NOSYNC = 2 };

/* The kind of file that is made where rename, link or unlink needs one. */
enum file_kind { KIND_FILE, KIND_FIFO, KIND_SYMLINK };

enum reuse {
	REUSE_NONE,    /* operations need have no name in common */
	REUSE_RELATED, /* each uses a name, its sibling or its parent that was used before */
	REUSE_SAME,    /* each uses a name that was used before */
};

struct falloc_mode {
	unsigned value;
	const char *text;
};

struct bounds_set;

struct bounds {
	const char *name;
	unsigned length; /* operations, not counting what they depend on */
	struct vec_of(const struct op_def *) operations;
	struct vec_of(const char *) files;	 /* names that each directory may hold */
	struct vec_of(const char *) directories; /* paths, parents first; the root is implied */
	unsigned ranges;			 /* bits 1 << enum range: write, pwrite, falloc */
	unsigned direct_ranges;			 /* ranges for dwrite and mmapwrite */
	unsigned falloc_ranges;
	struct vec_of(struct falloc_mode) falloc_modes;
	struct vec_of(uint64_t) sizes; /* for truncate */
	struct vec_of(const char *) xattrs;
	unsigned persist;	  /* bits 1 << enum persist_kind; 0: none is added */
	unsigned persist_on;	  /* enum persist_on */
	unsigned last_persist_on; /* enum persist_on, after the last operation */
	unsigned persist_twice;	  /* enum persist_twice */
	unsigned reuse;		  /* enum reuse */
	unsigned overlap;	  /* yes or no: data operations in a row act on one file */
	unsigned durable_setup;	  /* yes or no: needs of the first operation are synced before it */
	unsigned setup_first;	  /* yes or no: needs of all operations stand before the first */
	unsigned existing;     /* yes or no: with setup_first, files to be made are there, empty */
	unsigned filled;       /* yes or no: a file that an operation needs has data */
	unsigned file_kind;    /* enum file_kind */
	unsigned write_modes;  /* enum write_mode, of write, append and pwrite */
	unsigned direct_modes; /* enum write_mode, of dwrite */
	unsigned map_modes;    /* enum map_mode */
	/* Not empty: the workloads are those of these sets, one after the other, and no others. */
	struct vec_of(const struct bounds_set *) parts;
	struct arena arena;
};

void bounds_init(struct bounds *b);
void bounds_release(struct bounds *b);
#define auto_bounds __attribute__((cleanup(bounds_release))) struct bounds

/* `spec` is the name of a set, or the path of a file. */
int bounds_load(const char *spec, struct bounds *out, struct err *err) must_check;
int bounds_parse(const char *text, size_t len, const char *source, struct bounds *out,
		 struct err *err) must_check;
/* Prints the bounds in full, as a text that parses to the same bounds. */
void bounds_print(const struct bounds *b, struct strbuf *out);

/* The named sets. */
struct bounds_set {
	const char *name;
	const char *summary;
	const char *text;
};

extern const struct bounds_set bounds_sets[]; /* ends with a NULL name */

#endif
