/* SPDX-License-Identifier: MIT */
/* beneath.c - resolves a path below a directory: by openat2(2), or component by component. */
#include "workload/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/strbuf.h"
#include "base/util.h"

enum { LINKS_MAX = 40, TARGET_MAX = 4096 };

/* A path that is being resolved: the part done, which has no link and no "..", and the rest. */
struct way {
	int root;
	int flags;
	struct strbuf done, rest;
	unsigned links;
	bool slash; /* the path ends with a slash */
	dev_t dev;
};

/* Takes the next name of the rest, to be freed; NULL if there is none. */
static char *next_name(struct way *w)
{
	const char *rest = strbuf_str(&w->rest);
	size_t skip = strspn(rest, "/"), n = strcspn(rest + skip, "/");
	char *name = n ? xmemdupz(rest + skip, n) : NULL;
	auto_free char *after = xstrdup(rest + skip + n);

	strbuf_clear(&w->rest);
	strbuf_adds(&w->rest, after);
	return name;
}

static bool is_last(const struct way *w)
{
	const char *rest = strbuf_str(&w->rest);

	return rest[strspn(rest, "/")] == '\0';
}

static int go_up(struct way *w)
{
	const char *done = strbuf_str(&w->done), *slash = strrchr(done, '/');

	if (!w->done.len)
		return -EXDEV;
	strbuf_cut(&w->done, slash ? (size_t)(slash - done) : 0);
	return 0;
}

/* Replaces a link by its target. */
static int follow(struct way *w)
{
	char target[TARGET_MAX];
	ssize_t n = readlinkat(w->root, strbuf_str(&w->done), target, sizeof(target));

	if (n < 0)
		return -errno;
	if (n == 0)
		return -ENOENT;
	if (target[0] == '/')
		return -EXDEV;
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	auto_free char *after = xstrdup(strbuf_str(&w->rest));
	strbuf_clear(&w->rest);
	strbuf_add(&w->rest, target, (size_t)n);
	strbuf_adds(&w->rest, after);
	return go_up(w);
}

/*
 * True if a link at the end is followed; not for a caller that wants the link itself, or a new
 * name.
 */
static bool follows_last(const struct way *w)
{
	return w->slash || !(w->flags & O_NOFOLLOW || (w->flags & O_CREAT && w->flags & O_EXCL));
}

static int go_down(struct way *w, const char *name)
{
	struct stat st;
	bool last = is_last(w);

	w->slash = w->rest.len > 0;
	strbuf_addf(&w->done, "%s%s", w->done.len ? "/" : "", name);
	if (fstatat(w->root, strbuf_str(&w->done), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return last && errno == ENOENT ? 0 : -errno; /* the last name may not exist */
	if (st.st_dev != w->dev)
		return -EXDEV;
	if (S_ISLNK(st.st_mode) && (!last || follows_last(w)))
		return follow(w);
	return last || S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static int go(struct way *w)
{
	int rc = 0;

	for (char *name; !rc && (name = next_name(w));) {
		if (streq(name, ".."))
			rc = go_up(w);
		else if (!streq(name, "."))
			rc = go_down(w, name);
		free(name);
	}
	return rc;
}

static void say_ready(const struct beneath_ready *ready)
{
	if (ready)
		ready->call(ready->ctx);
}

int beneath_open_by_hand(int root, const char *path, int flags, mode_t mode,
			 const struct beneath_ready *ready)
{
	struct way w = { .root = root, .flags = flags };
	struct stat st;

	if (!*path)
		return -ENOENT;
	if (*path == '/')
		return -EXDEV;
	if (fstat(root, &st) < 0)
		return -errno;
	w.dev = st.st_dev;
	strbuf_adds(&w.rest, path);
	int rc = go(&w);
	if (!rc) {
		if (!w.done.len)
			strbuf_adds(&w.done, ".");
		/* A path with a slash at its end must be a directory: the kernel checks that. */
		if (w.slash)
			strbuf_adds(&w.done, "/");
		say_ready(ready);
		rc = openat(root, strbuf_str(&w.done), flags | O_NOFOLLOW | O_CLOEXEC, mode);
		rc = rc < 0 ? -errno : rc;
	}
	strbuf_release(&w.done);
	strbuf_release(&w.rest);
	return rc;
}

int beneath_open_ready(int root, const char *path, int flags, mode_t mode,
		       const struct beneath_ready *ready)
{
	/* The call is not tried in vain between `ready` and openat(2). */
	static atomic_bool is_missing;
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};

	if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))
		how.mode = mode;
	if (!is_missing) {
		say_ready(ready);
		int fd = io_openat2(root, path, &how);
		if (fd != -ENOSYS)
			return fd;
		is_missing = true;
	}
	return beneath_open_by_hand(root, path, flags, mode, ready);
}

int beneath_open(int root, const char *path, int flags, mode_t mode)
{
	return beneath_open_ready(root, path, flags, mode, NULL);
}
