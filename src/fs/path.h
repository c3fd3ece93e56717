/* SPDX-License-Identifier: MIT */
/*
 * path.h - finds the inode of a path, as openat2(2) with RESOLVE_BENEATH: ".." above the root and
 * absolute links are -EXDEV, after 40 links comes -ELOOP.
 */
#ifndef FS_PATH_H
#define FS_PATH_H

#include "fs/reffs_impl.h"

enum { PATH_LEN_MAX = 4096, PATH_LINKS_MAX = 40 };

enum last_type { LAST_NORMAL, LAST_DOT, LAST_DOTDOT };

/* A walk along a path, as far as the directory of its last component. */
struct path_walk {
	const struct reffs *r;
	const struct reffs_cred *c;
	uint64_t dir;	  /* of the last component */
	const char *last; /* the last component; the end or slashes follow */
	size_t last_len;
	enum last_type last_type;
	bool slashes;			   /* the path ends with a slash */
	const char *stack[PATH_LINKS_MAX]; /* the rest to walk after a link in the middle */
	unsigned depth;
	unsigned links;
};

/* Walks to the last component of `path`. Returns 0 or -errno. */
int path_walk_begin(struct path_walk *w, const struct reffs *r, const struct reffs_cred *c,
		    const char *path);
/* Follows a link that is the last component: walks to the last component of its target. */
int path_walk_follow(struct path_walk *w, const struct reffs_inode *link);
/* Looks up the last component: *ino gets its inode, or 0 if there is none. Returns 0 or -errno. */
int path_walk_last(struct path_walk *w, uint64_t *ino);

/* As exec_open_parent(): gives the directory of the last component, and that component. */
int path_parent(struct reffs *r, const struct reffs_cred *c, const char *path,
		struct entry_place *out);

#endif
