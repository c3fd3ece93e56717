/* SPDX-License-Identifier: MIT */
/* forget_umount.c - ends a mount, and waits until its server has ended. */
#include "forget/forget_umount.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc.h"
#include "forget/forget_client.h"

enum { FUSERMOUNT_MS = 30000, LOOK_MS = 10, ALONE_MS = 1000 };

/* Opens a descriptor that becomes readable when the server ends; -1 if the server is unknown. */
static int open_server(const struct forget_place *p, struct forget_client *c)
{
	struct err err = ERR_INIT;

	if (forget_client_open(p, NULL, c, &err))
		return -1;
	return (int)syscall(SYS_pidfd_open, c->server, 0);
}

/* Ends a user's mount with fusermount3. Returns 0 or -errno. */
static int run_fusermount(const struct forget_place *p, bool lazy, struct err *err)
{
	const char *argv[] = { "fusermount3", lazy ? "-uz" : "-u", "--", p->mnt, NULL };
	struct proc_opts opts = { .argv = argv, .timeout_ms = FUSERMOUNT_MS, .merge_stderr = true };
	struct proc_result res = { 0 };
	int rc = proc_run(&opts, &res, err);

	if (!rc && res.exit_code != 0) {
		const char *said = strbuf_str(&res.out);

		rc = strstr(said, "busy")
			     ? -EBUSY
			     : err_set(err, -EIO, "fusermount3 cannot unmount %s: %.*s", p->mnt,
				       (int)strcspn(said, "\n"), said);
	}
	proc_result_release(&res);
	return rc;
}

static int unmount(const struct forget_place *p, bool lazy, struct err *err)
{
	if (geteuid() != 0)
		return run_fusermount(p, lazy, err);
	if (umount2(p->mnt, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
		return 0;
	return errno == EBUSY ? -EBUSY : err_set(err, -errno, "cannot unmount %s: %m", p->mnt);
}

static int busy(const struct forget_place *p, struct err *err)
{
	auto_strbuf who = STRBUF_INIT;

	if (!forget_place_users(p, false, &who))
		return err_set(
			err, -EBUSY,
			"%s is busy: something of it is in use; --lazy takes it out of sight",
			p->mnt);
	return err_set(
		err, -EBUSY,
		"%s is busy: it is used by %s; end that, or take it out of sight with --lazy",
		p->mnt, strbuf_str(&who));
}

/* True if the server ends before `end`. The server writes unsynced data first. */
static bool ends(const struct forget_place *p, int server, uint64_t end)
{
	struct pollfd fd = { .fd = server, .events = POLLIN };
	uint64_t now;

	while (forget_place_is_mounted(p) && util_now_ns() < end)
		util_sleep_ms(LOOK_MS);
	if (server < 0)
		return !forget_place_is_mounted(p);
	now = util_now_ns();
	return poll(&fd, 1, now < end ? (int)((end - now) / 1000000) + 1 : 0) == 1;
}

/*
 * Ends the server that lives on because a mount namespace that was made meanwhile has a copy of the
 * mount. If no process uses the copy, the server is told to end, without any loss.
 */
static int end_elsewhere(const struct forget_place *p, int server, uint64_t timeout_ms,
			 uint64_t waited_ms, struct err *err)
{
	auto_strbuf who = STRBUF_INIT;

	if (forget_place_users(p, true, &who))
		return err_set(err, -EBUSY,
			       "%s is unmounted here, but used in another mount namespace by %s",
			       p->mnt, strbuf_str(&who));
	if (server >= 0)
		syscall(SYS_pidfd_send_signal, server, SIGTERM, NULL, 0);
	if (ends(p, server, util_now_ns() + timeout_ms * 1000000))
		return 0;
	return err_set(err, -ETIMEDOUT,
		       "%s is unmounted, but its server has not ended within %g s; it may still be "
		       "writing",
		       p->mnt, (double)(waited_ms + timeout_ms) / 1000);
}

static int wait_for_end(const struct forget_place *p, int server, uint64_t timeout_ms,
			struct err *err)
{
	uint64_t soon = min(timeout_ms, (uint64_t)ALONE_MS);

	if (ends(p, server, util_now_ns() + soon * 1000000))
		return 0;
	return end_elsewhere(p, server, timeout_ms - soon, soon, err);
}

/* Tells the user, who reads it only here, that the server could not write everything. */
static int farewell(const struct forget_place *p, const struct forget_client *c, struct err *err)
{
	auto_strbuf why = STRBUF_INIT;

	if (!forget_client_farewell(c, &why))
		return 0;
	return err_set(err, -EIO, "%s is unmounted, but %.*s", p->mnt,
		       (int)strcspn(strbuf_str(&why), "\n"), strbuf_str(&why));
}

int forget_umount(const char *mnt, bool lazy, uint64_t timeout_ms, struct err *err)
{
	auto_place p = { 0 };
	int rc = forget_place_find(mnt, &p, err);

	if (rc)
		return rc;
	if (geteuid() != 0 && geteuid() != p.owner)
		return err_set(err, -EPERM,
			       "the mount on %s belongs to user %u; only that user and root may "
			       "unmount it",
			       mnt, (unsigned)p.owner);
	struct forget_client client = { .fd = -1 };
	auto_fd server = open_server(&p, &client);
	rc = unmount(&p, lazy, err);
	if (rc == -EBUSY)
		busy(&p, err);
	/* After a lazy unmount the server may serve processes that have files open. */
	if (!rc && !lazy)
		rc = wait_for_end(&p, server, timeout_ms, err);
	if (!rc && !lazy)
		rc = farewell(&p, &client, err);
	forget_client_close(&client);
	return rc;
}
