/* SPDX-License-Identifier: MIT */
/* cmd_umount.c - outage umount: end a mount, and wait until its server has gone. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc.h"
#include "cli/cli.h"
#include "cli/groups.h"
#include "forget/forget_client.h"

enum { FUSERMOUNT_MS = 30000, LOOK_MS = 10, ALONE_MS = 1000 };

/* A descriptor that becomes readable when the server ends; -1 if that is not known. */
static int open_server(const struct forget_place *p, struct forget_client *c)
{
	struct err err = ERR_INIT;

	if (forget_client_open(p, NULL, c, &err))
		return -1;
	return (int)syscall(SYS_pidfd_open, c->server, 0);
}

/* A user's mount is fusermount3's to end. 0 or -errno. */
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

static int say_busy(const struct forget_place *p)
{
	auto_strbuf who = STRBUF_INIT;

	if (!forget_place_users(p, false, &who))
		return cli_failf("%s is busy: something of it is in use; --lazy takes it out of "
				 "sight",
				 p->mnt);
	return cli_failf("%s is busy: it is used by %s; end that, or take it out of sight with "
			 "--lazy",
			 p->mnt, strbuf_str(&who));
}

/* Whether the server ends before `end`. The server writes what is unsynced first. */
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
 * A mount namespace that was made meanwhile has a copy of the mount, and with it the server lives
 * on. If no process uses it there, the server is told to end; that loses nothing, either.
 */
static int end_elsewhere(const struct forget_place *p, int server, uint64_t timeout_ms,
			 uint64_t waited_ms)
{
	auto_strbuf who = STRBUF_INIT;

	if (forget_place_users(p, true, &who))
		return cli_failf("%s is unmounted here, but used in another mount namespace by %s",
				 p->mnt, strbuf_str(&who));
	if (server >= 0)
		syscall(SYS_pidfd_send_signal, server, SIGTERM, NULL, 0);
	if (ends(p, server, util_now_ns() + timeout_ms * 1000000))
		return EXIT_OK;
	return cli_failf("%s is unmounted, but its server has not ended within %g s; it may still "
			 "be writing",
			 p->mnt, (double)(waited_ms + timeout_ms) / 1000);
}

static int wait_for_end(const struct forget_place *p, int server, uint64_t timeout_ms)
{
	uint64_t soon = min(timeout_ms, (uint64_t)ALONE_MS);

	if (ends(p, server, util_now_ns() + soon * 1000000))
		return EXIT_OK;
	return end_elsewhere(p, server, timeout_ms - soon, soon);
}

/* The server has ended. Only here the user reads that not everything could be written. */
static int say_farewell(const struct forget_place *p, const struct forget_client *c)
{
	auto_strbuf why = STRBUF_INIT;

	if (!forget_client_farewell(c, &why))
		return EXIT_OK;
	return cli_failf("%s is unmounted, but %.*s", p->mnt, (int)strcspn(strbuf_str(&why), "\n"),
			 strbuf_str(&why));
}

static int umount_place(const char *mnt, bool lazy, uint64_t timeout_ms)
{
	auto_place p = { 0 };
	struct err err = ERR_INIT;

	if (forget_place_find(mnt, &p, &err))
		return cli_fail(&err);
	if (geteuid() != 0 && geteuid() != p.owner)
		return cli_failf("the mount on %s belongs to user %u; only that user and root may "
				 "unmount it",
				 mnt, (unsigned)p.owner);
	struct forget_client client = { .fd = -1 };
	auto_fd server = open_server(&p, &client);
	int rc = unmount(&p, lazy, &err);
	if (rc == -EBUSY)
		rc = say_busy(&p);
	else if (rc)
		rc = cli_fail(&err);
	/* A lazy server may serve on for processes that have files open. */
	else if (!lazy)
		rc = wait_for_end(&p, server, timeout_ms);
	if (rc == EXIT_OK && !lazy)
		rc = say_farewell(&p, &client);
	forget_client_close(&client);
	return rc;
}

struct options {
	uint64_t timeout_ms;
	bool lazy;
};

#define AT(member) OPT_AT(struct options, member)
static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "MNT", .hint = HINT_MOUNT, .help = "where it is mounted" },
	{ OPT_FLAG, "lazy", 'l', NULL, AT(lazy),
	  .help = "take it out of sight at once; it ends when no process uses it any more" },
	OPTION_TIMEOUT("how long to wait for the server", AT(timeout_ms), .unit = 1000000,
		       .otherwise = "60s", .most = 86400000),
	OPT_END
};

static int run(void *given, struct args *args)
{
	const struct options *o = given;

	if (args->n != 1)
		return cli_usage(&cmd_umount, "one directory is needed");
	return umount_place(args->v[0], o->lazy, o->timeout_ms);
}

const struct command cmd_umount = {
	.name = "umount",
	.summary = "unmount it, and wait until its server has gone",
	.usage = "[OPTIONS] MNT",
	.about = "Unmounts what 'outage mount' mounted. Everything that was written becomes "
		 "durable, as at any unmount ('outage ctl MNT crash' ends a mount and loses it). "
		 "Waits until the server has ended.",
	.status = "0 done, 2 failed: a process uses it (it is named), it is no such mount, or not "
		  "everything could be written",
	.example = "outage umount mnt",
	.options = options,
	.size = sizeof(struct options),
	.run = run,
};
