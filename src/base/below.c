/* SPDX-License-Identifier: MIT */
/*
 * below.c - opens, lists, makes and removes what lies below a directory, by openat2(2) or name by
 * name. A path is taken apart once, in open_root().
 */
#include "base/below.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd_path.h"
#include "base/io.h"
#include "base/names_in.h"
#include "base/owner.h"
#include "base/strbuf.h"
#include "base/util.h"

/* ---- names ---- */

/* Cuts the last name off a path, and returns it, to be freed; NULL: there is none, or "..". */
static char *cut_name(struct strbuf *path)
{
	for (;;) {
		while (path->len && path->buf[path->len - 1] == '/')
			strbuf_cut(path, path->len - 1);
		const char *slash = path->len ? memrchr(path->buf, '/', path->len) : NULL;
		size_t at = slash ? (size_t)(slash - path->buf) + 1 : 0;
		auto_free char *name = xmemdupz(strbuf_str(path) + at, path->len - at);

		if (!*name || streq(name, ".."))
			return NULL;
		strbuf_cut(path, at);
		if (!streq(name, "."))
			return steal(name);
	}
}

/* ---- directories that are held ---- */

struct held_dir {
	char *path;
	int fd;
};

/* The list grows, by one thread, before there are others; a forked process has it as well. */
static struct {
	struct vec_of(struct held_dir) dirs;
	char *here; /* the current directory's name when the first was held */
} held;

/* Other users may rename it: a case named from within a run has the same name all the time. */
static char *current_dir(void)
{
	return held.here ? xstrdup(held.here) : getcwd(NULL, 0);
}

/* True if the path has a "..", which could lead out of the run. */
static bool goes_up(const char *path)
{
	for (const char *p = path; (p = strstr(p, "..")); p += 2)
		if ((p == path || p[-1] == '/') && (!p[2] || p[2] == '/'))
			return true;
	return false;
}

/* The innermost held directory that a path leads through; `rest` gets the way from there. */
static const struct held_dir *find_held(const char *path, const char **rest)
{
	const struct held_dir *found = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < held.dirs.n; i++) {
		const struct held_dir *h = &held.dirs.v[i];
		size_t n = strlen(h->path);

		if (n >= longest && strncmp(path, h->path, n) == 0 &&
		    (!path[n] || path[n] == '/')) {
			found = h;
			longest = n;
		}
	}
	if (found)
		*rest = path + longest + strspn(path + longest, "/");
	return found;
}

/* True if `name` is a directory of a run that holds cases, each below a name of its own. */
static bool holds_cases(const char *name)
{
	return streq(name, "findings") || streq(name, "shrunk") || streq(name, "whole") ||
	       streq(name, "recovery");
}

static bool is_run(const char *dir);

/*
 * True if `dir` is RUN/findings/NAME or the like; `run` gets RUN without a slash at its end
 * (nothing if that is the root), `rest` the other two.
 */
static bool split_case(const char *dir, struct strbuf *run, char **rest)
{
	strbuf_adds(run, dir);
	for (int tries = 0; tries < 2; tries++) {
		auto_free char *name = cut_name(run);
		auto_free char *above = name ? cut_name(run) : NULL;

		if (above && holds_cases(above) &&
		    (!streq(above, "recovery") || is_run(run->len ? run->buf : "."))) {
			*rest = xasprintf("%s/%s", above, name);
			if (!run->len)
				strbuf_adds(run, ".");
			while (run->len && run->buf[run->len - 1] == '/')
				strbuf_cut(run, run->len - 1);
			return true;
		}
		/* "." and "3-1" are named from within a run. */
		auto_free char *here = dir[0] != '/' && !above ? current_dir() : NULL;
		if (!here)
			return false;
		strbuf_clear(run);
		strbuf_addf(run, "%s/%s", here, dir);
	}
	return false;
}

char *below_case(const char *dir)
{
	auto_strbuf run = STRBUF_INIT;
	auto_free char *rest = NULL;

	if (!split_case(dir, &run, &rest))
		return xstrdup(dir);
	return xasprintf("%s%s%s", strbuf_str(&run), BELOW_MARK, rest);
}

char *below_run_of(const char *case_dir)
{
	auto_strbuf run = STRBUF_INIT;
	auto_free char *rest = NULL;

	if (!split_case(case_dir, &run, &rest))
		return xasprintf("%s/../..", case_dir);
	return xstrdup(run.len ? run.buf : "/");
}

void below_parent(const char *path, char **dir, char **name)
{
	auto_strbuf above = STRBUF_INIT;

	strbuf_adds(&above, path);
	*name = cut_name(&above);
	if (!*name)
		*name = xstrdup(".");
	*dir = xstrdup(above.len ? above.buf : ".");
}

bool below_split(const char *path, char **dir, char **name)
{
	auto_strbuf run = STRBUF_INIT;

	if (!split_case(path, &run, name)) {
		below_parent(path, dir, name);
		return false;
	}
	*dir = xstrdup(run.len ? run.buf : "/");
	return true;
}

/* A directory that is reached by its descriptor has a name all the same. */
static char *name_root(const char *dir, size_t len)
{
	static const char by_fd[] = "/proc/self/fd/";
	auto_free char *root = xmemdupz(dir, len);
	size_t digits =
		sizeof(by_fd) - 1 + strspn(root + min(len, sizeof(by_fd) - 1), "0123456789");
	char name[4096];

	if (strncmp(root, by_fd, sizeof(by_fd) - 1) != 0 || (root[digits] && root[digits] != '/'))
		return steal(root);
	auto_free char *link = xmemdupz(root, digits);
	ssize_t n = readlink(link, name, sizeof(name));
	return n < 0 ? steal(root) : xasprintf("%.*s%s", (int)n, name, root + digits);
}

char *below_shown(const char *dir, const char *name)
{
	const char *mark = strstr(dir, BELOW_MARK), *rest = dir + (mark ? mark - dir : 0);
	auto_free char *root = name_root(dir, mark ? (size_t)(mark - dir) : strlen(dir));
	struct strbuf out = STRBUF_INIT;

	strbuf_adds(&out, root);
	for (; mark; mark = strstr(rest, BELOW_MARK)) {
		strbuf_add(&out, rest, (size_t)(mark - rest));
		strbuf_addch(&out, '/');
		rest = mark + strlen(BELOW_MARK);
	}
	if (rest != dir)
		strbuf_adds(&out, rest);
	if (name)
		strbuf_addf(&out, "/%s", name);
	return strbuf_detach(&out);
}

/* ---- without links ---- */

static bool is_link(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* With O_PATH, a link itself can be opened. */
static int refuse_link(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode))
		return fd;
	util_close(fd);
	return -ELOOP;
}

int below_openat_by_hand(int root, const char *path, int flags, mode_t mode)
{
	auto_fd opened = -1;
	auto_free char *copy = xstrdup(path);
	char *rest = copy;
	int at = root;

	if (!*path)
		return -ENOENT;
	for (const char *name; (name = strsep(&rest, "/"));) {
		if (streq(name, "..") || (!*name && name == copy))
			return -EXDEV;
		int how = rest ? O_PATH | O_DIRECTORY : flags;
		int fd = openat(at, *name ? name : ".", how | O_NOFOLLOW | O_CLOEXEC, mode);

		if (fd < 0)
			return is_link(at, name) ? -ELOOP : -errno;
		util_close(opened);
		at = opened = fd;
	}
	return refuse_link(steal_fd(&opened));
}

static int openat2_below(int root, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags | O_CLOEXEC | O_NOFOLLOW,
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd = io_openat2(root, path, &how);

	return fd < 0 ? fd : refuse_link(fd);
}

int below_openat(int root, const char *path, int flags, mode_t mode)
{
	if (goes_up(path))
		return -EXDEV;
	int fd = openat2_below(root, path, flags, mode);
	/* EPERM: a seccomp filter does not know this system call. */
	if (fd == -ENOSYS || fd == -EPERM)
		return below_openat_by_hand(root, path, flags, mode);
	/* For a link in the place of a directory the kernel says ENOTDIR, as for a file. */
	auto_fd link = fd == -ENOTDIR ? openat2_below(root, path, O_PATH, 0) : -1;
	return link == -ELOOP ? -ELOOP : fd;
}

static int failed(int rc, const char *shown, struct err *err)
{
	return err_set(err, rc,
		       rc == -ELOOP   ? "%s is a symbolic link, or lies behind one: below a run "
					"none is followed"
		       : rc == -EXDEV ? "%s leads out of the run"
				      : "cannot open %s: %s",
		       shown, strerror(-rc));
}

/* The path in two: what the user named, and the way from there; both to be freed. */
static void split_root(const char *dir, const char *name, char **root, char **path)
{
	const char *mark = strstr(dir, BELOW_MARK);
	const char *rest = mark ? mark + strlen(BELOW_MARK) : "";

	*root = mark ? xmemdupz(dir, (size_t)(mark - dir)) : xstrdup(dir);
	*path = *rest && name ? xasprintf("%s/%s", rest, name)
			      : xstrdup(*rest  ? rest
					: name ? name
					       : ".");
}

/* Opens the directory that the user named; `path` gets the way from there, to be freed. */
static int open_root(const char *dir, const char *name, char **path)
{
	auto_free char *root = NULL, *whole = NULL;
	const char *rest;

	split_root(dir, name, &root, path);
	whole = xasprintf("%s/%s", root, *path);
	const struct held_dir *h = find_held(whole, &rest);
	if (h && !goes_up(rest)) {
		char *way = xstrdup(*rest ? rest : ".");

		free(*path);
		*path = way;
		int fd = fcntl(h->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	int fd = open(*root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_below(const char *dir, const char *name, int flags)
{
	auto_free char *path = NULL;
	auto_fd root = open_root(dir, name, &path);

	return root < 0 ? root : below_openat(root, path, flags, 0);
}

int below_open_dir(const char *dir, const char *name, struct err *err)
{
	int fd = open_below(dir, name, O_RDONLY | O_DIRECTORY);

	if (fd >= 0)
		return fd;
	auto_free char *shown = below_shown(dir, name);
	return failed(fd, shown, err);
}

int below_open_here(const char *dir, struct err *err)
{
	auto_fd was = below_open_dir(dir, NULL, err);
	auto_fd fd = was < 0 ? -1 : open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat a, b;

	if (was < 0)
		return was;
	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %m", dir);
	if (fstat(was, &a) || fstat(fd, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return err_set(err, -ESTALE, "another directory has the name %s by now", dir);
	return steal_fd(&fd);
}

static void hold_as(char *path, int fd)
{
	if (!held.here)
		held.here = getcwd(NULL, 0);
	vec_push(&held.dirs, (struct held_dir){ path, fd });
}

int below_hold(const char *dir, struct err *err)
{
	auto_free char *root = NULL, *path = NULL;
	const char *rest = dir;

	split_root(dir, NULL, &root, &path);
	for (size_t n = strlen(root); n > 1 && root[n - 1] == '/'; n--)
		root[n - 1] = '\0';
	/* CASE/../.. is found from the case that is held: by its name it may be another's. */
	const struct held_dir *h = find_held(root, &rest);
	if (h && !goes_up(rest))
		return 0;
	int fd = openat(h ? h->fd : AT_FDCWD, h ? rest : root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "%s is not the directory of a run: %m", root);
	hold_as(steal(root), fd);
	return 0;
}

bool below_may_verify(const char *dir)
{
	auto_free char *root = NULL, *path = NULL;
	const char *rest;

	split_root(dir, NULL, &root, &path);
	auto_free char *whole = xasprintf("%s/%s", root, path);
	return !held.dirs.n || (find_held(whole, &rest) && !goes_up(rest));
}

char *below_real(const char *dir)
{
	const char *rest;
	const struct held_dir *h = find_held(dir, &rest);
	char name[4096];
	ssize_t n = h && !*rest ? readlink(fd_path(h->fd).text, name, sizeof(name)) : -1;

	if (n < 0 || n == (ssize_t)sizeof(name))
		return realpath(dir, NULL);
	char *real = xmemdupz(name, (size_t)n);
	int fd = find_held(real, &rest) && !*rest ? -1 : fcntl(h->fd, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		hold_as(xstrdup(real), fd);
	return real;
}

/* The file's type is checked before the open, which may block or have effects. */
static int look(const char *dir, const char *name, struct stat *st)
{
	auto_fd fd = open_below(dir, name, O_PATH);

	return fd < 0 ? fd : fstat(fd, st) < 0 ? -errno : 0;
}

int below_open(const char *dir, const char *name, int flags, struct err *err)
{
	auto_free char *shown = below_shown(dir, name);
	struct stat st;
	int rc = look(dir, name, &st);

	if (rc)
		return failed(rc, shown, err);
	auto_fd fd = S_ISREG(st.st_mode) ? open_below(dir, name, flags | O_NOCTTY | O_NONBLOCK)
					 : -EINVAL;
	if (fd == -EINVAL || (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))))
		return err_set(err, -EINVAL, "%s is not a regular file", shown);
	return fd < 0 ? failed(fd, shown, err) : steal_fd(&fd);
}

bool below_exists(const char *dir, const char *name)
{
	struct stat st;
	int rc = look(dir, name, &st);

	return rc != -ENOENT && rc != -ENOTDIR;
}

bool below_has_file(const char *dir, const char *name)
{
	struct stat st;

	return look(dir, name, &st) == 0 && S_ISREG(st.st_mode);
}

/*
 * True if a directory holds the record of a run. An executable file of that name is no record, and
 * a directory that every user may write to, such as /tmp, is no run.
 */
static bool is_run(const char *dir)
{
	static const char magic[] = "outage-";
	char text[sizeof(magic) - 1] = "";
	struct stat st;

	if (stat(dir, &st) || (st.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH))
		return false;
	if (look(dir, "run", &st) || !S_ISREG(st.st_mode))
		return false;
	auto_fd fd = open_below(dir, "run", O_RDONLY | O_NOCTTY | O_NONBLOCK);
	return fd >= 0 && read(fd, text, sizeof(text)) == (ssize_t)sizeof(text) &&
	       memcmp(text, magic, sizeof(text)) == 0;
}

/*
 * The outermost run that a directory lies in: `run` gets its path, `rest` the way from there, to be
 * freed (NULL: `dir` is the run itself). False: there is no run, or ".." leads out of it again.
 */
static bool split_run(const char *dir, struct strbuf *run, char **rest)
{
	auto_strbuf above = STRBUF_INIT;
	size_t found = SIZE_MAX;

	strbuf_adds(&above, dir);
	do {
		if (is_run(above.len ? above.buf : "."))
			found = above.len;
		/* Cuts the name, and the slash before it. */
		auto_free char *name = cut_name(&above);
		if (!name)
			break;
		while (above.len > 1 && above.buf[above.len - 1] == '/')
			strbuf_cut(&above, above.len - 1);
	} while (true);
	if (found == SIZE_MAX)
		return false;
	const char *way = dir + found + strspn(dir + found, "/");
	strbuf_add(run, dir, found);
	if (!run->len)
		strbuf_adds(run, ".");
	*rest = *way ? xstrdup(way) : NULL;
	return !*rest || !goes_up(*rest);
}

/* split_run() into one path; a relative path that names no run is tried from the root. */
static bool find_run(const char *dir, char **out)
{
	auto_strbuf run = STRBUF_INIT;
	auto_free char *rest = NULL;
	bool found = split_run(dir, &run, &rest);

	if (!found && dir[0] != '/') {
		auto_free char *here = current_dir();
		auto_free char *whole = !here		  ? xstrdup(dir)
					: streq(dir, ".") ? steal(here)
							  : xasprintf("%s/%s", here, dir);

		free(rest);
		rest = NULL;
		strbuf_clear(&run);
		found = split_run(whole, &run, &rest);
	}
	if (found)
		*out = rest ? xasprintf("%s%s%s", run.buf, BELOW_MARK, rest) : xstrdup(run.buf);
	return found;
}

bool below_named(const char *path, char **dir, char **name)
{
	auto_free char *above = NULL, *last = NULL, *in_run = NULL;

	below_parent(path, &above, &last);
	for (size_t n = strlen(above); n > 1 && above[n - 1] == '/'; n--)
		above[n - 1] = '\0';
	if (find_run(above, &in_run)) {
		*dir = steal(in_run);
		*name = steal(last);
		return true;
	}
	auto_free char *at = below_case(above);
	if (streq(at, above))
		return false;
	*dir = steal(at);
	*name = steal(last);
	return true;
}

char *below_absolute(const char *path)
{
	auto_free char *dir = NULL, *name = NULL;

	if (!below_named(path, &dir, &name))
		return realpath(path, NULL);
	const char *mark = strstr(dir, BELOW_MARK);
	auto_free char *root = mark ? xmemdupz(dir, (size_t)(mark - dir)) : xstrdup(dir);
	auto_free char *real = realpath(*root ? root : "/", NULL);
	return !real ? NULL
		     : xasprintf("%s%s/%s", real, mark ? mark + strlen(BELOW_MARK) - 1 : "", name);
}

int below_open_named(const char *path, struct err *err)
{
	auto_free char *dir = NULL, *name = NULL;

	/* The kernel's own files are read often, and hold no run. */
	if (strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0 &&
	    below_named(path, &dir, &name))
		return below_open(dir, name, O_RDONLY, err);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? err_set(err, -errno, "cannot open %s: %m", path) : fd;
}

/* ---- directories ---- */

int below_make_named(const char *path, char **at, struct err *err)
{
	auto_free char *dir = NULL, *name = NULL;

	if (below_named(path, &dir, &name)) {
		int rc = below_make_dir(dir, name, err);

		if (!rc)
			*at = xasprintf("%s%s%s", dir, strstr(dir, BELOW_MARK) ? "/" : BELOW_MARK,
					name);
		return rc;
	}
	if ((fault_fails("below.mkdir") || mkdir(path, 0777) < 0) && errno != EEXIST)
		return err_set(err, -errno, "cannot make the directory %s: %m", path);
	*at = xstrdup(path);
	return 0;
}

int below_open_parent(const char *dir, const char *name, const char **last, struct err *err)
{
	const char *slash = strrchr(name, '/');
	auto_free char *above = slash ? xmemdupz(name, (size_t)(slash - name)) : NULL;

	*last = slash ? slash + 1 : name;
	return below_open_dir(dir, above, err);
}

int below_make_dir(const char *dir, const char *name, struct err *err)
{
	auto_free char *shown = below_shown(dir, name);
	const char *last;
	auto_fd parent = below_open_parent(dir, name, &last, err);

	if (parent < 0)
		return parent;
	/* A group may not write to it, whatever umask says: see trust.h. */
	if ((fault_fails("below.mkdir") || mkdirat(parent, last, 0755) < 0) && errno != EEXIST)
		return err_set(err, -errno, "cannot make the directory %s: %m", shown);
	auto_fd made = below_open_dir(dir, name, err);
	return made < 0 ? made : 0;
}

/* A directory that is being removed, with the numbers by which it is recognised. */
struct doomed {
	char *name;
	struct statx is;
	struct words left; /* the names in it that are to be removed yet */
};

/*
 * The way from the directory that holds the tree down to the one that is open. A directory that was
 * left for one in it is found again by "..", so the depth of a tree has no limit.
 */
struct removal {
	int fd;
	struct vec_of(struct doomed) way;
	const char *shown; /* the tree, in messages */
	int rc;		   /* the error of the first name that could not be removed */
	struct err *err;
};

static void remains(struct removal *r, const char *name, int rc)
{
	auto_strbuf path = STRBUF_INIT;

	strbuf_adds(&path, r->shown);
	for (size_t i = 2; i < r->way.n; i++)
		strbuf_addf(&path, "/%s", r->way.v[i].name);
	if (r->way.n > 1)
		strbuf_addf(&path, "/%s", name);
	if (!r->rc)
		r->rc = err_set(r->err, rc, "cannot remove %s: %s", path.buf, strerror(-rc));
}

static bool recognize(int fd, struct doomed *d)
{
	return !statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &d->is);
}

/* A bind mount has the same device, but another mount id, which exists since Linux 5.8. */
static bool same_mount(const struct doomed *a, const struct doomed *b)
{
	return a->is.stx_dev_major == b->is.stx_dev_major &&
	       a->is.stx_dev_minor == b->is.stx_dev_minor && a->is.stx_mnt_id == b->is.stx_mnt_id;
}

/* Enters a directory, unless something is mounted there: a mount is left as it is. */
static int go_down(struct removal *r, const char *name)
{
	auto_fd at = below_openat(r->fd, name, O_PATH | O_DIRECTORY, 0);
	struct doomed d = { 0 };

	if (at < 0)
		return at;
	if (!recognize(at, &d))
		return -errno;
	if (!same_mount(&d, &vec_last(&r->way)))
		return -EBUSY;
	/* The owner may lack the rights. If chmod fails, the open or the unlink reports it. */
	if ((d.is.stx_mode & 0700) != 0700)
		(void)!chmod(fd_path(at).text, 0700);
	auto_fd fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : names_all(fd, name, &d.left, NULL);
	if (rc)
		return rc;
	d.name = xstrdup(name);
	vec_push(&r->way, d);
	util_close(r->fd);
	r->fd = steal_fd(&fd);
	return 0;
}

static void remove_name(struct removal *r, const char *name)
{
	if ((!fault_fails("below.unlink") && !unlinkat(r->fd, name, 0)) || errno == ENOENT)
		return;
	int why = -errno;
	int rc = why == -EISDIR || why == -EPERM ? go_down(r, name) : why;
	if (rc && rc != -ENOENT) /* another remover was faster */
		remains(r, name, rc == -ENOTDIR ? why : rc);
}

/* Leaves an empty directory, and removes it. False: the directory above was replaced meanwhile. */
static bool go_up(struct removal *r)
{
	auto_fd up = openat(r->fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_free char *name = r->way.v[--r->way.n].name;
	const struct doomed *above = &vec_last(&r->way);
	struct doomed d;

	words_release(&r->way.v[r->way.n].left);
	if (up < 0 || !recognize(up, &d) || !same_mount(&d, above) ||
	    d.is.stx_ino != above->is.stx_ino) {
		remains(r, name, -ESTALE);
		return false;
	}
	util_close(r->fd);
	r->fd = steal_fd(&up);
	if ((fault_fails("below.rmdir") || unlinkat(r->fd, name, AT_REMOVEDIR) < 0) &&
	    errno != ENOENT)
		remains(r, name, -errno);
	return true;
}

/* Removes the next name. False: all names are done, or the removal cannot go on. */
static bool remove_next(struct removal *r)
{
	struct words *left = &vec_last(&r->way).left;

	if (!left->n)
		return r->way.n > 1 && go_up(r);
	auto_free char *name = left->v[--left->n];
	remove_name(r, name);
	return true;
}

int below_remove_at(int dir, const char *name, const char *shown, struct err *err)
{
	struct removal r = { .fd = fcntl(dir, F_DUPFD_CLOEXEC, 0), .shown = shown, .err = err };
	struct doomed top = { 0 };

	if (r.fd < 0 || !recognize(r.fd, &top)) {
		int rc = err_set(err, -errno, "cannot remove %s: %m", shown);

		util_close(r.fd);
		return rc;
	}
	vec_push(&top.left, xstrdup(name));
	vec_push(&r.way, top);
	while (remove_next(&r))
		;
	vec_release_each(p, &r.way, words_release(&p->left), free(p->name));
	util_close(r.fd);
	return r.rc;
}

int below_remove(const char *dir, const char *name, struct err *err)
{
	auto_free char *shown = below_shown(dir, name);
	const char *last;
	auto_fd parent = below_open_parent(dir, name, &last, err);

	return parent < 0 ? parent : below_remove_at(parent, last, shown, err);
}

#define NEW_KIND "new"

char *below_new_name(const char *name)
{
	char owner[OWNER_NAME_SIZE];

	return xasprintf(".%.100s-%s", name, owner_name(NEW_KIND, owner));
}

int below_remove_whole(const char *dir, const char *name, struct err *err)
{
	auto_free char *shown = below_shown(dir, name);
	const char *last;
	auto_fd parent = below_open_parent(dir, name, &last, err);

	if (parent < 0)
		return parent;
	auto_free char *hidden = below_new_name(last);
	if (fault_fails("below.rename") || renameat(parent, last, parent, hidden) < 0)
		return err_set(err, -errno, "cannot remove %s: %m", shown);
	return below_remove_at(parent, hidden, shown, err);
}

static bool is_left_behind(const char *name)
{
	return name[0] == '.' && strstr(name, "-outage-" NEW_KIND "-") &&
	       owner_state(name, NULL) == OWNER_GONE;
}

int below_sweep(const char *dir, const char *name, struct err *err)
{
	auto_words names = { 0 };

	if (name && !below_exists(dir, name))
		return 0;
	auto_fd fd = below_open_dir(dir, name, err);
	if (fd < 0)
		return fd;
	auto_free char *shown = below_shown(dir, name);
	int rc = names_all(fd, shown, &names, err);
	for (size_t i = 0; !rc && i < names.n; i++) {
		auto_free char *path = xasprintf("%s/%s", shown, names.v[i]);

		if (is_left_behind(names.v[i]))
			rc = below_remove_at(fd, names.v[i], path, err);
	}
	return rc;
}

DEFINE_ORDER(by_number, char *, strverscmp(*a, *b))

int below_list(const char *dir, const char *name, struct words *out, struct err *err)
{
	auto_words names = { 0 };
	auto_fd fd = below_open_dir(dir, name, err);
	auto_free char *shown = below_shown(dir, name);
	int rc = fd < 0 ? fd : names_all(fd, shown, &names, err);

	vec_sort(&names, by_number);
	for (size_t i = 0; !rc && i < names.n; i++)
		if (names.v[i][0] != '.')
			vec_push(out, steal(names.v[i]));
	return rc;
}
