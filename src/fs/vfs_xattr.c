/* SPDX-License-Identifier: MIT */
/*
 * vfs_xattr.c - reads and changes extended attributes: the namespaces user, trusted and security,
 * and ACLs. The order of the checks is that of vfs_setxattr() and xattr_permission() in fs/xattr.c,
 * and of vfs_set_acl().
 */
#include <endian.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "fs/acl.h"
#include "fs/reffs_impl.h"
#include "fs/perm.h"

enum { NAME_LIMIT = 255, SIZE_LIMIT = 65536, LIST_LIMIT = 65536 };

#define CAPABILITY "security.capability"

static bool has_prefix(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_acl(const char *name)
{
	return streq(name, ACL_ACCESS) || streq(name, ACL_DEFAULT);
}

/* Checks the caller's right; check_space() finds out whether there are such attributes. */
static int may_use(const struct reffs_cred *c, const struct reffs_inode *i, const char *name,
		   bool writes)
{
	if (has_prefix(name, "security.") || has_prefix(name, "system."))
		return 0;
	if (has_prefix(name, "trusted.")) {
		if (perm_capable(c, REFFS_CAP_SYS_ADMIN))
			return 0;
		return writes ? -EPERM : -ENODATA;
	}
	if (has_prefix(name, "user.")) {
		if (i->type != TREE_FILE && i->type != TREE_DIR)
			return writes ? -EPERM : -ENODATA;
		if (i->type == TREE_DIR && (i->mode & S_ISVTX) && writes && !perm_owns(c, i))
			return -EPERM;
	}
	return perm_check(c, i, writes ? PERM_W : PERM_R);
}

/* Makes the checks of the security modules that every kernel has. */
static int may_write_security(const struct reffs_cred *c, const char *name)
{
	if (!has_prefix(name, "security."))
		return 0;
	unsigned cap = streq(name, CAPABILITY) ? REFFS_CAP_SETFCAP : REFFS_CAP_SYS_ADMIN;
	return perm_capable(c, cap) ? 0 : -EPERM;
}

/* Checks that the name is in a known namespace. */
static int check_space(const char *name)
{
	static const char *const spaces[] = { "user.", "trusted.", "security." };

	for (size_t s = 0; s < ARRAY_SIZE(spaces); s++)
		if (has_prefix(name, spaces[s]))
			return name[strlen(spaces[s])] ? 0 : -EINVAL;
	return -EOPNOTSUPP;
}

/* True for valid capabilities of a file: revision 2 or 3, and the size of that revision. */
static bool valid_capability(const void *value, size_t len)
{
	uint32_t magic;

	if (len < sizeof(magic))
		return false;
	memcpy(&magic, value, sizeof(magic));
	magic = le32toh(magic) & 0xff000000;
	return (len == 20 && magic == 0x02000000) || (len == 24 && magic == 0x03000000);
}

static void put(struct reffs *r, uint64_t ino, const char *name, const void *value, size_t len)
{
	struct reffs_inode *i = inode_edit(r, ino);
	struct xattrs *new = xattrs_with(i->xattrs, name, value, len);

	xattrs_unref(i->xattrs);
	i->xattrs = new;
	i->ctime = r->now;
	inode_commit(r, i);
}

/* Removes capabilities, as a write does; an empty value counts as none. */
void vfs_drop_capabilities(struct reffs_inode *i)
{
	const struct blob *b = i->xattrs ? xattrs_find(i->xattrs, CAPABILITY) : NULL;

	if (!b || b->len == sizeof(CAPABILITY))
		return;
	struct xattrs *new = xattrs_with(i->xattrs, CAPABILITY, NULL, 0);
	xattrs_unref(i->xattrs);
	i->xattrs = new;
}

static int set_acl(struct reffs *r, const struct reffs_cred *c, uint64_t ino, const char *name,
		   const void *value, size_t len)
{
	const struct reffs_inode *found = inode_get(r, ino);
	bool access = streq(name, ACL_ACCESS);
	auto_acl acl = { 0 };
	int rc = len ? acl_parse(value, len, &acl) : 0;

	if (rc)
		return rc;
	if (found->type == TREE_SYMLINK)
		return -EOPNOTSUPP;
	if (!access && found->type != TREE_DIR)
		return acl.n ? -EACCES : 0;
	if (!perm_owns(c, found))
		return -EPERM;
	rc = acl.n ? acl_valid(&acl) : 0;
	if (rc)
		return rc;
	if (!acl.n && !xattrs_find(found->xattrs, name))
		return 0;
	uint32_t mode = found->mode;
	bool had = xattrs_find(found->xattrs, name);
	struct reffs_inode *i = inode_edit(r, ino);
	bool keep = acl.n;
	if (acl.n && access) {
		keep = acl_mode(&acl, &i->mode);
		if (!perm_may_setgid(c, i->gid))
			i->mode &= ~(uint32_t)S_ISGID;
	}
	acl_set(i, name, keep ? &acl : NULL);
	if (keep || had || i->mode != mode)
		i->ctime = r->now;
	inode_commit(r, i);
	return 0;
}

int vfs_setxattr(struct reffs *r, const struct reffs_cred *c, uint64_t ino, const char *name,
		 const void *value, size_t len, int flags)
{
	const struct reffs_inode *i = inode_find(r, ino);
	int rc;

	if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	if (!*name || strlen(name) > NAME_LIMIT)
		return -ERANGE;
	if (len > SIZE_LIMIT)
		return -E2BIG;
	if (!i)
		return -ESTALE;
	if (is_acl(name))
		return set_acl(r, c, ino, name, value, len);
	bool caps = streq(name, CAPABILITY);
	if (caps && len && !valid_capability(value, len))
		return -EINVAL;
	rc = may_use(c, i, name, true);
	/*
	 * The kernel does not check who sets empty capabilities: any user who can look up the file
	 * may do it.
	 */
	if (!rc && (!caps || len))
		rc = may_write_security(c, name);
	if (!rc)
		rc = check_space(name);
	if (rc)
		return rc;
	bool there = xattrs_find(i->xattrs, name);
	if (there && (flags & XATTR_CREATE))
		return -EEXIST;
	if (!there && (flags & XATTR_REPLACE))
		return -ENODATA;
	put(r, ino, name, len ? value : "", len);
	return 0;
}

int vfs_removexattr(struct reffs *r, const struct reffs_cred *c, uint64_t ino, const char *name)
{
	const struct reffs_inode *i = inode_find(r, ino);
	int rc;

	if (!*name || strlen(name) > NAME_LIMIT)
		return -ERANGE;
	if (!i)
		return -ESTALE;
	if (is_acl(name))
		return set_acl(r, c, ino, name, NULL, 0);
	rc = may_use(c, i, name, true);
	if (!rc)
		rc = may_write_security(c, name);
	if (!rc)
		rc = check_space(name);
	if (rc)
		return rc;
	if (!xattrs_find(i->xattrs, name))
		return -ENODATA;
	put(r, ino, name, NULL, 0);
	return 0;
}

int vfs_getxattr(struct reffs *r, const struct reffs_cred *c, uint64_t ino, const char *name,
		 const void **value, size_t *len)
{
	const struct reffs_inode *i = inode_find(r, ino);
	size_t name_size = strlen(name) + 1;
	int rc;

	if (!*name || name_size > NAME_LIMIT + 1)
		return -ERANGE;
	if (!i)
		return -ESTALE;
	if (is_acl(name)) {
		rc = i->type == TREE_SYMLINK ? -EOPNOTSUPP : 0;
	} else {
		rc = may_use(c, i, name, false);
		if (!rc)
			rc = check_space(name);
	}
	if (rc)
		return rc;
	const struct blob *b = xattrs_find(i->xattrs, name);
	if (!b)
		return -ENODATA;
	*value = b->data + name_size;
	*len = b->len - name_size;
	return 0;
}

int64_t vfs_listxattr(struct reffs *r, const struct reffs_cred *c, uint64_t ino, char *list,
		      size_t size)
{
	const struct reffs_inode *i = inode_find(r, ino);
	size_t len = 0;

	if (!i)
		return -ESTALE;
	for (size_t x = 0; i->xattrs && x < i->xattrs->n; x++) {
		const char *name = i->xattrs->v[x]->data;
		size_t name_size = strlen(name) + 1;

		if (has_prefix(name, "trusted.") && !perm_capable(c, REFFS_CAP_SYS_ADMIN))
			continue;
		if (size && len + name_size > size)
			return -ERANGE;
		if (size)
			memcpy(list + len, name, name_size);
		len += name_size;
	}
	return len > LIST_LIMIT ? -E2BIG : (int64_t)len;
}
