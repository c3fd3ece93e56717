/* SPDX-License-Identifier: MIT */
/*
 * app_record.c - one run of an application, recorded by a process of its own.
 *
 * That process is in another mount namespace, and adopts what the application leaves; what it has
 * to tell comes back through a pipe, a key and a value in each line.
 */
#include "app/app_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/history.h"
#include "base/io.h"
#include "base/number.h"
#include "base/proc.h"
#include "base/signals.h"
#include "core/posix.h"
#include "forget/forget_record.h"

/* ---- copies ---- */

/* Copies a directory with all that is in it. `to` is made. */
static int app_copy(const char *from, const char *to, struct err *err)
{
	auto_free char *all = xasprintf("%s/.", from);
	const char *argv[] = { "cp", "-a", "--reflink=auto", "--sparse=auto", "--", all, to, NULL };
	struct proc_opts o = { .argv = argv, .merge_stderr = true };
	struct proc_result res = { 0 };
	auto_strbuf how = STRBUF_INIT;

	if (mkdir(to, 0777) < 0)
		return err_set(err, -errno, "cannot make the directory %s: %m", to);
	int rc = proc_run(&o, &res, err);
	if (!rc && (res.exit_code || res.timed_out)) {
		proc_describe(&res, &o, &how);
		rc = err_set(err, -EIO, "cannot copy %s to %s: cp %s: %.300s", from, to,
			     strbuf_str(&how), strbuf_str(&res.out));
	}
	proc_result_release(&res);
	return rc;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

/* What a run worked on, of which nothing is needed any more. */
void app_remove(const char *dir)
{
	nftw(dir, remove_one, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* ---- what the recording process does ---- */

static int tell_names(void *ctx, int dir, struct trace *t, struct err *err)
{
	auto_strbuf record = STRBUF_INIT;
	struct stat st;
	struct event ev;

	(void)ctx;
	if (fstat(dir, &st))
		return err_set(err, -errno, "cannot look at the recording mount: %m");
	/* Whoever reads the trace knows by this which directory is the top. */
	struct posix_event top = { .op = POSIX_LOOKUP, .ino = st.st_ino, .name = "." };
	posix_to_event(&top, 0, &record, &ev);
	trace_append(t, &ev);
	return history_lookups(dir, t, err);
}

static void tell(FILE *f, const char *key, const char *value)
{
	auto_strbuf flat = STRBUF_INIT;

	strbuf_add_flat(&flat, value);
	fprintf(f, "%s\t%s\n", key, strbuf_str(&flat));
}

static void tell_number(FILE *f, const char *key, int64_t n)
{
	fprintf(f, "%s\t%lld\n", key, (long long)n);
}

static void tell_result(FILE *f, const struct forget_record *r)
{
	auto_strbuf end = STRBUF_INIT;

	tell_number(f, "end", r->end);
	tell_number(f, "exit", r->exit_code);
	tell_number(f, "signal", r->signal);
	tell_number(f, "stop", r->stop_code);
	tell_number(f, "root", (int64_t)r->root_ino);
	for (size_t i = 0; i < r->left.n; i++)
		tell(f, "left", r->left.v[i]);
	for (size_t i = 0; i < r->outside.n; i++)
		tell(f, "outside", r->outside.v[i]);
	tell_number(f, "outside-more", (int64_t)r->outside_more);
	tell_number(f, "outside-unknown", r->outside_unknown);
	tell_number(f, "syncs-unseen", r->syncs_unseen);
	size_t len = r->said.len, from = len > 300 ? len - 300 : 0;
	strbuf_adds(&end, strbuf_str(&r->said) + from);
	tell(f, "said", strbuf_str(&end));
}

static int record_process(const struct forget_record_opts *o, int to)
{
	struct forget_record r;
	struct err err = ERR_INIT;
	FILE *f = fdopen(to, "w");

	if (!f)
		return 1;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0); /* Ctrl-C goes to the parent, which tells us */
	if (forget_record(o, &r, &err))
		tell(f, "failed", err.msg);
	else
		tell_result(f, &r);
	forget_record_release(&r);
	return fclose(f) ? 1 : 0;
}

/* ---- what the parent makes of it ---- */

struct heard {
	int64_t end, exit, signal, stop, root, outside_more, outside_unknown, syncs_unseen;
	char *failed, *said;
	struct words left, outside;
};

static void heard_release(struct heard *h)
{
	free(h->failed);
	free(h->said);
	words_release(&h->left);
	words_release(&h->outside);
}

static void hear_line(struct heard *h, const char *key, const char *value)
{
	const struct {
		const char *key;
		int64_t *to;
	} numbers[] = { { "end", &h->end },
			{ "exit", &h->exit },
			{ "signal", &h->signal },
			{ "stop", &h->stop },
			{ "root", &h->root },
			{ "outside-more", &h->outside_more },
			{ "outside-unknown", &h->outside_unknown },
			{ "syncs-unseen", &h->syncs_unseen } };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (streq(key, numbers[i].key))
			*numbers[i].to = strtoll(value, NULL, 10);
	if (streq(key, "failed"))
		h->failed = xstrdup(value);
	else if (streq(key, "said"))
		h->said = xstrdup(value);
	else if (streq(key, "left"))
		vec_push(&h->left, xstrdup(value));
	else if (streq(key, "outside"))
		vec_push(&h->outside, xstrdup(value));
}

static void hear(struct heard *h, const struct strbuf *text)
{
	auto_free char *copy = xstrdup(strbuf_str(text));
	char *line, *rest = copy;

	while ((line = strsep(&rest, "\n"))) {
		char *tab = strchr(line, '\t');

		if (tab) {
			*tab = '\0';
			hear_line(h, line, tab + 1);
		}
	}
}

static volatile sig_atomic_t told_to_stop;

static void on_signal(int sig)
{
	told_to_stop = sig;
}

static int spawn(const struct forget_record_opts *o, struct strbuf *text, struct err *err)
{
	struct signals signals;
	int ends[2];
	char data[4096];
	bool passed = false;

	if (pipe2(ends, O_CLOEXEC))
		return err_set(err, -errno, "cannot make a pipe: %m");
	fflush(NULL);
	told_to_stop = 0;
	signals_catch(&signals, on_signal);
	pid_t pid = fork();
	if (!pid) {
		close(ends[0]);
		_exit(record_process(o, ends[1]));
	}
	close(ends[1]);
	for (;;) {
		ssize_t n = pid < 0 ? 0 : read(ends[0], data, sizeof(data));

		if (n > 0)
			strbuf_add(text, data, (size_t)n);
		else if (n == 0 || errno != EINTR)
			break;
		if (told_to_stop && !passed) {
			kill(pid, SIGTERM);
			passed = true;
		}
	}
	close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	signals_restore(&signals);
	if (pid < 0)
		return err_set(err, -EAGAIN, "cannot start a process");
	return told_to_stop ? err_set(err, -EINTR, "stopped by a signal") : 0;
}

static int judge(const struct app_record_opts *o, const struct heard *h, struct err *err)
{
	const char *said = h->said && *h->said ? h->said : "it said nothing";

	if (h->failed)
		return err_set(err, -EIO, "%s", h->failed);
	switch (h->end) {
	case FORGET_RECORD_TIMEOUT:
		return err_set(
			err, -ETIMEDOUT,
			"the run did not end within %llu s; give --timeout, or --stop CMD or "
			"--kill for a server (%.300s)",
			(unsigned long long)(o->timeout_ms / 1000), said);
	case FORGET_RECORD_TOO_LONG:
		return err_set(err, -EFBIG,
			       "the run wrote more than %llu MiB to its trace; make it shorter",
			       (unsigned long long)(o->trace_max >> 20));
	case FORGET_RECORD_STOPPED:
		return err_set(err, -EINTR, "stopped by a signal");
	case FORGET_RECORD_DONE:
		break;
	default:
		return err_set(err, -EIO, "the recording ended without a word");
	}
	if (h->signal)
		return err_set(err, -EIO,
			       "the run was ended by signal %d (%s), without any crash: %.300s",
			       (int)h->signal, strsignal((int)h->signal), said);
	if (h->exit)
		return err_set(err, -EIO,
			       "the run fails by itself, with exit status %d, without any crash: "
			       "%.300s",
			       (int)h->exit, said);
	if (h->stop)
		return err_set(err, -EIO, "--stop fails with exit status %d: %.300s", (int)h->stop,
			       said);
	return 0;
}

static char *joined(const struct words *s, size_t most)
{
	struct strbuf sb = STRBUF_INIT;

	for (size_t i = 0; i < s->n && i < most; i++)
		strbuf_addf(&sb, "%s%s", i ? ", " : "", s->v[i]);
	if (s->n > most)
		strbuf_addf(&sb, " and %zu more", s->n - most);
	return strbuf_detach(&sb);
}

static void make_notes(const struct heard *h, struct words *notes)
{
	if (h->left.n) {
		auto_free char *all = joined(&h->left, 5);

		vec_push(notes, xasprintf("the run left %s behind: %s; ended with SIGTERM, then "
					  "SIGKILL; --stop CMD or --kill say how it should end",
					  plural(h->left.n, "a process", "processes"), all));
	}
	if (h->outside.n) {
		auto_free char *all = joined(&h->outside, 5);

		vec_push(notes,
			 xasprintf("the run wrote outside of its directory: %s; that is not part "
				   "of any crash",
				   all));
	}
	if (h->syncs_unseen)
		vec_push(notes,
			 xstrdup("sync(2) and syncfs(2) are not seen here, as no seccomp "
				 "filter could be set: what relies on them seems to be lost"));
	if (h->outside_unknown)
		vec_push(notes, xstrdup("whether the run wrote outside of its directory is not "
					"known: that can be seen by root only"));
}

int app_record(const struct app_record_opts *o, uint64_t *root_ino, struct words *notes,
	       struct err *err)
{
	auto_free char *base = xasprintf("%s/base", o->run);
	auto_free char *work = xasprintf("%s/work", o->run);
	auto_free char *trace = xasprintf("%s/trace", o->run);
	auto_free char *stacks = xasprintf("%s/stacks", o->run);
	auto_strbuf text = STRBUF_INIT;
	struct heard h = { .end = -1, .exit = -1 };
	int rc = app_copy(o->dir, base, err);

	if (!rc)
		rc = app_copy(o->dir, work, err);
	if (rc)
		return rc;
	struct forget_record_opts r = {
		.dir = o->dir,
		.root = work,
		.trace = trace,
		.stacks = o->plan->stacks ? stacks : NULL,
		.run = o->plan->run,
		.stop = o->plan->stop,
		.kill = o->plan->kill,
		.timeout_ms = o->timeout_ms,
		.trace_max = o->trace_max,
		.mounted = tell_names,
	};
	rc = spawn(&r, &text, err);
	hear(&h, &text);
	if (!rc)
		rc = judge(o, &h, err);
	*root_ino = (uint64_t)h.root;
	if (!rc)
		make_notes(&h, notes);
	heard_release(&h);
	app_remove(work);
	return rc;
}
