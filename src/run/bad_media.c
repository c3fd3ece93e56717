/* SPDX-License-Identifier: MIT */
/* bad_media.c - judges crash states with bad lines, and says which lines are bad. */
#include "run/bad_media.h"

#include <errno.h>
#include <inttypes.h>

uint64_t bad_media_since(const struct trace *t, uint64_t point)
{
	uint64_t at = 0;

	for (uint64_t i = 0; i < point && i < t->events.n; i++)
		if (t->events.v[i].kind == EV_OP_BEGIN)
			at = i;
	return at;
}

int bad_media_judge(struct run *r, const struct state_judge *j, const struct crash_state *bad,
		    const struct media_faults *faults, struct err *err)
{
	auto_attempt a = ATTEMPT_INIT(&r->seen_again);
	auto_strbuf words = STRBUF_INIT, diagnosis = STRBUF_INIT;
	struct state_judge inner = *j;

	media_format(faults, &words);
	strbuf_adds(&diagnosis, "media fault: of what the last operation wrote,");
	for (size_t i = 0; i < faults->n; i++)
		strbuf_addf(&diagnosis, "%s the line at %" PRIu64 " %s", i ? ", and" : "",
			    faults->v[i].line,
			    faults->v[i].kind == MEDIA_POISON
				    ? "is poisoned"
				    : "holds what it held before, although it was flushed");
	strbuf_adds(&diagnosis, "\n");
	inner.media = strbuf_str(&words);
	int rc = judge_attempt(r, bad, NULL, &a, err);
	if (rc)
		return rc;
	j->totals->crash_states++;
	j->totals->unique_states++;
	return judge_tell(r, &inner, bad, NULL, &a, RUN_NO_OPERATION, strbuf_str(&diagnosis), err);
}

int bad_media_put(const struct trace *t, const struct image *base, const char *text,
		  struct crash_state *state, struct err *err)
{
	return bad_lines_put(t, base, bad_media_since(t, state->point), text, state, err);
}

int bad_media_replay(struct run *r, const struct state_judge *j, const char *text,
		     struct crash_state *state, struct err *err)
{
	auto_media_faults faults = { 0 };
	int rc = bad_media_put(&r->trace, j->base, text, state, err);

	if (!rc)
		rc = media_parse(text, j->base->size, &faults, err);
	return rc ? rc : bad_media_judge(r, j, state, &faults, err);
}
