/* SPDX-License-Identifier: MIT */
/*
 * reffs_kernel.c - decides what the kernel may keep of the mounted reference file system, and tells
 * it to forget (reffs_server.h, S1 to S6).
 */
#include <errno.h>
#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "fsmount/reffs_server.h"

/* The kernel keeps names and attributes for so long, as in libfuse's passthrough example. */
static const double KEEP_S = 1;

/* Constants that are newer than the headers of the libraries that we build with. */
enum { EPOCH_MINOR = 44, NOTIFY_INC_EPOCH = 8 };

/* ---- at the start ---- */

void reffs_kernel_init(struct reffs_mount *m, struct fuse_conn_info *conn)
{
	m->keep_s = conn->proto_major == FUSE_KERNEL_VERSION && conn->proto_minor >= EPOCH_MINOR
			    ? KEEP_S
			    : 0;
	conn->max_write = min(conn->max_write, (unsigned)INTAKE_WRITE_MAX);
	/* We apply the umask and drop set-id bits; data comes in plain memory. */
	conn->want |= conn->capable & (FUSE_CAP_DONT_MASK | FUSE_CAP_HANDLE_KILLPRIV |
				       FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_IOCTL_DIR);
	m->setid_ours = session_take_killpriv(&m->session, conn);
	conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
				  FUSE_CAP_SPLICE_MOVE | FUSE_CAP_WRITEBACK_CACHE);
	/* If the kernel does not keep attributes, listing them is of no use. */
	if (!m->keep_s)
		conn->want &= ~(unsigned)(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO);
}

/* ---- what the kernel may keep ---- */

bool reffs_kernel_may_keep_names(struct reffs_mount *m, uint64_t dir)
{
	const void *acl;
	struct reffs_attr a;
	size_t len;

	if (!m->keep_s || vfs_getattr(m->r, dir, &a) || a.type != TREE_DIR)
		return false;
	/* Only root can use the mount, and may search all directories. */
	if (!m->allow_other && !m->owner)
		return true;
	return (a.mode & 0111) == 0111 &&
	       vfs_getxattr(m->r, &reffs_root, dir, "system.posix_acl_access", &acl, &len);
}

/* ---- making the kernel forget ---- */

void reffs_kernel_forget_names(struct reffs_mount *m)
{
	struct fuse_out_header h = { .len = sizeof(h), .error = NOTIFY_INC_EPOCH };

	if (m->keep_s && write(fuse_session_fd(m->session.se), &h, sizeof(h)) < 0)
		log_warn("the kernel does not forget names: %s", strerror(errno));
}

void reffs_kernel_forget_attr(struct reffs_mount *m, uint64_t ino)
{
	if (m->keep_s)
		fuse_lowlevel_notify_inval_inode(m->session.se, ino, -1, 0);
}

/*
 * Waits for listings: a thread that lists a directory holds the directory's lock, which the kernel
 * also takes to forget a name there.
 */
void reffs_kernel_await_listing(struct reffs_mount *m, uint64_t dir)
{
	fuse_lowlevel_notify_inval_entry(m->session.se, dir, ".", 1);
}

void reffs_kernel_forget_file(struct reffs_mount *m, uint64_t ino)
{
	/*
	 * The inode may be gone meanwhile; then the call fails, and the kernel has nothing to
	 * forget. An inode that is read directly has pages as well, in private mappings.
	 */
	fuse_lowlevel_notify_inval_inode(m->session.se, ino, 0, 0);
}
