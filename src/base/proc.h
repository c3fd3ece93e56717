/* SPDX-License-Identifier: MIT */
/*
 * proc.h - child processes that cannot outlive their time or their parent.
 *
 * A child gets a process group of its own; when the child's time is up, the group gets SIGTERM and,
 * after a grace period, SIGKILL. The time begins at the fork: changing to a directory, or loading a
 * program, can hang as well. If we die, the kernel kills the child (PR_SET_PDEATHSIG).
 */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

struct proc_opts {
	const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH */
	const char *cwd;	 /* NULL: ours */
	/* Variables that the child does not get, up to NULL; NULL: the child gets all of ours. */
	const char *const *unset;
	const char *input; /* text that the child reads; NULL: none */
	size_t input_len;
	uint64_t timeout_ms; /* counted from the fork; 0: no limit */
	size_t output_limit; /* bytes of output kept; the rest is read and dropped; 0: 1 MiB */
	bool merge_stderr;   /* standard error goes into `out` as well */
};

struct proc_result {
	int exit_code; /* 0-255, or -1 if a signal ended it */
	int signal;    /* 0, or the signal that ended it */
	bool timed_out;
	bool output_cut;
	struct strbuf out;
	struct strbuf err;
};

void proc_result_release(struct proc_result *r);

/* Runs a program to its end, of which `res` tells. Fails only if it could not be run. */
int proc_run(const struct proc_opts *opts, struct proc_result *res, struct err *err) must_check;

/* Another process, as /proc/PID/stat tells. */
struct proc_stat {
	char state; /* 'Z': the process has ended, and its parent has not waited for it yet */
	pid_t parent;
	bool kernel;		    /* a thread of the kernel */
	unsigned long long started; /* in ticks since boot; with the number, an identity */
	unsigned long ran;	    /* in ticks, with its threads that have ended */
	unsigned long ended_ran;    /* ticks of children that ended and were waited for */
};

/* Reads /proc/PID/stat. False if there is no such process. */
bool proc_stat(pid_t pid, struct proc_stat *out);

struct proc_list vec_of(pid_t);

/* Adds a process, then all that are below it now. The search is bounded. */
void proc_tree(pid_t pid, struct proc_list *list);
/* The file that PATH gives for a program, to be freed; NULL if there is none. */
char *proc_find(const char *program);

/*
 * Reads the available data, and keeps as much as fits into `limit`. Closes `fd` at the end of the
 * stream. False if there was no data.
 */
bool proc_drain(int *fd, struct strbuf *to, size_t limit, bool *cut);

/* Called in a child: it is killed when its parent ends, or now if that has ended. */
void proc_tie(pid_t parent);

/*
 * If set, called in the child before it changes directory: for tests, and for a child with a root
 * of its own.
 */
extern void (*proc_in_child)(void);

/* "exited with status 1", "was killed by signal 9 (Killed)", "took longer than 2000 ms" */
void proc_describe(const struct proc_result *res, const struct proc_opts *opts, struct strbuf *out);

#endif
