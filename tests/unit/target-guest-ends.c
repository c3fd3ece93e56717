/* SPDX-License-Identifier: MIT */
/*
 * A guest of user-mode Linux ends because somebody outside sent a signal to one of its processes:
 * an error, whenever that was, and no complaint of its kernel stays. Its kernel gives up by itself:
 * that is put down to it, whether it had just answered or not.
 *
 * Nothing here depends on time: signals are sent at a place in the conversation with the guest, and
 * what they do is waited for.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/proc.h"
#include "guest/guest_root.h"
#include "target/guest_target.h"
#include "tap.h"

enum { HANG_MS = 300000, NAP_MS = 5 };

static const char text[] =
	"creat foo\n"
	"chmod foo 0600\n"
	"shell \"while :; do :; done\"\n"
	"shell \"echo c >/proc/sysrq-trigger; sleep 1000\"\n"
	"shell \"setsid sh -c '>left; sleep 1; echo c >/proc/sysrq-trigger' >/dev/null 2>&1 & "
	"until [ -e left ]; do :; done\"\n";

enum operation { CREAT, CHMOD, SPIN, PANIC, PANIC_LATER };

static struct guest *guest_of(const struct target *t)
{
	return ((struct guest_target *)t->own)->guest;
}

/* ---- its processes ---- */

/* STUB runs the agent, PROGRAM another program. */
enum whom { MAIN, STUB, PROGRAM };

static bool is_traced(pid_t pid)
{
	auto_free char *path = xasprintf("/proc/%d/status", (int)pid);
	auto_strbuf status = STRBUF_INIT;
	const char *at;

	if (io_slurp(path, 8192, &status, NULL) ||
	    !(at = strstr(strbuf_str(&status), "TracerPid:")))
		return false;
	return strtol(at + strlen("TracerPid:"), NULL, 10) != 0;
}

/* A child that the kernel traces, other than `except`; 0 if there is none. */
static pid_t find_traced(pid_t kernel, pid_t except)
{
	struct proc_list list = { 0 };
	struct proc_stat p;
	pid_t found = 0;

	proc_tree(kernel, &list);
	for (size_t i = 1; i < list.n && !found; i++)
		if (list.v[i] != except && proc_stat(list.v[i], &p) && p.state != 'Z' &&
		    is_traced(list.v[i]))
			found = list.v[i];
	vec_release(&list);
	return found;
}

static pid_t find(const struct guest *g, enum whom whom)
{
	return whom == MAIN ? g->pid : find_traced(g->pid, 0);
}

/*
 * In another process, until that is ended: sends the signal to what the guest runs beside the
 * agent. One may come too early, to a process that is given up when the program is loaded.
 */
static pid_t send_to_programs(const struct guest *g, int sig)
{
	pid_t parent = getpid(), kernel = g->pid, agent = find(g, STUB), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent) {
		pid_t program = find_traced(kernel, agent);

		if (program)
			kill(program, sig);
		util_sleep_ms(NAP_MS);
	}
	_exit(1);
}

/* ---- while it answers ---- */

/*
 * Between the guest handing over its answer and this process taking it: the agent waits for the
 * answer to be written then, and goes on when it is. That was seen on a busy machine only, where
 * this process was kept from reading the console for long enough; here it waits until the guest is
 * gone.
 */
static struct {
	const struct vhost_ops *real;
	struct guest *guest;
	pid_t whom;
	int sig;
} at_answer;

static void wait_for_end_of(const struct guest *g)
{
	struct pollfd fd = { g->pidfd, POLLIN, 0 };

	ok(poll(&fd, 1, HANG_MS) == 1, "it ends after it has answered");
}

static void serve(struct vhost *v, unsigned queue)
{
	const struct vhost_ring *ring = &v->queue[queue].ring;
	bool answers = at_answer.guest && !at_answer.guest->mail.waiting &&
		       !at_answer.guest->mail.has_mail && ring->avail->idx != ring->next;

	if (answers && at_answer.sig)
		kill(at_answer.whom, at_answer.sig);
	at_answer.real->serve(v, queue);
	if (answers) {
		wait_for_end_of(at_answer.guest);
		at_answer.guest = NULL;
	}
}

static void forget(struct vhost *v)
{
	at_answer.real->forget(v);
}

static const struct vhost_ops delayed = { .serve = serve, .forget = forget };

static void send_at_answer(struct guest *g, enum whom whom, int sig)
{
	at_answer.guest = g;
	at_answer.whom = sig ? find(g, whom) : 0;
	at_answer.sig = sig;
	if (g->mail.device.ops != &delayed)
		at_answer.real = g->mail.device.ops;
	g->mail.device.ops = &delayed;
}

/* ---- the conversation ---- */

/* A new guest, with an empty file system that is mounted, and one operation done. */
static bool begin(struct target *t, const struct image *img, const struct workload *w)
{
	struct err err = ERR_INIT;
	auto_strbuf said = STRBUF_INIT;
	int64_t result;
	int rc = disk_load(t->disk, img, &err);

	if (!rc)
		rc = target_mount(t, &said, &err);
	if (!rc)
		rc = target_begin(t, w, NULL, &err);
	if (!rc)
		rc = target_op(t, CREAT, &result, &err);
	return ok(!rc, "a guest runs%s%s", rc ? ": " : "", err.msg);
}

/*
 * Asks until the guest was caught as it answers, which it may do before this process looks; and
 * once more, for what it died of may be known with the next question only.
 */
static int perform(struct target *t, enum operation op, struct err *err)
{
	int64_t result;
	int rc;

	do
		rc = target_op(t, op, &result, err);
	while (!rc && at_answer.guest);
	return rc || op != CHMOD ? rc : target_op(t, op, &result, err);
}

enum when { BEFORE, AT_ANSWER, MEANWHILE };

struct disturbance {
	enum when when;
	enum whom whom;
	int sig;
	const char *words;
};

static void disturb(struct target *t, const struct image *img, const struct workload *w,
		    const struct disturbance *d)
{
	static const char *const whens[] = { "before it is asked", "as it answers", "meanwhile" },
				 *const whoms[] = { "the kernel", "the agent's process",
						    "a program's process" };
	struct err err = ERR_INIT;
	auto_strbuf log = STRBUF_INIT;
	pid_t sender = 0;

	printf("# signal %d for %s, %s\n", d->sig, whoms[d->whom], whens[d->when]);
	if (!begin(t, img, w))
		return;
	if (d->when == AT_ANSWER)
		send_at_answer(guest_of(t), d->whom, d->sig);
	else if (d->when == MEANWHILE)
		sender = send_to_programs(guest_of(t), d->sig);
	else
		ok(kill(find(guest_of(t), d->whom), d->sig) == 0, "the signal is sent");
	is_i(perform(t, d->when == MEANWHILE ? SPIN : CHMOD, &err), -EINTR, "it is an error");
	ok(strstr(err.msg, d->words), "which is told: %s", err.msg);
	ok(!guest_runs(guest_of(t)), "the guest is gone");
	ok(!target_kernel_log(t, &log), "its kernel complained of nothing: %.80s",
	   strbuf_str(&log));
	if (sender) {
		kill(sender, SIGKILL);
		waitpid(sender, NULL, 0);
	}
}

/* ---- by itself ---- */

static void panic(struct target *t, const struct image *img, const struct workload *w,
		  enum operation op)
{
	struct err err = ERR_INIT;
	auto_strbuf log = STRBUF_INIT;
	int64_t result;

	printf("# its kernel gives up, %s\n", op == PANIC ? "instead of an answer" : "after it");
	if (!begin(t, img, w))
		return;
	if (op == PANIC_LATER) {
		is_i(target_op(t, op, &result, &err), 0, "the guest answers");
		send_at_answer(guest_of(t), MAIN, 0);
		op = CHMOD;
	}
	is_i(perform(t, op, &err), 1, "its kernel is to blame: %s", err.msg);
	target_kernel_log(t, &log);
	ok(strstr(strbuf_str(&log), "Kernel panic - not syncing: sysrq triggered crash"),
	   "and has said so: %.80s", strbuf_str(&log));
}

static void go_through(struct target *t)
{
	static const char stub[] = "a process in which its kernel runs";
	static const struct disturbance all[] = {
		{ AT_ANSWER, STUB, SIGSTOP, stub },
		{ AT_ANSWER, STUB, SIGKILL, stub },
		{ AT_ANSWER, STUB, SIGSEGV, stub },
		{ AT_ANSWER, STUB, SIGBUS, stub },
		{ AT_ANSWER, STUB, SIGUSR1, stub },
		{ AT_ANSWER, MAIN, SIGKILL, "killed from outside" },
		{ BEFORE, STUB, SIGSTOP, stub },
		{ BEFORE, STUB, SIGFPE, stub },
		{ BEFORE, MAIN, SIGABRT, "ended by signal 6" },
		{ BEFORE, MAIN, SIGTRAP, "got a signal" },
		{ MEANWHILE, PROGRAM, SIGKILL, stub },
		{ MEANWHILE, PROGRAM, SIGSTOP, stub },
	};
	struct err err = ERR_INIT;
	auto_workload w;
	struct image img;

	workload_init(&w);
	is_i(workload_parse(text, strlen(text), "test", &w, &err), 0, "a workload");
	is_i(target_mkfs(t, &img, &err), 0, "mkfs");
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (all[i].whom == PROGRAM && !guest_root_has_shell())
			skip("busybox is not there");
		else
			disturb(t, &img, &w, &all[i]);
	}
	if (guest_root_has_shell()) {
		panic(t, &img, &w, PANIC);
		panic(t, &img, &w, PANIC_LATER);
	} else {
		skip("busybox is not there");
	}
	image_release(&img);
}

int main(void)
{
	auto_free char *kernel = proc_find("linux.uml"), *mkfs = proc_find("mke2fs");
	struct err err = ERR_INIT;
	struct target_opts opts = { .spec = "uml:ext4" };
	struct target t;

	if (!kernel || !mkfs) {
		skip("linux.uml or mke2fs is not there");
		return done_testing();
	}
	if (target_open(&opts, &t, &err)) {
		ok(false, "%s", err.msg);
		return done_testing();
	}
	go_through(&t);
	target_close(&t);
	return done_testing();
}
