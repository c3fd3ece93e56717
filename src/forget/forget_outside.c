/* SPDX-License-Identifier: MIT */
/* forget_outside.c - watches all other mounts by fanotify for files that are written. */
#include "forget/forget_outside.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd_path.h"
#include "base/io.h"

enum { PATHS_MAX = 64, MOUNTS_MAX = 1000 };

struct outside {
	int fd;
	const char *ours;
	struct vec_of(char *) paths;
	uint64_t more;
};

static bool mark_all(int fd)
{
	auto_file f = fopen("/proc/self/mountinfo", "re");
	char line[8192], path[4096];
	bool any = false;

	for (int i = 0; f && i < MOUNTS_MAX && fgets(line, sizeof(line), f); i++)
		/* A path with blanks is escaped here, and so not found: it is left out. */
		if (sscanf(line, "%*d %*d %*s %*s %4095s", path) == 1 &&
		    strncmp(path, "/proc", 5) != 0 && strncmp(path, "/sys", 4) != 0 &&
		    !fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_CLOSE_WRITE, AT_FDCWD,
				   path))
			any = true;
	return any;
}

struct outside *outside_new(const char *ours)
{
	struct outside *o;
	int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK,
			       O_RDONLY | O_LARGEFILE | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	if (!mark_all(fd)) {
		close(fd);
		return NULL;
	}
	o = xcalloc(1, sizeof(*o));
	o->fd = fd;
	o->ours = ours;
	return o;
}

int outside_fd(const struct outside *o)
{
	return o ? o->fd : -1;
}

static bool is_ours(const struct outside *o, const char *path)
{
	size_t len = strlen(o->ours);

	return strncmp(path, o->ours, len) == 0 && (path[len] == '/' || !path[len]);
}

static void add_path(struct outside *o, const char *path)
{
	for (size_t i = 0; i < o->paths.n; i++)
		if (streq(o->paths.v[i], path))
			return;
	if (o->paths.n < PATHS_MAX)
		vec_push(&o->paths, xstrdup(path));
	else
		o->more++;
}

static void take(struct outside *o, const struct fanotify_event_metadata *e)
{
	char path[4096];
	struct stat st;
	ssize_t n = readlink(fd_path(e->fd).text, path, sizeof(path) - 1);

	/* A power cut harms only regular files, not terminals, pipes and /dev/null. */
	if (n > 0 && !fstat(e->fd, &st) && S_ISREG(st.st_mode) && e->pid != getpid()) {
		path[n] = '\0';
		if (!is_ours(o, path))
			add_path(o, path);
	}
	close(e->fd);
}

void outside_read(struct outside *o)
{
	char buf[8192] __attribute__((aligned(__alignof__(struct fanotify_event_metadata))));
	ssize_t n;

	if (!o)
		return;
	while ((n = read(o->fd, buf, sizeof(buf))) > 0) {
		const struct fanotify_event_metadata *e = (const void *)buf;

		for (; FAN_EVENT_OK(e, n); e = FAN_EVENT_NEXT(e, n))
			if (e->fd >= 0)
				take(o, e);
	}
}

void outside_finish(struct outside *o, struct forget_record *out)
{
	out->outside_unknown = !o;
	if (!o)
		return;
	outside_read(o);
	for (size_t i = 0; i < o->paths.n; i++)
		vec_push(&out->outside, o->paths.v[i]);
	out->outside_more = o->more;
	vec_release(&o->paths);
	close(o->fd);
	free(o);
}
