/* SPDX-License-Identifier: MIT */
/* reffs_mount.c - mounts, serves and unmounts a reference file system. */
#include "fsmount/reffs_mount.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "fsmount/reffs_server.h"

/* Idle threads that are kept: starting a thread is expensive, and it is needed again soon. */
enum { IDLE_THREADS = 10 };

/* The kernel does not apply this sysctl to a FUSE mount. */
static int protected_hardlinks(void)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	return io_slurp("/proc/sys/fs/protected_hardlinks", 64, &text, &err)
		       ? 0
		       : atoi(strbuf_str(&text));
}

static int load_first(struct reffs_mount *m, const struct reffs_mount_opts *opts, struct err *err)
{
	int rc;

	if (!opts->load)
		return 0;
	rc = reffs_load_file(m->r, &m->pool, opts->load, err);
	if (rc)
		return rc;
	struct reffs_state *s = reffs_pool_get(&m->pool, opts->key);
	if (!s)
		return err_set(err, -ENOENT, "%s has no state under the key %llu", opts->load,
			       (unsigned long long)opts->key);
	reffs_restore(m->r, s);
	return 0;
}

static int mount_session(struct reffs_mount *m, const char *dir, bool allow_other, struct err *err)
{
	char program[] = "outage", option[] = "-o", other[] = "allow_other";
	char name[] = "fsname=reffs,subtype=outage";
	char *argv[] = { program, option, name, option, other, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(allow_other ? 5 : 3, argv);
	auto_free char *mnt = realpath(dir, NULL);
	const struct guardian_task t = { .mnt = mnt, .fd = -1 };
	int rc = mnt ? guardian_start(&m->guardian, &t, err)
		     : err_set(err, -errno, "cannot mount on %s: %m", dir);

	if (!rc)
		rc = session_open(&m->session, &args, &reffs_operations, dir, err);
	fuse_opt_free_args(&args);
	return rc;
}

int reffs_mount_new(const char *dir, const struct reffs_mount_opts *opts, struct reffs_mount **out,
		    struct err *err)
{
	struct reffs_opts fs = opts->fs;
	struct reffs_mount *m;
	struct stat st;
	int rc;

	if (stat(dir, &st) < 0)
		return err_set(err, -errno, "cannot mount on %s: %m", dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "cannot mount on %s: it is no directory", dir);
	m = xcalloc(1, sizeof(*m));
	m->direct = opts->direct;
	m->allow_other = opts->allow_other;
	m->owner = geteuid();
	m->session.receive = reffs_intake_receive;
	m->guardian = GUARDIAN_NONE;
	pthread_mutex_init(&m->lock, NULL);
	fs.protect_hardlinks = protected_hardlinks();
	m->r = reffs_new(&fs);
	rc = load_first(m, opts, err);
	reffs_new_numbers(m);
	if (!rc)
		rc = mount_session(m, dir, opts->allow_other, err);
	if (rc)
		reffs_mount_free(m);
	else
		*out = m;
	return rc;
}

int reffs_mount_detach(struct reffs_mount *m, struct err *err)
{
	(void)m;
	if (fuse_daemonize(0) < 0)
		return err_set(err, -EIO, "cannot go into the background: %s", session_words());
	return 0;
}

/* Ignores signals: a second one from an impatient user must not prevent unmounting. */
static void ignore_signals(void)
{
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

int reffs_mount_serve(struct reffs_mount *m, struct err *err)
{
	struct fuse_loop_config *config;
	int rc;

	config = fuse_loop_cfg_create();
	if (!config)
		return err_set(err, -ENOMEM, "out of memory");
	fuse_loop_cfg_set_idle_threads(config, IDLE_THREADS);
	/* Each thread gets a descriptor of its own, and does not wait for the lock of others. */
	fuse_loop_cfg_set_clone_fd(config, 1);
	rc = fuse_session_loop_mt(m->session.se, config);
	ignore_signals();
	fuse_loop_cfg_destroy(config);
	/* A positive result is the number of a signal, which is no error. */
	return rc < 0 ? err_set(err, rc, "cannot serve the mount: %s", strerror(-rc)) : 0;
}

void reffs_mount_free(struct reffs_mount *m)
{
	if (!m)
		return;
	session_close(&m->session);
	guardian_dismiss(&m->guardian);
	while (m->listings) { /* after a forced unmount the kernel closes nothing */
		struct reffs_listing *l = m->listings;

		m->listings = l->next;
		vfs_dir_release(&l->dir);
		free(l);
	}
	reffs_free(m->r);
	reffs_pool_release(&m->pool);
	vec_release(&m->open);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
