/* SPDX-License-Identifier: MIT */
/*
 * fuse.c - user-space file systems that live on a disk file: "fuse:COMMAND {disk} {mnt}".
 *
 * A shell runs the command, which must stay in the foreground; {disk} is the recorded file, {mnt}
 * the place to mount. The target waits until something is mounted there, and again until the
 * command has ended after the unmount.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/scratch.h"
#include "target/server.h"
#include "target/target.h"

enum { SIZE_DEFAULT = 16 << 20, POLL_US = 500 };

/*
 * Adds a program's output with the name that the user gave, as the disk has another path each time.
 */
static void add_said(struct strbuf *said, const char *text, const char *disk)
{
	size_t n = strlen(disk);

	for (const char *p; (p = strstr(text, disk)); text = p + n) {
		strbuf_add(said, text, (size_t)(p - text));
		strbuf_adds(said, "{disk}");
	}
	strbuf_adds(said, text);
}

static int run_shell(const struct target *t, const char *command, const char *disk, int *status,
		     struct strbuf *said, struct err *err)
{
	auto_free char *line = server_command(command, disk, t->mnt);
	const char *argv[] = { "/bin/sh", "-c", line, NULL };
	struct proc_opts opts = { .argv = argv,
				  .timeout_ms = t->opts.timeout_ms,
				  .merge_stderr = true };
	struct proc_result res;
	int rc = proc_run(&opts, &res, err);

	if (rc)
		return rc;
	*status = res.exit_code;
	add_said(said, strbuf_str(&res.out), disk);
	if (res.exit_code < 0)
		proc_describe(&res, &opts, said);
	proc_result_release(&res);
	return 0;
}

static int fuse_open(struct target *t, const struct target_opts *opts, struct err *err)
{
	const char *colon = strchr(opts->spec, ':');

	if (!colon || !strstr(colon, "{disk}") || !strstr(colon, "{mnt}"))
		return err_set(err, -EINVAL, "a FUSE target is 'fuse:COMMAND {disk} {mnt}'");
	if (!opts->mkfs)
		return err_set(err, -EINVAL, "a FUSE target needs --mkfs 'COMMAND {disk}'");
	t->command = xstrdup(colon + 1);
	if (!t->opts.size)
		t->opts.size = SIZE_DEFAULT;
	int rc = disk_open(opts->recorder ? opts->recorder : "fuse", t->opts.size, &t->disk, err);
	if (!rc && !disk_file(t->disk))
		rc = err_set(err, -EINVAL, "recorder %s has no file for a FUSE target; use fuse",
			     disk_recorder(t->disk));
	return rc;
}

static int fuse_mkfs(struct target *t, struct image *out, struct err *err)
{
	auto_strbuf said = STRBUF_INIT;
	auto_free char *path = NULL;
	auto_fd fd = scratch_file(t->opts.size, &path, err);
	int status = 0;

	if (fd < 0)
		return fd;
	int rc = run_shell(t, t->opts.mkfs, path, &status, &said, err);
	if (!rc && status)
		rc = err_set(err, -EINVAL, "mkfs of %llu bytes failed (--mkfs, --size): %.*s",
			     (unsigned long long)t->opts.size,
			     (int)strcspn(strbuf_str(&said), "\n"), strbuf_str(&said));
	if (!rc)
		rc = image_load_fd(fd, path, out, err);
	unlink(path);
	return rc;
}

static int start_server(struct target *t, struct err *err)
{
	auto_free char *line = server_command(t->command, disk_file(t->disk), t->mnt);

	return server_start(line, &t->server, err);
}

static int fuse_mount(struct target *t, struct strbuf *said, struct err *err)
{
	struct stat before, now;
	int rc = stat(t->mnt, &before) < 0 ? err_set(err, -errno, "cannot look at %s: %m", t->mnt)
					   : start_server(t, err);

	if (rc)
		return rc;
	for (uint64_t us = 0; us < t->opts.timeout_ms * 1000; us += POLL_US) {
		int status;

		if (server_has_mounted(t->mnt, &before)) {
			t->root = open(t->mnt, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (t->root >= 0 && fstat(t->root, &now) == 0)
				return 0;
			strbuf_addf(said, "it is mounted, but its root cannot be opened: %m\n");
			umount2(t->mnt, MNT_DETACH);
			util_close(steal_fd(&t->root));
			server_reap(&t->server, 0);
			return 1;
		}
		if (waitpid(t->server, &status, WNOHANG) == t->server) {
			t->server = 0;
			status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
			strbuf_addf(said,
				    "the server ended with status %d%s before it had mounted\n",
				    status, status == 127 ? " (no such program)" : "");
			return 1;
		}
		usleep(POLL_US);
	}
	umount2(t->mnt, MNT_DETACH);
	server_reap(&t->server, 0);
	strbuf_addf(said, "nothing was mounted within %llu ms\n",
		    (unsigned long long)t->opts.timeout_ms);
	return 1;
}

static int fuse_umount(struct target *t, bool clean, struct err *err)
{
	(void)clean;
	util_close(steal_fd(&t->root));
	for (int tries = 0; umount2(t->mnt, 0) < 0; tries++) {
		if (errno == EINVAL)
			break; /* the server is gone, and its mount with it */
		if (tries == 200) {
			umount2(t->mnt, MNT_DETACH);
			server_reap(&t->server, 0);
			return err_set(err, -EBUSY, "cannot unmount %s: %m", t->mnt);
		}
		usleep(2000);
	}
	server_reap(&t->server, 10000);
	return 0;
}

static int fuse_recover(struct target *t, struct strbuf *said, struct err *err)
{
	int status = 0;

	if (!t->opts.recover)
		return 0;
	int rc = run_shell(t, t->opts.recover, disk_file(t->disk), &status, said, err);
	/* As for e2fsck, 1 to 3 mean repaired, more means not: see outage-test(1). */
	return rc ? rc : status < 0 || status > 3;
}

static int fuse_fsck(struct target *t, struct strbuf *said, struct err *err)
{
	int status = 0;

	if (!t->opts.fsck)
		return 0;
	int rc = run_shell(t, t->opts.fsck, disk_file(t->disk), &status, said, err);
	return rc ? rc : status != 0;
}

static void fuse_close(struct target *t)
{
	if (t->server) {
		umount2(t->mnt, MNT_DETACH);
		server_reap(&t->server, 0);
	}
}

static const char *const lost_found[] = { "lost+found", NULL };

const struct target_ops target_fuse = {
	.name = "fuse",
	.help = "a user-space file system: 'fuse:COMMAND {disk} {mnt}', with --mkfs",
	.guarantee = "linux",
	.ignore = lost_found,
	.needs_root = true,
	.deaf_to_sync = true,
	.open = fuse_open,
	.mkfs = fuse_mkfs,
	.recover = fuse_recover,
	.mount = fuse_mount,
	.umount = fuse_umount,
	.fsck = fuse_fsck,
	.close = fuse_close,
};
