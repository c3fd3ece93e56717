/* SPDX-License-Identifier: MIT */
/*
 * forget_undo.c - undoes one operation on names or attributes, and encodes such an undo.
 *
 * U1: undoing an operation that was never done, because the server was killed between the journal
 *     and the operation, changes nothing.
 * U2: operations are undone in reverse order; so each finds the names that it left. Directories are
 *     found by number, because an operation on a directory above may be durable.
 *
 * On disk, with all numbers in little endian:
 *
 *	byte     kind (enum pending_kind)
 *	byte     1: is a directory, 2: something is in the stash, 4: there was a value,
 *	         8: a directory that was removed or replaced is made anew, as the rest says
 *	8 bytes  seq, ino, other, dir, dir2; seconds of atime and mtime
 *	4 bytes  mode, uid, gid; nanoseconds of atime and mtime
 *	4 bytes + bytes   name, second name, attribute's name, its value
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/io.h"
#include "core/bytes.h"
#include "forget/forget_impl.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE (1 << 1)
#endif

enum { UNDO_DIR = 1, UNDO_STASHED = 2, UNDO_VALUE = 4, UNDO_REMADE = 8 };

enum { UNDO_FIXED = 2 + 7 * 8 + 5 * 4, UNDO_TEXT_MAX = 1 << 20 };

void forget_stash_name(uint64_t seq, char out[32])
{
	snprintf(out, 32, "e%llu", llu(seq));
}

/* ---- undoing ---- */

static bool exists(int dir, const char *name)
{
	struct stat st;

	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW);
}

static int unmake(const struct undo *u, struct undo_place *p, int dir)
{
	int rc = result(unlinkat(dir, u->name[0], u->is_dir ? AT_REMOVEDIR : 0));

	if (rc == -ENOENT)
		return 0; /* the file was never made (U1) */
	if (!rc)
		p->named(p, u->ino, u->dir[0], u->name[0], false);
	return rc;
}

/*
 * Makes a removed directory anew. A directory that exists was never removed (U1), or was made anew
 * by a process that was killed then.
 */
static int make_anew(const struct undo *u, struct undo_place *p, int dir, int slot, uint64_t ino)
{
	auto_fd fd = forget_remake(u, dir, u->name[slot]);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		return -errno;
	p->made_anew = st.st_ino;
	if (p->remade)
		p->remade(p, ino, fd, u->dir[slot], u->name[slot]);
	else
		p->named(p, ino, u->dir[slot], u->name[slot], true);
	return 0;
}

static int bring_back(const struct undo *u, struct undo_place *p, int dir, int slot, uint64_t ino)
{
	char stashed[32];
	int rc;

	if (u->remade)
		return make_anew(u, p, dir, slot, ino);
	forget_stash_name(u->seq, stashed);
	if (!exists(p->stash, stashed))
		return 0; /* the file was never removed (U1) */
	rc = result(renameat(p->stash, stashed, dir, u->name[slot]));
	if (!rc)
		p->named(p, ino, u->dir[slot], u->name[slot], true);
	return rc;
}

static int rename_back(const struct undo *u, struct undo_place *p, int dir, int dir2)
{
	int rc = 0;

	/* The rename left no name there; so if there is one, the rename was never done (U1). */
	if (!exists(dir, u->name[0])) {
		rc = result(renameat(dir2, u->name[1], dir, u->name[0]));
		if (!rc) {
			p->named(p, u->ino, u->dir[1], u->name[1], false);
			p->named(p, u->ino, u->dir[0], u->name[0], true);
		}
	}
	return rc || !(u->stashed || u->remade) ? rc : bring_back(u, p, dir2, 1, u->other);
}

static int swap_back(const struct undo *u, struct undo_place *p, int dir, int dir2)
{
	struct stat st;
	int rc;

	if (fstatat(dir, u->name[0], &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	/* The swap was never done (U1), or undone by a process that was killed then. */
	if (p->number && p->number(p, st.st_ino) == u->ino)
		return 0;
	rc = result(
		(int)syscall(SYS_renameat2, dir, u->name[0], dir2, u->name[1], RENAME_EXCHANGE));
	if (rc)
		return rc;
	p->named(p, u->ino, u->dir[1], u->name[1], false);
	p->named(p, u->other, u->dir[0], u->name[0], false);
	p->named(p, u->ino, u->dir[0], u->name[0], true);
	p->named(p, u->other, u->dir[1], u->name[1], true);
	return 0;
}

static int set_back(const struct undo *u, int fd)
{
	struct timespec times[2] = { u->atime, u->mtime };
	struct fd_path path = fd_path(fd);
	struct stat st;
	int rc = 0;

	if (u->kind == PENDING_XATTR) {
		rc = u->value ? result(setxattr(path.text, u->xattr, u->value, u->value_len, 0))
			      : result(removexattr(path.text, u->xattr));
		if (rc == -ENODATA)
			rc = 0;
		if (rc || strncmp(u->xattr, "system.posix_acl", 16))
			return rc;
	}
	if (fstatat(fd, "", &st, AT_EMPTY_PATH))
		return -errno;
	if (st.st_uid != u->uid || st.st_gid != u->gid)
		rc = result(fchownat(fd, "", u->uid, u->gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
	if (!rc && !S_ISLNK(st.st_mode))
		rc = result(chmod(path.text, u->mode));
	if (!rc && u->kind == PENDING_ATTR)
		rc = result(utimensat(AT_FDCWD, path.text, times, 0));
	return rc;
}

int undo_apply(const struct undo *u, struct undo_place *p)
{
	bool attribute = u->kind == PENDING_ATTR || u->kind == PENDING_XATTR;
	bool two = u->kind == PENDING_RENAME || u->kind == PENDING_SWAP;
	auto_fd dir = p->open(p, attribute ? u->ino : u->dir[0]);
	auto_fd dir2 = two ? p->open(p, u->dir[1]) : -1;

	if (dir < 0) /* the attributes of a removed inode cannot be restored */
		return attribute && (dir == -ENOENT || dir == -ESTALE) ? 0 : dir;
	if (two && dir2 < 0)
		return dir2;
	switch (u->kind) {
	case PENDING_MAKE:
	case PENDING_LINK:
		return unmake(u, p, dir);
	case PENDING_REMOVE:
		return bring_back(u, p, dir, 0, u->ino);
	case PENDING_RENAME:
		return rename_back(u, p, dir, dir2);
	case PENDING_SWAP:
		return swap_back(u, p, dir, dir2);
	case PENDING_ATTR:
	case PENDING_XATTR:
		return set_back(u, dir);
	}
	return -EINVAL;
}

/* Marks an operation as undone. The number is written first: without the mark it means nothing. */
int undo_mark(const struct undo *u, const struct undo_place *p, int fd)
{
	off_t at = (off_t)u->at + JOURNAL_HEAD;
	unsigned char number[8];
	int rc = 0;

	if (u->remade) {
		put_le64(number, p->made_anew);
		rc = io_pwrite_full(fd, number, sizeof(number), at + 1);
	}
	return rc ? rc : io_pwrite_full(fd, "U", 1, at);
}

/* ---- encoding ---- */

void undo_attributes(struct undo *u, const struct stat *st)
{
	u->mode = st->st_mode & 07777;
	u->uid = st->st_uid;
	u->gid = st->st_gid;
	u->atime = st->st_atim;
	u->mtime = st->st_mtim;
}

void undo_add_bytes(struct strbuf *out, const void *data, size_t len)
{
	strbuf_add_le32(out, (uint32_t)len);
	strbuf_add(out, data, len);
}

/* The numbers of a struct undo, in the order in which they are written. */
/* clang-format off */
#define EACH_NUMBER(number) \
	number(64, seq) number(64, ino) number(64, other) number(64, dir[0]) \
	number(64, dir[1]) number(64, atime.tv_sec) number(64, mtime.tv_sec) \
	number(32, mode) number(32, uid) number(32, gid) number(32, atime.tv_nsec) \
	number(32, mtime.tv_nsec)
/* clang-format on */

void undo_encode(const struct undo *u, struct strbuf *out)
{
	const char *texts[3] = { u->name[0], u->name[1], u->xattr };

	strbuf_addch(out, (char)u->kind);
	strbuf_addch(out, (char)((u->is_dir ? UNDO_DIR : 0) | (u->stashed ? UNDO_STASHED : 0) |
				 (u->value ? UNDO_VALUE : 0) | (u->remade ? UNDO_REMADE : 0)));
#define ADD(bits, member) strbuf_add_le##bits(out, (uint##bits##_t)u->member);
	EACH_NUMBER(ADD)
#undef ADD
	for (int i = 0; i < 3; i++)
		undo_add_bytes(out, texts[i] ? texts[i] : "", texts[i] ? strlen(texts[i]) : 0);
	undo_add_bytes(out, u->value ? u->value : "", u->value ? u->value_len : 0);
}

struct undo_reader {
	const unsigned char *at;
	size_t left;
	bool bad;
};

static uint64_t read_number(struct undo_reader *r, size_t n)
{
	uint64_t v = 0;

	if (r->left < n) {
		r->bad = true;
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)r->at[i] << (8 * i);
	r->at += n;
	r->left -= n;
	return v;
}

static char *read_text(struct undo_reader *r, size_t *len)
{
	char *text;

	*len = read_number(r, 4);
	if (r->bad || *len > UNDO_TEXT_MAX || *len > r->left) {
		r->bad = true;
		return NULL;
	}
	text = xmemdupz(r->at, *len);
	r->at += *len;
	r->left -= *len;
	return text;
}

/* True if a text is not a name in its directory. */
static bool bad_name(const char *s, size_t len)
{
	return !s || strlen(s) != len || strchr(s, '/') || streq(s, ".") || streq(s, "..");
}

int64_t undo_decode(const void *data, size_t len, struct undo *out)
{
	struct undo_reader r = { data, len, false };
	struct undo u = { 0 };
	size_t lens[3] = { 0 };
	unsigned flags;

	u.kind = (enum pending_kind)read_number(&r, 1);
	flags = (unsigned)read_number(&r, 1);
	u.is_dir = flags & UNDO_DIR;
	u.stashed = flags & UNDO_STASHED;
	u.remade = flags & UNDO_REMADE;
#define READ(bits, member) u.member = (__typeof__(u.member))read_number(&r, (bits) / 8);
	EACH_NUMBER(READ)
#undef READ
	u.name[0] = read_text(&r, &lens[0]);
	u.name[1] = read_text(&r, &lens[1]);
	u.xattr = read_text(&r, &lens[2]);
	u.value = read_text(&r, &u.value_len);
	if (!(flags & UNDO_VALUE)) {
		free(u.value);
		u.value = NULL;
	}
	if (r.bad || u.kind > PENDING_XATTR || bad_name(u.name[0], lens[0]) ||
	    bad_name(u.name[1], lens[1]) || strlen(u.xattr) != lens[2]) {
		undo_release(&u);
		return -EINVAL;
	}
	*out = u;
	return (int64_t)(len - r.left);
}

void undo_release(struct undo *u)
{
	free(u->name[0]);
	free(u->name[1]);
	free(u->xattr);
	free(u->value);
	*u = (struct undo){ 0 };
}
