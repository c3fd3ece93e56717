/* SPDX-License-Identifier: MIT */
/* judge.c - makes a verdict of how a command ended and what it printed. */
#include "app/judge.h"

/* A query's standard output is what counts; the other stream is shown only if it fails. */
#define QUERY_BEFORE "(\n"
#define QUERY_AFTER                                                                                \
	"\n) 2>\"$OUTAGE_ACKED.err\"; s=$?; [ $s = 0 ] || cat \"$OUTAGE_ACKED.err\"; exit $s"

/*
 * The output of a restart is no answer to a query, and shown only if it fails: behind a line of
 * ours, which tells its failure from that of the next command.
 */
#define RESTART_FAILED "outage: the restart ended with status "
#define RESTART_BEFORE "(\n"
#define RESTART_AFTER                                                                              \
	"\n) >\"$OUTAGE_ACKED.up\" 2>&1 || { s=$?; echo \"" RESTART_FAILED                         \
	"$s\"; cat \"$OUTAGE_ACKED.up\"; exit $s; }\n"

static char *judge_asks(const struct app_plan *plan)
{
	if (plan->query)
		return xasprintf(QUERY_BEFORE "%s" QUERY_AFTER, plan->query);
	return xstrdup(plan->check ? plan->check : plan->restart);
}

/* Whether the restart comes first, as a command of its own. */
static bool has_restart(const struct app_plan *plan)
{
	return plan->restart && (plan->check || plan->query);
}

void judge_init(struct judge *j, const struct app_plan *plan, const struct words *acks,
		const struct words *shown)
{
	*j = (struct judge){ .plan = plan, .acks = acks, .shown = shown };
	auto_free char *asks = judge_asks(plan);
	if (has_restart(plan))
		j->command = xasprintf(RESTART_BEFORE "%s" RESTART_AFTER "%s", plan->restart, asks);
	else
		j->command = steal(asks);
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

/* "outage: silent-loss", anywhere in what was said; the last one counts. */
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

/* ---- what a query shows ---- */

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

static bool is_expected(const struct judge *j, const char *line, size_t len)
{
	const struct words *lists[] = { j->shown, j->acks };

	for (size_t l = 0; l < ARRAY_SIZE(lists); l++)
		for (size_t i = 0; i < lists[l]->n; i++)
			if (strlen(lists[l]->v[i]) == len &&
			    strncmp(lists[l]->v[i], line, len) == 0)
				return true;
	return false;
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

		if (len && !is_expected(j, p, len)) {
			fail(v, APP_CORRUPT,
			     xasprintf("the query shows '%.*s', which the run never did",
				       (int)min(len, (size_t)100), p));
			return;
		}
		p += len + (p[len] == '\n');
	}
}

/* ---- all of it ---- */

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
	strbuf_add(&out->said, strbuf_str(&r->output), r->output.len);
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
