/* SPDX-License-Identifier: MIT */
/*
 * acl.h - POSIX access control lists, which are kept as extended attributes.
 *
 * The form of system.posix_acl_access and system.posix_acl_default in which user space passes them
 * to the kernel, little-endian:
 *
 *	0   4  version, 2
 *	4      entries of 8 bytes
 *	0   2  tag: 1 owner, 2 user, 4 owning group, 8 group, 0x10 mask, 0x20 others
 *	2   2  permissions
 *	4   4  id of a user or group, else all ones
 *
 * A list that is equivalent to a mode is not kept; for others, the mode's group bits are the mask.
 */
#ifndef FS_ACL_H
#define FS_ACL_H

#include "fs/node.h"
#include "fs/vfs.h"

#define ACL_ACCESS  "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"

enum { ACL_ENTRIES_MAX = 8192 }; /* the value of an attribute has no room for more */

struct acl_entry {
	uint16_t tag, perm;
	uint32_t id;
};

struct acl {
	size_t n;
	struct acl_entry *v; /* freed by acl_release() */
};

void acl_release(struct acl *acl);
#define auto_acl __attribute__((cleanup(acl_release))) struct acl

/* Reads a value that is not empty; without entries, the list is empty. Returns 0 or -errno. */
int acl_parse(const void *value, size_t len, struct acl *out);
/* Checks the entries and their order. Returns 0 or -EINVAL. */
int acl_valid(const struct acl *acl);
/* Gives the mode that a list stands for. Returns true if the list says more than the mode. */
bool acl_mode(const struct acl *acl, uint32_t *mode);

/* Checks `want` against the list of an inode; -ENODATA if there is none. */
int acl_check(const struct reffs_inode *i, const struct reffs_cred *c, unsigned want);

/*
 * The functions below change an inode that the caller may change. acl_set() replaces a list, or
 * removes it if `acl` is NULL; acl_chmod() follows a change of the mode; acl_inherit() gives a new
 * inode the default list of its directory, and returns false if there is none and the umask counts.
 */
void acl_set(struct reffs_inode *i, const char *name, const struct acl *acl);
void acl_chmod(struct reffs_inode *i);
bool acl_inherit(struct reffs_inode *i, const struct reffs_inode *dir);

#endif
