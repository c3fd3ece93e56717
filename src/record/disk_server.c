/* SPDX-License-Identifier: MIT */
/*
 * disk_server.c - a FUSE file system of one file, the content of a disk, that logs each request.
 *
 * The file is in the path of the kernel's own I/O, and there are two ways to hang the machine. A
 * killed server's exit must not wait for the server: so the server never opens its own file, and
 * the file takes no flush on close (noflush). A server that waits for memory, which the kernel
 * frees by writing to our disk, would wait for itself: so the server declares itself an I/O helper
 * (PR_SET_IO_FLUSHER), its allocations never start I/O, and its memory is locked. If the server
 * hangs all the same, the keeper aborts the connection.
 *
 *	owner ── control pipe ──► keeper ── parent of ──► server ── /dev/fuse
 *
 * The keeper is a process of its own because the owner may be stuck in a system call on the very
 * disk, or dead. When the control pipe closes, the keeper makes sure that the loop device is
 * detached, aborts the connection, ends the server, and exits.
 *
 * One thread serves requests one after the other: the loop driver sends them so, and their order is
 * then certain.
 */
#define FUSE_USE_VERSION 35

#include "record/disk_server.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <linux/falloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/space.h"
#include "core/event.h"
#include "record/loop.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

enum { FILE_INODE = 2, HANG_MS = 10000, LOOK_MS = 250, START_MS = 10000, DETACH_MS = 20 };

/*
 * The mounts are in the server's and the keeper's own mount namespaces, which no other process
 * sees.
 */
#define MOUNT_POINT SPACE_DIR
#define CONTROL_FS  "/sys/fs/fuse/connections"

/* ---- the file ---- */

struct server {
	int memfd;
	uint64_t size;
	const char *name;
	struct disk_log *log;
	unsigned char *buf; /* room for the largest read */
	size_t buf_size;
};

static struct server *server_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static void log_request(struct server *s, enum event_kind kind, uint64_t addr, uint64_t len,
			const void *data, int result)
{
	struct disk_log_record r = { .kind = kind, .result = result, .addr = addr, .len = len };
	bool all = atomic_load(&s->log->watch) == DISK_LOG_REQUESTS;

	if (!all && !event_modifies(kind))
		return;
	if (all && kind == EV_WRITE)
		r.data_len = len;
	disk_log_put(s->log, &r, data);
}

static void busy(struct server *s, bool on)
{
	atomic_store(&s->log->busy, on);
	if (!on)
		atomic_fetch_add(&s->log->served, 1);
}

static struct stat attributes(struct server *s, fuse_ino_t ino)
{
	struct stat st = { .st_ino = ino, .st_nlink = 1 };

	st.st_mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0700 : S_IFREG | 0600;
	if (ino == FILE_INODE) {
		st.st_size = (off_t)s->size;
		st.st_blocks = (blkcnt_t)(s->size / 512);
	}
	return st;
}

static void on_init(void *data, struct fuse_conn_info *conn)
{
	(void)data;
	/* Without splicing, data arrives in plain memory. */
	conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
				  FUSE_CAP_SPLICE_MOVE | FUSE_CAP_WRITEBACK_CACHE);
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct server *s = server_of(req);
	struct fuse_entry_param e = { .ino = FILE_INODE,
				      .attr_timeout = 3600,
				      .entry_timeout = 3600 };

	if (parent != FUSE_ROOT_ID || !streq(name, s->name)) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	e.attr = attributes(s, FILE_INODE);
	fuse_reply_entry(req, &e);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st = attributes(server_of(req), ino);

	(void)fi;
	fuse_reply_attr(req, &st, 3600);
}

static void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		       struct fuse_file_info *fi)
{
	(void)attr;
	if (to_set & FUSE_SET_ATTR_SIZE)
		fuse_reply_err(req, EPERM); /* a disk does not change its size */
	else
		on_getattr(req, ino, fi);
}

static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (ino != FILE_INODE) {
		fuse_reply_err(req, EISDIR);
		return;
	}
	fi->direct_io = 1;
	fi->noflush = 1;
	fuse_reply_open(req, fi);
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct server *s = server_of(req);
	ssize_t n;

	(void)ino;
	(void)fi;
	busy(s, true);
	size = min(size, s->buf_size);
	n = io_pread_full(s->memfd, s->buf, size, off);
	if (n > 0)
		log_request(s, EV_READ, (uint64_t)off, (uint64_t)n, NULL, 0);
	busy(s, false);
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_buf(req, (const char *)s->buf, (size_t)n);
}

static void on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	struct server *s = server_of(req);
	int r = -EFBIG;

	(void)ino;
	(void)fi;
	busy(s, true);
	if (size && (uint64_t)off <= s->size && size <= s->size - (uint64_t)off) {
		r = io_pwrite_full(s->memfd, data, size, off);
		log_request(s, EV_WRITE, (uint64_t)off, size, data, r);
	}
	busy(s, false);
	if (r)
		fuse_reply_err(req, -r);
	else
		fuse_reply_write(req, size);
}

static void on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	(void)fi;
	busy(server_of(req), true);
	log_request(server_of(req), EV_FLUSH, 0, 0, NULL, 0);
	busy(server_of(req), false);
	fuse_reply_err(req, 0);
}

/* Performs the loop driver's discards and write-zeroes, which both leave zeros. */
static void on_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
			 struct fuse_file_info *fi)
{
	struct server *s = server_of(req);
	bool discard = mode & FALLOC_FL_PUNCH_HOLE;
	int r = 0;

	(void)ino;
	(void)fi;
	if (!discard && !(mode & FALLOC_FL_ZERO_RANGE)) {
		fuse_reply_err(req, EOPNOTSUPP);
		return;
	}
	busy(s, true);
	if ((uint64_t)off >= s->size)
		r = -EFBIG;
	else
		len = (off_t)min((uint64_t)len, s->size - (uint64_t)off);
	if (!r && fallocate(s->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len) < 0)
		r = -errno;
	if (!r)
		log_request(s, discard ? EV_DISCARD : EV_ZERO, (uint64_t)off, (uint64_t)len, NULL,
			    0);
	busy(s, false);
	fuse_reply_err(req, -r);
}

static const struct fuse_lowlevel_ops operations = {
	.init = on_init,
	.lookup = on_lookup,
	.getattr = on_getattr,
	.setattr = on_setattr,
	.open = on_open,
	.read = on_read,
	.write = on_write,
	.fsync = on_fsync,
	.fallocate = on_fallocate,
};

static void no_log(enum fuse_log_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
}

/* ---- the processes ---- */

/* Closes all other descriptors: a process that outlives the owner must not keep its files open. */
static void close_others(int keep_a, int keep_b)
{
	int low = min(keep_a, keep_b), high = max(keep_a, keep_b);

	if (low > 3)
		close_range(3, (unsigned)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	close_range((unsigned)high + 1, ~0U, 0);
}

static int serve(struct server *s)
{
	char program[] = "outage-disk", option[] = "-o", options[] = "fsname=outage-disk";
	char *argv[] = { program, option, options, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	struct fuse_session *se;
	int r = space_enter(NULL);

	if (r)
		return r;
	fuse_set_log_func(no_log);
	s->buf_size = 4 << 20;
	s->buf = malloc(s->buf_size);
	se = s->buf ? fuse_session_new(&args, &operations, sizeof(operations), s) : NULL;
	if (!se)
		return -ENOMEM;
	if (fuse_session_mount(se, MOUNT_POINT))
		return -ENODEV;
	memset(s->log->ring, 0, sizeof(s->log->ring)); /* allocate now, not during a write */
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
	mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
	atomic_store(&s->log->server, getpid());
	fuse_session_loop(se);
	return 0;
}

static void write_abort(unsigned connection)
{
	char path[64];

	snprintf(path, sizeof(path), CONTROL_FS "/%u/abort", connection);
	auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "1", 1) < 0)
		return; /* the device is gone already */
}

/* The number of unanswered requests that the kernel has for the server. */
static unsigned waiting(unsigned connection)
{
	char path[64], text[32];
	ssize_t n;

	snprintf(path, sizeof(path), CONTROL_FS "/%u/waiting", connection);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : io_read_full(fd, text, sizeof(text) - 1);
	text[max(n, (ssize_t)0)] = '\0';
	return (unsigned)strtoul(text, NULL, 10);
}

struct quiet {
	uint64_t served;
	unsigned quiet_ms;
};

/* True when requests have been waiting and none was served for too long. */
static bool hangs(struct disk_log *log, struct quiet *p)
{
	unsigned connection = atomic_load(&log->connection);
	uint64_t served = atomic_load(&log->served);

	if (served != p->served || !connection || !waiting(connection))
		p->quiet_ms = 0;
	else
		p->quiet_ms += LOOK_MS;
	p->served = served;
	return p->quiet_ms >= HANG_MS;
}

/*
 * The kernel unmounts a dead owner's mounts with its namespace, which still writes: so the device
 * is detached with its last user, and the server works until then.
 */
static void wait_for_detach(unsigned number)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/block/loop%u/loop/backing_file", number);
	for (unsigned ms = 0; ms < HANG_MS && !access(path, F_OK); ms += DETACH_MS) {
		loop_clear_orphan(number); /* fails while the owner is still exiting */
		util_sleep_ms(DETACH_MS);
	}
}

/* Waits for the end of the owner or the server, or for a hang; then clears up. */
static void keep(int control, pid_t server, struct disk_log *log)
{
	struct pollfd p = { .fd = control };
	struct quiet patience = { 0 };
	bool owner_gone = false;
	unsigned connection, loop;

	while (!owner_gone && !hangs(log, &patience)) {
		if (waitpid(server, NULL, WNOHANG) == server) {
			server = 0;
			break;
		}
		owner_gone = poll(&p, 1, LOOK_MS) > 0;
	}
	connection = atomic_load(&log->connection);
	loop = atomic_load(&log->loop);
	if (owner_gone && loop)
		wait_for_detach(loop - 1);
	if (server) {
		if (connection)
			write_abort(connection);
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
}

static void run_server(int memfd, uint64_t size, const char *name, struct disk_log *log,
		       int control)
{
	struct server s = { .memfd = memfd, .size = size, .name = name, .log = log };
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(control);
	close_others(memfd, memfd);
	r = serve(&s);
	if (r)
		atomic_store(&log->server, r);
	_exit(r != 0);
}

static void run_keeper(int memfd, uint64_t size, const char *name, struct disk_log *log,
		       int control)
{
	pid_t server;

	/*
	 * The keeper leaves the owner's group: a signal that ends the group must not end the
	 * keeper.
	 */
	setpgid(0, 0);
	signal(SIGPIPE, SIG_IGN);
	close_others(memfd, control);
	if (!space_enter(NULL)) {
		/* Mounts of the owner would stay busy here when the owner unmounts them. */
		umount2(MOUNT_POINT, MNT_DETACH);
		mount("fusectl", CONTROL_FS, "fusectl", 0, NULL);
	}
	server = fork();
	if (server == 0)
		run_server(memfd, size, name, log, control);
	close(memfd);
	if (server < 0)
		atomic_store(&log->server, -errno);
	else
		keep(control, server, log);
	_exit(0);
}

static int wait_for_server(struct disk_server *s, struct disk_log *log, const char *name,
			   struct err *err)
{
	int pid = 0;
	struct stat st;

	for (unsigned ms = 0; !pid && ms < START_MS; ms++) {
		pid = atomic_load(&log->server);
		if (!pid)
			util_sleep_ms(1);
	}
	if (pid <= 0)
		return err_set(err, pid ? pid : -ETIMEDOUT,
			       "cannot serve a disk file through FUSE: %m");
	s->path = xasprintf("/proc/%d/root" MOUNT_POINT "/%s", pid, name);
	if (stat(s->path, &st) < 0)
		return err_set(err, -errno, "cannot see the disk file %s: %m", s->path);
	/* The number of a FUSE connection is the minor number of its file system's device. */
	atomic_store(&log->connection, minor(st.st_dev));
	return 0;
}

int disk_server_start(int memfd, uint64_t size, const char *name, struct disk_log *log,
		      struct disk_server *out, struct err *err)
{
	struct disk_server s = { .control = -1 };
	int control[2], r;

	if (pipe2(control, O_CLOEXEC) < 0)
		return err_set(err, -errno, "cannot make a pipe: %m");
	s.keeper = fork();
	if (s.keeper == 0) {
		close(control[1]);
		run_keeper(memfd, size, name, log, control[0]);
	}
	close(control[0]);
	s.control = control[1];
	r = s.keeper < 0 ? err_set(err, -errno, "cannot start the server of a disk file: %m")
			 : wait_for_server(&s, log, name, err);
	if (r) {
		disk_server_stop(&s);
		return r;
	}
	*out = s;
	return 0;
}

void disk_server_stop(struct disk_server *s)
{
	if (s->control >= 0)
		close(s->control);
	s->control = -1;
	if (s->keeper > 0)
		while (waitpid(s->keeper, NULL, 0) < 0 && errno == EINTR)
			;
	s->keeper = 0;
	free(s->path);
	s->path = NULL;
}
