/* SPDX-License-Identifier: MIT */
/* search.c - see search.h. The states are checked by workers, whose parent this is. */
#include "pm/search.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "pm/worker.h"

enum { JOBS_MAX = 256, FAILURES_MAX = 4096, POLL_MS = 200 };

const struct pm_run *pm_failure_run(const struct pm_run *r, const struct pm_failure *f)
{
	return f->recovery ? &r->nested[f->recovery - 1] : r;
}

void pm_failure_release(struct pm_failure *f)
{
	free(f->state);
	free(f->lost);
	free(f->survived);
	free(f->said);
	*f = (struct pm_failure){ 0 };
}

void pm_found_release(struct pm_found *f)
{
	for (size_t i = 0; i < f->failures.n; i++)
		pm_failure_release(&f->failures.v[i]);
	vec_release(&f->failures);
	pm_reasons_release(&f->reasons);
	for (size_t i = 0; i < f->changes.n; i++)
		free(f->changes.v[i].state);
	vec_release(&f->changes);
}

bool pm_found_add(struct pm_found *found, const struct pm_run *r, struct pm_failure *f)
{
	/* A reason that first shows after thousands of failures for others is a finding, too. */
	bool first = pm_reasons_add(&found->reasons, r, f);

	if (first || found->failures.n < FAILURES_MAX) {
		vec_push(&found->failures, *f);
		*f = (struct pm_failure){ 0 };
	} else {
		pm_failure_release(f);
		found->dropped++;
	}
	return first;
}

/* ---- what workers tell ---- */

struct slot {
	pid_t pid;
	int fd; /* -1: it has ended */
	struct pm_message last;
	bool ended;
};

struct search {
	const struct pm_search_opts *o;
	struct pm_found *found;
	struct slot slot[JOBS_MAX];
	unsigned jobs;
};

static void first_error(struct pm_found *f, const char *text)
{
	if (!f->error[0])
		snprintf(f->error, sizeof(f->error), "%s", text);
}

static bool read_part(int fd, void *to, size_t len)
{
	return !len || io_read_full(fd, to, len) == (ssize_t)len;
}

static void add_failure(struct search *x, struct pm_failure *f)
{
	const struct pm_search_opts *o = x->o;

	if (o->recovery) {
		char *id = xasprintf("r%" PRIu64 ":%s", o->recovery - 1, f->state);

		free(f->state);
		f->state = id;
		f->recovery = o->recovery;
	}
	if (o->run->plan.dump)
		vec_push(&x->found->failures, *f);
	else if (pm_found_add(x->found, o->whole ? o->whole : o->run, f) && o->failed)
		o->failed(o->ctx, &vec_last(&x->found->failures));
}

static bool hear_failure(struct search *x, int fd, const struct pm_message *m)
{
	struct pm_failure f = { .point = m->point,
				.layer = m->layer,
				.end = m->end,
				.exit_code = m->exit_code,
				.signal = m->signal,
				.cause = m->cause,
				.prefix = m->prefix,
				.n_lost = m->n_lost,
				.n_survived = m->n_survived,
				.media = m->media,
				.fault = m->fault };
	size_t lost = pm_listed(m->n_lost), survived = pm_listed(m->n_survived);

	f.state = xcalloc(1, m->id_len + 1);
	f.lost = xcalloc(lost + 1, sizeof(*f.lost));
	f.survived = xcalloc(survived + 1, sizeof(*f.survived));
	f.said = xcalloc(1, m->said_len + 1);
	bool good = read_part(fd, f.state, m->id_len) &&
		    read_part(fd, f.lost, lost * sizeof(*f.lost)) &&
		    read_part(fd, f.survived, survived * sizeof(*f.survived)) &&
		    read_part(fd, f.said, m->said_len);
	if (good)
		add_failure(x, &f);
	else
		pm_failure_release(&f);
	return good;
}

static bool hear_change(struct search *x, int fd, const struct pm_message *m)
{
	struct pm_change c = { m->change, xcalloc(1, m->id_len + 1) };
	bool good = read_part(fd, c.state, m->id_len);

	vec_push(&x->found->changes, c);
	return good;
}

static bool hear_error(struct search *x, int fd, const struct pm_message *m)
{
	auto_free char *text = xcalloc(1, m->said_len + 1);
	bool good = read_part(fd, text, m->said_len);

	first_error(x->found, text);
	return good;
}

/* False: nothing more will come. */
static bool hear(struct search *x, struct slot *s)
{
	struct pm_message m;

	if (!read_part(s->fd, &m, sizeof(m)))
		return false;
	switch (m.what) {
	case SAID_FAILURE:
		if (!hear_failure(x, s->fd, &m))
			return false;
		s->last = m;
		return true;
	case SAID_CHANGE:
		return hear_change(x, s->fd, &m);
	case SAID_ERROR:
		return hear_error(x, s->fd, &m);
	default:
		s->last = m;
		s->ended = m.what == SAID_END;
		return !s->ended;
	}
}

/* ---- workers ---- */

static void close_slot(struct search *x, struct slot *s)
{
	if (!s->ended) {
		s->last.errors++;
		first_error(x->found, "a process that checks crash states was killed");
	}
	util_close(steal_fd(&s->fd));
	while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int start_worker(struct search *x, unsigned i, struct pm_worker *common, uint64_t until,
			struct err *err)
{
	pid_t parent = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return err_set(err, -errno, "cannot make a pipe: %m");
	pid_t pid = fork();
	if (!pid) {
		for (unsigned j = 0; j < i; j++)
			util_close(x->slot[j].fd);
		util_close(fds[0]);
		pm_work(common, &(struct pm_share){ i, x->jobs, fds[1], until, parent });
	}
	util_close(fds[1]);
	if (pid < 0) {
		util_close(fds[0]);
		return err_set(err, -errno, "cannot start a process: %m");
	}
	x->slot[i] = (struct slot){ .pid = pid, .fd = fds[0] };
	return 0;
}

static int start_workers(struct search *x, struct pm_worker *common, struct err *err)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < x->jobs; i++)
		rc = start_worker(x, i, common, x->o->until_ns, err);
	return rc;
}

static void add_up(struct search *x)
{
	struct pm_found *f = x->found;

	f->checked = f->failing = f->errors = f->known = f->media = 0;
	f->media_left_out = 0;
	for (unsigned i = 0; i < x->jobs; i++) {
		const struct pm_message *m = &x->slot[i].last;

		f->checked += m->checked;
		f->failing += m->failing;
		f->errors += m->errors;
		f->known += m->known;
		f->media += m->media_states;
		f->media_left_out += m->media_left_out;
		f->stopped |= m->stopped;
		/* All go through the same; the budget is known to be used up after the last. */
		bool budget_hit = f->stats.budget_hit || m->stats.budget_hit;
		if (m->stats.tried > f->stats.tried)
			f->stats = m->stats;
		f->stats.budget_hit = budget_hit;
	}
}

static bool listen_all(struct search *x)
{
	struct pollfd fds[JOBS_MAX];
	bool any = false;

	for (unsigned i = 0; i < x->jobs; i++) {
		fds[i] = (struct pollfd){ x->slot[i].fd, POLLIN, 0 };
		any |= x->slot[i].fd >= 0;
	}
	if (!any)
		return false;
	poll(fds, x->jobs, POLL_MS);
	for (unsigned i = 0; i < x->jobs; i++)
		if (x->slot[i].fd >= 0 && fds[i].revents && !hear(x, &x->slot[i]))
			close_slot(x, &x->slot[i]);
	return true;
}

/* What they have told until then is heard. */
static void stop_workers(struct search *x)
{
	for (unsigned i = 0; i < x->jobs; i++) {
		struct slot *s = &x->slot[i];

		if (s->fd < 0)
			continue;
		kill(s->pid, SIGKILL);
		while (hear(x, s))
			;
		s->ended = true;
		close_slot(x, s);
	}
}

int pm_search(const struct pm_search_opts *o, struct pm_found *out, struct err *err)
{
	struct search *x = xcalloc(1, sizeof(*x));

	*out = (struct pm_found){ 0 };
	x->o = o;
	x->found = out;
	x->jobs = min(max(o->jobs, 1u), (unsigned)JOBS_MAX);
	for (unsigned i = 0; i < x->jobs; i++)
		x->slot[i].fd = -1;
	struct pm_worker *common = NULL;
	int rc = pm_worker_new(o, &common, err);
	if (!rc)
		rc = start_workers(x, common, err);
	while (!rc && !(o->stop && *o->stop) && listen_all(x)) {
		add_up(x);
		if (o->progress)
			o->progress(o->ctx, out->checked, out->failing);
	}
	stop_workers(x);
	pm_worker_free(common);
	add_up(x);
	out->stopped |= o->stop && *o->stop;
	free(x);
	return rc;
}
