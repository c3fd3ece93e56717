/* SPDX-License-Identifier: MIT */
/*
 * reffs_intake.c - receives requests: the data of a large write goes from the kernel's pages to
 * pages of the file system in one step.
 *
 * read(2) on /dev/fuse needs one piece of memory, from which the data would have to be copied
 * again, and looks up each page of that memory every time. Through a pipe the kernel passes its
 * pages as they are, and after the header is read, the place of each page is known. The pipe needs
 * more calls, so small requests are received by read(2). A large write is often followed by another
 * one, so the last request decides how the next one is received.
 *
 * I1: a thread has a pipe and pages of its own; between requests the pipe is empty.
 * I2: a request is received and performed by the same thread, which receives no other meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fsmount/reffs_server.h"

enum {
	HEAD = sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in),
	LARGE = 32 * 1024, /* from this size on the pipe is faster */
	/* Room for the largest request: its head, and the ends of its data, have a page each. */
	PIPE_SIZE = INTAKE_WRITE_MAX + 4 * REFFS_PAGE,
};

struct intake {
	int pipe[2];  /* -1: none */
	bool no_pipe; /* there is no pipe, or none that is large enough */
	size_t ready; /* pages of the last request that are in `pages` */
	struct vfs_pages *pages;
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;
/* The last request was a large write; a hint that any thread may set. */
static atomic_bool large_last;

static void close_pipe(struct intake *in)
{
	for (size_t i = 0; i < ARRAY_SIZE(in->pipe); i++)
		if (in->pipe[i] >= 0)
			close(in->pipe[i]);
	in->pipe[0] = in->pipe[1] = -1;
	in->no_pipe = true;
}

static void intake_free(void *arg)
{
	struct intake *in = arg;

	close_pipe(in);
	vfs_pages_free(in->pages);
	free(in);
}

static void make_key(void)
{
	have_key = !pthread_key_create(&key, intake_free);
}

/* Returns this thread's intake, or NULL. */
static struct intake *intake_own(void)
{
	pthread_once(&once, make_key);
	if (!have_key)
		return NULL;
	struct intake *in = pthread_getspecific(key);
	if (in)
		return in;
	in = xcalloc(1, sizeof(*in));
	in->pipe[0] = in->pipe[1] = -1;
	in->pages = vfs_pages_new();
	if (!pthread_setspecific(key, in))
		return in;
	intake_free(in);
	return NULL;
}

/* True if there is a pipe that is large enough: a request that does not fit would be lost. */
static bool has_pipe(struct intake *in)
{
	if (in->no_pipe || in->pipe[0] >= 0)
		return !in->no_pipe;
	if (!pipe2(in->pipe, O_CLOEXEC) && fcntl(in->pipe[0], F_SETPIPE_SZ, PIPE_SIZE) >= PIPE_SIZE)
		return true;
	close_pipe(in);
	return false;
}

/* Reads all `len` bytes from the pipe. */
static int drain(const struct intake *in, struct iovec *iov, int count, size_t len)
{
	/* One call reads all bytes in a pipe. */
	return readv(in->pipe[0], iov, count) == (ssize_t)len ? 0 : -EIO;
}

/* The number of whole pages of a request. */
static size_t pages_of(const void *buf, size_t len)
{
	const struct fuse_in_header *h = buf;
	const struct fuse_write_in *w = (const void *)(h + 1);

	if (len < HEAD + LARGE || h->opcode != FUSE_WRITE || w->offset % REFFS_PAGE ||
	    w->flags & O_APPEND || w->size != len - HEAD)
		return 0;
	return min((size_t)w->size / REFFS_PAGE, (size_t)VFS_PAGES_MAX);
}

/* Receives the rest of a request, whose head is in `buf`: into `buf`, or into pages. */
static int receive_rest(struct intake *in, char *buf, size_t len)
{
	struct iovec iov[VFS_PAGES_MAX + 1];
	size_t n = pages_of(buf, len), in_pages = n * REFFS_PAGE;

	for (size_t i = 0; i < n; i++)
		iov[i] = (struct iovec){ vfs_pages_at(in->pages, i), REFFS_PAGE };
	iov[n] = (struct iovec){ buf + HEAD + in_pages, len - HEAD - in_pages };
	int rc = drain(in, iov, (int)n + 1, len - HEAD);
	in->ready = rc ? 0 : n;
	return rc;
}

static ssize_t receive_by_pipe(struct intake *in, int fd, char *buf, size_t len)
{
	ssize_t n = splice(fd, NULL, in->pipe[1], NULL, min(len, (size_t)PIPE_SIZE), 0);

	if (n <= 0)
		return n;
	struct iovec head = { buf, min((size_t)n, (size_t)HEAD) };
	int rc = drain(in, &head, 1, head.iov_len);
	if (!rc && (size_t)n > HEAD)
		rc = receive_rest(in, buf, (size_t)n);
	if (!rc)
		return n;
	close_pipe(in); /* the bytes left in it are no request */
	errno = -rc;
	return -1;
}

static bool is_large_write(const void *buf, ssize_t n)
{
	const struct fuse_in_header *h = buf;

	return n >= HEAD + LARGE && h->opcode == FUSE_WRITE;
}

ssize_t reffs_intake_receive(struct session *s, int fd, void *buf, size_t len)
{
	struct intake *in = intake_own();
	bool large = atomic_load_explicit(&large_last, memory_order_relaxed);
	ssize_t n;

	(void)s;
	if (in)
		in->ready = 0;
	if (large && in && has_pipe(in))
		n = receive_by_pipe(in, fd, buf, len);
	else
		n = read(fd, buf, len);
	if (n > 0 && is_large_write(buf, n) != large)
		atomic_store_explicit(&large_last, !large, memory_order_relaxed);
	return n;
}

struct vfs_pages *reffs_intake_pages(const void *data, uint64_t offset, size_t len, int flags)
{
	struct intake *in = intake_own();

	if (!in || flags & O_APPEND)
		return NULL;
	if (in->ready)
		vfs_pages_ready(in->pages, offset, in->ready);
	else
		vfs_pages_copy(in->pages, data, offset, len);
	in->ready = 0;
	return in->pages;
}
