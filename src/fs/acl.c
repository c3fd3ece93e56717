/* SPDX-License-Identifier: MIT */
/* acl.c - parses, checks and applies access control lists. */
#include "fs/acl.h"

#include <endian.h>
#include <errno.h>

#include "fs/perm.h"

enum { OWNER = 1, USER = 2, GROUP_OWNER = 4, GROUP = 8, MASK = 0x10, OTHERS = 0x20 };
enum { HEAD = 4, ENTRY = 8, VERSION = 2 };

void acl_release(struct acl *acl)
{
	free(acl->v);
	*acl = (struct acl){ 0 };
}

static uint32_t get32(const unsigned char *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof(n));
	return le32toh(n);
}

static bool has_id(uint16_t tag)
{
	return tag == USER || tag == GROUP;
}

static int parse_entry(const unsigned char *p, struct acl_entry *out)
{
	uint32_t head = get32(p);

	*out = (struct acl_entry){ (uint16_t)head, (uint16_t)(head >> 16), UINT32_MAX };
	switch (out->tag) {
	case USER:
	case GROUP:
		out->id = get32(p + 4);
		return out->id == UINT32_MAX ? -EINVAL : 0;
	case OWNER:
	case GROUP_OWNER:
	case MASK:
	case OTHERS:
		return 0;
	}
	return -EINVAL;
}

int acl_parse(const void *value, size_t len, struct acl *out)
{
	const unsigned char *p = value;

	*out = (struct acl){ 0 };
	if (len < HEAD)
		return -EINVAL;
	if (get32(p) != VERSION)
		return -EOPNOTSUPP;
	if ((len - HEAD) % ENTRY || (len - HEAD) / ENTRY > ACL_ENTRIES_MAX)
		return -EINVAL;
	out->n = (len - HEAD) / ENTRY;
	if (!out->n)
		return 0;
	out->v = xcalloc(out->n, sizeof(*out->v));
	for (size_t i = 0; i < out->n; i++) {
		int rc = parse_entry(p + HEAD + i * ENTRY, &out->v[i]);

		if (rc) {
			acl_release(out);
			return rc;
		}
	}
	return 0;
}

int acl_valid(const struct acl *acl)
{
	uint16_t next = OWNER; /* allowed tags: users after the owner, groups after theirs */
	bool needs_mask = false;

	vec_each(e, acl) {
		bool fits = e->tag == next;

		if (e->perm & ~7)
			return -EINVAL;
		if (e->tag == OWNER) {
			next = USER;
		} else if (e->tag == USER || e->tag == GROUP) {
			needs_mask = true;
		} else if (e->tag == GROUP_OWNER) {
			fits = next == USER;
			next = GROUP;
		} else if (e->tag == MASK) {
			fits = next == GROUP;
			next = OTHERS;
		} else {
			fits = next == OTHERS || (next == GROUP && !needs_mask);
			next = 0;
		}
		if (!fits)
			return -EINVAL;
	}
	return next ? -EINVAL : 0;
}

bool acl_mode(const struct acl *acl, uint32_t *mode)
{
	uint32_t bits = 0;
	bool more = false;

	vec_each(e, acl) {
		if (e->tag == OWNER)
			bits |= (uint32_t)e->perm << 6;
		else if (e->tag == GROUP_OWNER)
			bits |= (uint32_t)e->perm << 3;
		else if (e->tag == OTHERS)
			bits |= e->perm;
		else if (e->tag == MASK)
			bits = (bits & ~(uint32_t)070) | (uint32_t)e->perm << 3;
		more |= has_id(e->tag) || e->tag == MASK;
	}
	*mode = (*mode & ~(uint32_t)0777) | bits;
	return more;
}

/* Loads the list of an inode; false if it has none. */
static bool load(const struct reffs_inode *i, const char *name, struct acl *out)
{
	const struct blob *b = xattrs_find(i->xattrs, name);
	size_t name_size = strlen(name) + 1;

	*out = (struct acl){ 0 };
	return b && !acl_parse(b->data + name_size, b->len - name_size, out) && out->n;
}

static struct acl_entry *find_entry(const struct acl *acl, uint16_t tag)
{
	return vec_find(i, acl, acl->v[i].tag == tag);
}

/*
 * Returns the entry that decides: the user's own, else that of a group that grants the right, else
 * the others'. NULL if the user is in a listed group and no group grants the right.
 */
static const struct acl_entry *deciding(const struct acl *acl, const struct reffs_inode *i,
					const struct reffs_cred *c, unsigned want)
{
	bool member = false;

	vec_each(e, acl) {
		uint32_t gid = e->tag == GROUP ? e->id : i->gid;

		if (e->tag == OWNER && c->uid == i->uid)
			return e;
		if (e->tag == USER && e->id == c->uid)
			return e;
		if ((e->tag == GROUP || e->tag == GROUP_OWNER) && perm_in_group(c, gid)) {
			member = true;
			if (!(want & ~(unsigned)e->perm))
				return e;
		}
		if (e->tag == OTHERS && !member)
			return e;
	}
	return NULL;
}

int acl_check(const struct reffs_inode *i, const struct reffs_cred *c, unsigned want)
{
	auto_acl acl;

	if (!load(i, ACL_ACCESS, &acl))
		return -ENODATA;
	const struct acl_entry *e = deciding(&acl, i, c, want);
	if (!e)
		return -EACCES;
	unsigned granted = e->perm;
	const struct acl_entry *mask = find_entry(&acl, MASK);
	if (mask && e->tag != OWNER && e->tag != OTHERS)
		granted &= mask->perm;
	return want & ~granted ? -EACCES : 0;
}

void acl_set(struct reffs_inode *i, const char *name, const struct acl *acl)
{
	size_t len = acl ? HEAD + acl->n * ENTRY : 0;
	auto_free unsigned char *value = acl ? xmalloc(len) : NULL;
	uint32_t word = htole32(VERSION);

	if (!acl && !xattrs_find(i->xattrs, name))
		return;
	if (acl)
		memcpy(value, &word, sizeof(word));
	for (size_t n = 0; acl && n < acl->n; n++) {
		const struct acl_entry *e = &acl->v[n];

		word = htole32((uint32_t)e->tag | (uint32_t)e->perm << 16);
		memcpy(value + HEAD + n * ENTRY, &word, sizeof(word));
		word = htole32(has_id(e->tag) ? e->id : UINT32_MAX);
		memcpy(value + HEAD + n * ENTRY + 4, &word, sizeof(word));
	}
	struct xattrs *new = xattrs_with(i->xattrs, name, value, len);
	xattrs_unref(i->xattrs);
	i->xattrs = new;
}

void acl_chmod(struct reffs_inode *i)
{
	auto_acl acl = { 0 };

	if (!i->xattrs || i->type == TREE_SYMLINK || !load(i, ACL_ACCESS, &acl))
		return;
	struct acl_entry *mask = find_entry(&acl, MASK);
	struct acl_entry *group = mask ? mask : find_entry(&acl, GROUP_OWNER);
	find_entry(&acl, OWNER)->perm = i->mode >> 6 & 7;
	group->perm = i->mode >> 3 & 7;
	find_entry(&acl, OTHERS)->perm = i->mode & 7;
	acl_set(i, ACL_ACCESS, &acl);
}

bool acl_inherit(struct reffs_inode *i, const struct reffs_inode *dir)
{
	auto_acl acl = { 0 };

	if (!dir->xattrs || i->type == TREE_SYMLINK || !load(dir, ACL_DEFAULT, &acl))
		return false;
	if (i->type == TREE_DIR)
		acl_set(i, ACL_DEFAULT, &acl);
	/* A permission must be in both, the mode asked for and the directory's list. */
	struct acl_entry *mask = find_entry(&acl, MASK);
	struct acl_entry *group = mask ? mask : find_entry(&acl, GROUP_OWNER);
	find_entry(&acl, OWNER)->perm &= i->mode >> 6 & 7;
	group->perm &= i->mode >> 3 & 7;
	find_entry(&acl, OTHERS)->perm &= i->mode & 7;
	if (acl_mode(&acl, &i->mode))
		acl_set(i, ACL_ACCESS, &acl);
	return true;
}
