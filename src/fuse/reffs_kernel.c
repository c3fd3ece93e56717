/* SPDX-License-Identifier: MIT */
/*
 * reffs_kernel.c - what the kernel may keep of the mounted reference file system, and how it is
 * told to forget it (reffs_server.h, S1 to S6).
 */
#include <errno.h>
#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "fuse/reffs_server.h"

/* As long as the passthrough example of libfuse lets it keep them. */
static const double KEEP_S = 1;

/* Newer than the headers of the libraries that we build with. */
enum { EPOCH_MINOR = 44, NOTIFY_INC_EPOCH = 8, KILLPRIV_V2_MINOR = 33 };
#define KILLPRIV_V2 (1u << 28)

/* ---- at the start ---- */

void kernel_init(struct reffs_mount *m, struct fuse_conn_info *conn)
{
	m->keep_s = conn->proto_major == FUSE_KERNEL_VERSION && conn->proto_minor >= EPOCH_MINOR
			    ? KEEP_S
			    : 0;
	/* Umask and set-id bits are ours to see to; data comes in plain memory. */
	conn->want |= conn->capable & (FUSE_CAP_DONT_MASK | FUSE_CAP_HANDLE_KILLPRIV |
				       FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_IOCTL_DIR);
#ifdef FUSE_CAP_HANDLE_KILLPRIV_V2
	conn->want |= conn->capable & FUSE_CAP_HANDLE_KILLPRIV_V2;
	m->setid_ours = conn->capable & FUSE_CAP_HANDLE_KILLPRIV_V2;
#else
	m->setid_ours = m->answers_ours && conn->proto_minor >= KILLPRIV_V2_MINOR;
#endif
	conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
				  FUSE_CAP_SPLICE_MOVE | FUSE_CAP_WRITEBACK_CACHE);
	/* Attributes that are not kept are not worth listing. */
	if (!m->keep_s)
		conn->want &= ~(unsigned)(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO);
}

#ifndef FUSE_CAP_HANDLE_KILLPRIV_V2
/*
 * A kernel that is not told that the server sees to set-id bits and file capabilities asks for the
 * latter before each write: a request more. This libfuse cannot say it, so it is added to the first
 * answer, where a kernel that does not know it looks over it.
 */
static void add_killpriv(struct iovec *iov, int count)
{
	struct fuse_init_out *init = count == 2 ? iov[1].iov_base : NULL;

	if (init && iov[1].iov_len >= FUSE_COMPAT_22_INIT_OUT_SIZE &&
	    init->major == FUSE_KERNEL_VERSION)
		init->flags |= KILLPRIV_V2;
}

static ssize_t send_answer(int fd, struct iovec *iov, int count, void *data)
{
	struct reffs_mount *m = data;

	if (!m->answered) { /* there is one thread yet */
		add_killpriv(iov, count);
		m->answered = true;
	}
	return writev(fd, iov, count);
}

static ssize_t receive_request(int fd, void *buf, size_t size, void *data)
{
	(void)data;
	return read(fd, buf, size);
}

void kernel_connect(struct reffs_mount *m)
{
	static const struct fuse_custom_io io = { .writev = send_answer, .read = receive_request };

	m->answers_ours = !fuse_session_custom_io(m->se, &io, fuse_session_fd(m->se));
	if (!m->answers_ours)
		log_debug("writes take a request more: libfuse does not let us see its answers");
}
#else
void kernel_connect(struct reffs_mount *m)
{
	(void)m;
}
#endif

/* ---- what it may keep ---- */

bool kernel_may_keep_names(struct reffs_mount *m, uint64_t dir)
{
	const void *acl;
	struct reffs_attr a;
	size_t len;

	if (!m->keep_s || vfs_getattr(m->r, dir, &a) || a.type != TREE_DIR)
		return false;
	/* Nobody but root gets here, and may search all. */
	if (!m->allow_other && !m->owner)
		return true;
	return (a.mode & 0111) == 0111 &&
	       vfs_getxattr(m->r, &reffs_root, dir, "system.posix_acl_access", &acl, &len);
}

/* ---- making it forget ---- */

void kernel_forget_names(struct reffs_mount *m)
{
	struct fuse_out_header h = { .len = sizeof(h), .error = NOTIFY_INC_EPOCH };

	if (m->keep_s && write(fuse_session_fd(m->se), &h, sizeof(h)) < 0)
		log_warn("the kernel does not forget names: %s", strerror(errno));
}

void kernel_forget_attr(struct reffs_mount *m, uint64_t ino)
{
	if (m->keep_s)
		fuse_lowlevel_notify_inval_inode(m->se, ino, -1, 0);
}

/* Who lists a directory holds its lock; so does the kernel when it is told about a name there. */
void kernel_await_listing(struct reffs_mount *m, uint64_t dir)
{
	fuse_lowlevel_notify_inval_entry(m->se, dir, ".", 1);
}

void kernel_forget_file(struct reffs_mount *m, uint64_t ino)
{
	/*
	 * It may be gone meanwhile; then the kernel says so, and has nothing to forget. Of one that
	 * is read directly there are pages as well, in private mappings.
	 */
	fuse_lowlevel_notify_inval_inode(m->se, ino, 0, 0);
}
