/* SPDX-License-Identifier: MIT */
/*
 * leftover.c - finds loop devices, processes, mounts and files whose owner is gone, and removes
 * them.
 */
#include "target/leftover.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/names_in.h"
#include "base/owner.h"
#include "base/proc.h"
#include "record/loop.h"
#include "base/scratch.h"

/* The time for a process to clear up after a signal, and then to die. */
enum { GRACE_MS = 3000, LOOK_MS = 50 };

const char *leftover_kind_name(enum leftover_kind kind)
{
	static const char *const names[] = {
		[LEFTOVER_PROCESS] = "process", [LEFTOVER_STOPPED] = "stopped",
		[LEFTOVER_MOUNT] = "mount",	[LEFTOVER_LOOP] = "loop device",
		[LEFTOVER_FILE] = "file",
	};

	return names[kind];
}

static void add(struct leftovers *out, enum leftover_kind kind, unsigned number, char *what)
{
	vec_push(out, (struct leftover){ .kind = kind, .number = number, .what = what });
}

/* ---- processes ---- */

/* The program of a process, without its folder; "" if it may not be read. */
static void program_of(pid_t pid, char *name, size_t size)
{
	char path[64], link[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	ssize_t n = readlink(path, link, sizeof(link) - 1);
	link[max(n, (ssize_t)0)] = '\0';
	snprintf(name, size, "%.*s", (int)(size - 1), basename(link));
	char *gone = strstr(name, " (deleted)");
	if (gone)
		*gone = '\0';
}

static bool is_outage(pid_t pid)
{
	char name[64];

	program_of(pid, name, sizeof(name));
	return streq(name, "outage");
}

/*
 * The state of the process's owner, by the environment that a run gives to the programs it starts.
 */
static enum owner_state owner_in_environment(pid_t pid)
{
	auto_strbuf text = STRBUF_INIT;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	if (io_slurp(path, 4 << 20, &text, NULL))
		return OWNER_NONE;
	for (size_t at = 0; at < text.len; at += strlen(text.buf + at) + 1)
		if (strncmp(text.buf + at, SCRATCH_OWNER "=", sizeof(SCRATCH_OWNER)) == 0)
			return owner_state(text.buf + at + sizeof(SCRATCH_OWNER), NULL);
	return OWNER_NONE;
}

/*
 * The state of the owner of the disk that the process has open; `self`: the process is the owner.
 */
static enum owner_state owner_of_disk(pid_t pid, bool *self)
{
	char path[64], link[256];
	enum owner_state state = OWNER_NONE;
	pid_t owner;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	auto_names_in dir = names_in(AT_FDCWD, path);
	for (struct dirent *e; state == OWNER_NONE && (e = names_next(dir));) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);

		link[max(n, (ssize_t)0)] = '\0';
		if (strncmp(link, "/memfd:", 7) == 0)
			state = owner_state(link, &owner);
	}
	*self = state == OWNER_ALIVE && owner == pid;
	return state;
}

/* True if the process is a leftover; gives its kind. */
static bool judge(pid_t pid, enum leftover_kind *kind)
{
	bool self = false;
	struct proc_stat p;

	if (!proc_stat(pid, &p) || p.state == 'Z' || pid == getpid())
		return false;
	enum owner_state disk = owner_of_disk(pid, &self);
	*kind = LEFTOVER_PROCESS;
	if (disk == OWNER_GONE || owner_in_environment(pid) == OWNER_GONE)
		return true;
	if (!is_outage(pid))
		return false;
	/* A worker dies with its parent; one that did not is stuck. */
	if (self && !is_outage(p.parent))
		return true;
	*kind = LEFTOVER_STOPPED;
	return p.state == 'T';
}

/*
 * Continues a stopped keeper. The keeper of a FUSE disk has no file that names its owner, but it is
 * the parent of the server, which has one. When it continues, it clears up by itself.
 */
static void wake(pid_t pid)
{
	struct proc_stat p;

	kill(pid, SIGCONT);
	if (is_outage(pid) && proc_stat(pid, &p) && p.parent > 1 && is_outage(p.parent))
		kill(p.parent, SIGCONT);
}

static void find_processes(struct leftovers *out)
{
	auto_names_in dir = names_in(AT_FDCWD, "/proc");

	for (struct dirent *e; (e = names_next(dir));) {
		enum leftover_kind kind;
		char name[64];
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (!isdigit((unsigned char)*e->d_name) || !judge(pid, &kind))
			continue;
		program_of(pid, name, sizeof(name));
		add(out, kind, (unsigned)pid, xasprintf("%d (%s)", (int)pid, name));
	}
}

/* True when none of the processes is left. */
static bool all_gone(const struct leftovers *l)
{
	enum leftover_kind kind;

	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].kind == LEFTOVER_PROCESS && judge((pid_t)l->v[i].number, &kind) &&
		    kind == LEFTOVER_PROCESS)
			return false;
	return true;
}

static void wait_for_end(const struct leftovers *l)
{
	const struct timespec nap = { .tv_nsec = LOOK_MS * 1000000L };

	for (int ms = 0; ms < GRACE_MS && !all_gone(l); ms += LOOK_MS)
		nanosleep(&nap, NULL);
}

static void clear_processes(struct leftovers *l)
{
	enum leftover_kind kind;

	if (all_gone(l))
		goto done;
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].kind == LEFTOVER_PROCESS)
			wake((pid_t)l->v[i].number);
	wait_for_end(l);
	for (size_t i = 0; i < l->n; i++)
		/* The process is judged once more: another process may have its number by now. */
		if (l->v[i].kind == LEFTOVER_PROCESS && judge((pid_t)l->v[i].number, &kind) &&
		    kind == LEFTOVER_PROCESS)
			kill((pid_t)l->v[i].number, SIGKILL);
	wait_for_end(l);
done:
	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i].kind != LEFTOVER_PROCESS)
			continue;
		l->v[i].cleared = !judge((pid_t)l->v[i].number, &kind) || kind != LEFTOVER_PROCESS;
		if (!l->v[i].cleared)
			l->v[i].problem = xstrdup("it does not die; it may be stuck in the "
						  "kernel, until the next boot");
	}
}

/* ---- mounts ---- */

/* Undoes the kernel's \040 for blanks and the like, in place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; to++) {
		if (s[0] == '\\' && s[1] && s[2] && s[3]) {
			*to = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 4;
		} else {
			*to = *s++;
		}
	}
	*to = '\0';
}

static void find_mounts(struct leftovers *out)
{
	auto_strbuf text = STRBUF_INIT;

	if (io_slurp("/proc/self/mountinfo", 64 << 20, &text, NULL))
		return;
	char *rest = text.buf;
	for (char *line; rest && (line = strsep(&rest, "\n"));) {
		char *source = strstr(line, " - ");
		char *point = NULL;

		if (!source || owner_state(source, NULL) != OWNER_GONE)
			continue;
		/* number, parent, device, root, mount point */
		for (int i = 0; i < 5; i++)
			point = strsep(&line, " ");
		if (!point)
			continue;
		unescape(point);
		add(out, LEFTOVER_MOUNT, 0, xstrdup(point));
	}
}

/* ---- devices ---- */

static int add_loop(void *ctx, unsigned number, const char *file)
{
	if (owner_state(file, NULL) == OWNER_GONE)
		add(ctx, LEFTOVER_LOOP, number, xasprintf("/dev/loop%u", number));
	return 0;
}

/* ---- files ---- */

static void find_files_in(const char *path, struct leftovers *out)
{
	auto_names_in dir = names_in(AT_FDCWD, path);

	for (struct dirent *e; (e = names_next(dir));) {
		struct stat st;

		if (strncmp(e->d_name, "outage-", 7) != 0 ||
		    owner_state(e->d_name, NULL) != OWNER_GONE)
			continue;
		/* Any user can make a file with such a name here: only our own are read. */
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_uid == geteuid())
			add(out, LEFTOVER_FILE, 0, xasprintf("%s/%s", path, e->d_name));
	}
}

static bool listed_before(const char *const *paths, size_t n)
{
	struct stat a, b;

	if (!paths[n] || stat(paths[n], &a) < 0)
		return true;
	return any_of(i, n,
		      paths[i] && stat(paths[i], &b) == 0 && a.st_dev == b.st_dev &&
			      a.st_ino == b.st_ino);
}

static void find_files(struct leftovers *out)
{
	const char *const paths[] = { getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (!listed_before(paths, i))
			find_files_in(paths[i], out);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *where)
{
	(void)st;
	(void)flag;
	(void)where;
	return remove(path);
}

/* ---- all of them ---- */

void leftovers_find(struct leftovers *out)
{
	find_processes(out);
	find_mounts(out);
	loop_each(add_loop, out);
	find_files(out);
}

static int clear_one(const struct leftover *l)
{
	int r;

	switch (l->kind) {
	case LEFTOVER_MOUNT:
		return umount2(l->what, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
	case LEFTOVER_LOOP:
		r = loop_clear_orphan(l->number);
		return r == -ENXIO || r == -ENOENT ? 0 : r; /* another process has removed it */
	case LEFTOVER_FILE:
		return nftw(l->what, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) ? -errno : 0;
	default:
		return 0;
	}
}

void leftovers_clear(struct leftovers *l)
{
	clear_processes(l);
	vec_each(one, l) {
		if (one->kind == LEFTOVER_PROCESS || one->kind == LEFTOVER_STOPPED)
			continue;
		int rc = clear_one(one);
		one->cleared = rc == 0;
		if (rc)
			one->problem = xstrdup(strerror(-rc));
	}
}

void leftovers_release(struct leftovers *l)
{
	vec_release_each(p, l, free(p->what), free(p->problem));
}
