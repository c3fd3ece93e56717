/* SPDX-License-Identifier: MIT */
#include "run/patience.h"

#include "base/util.h"

void patience_renew(struct patience *p)
{
	*p = (struct patience){ .since_ns = util_now_ns() };
}

/*
 * What of the time between two looks was spent on waiting for a processor. It is a guess: several
 * may have waited at once, and who has ended meanwhile is not counted. So some of the time always
 * counts.
 */
static uint64_t lost(const struct reap_share *a, const struct reap_share *b, uint64_t ns)
{
	uint64_t ran = b->ran_ns > a->ran_ns ? b->ran_ns - a->ran_ns : 0,
		 waited = b->waited_ns > a->waited_ns ? b->waited_ns - a->waited_ns : 0;

	if (b->waits && ran < ns)
		waited = max(waited, ns - ran);
	return min(waited, ns / 10 * 9);
}

bool patience_ends(struct patience *p, pid_t pid, uint64_t limit_ns)
{
	uint64_t now = util_now_ns();
	struct reap_share share;

	/* To look costs time, and nearly all move before. */
	if (now - p->since_ns < limit_ns / 2)
		return false;
	reap_share(pid, &share);
	if (p->looked_ns)
		p->lost_ns += lost(&p->share, &share, now - p->looked_ns);
	bool over = p->looked_ns && now - p->since_ns - p->lost_ns >= limit_ns;
	p->looked_ns = now;
	p->share = share;
	return over;
}

double patience_silence(const struct patience *p)
{
	uint64_t ms = (util_now_ns() - p->since_ns) / 1000000;

	return ms < 1000 ? (double)ms / 1000 : (double)((ms + 500) / 1000);
}
