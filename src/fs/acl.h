/* SPDX-License-Identifier: MIT */
/*
 * acl.h - POSIX access control lists, which are extended attributes with a meaning.
 *
 * The value of system.posix_acl_access and system.posix_acl_default, as the kernel takes it from
 * user space, little-endian:
 *
 *	0   4  version, 2
 *	4      entries of 8 bytes
 *	0   2  tag: 1 owner, 2 user, 4 owning group, 8 group, 0x10 mask, 0x20 others
 *	2   2  permissions
 *	4   4  id of a user or group, else all ones
 *
 * A list that says no more than the mode is not kept; else the mode's group bits are its mask.
 */
#ifndef FS_ACL_H
#define FS_ACL_H

#include "fs/node.h"
#include "fs/vfs.h"

#define ACL_ACCESS  "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"

enum { ACL_ENTRIES_MAX = 8192 }; /* more do not fit into the value of an attribute */

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

/* Reads a value that is not empty. No entries at all is no list. 0 or -errno. */
int acl_parse(const void *value, size_t len, struct acl *out);
/* Whether entries and their order are right: 0 or -EINVAL. */
int acl_valid(const struct acl *acl);
/* The mode that a list stands for. Returns whether the list says more than that. */
bool acl_mode(const struct acl *acl, uint32_t *mode);

/* Asks the list of an inode about `want`; -ENODATA if there is none. */
int acl_check(const struct reffs_inode *i, const struct reffs_cred *c, unsigned want);

/*
 * The functions below change an inode that is the caller's to change. acl_set() replaces a list,
 * NULL is none; acl_chmod() follows a change of the mode; acl_inherit() gives a new inode what its
 * directory has for it, and false if that is nothing and the umask counts.
 */
void acl_set(struct reffs_inode *i, const char *name, const struct acl *acl);
void acl_chmod(struct reffs_inode *i);
bool acl_inherit(struct reffs_inode *i, const struct reffs_inode *dir);

#endif
