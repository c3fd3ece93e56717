/* SPDX-License-Identifier: MIT */
/*
 * reffs-diff.c - the same random calls, by several users, on a directory of a real file system and
 * on the reference file system: results, attributes, which times changed, and in the end the trees
 * must be the same. The real one says what is right.
 *
 *	reffs-diff DIR [OPTIONS]	DIR: a directory that is ours alone
 *	  --mount DIR2	compare with a mount instead of the library
 *	  --seed N  --rounds N  --calls N
 *	  --tmpfs	DIR is a tmpfs: no collapse, insert or zero range, and no times, which it
 *			takes from a clock that stands still for milliseconds
 *
 *	  --spoil	the library takes one user for another: differences must be found
 *
 * Prints "rounds N calls N refused N different N". A round that differs is shrunk and printed.
 * Exit status: 0 the same, 1 different, 2 could not run.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/rng.h"
#include "fs/vfs.h"
#include "tree/tree.h"

enum { HANDLES = 3, CALLS_MAX = 200, DATA_MAX = 65536 };

static const struct tree_opts tree_options = { .dir_nlink = true };

/* ---- who ---- */

static const uint32_t groups_a[] = { 2000 }, groups_c[] = { 1000, 2000 };
static const struct reffs_cred users[] = {
	{ .caps = REFFS_CAPS_ALL },
	{ .uid = 1000, .gid = 1000, .groups = groups_a, .n_groups = 1, .umask = 022 },
	{ .uid = 1001, .gid = 1000, .umask = 02 },
	{ .uid = 1002, .gid = 1003, .groups = groups_c, .n_groups = 2 },
	{ .umask = 077 }, /* root without capabilities; not through a mount, which cannot tell */
};

static void set_effective(bool all)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };

	syscall(SYS_capget, &head, caps);
	for (int i = 0; i < 2; i++)
		caps[i].effective = all ? caps[i].permitted : 0;
	if (syscall(SYS_capset, &head, caps))
		abort();
}

/* File systems look at these ids alone; we stay root and come back. */
static void become(const struct reffs_cred *c)
{
	gid_t groups[4];

	set_effective(true);
	for (size_t i = 0; i < c->n_groups; i++)
		groups[i] = c->groups[i];
	if (setgroups(c->n_groups, groups))
		abort();
	setfsgid(c->gid);
	setfsuid(c->uid);
	umask(c->umask);
	set_effective(c->caps);
}

/* ---- calls ---- */

enum kind {
	CREATE,
	MKDIR,
	MKNOD,
	SYMLINK,
	TMPFILE,
	LINK,
	LINK_HANDLE,
	UNLINK,
	RMDIR,
	RENAME,
	CHMOD,
	CHOWN,
	LCHOWN,
	TOUCH,
	TIMES,
	TRUNCATE,
	ACCESS,
	OPEN,
	CLOSE,
	READ,
	WRITE,
	FTRUNCATE,
	FALLOCATE,
	SEEK,
	COPY,
	READDIR,
	READLINK,
	SETXATTR,
	GETXATTR,
	LISTXATTR,
	REMOVEXATTR,
	FCHMOD,
	FCHOWN,
	KINDS
};

static const char *const kind_names[KINDS] = {
	"create",    "mkdir",	  "mknod",	 "symlink", "tmpfile", "link",	   "link-handle",
	"unlink",    "rmdir",	  "rename",	 "chmod",   "chown",   "lchown",   "touch",
	"times",     "truncate",  "access",	 "open",    "close",   "read",	   "write",
	"ftruncate", "fallocate", "seek",	 "copy",    "readdir", "readlink", "setxattr",
	"getxattr",  "listxattr", "removexattr", "fchmod",  "fchown",
};

struct call {
	enum kind kind;
	unsigned who, handle, handle2;
	const char *path, *path2;
	uint32_t mode, uid, gid;
	uint64_t a, b, len;
	int flags;
	const char *name; /* of an attribute */
	const void *value;
	size_t value_len;
	char seed; /* what is written */
};

/* What a call gives beside its result. */
struct answer {
	int64_t rc;
	struct strbuf text;
};

static bool tmpfs, spoil;

#define PICK(g, array) ((array)[rng_below((g), ARRAY_SIZE(array))])

#define ACL(...) ((const uint16_t[]){ 2, 0, __VA_ARGS__ })
#define NONE	 0xffff, 0xffff
#define ACL_VALUE(...)                                                                             \
	{                                                                                          \
		ACL(__VA_ARGS__), sizeof(ACL(__VA_ARGS__))                                         \
	}

static const struct {
	const void *data;
	size_t len;
} acls[] = {
	ACL_VALUE(1, 6, NONE, 4, 4, NONE, 0x20, 4, NONE), /* no more than a mode */
	ACL_VALUE(1, 7, NONE, 2, 7, 1001, 0, 4, 5, NONE, 0x10, 7, NONE, 0x20, 0, NONE),
	ACL_VALUE(1, 7, NONE, 2, 0, 1002, 0, 4, 5, NONE, 0x10, 5, NONE, 0x20, 7, NONE),
	ACL_VALUE(1, 6, NONE, 4, 0, NONE, 8, 7, 2000, 0, 0x10, 7, NONE, 0x20, 0, NONE),
	ACL_VALUE(1, 6, NONE, 2, 7, 1000, 0, 4, 0, NONE, 8, 6, 1000, 0, 0x10, 2, NONE, 0x20, 1,
		  NONE),
	ACL_VALUE(1, 7, NONE, 4, 7, NONE, 0x10, 7, NONE, 0x20, 5, NONE),
	ACL_VALUE(1, 6, NONE, 2, 7, 1000, 0, 4, 4, NONE, 0x20, 4, NONE), /* no mask */
	ACL_VALUE(4, 4, NONE, 1, 6, NONE, 0x20, 4, NONE),		 /* order */
	ACL_VALUE(1, 8, NONE, 4, 4, NONE, 0x20, 4, NONE),		 /* permissions */
	ACL_VALUE(1, 6, NONE, 2, 7, NONE, 4, 4, NONE, 0x10, 7, NONE, 0x20, 4, NONE), /* no id */
	ACL_VALUE(1, 6, NONE),
	{ ACL(0), 4 }, /* nothing */
	{ ACL(0), 3 },
	{ ACL(1, 6), 7 },
	{ "", 0 },
};

static const unsigned char capability[20] = { 1, 0, 0, 2, 4 };

static void random_value(struct rng *g, struct call *c)
{
	static const char *const values[] = { "", "x", "value", "a longer value of an attribute" };
	size_t n;

	if (strstr(c->name, "acl")) {
		n = rng_below(g, ARRAY_SIZE(acls));
		c->value = acls[n].data;
		c->value_len = acls[n].len;
	} else if (strstr(c->name, "capability")) {
		c->value = capability;
		c->value_len = rng_below(g, 4) ? sizeof(capability) : 7;
	} else {
		c->value = PICK(g, values);
		c->value_len = strlen(c->value);
	}
}

static const char *random_path(struct rng *g)
{
	static const char *const paths[] = {
		"a",   "a",   "b",   "b",     "c",     "d",   "d",	 "e",	  "d/a",     "d/a",
		"d/b", "d/c", "e/a", "e/b",   "e/d",   "d/d", "d/d/a",	 "d/d/d", "d/d/d/a", "l",
		"l/a", "d/l", "e/l", "d/l/a", "e/d/a", ".",   "d/d/d/d", "m",	  "m/b",
	};

	return PICK(g, paths);
}

static void random_call(struct rng *g, bool mount, bool seeks, struct call *c)
{
	static const uint32_t modes[] = { 0644,	 0755,	0777,  0600,  0700,  0,
					  01777, 02755, 02775, 04755, 06777, 0640,
					  0070,	 0007,	01775, 02770, 02644, 0711 };
	static const uint32_t ids[] = { 0, 1000, 1000, 1001, 1002, 1003, 2000, UINT32_MAX };
	static const uint64_t offsets[] = { 0,	  0,	1,     100,   4000,  4095, 4096,
					    4097, 8192, 10000, 16384, 20480, 40960 };
	static const uint64_t lengths[] = { 0, 1, 100, 4095, 4096, 4097, 8192, 12288, 20000 };
	static const uint32_t types[] = {
		S_IFREG, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK, 0, S_IFDIR
	};
	static const char *const names[] = { "user.a",
					     "user.a",
					     "user.b",
					     "trusted.t",
					     "security.s",
					     "security.capability",
					     "system.other",
					     "no.space",
					     "user.",
					     "system.posix_acl_access",
					     "system.posix_acl_access",
					     "system.posix_acl_default" };
	static const char *const targets[] = { "a", "d", "d/a", "l", "no", "d/d", "e" };
	static const int opens[] = { O_RDONLY,
				     O_WRONLY,
				     O_RDWR,
				     O_RDWR,
				     O_RDWR | O_CREAT,
				     O_RDWR | O_CREAT,
				     O_WRONLY | O_CREAT | O_EXCL,
				     O_WRONLY | O_CREAT | O_TRUNC,
				     O_RDONLY | O_DIRECTORY,
				     O_RDONLY | O_DIRECTORY,
				     O_RDWR | O_APPEND,
				     O_RDONLY | O_NOFOLLOW,
				     O_RDWR | O_TRUNC,
				     O_RDONLY | O_NOATIME };
	static const unsigned renames[] = {
		0, 0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_EXCHANGE, RENAME_WHITEOUT, 7
	};
	static const int fallocs[] = { 0,
				       FALLOC_FL_KEEP_SIZE,
				       FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				       FALLOC_FL_PUNCH_HOLE,
				       FALLOC_FL_ZERO_RANGE,
				       FALLOC_FL_COLLAPSE_RANGE,
				       FALLOC_FL_INSERT_RANGE,
				       FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE };

	*c = (struct call){ .kind = (enum kind)rng_below(g, KINDS) };
	if (rng_below(g, 4) == 0) {
		static const enum kind often[] = {
			CREATE, MKDIR, RENAME, LINK, OPEN, CHMOD, UNLINK
		};

		c->kind = PICK(g, often);
	}
	if (c->kind == (seeks ? COPY : SEEK))
		c->kind = WRITE; /* whether a copied hole is one is the file system's business */
	/* The library that serves the mount knows no O_TMPFILE. */
	if (mount && (c->kind == TMPFILE || c->kind == LINK_HANDLE))
		c->kind = OPEN;
	c->who = (unsigned)rng_below(g, ARRAY_SIZE(users) - mount);
	c->handle = (unsigned)rng_below(g, HANDLES);
	c->handle2 = (unsigned)rng_below(g, HANDLES);
	c->uid = PICK(g, ids);
	c->gid = PICK(g, ids);
	c->path = random_path(g);
	c->path2 = c->kind == SYMLINK ? PICK(g, targets) : random_path(g);
	/* The kernel does not ask a mount to set no owner, nor whether "." may be searched. */
	if (mount && c->uid == UINT32_MAX && c->gid == UINT32_MAX)
		c->uid = 1000;
	if (mount && streq(c->path, "."))
		c->path = "d";
	if (mount && streq(c->path2, "."))
		c->path2 = "e";
	c->mode = PICK(g, modes);
	c->a = PICK(g, offsets);
	c->b = PICK(g, offsets);
	c->len = PICK(g, lengths);
	c->name = PICK(g, names);
	c->seed = (char)('A' + rng_below(g, 26));
	random_value(g, c);
	switch (c->kind) {
	case MKNOD:
		c->mode |= PICK(g, types);
		c->a = rng_below(g, 2) ? 0 : makedev(1, 3);
		break;
	case OPEN:
		c->flags = PICK(g, opens);
		break;
	case RENAME:
		c->flags = (int)PICK(g, renames);
		break;
	case FALLOCATE:
		c->flags = fallocs[rng_below(g, tmpfs ? 4 : mount ? 5 : ARRAY_SIZE(fallocs))];
		/* For ext4, what is reserved and was read is data; a hole is one everywhere. */
		if (seeks)
			c->flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
		break;
	case SETXATTR:
		c->flags = (int)rng_below(g, 3);
		break;
	case SEEK:
		c->flags = rng_below(g, 2) ? SEEK_DATA : SEEK_HOLE;
		break;
	case ACCESS:
		c->flags = (int)rng_below(g, 8);
		break;
	case TMPFILE:
		c->flags = rng_below(g, 3) ? 0 : O_EXCL;
		c->path = PICK(g, ((const char *const[]){ "d", ".", "e", "d/d" }));
		break;
	case TRUNCATE:
	case FTRUNCATE:
		c->a = PICK(g, offsets);
		break;
	default:
		break;
	}
}

/* Something to act on; without it, most calls would find nothing. */
static size_t setup(struct rng *g, struct call *calls)
{
	static const struct {
		enum kind kind;
		const char *path, *path2;
		unsigned who;
		uint32_t mode;
	} first[] = {
		{ MKDIR, "d", "", 1, 0777 },	  { MKDIR, "e", "", 0, 0777 },
		{ CHMOD, "e", "", 0, 01777 },	  { MKDIR, "d/d", "", 3, 0777 },
		{ CHMOD, "d/d", "", 3, 02775 },	  { CREATE, "a", "", 1, 0666 },
		{ CREATE, "d/a", "", 2, 0664 },	  { CREATE, "e/a", "", 3, 0666 },
		{ CREATE, "e/b", "", 1, 0640 },	  { SYMLINK, "m", "d", 2, 0 },
		{ OPEN, "a", "", 0, 0 },	  { CREATE, "d/d/a", "", 1, 0777 },
		{ CHMOD, "d/d/a", "", 1, 06777 },
	};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		if (rng_below(g, 4) == 0)
			continue;
		calls[n++] = (struct call){ .kind = first[i].kind,
					    .path = first[i].path,
					    .path2 = first[i].path2,
					    .who = first[i].who,
					    .mode = first[i].mode,
					    .flags = O_RDWR,
					    .name = "" };
	}
	return n;
}

static void describe(const struct call *c, struct strbuf *out)
{
	strbuf_addf(out,
		    "user %u: %s %s %s h%u h%u mode %o uid %d gid %d a %llu b %llu len %llu flags "
		    "%#x %s(%zu)",
		    c->who, kind_names[c->kind], c->path, c->path2, c->handle, c->handle2, c->mode,
		    (int)c->uid, (int)c->gid, (unsigned long long)c->a, (unsigned long long)c->b,
		    (unsigned long long)c->len, (unsigned)c->flags, c->name, c->value_len);
}

/* ---- what is open, on either side; `lib` is NULL on a real file system ---- */

struct side {
	struct reffs *lib;
	uint64_t clock;
	int top, root; /* the directory that holds the root, and the root */
	struct {
		int fd;
		uint64_t ino;
		int flags;
	} handles[HANDLES];
};

static unsigned char buffer[DATA_MAX];

static int64_t result(int64_t rc)
{
	return rc < 0 ? -errno : rc;
}

static void add_hex(struct strbuf *out, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		strbuf_addf(out, "%02x", ((const unsigned char *)data)[i]);
}

/* Names in order, as text. */
struct name_list {
	char *v[1024];
	size_t n;
};

static int cmp_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_names(struct name_list *l, struct strbuf *out)
{
	qsort(l->v, l->n, sizeof(*l->v), cmp_names);
	for (size_t i = 0; i < l->n; i++) {
		strbuf_addf(out, "%s ", l->v[i]);
		free(l->v[i]);
	}
}

/* ---- the real one ---- */

static void real_path(const char *path, int root, char out[512])
{
	snprintf(out, 512, "/proc/self/fd/%d/%s", root, path);
}

static int64_t real_readdir(struct side *s, int fd, struct answer *a)
{
	struct name_list l = { 0 };
	char buf[8192];
	long n;

	(void)s;
	lseek(fd, 0, SEEK_SET);
	while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
		for (long at = 0; at < n;) {
			unsigned short reclen;

			memcpy(&reclen, buf + at + 16, 2);
			l.v[l.n++] = xasprintf("%s:%d", buf + at + 19, buf[at + 18]);
			at += reclen;
		}
	int64_t rc = result(n);
	add_names(&l, &a->text);
	return rc;
}

static int64_t real_list(const char *path, struct answer *a)
{
	static char list[65536];
	struct name_list l = { 0 };
	ssize_t n = llistxattr(path, list, sizeof(list));

	if (n < 0)
		return -errno;
	for (char *p = list; p < list + n; p += strlen(p) + 1)
		l.v[l.n++] = xstrdup(p);
	add_names(&l, &a->text);
	return n;
}

static int64_t real_open(struct side *s, const struct call *c, int flags)
{
	int fd = openat(s->root, c->path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			c->mode & 07777);
	struct stat st;

	if (fd < 0)
		return -errno;
	/* Only files and directories stay open. */
	if (fstat(fd, &st) || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
		close(fd);
		return 0;
	}
	util_close(s->handles[c->handle].fd);
	s->handles[c->handle].fd = fd;
	return 0;
}

static bool is_special(int root, const char *path)
{
	struct stat st;

	return !fstatat(root, path, &st, 0) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int64_t real_call(struct side *s, const struct call *c, struct answer *a)
{
	int fd = s->handles[c->handle].fd, fd2 = s->handles[c->handle2].fd;
	struct timespec now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };
	struct timespec times[2] = { { (time_t)c->a, 5 }, { (time_t)c->b, 7 } };
	char path[512], link[64];
	off_t from = (off_t)c->a, to = (off_t)c->b;
	struct stat st;
	ssize_t n;

	real_path(c->path, s->root, path);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	switch (c->kind) {
	case CREATE:
		fd = openat(s->root, c->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, c->mode);
		util_close(fd);
		return fd < 0 ? -errno : 0;
	case MKDIR:
		return result(mkdirat(s->root, c->path, c->mode));
	case MKNOD:
		return result(mknodat(s->root, c->path, c->mode, c->a));
	case SYMLINK:
		return result(symlinkat(c->path2, s->root, c->path));
	case TMPFILE:
		return real_open(s, c, O_RDWR | O_TMPFILE | c->flags);
	case LINK:
		return result(linkat(s->root, c->path, s->root, c->path2, 0));
	case LINK_HANDLE:
		return result(linkat(AT_FDCWD, link, s->root, c->path2, AT_SYMLINK_FOLLOW));
	case UNLINK:
		return result(unlinkat(s->root, c->path, 0));
	case RMDIR:
		return result(unlinkat(s->root, c->path, AT_REMOVEDIR));
	case RENAME:
		return result(renameat2(s->root, c->path, s->root, c->path2, (unsigned)c->flags));
	case CHMOD:
		return result(fchmodat(s->root, c->path, c->mode, 0));
	case CHOWN:
		return result(fchownat(s->root, c->path, c->uid, c->gid, 0));
	case LCHOWN:
		return result(fchownat(s->root, c->path, c->uid, c->gid, AT_SYMLINK_NOFOLLOW));
	case TOUCH:
		return result(utimensat(s->root, c->path, now, 0));
	case TIMES:
		return result(utimensat(s->root, c->path, times, 0));
	case TRUNCATE:
		return result(truncate(path, (off_t)c->a));
	case ACCESS:
		return result(faccessat(s->root, c->path, c->flags, AT_EACCESS));
	case OPEN:
		return real_open(s, c, c->flags);
	case CLOSE:
		util_close(fd);
		s->handles[c->handle].fd = -1;
		return 0;
	case READ:
		n = pread(fd, buffer, c->len, (off_t)c->a);
		if (n > 0)
			strbuf_addf(&a->text, "%llx",
				    (unsigned long long)hash64(buffer, (size_t)n));
		return result(n);
	case WRITE:
		memset(buffer, c->seed, c->len);
		return result(pwrite(fd, buffer, c->len, (off_t)c->a));
	case FTRUNCATE:
		return result(ftruncate(fd, (off_t)c->a));
	case FALLOCATE:
		return result(fallocate(fd, c->flags, (off_t)c->a, (off_t)c->len));
	case SEEK:
		if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
			return 0; /* there, it means what the file system likes */
		return result(lseek(fd, (off_t)c->a, c->flags));
	case COPY:
		return result(copy_file_range(fd, &from, fd2, &to, c->len, 0));
	case READDIR:
		return real_readdir(s, fd, a);
	case READLINK:
		n = readlinkat(s->root, c->path, (char *)buffer, sizeof(buffer));
		strbuf_add(&a->text, buffer, n > 0 ? (size_t)n : 0);
		return result(n);
	case SETXATTR:
		return result(lsetxattr(path, c->name, c->value, c->value_len, c->flags));
	case GETXATTR:
		n = lgetxattr(path, c->name, buffer, sizeof(buffer));
		add_hex(&a->text, buffer, n > 0 ? (size_t)n : 0);
		return result(n);
	case LISTXATTR:
		return real_list(path, a);
	case REMOVEXATTR:
		return result(lremovexattr(path, c->name));
	case FCHMOD:
		return result(fchmod(fd, c->mode));
	case FCHOWN:
		return result(fchown(fd, c->uid, c->gid));
	case KINDS:
		break;
	}
	abort();
}

/* ---- the library ---- */

struct lib_names {
	struct name_list l;
};

static int take_name(void *ctx, const struct vfs_dirent *e)
{
	static const int types[TREE_TYPE_END] = { DT_UNKNOWN, DT_REG, DT_DIR, DT_LNK,
						  DT_FIFO,    DT_CHR, DT_BLK, DT_SOCK };
	struct lib_names *n = ctx;

	n->l.v[n->l.n++] = xasprintf("%s:%d", e->name, types[e->type]);
	return 0;
}

static bool can_read(int flags)
{
	return (flags & O_ACCMODE) != O_WRONLY;
}

static bool can_write(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY;
}

static void lib_close(struct side *s, unsigned h)
{
	if (s->handles[h].ino)
		vfs_unpin(s->lib, s->handles[h].ino, 1);
	s->handles[h].ino = 0;
}

static void lib_keep(struct side *s, unsigned h, uint64_t ino, int flags)
{
	vfs_pin(s->lib, ino, 1);
	lib_close(s, h);
	s->handles[h].ino = ino;
	s->handles[h].flags = flags;
}

static enum tree_type type_of(struct side *s, uint64_t ino)
{
	struct reffs_attr attr;

	return vfs_getattr(s->lib, ino, &attr) ? TREE_UNKNOWN : attr.type;
}

static int64_t lib_open(struct side *s, const struct reffs_cred *u, const struct call *c,
			int links);

/* O_CREAT follows a link that leads nowhere, and makes what it names. */
static int64_t lib_open_link(struct side *s, const struct reffs_cred *u, const struct call *c,
			     int links)
{
	struct call next = *c;
	const char *slash = strrchr(c->path, '/'), *target;
	char path[512];
	uint64_t ino;

	if (c->flags & O_NOFOLLOW)
		return -ELOOP;
	if (links > 5 || vfs_path(s->lib, u, c->path, O_NOFOLLOW, &ino) ||
	    vfs_readlink(s->lib, ino, &target))
		return -ELOOP;
	snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash + 1 - c->path) : 0, c->path,
		 target);
	next.path = path;
	return lib_open(s, u, &next, links + 1);
}

/* open(2) in small: there are no trailing slashes. */
static int64_t lib_open(struct side *s, const struct reffs_cred *u, const struct call *c, int links)
{
	bool excl = (c->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	int how = (c->flags & (O_NOFOLLOW | O_DIRECTORY)) | (excl ? O_NOFOLLOW : 0);
	uint64_t ino, dir;
	const char *name;
	int rc = vfs_path(s->lib, u, c->path, how, &ino);

	if (rc == -ENOENT && (c->flags & O_CREAT)) {
		rc = vfs_path_parent(s->lib, u, c->path, &dir, &name);
		if (!rc)
			rc = vfs_create(s->lib, u, dir, name, c->mode, &ino);
		if (rc == -EEXIST)
			return lib_open_link(s, u, c, links);
		if (!rc)
			lib_keep(s, c->handle, ino, c->flags);
		return rc;
	}
	if (rc)
		return rc;
	enum tree_type type = type_of(s, ino);
	if (excl)
		return -EEXIST;
	if ((c->flags & O_CREAT) && type == TREE_DIR)
		return -EISDIR;
	rc = vfs_open(s->lib, u, ino, c->flags);
	if (!rc && (type == TREE_FILE || type == TREE_DIR))
		lib_keep(s, c->handle, ino, c->flags);
	return rc;
}

static int64_t lib_xattr(struct side *s, const struct reffs_cred *u, const struct call *c,
			 struct answer *a)
{
	static char list[65536];
	struct name_list l = { 0 };
	const void *value;
	uint64_t ino;
	int64_t n;
	size_t len;
	int rc = vfs_path(s->lib, u, c->path, O_NOFOLLOW, &ino);

	if (rc)
		return rc;
	switch (c->kind) {
	case SETXATTR:
		return vfs_setxattr(s->lib, u, ino, c->name, c->value, c->value_len, c->flags);
	case REMOVEXATTR:
		return vfs_removexattr(s->lib, u, ino, c->name);
	case GETXATTR:
		rc = vfs_getxattr(s->lib, u, ino, c->name, &value, &len);
		if (!rc)
			add_hex(&a->text, value, len);
		return rc ? rc : (int64_t)len;
	default:
		n = vfs_listxattr(s->lib, u, ino, list, sizeof(list));
		for (char *p = list; n > 0 && p < list + n; p += strlen(p) + 1)
			l.v[l.n++] = xstrdup(p);
		add_names(&l, &a->text);
		return n;
	}
}

/* Calls that make or remove a name. */
static int64_t lib_name(struct side *s, const struct reffs_cred *u, const struct call *c)
{
	uint64_t ino, dir, dir2;
	const char *name, *name2;
	int rc;

	if (c->kind == LINK || c->kind == LINK_HANDLE) {
		ino = s->handles[c->handle].ino;
		rc = c->kind == LINK ? vfs_path(s->lib, u, c->path, O_NOFOLLOW, &ino)
		     : ino	     ? 0
				     : -ENOENT;
		if (!rc)
			rc = vfs_path_parent(s->lib, u, c->path2, &dir, &name);
		if (!rc && streq(name, "."))
			rc = -EEXIST;
		return rc ? rc : vfs_link(s->lib, u, ino, dir, name);
	}
	if (c->kind == MKNOD && S_ISDIR(c->mode))
		return -EPERM;
	rc = vfs_path_parent(s->lib, u, c->path, &dir, &name);
	if (c->kind == RENAME) {
		if ((c->flags & RENAME_EXCHANGE) && c->flags != RENAME_EXCHANGE)
			return -EINVAL;
		if (!rc)
			rc = vfs_path_parent(s->lib, u, c->path2, &dir2, &name2);
		if (rc)
			return rc;
		if (streq(name, "."))
			return -EBUSY;
		if (streq(name2, "."))
			return c->flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
		return vfs_rename(s->lib, u, dir, name, dir2, name2, (unsigned)c->flags);
	}
	if (rc)
		return rc;
	bool dot = streq(name, ".");
	switch (c->kind) {
	case CREATE:
	case MKDIR:
	case MKNOD:
	case SYMLINK:
		if (dot)
			return -EEXIST;
		break;
	case UNLINK:
		return dot ? -EISDIR : vfs_unlink(s->lib, u, dir, name);
	default:
		return dot ? -EINVAL : vfs_rmdir(s->lib, u, dir, name);
	}
	if (c->kind == CREATE)
		return vfs_create(s->lib, u, dir, name, c->mode, &ino);
	if (c->kind == MKDIR)
		return vfs_mkdir(s->lib, u, dir, name, c->mode, &ino);
	if (c->kind == SYMLINK)
		return vfs_symlink(s->lib, u, c->path2, dir, name, &ino);
	return vfs_mknod(s->lib, u, dir, name, c->mode, c->a, &ino);
}

/* Calls that change attributes, of a path or a handle. */
static int64_t lib_attr(struct side *s, const struct reffs_cred *u, const struct call *c)
{
	struct vfs_setattr a = { .mode = c->mode, .uid = c->uid, .gid = c->gid, .size = c->a };
	uint64_t ino = s->handles[c->handle].ino;
	int flags = s->handles[c->handle].flags, rc = 0;

	if (c->kind == FCHMOD || c->kind == FCHOWN || c->kind == FTRUNCATE)
		rc = ino ? 0 : -EBADF;
	else
		rc = vfs_path(s->lib, u, c->path, c->kind == LCHOWN ? O_NOFOLLOW : 0, &ino);
	if (rc)
		return rc;
	switch (c->kind) {
	case CHMOD:
	case FCHMOD:
		a.set = VFS_SET_MODE;
		break;
	case CHOWN:
	case LCHOWN:
	case FCHOWN:
		a.set = VFS_SET_UID | VFS_SET_GID;
		break;
	case TOUCH:
		a.set = VFS_SET_ATIME_NOW | VFS_SET_MTIME_NOW;
		break;
	case TIMES:
		a.set = VFS_SET_ATIME | VFS_SET_MTIME;
		a.atime = (struct tree_time){ (int64_t)c->a, 5 };
		a.mtime = (struct tree_time){ (int64_t)c->b, 7 };
		break;
	case FTRUNCATE:
		if (type_of(s, ino) != TREE_FILE || !can_write(flags))
			return -EINVAL;
		a.set = VFS_SET_SIZE | VFS_SET_OPEN;
		break;
	default:
		a.set = VFS_SET_SIZE;
	}
	return vfs_setattr(s->lib, u, ino, &a);
}

static int64_t lib_handle(struct side *s, const struct reffs_cred *u, const struct call *c,
			  struct answer *a)
{
	uint64_t ino = s->handles[c->handle].ino, ino2 = s->handles[c->handle2].ino;
	int flags = s->handles[c->handle].flags, flags2 = s->handles[c->handle2].flags;
	bool dir = ino && type_of(s, ino) == TREE_DIR;
	struct lib_names names = { 0 };
	struct vfs_dir reader = { 0 };
	int64_t n;

	if (!ino)
		return -EBADF;
	switch (c->kind) {
	case READ:
		if (!can_read(flags))
			return -EBADF;
		n = vfs_read(s->lib, ino, buffer, c->a, c->len);
		if (dir)
			return -EISDIR;
		if (n > 0)
			strbuf_addf(&a->text, "%llx",
				    (unsigned long long)hash64(buffer, (size_t)n));
		return n;
	case WRITE:
		memset(buffer, c->seed, c->len);
		if (!can_write(flags))
			return -EBADF;
		return vfs_write(s->lib, u, ino, buffer, c->a, c->len, flags);
	case FALLOCATE:
		if (!c->len)
			return -EINVAL;
		if (!can_write(flags) && c->flags != FALLOC_FL_PUNCH_HOLE)
			return -EBADF;
		return vfs_fallocate(s->lib, u, ino, c->flags, c->a, c->len);
	case SEEK:
		return dir ? 0 : vfs_seek(s->lib, ino, c->a, c->flags);
	case COPY:
		if (!ino2)
			return -EBADF;
		if (dir || type_of(s, ino2) == TREE_DIR)
			return -EISDIR;
		if (!can_read(flags) || !can_write(flags2) || (flags2 & O_APPEND))
			return -EBADF;
		return vfs_copy(s->lib, u, ino, c->a, ino2, c->b, c->len);
	default:
		n = vfs_readdir(s->lib, ino, &reader, 0, take_name, &names);
		vfs_dir_release(&reader);
		add_names(&names.l, &a->text);
		return n;
	}
}

static int64_t lib_call(struct side *s, const struct call *c, struct answer *a)
{
	const struct reffs_cred *u = &users[spoil && c->who == 1 ? 2 : c->who];
	const char *target;
	uint64_t ino;
	int rc;

	reffs_set_time(s->lib, (struct tree_time){ (int64_t)++s->clock + 2000000000, 0 });
	switch (c->kind) {
	case CREATE:
	case MKDIR:
	case MKNOD:
	case SYMLINK:
	case LINK:
	case LINK_HANDLE:
	case UNLINK:
	case RMDIR:
	case RENAME:
		return lib_name(s, u, c);
	case CHMOD:
	case FCHMOD:
	case CHOWN:
	case LCHOWN:
	case FCHOWN:
	case TOUCH:
	case TIMES:
	case TRUNCATE:
	case FTRUNCATE:
		return lib_attr(s, u, c);
	case SETXATTR:
	case GETXATTR:
	case LISTXATTR:
	case REMOVEXATTR:
		return lib_xattr(s, u, c, a);
	case TMPFILE:
		rc = vfs_path(s->lib, u, c->path, O_DIRECTORY, &ino);
		if (!rc)
			rc = vfs_tmpfile(s->lib, u, ino, c->mode, c->flags & O_EXCL, &ino);
		if (!rc)
			lib_keep(s, c->handle, ino, O_RDWR);
		return rc;
	case ACCESS:
		rc = vfs_path(s->lib, u, c->path, 0, &ino);
		return rc ? rc : vfs_access(s->lib, u, ino, c->flags);
	case OPEN:
		rc = vfs_path(s->lib, &reffs_root, c->path, 0, &ino);
		if (!rc && type_of(s, ino) != TREE_FILE && type_of(s, ino) != TREE_DIR)
			return 0; /* what is behind it is not ours to open */
		return lib_open(s, u, c, 0);
	case CLOSE:
		lib_close(s, c->handle);
		return 0;
	case READLINK:
		rc = vfs_path(s->lib, u, c->path, O_NOFOLLOW, &ino);
		if (!rc)
			rc = vfs_readlink(s->lib, ino, &target);
		if (!rc)
			strbuf_adds(&a->text, target);
		return rc ? rc : (int64_t)strlen(target);
	default:
		return lib_handle(s, u, c, a);
	}
}

/* ---- attributes ---- */

struct seen {
	int rc;
	uint64_t ino;
	uint32_t type, mode, uid, gid;
	uint64_t nlink, size, rdev;
	struct tree_time atime, mtime, ctime;
};

static struct seen see_real(struct side *s, const char *path)
{
	struct stat st;

	if (fstatat(s->root, path, &st, AT_SYMLINK_NOFOLLOW))
		return (struct seen){ .rc = -errno };
	return (struct seen){
		0,
		st.st_ino,
		IFTODT(st.st_mode),
		st.st_mode & 07777,
		st.st_uid,
		st.st_gid,
		st.st_nlink,
		S_ISDIR(st.st_mode) ? 0 : (uint64_t)st.st_size,
		S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) ? st.st_rdev : 0,
		{ st.st_atim.tv_sec, (uint32_t)st.st_atim.tv_nsec },
		{ st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec },
		{ st.st_ctim.tv_sec, (uint32_t)st.st_ctim.tv_nsec },
	};
}

static struct seen see_lib(struct side *s, const char *path)
{
	static const uint32_t types[TREE_TYPE_END] = { DT_UNKNOWN, DT_REG, DT_DIR, DT_LNK,
						       DT_FIFO,	   DT_CHR, DT_BLK, DT_SOCK };
	struct reffs_attr a;
	uint64_t ino;
	int rc = vfs_path(s->lib, &reffs_root, path, O_NOFOLLOW, &ino);

	if (!rc)
		rc = vfs_getattr(s->lib, ino, &a);
	if (rc)
		return (struct seen){ .rc = rc };
	return (struct seen){ 0,       ino,    types[a.type], a.mode,  a.uid,	a.gid,
			      a.nlink, a.size, a.rdev,	      a.atime, a.mtime, a.ctime };
}

static struct seen see(struct side *s, const char *path)
{
	return s->lib ? see_lib(s, path) : see_real(s, path);
}

/* Times of two inodes that stood there one after the other say nothing. */
static bool changed(struct tree_time a, struct tree_time b, bool is_new)
{
	return !tmpfs && !is_new && (a.sec != b.sec || a.nsec != b.nsec);
}

static void add_seen(struct strbuf *out, const struct seen *now, const struct seen *before)
{
	bool is_new = before->rc || before->ino != now->ino;

	if (now->rc) {
		strbuf_addf(out, "%s", strerrorname_np(-now->rc));
		return;
	}
	strbuf_addf(out, "type %u mode %o owner %u:%u links %llu size %llu rdev %llx%s%s",
		    now->type, now->mode, now->uid, now->gid, (unsigned long long)now->nlink,
		    (unsigned long long)now->size, (unsigned long long)now->rdev,
		    changed(now->mtime, before->mtime, is_new) ? " mtime" : "",
		    changed(now->ctime, before->ctime, is_new) ? " ctime" : "");
}

/* ---- rounds ---- */

enum { WATCHED = 12 };
static const char *const watched[WATCHED] = { ".",   "a",   "b",   "c",	  "d",	   "e",
					      "d/a", "d/d", "e/a", "d/b", "d/d/d", "e/d" };

static void empty_dir(int dir)
{
	DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		if (streq(e->d_name, ".") || streq(e->d_name, ".."))
			continue;
		if (!unlinkat(dir, e->d_name, 0))
			continue;
		auto_fd sub = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (sub >= 0)
			empty_dir(sub);
		unlinkat(dir, e->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

static int read_sysctl(const char *path)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	return io_slurp(path, 64, &text, &err) ? 0 : atoi(strbuf_str(&text));
}

static void side_begin(struct side *s, bool lib)
{
	struct reffs_opts opts = {
		.root_mode = 0777,
		.no_reflink = true,
		.protect_regular = read_sysctl("/proc/sys/fs/protected_regular"),
		.protect_hardlinks = read_sysctl("/proc/sys/fs/protected_hardlinks"),
		.protect_symlinks = read_sysctl("/proc/sys/fs/protected_symlinks"),
	};

	become(&users[0]);
	for (int h = 0; h < HANDLES; h++)
		s->handles[h].fd = -1;
	if (lib) {
		s->lib = reffs_new(&opts);
		return;
	}
	if (mkdirat(s->top, "root", 0777) ||
	    (s->root = openat(s->top, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		fprintf(stderr, "reffs-diff: no directory to work in: %m\n");
		exit(2);
	}
}

static void side_end(struct side *s)
{
	become(&users[0]);
	for (int h = 0; h < HANDLES; h++) {
		if (s->lib)
			lib_close(s, (unsigned)h);
		else
			util_close(s->handles[h].fd);
	}
	reffs_free(s->lib);
	s->lib = NULL;
	if (s->root >= 0) {
		empty_dir(s->root);
		close(s->root);
		unlinkat(s->top, "root", AT_REMOVEDIR);
	}
	s->root = -1;
	memset(s->handles, 0, sizeof(s->handles));
}

static void side_tree(struct side *s, struct tree *out)
{
	struct err err = ERR_INIT;

	if (!s->lib) {
		if (tree_walk(s->root, &tree_options, out, &err)) {
			fprintf(stderr, "reffs-diff: %s\n", err.msg);
			exit(2);
		}
		return;
	}
	struct reffs_state *state = reffs_save(s->lib);
	reffs_tree(state, &tree_options, out);
	reffs_state_unref(state);
}

/* Performs a call, and puts all that can be seen of it into words. */
static int64_t perform(struct side *s, const struct call *c, struct strbuf *words)
{
	struct seen before[WATCHED];
	struct answer a = { 0 };

	for (int i = 0; i < WATCHED; i++)
		before[i] = see(s, watched[i]);
	if (s->lib) {
		a.rc = lib_call(s, c, &a);
	} else if (c->kind != OPEN || !is_special(s->root, c->path)) {
		become(&users[c->who]);
		a.rc = real_call(s, c, &a);
		become(&users[0]);
	}
	strbuf_addf(words, "%lld %s %s\n", (long long)a.rc,
		    a.rc < 0 ? strerrorname_np((int)-a.rc) : "", strbuf_str(&a.text));
	strbuf_release(&a.text);
	for (int i = 0; i < WATCHED; i++) {
		struct seen now = see(s, watched[i]);

		strbuf_addf(words, "  %s: ", watched[i]);
		add_seen(words, &now, &before[i]);
		strbuf_addch(words, '\n');
	}
	return a.rc;
}

static struct side real_side = { .top = -1, .root = -1 }, other_side = { .top = -1, .root = -1 };
static uint64_t n_calls, n_refused;

static bool refused(int64_t rc)
{
	return rc == -EACCES || rc == -EPERM;
}

/* How a round differs; nothing if it does not. */
static void run_round(const struct call *calls, size_t n, struct strbuf *words)
{
	bool early = false;

	side_begin(&real_side, false);
	side_begin(&other_side, other_side.top < 0);
	for (size_t i = 0; i < n && !words->len && !early; i++) {
		auto_strbuf a = STRBUF_INIT, b = STRBUF_INIT;
		int64_t rc = perform(&real_side, &calls[i], &a);

		int64_t other = perform(&other_side, &calls[i], &b);
		n_calls++;
		n_refused += refused(rc);
		/*
		 * ext4 takes set-id bits away and sets times before it sees that it must fail; and
		 * makes a whiteout, and takes it back.
		 */
		bool whiteout = calls[i].kind == RENAME && (calls[i].flags & RENAME_WHITEOUT);
		if ((whiteout && rc < 0) || (calls[i].kind == FALLOCATE && rc == -EINVAL)) {
			early = !whiteout;
			strbuf_cut(&a, strcspn(strbuf_str(&a), "\n"));
			strbuf_cut(&b, strcspn(strbuf_str(&b), "\n"));
		}
		/* The kernel asks a mount who may do it when it has looked at everything else. */
		if (other_side.top >= 0 && rc < 0 && other < 0 && (refused(rc) || refused(other)))
			continue;
		if (streq(strbuf_str(&a), strbuf_str(&b)))
			continue;
		strbuf_addf(words, "call %zu: ", i);
		describe(&calls[i], words);
		strbuf_addf(words, "\nreal: %sreffs: %s", strbuf_str(&a), strbuf_str(&b));
	}
	auto_tree want = TREE_INIT, got = TREE_INIT;
	auto_tree_diff diff = { 0 };
	side_tree(&real_side, &want);
	side_tree(&other_side, &got);
	tree_diff(&want, &got, &tree_options, &diff);
	for (size_t i = 0; i < diff.list.n && !words->len && !early; i++)
		strbuf_addf(words, "in the end: %s\n", diff.list.v[i].words);
	side_end(&real_side);
	side_end(&other_side);
}

static void shrink(struct call *calls, size_t *n)
{
	struct call less[CALLS_MAX];

	for (size_t i = *n; i-- > 0;) {
		auto_strbuf words = STRBUF_INIT;

		memcpy(less, calls, i * sizeof(*calls));
		memcpy(less + i, calls + i + 1, (*n - i - 1) * sizeof(*calls));
		run_round(less, *n - 1, &words);
		if (words.len)
			memcpy(calls, less, --*n * sizeof(*calls));
	}
}

static void show(struct call *calls, size_t n, uint64_t seed, uint64_t round, const char *first)
{
	auto_strbuf words = STRBUF_INIT;

	printf("%s", first);
	shrink(calls, &n);
	run_round(calls, n, &words);
	printf("seed %llu round %llu:\n", (unsigned long long)seed, (unsigned long long)round);
	for (size_t i = 0; i < n; i++) {
		auto_strbuf line = STRBUF_INIT;

		describe(&calls[i], &line);
		printf("  %zu %s\n", i, strbuf_str(&line));
	}
	puts(strbuf_str(&words));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, rounds = 100, n = 60, different = 0, round;
	struct call calls[CALLS_MAX];

	if (argc < 2)
		return 2;
	real_side.top = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 2; i < argc; i++) {
		bool more = i + 1 < argc;

		if (streq(argv[i], "--tmpfs"))
			tmpfs = true;
		else if (streq(argv[i], "--spoil"))
			spoil = true;
		else if (more && streq(argv[i], "--mount"))
			other_side.top = open(argv[++i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		else if (more && streq(argv[i], "--seed"))
			seed = strtoull(argv[++i], NULL, 0);
		else if (more && streq(argv[i], "--rounds"))
			rounds = strtoull(argv[++i], NULL, 0);
		else if (more && streq(argv[i], "--calls"))
			n = min(strtoull(argv[++i], NULL, 0), (unsigned long long)CALLS_MAX);
		else
			return 2;
	}
	if (real_side.top < 0)
		return 2;
	for (round = 0; round < rounds && different < 3; round++) {
		auto_strbuf words = STRBUF_INIT;
		struct rng top, g;

		rng_init(&top, seed);
		rng_split(&top, round, &g);
		for (size_t i = setup(&g, calls); i < n; i++)
			random_call(&g, other_side.top >= 0, round % 2, &calls[i]);
		run_round(calls, n, &words);
		if (!words.len)
			continue;
		different++;
		show(calls, n, seed, round, strbuf_str(&words));
	}
	printf("rounds %llu calls %llu refused %llu different %llu\n", (unsigned long long)round,
	       (unsigned long long)n_calls, (unsigned long long)n_refused,
	       (unsigned long long)different);
	return different ? 1 : 0;
}
