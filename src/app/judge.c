/* SPDX-License-Identifier: MIT */
/* judge.c - makes a verdict from how a command ended and from its output. */
#include "app/judge.h"

/*
 * The output of a restart does not answer a query, and is shown only if the restart fails: it goes
 * to standard error, which is kept apart. Our lines there separate its failure from a failure of
 * the next command, and its words from those of a query.
 */
#define RESTART_FAILED "outage: the restart ended with status "
#define RESTART_DONE   "outage: the restart is done"
#define RESTART_BEFORE "(\n"
#define RESTART_AFTER                                                                              \
	"\n) >&2 || { s=$?; echo \"" RESTART_FAILED "$s\"; exit $s; }\n"                           \
	"echo '" RESTART_DONE "' >&2\n"

/* True if the restart runs first, as a separate command. */
static bool has_restart(const struct app_plan *plan)
{
	return plan->restart && (plan->check || plan->query);
}

void judge_init(struct judge *j, const struct app_plan *plan, const struct words *acks,
		const struct words *shown)
{
	*j = (struct judge){ .plan = plan, .acks = acks, .shown = shown };
	const char *asks = plan->query ? plan->query : app_plan_command(plan);

	j->errors_apart = plan->query || has_restart(plan);
	j->command = has_restart(plan)
			     ? xasprintf(RESTART_BEFORE "%s" RESTART_AFTER "%s%s", plan->restart,
					 plan->query ? "" : "exec 2>&1\n", asks)
			     : xstrdup(asks);
}

void judge_release(struct judge *j)
{
	free(j->command);
	*j = (struct judge){ 0 };
}

void verdict_release(struct verdict *v)
{
	strbuf_release(&v->said);
	free(v->seen);
	*v = (struct verdict){ 0 };
}

static void fail(struct verdict *v, enum app_harm harm, char *seen)
{
	v->fails = true;
	v->harm = harm;
	free(v->seen);
	v->seen = seen;
}

/* Takes the last line "outage: silent-loss" of the output as the harm. */
static void take_hint(struct verdict *v)
{
	const char *p = strbuf_str(&v->said);

	while ((p = strstr(p, "outage: "))) {
		p += strlen("outage: ");
		enum app_harm h = app_harm_find(p, strcspn(p, " \t\r\n"));

		if (h != APP_HARM_END)
			v->harm = h;
	}
}

/* ---- answers of a query ---- */

static bool has_line(const struct strbuf *text, const char *line)
{
	size_t len = strlen(line);

	for (const char *p = strbuf_str(text);; p++) {
		const char *end = strchrnul(p, '\n');

		if ((size_t)(end - p) == len && strncmp(p, line, len) == 0)
			return true;
		if (!*end)
			return false;
		p = end;
	}
}

static bool lists(const struct words *lines, const char *line, size_t len)
{
	return any_of(i, lines->n,
		      strlen(lines->v[i]) == len && strncmp(lines->v[i], line, len) == 0);
}

static void judge_shown(const struct judge *j, uint64_t acked, struct verdict *v)
{
	for (uint64_t i = 0; i < acked && i < j->acks->n; i++)
		if (!has_line(&v->said, j->acks->v[i])) {
			fail(v, APP_ROLLED_BACK,
			     xasprintf("the query does not show '%.100s', which was acknowledged",
				       j->acks->v[i]));
			return;
		}
	if (!j->shown)
		return;
	for (const char *p = strbuf_str(&v->said); *p;) {
		size_t len = strcspn(p, "\n");

		if (len && !lists(j->shown, p, len) && !lists(j->acks, p, len)) {
			fail(v, APP_CORRUPT,
			     xasprintf("the query shows '%.*s', which the run never did",
				       (int)min(len, (size_t)100), p));
			return;
		}
		p += len + (p[len] == '\n');
	}
}

/* ---- all of it ---- */

/* Takes the output, and the standard error of a command that failed. */
static void take_said(const struct judge *j, const struct check_result *r, bool down,
		      struct strbuf *said)
{
	const char *end = strbuf_str(&r->output) + r->output.len, *errors = end - r->errors;

	strbuf_add(said, strbuf_str(&r->output), r->output.len - r->errors);
	if (has_restart(j->plan) && !down) {
		const char *done = strstr(errors, RESTART_DONE "\n");

		errors = done ? done + sizeof(RESTART_DONE) : end;
	}
	if (down || (j->plan->query && r->end != CHECK_PASSED))
		strbuf_add(said, errors, (size_t)(end - errors));
}

void judge_verdict(const struct judge *j, uint64_t acked, const struct check_result *r,
		   struct verdict *out)
{
	const struct app_plan *p = j->plan;
	bool down = has_restart(p) &&
		    strncmp(strbuf_str(&r->output), RESTART_FAILED, strlen(RESTART_FAILED)) == 0;
	const char *what = down ? "restart" : app_plan_asks(p);
	auto_strbuf how = STRBUF_INIT;

	verdict_release(out);
	out->harm = APP_FAILED;
	take_said(j, r, down, &out->said);
	check_describe(r, &how);
	if (r->end == CHECK_ERROR || r->filled) {
		out->error = true;
		out->seen = r->filled ? xstrdup("there is no room left for what the check writes")
				      : xstrdup(strbuf_str(&r->output));
		return;
	}
	if (r->end == CHECK_PASSED) {
		if (p->query && r->output_cut) {
			out->error = true;
			out->seen = xasprintf("the query prints more than %d bytes: let it print "
					      "less, or use --check",
					      CHECK_OUTPUT_MAX);
		} else if (p->query) {
			judge_shown(j, acked, out);
		}
		return;
	}
	fail(out,
	     r->end == CHECK_HUNG						 ? APP_HANG
	     : r->end == CHECK_KILLED || r->exit_code > 128 || down || !p->check ? APP_UNAVAILABLE
										 : APP_FAILED,
	     xasprintf("the %s %s", what, strbuf_str(&how)));
	take_hint(out);
}
