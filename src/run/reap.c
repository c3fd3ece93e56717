/* SPDX-License-Identifier: MIT */
#include "run/reap.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/proc.h"
#include "base/vec.h"

enum { PATIENCE_MS = 5000, NAP_MS = 10 };

struct pids vec_of(pid_t);

static bool contains(const struct pids *list, pid_t pid)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i] == pid)
			return true;
	return false;
}

/* One pass over all processes: those whose parent is in the list. True if some were added. */
static bool add_children(struct pids *list)
{
	DIR *proc = opendir("/proc");
	size_t before = list->n;

	for (struct dirent *d; proc && (d = readdir(proc));) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
		struct proc_stat p;

		if (pid > 0 && proc_stat(pid, &p) && contains(list, p.parent) &&
		    !contains(list, pid))
			vec_push(list, pid);
	}
	if (proc)
		closedir(proc);
	return list->n > before;
}

static bool same_program(pid_t pid)
{
	char path[64];
	struct stat ours, theirs;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return stat("/proc/self/exe", &ours) == 0 && stat(path, &theirs) == 0 &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

bool reap_tree(pid_t pid, int *status)
{
	struct pids list = { 0 };
	bool gone = false;

	vec_push(&list, pid);
	while (add_children(&list))
		;
	kill(pid, SIGKILL);
	for (size_t i = 1; i < list.n; i++)
		if (!same_program(list.v[i]))
			kill(list.v[i], SIGKILL);
	vec_release(&list);
	for (int ms = 0; ms < PATIENCE_MS && !gone; ms += NAP_MS) {
		pid_t got = waitpid(pid, status, WNOHANG);

		gone = got == pid || (got < 0 && errno == ECHILD);
		if (!gone)
			util_sleep_ms(NAP_MS);
	}
	return gone;
}

bool reap_stopped(pid_t pid, struct strbuf *who)
{
	struct pids list = { 0 };
	struct proc_stat p;
	bool any = false;

	vec_push(&list, pid);
	while (add_children(&list))
		;
	for (size_t i = 0; i < list.n && !any; i++) {
		auto_strbuf name = STRBUF_INIT;
		char path[64];

		/* What is traced, as by user-mode Linux, is in state 't'. */
		if (!proc_stat(list.v[i], &p) || p.state != 'T')
			continue;
		any = true;
		snprintf(path, sizeof(path), "/proc/%d/comm", (int)list.v[i]);
		if (io_slurp(path, 64, &name, NULL))
			strbuf_clear(&name);
		strbuf_addf(who, "process %d (%.*s)", (int)list.v[i],
			    (int)strcspn(strbuf_str(&name), "\n"), strbuf_str(&name));
	}
	vec_release(&list);
	return any;
}

/* Of all threads of a process; nothing where the kernel does not tell. */
static void add_share(pid_t pid, struct reap_share *out)
{
	auto_free char *path = xasprintf("/proc/%d/task", (int)pid);
	DIR *tasks = opendir(path);

	for (struct dirent *d; tasks && (d = readdir(tasks));) {
		auto_free char *file = xasprintf("%s/%s/schedstat", path, d->d_name);
		auto_strbuf text = STRBUF_INIT;
		unsigned long long ran, waited;
		struct proc_stat p;

		if (*d->d_name == '.' || io_slurp(file, 256, &text, NULL) ||
		    sscanf(strbuf_str(&text), "%llu %llu", &ran, &waited) != 2)
			continue;
		out->ran_ns += ran;
		out->waited_ns += waited;
		out->waits |= proc_stat((pid_t)strtol(d->d_name, NULL, 10), &p) && p.state == 'R';
	}
	if (tasks)
		closedir(tasks);
}

void reap_share(pid_t pid, struct reap_share *out)
{
	struct pids list = { 0 };

	*out = (struct reap_share){ 0 };
	vec_push(&list, pid);
	while (add_children(&list))
		;
	for (size_t i = 0; i < list.n; i++)
		add_share(list.v[i], out);
	vec_release(&list);
}

void reap_describe(pid_t pid, struct strbuf *out)
{
	auto_strbuf stack = STRBUF_INIT;
	struct proc_stat p;
	char path[64];

	if (!proc_stat(pid, &p))
		return;
	snprintf(path, sizeof(path), "/proc/%d/stack", (int)pid);
	strbuf_addf(out, "process %d is in state %c\n", (int)pid, p.state);
	if (io_slurp(path, 65536, &stack, NULL) == 0 && stack.len)
		strbuf_addf(out, "its stack in the kernel:\n%s", stack.buf);
}
