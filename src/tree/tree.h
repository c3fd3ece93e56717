/* SPDX-License-Identifier: MIT */
/*
 * tree.h - a semantic state: what a user sees of a file system.
 *
 * A tree is a list of entries in order of path. A tree comes from a real directory (tree_walk),
 * from text (tree_parse), or is built in process (tree_add, then tree_finish). Two finished trees
 * are equal iff a user could see no difference, under the options: inode numbers, the order of
 * names in a directory and holes in a file do not count, but hard links do.
 *
 * An error of the walk is part of the state, not a failure of the walk: a checker must see an entry
 * that answers EIO after a crash.
 *
 * A tree owns everything that its entries point to, and frees it with the next tree_clear,
 * tree_walk, tree_parse or tree_release. One tree belongs to one thread.
 */
#ifndef TREE_TREE_H
#define TREE_TREE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "base/vec.h"

enum {
	TREE_DEPTH_MAX = 256,		/* directories below the root; each costs the walk an fd */
	TREE_ENTRIES_MAX = 1 << 20,	/* entries of one tree */
	TREE_CONTENT_LIMIT = 1 << 20,	/* bytes kept of a file if the options do not say */
	TREE_CONTENT_TOTAL = 256 << 20, /* bytes kept of all files; beyond that, only hashes */
	TREE_PAGE = 4096,		/* the unit of the content hash */
};

struct tree_opts {
	bool blocks;	/* allocated blocks count */
	bool times;	/* access and modification times count */
	bool dir_size;	/* sizes of directories count; their blocks too, if blocks do */
	bool dir_nlink; /* link counts of directories count */
	/* Names in the root that are not part of the state ("lost+found"); NULL-terminated. */
	const char *const *ignore;
	/* Files up to this size keep their bytes; 0: TREE_CONTENT_LIMIT. */
	uint64_t content_limit;
};

enum tree_type {
	TREE_UNKNOWN, /* stat failed */
	TREE_FILE,
	TREE_DIR,
	TREE_SYMLINK,
	TREE_FIFO,
	TREE_CHAR,
	TREE_BLOCK,
	TREE_SOCKET,
	TREE_TYPE_END
};

/* The step at which an entry could not be read, in the walk's order: those before succeeded. */
enum tree_step {
	TREE_STEP_NONE,
	TREE_STEP_STAT,	 /* nothing is known but the name */
	TREE_STEP_MOUNT, /* another file system is mounted here; only its type is known */
	TREE_STEP_LOOP,	 /* a directory that contains itself */
	TREE_STEP_OPEN,
	TREE_STEP_READ,
	TREE_STEP_READLINK,
	TREE_STEP_READDIR, /* the names before the error are in the tree */
	TREE_STEP_LISTXATTR,
	TREE_STEP_END
};

struct tree_time {
	int64_t sec;
	uint32_t nsec;
};

struct tree_xattr {
	const char *name;
	const void *value;
	size_t len;
};

struct tree_entry {
	const char *path; /* relative to the root, no slash at either end; "" is the root */
	enum tree_type type;
	uint32_t mode; /* permission bits, with set-id and sticky */
	uint32_t uid, gid;
	uint64_t nlink;
	uint64_t size;	 /* for files, symbolic links, and directories */
	uint64_t blocks; /* of 512 bytes */
	struct tree_time atime, mtime;
	uint32_t rdev_major, rdev_minor; /* TREE_CHAR and TREE_BLOCK */

	/*
	 * These tell hard links. tree_add takes (dev, inode), where inode 0 means a file with one
	 * name; tree_finish sets link: 0, or a number that the names of one file share, counted
	 * from 1 in order of their first name.
	 */
	uint64_t dev, inode;
	uint32_t link;

	struct hash128 hash; /* tree_content_hash() of a file */
	const void *content; /* `size` bytes of a file; NULL if not kept, or empty */
	const char *target;  /* the target of a symbolic link */

	const struct tree_xattr *xattrs; /* in order of name */
	size_t n_xattrs;

	int error;	     /* 0, or the errno of the failed step */
	enum tree_step step; /* the failed step */
	bool doubled;	     /* the directory lists the name more than once */
};

enum tree_field {
	TREE_FIELD_BLOCKS = 1 << 0,
	TREE_FIELD_TIMES = 1 << 1,
	TREE_FIELD_DIR_SIZE = 1 << 2,
	TREE_FIELD_DIR_NLINK = 1 << 3,
	TREE_FIELD_ALL = (1 << 4) - 1,
};

struct tree {
	struct vec_of(struct tree_entry) entries;
	/*
	 * The fields that this tree does not know (enum tree_field), which are not compared,
	 * whatever the options.
	 */
	unsigned lacks;
	bool finished;
	size_t kept; /* bytes of content in the arena */
	struct arena arena;
	unsigned char *scratch; /* the walk's buffer, kept for the next walk */
};

#define TREE_INIT                                                                                  \
	{                                                                                          \
		0                                                                                  \
	}

void tree_release(struct tree *t);
#define auto_tree __attribute__((cleanup(tree_release))) struct tree

/* Empties a tree and keeps its memory. */
void tree_clear(struct tree *t);

/*
 * Adds a copy of `e` and all it points to; only path and type must be set. If `e` has content, the
 * hash is computed from that, and the content is kept if the limits allow; without content, `hash`
 * is copied. `link` is ignored.
 */
void tree_add(struct tree *t, const struct tree_entry *e, const struct tree_opts *opts);
/* Sorts the entries, numbers hard links, and merges names that were added twice (as doubled). */
void tree_finish(struct tree *t);

/* The entry of a path in a finished tree, or NULL. */
const struct tree_entry *tree_find(const struct tree *t, const char *path);
/* The attribute of that name, or NULL. */
const struct tree_xattr *tree_find_xattr(const struct tree_entry *e, const char *name);
/* The type in the mode of stat(2), and the bits of a type there. */
enum tree_type tree_type_of(unsigned mode);
unsigned tree_type_mode(enum tree_type type);
/* Compares paths; '/' sorts before any other byte, so a directory precedes its entries. */
int tree_path_cmp(const char *a, const char *b);

/*
 * The hash of a file's bytes, as if zeros followed without end: a sum over its pages, to which
 * pages of zeros add 0. So holes cost no time, and code that changes a page can update the sum:
 * subtract the old tree_page_hash, add the new one. `len` is at most TREE_PAGE.
 */
struct hash128 tree_page_hash(uint64_t index, const void *data, size_t len);
struct hash128 tree_content_hash(const void *data, size_t len);

/* The hash of all fields that count under the options. */
struct hash128 tree_hash(const struct tree *t, const struct tree_opts *opts);
/* Compares the fields that count under the options and that both trees know. */
bool tree_equal(const struct tree *a, const struct tree *b, const struct tree_opts *opts);

/*
 * Walks the directory `dirfd` (O_PATH will do) into `out`, which must be initialised. Never
 * follows a symbolic link, never leaves the directory, never enters another mount. Fails only if
 * the limits are exceeded or this process lacks descriptors or memory; then `out` is empty.
 *
 * Extended attributes that the host's security policy puts on every file (security.selinux and the
 * like) are not part of the state. The attributes of symbolic links and special files can be seen
 * only where /proc is mounted.
 */
int tree_walk(int dirfd, const struct tree_opts *opts, struct tree *out, struct err *err)
	must_check;

/*
 * Canonical text, one line an entry (text.c has the format). Fields that the options leave out, or
 * the tree lacks, are not printed. TREE_TEXT_CONTENT prints all content that was kept, not only
 * short content, so that a tree can be passed from one process to another.
 */
enum tree_text_flags { TREE_TEXT_CONTENT = 1 << 0 };
void tree_print(const struct tree *t, const struct tree_opts *opts, unsigned flags,
		struct strbuf *out);
/* Parses that text. `out` must be initialised; fields that the text lacks are in `lacks`. */
int tree_parse(const char *text, size_t len, struct tree *out, struct err *err) must_check;

enum tree_diff_kind {
	TREE_DIFF_MISSING,
	TREE_DIFF_EXTRA,
	TREE_DIFF_TYPE, /* then nothing else is compared but whether it can be read */
	TREE_DIFF_MODE,
	TREE_DIFF_OWNER,
	TREE_DIFF_NLINK,
	TREE_DIFF_LINKS, /* the hard links */
	TREE_DIFF_SIZE,
	TREE_DIFF_CONTENT,
	TREE_DIFF_TARGET,
	TREE_DIFF_RDEV,
	TREE_DIFF_XATTR_MISSING,
	TREE_DIFF_XATTR_EXTRA,
	TREE_DIFF_XATTR_VALUE,
	TREE_DIFF_BLOCKS,
	TREE_DIFF_TIMES,
	TREE_DIFF_UNREADABLE, /* the entry, or a directory above; or it is readable again */
	TREE_DIFF_DOUBLED,
	TREE_DIFF_KIND_END
};

struct tree_difference {
	enum tree_diff_kind kind;
	const char *path;
	const struct tree_entry *expected; /* NULL if not there */
	const struct tree_entry *seen;	   /* NULL if not there */
	const char *xattr;		   /* the name, for the three kinds about attributes */
	uint64_t offset;   /* TREE_DIFF_CONTENT: the first byte, if content was kept */
	const char *words; /* "B/bar: size is 0, was 4096" */
};

/* Differences in order of path, then kind, then attribute name. Points into both trees. */
struct tree_diff {
	struct vec_of(struct tree_difference) list;
	struct arena arena;
};

void tree_diff_release(struct tree_diff *d);
#define auto_tree_diff __attribute__((cleanup(tree_diff_release))) struct tree_diff

/* Replaces the content of `out`. The list is empty iff tree_equal(). */
void tree_diff(const struct tree *expected, const struct tree *seen, const struct tree_opts *opts,
	       struct tree_diff *out);

/* "missing", "xattr-value": for machines. */
const char *tree_diff_kind_name(enum tree_diff_kind kind);

#endif
