/* SPDX-License-Identifier: MIT */
/*
 * app_record.c - one run of an application, recorded by a process of its own.
 *
 * That process is in another mount namespace, and adopts the processes that the application leaves
 * behind; it sends its results through a pipe: binary numbers, then texts, each with its zero.
 */
#include "app/app_record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/history.h"
#include "base/below.h"
#include "base/io.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/signals.h"
#include "core/posix.h"
#include "forget/forget_record.h"

#define TRACE_BYTES_MAX ((uint64_t)2 << 30)

/* ---- copies ---- */

/* Copies a directory with its content. `to` is made. */
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

/* ---- the recording process ---- */

/* Adds the acknowledgements of the run before its crash. */
static void tell_marks(const struct app_restart *again, struct trace *t)
{
	for (uint64_t i = 0; i < again->point; i++) {
		enum event_kind kind = again->outer->events.v[i].kind;

		if (kind == EV_OP_BEGIN || kind == EV_PERSIST)
			trace_append(t, &again->outer->events.v[i]);
	}
}

static int tell_names(void *ctx, int dir, struct trace *t, struct err *err)
{
	const struct app_restart *again = ctx;
	auto_strbuf record = STRBUF_INIT;
	struct stat st;
	struct event ev;

	if (fstat(dir, &st))
		return err_set(err, -errno, "cannot look at the recording mount: %m");
	/* This event tells the reader of the trace which directory is the top. */
	struct posix_event top = { .op = POSIX_LOOKUP, .ino = st.st_ino, .name = "." };
	posix_to_event(&top, 0, &record, &ev);
	trace_append(t, &ev);
	int rc = history_lookups(dir, t, err);
	if (!rc && again)
		tell_marks(again, t);
	return rc;
}

/* The head of the message; its pointers are invalid. Then come the output, the error, the names. */
struct record_told {
	uint64_t len; /* the length of the message; another length means that it is incomplete */
	int rc;
	struct forget_record r;
};

static void tell(struct strbuf *to, const char *text)
{
	strbuf_add_flat(to, text);
	strbuf_addch(to, 0);
}

/* The work of a child process, which writes its result to `to`. */
typedef int process_fn(const void *ctx, int to);

static int record_process(const void *ctx, int to)
{
	struct record_told t = { 0 };
	struct forget_record *r = &t.r;
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	t.rc = forget_record(ctx, r, &err);
	strbuf_add(&text, &t, sizeof(t));
	tell(&text, strbuf_str(&r->said) + (r->said.len > 300 ? r->said.len - 300 : 0));
	tell(&text, err.msg);
	for (size_t i = 0; i < r->left.n; i++)
		tell(&text, r->left.v[i]);
	for (size_t i = 0; i < r->outside.n; i++)
		tell(&text, r->outside.v[i]);
	memcpy(text.buf, &(uint64_t){ text.len }, sizeof(uint64_t));
	forget_record_release(r);
	return io_write_full(to, text.buf, text.len) != 0;
}

struct put_request {
	const struct app_restart *again;
	const char *to;
};

static const char put_done[] = "done";

/*
 * Copies a crash state, which is visible in another mount namespace only. Writes put_done, or the
 * error.
 */
static int put_process(const void *ctx, int to)
{
	const struct put_request *x = ctx;
	struct err err = ERR_INIT;
	struct place *p = NULL;

	signals_in_child(false); /* the parent's handlers would let the copy go on */
	int rc = place_new(x->again->place, &p, &err);

	if (!rc)
		rc = place_put(p, x->again->state, &err);
	if (!rc)
		rc = app_copy(x->again->place->at, x->to, &err);
	const char *words = rc ? err.msg : put_done;
	place_free(p);
	return io_write_full(to, words, strlen(words)) != 0;
}

static int be_process(process_fn *work, const void *ctx, int to)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0); /* Ctrl-C goes to the parent, which stops this process */
	return work(ctx, to);
}

/* ---- the parent ---- */

static const char *take(const char **at)
{
	const char *text = *at;

	*at += strlen(text) + 1;
	return text;
}

/* Reads the message, and replaces the pointers to names. */
static int hear(const struct strbuf *text, struct forget_record *r, const char **said,
		struct err *err)
{
	const char *at = strbuf_str(text) + sizeof(struct record_told), *failed;
	struct record_told t = { 0 };

	*r = (struct forget_record){ 0 };
	if (text->len >= sizeof(t))
		memcpy(&t, text->buf, sizeof(t));
	if (!t.len || t.len != text->len)
		return err_set(err, -EIO, "the recording ended without a word");
	*said = take(&at);
	failed = take(&at);
	for (size_t i = 0; i < t.r.left.n; i++)
		vec_push(&r->left, xstrdup(take(&at)));
	for (size_t i = 0; i < t.r.outside.n; i++)
		vec_push(&r->outside, xstrdup(take(&at)));
	t.r.left = r->left;
	t.r.outside = r->outside;
	t.r.said = (struct strbuf)STRBUF_INIT;
	*r = t.r;
	return t.rc ? err_set(err, -EIO, "%s", failed) : 0;
}

static volatile sig_atomic_t told_to_stop;

static void on_signal(int sig)
{
	told_to_stop = sig;
}

static int spawn(process_fn *work, const void *ctx, struct strbuf *text, struct err *err)
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
		_exit(be_process(work, ctx, ends[1]));
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

static int judge(const struct app_record_opts *o, const struct forget_record *h, const char *said,
		 struct err *err)
{
	const char *what = o->again ? "restart" : "run";

	said = *said ? said : "it said nothing";
	switch (h->end) {
	case FORGET_RECORD_TIMEOUT:
		if (o->again)
			return err_set(
				err, -ETIMEDOUT,
				"the restart did not end within %llu s while it was recorded; "
				"give --timeout (%.300s)",
				llu(o->plan->timeout_ms / 1000), said);
		return err_set(
			err, -ETIMEDOUT,
			"the run did not end within %llu s; give --timeout, or --stop CMD or "
			"--kill for a server (%.300s)",
			llu(o->plan->timeout_ms / 1000), said);
	case FORGET_RECORD_TOO_LONG:
		return err_set(err, -EFBIG,
			       "the %s wrote more than %llu MiB to its trace; make it shorter",
			       what, llu(TRACE_BYTES_MAX >> 20));
	case FORGET_RECORD_STOPPED:
		return err_set(err, -EINTR, "stopped by a signal");
	case FORGET_RECORD_DONE:
		break;
	}
	if (h->signal)
		return err_set(
			err, -EIO, "the %s was ended by signal %d (%s), without %s crash: %.300s",
			what, h->signal, strsignal(h->signal), o->again ? "a second" : "any", said);
	if (h->exit_code)
		return err_set(err, -EIO,
			       "the %s fails by itself, with exit status %d, without %s crash: "
			       "%.300s",
			       what, h->exit_code, o->again ? "a second" : "any", said);
	if (h->stop_code)
		return err_set(err, -EIO, "--stop fails with exit status %d: %.300s", h->stop_code,
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

static void make_notes(const struct forget_record *h, struct words *notes)
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

/* Makes the directory in which the run, or the restart, works. */
static int make_base(const struct app_record_opts *o, const char *base, struct err *err)
{
	const struct put_request x = { o->again, base };
	auto_strbuf text = STRBUF_INIT;

	if (!o->again)
		return app_copy(o->plan->dir, base, err);
	int rc = spawn(put_process, &x, &text, err);
	if (!rc && !streq(strbuf_str(&text), put_done))
		rc = err_set(err, -EIO, "%s",
			     text.len ? strbuf_str(&text) : "a crash state could not be copied");
	return rc;
}

int app_record(const struct app_record_opts *o, uint64_t *root_ino, struct words *notes,
	       struct err *err)
{
	auto_free char *base = xasprintf("%s/base", o->run);
	auto_free char *work = xasprintf("%s/work", o->run);
	auto_free char *trace = xasprintf("%s/trace", o->run);
	auto_free char *stacks = xasprintf("%s/stacks", o->run);
	auto_strbuf text = STRBUF_INIT;
	struct forget_record h;
	struct err ignored = ERR_INIT;
	const char *said = "";
	int rc = make_base(o, base, err);

	if (!rc)
		rc = app_copy(o->again ? base : o->plan->dir, work, err);
	if (rc)
		return rc;
	struct forget_record_opts r = {
		.dir = o->plan->dir,
		.root = work,
		.trace = trace,
		.stacks = o->plan->stacks ? stacks : NULL,
		.run = o->again ? app_plan_restarts(o->plan) : o->plan->run,
		.acked = o->again ? o->again->acked : NULL,
		.point = o->again ? o->again->point : 0,
		.stop = o->again ? NULL : o->plan->stop,
		.kill = o->again || o->plan->kill, /* as a check does with processes left behind */
		.timeout_ms = o->plan->timeout_ms,
		.trace_max = TRACE_BYTES_MAX,
		.mounted = tell_names,
		.ctx = (void *)(uintptr_t)o->again,
	};
	rc = spawn(record_process, &r, &text, err);
	int heard = hear(&text, &h, &said, rc ? NULL : err);
	rc = rc ? rc : heard;
	if (!rc)
		rc = judge(o, &h, said, err);
	*root_ino = h.root_ino;
	if (!rc)
		make_notes(&h, notes);
	forget_record_release(&h);
	if (below_remove(o->run, "work", &ignored)) /* then the directory stays */
		log_debug("%s", ignored.msg);
	return rc;
}
