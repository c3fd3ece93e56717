/* SPDX-License-Identifier: MIT */
/*
 * sandbox.c - runs a command in a namespace of its own, bounded in time, through a keeper.
 *
 * There are three processes: this one; a keeper, which is number 1 of the namespace, or inherits
 * all orphans if there is no namespace; and the command. The keeper watches the time, tells how the
 * command ended, and ends all processes that are left. If it is killed, the kernel ends all
 * processes of the namespace.
 *
 * Making and removing namespaces costs more than a small command. So a keeper stays for the next
 * command, if later mounts at the directory reach it (sandbox_opts.shared), and if the command
 * before did not mount or unmount anything: nothing else of that command can be left. Its processes
 * are gone, and those of the next one are numbered from 2 again.
 *
 * C1: only the keeper signals processes whose numbers it does not know, and it signals all only if
 *     it is number 1: otherwise these would include strangers' processes.
 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
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

#include "base/io.h"
#include "base/patience.h"
#include "base/proc.h"
#include "base/reap.h"
#include "base/space.h"
#include "sandbox/become.h"
#include "sandbox/no_shell.h"
#include "sandbox/pass.h"

enum {
	TIMEOUT_MS = 10000,
	GRACE_MS = 50,	    /* for processes that end a moment after the shell */
	BACKSTOP_MS = 5000, /* the keeper must have answered by then */
	BUSY = 10,	    /* at most so many times longer on a busy machine: patience.h */
	LOOKS = 20,
	LOOK_MS = 100,
	OUTPUT_LIMIT = 16 << 10,
};

void check_result_release(struct check_result *r)
{
	strbuf_release(&r->output);
	*r = (struct check_result){ 0 };
}

/* ---- the command ---- */

static void limit(int what, uint64_t most)
{
	struct rlimit r = { most, most };

	if (most)
		(void)setrlimit((__rlimit_resource_t)what, &r);
}

struct start {
	const struct sandbox_opts *opts;
	char **words;	  /* words of the command, if it needs no shell */
	bool notes_moved; /* notes were moved below our own /proc */
	int output, errors;
	pid_t keeper;
};

/* In the keeper: sets the variables, which are the same for each command, to new values. */
static void set_variables(const struct start *s, char *variables)
{
	size_t len = s->notes_moved ? strlen(s->opts->notes) : 0;

	for (char *v = variables, *next; *v; v = next) {
		char *value = strchr(v, '=');

		next = v + strlen(v) + 1;
		if (!value)
			continue;
		*value++ = 0;
		bool moved = len && strncmp(value, s->opts->notes, len) == 0 && value[len] == '/';
		auto_free char *there = moved ? xasprintf(SPACE_DIR "%s", value + len) : NULL;
		setenv(v, moved ? there : value, 1);
	}
}

static void run_command(const struct start *s)
{
	const struct sandbox_opts *o = s->opts;
	struct become b = { .command = o->command,
			    .argument = o->argument ? o->argument : o->dir,
			    .words = s->words,
			    .dir = o->dir,
			    .output = s->output,
			    .errors = s->errors };
	struct rlimit no_core = { 0, 0 };

	setsid();
	/* For the case without a namespace that ends with the keeper. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != s->keeper)
		_exit(127);
	setrlimit(RLIMIT_CORE, &no_core);
	limit(RLIMIT_FSIZE, o->file_max);
	limit(RLIMIT_AS, o->memory_max);
	limit(RLIMIT_NPROC, o->processes_max);
	become_command(&b);
}

/* ---- the keeper ---- */

/* The keeper's answer. */
struct sandbox_told {
	int status;
	bool hung, left;
	bool ends; /* the keeper ends, too */
};

static uint64_t now_ms(void)
{
	return util_now_ns() / 1000000;
}

/*
 * Tells a keeper that the command is no longer wanted. No other signal does: SIGTERM comes from a
 * terminal or timeout(1) to all processes, and a command that is ended by it did not hang.
 */
#define UNWANTED SIGRTMIN

/* The signals that a keeper waits for. */
static sigset_t keeper_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, UNWANTED);
	return set;
}

/* Waits for a child's end until a time. False if the command is no longer wanted. */
static bool wait_until(uint64_t when_ms)
{
	uint64_t now = now_ms(), left = when_ms > now ? when_ms - now : 0;
	struct timespec t = { (time_t)(left / 1000), (long)(left % 1000) * 1000000 };
	sigset_t set = keeper_signals();

	return sigtimedwait(&set, NULL, &t) != UNWANTED;
}

/* Reaps children. True if `shell` has ended; gives its status. */
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

/* True if any child is left; the keeper inherits orphans. */
static bool any_left(void)
{
	siginfo_t info;

	return !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
}

static void kill_all(pid_t shell)
{
	if (getpid() == 1) { /* C1 */
		kill(-1, SIGKILL);
		while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
			;
		return;
	}
	kill(-shell, SIGKILL);
	(void)reap_below();
}

/* Mounts a /proc of the namespace, and the notes below it. */
static bool own_proc(const struct sandbox_opts *o)
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

/*
 * True if the time of the command is up. The time in which it waited for a processor does not
 * count, if this /proc tells it: that of another namespace has other numbers.
 */
static bool out_of_time(const struct start *s, struct patience *p, uint64_t timeout_ms)
{
	uint64_t limit_ns = timeout_ms * 1000000;

	if (getpid() == 1 && !s->notes_moved)
		return util_now_ns() - p->since_ns >= limit_ns;
	/* Orphans of the command are children of the keeper. */
	return patience_ends(p, getpid(), limit_ns);
}

/* Runs the command, and ends the processes that it left. True if it could be started. */
static bool keep_one(const struct start *s, uint64_t timeout_ms, struct sandbox_told *told)
{
	uint64_t look_ms = min(timeout_ms / LOOKS + 1, (uint64_t)LOOK_MS), grace;
	struct patience patience;
	bool ended = false, wanted = true;
	/* With vfork(), the page tables of a large process are not copied. */
	pid_t shell = vfork();

	if (shell == 0)
		run_command(s);
	util_close(s->output);
	if (s->errors != s->output)
		util_close(s->errors);
	if (shell < 0)
		return false;
	patience_renew(&patience);
	while (!(ended = reap(shell, &told->status)) && wanted &&
	       !out_of_time(s, &patience, timeout_ms))
		wanted = wait_until(now_ms() + look_ms);
	told->hung = !ended;
	for (grace = now_ms() + GRACE_MS; ended && wanted && any_left() && now_ms() < grace;) {
		wanted = wait_until(now_ms() + 5);
		(void)reap(shell, &told->status);
	}
	told->left = ended && any_left();
	kill_all(shell);
	return true;
}

/* A request to a keeper, with one or two descriptors for output; variables follow. */
struct sandbox_request {
	uint64_t timeout_ms, variables;
};

static int mounts_open(void)
{
	return open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
}

/* True if anything was mounted or unmounted since the last call. */
static bool mounts_changed(int fd)
{
	struct pollfd p = { fd, POLLPRI, 0 };

	return fd < 0 || poll(&p, 1, 0) != 0;
}

/*
 * Numbers processes from 2 again: a program that finds its old number in a file must not take
 * another process for itself.
 */
static bool count_again(void)
{
	auto_fd fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, "1", 1) == 1;
}

static bool read_variables(int fd, uint64_t len, struct strbuf *to)
{
	strbuf_clear(to);
	bool read = io_read_full(fd, strbuf_grow(to, len), len) == (ssize_t)len;
	to->len = read ? len : 0;
	strbuf_addch(to, 0); /* an empty text ends the list */
	return read;
}

/* The keeper: runs commands as long as requests come and the namespace is unchanged. */
static void keep(const struct sandbox_opts *opts, int fd)
{
	struct start s = { .opts = opts,
			   .words = no_shell_words(opts->command),
			   .keeper = getpid() };
	bool own = getpid() == 1, stay = opts->shared && own;
	struct sandbox_request r = { 0 };
	struct strbuf variables = STRBUF_INIT;
	sigset_t set = keeper_signals();
	int mounts = -1, n, fds[PASS_MAX];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* Mounts that are made here stay private. */
	if (own && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		stay = false;
	s.notes_moved = own && opts->notes && own_proc(opts);
	stay = stay && s.notes_moved;
	if (stay)
		mounts = mounts_open();
	while ((n = pass_receive(fd, &r, sizeof(r), fds)) >= 1 &&
	       read_variables(fd, r.variables, &variables)) {
		struct sandbox_told told = { 0 };

		(void)mounts_changed(mounts);
		s.output = fds[0];
		s.errors = fds[n - 1];
		set_variables(&s, variables.buf);
		if (!keep_one(&s, r.timeout_ms, &told))
			break;
		told.ends = !stay || mounts_changed(mounts) || !count_again();
		if (io_write_full(fd, &told, sizeof(told)) || told.ends)
			break;
	}
	_exit(0);
}

/* ---- the caller ---- */

static pid_t start_keeper(const struct sandbox_opts *opts, int fd)
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

static int keeper_open(struct sandbox_keeper *k, const struct sandbox_opts *opts, struct err *err)
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

void sandbox_keeper_end(struct sandbox_keeper *k)
{
	int status;

	if (!k->pid)
		return;
	kill(k->pid, SIGKILL); /* which ends its namespace */
	(void)reap_wait(k->pid, &status);
	util_close(k->fd);
	*k = (struct sandbox_keeper){ 0 };
}

/* A pipe that the command writes to, and the output that is kept. */
struct stream {
	int from, to;
	struct strbuf said;
	bool cut;
};

enum { STREAMS = 2 }; /* the second is standard error, if that is separate */

static int streams_open(struct stream s[STREAMS], size_t n, struct err *err)
{
	for (size_t i = 0; i < STREAMS; i++)
		s[i] = (struct stream){ .from = -1, .to = -1 };
	for (size_t i = 0; i < n; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC))
			return err_set(err, -errno, "cannot make a pipe: %m");
		s[i].from = ends[0];
		s[i].to = ends[1];
		fcntl(s[i].from, F_SETFL, O_NONBLOCK);
	}
	return 0;
}

static void streams_close_ends(struct stream s[STREAMS])
{
	for (size_t i = 0; i < STREAMS; i++)
		util_close(steal_fd(&s[i].to));
}

static void streams_release(struct stream s[STREAMS])
{
	streams_close_ends(s);
	for (size_t i = 0; i < STREAMS; i++) {
		util_close(s[i].from);
		strbuf_release(&s[i].said);
	}
}

static bool stream_read(struct stream *s, size_t most)
{
	return s->from >= 0 && proc_drain(&s->from, &s->said, most, &s->cut);
}

static void keep_said(struct stream s[STREAMS], size_t most, struct check_result *r)
{
	for (size_t i = 0; i < STREAMS; i++)
		while (stream_read(&s[i], most))
			;
	r->output = s[0].said;
	r->output_cut = s[0].cut;
	r->errors = min(s[1].said.len, most - r->output.len);
	strbuf_add(&r->output, strbuf_str(&s[1].said), r->errors);
	s[0].said = (struct strbuf)STRBUF_INIT;
}

/* Reads output until the keeper has answered or closed its pipe. False: neither in time. */
static bool listen_to(const struct sandbox_opts *o, struct stream s[STREAMS], int tell,
		      uint64_t until_ms, size_t most, struct sandbox_told *told, bool *heard)
{
	for (;;) {
		struct pollfd fds[] = { { tell, POLLIN, 0 },
					{ s[0].from, POLLIN, 0 },
					{ s[1].from, POLLIN, 0 },
					{ o->watched ? o->watch : -1, 0, 0 } };
		uint64_t now = now_ms();

		if (now >= until_ms)
			return false;
		if (poll(fds, ARRAY_SIZE(fds), (int)min(until_ms - now, (uint64_t)1000)) < 0 &&
		    errno != EINTR)
			return false;
		for (size_t i = 0; i < STREAMS; i++)
			if (fds[1 + i].revents)
				(void)stream_read(&s[i], most);
		if (fds[1 + STREAMS].revents)
			return false;
		if (fds[0].revents) {
			*heard = read(tell, told, sizeof(*told)) == sizeof(*told);
			return true;
		}
	}
}

static void judge(const struct sandbox_told *told, bool heard, struct check_result *r)
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

/*
 * Has the keeper end the command, and waits until no process of it is left: without a namespace
 * only the keeper, which inherits orphans, finds processes that are started meanwhile.
 */
static void ask_to_end(const struct sandbox_keeper *k)
{
	struct pollfd answer = { k->fd, POLLIN, 0 };

	kill(k->pid, UNWANTED);
	(void)poll(&answer, 1, BACKSTOP_MS);
}

/* Makes the keeper run the command, and waits for its answer. False: there was none in time. */
static bool ask_keeper(struct sandbox_keeper *k, const struct sandbox_opts *opts,
		       struct stream s[STREAMS], struct sandbox_told *told, bool *heard,
		       struct check_result *r)
{
	size_t most = min(opts->output_limit ? opts->output_limit : OUTPUT_LIMIT,
			  (size_t)CHECK_OUTPUT_MAX);
	struct sandbox_request ask = { opts->timeout_ms ? opts->timeout_ms : TIMEOUT_MS,
				       opts->variables ? opts->variables->len : 0 };
	uint64_t until = now_ms() + BUSY * ask.timeout_ms + BACKSTOP_MS;
	const int to[STREAMS] = { s[0].to, s[1].to };
	int sent = pass_send(k->fd, &ask, sizeof(ask), to, opts->errors_apart ? 2 : 1);

	streams_close_ends(s);
	if (!sent && ask.variables)
		sent = io_write_full(k->fd, opts->variables->buf, ask.variables);
	if (sent)
		return true;
	bool in_time = listen_to(opts, s, k->fd, until, most, told, heard);
	if (!in_time)
		ask_to_end(k);
	if (!in_time || !*heard)
		reap_kill(k->pid); /* and the processes that the command has started */
	if (!in_time || !*heard || told->ends)
		sandbox_keeper_end(k);
	keep_said(s, most, r);
	return in_time;
}

int sandbox_run(const struct sandbox_opts *opts, struct check_result *r, struct err *err)
{
	struct sandbox_keeper once = { 0 }, *k = opts->keeper ? opts->keeper : &once;
	struct sandbox_told told = { 0 };
	uint64_t start = util_now_ns();
	struct stream streams[STREAMS];
	bool heard = false;

	check_result_release(r);
	int rc = keeper_open(k, opts, err);
	if (rc)
		return rc;
	rc = streams_open(streams, opts->errors_apart ? 2 : 1, err);
	bool in_time = !rc && ask_keeper(k, opts, streams, &told, &heard, r);
	streams_release(streams);
	if (!heard || k == &once)
		sandbox_keeper_end(k);
	if (rc)
		return rc;
	judge(&told, heard, r);
	if (in_time && !heard)
		return err_set(err, -ECHILD, "the process that keeps a command was killed");
	r->took_ns = util_now_ns() - start;
	return 0;
}
