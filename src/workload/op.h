/* SPDX-License-Identifier: MIT */
/*
 * op.h - the table of operations, made from ops.def.
 *
 * An entry has the arguments of an operation, in order, the function that executes it, the role of
 * each path (what must exist before and what exists afterwards), and further facts. Code asks for
 * facts, never for an operation by its name; CONTRIBUTING shows how an operation is added.
 */
#ifndef WORKLOAD_OP_H
#define WORKLOAD_OP_H

#include "base/util.h"

struct exec;
struct op;

/* The kinds of arguments. */
enum arg_kind {
	ARG_END = 0, /* no more arguments */
	ARG_PATH,    /* a path below the root, "." is the root itself */
	ARG_FILE,    /* a path, or the name of a handle made by open */
	ARG_HANDLE,  /* the name of a handle */
	ARG_TEXT,    /* any text: a symlink's target, an attribute's value */
	ARG_XATTR,   /* the name of an extended attribute */
	ARG_OFFSET,  /* an offset in a file, bytes */
	ARG_LENGTH,  /* a length, bytes; at most OP_DATA_MAX if it is data */
	ARG_SIZE,    /* the size of a file, bytes */
	ARG_MODE,    /* permission bits, octal */
	ARG_NUMBER,  /* an id, a device number, seconds */
	ARG_FLAGS,   /* words from `words`, joined by commas */
	ARG_CHOICE,  /* one word from `words` */
};

/*
 * The needs and results of an operation at a path. Generation turns this into the operations that a
 * workload depends on.
 */
enum path_role {
	ROLE_NONE,
	ROLE_FILE,	/* an existing regular file */
	ROLE_DATA,	/* an existing regular file that is not empty */
	ROLE_MAKE,	/* a regular file; made by the operation if it does not exist */
	ROLE_OBJECT,	/* an existing file or directory */
	ROLE_NEW_FILE,	/* must not exist; a file afterwards */
	ROLE_NEW_OTHER, /* must not exist; neither file nor directory afterwards */
	ROLE_NEW_DIR,	/* must not exist; a directory afterwards */
	ROLE_GONE_FILE, /* an existing file; nothing afterwards */
	ROLE_GONE_DIR,	/* an existing empty directory; nothing afterwards */
	ROLE_FROM,	/* an existing file or directory that moves to the ROLE_TO after it */
	ROLE_TO,
	ROLE_LINK_OLD, /* an existing file that gets a second name, the ROLE_LINK_NEW after it */
	ROLE_LINK_NEW,
};

struct word {
	const char *name;
	unsigned value;
};

struct arg_def {
	enum arg_kind kind;
	const char *name; /* in usage lines and messages: "FILE", "OFFSET" */
	enum path_role role;
	const struct word *words; /* ARG_FLAGS, ARG_CHOICE; ends with a NULL name */
	uint64_t rare;		  /* ARG_FLAGS: bits that some file systems do not know */
	bool exclusive;		  /* ARG_FLAGS: at most one word */
	bool target;		  /* ARG_TEXT: the path that a symbolic link leads to */
	bool optional;		  /* may be left out; only the last arguments */
	uint64_t fallback;	  /* the value when left out */
};

enum {
	OP_ARGS_MAX = 5,
	OP_DATA_MAX = 64 << 20, /* bytes one operation may write or read */
	OP_PATH_MAX = 4096,	/* bytes of a path, the kernel's limit and one more to exceed it */
};
#define OP_OFFSET_MAX ((uint64_t)1 << 62)

enum op_flags {
	OP_WRITES = 1 << 0, /* puts recognisable content into a file; see content.h */
	OP_DATA = 1 << 1,   /* changes a file's data or size: fdatasync matters, ranges overlap */
	OP_MAKES_HANDLE = 1 << 2,
	OP_WHOLE_FS = 1 << 3,	  /* acts on the whole file system */
	OP_COMMAND = 1 << 4,	  /* runs a command, whose effect is unknown beforehand */
	OP_DIRECT = 1 << 5,	  /* bypasses the page cache, so it must be aligned */
	OP_MAPS = 1 << 6,	  /* acts through a mapping, not by one system call */
	OP_RANGES = 1 << 7,	  /* allocates, frees or moves a range, as op_falloc_words say */
	OP_COPIES = 1 << 8,	  /* copies data between files, byte by byte */
	OP_SHARES = 1 << 9,	  /* makes files share data */
	OP_XATTR = 1 << 10,	  /* gives an extended attribute a value */
	OP_LINKS = 1 << 11,	  /* adds to the link count of a file or directory */
	OP_REMOVES_DIR = 1 << 12, /* may remove a directory, which must be empty */
	OP_UNMOUNTS = 1 << 13,	  /* unmounts; its promise holds even if sync promises nothing */
	OP_OPTIONAL = 1 << 14,	  /* a file system, or its mounter, may lack it */
};

/* The part that survives a crash once the operation has returned. */
enum op_promise {
	OP_PROMISES_NOTHING,
	OP_PROMISES_OBJECT, /* the file or directory of the first argument: fsync */
	OP_PROMISES_DATA,   /* the data of that file, or that directory: fdatasync */
	OP_PROMISES_RANGE,  /* the bytes of its range: msync */
	OP_PROMISES_ALL,
};

struct op_def {
	const char *name;
	const char *help; /* sentences for the manual page */
	struct arg_def args[OP_ARGS_MAX + 1];
	unsigned flags;
	/* The promise unless a word says otherwise: see op_persists(). */
	enum op_promise promise;
	/* The operation with the same arguments that also makes the file; NULL: none. */
	const struct op_def *makes;
	/*
	 * Performs the operation. Returns what the system call returned (>= 0) or -errno. Paths
	 * and handles are resolved through exec.h, never directly.
	 */
	int64_t (*exec)(struct exec *x, const struct op *op);
};

/* The index of an operation in op_table, as a constant. */
#define OP_ID(name)  OP_ID_##name
#define OP_DEF(name) (&op_table[OP_ID(name)])

enum op_id {
#define OP(name, ...) OP_ID(name),
#include "workload/ops.def"
	OP_COUNT
};

/* An argument's value. The kind says which member is used. */
struct arg {
	const char *text; /* paths, handles, texts, attribute names */
	uint64_t num;	  /* everything else */
	bool is_handle;	  /* ARG_FILE: `text` names a handle */
	bool given;	  /* written, or left out and replaced by the fallback */
};

struct op {
	const struct op_def *def;
	bool setup;	     /* only prepares for a later operation */
	const char *handle;  /* the handle this operation makes, or NULL */
	const char *before;  /* comment lines and empty lines before it, verbatim, or NULL */
	const char *comment; /* the comment at the end of its line, with the '#', or NULL */
	struct arg args[OP_ARGS_MAX];
};

/* Every operation, in the order of ops.def; ends with a NULL name. */
extern const struct op_def op_table[OP_COUNT + 1];

static inline enum op_id op_id(const struct op_def *def)
{
	return (enum op_id)(def - op_table);
}

/* The operation of that name, as a user wrote it, or NULL. */
const struct op_def *op_find(const char *name, size_t len);
size_t op_count_args(const struct op_def *def);
/* Whether this operation makes a promise: fsync and its kin, a write with `sync`, msync. */
bool op_persists(const struct op *op);
/* True if the operation may have several parts, any of which may survive a crash. */
bool op_has_parts(const struct op *op);
/* The value of the argument that takes these words; 0 if there is none. */
uint64_t op_words(const struct op *op, const struct word *words);
/* Gives the first offset, and the end of the range that begins there; false if there is none. */
bool op_range(const struct op *op, uint64_t *from, uint64_t *to);

/* Flags and words that executing, printing and generating all need to know. */
enum write_flags { WRITE_SYNC = 1, WRITE_DSYNC = 2 };
enum mmap_flags { MMAP_NOSYNC = 1 };
enum shell_flags { SHELL_ATOMIC = 1 };
enum rename_words {
	RENAME_W_NOREPLACE = 1,
	RENAME_W_EXCHANGE = 2,
	RENAME_W_WHITEOUT = 4,
	RENAME_W_ALL = 7
};
extern const struct word op_falloc_words[];
extern const struct word rename_words[];
extern const struct word op_write_words[];
extern const struct word op_mmap_words[];

#endif
