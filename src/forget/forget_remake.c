/* SPDX-License-Identifier: MIT */
/*
 * forget_remake.c - a removed directory whose removal waits for a sync: notes its attributes, and
 * makes it anew. The directory was empty, so only its number then differs.
 *
 * R1: making it again where it exists, after a recovery was killed in between, changes nothing.
 *
 * Its extended attributes are the value of the undo, each as
 *
 *	4 bytes + bytes   its name, with a zero at the end
 *	4 bytes + bytes   its value
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/bytes.h"
#include "forget/forget_impl.h"

enum { LIST_MAX = 64 << 10, VALUE_MAX = 64 << 10, ALL_MAX = 1 << 20 };

static const char acl_access[] = "system.posix_acl_access";
static const char acl_default[] = "system.posix_acl_default";

/* ---- noting ---- */

/*
 * Notes the attributes. An attribute that may not be read cannot come back: a user may not see all
 * attributes of his own directory.
 */
static int note_xattrs(const char *path, struct strbuf *out)
{
	auto_free char *list = xmalloc(LIST_MAX), *value = xmalloc(VALUE_MAX);
	ssize_t len = listxattr(path, list, LIST_MAX);

	if (len < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (ssize_t i = 0; i < len; i += (ssize_t)strlen(list + i) + 1) {
		ssize_t n = getxattr(path, list + i, value, VALUE_MAX);

		if (n < 0)
			continue;
		undo_add_bytes(out, list + i, strlen(list + i) + 1);
		undo_add_bytes(out, value, (size_t)n);
		if (out->len > ALL_MAX)
			return -E2BIG;
	}
	return 0;
}

int forget_remake_note(int fd, struct undo *u)
{
	auto_strbuf xattrs = STRBUF_INIT;
	struct stat st;
	int rc;

	if (fstatat(fd, "", &st, AT_EMPTY_PATH))
		return -errno;
	rc = note_xattrs(fd_path(fd).text, &xattrs);
	if (rc)
		return rc;
	u->remade = true;
	undo_attributes(u, &st);
	if (xattrs.len) {
		u->value = xmemdupz(xattrs.buf, xattrs.len);
		u->value_len = xattrs.len;
	}
	return 0;
}

/* ---- making ---- */

/* Returns the next field, or NULL if there is none; the journal is not trusted. */
static const char *next_bytes(const char **at, size_t *left, size_t *len)
{
	const char *data;

	if (*left < 4)
		return NULL;
	*len = get_le32((const unsigned char *)*at);
	if (*len > *left - 4)
		return NULL;
	data = *at + 4;
	*at += 4 + *len;
	*left -= 4 + *len;
	return data;
}

/* False for attributes that cannot be set: those of security modules and file systems. */
static bool is_fatal(int error)
{
	return error != EPERM && error != EACCES && error != ENOTSUP;
}

static int set_xattrs(const char *path, const struct undo *u)
{
	const char *at = u->value, *name, *value;
	size_t left = u->value ? u->value_len : 0, name_len, len;

	/* The directory may have inherited lists that the old one did not have. */
	removexattr(path, acl_access);
	removexattr(path, acl_default);
	while ((name = next_bytes(&at, &left, &name_len))) {
		value = next_bytes(&at, &left, &len);
		if (!value || !name_len || name[name_len - 1])
			return -EINVAL;
		if (setxattr(path, name, value, len, 0) && is_fatal(errno))
			return -errno;
	}
	return 0;
}

static int set_looks(int fd, const struct undo *u)
{
	struct timespec times[2] = { u->atime, u->mtime };
	struct fd_path path = fd_path(fd);
	int rc = set_xattrs(path.text, u);

	if (rc)
		return rc;
	/* A user who may not give directories away has none of another user to make. */
	if (fchownat(fd, "", u->uid, u->gid, AT_EMPTY_PATH) && (errno != EPERM || !geteuid()))
		return -errno;
	if (chmod(path.text, u->mode) || utimensat(AT_FDCWD, path.text, times, 0))
		return -errno;
	return 0;
}

int forget_remake(const struct undo *u, int dir, const char *name)
{
	if (mkdirat(dir, name, 0700) && errno != EEXIST)
		return -errno;
	auto_fd fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc = fd < 0 ? -errno : set_looks(fd, u);

	return rc ? rc : steal_fd(&fd);
}
