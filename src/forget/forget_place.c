/* SPDX-License-Identifier: MIT */
/*
 * forget_place.c - reads mountinfo and /proc to find mounts and their users, and makes the
 * directory of the socket.
 */
#include "forget/forget_place.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/names_in.h"

enum { LIST_MAX = 64 << 20, USERS_SHOWN = 6 };

void forget_place_release(struct forget_place *p)
{
	free(p->mnt);
	free(p->type);
	*p = (struct forget_place){ 0 };
}

/* ---- the kernel's list ---- */

/* Decodes \040 and so on, which stand for blanks, tabs, newlines and backslashes. */
static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (s[0] == '\\' && isdigit(s[1]) && isdigit(s[2]) && isdigit(s[3])) {
			*out++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
}

/* Gets the number after `key` in the options of the file system. */
static bool option_number(const char *options, const char *key, unsigned *out)
{
	const char *at = strstr(options, key);

	return at && sscanf(at + strlen(key), "%u", out) == 1;
}

/* Parses a line, "ID PARENT MAJ:MIN ROOT MNT OPTIONS [FIELDS] - TYPE SOURCE OPTIONS". */
static bool parse_line(char *line, struct forget_place *p)
{
	char *field[6], *save = NULL, *rest = strstr(line, " - ");

	if (!rest)
		return false;
	*rest = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(field); i++) {
		field[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!field[i])
			return false;
	}
	char *type = strtok_r(rest + 3, " ", &save);
	char *source = strtok_r(NULL, " ", &save);
	char *options = strtok_r(NULL, " ", &save);
	unsigned owner;
	if (!type || !source || !options || sscanf(field[0], "%u", &p->id) != 1 ||
	    sscanf(field[2], "%u:%u", &p->major, &p->minor) != 2)
		return false;
	p->owner = option_number(options, "user_id=", &owner) ? owner : 0;
	unescape(field[4]);
	p->mnt = field[4];
	p->type = type;
	return true;
}

/* Calls `fn` for each mount that process `pid` sees; `fn` borrows the place. */
static int each_mount(const char *pid, void (*fn)(void *ctx, const struct forget_place *p),
		      void *ctx, struct err *err)
{
	auto_free char *path = xasprintf("/proc/%s/mountinfo", pid);
	auto_strbuf text = STRBUF_INIT;
	char *save = NULL;
	int rc = io_slurp(path, LIST_MAX, &text, err);

	if (rc || !text.len)
		return rc;
	for (char *line = strtok_r(text.buf, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct forget_place p = { 0 };

		if (parse_line(line, &p))
			fn(ctx, &p);
	}
	return 0;
}

static bool is_ours(const struct forget_place *p)
{
	return streq(p->type, "fuse.outage") || streq(p->type, "fuse.lazyfs");
}

static struct forget_place copy_of(const struct forget_place *p)
{
	struct forget_place copy = *p;

	copy.mnt = xstrdup(p->mnt);
	copy.type = xstrdup(p->type);
	return copy;
}

struct mount_search {
	const char *mnt;
	struct forget_place found;
};

/* Takes a mount; later lines are mounts on top of earlier ones. */
static void take_if_there(void *ctx, const struct forget_place *p)
{
	struct mount_search *s = ctx;

	if (!streq(p->mnt, s->mnt))
		return;
	forget_place_release(&s->found);
	s->found = copy_of(p);
}

int forget_place_find(const char *mnt, struct forget_place *out, struct err *err)
{
	auto_free char *path = forget_place_path(mnt, err);
	struct mount_search s = { .mnt = path };
	int rc;

	if (!path)
		return err->code;
	rc = each_mount("self", take_if_there, &s, err);
	if (!rc && !s.found.mnt)
		rc = err_set(err, -ENOENT,
			     "nothing is mounted on %s; 'outage mount ROOT %s' mounts", mnt, mnt);
	else if (!rc && !is_ours(&s.found))
		rc = err_set(err, -ENOENT, "the mount on %s is %s, and not one of outage mount",
			     mnt, s.found.type);
	if (rc)
		forget_place_release(&s.found);
	else
		*out = s.found;
	return rc;
}

static void take_ours(void *ctx, const struct forget_place *p)
{
	struct forget_places *out = ctx;

	if (is_ours(p))
		vec_push(out, copy_of(p));
}

int forget_place_all(struct forget_places *out, struct err *err)
{
	return each_mount("self", take_ours, out, err);
}

struct presence {
	const struct forget_place *place;
	bool seen;
};

/* Compares all: the kernel uses both numbers again at once, for the next mount of any user. */
static void note_presence(void *ctx, const struct forget_place *p)
{
	struct presence *s = ctx;
	const struct forget_place *our = s->place;

	s->seen = s->seen || (p->id == our->id && p->major == our->major &&
			      p->minor == our->minor && streq(p->mnt, our->mnt));
}

bool forget_place_is_mounted(const struct forget_place *p)
{
	struct presence s = { .place = p };

	return each_mount("self", note_presence, &s, NULL) == 0 && s.seen;
}

/* ---- names ---- */

/* Splits a path into its directory and its last part; false if that is no name ("..", "/"). */
static bool cut_path(char *path, const char **dir, const char **last)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	char *slash = strrchr(path, '/');
	*last = slash ? slash + 1 : path;
	*dir = !slash ? "." : slash == path ? "/" : path;
	if (slash)
		*slash = '\0';
	return **last && !streq(*last, ".") && !streq(*last, "..");
}

char *forget_place_path(const char *path, struct err *err)
{
	auto_free char *copy = xstrdup(path);
	const char *dir, *last;
	char link[8], *whole;

	/* A mount point is no symbolic link: its server is not asked. */
	if (!*path || readlink(path, link, sizeof(link)) >= 0 || !cut_path(copy, &dir, &last)) {
		whole = realpath(path, NULL);
		if (!whole)
			err_set(err, -errno, "cannot find %s: %m", path);
		return whole;
	}
	auto_free char *parent = realpath(dir, NULL);
	if (!parent) {
		err_set(err, -errno, "cannot find %s: %m", path);
		return NULL;
	}
	return xasprintf("%s/%s", streq(parent, "/") ? "" : parent, last);
}

void forget_place_name(const struct forget_place *p, char name[FORGET_SOCKET_NAME])
{
	snprintf(name, FORGET_SOCKET_NAME, "%u:%u", p->major, p->minor);
}

/* ---- the directory of sockets ---- */

static char *dir_of(uid_t user, unsigned i)
{
	const char *xdg = user == geteuid() ? getenv("XDG_RUNTIME_DIR") : NULL;

	switch (i) {
	case 0:
		return user == 0 ? xstrdup("/run/outage")
				 : xasprintf("/run/user/%u/outage", (unsigned)user);
	case 1:
		return xdg && *xdg == '/' ? xasprintf("%s/outage", xdg) : xstrdup("");
	case 2:
		return xasprintf("/tmp/outage-%u", (unsigned)user);
	}
	return NULL;
}

/* Opens a directory that only `user` may enter; otherwise -EPERM. */
static int open_private(const char *path, uid_t user)
{
	auto_fd fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != user || (st.st_mode & 077))
		return -EPERM;
	return steal_fd(&fd);
}

int forget_place_dir_make(char **path, struct err *err)
{
	for (unsigned i = 0;; i++) {
		auto_free char *dir = dir_of(geteuid(), i);

		if (!dir)
			return err_set(err, -EACCES,
				       "there is no directory for the control socket: neither /run "
				       "nor /tmp lets us make one; --socket PATH says where");
		if (!*dir || (mkdir(dir, 0700) < 0 && errno != EEXIST))
			continue;
		int fd = open_private(dir, geteuid());
		if (fd < 0)
			continue;
		if (path)
			*path = steal(dir);
		return fd;
	}
}

int forget_place_dir_look(const struct forget_place *p, unsigned i, char **path)
{
	auto_free char *dir = dir_of(p->owner, i);

	if (!dir)
		return -ERANGE;
	int fd = *dir ? open_private(dir, p->owner) : -ENOENT;
	if (path)
		*path = steal(dir);
	return fd;
}

/* ---- users of a mount ---- */

/* True if the link leads to the mount point, or below. */
static bool leads_there(int proc, const char *link, const char *mnt)
{
	char target[PATH_MAX];
	size_t len = strlen(mnt);
	ssize_t n = readlinkat(proc, link, target, sizeof(target) - 1);

	if (n < 0)
		return false;
	target[n] = '\0';
	return strncmp(target, mnt, len) == 0 && (target[len] == '\0' || target[len] == '/');
}

/* True if a file of the mount is open: /proc/PID/fdinfo tells the mount, and asks no server. */
static bool has_open(int proc, unsigned id)
{
	auto_names_in d = names_in(proc, "fdinfo");
	bool found = false;

	for (struct dirent *e; !found && (e = names_next(d));) {
		auto_fd fd = isdigit(e->d_name[0])
				     ? openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC)
				     : -1;
		char text[512], *at;
		unsigned on;
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

		text[max(n, (ssize_t)0)] = '\0';
		at = strstr(text, "mnt_id:");
		found = at && sscanf(at + 7, "%u", &on) == 1 && on == id;
	}
	return found;
}

/* True if a file of the mount is mapped: a line of maps has the device, in hexadecimal. */
static bool has_mapped(int proc, const struct forget_place *p)
{
	auto_fd fd = openat(proc, "maps", O_RDONLY | O_CLOEXEC);
	auto_file f = fd < 0 ? NULL : fdopen(fd, "r");
	auto_free char *line = NULL;
	char device[32];
	size_t size = 0;

	if (!f)
		return false;
	steal_fd(&fd);
	snprintf(device, sizeof(device), " %02x:%02x ", p->major, p->minor);
	while (getline(&line, &size, f) > 0)
		if (strstr(line, device))
			return true;
	return false;
}

struct mount_copy {
	const struct forget_place *of;
	struct forget_place *found;
};

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), len = strlen(end);

	return n >= len && streq(text + n - len, end);
}

/*
 * Finds a copy of the mount. In another mount namespace, the copy has another number, and may be
 * below another root. After the last unmount its device may be any other mount's: so the path must
 * fit.
 */
static void note_copy(void *ctx, const struct forget_place *p)
{
	const struct mount_copy *c = ctx;
	struct forget_place *found = c->found;

	if (p->major != c->of->major || p->minor != c->of->minor || !is_ours(p) ||
	    !(ends_with(p->mnt, c->of->mnt) || ends_with(c->of->mnt, p->mnt)))
		return;
	free(found->mnt);
	found->mnt = xstrdup(p->mnt);
	found->id = p->id;
}

/* Finds the mount as the process sees it; false in our own namespace, or if there is none. */
static bool see_copy(int proc, const char *pid, const struct forget_place *p,
		     struct forget_place *copy)
{
	char theirs[64] = "", ours[64] = "";

	*copy = (struct forget_place){ .major = p->major, .minor = p->minor };
	if (readlinkat(proc, "ns/mnt", theirs, sizeof(theirs) - 1) < 0 ||
	    readlink("/proc/self/ns/mnt", ours, sizeof(ours) - 1) < 0 || streq(theirs, ours))
		return false;
	struct mount_copy c = { p, copy };
	return each_mount(pid, note_copy, &c, NULL) == 0 && copy->mnt;
}

static bool uses(int proc, const struct forget_place *p)
{
	return leads_there(proc, "cwd", p->mnt) || leads_there(proc, "root", p->mnt) ||
	       has_open(proc, p->id) || has_mapped(proc, p);
}

static void add_user(int proc, const char *pid, struct strbuf *out)
{
	auto_fd fd = openat(proc, "comm", O_RDONLY | O_CLOEXEC);
	char name[64];
	ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);

	name[max(n, (ssize_t)0)] = '\0';
	name[strcspn(name, "\n")] = '\0';
	strbuf_addf(out, "%s%s (%s)", out->len ? ", " : "", *name ? name : "a process", pid);
}

static bool uses_copy(int proc, const char *pid, const struct forget_place *p)
{
	auto_place copy = { 0 };

	return see_copy(proc, pid, p, &copy) && uses(proc, &copy);
}

bool forget_place_users(const struct forget_place *p, bool elsewhere, struct strbuf *out)
{
	auto_names_in d = names_in(AT_FDCWD, "/proc");
	unsigned n = 0;

	for (struct dirent *e; (e = names_next(d));) {
		auto_fd proc = isdigit(e->d_name[0]) ? openat(dirfd(d), e->d_name,
							      O_RDONLY | O_DIRECTORY | O_CLOEXEC)
						     : -1;

		if (proc < 0 || atoi(e->d_name) == getpid() ||
		    !(elsewhere ? uses_copy(proc, e->d_name, p) : uses(proc, p)))
			continue;
		if (n++ < USERS_SHOWN)
			add_user(proc, e->d_name, out);
	}
	if (n > USERS_SHOWN)
		strbuf_addf(out, " and %u more", n - USERS_SHOWN);
	return n > 0;
}
