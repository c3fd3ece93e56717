/* SPDX-License-Identifier: MIT */
/* mark.c - makes and verifies marks; trust.h says what is hashed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/io.h"
#include "trust/key.h"
#include "trust/trust.h"

enum { BLOCK = 64 << 10, MAC_SIZE = 32, MARK_MAX = 256, DEPTH_MAX = 256 };
static const char header[] = "outage-mark 1\n";

struct maker {
	crypto_generichash_state state;
	unsigned char *block; /* BLOCK bytes */
	bool closed;	      /* no other user can reach the files in the directory */
	char *open_to_others; /* the first file that others may write to, and the remedy */
	struct err *err;
};

/* ---- records ---- */

static void put_number(struct maker *m, uint64_t n)
{
	unsigned char bytes[8];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(n >> 8 * i);
	crypto_generichash_update(&m->state, bytes, sizeof(bytes));
}

static void put(struct maker *m, char letter, uint64_t a, uint64_t b, const void *data, size_t len)
{
	crypto_generichash_update(&m->state, (const unsigned char *)&letter, 1);
	put_number(m, a);
	put_number(m, b);
	put_number(m, len);
	if (len)
		crypto_generichash_update(&m->state, data, len);
}

static void put_name(struct maker *m, char letter, uint64_t a, uint64_t b, const char *name)
{
	put(m, letter, a, b, name, strlen(name));
}

static void put_block(struct maker *m, uint64_t at, const void *data, size_t len)
{
	if (!all_zero(data, len))
		put(m, 'B', at, 0, data, len);
}

/* ---- files ---- */

static void put_text(struct maker *m, const struct trust_file *f)
{
	assert(*f->name && !strchr(f->name, '/')); /* a file of the directory itself */
	put_name(m, 'F', 0, 0, f->name);
	for (size_t at = 0; at < f->len; at += BLOCK)
		put_block(m, at, (const char *)f->text + at, min(f->len - at, (size_t)BLOCK));
	put(m, 'E', f->len, 0, NULL, 0);
}

/* Holes are not read if the file system tells them. */
static int put_content(struct maker *m, int fd, uint64_t size, const char *name)
{
	for (uint64_t at = 0; at < size; at += BLOCK) {
		off_t data = lseek(fd, (off_t)at, SEEK_DATA);

		if (data < 0 && errno == ENXIO)
			break;
		if (data >= 0)
			at = max(at, (uint64_t)data / BLOCK * BLOCK);
		size_t len = (size_t)min(size - at, (uint64_t)BLOCK);
		ssize_t n = io_pread_full(fd, m->block, len, (off_t)at);
		if (n != (ssize_t)len)
			return err_set(m->err, n < 0 ? (int)n : -EIO, "cannot read %s: %s", name,
				       n < 0 ? strerror((int)-n) : "it became shorter");
		put_block(m, at, m->block, len);
	}
	put(m, 'E', size, 0, NULL, 0);
	return 0;
}

/*
 * True if a group is this user's own, as on systems with umask 002: the primary group, with the
 * user's name, and no other member. A group of another name may be shared with many.
 */
static bool is_private_group(gid_t gid)
{
	const struct passwd *user = getpwuid(geteuid());
	const struct group *group = getgrgid(gid);

	if (!group)
		return gid == geteuid() && (!user || user->pw_gid == gid);
	if (!user || user->pw_gid != gid || !streq(group->gr_name, user->pw_name))
		return false;
	for (char **member = group->gr_mem; *member; member++)
		if (!streq(*member, user->pw_name))
			return false;
	return true;
}

/* True if only this user has the right that `bits` gives to all. */
static bool is_alone(const struct stat *st, mode_t bits)
{
	return st->st_uid == geteuid() && !(st->st_mode & bits & S_IRWXO) &&
	       (!(st->st_mode & bits & S_IRWXG) || is_private_group(st->st_gid));
}

/* Looks for a file that others may write to; a tree may have some if no other user reaches it. */
static void look(struct maker *m, const struct stat *st, bool in_tree, const char *name)
{
	if (!(in_tree && m->closed) && !m->open_to_others && !is_alone(st, S_IWGRP | S_IWOTH))
		m->open_to_others =
			xasprintf(in_tree ? "%.100s in its tree: chmod go-rwx its directory"
					  : "%.100s: chmod go-w",
				  name);
}

static int put_open(struct maker *m, int fd, bool in_tree, const char *name)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(m->err, -EINVAL, "%s is not a regular file", name);
	look(m, &st, in_tree, name);
	put_name(m, 'F', in_tree && st.st_mode & S_IXUSR, 0, name);
	return put_content(m, fd, (uint64_t)st.st_size, name);
}

static int put_regular(struct maker *m, int dir, const char *name, bool in_tree)
{
	auto_fd fd = below_openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

	return fd < 0 ? err_set(m->err, fd, "cannot open %s: %s", name, strerror(-fd))
		      : put_open(m, fd, in_tree, name);
}

static int put_file(struct maker *m, int dir, const struct trust_file *f)
{
	struct stat st;

	if (f->text) {
		put_text(m, f);
		return 0;
	}
	if (fstatat(dir, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return err_set(m->err, -errno, "cannot look at %s: %m", f->name);
		put_name(m, 'N', 0, 0, f->name);
		return 0;
	}
	return S_ISREG(st.st_mode) ? put_regular(m, dir, f->name, false)
				   : err_set(m->err, -EINVAL, "%s is not a regular file", f->name);
}

/* ---- a tree ---- */

static int put_tree(struct maker *m, int above, const char *name, unsigned depth);

static int put_link(struct maker *m, int dir, const char *name)
{
	char to[4097];
	ssize_t n = readlinkat(dir, name, to, sizeof(to));

	if (n < 0)
		return err_set(m->err, -errno, "cannot read the link %s: %m", name);
	put_name(m, 'L', 0, 0, name);
	put(m, 'T', 0, 0, to, (size_t)n);
	return 0;
}

static int put_entry(struct maker *m, int dir, const char *name, unsigned depth)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(m->err, -errno, "cannot look at %s: %m", name);
	if (S_ISDIR(st.st_mode))
		return put_tree(m, dir, name, depth + 1);
	if (S_ISLNK(st.st_mode))
		return put_link(m, dir, name);
	if (!S_ISREG(st.st_mode)) {
		put_name(m, 'S', st.st_mode & S_IFMT, st.st_rdev, name);
		return 0;
	}
	return put_regular(m, dir, name, true);
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int put_tree(struct maker *m, int above, const char *name, unsigned depth)
{
	auto_fd dir = below_openat(above, name, O_RDONLY | O_DIRECTORY, 0);
	struct dirent **names;
	struct stat st;
	int n = dir < 0 ? -1 : scandirat(dir, ".", &names, NULL, by_bytes), rc = 0;

	if (n < 0)
		return err_set(m->err, dir < 0 ? dir : -errno, "cannot read the directory %s: %s",
			       name, strerror(dir < 0 ? -dir : errno));
	if (depth == DEPTH_MAX)
		rc = err_set(m->err, -ELOOP, "%s has more than %d directories above it", name,
			     DEPTH_MAX);
	if (fstat(dir, &st) == 0)
		look(m, &st, true, name);
	put_name(m, 'D', 0, 0, name);
	for (int i = 0; i < n; i++) {
		const char *one = names[i]->d_name;

		if (!rc && !streq(one, ".") && !streq(one, ".."))
			rc = put_entry(m, dir, one, depth);
		free(names[i]);
	}
	free(names);
	put(m, 'U', 0, 0, NULL, 0);
	return rc;
}

/* ---- all of it ---- */

/* `others`: the first file or directory that others may write to, to be freed; or NULL. */
static int make_mac(int dir, const struct trust_set *set, const unsigned char key[KEY_SIZE],
		    unsigned char mac[MAC_SIZE], char **others, struct err *err)
{
	auto_free unsigned char *block = xmalloc(BLOCK);
	struct maker m = { .block = block, .err = err };
	struct stat st;
	int rc = 0;

	if (sodium_init() < 0)
		return err_set(err, -EIO, "libsodium cannot be used");
	if (fstat(dir, &st) < 0)
		return err_set(err, -errno, "cannot look at the directory: %m");
	assert(*set->kind); /* M1 */
	look(&m, &st, false, ".");
	m.closed = is_alone(&st, S_IRWXG | S_IRWXO);
	crypto_generichash_init(&m.state, key, KEY_SIZE, MAC_SIZE);
	put_name(&m, 'K', 0, 0, set->kind);
	for (size_t i = 0; i < set->n && !rc; i++)
		rc = put_file(&m, dir, &set->files[i]);
	if (!rc && set->tree)
		rc = put_tree(&m, dir, set->tree, 0);
	crypto_generichash_final(&m.state, mac, MAC_SIZE);
	sodium_memzero(&m.state, sizeof(m.state));
	*others = m.open_to_others;
	return rc;
}

static const char *mark_name(const struct trust_set *set)
{
	return set->mark ? set->mark : TRUST_MARK;
}

static void print_mark(const unsigned char mac[MAC_SIZE], struct strbuf *out)
{
	char hex[2 * MAC_SIZE + 1];

	strbuf_addf(out, "%s%s\n", header, sodium_bin2hex(hex, sizeof(hex), mac, MAC_SIZE));
}

int trust_ready(struct err *err)
{
	unsigned char key[KEY_SIZE];
	int rc = key_make(key, err);

	sodium_memzero(key, sizeof(key));
	return rc;
}

int trust_mark(const char *dir, const struct trust_set *set, struct err *err)
{
	unsigned char key[KEY_SIZE], mac[MAC_SIZE];
	auto_strbuf text = STRBUF_INIT;
	struct err no_key = ERR_INIT;
	auto_free char *others = NULL;
	auto_fd fd = below_open_dir(dir, NULL, err);

	if (fd < 0)
		return fd;
	/* M2: the user was told at the start of the run why there is no key. */
	if (key_load(key, &no_key))
		return unlinkat(fd, mark_name(set), 0) < 0 && errno != ENOENT
			       ? err_set(err, -errno, "cannot remove %s/%s: %m", dir,
					 mark_name(set))
			       : 0;
	int rc = make_mac(fd, set, key, mac, &others, err);
	sodium_memzero(key, sizeof(key));
	if (rc)
		return err_context(err, "%s cannot be marked", dir);
	print_mark(mac, &text);
	assert(text.len <= MARK_MAX);
	return set->keep ? io_keep_file(dir, mark_name(set), text.buf, text.len, err)
			 : io_write_file(dir, mark_name(set), text.buf, text.len, 0, err);
}

/*
 * The first directory, from the run down to the one above `dir`, that others may write to, to be
 * freed: they could replace what is below it. NULL: there is none.
 */
static char *open_above(const char *dir)
{
	size_t skip = strlen(BELOW_MARK);

	for (const char *end = strstr(dir, BELOW_MARK); end; end = strchr(end + skip, '/')) {
		auto_free char *above = xmemdupz(dir, (size_t)(end - dir));
		auto_free char *shown = below_shown(above, NULL);
		struct err ignored = ERR_INIT;
		auto_fd fd = below_open_dir(above, NULL, &ignored);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) || !is_alone(&st, S_IWGRP | S_IWOTH))
			return xasprintf("%.100s: chmod go-w", shown);
		skip = 1;
	}
	return NULL;
}

int trust_verify(const char *dir, const struct trust_set *set, struct err *why)
{
	unsigned char key[KEY_SIZE], mac[MAC_SIZE];
	auto_strbuf is = STRBUF_INIT, wanted = STRBUF_INIT;
	struct err trouble = ERR_INIT;
	auto_free char *others = NULL;
	auto_fd fd = below_open_dir(dir, NULL, &trouble);
	int rc = fd < 0 ? fd : key_load(key, &trouble);

	if (!below_may_verify(dir)) /* M3 */
		return err_set(why, -EPERM, "cannot be told to be yours (others move it)");
	if (rc && rc != -ENOENT)
		return err_set(why, -EPERM, "cannot be told to be yours (%s)", trouble.msg);
	if (rc || io_slurp_file(dir, mark_name(set), MARK_MAX, &is, &trouble))
		return err_set(why, -EPERM, "was not made by you on this machine");
	rc = make_mac(fd, set, key, mac, &others, &trouble);
	sodium_memzero(key, sizeof(key));
	print_mark(mac, &wanted);
	if (!rc && !others)
		others = open_above(dir);
	if (rc)
		return err_set(why, -EPERM, "cannot be told to be yours (%s)", trouble.msg);
	if (is.len != wanted.len || sodium_memcmp(is.buf, wanted.buf, is.len) != 0)
		return err_set(why, -EPERM,
			       "was not made by you on this machine, or was changed since");
	return others ? err_set(why, -EPERM, "lies where others can change it (%s)", others) : 0;
}
