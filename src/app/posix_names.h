/* SPDX-License-Identifier: MIT */
/*
 * posix_names.h - which path an inode has at a moment of a trace, as its events tell.
 *
 * A file is one life of an inode: a number that is given out again after the file was removed is
 * another file.
 */
#ifndef APP_POSIX_NAMES_H
#define APP_POSIX_NAMES_H

#include "base/arena.h"
#include "base/vec.h"

#define POSIX_NO_FILE UINT32_MAX

enum {
	POSIX_ROOT_INO = 1,
	POSIX_PATH_MAX = 4096, /* longer paths are cut at the front */
	POSIX_DEPTH_MAX = 128, /* directories of a path */
	POSIX_LINKS_KEPT = 64, /* names of one file that are remembered one by one */
};

struct posix_name {
	uint32_t parent;
	const char *name;
};

struct posix_file {
	uint64_t ino;
	struct posix_name *names; /* at most POSIX_LINKS_KEPT */
	size_t n_kept;
	uint64_t links; /* names it has, as far as is known */
	bool named;	/* the file had a name at some time */
	bool gone;	/* the file lost its last name */
	bool is_dir;
	bool visiting;		/* its path is being made */
	struct posix_name last; /* by which it is called */
	const char *path;	/* made at `generation`; NULL: never */
	const char *first_path; /* the first that it had */
	uint64_t generation;
};

struct posix_node; /* of the table */

struct posix_names {
	struct vec_of(struct posix_file) files; /* 0 is the root */
	struct vec_of(struct posix_node) nodes;
	uint32_t *slots;
	size_t n_slots;	     /* a power of two, or 0 */
	uint64_t generation; /* how often directories got other paths */
	bool root_known;     /* an event named it, or it was taken to be the first directory */
	bool root_guessed;   /* the latter */
	struct arena arena;
};

struct posix_node {
	uint64_t key;	  /* an inode, a directory's index, or TEXT */
	const char *name; /* NULL: an inode */
	uint32_t file;
};

void posix_names_init(struct posix_names *n);
void posix_names_release(struct posix_names *n);

/* The file that has this inode number now; one without a name if there was none. 0 has none. */
uint32_t posix_names_file(struct posix_names *n, uint64_t ino);
/* The root has this number, and not POSIX_ROOT_INO. */
void posix_names_root(struct posix_names *n, uint64_t ino);
/* A new file, whatever had the number before. */
uint32_t posix_names_new(struct posix_names *n, uint64_t ino);
/* The file under this name in a directory, as far as is known; or POSIX_NO_FILE. */
uint32_t posix_names_entry(const struct posix_names *n, uint32_t dir, const char *name);

void posix_names_link(struct posix_names *n, uint32_t file, uint32_t dir, const char *name);
/* Whether that was its last name. */
bool posix_names_unlink(struct posix_names *n, uint32_t file, uint32_t dir, const char *name);

/* As it is now; kept until the names are released. */
const char *posix_names_path(struct posix_names *n, uint32_t file);
const char *posix_names_path_in(struct posix_names *n, uint32_t dir, const char *name);
/* The same string for the same text. */
const char *posix_names_text(struct posix_names *n, const char *text, size_t len);

#endif
