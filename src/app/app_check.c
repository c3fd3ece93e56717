/* SPDX-License-Identifier: MIT */
/*
 * app_check.c - runs the check in a namespace of its own, bounded in time, through a keeper.
 *
 * Three processes: we; a keeper, which is number 1 of the namespace, or who gets all orphans where
 * there is none; and the shell. The keeper watches the time, tells how the shell ended, and ends
 * what is left. If it is killed, the kernel ends the rest of the namespace.
 *
 * To make namespaces and take them down costs more than a small check. So a keeper stays for the
 * next one, if what is mounted at the directory then comes to it (check_opts.shared), and if the
 * check before did not mount or unmount anything: nothing else of it can be left. Its processes are
 * gone, and those of the next one are counted from 2 again.
 *
 * C1: only the keeper sends signals to processes that it cannot name, and to all of them only if it
 *     is number 1: everything else would be a stranger's.
 */
#include "app/app_check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app/app_command.h"
#include "app/pass.h"
#include "base/io.h"
#include "base/proc.h"
#include "base/space.h"

enum {
	TIMEOUT_MS = 10000,
	GRACE_MS = 50,	    /* for what is just about to end when the shell has */
	BACKSTOP_MS = 5000, /* the keeper has to tell until then */
	OUTPUT_LIMIT = 16 << 10,
};

void check_result_release(struct check_result *r)
{
	strbuf_release(&r->output);
	*r = (struct check_result){ 0 };
}

void check_describe(const struct check_result *r, struct strbuf *out)
{
	static const char *const fixed[] = { [CHECK_PASSED] = "passed",
					     [CHECK_HUNG] = "did not end in its time",
					     [CHECK_ERROR] = "could not be run" };

	if (r->end == CHECK_FAILED)
		strbuf_addf(out, "exited with status %d", r->exit_code);
	else if (r->end == CHECK_KILLED)
		strbuf_addf(out, "was killed by signal %d (%s)", r->signal, strsignal(r->signal));
	else
		strbuf_adds(out, fixed[r->end]);
	if (r->filled)
		strbuf_adds(out, ", and filled the disk");
	if (r->left_processes)
		strbuf_adds(out, ", and left processes behind");
}

/* ---- the shell ---- */

static void limit(int what, uint64_t most)
{
	struct rlimit r = { most, most };

	if (most)
		(void)setrlimit((__rlimit_resource_t)what, &r);
}

struct start {
	const struct check_opts *opts;
	uint64_t point;
	char **words;	  /* of the command, if it needs no shell */
	bool notes_moved; /* to where /proc is our own */
	int output;
};

static void set_environment(const struct start *s)
{
	char number[24];
	auto_free char *acked = xasprintf("%s/acked", s->notes_moved ? SPACE_DIR : s->opts->notes);

	snprintf(number, sizeof(number), "%" PRIu64, s->point);
	setenv("OUTAGE_DIR", s->opts->dir, 1);
	setenv("OUTAGE_ACKED", acked, 1);
	setenv("OUTAGE_CRASH_POINT", number, 1);
	if (s->opts->file) {
		setenv("OUTAGE_FILE", s->opts->file, 1);
		setenv("OUTAGE_MARKS", acked, 1);
	}
	setenv("PWD", s->opts->dir, 1);
}

static void run_shell(const struct start *s)
{
	int null = open("/dev/null", O_RDONLY);
	struct rlimit no_core = { 0, 0 };
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	dup2(null, STDIN_FILENO);
	dup2(s->output, STDOUT_FILENO);
	dup2(s->output, STDERR_FILENO);
	set_environment(s);
	if (chdir(s->opts->dir)) {
		dprintf(STDERR_FILENO, "cannot change to %s: %s\n", s->opts->dir, strerror(errno));
		_exit(126);
	}
	setrlimit(RLIMIT_CORE, &no_core);
	limit(RLIMIT_FSIZE, s->opts->file_max);
	limit(RLIMIT_AS, s->opts->memory_max);
	limit(RLIMIT_NPROC, s->opts->processes_max);
	if (s->words)
		execv(s->words[0], s->words);
	/* The shell knows what to do with what is no program, or says what is wrong. */
	execl("/bin/sh", "sh", "-c", s->opts->command, "sh",
	      s->opts->file ? s->opts->file : s->opts->dir, (char *)NULL);
	dprintf(STDERR_FILENO, "cannot run /bin/sh: %s\n", strerror(errno));
	_exit(126);
}

/* ---- the keeper ---- */

/* What it tells. */
struct check_told {
	int status;
	bool hung, left;
	bool ends; /* the keeper does */
};

static uint64_t now_ms(void)
{
	return util_now_ns() / 1000000;
}

/* Waits for a child's end until a time. */
static void wait_until(uint64_t when_ms)
{
	uint64_t now = now_ms(), left = when_ms > now ? when_ms - now : 0;
	struct timespec t = { (time_t)(left / 1000), (long)(left % 1000) * 1000000 };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, &t);
}

/* Whether `shell` is among those that have ended; its status. */
static bool reap(pid_t shell, int *status)
{
	bool found = false;
	int how;
	pid_t pid;

	while ((pid = waitpid(-1, &how, WNOHANG)) > 0)
		if (pid == shell) {
			*status = how;
			found = true;
		}
	return found;
}

/* Any child at all; orphans become ours. */
static bool any_left(void)
{
	siginfo_t info;

	return !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
}

/* Kills our children, by number; their children then come to us. */
static void kill_children(void)
{
	char path[64];
	auto_strbuf list = STRBUF_INIT;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", getpid(), getpid());
	if (io_slurp(path, 1 << 20, &list, NULL))
		return;
	for (char *s = list.buf, *end; s && *s; s = end) {
		long pid = strtol(s, &end, 10);

		if (end == s)
			break;
		if (pid > 1)
			kill((pid_t)pid, SIGKILL);
	}
}

static void kill_all(pid_t shell)
{
	uint64_t until = now_ms() + BACKSTOP_MS / 2;
	int status;

	if (getpid() == 1) { /* C1 */
		kill(-1, SIGKILL);
		while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
			;
		return;
	}
	kill(-shell, SIGKILL);
	while (any_left() && now_ms() < until) {
		kill_children();
		wait_until(now_ms() + 10);
		(void)reap(shell, &status);
	}
}

/* A /proc of the namespace, and below it what the command shall find. */
static bool own_proc(const struct check_opts *o)
{
	auto_fd notes = (int)syscall(SYS_open_tree, AT_FDCWD, o->notes,
				     1 /* OPEN_TREE_CLONE */ | O_CLOEXEC);

	if (notes < 0 || mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return false;
	if (syscall(SYS_move_mount, notes, "", AT_FDCWD, SPACE_DIR,
		    4 /* MOVE_MOUNT_F_EMPTY_PATH */)) {
		umount2("/proc", MNT_DETACH);
		return false;
	}
	return true;
}

/* Runs the command, and ends what it left. Whether it could be started. */
static bool keep_one(const struct start *s, uint64_t timeout_ms, struct check_told *told)
{
	uint64_t end = now_ms() + timeout_ms, grace;
	bool ended = false;
	/* Memory of a large process is not copied twice; what the shell's half changes is not used.
	 */
	pid_t shell = vfork();

	if (shell == 0)
		run_shell(s);
	util_close(s->output);
	if (shell < 0)
		return false;
	while (!(ended = reap(shell, &told->status)) && now_ms() < end)
		wait_until(end);
	told->hung = !ended;
	for (grace = now_ms() + GRACE_MS; ended && any_left() && now_ms() < grace;) {
		wait_until(now_ms() + 5);
		(void)reap(shell, &told->status);
	}
	told->left = ended && any_left();
	kill_all(shell);
	return true;
}

/* What is asked of a keeper; the output's descriptor comes with it. */
struct check_request {
	uint64_t point, timeout_ms;
};

static int mounts_open(void)
{
	return open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
}

/* Whether anything was mounted or unmounted since it was asked last. */
static bool mounts_changed(int fd)
{
	struct pollfd p = { fd, POLLPRI, 0 };

	return fd < 0 || poll(&p, 1, 0) != 0;
}

/*
 * Processes of the next check have the numbers that those of the first had: a program that finds a
 * number of its own in a file must not take another check's process for itself.
 */
static bool count_again(void)
{
	auto_fd fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, "1", 1) == 1;
}

/* One check after the other, as long as somebody asks and the namespace is as it was. */
static void keep(const struct check_opts *opts, int fd)
{
	struct start s = { .opts = opts, .words = command_words(opts->command) };
	bool own = getpid() == 1, stay = opts->shared && own;
	struct check_request r = { 0 };
	sigset_t child;
	int mounts = -1, fds[PASS_MAX];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	/* What is mounted here stays here. */
	if (own && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		stay = false;
	s.notes_moved = own && own_proc(opts);
	stay = stay && s.notes_moved;
	if (stay)
		mounts = mounts_open();
	while (pass_receive(fd, &r, sizeof(r), fds) == 1) {
		struct check_told told = { 0 };

		(void)mounts_changed(mounts);
		s.output = fds[0];
		s.point = r.point;
		if (!keep_one(&s, r.timeout_ms, &told))
			break;
		told.ends = !stay || mounts_changed(mounts) || !count_again();
		if (io_write_full(fd, &told, sizeof(told)) || told.ends)
			break;
	}
	_exit(0);
}

/* ---- we ---- */

static pid_t start_keeper(const struct check_opts *opts, int fd)
{
	pid_t pid = -1;

	if (!opts->no_namespace)
		pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL,
				     NULL, NULL);
	if (pid < 0)
		pid = fork();
	if (pid == 0) {
		close_range(3, (unsigned)fd - 1, 0);
		close_range((unsigned)fd + 1, ~0U, 0);
		keep(opts, fd);
	}
	return pid;
}

static int keeper_open(struct check_keeper *k, const struct check_opts *opts, struct err *err)
{
	int pair[2];

	if (k->pid)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_set(err, -errno, "cannot make a pair of sockets: %m");
	k->pid = start_keeper(opts, pair[1]);
	k->fd = pair[0];
	util_close(pair[1]);
	if (k->pid > 0)
		return 0;
	k->pid = 0;
	util_close(pair[0]);
	return err_set(err, -EAGAIN, "cannot start a process");
}

void check_keeper_end(struct check_keeper *k)
{
	if (!k->pid)
		return;
	kill(k->pid, SIGKILL); /* and with it goes its namespace */
	while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
		;
	util_close(k->fd);
	*k = (struct check_keeper){ 0 };
}

static bool drain(int *fd, struct check_result *r, size_t most)
{
	char buf[16 << 10];
	ssize_t n = read(*fd, buf, sizeof(buf));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return false;
	if (n <= 0) {
		util_close(steal_fd(fd));
		return false;
	}
	size_t room = most - min(most, r->output.len);
	strbuf_add(&r->output, buf, min((size_t)n, room));
	r->output_cut |= (size_t)n > room;
	return true;
}

/* Until the keeper has told, or its pipe is closed. False: it did neither in time. */
static bool listen_to(const struct check_opts *o, int *output, int tell, uint64_t until_ms,
		      size_t most, struct check_told *told, bool *heard, struct check_result *r)
{
	for (;;) {
		struct pollfd fds[] = { { tell, POLLIN, 0 },
					{ *output, POLLIN, 0 },
					{ o->watched ? o->watch : -1, 0, 0 } };
		uint64_t now = now_ms();

		if (now >= until_ms)
			return false;
		if (poll(fds, ARRAY_SIZE(fds), (int)min(until_ms - now, (uint64_t)1000)) < 0 &&
		    errno != EINTR)
			return false;
		if (*output >= 0 && fds[1].revents)
			(void)drain(output, r, most);
		if (fds[2].revents)
			return false;
		if (fds[0].revents) {
			*heard = read(tell, told, sizeof(*told)) == sizeof(*told);
			return true;
		}
	}
}

static void judge(const struct check_told *told, bool heard, struct check_result *r)
{
	if (!heard || told->hung)
		r->end = CHECK_HUNG;
	else if (WIFSIGNALED(told->status))
		r->end = CHECK_KILLED;
	else
		r->end = WEXITSTATUS(told->status) ? CHECK_FAILED : CHECK_PASSED;
	r->signal = r->end == CHECK_KILLED ? WTERMSIG(told->status) : 0;
	r->exit_code = r->end == CHECK_FAILED ? WEXITSTATUS(told->status) : 0;
	r->left_processes = heard && told->left;
}

/* Has the command run, and waits for what the keeper tells. False: it told nothing in time. */
static bool ask_keeper(struct check_keeper *k, const struct check_opts *opts, uint64_t point,
		       int output[2], struct check_told *told, bool *heard, struct check_result *r)
{
	size_t most = min(opts->output_limit ? opts->output_limit : OUTPUT_LIMIT,
			  (size_t)CHECK_OUTPUT_MAX);
	struct check_request ask = { point, opts->timeout_ms ? opts->timeout_ms : TIMEOUT_MS };
	uint64_t until = now_ms() + ask.timeout_ms + BACKSTOP_MS;
	auto_fd out = output[0];
	int sent = pass_send(k->fd, &ask, sizeof(ask), &output[1], 1);

	util_close(output[1]);
	fcntl(out, F_SETFL, O_NONBLOCK);
	if (sent)
		return true;
	bool in_time = listen_to(opts, &out, k->fd, until, most, told, heard, r);
	if (!in_time || !*heard || told->ends)
		check_keeper_end(k);
	while (out >= 0 && drain(&out, r, most))
		;
	return in_time;
}

int check_run(const struct check_opts *opts, uint64_t point, const char *acked, size_t acked_len,
	      struct check_result *r, struct err *err)
{
	struct check_keeper once = { 0 }, *k = opts->keeper ? opts->keeper : &once;
	struct check_told told = { 0 };
	uint64_t start = util_now_ns();
	bool heard = false;
	int output[2];

	check_result_release(r);
	int rc = io_write_file(opts->notes, "acked", acked, acked_len, 0644, err);
	if (!rc)
		rc = keeper_open(k, opts, err);
	if (rc)
		return rc;
	if (pipe2(output, O_CLOEXEC)) {
		rc = err_set(err, -errno, "cannot make a pipe: %m");
		check_keeper_end(k);
		return rc;
	}
	bool in_time = ask_keeper(k, opts, point, output, &told, &heard, r);
	if (!heard || k == &once)
		check_keeper_end(k);
	judge(&told, heard, r);
	if (in_time && !heard)
		return err_set(err, -ECHILD, "the process that keeps a check was killed");
	r->took_ns = util_now_ns() - start;
	return 0;
}
