/* SPDX-License-Identifier: MIT */
/*
 * forget_mount.c - the life of a mount that forgets.
 *
 * The server has a guardian, a process that only waits for the server's end. If the server is
 * killed, the guardian unmounts at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <malloc.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "forget/forget_call.h"
#include "forget/forget_place.h"

enum { IDLE_THREADS = 8, MAX_THREADS = 32 };

static void on_init(void *data, struct fuse_conn_info *conn)
{
	struct forget *f = data;

	/* The server applies the umask, so that access control lists work as they do in ROOT. */
	conn->want |=
		conn->capable &
		(FUSE_CAP_DONT_MASK | FUSE_CAP_READDIRPLUS | (f->checked ? FUSE_CAP_POSIX_ACL : 0) |
		 FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_CACHE_SYMLINKS |
		 FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
		 FUSE_CAP_ASYNC_DIO);
	/* The kernel gathers nothing: the n-th write of a program must be the n-th request. */
	conn->want &= ~(unsigned)(FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_SPLICE_READ |
				  FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ATOMIC_O_TRUNC |
				  FUSE_CAP_HANDLE_KILLPRIV);
	session_take_killpriv(&f->session, conn);
}

static const struct fuse_lowlevel_ops operations = {
	.init = on_init,
	.lookup = forget_on_lookup,
	.forget = forget_on_forget,
	.forget_multi = forget_on_forget_multi,
	.access = forget_on_access,
	.getattr = forget_on_getattr,
	.setattr = forget_on_setattr,
	.readlink = forget_on_readlink,
	.mknod = forget_on_mknod,
	.mkdir = forget_on_mkdir,
	.unlink = forget_on_unlink,
	.rmdir = forget_on_rmdir,
	.symlink = forget_on_symlink,
	.rename = forget_on_rename,
	.link = forget_on_link,
	.open = forget_on_open,
	.read = forget_on_read,
	.write = forget_on_write,
	.flush = forget_on_flush,
	.release = forget_on_release,
	.fsync = forget_on_fsync,
	.opendir = forget_on_opendir,
	.readdir = forget_on_readdir,
	.readdirplus = forget_on_readdirplus,
	.releasedir = forget_on_releasedir,
	.fsyncdir = forget_on_fsyncdir,
	.statfs = forget_on_statfs,
	.setxattr = forget_on_setxattr,
	.getxattr = forget_on_getxattr,
	.listxattr = forget_on_listxattr,
	.removexattr = forget_on_removexattr,
	.create = forget_on_create,
	.fallocate = forget_on_fallocate,
	.lseek = forget_on_lseek,
};

/* ---- the guardian ---- */

/*
 * Unmounts with the lock of ROOT, so that the next mount of ROOT comes before or after all of this,
 * and is not unmounted instead. ROOT may be moved meanwhile: `root_at` is its descriptor.
 */
static int clear_away(const struct guardian_task *t, int root_at)
{
	auto_fd fd = openat(root_at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct forget *f = t->ctx;
	struct err err = ERR_INIT;
	int rc = fd < 0 ? -errno : forget_root_lock(fd, f->root_path, true, &err);

	guardian_unmount(t->mnt);
	/* After an error the next mount reports the reason. */
	return rc ? rc : min(forget_recover_locked(fd, f->root_path, &err), 0);
}

static int start_guardian(struct forget *f, struct err *err)
{
	const struct guardian_task t = {
		.mnt = f->mnt_path, .fd = f->root_fd, .clear = clear_away, .ctx = f
	};

	return guardian_start(&f->guardian, &t, err);
}

/* ---- mounting ---- */

static int add_option(struct fuse_args *args, const char *option)
{
	return fuse_opt_add_arg(args, "-o") || fuse_opt_add_arg(args, option);
}

/* True in the first user namespace, whose number is the same on every Linux. */
static bool in_first_user_namespace(void)
{
	struct stat st;

	return !stat("/proc/self/ns/user", &st) && st.st_ino == 0xEFFFFFFDU;
}

static bool ignores_modes(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	return !syscall(SYS_capget, &head, data) && (data[0].effective & 1U << CAP_DAC_OVERRIDE);
}

/*
 * True if the kernel checks permissions. For that it needs a directory's attributes, which it asks
 * for after each change of the directory: one more request for every name that is made or removed.
 * If only root uses the mount, there is nothing to check: ROOT's file system refuses what root may
 * not do. A user who is alone may do what ROOT allows the server, but the kernel does not ask about
 * names that it knows already. In a user namespace the kernel takes access control lists only if it
 * obeys them.
 */
static bool is_checked(const struct forget_opts *o)
{
	for (size_t i = 0; o->fuse_options && o->fuse_options[i]; i++)
		if (strstr(o->fuse_options[i], "default_permissions"))
			return true;
	return o->allow_other || geteuid() || !in_first_user_namespace() || !ignores_modes();
}

static int session_args(struct forget *f, struct fuse_args *args)
{
	const char *subtype = f->opts.subtype ? f->opts.subtype : "outage";
	auto_free char *names = xasprintf("fsname=%s,subtype=%s", f->fsname, subtype);
	int rc = fuse_opt_add_arg(args, "outage") || add_option(args, names);

	if (!rc && f->checked)
		rc = add_option(args, "default_permissions");
	if (!rc && f->opts.allow_other)
		rc = add_option(args, "allow_other");
	for (size_t i = 0; !rc && f->opts.fuse_options && f->opts.fuse_options[i]; i++)
		rc = add_option(args, f->opts.fuse_options[i]);
	return rc;
}

/*
 * Refuses options that let other users in: without the kernel's checks, the server would do for any
 * user what the server may do itself.
 */
static int check_options(const struct forget_opts *o, struct err *err)
{
	static const char *const opens[] = { "allow_other", "allow_root" };

	for (size_t i = 0; o->fuse_options && o->fuse_options[i]; i++)
		for (size_t k = 0; k < ARRAY_SIZE(opens); k++) {
			const char *at = strstr(o->fuse_options[i], opens[k]);

			if (at)
				return err_set(
					err, -EINVAL,
					"'-o %s' is not taken; --allow-other lets others in, "
					"and has the kernel check what they may do",
					opens[k]);
		}
	return 0;
}

static int mount_session(struct forget *f, struct err *err)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	int rc = session_args(f, &args);

	if (!rc)
		rc = session_open(&f->session, &args, &operations, f->mnt_path, err);
	else
		err_set(err, rc, "out of memory");
	fuse_opt_free_args(&args);
	return rc;
}

/* Refuses a ROOT that is a mount of ours: the user means the directory below the mount. */
static int check_root(const char *root, struct err *err)
{
	auto_place place = { 0 };
	struct err none = ERR_INIT;

	if (forget_place_find(root, &place, &none))
		return 0;
	return err_set(err, -EPERM,
		       "ROOT %s is a mount of outage itself; give the directory below it, or one "
		       "inside of it",
		       root);
}

int forget_stash_open(struct forget *f, struct err *err)
{
	int rc;

	if (f->stash_fd >= 0)
		return 0;
	if (mkdirat(f->root_fd, STASH_NAME, 0700) && errno != EEXIST)
		return err_set(err, -errno, "cannot make %s/" STASH_NAME ": %m", f->root_path);
	auto_fd fd =
		openat(f->root_fd, STASH_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "cannot open %s/" STASH_NAME ": %m", f->root_path);
	rc = forget_stash_check(fd, f->root_path, err);
	if (rc)
		return rc;
	auto_owned(&f->tree.lock); /* a look at ROOT leaves the stash out */
	f->stash_fd = steal_fd(&fd);
	return 0;
}

static int open_root(struct forget *f, struct err *err)
{
	struct node *root = &f->tree.root;
	struct statvfs fs;
	struct stat st;
	int rc;

	rc = check_root(f->root_path, err);
	if (rc)
		return rc;
	f->root_fd = open(f->root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->root_fd < 0 || fstat(f->root_fd, &st) || fstatvfs(f->root_fd, &fs))
		return err_set(err, -errno, "cannot open %s: %m", f->root_path);
	rc = forget_root_lock(f->root_fd, f->root_path, true, err);
	if (rc)
		return rc;
	rc = forget_recover_locked(f->root_fd, f->root_path, err);
	if (rc < 0)
		return rc;
	if (rc)
		forget_log(f,
			   "%s: a server was killed on the way back to a snapshot; ROOT is the "
			   "snapshot",
			   f->root_path);
	f->dev = root->dev = st.st_dev;
	root->ino = root->root_ino = st.st_ino;
	f->counts_dirs = st.st_nlink > 1;
	f->name_max = fs.f_namemax;
	/* Changes that wait must be possible later. */
	if (faccessat(f->root_fd, ".", W_OK, AT_EACCESS))
		return err_set(err, -errno, "cannot write to %s: %m", f->root_path);
	/* There may be snapshots of an earlier mount. */
	rc = faccessat(f->root_fd, STASH_NAME, F_OK, 0) ? 0 : forget_stash_open(f, err);
	return min(rc, 0);
}

static void forget_init(struct forget *f, const struct forget_opts *opts, struct inject *faults)
{
	pthread_rwlockattr_t attr;

	*f = (struct forget){ .opts = *opts,
			      .root_fd = -1,
			      .stash_fd = -1,
			      .guardian = GUARDIAN_NONE,
			      .faults = faults };
	f->fsname = xstrdup(opts->subtype ? opts->subtype : "outage");
	/* A power cut must not wait until there are no requests. */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&f->gate, &attr);
	pthread_rwlockattr_destroy(&attr);
	pthread_mutex_init(&f->wait_lock, NULL);
	pthread_cond_init(&f->wait_cond, NULL);
	pthread_mutex_init(&f->command, NULL);
	f->since_ns = forget_clock_ns();
	f->checked = is_checked(opts);
	forget_tree_init(f);
	forget_redo_open(f);
	for (size_t i = 0; i < DATA_LOCKS; i++)
		owned_init(&f->data_locks[i]);
}

/* Returns an absolute path without symbolic links, for root_path or mnt_path. */
static char *full_path(const char *path, struct err *err)
{
	char *full = realpath(path, NULL);
	struct stat st;

	if (!full) {
		err_set(err, -errno, "cannot use %s: %m", path);
		return NULL;
	}
	if (stat(full, &st) || !S_ISDIR(st.st_mode)) {
		err_set(err, -ENOTDIR, "cannot use %s: it is no directory", path);
		free(full);
		return NULL;
	}
	return full;
}

static int mount_all(struct forget *f, struct err *err)
{
	int rc;

	f->root_path = full_path(f->opts.root, err);
	f->mnt_path = f->root_path ? full_path(f->opts.mnt, err) : NULL;
	if (!f->mnt_path)
		return err->code;
	rc = forget_fds_init(f, f->opts.threads ? f->opts.threads : MAX_THREADS, err);
	if (!rc)
		rc = open_root(f, err);
	if (!rc)
		rc = pagecache_new(&f->opts.cache, &f->cache, err);
	if (!rc) /* data that waits for a name has no bound: no file could take it */
		rc = pagecache_new(
			&(struct pagecache_opts){ .page_size = f->opts.cache.page_size,
						  .block_size = f->opts.cache.block_size },
			&f->shadows, err);
	if (!rc)
		rc = forget_trace_open(f, err);
	if (!rc)
		rc = start_guardian(f, err);
	return rc ? rc : mount_session(f, err);
}

int forget_mount(const struct forget_opts *opts, struct inject *faults, struct forget **out,
		 struct err *err)
{
	struct forget *f = xmalloc(sizeof(*f));
	int rc;

	forget_init(f, opts, faults);
	rc = check_options(opts, err);
	if (!rc)
		rc = mount_all(f, err);
	if (rc)
		forget_free(f);
	else
		*out = f;
	return rc;
}

/* ---- serving ---- */

static void nothing(int sig)
{
	(void)sig;
}

/* Ignores signals: a second one of an impatient user must not prevent the unmount. */
static void ignore_signals(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

/*
 * Makes threads share their memory. Waiting operations are many small pieces, allocated by any
 * thread; the C library grows a thread's own memory by single pages, with a system call for each,
 * and shared memory in larger steps.
 */
static void share_memory(void)
{
	mallopt(M_ARENA_MAX, 1);
}

static int serve_loop(struct forget *f)
{
	struct sigaction wake = { .sa_handler = nothing }, old;
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int rc;

	sigaction(SIGUSR2, &wake, &old);
	share_memory();
	f->server = pthread_self();
	f->serving = true;
	fuse_loop_cfg_set_idle_threads(config, min((unsigned)IDLE_THREADS, f->threads));
	fuse_loop_cfg_set_max_threads(config, f->threads);
	fuse_loop_cfg_set_clone_fd(config, 1);
	rc = f->dead ? 0 : fuse_session_loop_mt(f->session.se, config);
	pthread_mutex_lock(&f->wait_lock);
	f->serving = false;
	pthread_mutex_unlock(&f->wait_lock);
	if (f->has_waker)
		pthread_join(f->waker, NULL);
	fuse_loop_cfg_destroy(config);
	sigaction(SIGUSR2, &old, NULL);
	return rc;
}

bool forget_root_is_there(const struct forget *f)
{
	struct stat st;

	return !fstat(f->root_fd, &st) && st.st_nlink > 0;
}

char *forget_root_now(const struct forget *f)
{
	char path[PATH_MAX];
	ssize_t n = readlink(fd_path(f->root_fd).text, path, sizeof(path) - 1);

	if (n <= 0 || !forget_root_is_there(f))
		return NULL;
	path[n] = '\0';
	return streq(path, f->root_path) ? NULL : xstrdup(path);
}

/* ---- every second ---- */

/* Ends the mount if ROOT was removed: an open directory causes no event. True if it was. */
static bool end_without_root(struct forget *f)
{
	if (forget_root_is_there(f))
		return false;
	forget_log(f, "ROOT %s was taken away; the mount ends", f->root_path);
	forget_stop(f);
	return true;
}

/* Logs, once, that ROOT was moved, and is used at its new place. True if it was. */
static bool say_if_moved(struct forget *f)
{
	auto_free char *now = forget_root_now(f);

	if (now)
		forget_log(f, "ROOT %s was moved, and is used where it is now: %s", f->root_path,
			   now);
	return now;
}

static void *tick(void *arg)
{
	struct forget *f = arg;
	struct timespec until;
	bool ended = false, moved = false;

	pthread_mutex_lock(&f->wait_lock);
	while (f->ticking) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&f->wait_cond, &f->wait_lock, &until);
		pthread_mutex_unlock(&f->wait_lock);
		forget_trace_hand_over(f);
		ended = ended || end_without_root(f);
		moved = moved || say_if_moved(f);
		pthread_mutex_lock(&f->wait_lock);
	}
	pthread_mutex_unlock(&f->wait_lock);
	return NULL;
}

static void start_ticking(struct forget *f)
{
	f->ticking = true;
	if (pthread_create(&f->ticker, NULL, tick, f))
		f->ticking = false;
}

static void stop_ticking(struct forget *f)
{
	bool was;

	pthread_mutex_lock(&f->wait_lock);
	was = f->ticking;
	f->ticking = false;
	pthread_cond_broadcast(&f->wait_cond);
	pthread_mutex_unlock(&f->wait_lock);
	if (was)
		pthread_join(f->ticker, NULL);
}

int forget_serve(struct forget *f, enum forget_end *end, struct err *err)
{
	int rc, sync = 0;

	start_ticking(f);
	rc = serve_loop(f);
	stop_ticking(f);

	ignore_signals();
	/* Waiting requests get an error first. */
	if (f->dead && f->session.mounted) {
		fuse_session_unmount(f->session.se);
		f->session.mounted = false;
	}
	if (!f->dead) {
		pthread_rwlock_wrlock(&f->gate);
		sync = forget_sync_all(f);
		pthread_rwlock_unlock(&f->gate);
	}
	*end = f->dead				    ? FORGET_CRASHED
	       : !forget_root_is_there(f) || rc < 0 ? FORGET_LOST
	       : rc > 0				    ? FORGET_SIGNAL
						    : FORGET_UNMOUNTED;
	if (f->session.mounted)
		fuse_session_unmount(f->session.se);
	f->session.mounted = false;
	rc = forget_trace_close(f, err);
	if (!rc && sync)
		rc = err_set(err, sync, "not everything could be written to %s: %s", f->root_path,
			     strerror(-sync));
	return rc;
}

void forget_free(struct forget *f)
{
	if (!f)
		return;
	session_close(&f->session);
	trace_writer_free(f->trace);
	forget_redo_close(f);
	forget_dir_release_all(f);
	forget_tree_release(f);
	pagecache_free(f->cache);
	pagecache_free(f->shadows);
	if (f->stash_fd >= 0) /* unless it has snapshots */
		unlinkat(f->root_fd, STASH_NAME, AT_REMOVEDIR);
	guardian_dismiss(&f->guardian);
	util_close(f->stash_fd);
	util_close(f->root_fd); /* frees the lock, too */
	inject_free(f->faults);
	for (size_t i = 0; i < DATA_LOCKS; i++)
		owned_release(&f->data_locks[i]);
	owned_release(&f->log_lock);
	pthread_rwlock_destroy(&f->gate);
	pthread_mutex_destroy(&f->wait_lock);
	pthread_cond_destroy(&f->wait_cond);
	pthread_mutex_destroy(&f->command);
	free(f->root_path);
	free(f->mnt_path);
	free(f->fsname);
	free(f);
}
