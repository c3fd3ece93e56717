/* SPDX-License-Identifier: MIT */
/* exec.c - resolves paths and handles for the operations, and performs them one by one. */
#include "workload/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "workload/beneath.h"
#include "workload/content.h"

enum { DIRECT_ALIGN = 4096 };

void exec_init(struct exec *x, int root, const struct workload *w, const struct exec_env *env)
{
	*x = (struct exec){ .root = root, .workload = w, .tag = content_tag(w) };
	if (env)
		x->env = *env;
}

void exec_release(struct exec *x)
{
	exec_close_all(x);
	vec_release(&x->handles);
	free(x->buf);
}

void exec_begin(struct exec *x)
{
	if (x->phase != EXEC_BEFORE)
		return;
	x->phase = EXEC_UNDER_WAY;
	if (x->env.begin)
		x->env.begin(x->env.ctx, x->index);
}

void exec_end(struct exec *x)
{
	int kept = errno;

	exec_begin(x);
	if (x->phase == EXEC_AFTER)
		return;
	x->phase = EXEC_AFTER;
	if (x->env.end)
		x->env.end(x->env.ctx, x->index);
	errno = kept;
}

int64_t exec_op(struct exec *x, size_t i)
{
	assert(i < x->workload->ops.n);
	const struct op *op = &x->workload->ops.v[i];

	x->index = i;
	x->phase = EXEC_BEFORE;
	mode_t mask = umask(0);
	int64_t result = op->def->exec(x, op);
	exec_end(x); /* E5: for one that failed on its way to a call */
	umask(mask);
	assert(result >= -4095);
	return result;
}

/* A device node leads outside of the root, and opening some devices has an effect. */
static bool is_device(struct exec *x, const char *path, int flags)
{
	auto_fd fd = beneath_open(x->root, path, O_PATH | (flags & O_NOFOLLOW), 0);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode));
}

static int open_path(struct exec *x, const char *path, int flags, mode_t mode,
		     const struct beneath_ready *ready)
{
	if (flags & O_PATH)
		return beneath_open_ready(x->root, path, flags, mode, ready);
	if (is_device(x, path, flags))
		return -EACCES; /* as on a file system mounted with nodev */
	/* O_NONBLOCK: a fifo without a partner must not hang the run. */
	return beneath_open_ready(x->root, path, flags | O_NOCTTY | O_NONBLOCK, mode, ready);
}

int exec_open_path(struct exec *x, const char *path, int flags, mode_t mode)
{
	return open_path(x, path, flags, mode, NULL);
}

static void begin_at_open(void *ctx)
{
	exec_begin(ctx);
}

int exec_open_call(struct exec *x, const char *path, int flags, mode_t mode)
{
	return open_path(x, path, flags, mode, &(struct beneath_ready){ begin_at_open, x });
}

int exec_open_parent(struct exec *x, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');

	if (!slash) {
		*name = path;
		return exec_open_path(x, ".", O_PATH | O_DIRECTORY, 0);
	}
	auto_free char *parent = xmemdupz(path, (size_t)(slash - path));
	*name = slash + 1;
	return exec_open_path(x, parent, O_PATH | O_DIRECTORY, 0);
}

int exec_handle_fd(struct exec *x, const char *name)
{
	for (size_t i = 0; i < x->handles.n; i++)
		if (streq(x->handles.v[i].name, name))
			return x->handles.v[i].fd < 0 ? -EBADF : x->handles.v[i].fd;
	return -EBADF;
}

void exec_set_handle(struct exec *x, const char *name, int fd)
{
	for (size_t i = 0; i < x->handles.n; i++) {
		if (!streq(x->handles.v[i].name, name))
			continue;
		util_close(x->handles.v[i].fd);
		x->handles.v[i].fd = fd;
		return;
	}
	vec_push(&x->handles, (struct exec_handle){ name, fd });
}

int exec_close_handle(struct exec *x, const char *name)
{
	for (size_t i = 0; i < x->handles.n; i++)
		if (streq(x->handles.v[i].name, name) && x->handles.v[i].fd >= 0)
			return close(steal_fd(&x->handles.v[i].fd)) < 0 ? -errno : 0;
	return -EBADF;
}

void exec_close_all(struct exec *x)
{
	for (size_t i = 0; i < x->handles.n; i++)
		util_close(steal_fd(&x->handles.v[i].fd));
	vec_clear(&x->handles);
}

int exec_drop_here(void *ctx)
{
	auto_fd fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	(void)ctx;
	return fd < 0 || write(fd, "3", 1) != 1 ? -errno : 0;
}

unsigned char *exec_buffer(struct exec *x, size_t len)
{
	void *p;

	if (len > x->buf_size) {
		if (posix_memalign(&p, DIRECT_ALIGN, len))
			return NULL;
		free(x->buf);
		x->buf = p;
		x->buf_size = len;
	}
	return x->buf;
}

unsigned char *exec_content(struct exec *x, uint64_t offset, size_t len)
{
	unsigned char *buf = exec_buffer(x, max(len, (size_t)1));

	if (buf)
		content_fill(x->tag, x->index, offset, buf, len);
	return buf;
}
