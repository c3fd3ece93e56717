/* SPDX-License-Identifier: MIT */
/*
 * guest.c - starts the processes of a guest and their keeper, and serves its disks during
 * questions.
 */
#include "guest/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/owner.h"
#include "base/patience.h"
#include "base/proc.h"
#include "record/vhost_disk.h"
#include "guest/guest_end.h"
#include "guest/guest_words.h"
#include "check/kmsg.h"
#include "base/scratch.h"

enum {
	BLOCK_LINES = 64, /* the longest complaint, if no end is found */
	LAST_BYTES = 4096,
	LAST_WORDS = 300,
	LINE_MAX_BYTES = 4096,
	COMPLAINTS_MAX = 256 << 10,
	LISTEN_MAX = 128 << 10, /* more than the pipe holds: all earlier output */
	POLL_SLICE_MS = 1000,
	END_MS = 5000, /* without the time in which it waits for a processor */
	END_NAP_MS = 5,
	SETTLE_NS = 4000000,
	SETTLE_TRIES = 10000,
};

void guest_init(struct guest *g, struct disk *disk, struct strbuf *complaints)
{
	*g = (struct guest){ .device_of_disk =
				     disk_kind(disk) == DISK_BLOCK ? vhost_disk_device(disk) : NULL,
			     .complaints = complaints,
			     .pidfd = -1,
			     .console = -1,
			     .keep = -1,
			     .keeper_fd = -1,
			     .monitor = -1 };
	vhost_mail_init(&g->mail, MAIL_ID, MAIL_BYTES, MAIL_COMMANDS, MAIL_ANSWERS, WIRE_MAX);
}

void guest_release(struct guest *g)
{
	guest_stop(g);
	vhost_mail_release(&g->mail);
	wire_release(&g->out);
	strbuf_release(&g->line);
	strbuf_release(&g->last);
	strbuf_release(&g->said);
}

bool guest_runs(const struct guest *g)
{
	return g->pid != 0;
}

/* ---- the console ---- */

static void keep_last(struct guest *g)
{
	if (g->last.len > LAST_BYTES)
		strbuf_clear(&g->last);
	strbuf_addf(&g->last, "%s\n", strbuf_str(&g->line));
}

const char *guest_last_words(struct guest *g)
{
	while (g->last.len && g->last.buf[g->last.len - 1] == '\n')
		strbuf_cut(&g->last, g->last.len - 1);
	for (size_t i = 0; i < g->last.len; i++)
		if (g->last.buf[i] == '\n')
			g->last.buf[i] = '|';
	const char *said = strbuf_str(&g->last);
	size_t n = strlen(said);

	return n > LAST_WORDS ? said + n - LAST_WORDS : said;
}

void guest_hush(struct guest *g)
{
	guest_listen(g);
	strbuf_clear(&g->last);
}

static bool is_of_disk(const struct guest *g, const char *line)
{
	return *g->device && !g->quiet_of_device && kmsg_complains(line, g->device);
}

static void take_line(struct guest *g)
{
	const char *line = strbuf_str(&g->line);
	bool bug = kmsg_complains(line, NULL);

	log_debug("guest: %s", line);
	keep_last(g);
	g->heard |= guest_words(line);
	if (bug)
		g->collecting = BLOCK_LINES;
	if ((g->collecting || is_of_disk(g, line)) && g->said.len < COMPLAINTS_MAX)
		strbuf_addf(&g->said, "%s\n", line);
	g->collecting -= g->collecting > 0;
	if (strstr(line, "---[ end trace") || strstr(line, "---[ end Kernel panic"))
		g->collecting = 0;
	strbuf_clear(&g->line);
}

void guest_listen(struct guest *g)
{
	char text[4096];
	ssize_t n;

	/* Endless output of a guest must not keep us from serving its disks. */
	for (size_t all = 0; g->console >= 0 && all < LISTEN_MAX; all += (size_t)n) {
		n = read(g->console, text, sizeof(text));
		if (n <= 0)
			return;
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] == '\n')
				take_line(g);
			else if (text[i] != '\r' && text[i] != '\0' && g->line.len < LINE_MAX_BYTES)
				strbuf_addch(&g->line, text[i]);
		}
	}
}

/* ---- its life ---- */

/*
 * The keeper: waits until the worker, at the other end of the pipe, tells that the guest is gone,
 * or is gone itself; then it ends all processes of the guest. Without it, the helper processes of
 * the kernel would stay: they do not notice that the first process has died.
 */
static void keeper_main(int pipe, pid_t group)
{
	sigset_t all;
	char word;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	dup2(pipe, 0);
	close_range(1, ~0U, 0);
	if (read(0, &word, 1) != 1)
		kill(-group, SIGKILL);
	_exit(0);
}

static int start_keeper(struct guest *g, struct err *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, -errno, "cannot create a pipe: %m");
	g->keep = fds[1];
	g->keeper = fork();
	if (g->keeper == 0) {
		close(fds[1]);
		keeper_main(fds[0], g->pid);
	}
	close(fds[0]);
	if (g->keeper < 0) {
		g->keeper = 0;
		return err_set(err, -errno, "cannot start a process: %m");
	}
	g->keeper_fd = (int)syscall(SYS_pidfd_open, g->keeper, 0);
	return 0;
}

static void dismiss_keeper(struct guest *g)
{
	if (g->keep >= 0 && write(g->keep, "", 1) < 0)
		log_debug("the keeper of a guest was gone before it");
	util_close(steal_fd(&g->keep));
	util_close(steal_fd(&g->keeper_fd));
	if (g->keeper)
		waitpid(g->keeper, NULL, 0);
	g->keeper = 0;
}

/*
 * Replaces a keeper that was killed. The guest runs on, but would be left behind if we were killed
 * as well.
 */
static void replace_keeper(struct guest *g)
{
	struct err why = ERR_INIT;

	dismiss_keeper(g);
	if (start_keeper(g, &why))
		log_info("the guest has no keeper: %s", why.msg);
}

static char *fill_in(const char *word)
{
	static const struct {
		const char *name;
		int fd;
	} names[] = { { "{disk}", GUEST_FD_DISK },
		      { "{mail}", GUEST_FD_MAIL },
		      { "{root}", GUEST_FD_ROOT } };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *at = strstr(word, names[i].name);

		if (at)
			return xasprintf("%.*s/proc/self/fd/%d%s", (int)(at - word), word,
					 names[i].fd, at + strlen(names[i].name));
	}
	return xstrdup(word);
}

/*
 * Pins this process, and so the guest, to one processor. One of the two always waits for the other,
 * hundreds of times for each mount: waking up a sleeping processor costs more than the request.
 */
static void stay_on(int cpu)
{
	cpu_set_t set;

	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/*
 * Chooses the directory of the guest's memory, a file without a name, from which programs are run:
 * $TMPDIR, or else one in memory, which is much faster.
 */
static void choose_tmpdir(void)
{
	struct statvfs st;

	if (access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &st) == 0 &&
	    !(st.f_flag & ST_NOEXEC))
		unsetenv("TMPDIR");
}

/* In the child: becomes the guest. All but its own descriptors must be closed. */
static void become(struct guest *g, const struct guest_start *how, int console, pid_t parent)
{
	int from[GUEST_FD_END - GUEST_FD_DISK] = {
		g->device_of_disk ? g->device_of_disk->place : -1,
		g->mail.device.place,
		how->root,
	};
	static const int polite[] = { SIGTERM, SIGINT, SIGHUP };
	struct rlimit none = { 0, 0 };
	char owner[OWNER_NAME_SIZE];
	char *argv[128];
	size_t n = 0;
	sigset_t deaf;

	for (size_t i = 0; i < ARRAY_SIZE(how->more); i++)
		from[GUEST_FD_MORE - GUEST_FD_DISK + i] = how->more[i];
	setpgid(0, 0);
	proc_tie(parent);
	sigemptyset(&deaf);
	/*
	 * At SIGTERM and the like, user-mode Linux clears up inside the signal handler, and hangs,
	 * or panics as if by a fault of the file system. So it ignores these signals, and we end it
	 * by SIGKILL.
	 */
	for (size_t i = 0; !g->emulated && i < ARRAY_SIZE(polite); i++)
		sigaddset(&deaf, polite[i]);
	sigprocmask(SIG_SETMASK, &deaf, NULL);
	setrlimit(RLIMIT_CORE, &none);		      /* a panic is abort() */
	for (size_t i = 0; i < ARRAY_SIZE(from); i++) /* first away from their final numbers */
		from[i] = from[i] > 0 ? fcntl(from[i], F_DUPFD, 64) : -1;
	console = fcntl(console, F_DUPFD, 64);
	int null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(console, STDOUT_FILENO);
	dup2(console, STDERR_FILENO);
	for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
		close(GUEST_FD_DISK + (int)i);
		if (from[i] >= 0)
			dup2(from[i], GUEST_FD_DISK + (int)i);
	}
	close_range(GUEST_FD_END, ~0U, 0);
	while (n < ARRAY_SIZE(argv) - 1 && how->argv[n]) {
		argv[n] = fill_in(how->argv[n]);
		n++;
	}
	assert(n);
	argv[n] = NULL;
	choose_tmpdir();
	setenv(SCRATCH_OWNER, owner_name("guest", owner), 1);
	execv(argv[0], argv);
	fprintf(stderr, "outage: cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static int spawn(struct guest *g, const struct guest_start *how, struct err *err)
{
	pid_t parent = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(err, -errno, "cannot create a pipe: %m");
	/* This process inherits processes that the guest leaves behind, and waits for them. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* The guest waits when its console is full, so that no output is lost. */
	fcntl(fds[1], F_SETFL, 0);
	g->console = fds[0];
	pid_t pid = fork();
	if (pid == 0)
		become(g, how, fds[1], parent);
	close(fds[1]);
	if (pid < 0)
		return err_set(err, -errno, "cannot start a guest: %m");
	setpgid(pid, pid);
	g->pid = pid;
	g->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (g->pidfd < 0)
		return err_set(err, -errno, "cannot watch a process (%m); it needs Linux 5.3");
	return start_keeper(g, err);
}

static void describe_end(struct guest *g, int status)
{
	if (WIFSIGNALED(status))
		snprintf(g->end, sizeof(g->end), "it was ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(g->end, sizeof(g->end), "it ended with status %d", WEXITSTATUS(status));
}

/*
 * Ends and waits for all processes of the guest's group; when the guest is gone, this process
 * inherits those that it had started. No other group can have the group's number as long as one of
 * them exists. True if one had aborted before: a process of user-mode Linux that runs into a panic
 * aborts.
 */
static bool end_group(pid_t group)
{
	bool aborted = false;

	for (;;) {
		int status = 0;
		pid_t got = waitpid(-group, &status, WNOHANG);

		if (got < 0 && errno != EINTR)
			return aborted;
		aborted |= got > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
		if (got == 0) {
			kill(-group, SIGKILL);
			util_sleep_ms(1);
		}
	}
}

void guest_stop(struct guest *g)
{
	if (g->pid)
		end_group(g->pid);
	dismiss_keeper(g);
	g->pid = 0;
	/*
	 * Reads the guest's last output for later questions. We have caused the complaints since we
	 * ended it.
	 */
	guest_listen(g);
	strbuf_clear(&g->said);
	util_close(steal_fd(&g->pidfd));
	util_close(steal_fd(&g->console));
	vhost_disconnect(&g->mail.device);
	if (g->device_of_disk)
		vhost_disconnect(g->device_of_disk);
	vhost_mail_clear(&g->mail);
	strbuf_clear(&g->line);
	g->collecting = 0;
	g->has_disks = g->refused_disk = false;
	g->steady = false;
}

/* ---- the end of a guest ---- */

/* Adds the guest's complaints: its kernel has caused them. */
static void take_words(struct guest *g)
{
	if (g->complaints->len < COMPLAINTS_MAX)
		strbuf_add(g->complaints, strbuf_str(&g->said), g->said.len);
	strbuf_clear(&g->said);
}

/*
 * Drops the guest's complaints: its kernel has not caused them. Earlier complaints that no caller
 * has read are dropped as well: the operation failed, and the next one must not be blamed for them.
 */
static void drop_words(struct guest *g)
{
	strbuf_clear(&g->said);
	strbuf_clear(g->complaints);
}

/*
 * Waits for the end of the process, which may come a moment after its sockets close or its kernel
 * panics, and decides. The guest is served meanwhile: QEMU does not end before its disks are idle.
 * The kernel prints all its output before the end.
 */
static bool wait_for_end(struct guest *g, struct guest_end *how)
{
	struct patience patience;

	patience_renew(&patience);
	do {
		if (guest_serve(g, -1, END_NAP_MS))
			util_sleep_ms(END_NAP_MS);
		if (waitpid(g->pid, &how->status, WNOHANG) == g->pid) {
			guest_listen(g);
			if (g->line.len)
				take_line(g);
			describe_end(g, how->status);
			return true;
		}
	} while (!how->refused && !patience_ends(&patience, getpid(), END_MS * 1000000ULL));
	return false;
}

/*
 * Judges a guest that has ended, or is about to: 1 if its kernel is the cause. If it was killed, or
 * this machine lacked something, it is unknown what the kernel would have done: -errno.
 */
static int died(struct guest *g, struct err *err)
{
	struct guest_end how = { .refused = g->refused_disk };

	how.ended = wait_for_end(g, &how);
	/* We cause all output from here on; guest_stop() drops it. */
	how.aborted = end_group(g->pid);
	int rc = guest_judge_end(g, &how, err);
	if (rc)
		drop_words(g);
	else if (!g->said.len)
		strbuf_addf(&g->said, "the guest's kernel is gone: %s\n", g->end);
	take_words(g);
	guest_stop(g);
	return rc ? rc : 1;
}

/* Reads the agent's first answer. The disk's name becomes part of patterns for the console. */
static int take_hello(struct guest *g, struct wire_in *answer, struct err *err)
{
	struct wire_in part;
	int rc = guest_part(answer, AGENT_HELLO, &part, err);

	if (rc)
		return rc;
	wire_text(&part); /* the release */
	const char *device = wire_text(&part);
	rc = guest_part_ok(&part, err);
	if (!rc && (strlen(device) >= sizeof(g->device) ||
		    strspn(device, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(device)))
		rc = err_set(err, -EPROTO, "the guest's answer makes no sense");
	if (!rc)
		snprintf(g->device, sizeof(g->device), "%s", device);
	return rc;
}

static int say_hello(struct guest *g, uint64_t timeout_ms, struct err *err)
{
	struct wire_in answer;

	guest_begin(g);
	wire_part(&g->out, AGENT_HELLO, 0);
	int rc = guest_ask(g, timeout_ms, &answer, err);
	return rc ? rc : take_hello(g, &answer, err);
}

static int failed_start(struct guest *g, const struct guest_start *how, int rc, struct err *err)
{
	guest_stop(g);
	/* An earlier error tells more than that the guest did not start. */
	if (err->code == -ENOSPC || err->code == -ENOMEM)
		return err->code;
	if (g->heard & (GUEST_NO_ROOM | GUEST_NO_MEMORY)) {
		err_clear(err);
		return guest_check_words(g, err);
	}
	if (err->code && err->code != -ETIMEDOUT)
		return err_context(err, "%s %s did not start",
				   how->emulated ? "the kernel in" : "the guest's kernel",
				   how->argv[0]);
	err_clear(err);
	return err_set(err, rc < 0 ? rc : -EIO, "%s %s did not start: %s; it said: %s",
		       how->emulated ? "the kernel in" : "the guest's kernel", how->argv[0],
		       *g->end ? g->end : "no answer", guest_last_words(g));
}

int guest_start(struct guest *g, const struct guest_start *how, uint64_t timeout_ms,
		struct err *err)
{
	size_t before = g->complaints->len;
	int rc = g->device_of_disk ? vhost_listen(g->device_of_disk, err) : 0;

	assert(!g->pid);
	strbuf_clear(&g->last);
	g->end[0] = g->device[0] = '\0';
	g->heard = 0;
	g->emulated = how->emulated;
	g->monitor = how->emulated ? how->monitor : -1;
	g->memory = how->memory;
	if (!rc)
		rc = vhost_listen(&g->mail.device, err);
	stay_on(how->cpu);
	if (!rc)
		rc = spawn(g, how, err);
	if (!rc)
		rc = say_hello(g, timeout_ms, err);
	if (g->complaints->len > before)
		strbuf_cut(g->complaints, before);
	return rc ? failed_start(g, how, rc, err) : 0;
}

/* ---- questions ---- */

void guest_begin(struct guest *g)
{
	wire_start(&g->out, ++g->serial);
}

/* Reads a message of the guest. Returns 1 if it is complete, 0 if not, or -errno. */
static int has_answer(struct guest *g, struct wire_in *answer, struct err *err)
{
	struct wire_head head;

	if (g->mail.got < WIRE_HEAD)
		return 0;
	int rc = wire_head(g->mail.from_guest.v, &head, err);
	if (rc)
		return rc;
	if (g->mail.got < WIRE_HEAD + (uint64_t)head.len)
		return 0;
	if (head.serial != g->serial)
		return err_set(err, -EPROTO, "the guest answers what it was not asked");
	*answer = (struct wire_in){ g->mail.from_guest.v + WIRE_HEAD, head.len, false };
	return 1;
}

static const char hung_up[] = "it has hung up";

/* Returns why a disk cannot be served any more, or NULL. */
static const char *lost_disk(const struct vhost *v)
{
	bool broken = !vhost_connected(v);

	for (unsigned i = 0; i < VHOST_QUEUES; i++)
		broken |= v->queue[i].ring.broken;
	return !broken ? NULL : *v->why ? v->why : hung_up;
}

/* Returns the disk's device, or the mailbox's if there is none. */
static const struct vhost *disk_or(const struct guest *g, const struct vhost *mail)
{
	return g->device_of_disk ? g->device_of_disk : mail;
}

/* True if a guest has lost its disks: it would wait for ever. */
static bool lacks_disks(struct guest *g)
{
	const struct vhost *mail = &g->mail.device, *disk = disk_or(g, mail);

	if (!g->has_disks)
		g->has_disks = vhost_connected(disk) && vhost_connected(mail);
	if (!g->has_disks || (!lost_disk(disk) && !lost_disk(mail)))
		return false;
	const char *why = lost_disk(disk) ? lost_disk(disk) : lost_disk(mail);
	g->refused_disk = !streq(why, hung_up);
	snprintf(g->end, sizeof(g->end), "its disk was taken away: %.100s", why);
	return true;
}

/*
 * Waits until the guest has used a certain processor time, after which it only waits, too (a
 * machine that counts instructions spins): if an answer came while it still worked, the order of
 * its next steps would depend on the moment.
 */
static void let_settle(const struct guest *g)
{
	struct timespec now, start;
	clockid_t clock;

	if (clock_getcpuclockid(g->pid, &clock) || clock_gettime(clock, &start) < 0)
		return;
	for (int i = 0; i < SETTLE_TRIES; i++) {
		util_sleep_ms(1);
		if (clock_gettime(clock, &now) < 0 ||
		    (now.tv_sec - start.tv_sec) * 1000000000LL + now.tv_nsec - start.tv_nsec >=
			    SETTLE_NS)
			return;
	}
}

int guest_serve(struct guest *g, int fd, int timeout_ms)
{
	struct vhost *disk = g->device_of_disk, *mail = &g->mail.device;
	struct pollfd fds[2 * VHOST_POLL_MAX + 4];
	unsigned n = disk ? vhost_poll(disk, fds) : 0;

	n += vhost_poll(mail, fds + n);
	fds[n++] = (struct pollfd){ fd, POLLIN, 0 };
	fds[n++] = (struct pollfd){ g->keeper_fd, POLLIN, 0 };
	fds[n++] = (struct pollfd){ g->console, POLLIN, 0 };
	fds[n++] = (struct pollfd){ g->pidfd, POLLIN, 0 };
	if ((disk && vhost_has_more(disk)) || vhost_has_more(mail))
		timeout_ms = 0;
	if (poll(fds, n, timeout_ms) < 0)
		return 0;
	if (fds[n - 3].revents)
		replace_keeper(g);
	if (g->steady && !fds[n - 1].revents)
		let_settle(g);
	if (fds[n - 2].revents & POLLIN)
		guest_listen(g);
	if (disk)
		vhost_serve(disk);
	vhost_serve(mail);
	return fds[n - 1].revents != 0 || lacks_disks(g);
}

int guest_ask(struct guest *g, uint64_t timeout_ms, struct wire_in *answer, struct err *err)
{
	struct patience patience;
	int rc = 0;

	wire_finish(&g->out);
	if (!g->pid)
		return err_set(err, -EIO, "the guest does not run");
	vhost_mail_clear(&g->mail);
	vhost_mail_send(&g->mail, g->out.text.buf, g->out.text.len);
	patience_renew(&patience);
	uint64_t busy_until = util_now_ns() + g->busy_ms * 1000000;
	for (;;) {
		rc = has_answer(g, answer, err);
		/* The agent may wait for ever if the process of its program was killed. */
		if (!rc)
			rc = guest_check_words(g, err);
		if (rc)
			break;
		if ((timeout_ms || util_now_ns() < busy_until) && g->starting)
			g->starting(g->starting_ctx);
		if (guest_serve(g, -1, POLL_SLICE_MS) || g->heard & GUEST_PANIC)
			return died(g, err);
		if (timeout_ms && patience_ends(&patience, getpid(), timeout_ms * 1000000))
			return err_set(err, -ETIMEDOUT, "the guest did not answer for %llu ms",
				       (unsigned long long)timeout_ms);
	}
	/*
	 * All output up to the answer has arrived, and perhaps more: the guest may have died since.
	 */
	guest_listen(g);
	g->collecting = 0;
	if (rc > 0 && g->heard & GUEST_PANIC)
		return died(g, err);
	/* The guest has answered, but one of its processes may have been killed before. */
	if (rc > 0)
		rc = guest_check_words(g, err);
	if (rc) {
		drop_words(g);
		guest_stop(g);
		return rc;
	}
	take_words(g);
	return 0;
}

int guest_part(struct wire_in *answer, enum agent_command command, struct wire_in *part,
	       struct err *err)
{
	uint32_t got;
	int32_t status;

	if (!wire_next(answer, &got, &status, part) || got != command || status > 0)
		return err_set(err, -EPROTO, "the guest's answer makes no sense");
	if (status < 0)
		return err_set(err, status, "the agent in the guest cannot do command %d: %s",
			       (int)command, strerror(-status));
	return 0;
}

int guest_part_ok(const struct wire_in *part, struct err *err)
{
	return part->bad || part->left
		       ? err_set(err, -EPROTO, "an answer of the guest is too short, or too long")
		       : 0;
}
