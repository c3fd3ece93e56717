/* SPDX-License-Identifier: MIT */
/*
 * posix_names.h - finds the path of an inode at a moment of a trace, from its events.
 *
 * A file is one life of an inode: a number that is used again after the file was removed is another
 * file.
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
	POSIX_LINKS_KEPT = 64, /* names of one file that are remembered */
};

struct posix_name {
	uint32_t parent;
	const char *name;
};

struct posix_file {
	uint64_t ino;
	struct posix_name *names; /* at most POSIX_LINKS_KEPT */
	size_t n_kept;
	uint64_t links; /* the number of its names, as far as known */
	bool named;	/* the file had a name at some time */
	bool gone;	/* the file lost its last name */
	bool is_dir;
	bool visiting;		/* its path is being made */
	struct posix_name last; /* its current name */
	const char *path;	/* made at `generation`; NULL: not made */
	const char *first_path; /* its first path */
	uint64_t generation;
};

struct posix_node; /* a node of the table */

struct posix_names {
	struct vec_of(struct posix_file) files; /* 0 is the root */
	struct vec_of(struct posix_node) nodes;
	uint32_t *slots;
	size_t n_slots;	     /* a power of two, or 0 */
	uint64_t generation; /* the number of times that directories got other paths */
	bool root_known;     /* an event named it, or it was guessed: the first directory */
	bool root_guessed;   /* the root was guessed */
	struct arena arena;
};

struct posix_node {
	uint64_t key;	  /* an inode, a directory's index, or TEXT */
	const char *name; /* NULL: an inode */
	uint32_t file;
};

void posix_names_init(struct posix_names *n);
void posix_names_release(struct posix_names *n);

/* Returns the present file of an inode number, made without a name if new. Number 0 has none. */
uint32_t posix_names_file(struct posix_names *n, uint64_t ino);
/* Sets the root's inode number, if it is not POSIX_ROOT_INO. */
void posix_names_root(struct posix_names *n, uint64_t ino);
/* Adds a new file with a number, which another file may have had. */
uint32_t posix_names_new(struct posix_names *n, uint64_t ino);
/* Returns the known file of a name in a directory; or POSIX_NO_FILE. */
uint32_t posix_names_entry(const struct posix_names *n, uint32_t dir, const char *name);

void posix_names_link(struct posix_names *n, uint32_t file, uint32_t dir, const char *name);
/* Removes a name; true if it was the file's last one. */
bool posix_names_unlink(struct posix_names *n, uint32_t file, uint32_t dir, const char *name);

/* Return the present path; valid until the names are released. */
const char *posix_names_path(struct posix_names *n, uint32_t file);
const char *posix_names_path_in(struct posix_names *n, uint32_t dir, const char *name);
/* Returns one string for equal texts. */
const char *posix_names_text(struct posix_names *n, const char *text, size_t len);

#endif
