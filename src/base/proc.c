/* SPDX-License-Identifier: MIT */
/* proc.c - runs a child with limits of time and output, and reads what /proc says of processes. */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/io.h"
#include "base/names_in.h"

enum { GRACE_MS = 500, KILL_MS = 5000, POLL_MS = 20, OUTPUT_LIMIT = 1 << 20 };

enum { STATUS_UNKNOWN = 0x7f }; /* a wait status that is neither an exit nor a signal */

void (*proc_in_child)(void);

static uint64_t now_ms(void)
{
	return util_now_ns() / 1000000;
}

void proc_result_release(struct proc_result *r)
{
	strbuf_release(&r->out);
	strbuf_release(&r->err);
}

struct pipes {
	int in[2], out[2], err[2]; /* [0] is read from, [1] written to */
	int exec[2];		   /* carries the child's errno if exec fails; closed if not */
};

static void pipes_close(struct pipes *p)
{
	int *fds[] = { p->in, p->out, p->err, p->exec };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		for (int end = 0; end < 2; end++)
			util_close(steal_fd(&fds[i][end]));
}

/*
 * Moves pipes away from descriptors 0, 1 and 2, which they get if ours are closed: in the child,
 * dup2() would overwrite one pipe with another, or leave it close-on-exec.
 */
static int pipes_move_up(struct pipes *p)
{
	int *fds[] = { p->in, p->out, p->err, p->exec };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		for (int end = 0; end < 2; end++) {
			int low = fds[i][end];

			if (low > STDERR_FILENO)
				continue;
			fds[i][end] = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
			util_close(low);
			if (fds[i][end] < 0)
				return -1;
		}
	return 0;
}

static int pipes_open(struct pipes *p, struct err *err)
{
	*p = (struct pipes){ { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	int fault = fault_point("proc.pipe");
	if (fault || pipe2(p->in, O_CLOEXEC) < 0 || pipe2(p->out, O_CLOEXEC) < 0 ||
	    pipe2(p->err, O_CLOEXEC) < 0 || pipe2(p->exec, O_CLOEXEC) < 0 || pipes_move_up(p) < 0) {
		int rc = err_set(err, fault ? fault : -errno, "cannot create a pipe: %m");
		pipes_close(p);
		return rc;
	}
	return 0;
}

void proc_tie(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127); /* the parent died before the line above */
}

static void child(const struct proc_opts *opts, struct pipes *p, pid_t parent)
{
	int error;
	sigset_t none;

	setpgid(0, 0);
	proc_tie(parent);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(p->in[0], STDIN_FILENO) < 0 || dup2(p->out[1], STDOUT_FILENO) < 0 ||
	    dup2(opts->merge_stderr ? p->out[1] : p->err[1], STDERR_FILENO) < 0)
		goto fail;
	if (proc_in_child)
		proc_in_child();
	if (opts->cwd && chdir(opts->cwd) < 0)
		goto fail;
	for (size_t i = 0; opts->unset && opts->unset[i]; i++)
		unsetenv(opts->unset[i]);
	execvp(opts->argv[0], (char *const *)(uintptr_t)opts->argv);
fail:
	error = errno;
	ssize_t ignored = write(p->exec[1], &error, sizeof(error));
	(void)ignored;
	_exit(127);
}

bool proc_drain(int *fd, struct strbuf *to, size_t limit, bool *cut)
{
	char buf[16 * 1024];
	ssize_t n = read(*fd, buf, sizeof(buf));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return false;
	if (n <= 0) {
		util_close(steal_fd(fd));
		return false;
	}
	size_t room = limit - min(limit, to->len);
	if ((size_t)n > room)
		*cut = true;
	strbuf_add(to, buf, min((size_t)n, room));
	return true;
}

static void feed(int *fd, const struct proc_opts *opts, size_t *fed)
{
	ssize_t n = write(*fd, opts->input + *fed, opts->input_len - *fed);

	if (n > 0)
		*fed += (size_t)n;
	if (*fed == opts->input_len || (n < 0 && errno != EAGAIN && errno != EINTR))
		util_close(steal_fd(fd));
}

/* Reads the exec pipe: nothing yet, its end (the exec succeeded), or an error. */
static void hear_exec(int *fd, int *error)
{
	int value;
	ssize_t n = *fd < 0 ? -1 : read(*fd, &value, sizeof(value));

	if (n < 0 && (*fd < 0 || errno == EINTR || errno == EAGAIN))
		return;
	if (n == sizeof(value))
		*error = value;
	util_close(steal_fd(fd));
}

struct watch {
	pid_t pid;
	int pidfd;	      /* readable when the child ends; -1 on old kernels */
	uint64_t deadline_ms; /* of the current stage; 0: none */
	int stage;	      /* 0 running, 1 SIGTERM sent, 2 SIGKILL sent, 3 given up */
	bool exited;
	int status;
	int exec_error; /* errno if the program could not be run */
};

static void watch_step(struct watch *w, struct proc_result *res)
{
	int status;
	pid_t got = w->exited ? 0 : waitpid(w->pid, &status, WNOHANG);

	if (got == w->pid || (got < 0 && errno == ECHILD)) {
		w->exited = true;
		if (got == w->pid) /* otherwise another waiter has its status */
			w->status = status;
		/* Grandchildren may still hold the pipes: they get the grace period. */
		w->stage = max(w->stage, 1);
		w->deadline_ms = now_ms() + GRACE_MS;
	}
	if (!w->deadline_ms || now_ms() < w->deadline_ms)
		return;
	if (!w->exited)
		res->timed_out = true;
	if (w->stage < 2) {
		int sig = w->stage == 0 ? SIGTERM : SIGKILL;

		kill(-w->pid, sig);
		if (!w->exited)
			kill(w->pid, sig); /* the child may have left its group */
	}
	w->stage++;
	w->deadline_ms = now_ms() + (w->stage < 2 ? GRACE_MS : KILL_MS);
}

static void converse(const struct proc_opts *opts, struct pipes *p, struct watch *w,
		     struct proc_result *res)
{
	size_t limit = opts->output_limit ? opts->output_limit : OUTPUT_LIMIT;
	size_t fed = 0;

	fcntl(p->in[1], F_SETFL, O_NONBLOCK);
	fcntl(p->exec[0], F_SETFL, O_NONBLOCK);
	if (!opts->input_len)
		util_close(steal_fd(&p->in[1]));
	/* A process that is stuck in the kernel survives SIGKILL: the wait is bounded. */
	while (w->stage < 3 && !w->exec_error &&
	       (!w->exited || ((p->out[0] >= 0 || p->err[0] >= 0) && w->stage < 2))) {
		struct pollfd fds[] = {
			{ .fd = p->out[0], .events = POLLIN },
			{ .fd = p->err[0], .events = POLLIN },
			{ .fd = p->in[1], .events = POLLOUT },
			{ .fd = w->exited ? -1 : w->pidfd, .events = POLLIN },
			{ .fd = p->exec[0], .events = POLLIN },
		};
		if (poll(fds, ARRAY_SIZE(fds), POLL_MS) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			proc_drain(&p->out[0], &res->out, limit, &res->output_cut);
		if (fds[1].revents)
			proc_drain(&p->err[0], &res->err, limit, &res->output_cut);
		if (fds[2].revents)
			feed(&p->in[1], opts, &fed);
		watch_step(w, res);
		/* Last: an error that the child wrote before its end is there by now. */
		hear_exec(&p->exec[0], &w->exec_error);
	}
}

/* Talks with the child until it ends. -errno if its program could not be run. */
static int attend(const struct proc_opts *opts, struct pipes *p, struct watch *w,
		  struct proc_result *res)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;

	sigaction(SIGPIPE, &ignore, &old);
	converse(opts, p, w, res);
	sigaction(SIGPIPE, &old, NULL);
	if (w->exec_error) /* the child is about to end by itself */
		while (!w->exited && waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
			;
	else
		kill(-w->pid, SIGKILL); /* leftovers of the child in its group */
	return -w->exec_error;
}

int proc_run(const struct proc_opts *opts, struct proc_result *res, struct err *err)
{
	struct pipes p;
	struct proc_result made = { 0 };
	struct sigaction old;
	pid_t parent = getpid();
	int rc = pipes_open(&p, err);

	if (rc)
		return rc;
	/*
	 * If the program that starts us has left SIGCHLD ignored, waitpid() returns no status.
	 */
	if (sigaction(SIGCHLD, NULL, &old) == 0 && old.sa_handler == SIG_IGN)
		signal(SIGCHLD, SIG_DFL);
	int fault = fault_point("proc.fork");
	pid_t pid = fault ? -1 : fork();
	uint64_t start_ms = now_ms();
	if (pid == 0)
		child(opts, &p, parent);
	if (pid < 0) {
		rc = err_set(err, fault ? fault : -errno, "cannot start %s: %m", opts->argv[0]);
		pipes_close(&p);
		return rc;
	}
	setpgid(pid, pid); /* in parent and child: either may run first */
	util_close(steal_fd(&p.in[0]));
	util_close(steal_fd(&p.out[1]));
	util_close(steal_fd(&p.err[1]));
	util_close(steal_fd(&p.exec[1]));

	struct watch w = { .pid = pid,
			   .pidfd = (int)syscall(SYS_pidfd_open, pid, 0),
			   .deadline_ms = opts->timeout_ms ? start_ms + opts->timeout_ms : 0,
			   .status = STATUS_UNKNOWN };
	rc = attend(opts, &p, &w, &made);
	util_close(w.pidfd);
	pipes_close(&p);
	if (rc) {
		proc_result_release(&made);
		return err_set(err, rc, "cannot run %s: %m", opts->argv[0]);
	}
	made.exit_code = WIFEXITED(w.status) ? WEXITSTATUS(w.status) : -1;
	made.signal = WIFSIGNALED(w.status) ? WTERMSIG(w.status) : 0;
	*res = made;
	return 0;
}

void proc_describe(const struct proc_result *res, const struct proc_opts *opts, struct strbuf *out)
{
	if (res->timed_out)
		strbuf_addf(out, "took longer than %llu ms", llu(opts->timeout_ms));
	else if (res->signal)
		strbuf_addf(out, "was killed by signal %d (%s)", res->signal,
			    strsignal(res->signal));
	else
		strbuf_addf(out, "exited with status %d", res->exit_code);
}

bool proc_stat(pid_t pid, struct proc_stat *out)
{
	enum { KERNEL_THREAD = 0x00200000 }; /* PF_KTHREAD, since 2.6 */
	char path[64];
	auto_strbuf text = STRBUF_INIT;
	unsigned long flags, user, system;
	long ended_user, ended_system;
	int parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (io_slurp(path, 4096, &text, NULL))
		return false;
	/* The name, in parentheses, may hold anything. */
	const char *p = strrchr(strbuf_str(&text), ')');
	if (!p || sscanf(p,
			 ") %c %d %*d %*d %*d %*d %lu %*u %*u %*u %*u %lu %lu %ld %ld %*d %*d %*d "
			 "%*d %llu",
			 &out->state, &parent, &flags, &user, &system, &ended_user, &ended_system,
			 &out->started) != 8)
		return false;
	out->parent = parent;
	out->kernel = flags & KERNEL_THREAD;
	out->ran = user + system;
	out->ended_ran = (unsigned long)(ended_user + ended_system);
	return true;
}

static bool contains(const struct proc_list *list, pid_t pid)
{
	return any_of(i, list->n, list->v[i] == pid);
}

struct proc_pair {
	pid_t pid, parent;
};

struct proc_pairs vec_of(struct proc_pair);

static void list_pairs(struct proc_pairs *out)
{
	auto_names_in proc = names_in(AT_FDCWD, "/proc");

	for (struct dirent *d; (d = names_next(proc));) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
		struct proc_stat p;

		if (pid > 0 && proc_stat(pid, &p))
			vec_push(out, (struct proc_pair){ pid, p.parent });
	}
}

/* Adds the processes whose parent is in the list. True if any was added. */
static bool add_children(struct proc_list *list, const struct proc_pairs *all)
{
	size_t before = list->n;

	vec_each(p, all)
		if (contains(list, p->parent) && !contains(list, p->pid))
			vec_push(list, p->pid);
	return list->n > before;
}

/* A process may be started during the scan; the number of scans is bounded. */
void proc_tree(pid_t pid, struct proc_list *list)
{
	enum { LOOKS = 4 };
	bool more = true;

	vec_push(list, pid);
	for (int i = 0; more && i < LOOKS; i++) {
		auto_vec struct proc_pairs all = { 0 };

		list_pairs(&all);
		more = add_children(list, &all);
		while (add_children(list, &all))
			;
	}
}

char *proc_find(const char *program)
{
	const char *path = getenv("PATH");
	auto_free char *copy = xstrdup(path ? path : "/usr/sbin:/usr/bin:/sbin:/bin");
	char *rest = copy;

	for (char *dir; (dir = strsep(&rest, ":"));) {
		auto_free char *file = xasprintf("%s/%s", *dir ? dir : ".", program);
		struct stat st;

		if (stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0)
			return steal(file);
	}
	return NULL;
}
