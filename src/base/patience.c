/* SPDX-License-Identifier: MIT */
/* patience.c - measures silence, less the time that a process waited for a processor. */
#include "base/patience.h"

#include <sched.h>
#include <unistd.h>

#include "base/io.h"
#include "base/names_in.h"
#include "base/proc.h"

enum { LOOKS = 20, LOOK_MS = 50 };

static uint64_t ticks_ns(unsigned long ticks)
{
	return (uint64_t)ticks * 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* The number of processors that a thread may use; 1 if the mask has no room for all. */
static unsigned processors_of(pid_t tid)
{
	cpu_set_t may;

	return sched_getaffinity(tid, sizeof(may), &may) ? 1 : (unsigned)CPU_COUNT(&may);
}

/*
 * Adds the share of all threads of a process, and of its threads and children that have ended,
 * which the kernel counts in ticks. The calling thread does not count as waiting: it runs only to
 * look.
 */
static void add_share(pid_t pid, struct patience_share *out)
{
	auto_free char *path = xasprintf("/proc/%d/task", (int)pid);
	auto_names_in tasks = names_in(AT_FDCWD, path);
	struct proc_stat all;
	uint64_t ran_ns = 0;

	for (struct dirent *d; (d = names_next(tasks));) {
		auto_free char *file = xasprintf("%s/%s/schedstat", path, d->d_name);
		auto_strbuf text = STRBUF_INIT;
		unsigned long long ran, waited;
		struct proc_stat p;

		if (io_slurp(file, 256, &text, NULL) ||
		    sscanf(strbuf_str(&text), "%llu %llu", &ran, &waited) != 2)
			continue;
		ran_ns += ran;
		out->waited_ns += waited;
		pid_t tid = (pid_t)strtol(d->d_name, NULL, 10);
		if (tid == gettid() || !proc_stat(tid, &p) || p.state != 'R')
			continue;
		out->waits++;
		out->processors = max(out->processors, processors_of(tid));
	}
	if (proc_stat(pid, &all))
		ran_ns = max(ran_ns, ticks_ns(all.ran)) + ticks_ns(all.ended_ran);
	out->ran_ns += ran_ns;
}

void patience_share(pid_t pid, struct patience_share *out)
{
	auto_vec struct proc_list list = { 0 };

	*out = (struct patience_share){ 0 };
	proc_tree(pid, &list);
	for (size_t i = 0; i < list.n; i++)
		add_share(list.v[i], out);
}

unsigned patience_factor(pid_t pid)
{
	enum { MOST = 10 };
	struct patience_share s;

	patience_share(pid, &s);
	uint64_t ran = max(s.ran_ns, 1U);

	return (unsigned)min((ran + s.waited_ns + ran / 2) / ran, (uint64_t)MOST);
}

void patience_renew(struct patience *p)
{
	*p = (struct patience){ .since_ns = util_now_ns() };
}

uint64_t patience_lost(const struct patience_share *a, const struct patience_share *b, uint64_t ns)
{
	/* This number of threads could have run at a time if the machine had no other load. */
	uint64_t side_by_side = max(min(b->waits, b->processors), 1U),
		 ran = b->ran_ns > a->ran_ns ? (b->ran_ns - a->ran_ns) / side_by_side : 0,
		 waited = b->waited_ns > a->waited_ns ? b->waited_ns - a->waited_ns : 0,
		 idle = ns > ran ? ns - ran : 0;

	return min(b->waits ? idle : min(waited, idle), ns / 10 * 9);
}

bool patience_ends(struct patience *p, pid_t pid, uint64_t limit_ns)
{
	uint64_t now = util_now_ns();
	struct patience_share share;

	/* Looks are late: they cost time, and most processes move before the first. */
	if (now - p->since_ns < limit_ns / (p->looked_ns ? 2 : 10))
		return false;
	/* The kernel's ticks are too coarse for shorter intervals. */
	if (p->looked_ns && now - p->looked_ns < min(limit_ns / LOOKS, LOOK_MS * 1000000ULL))
		return false;
	patience_share(pid, &share);
	if (p->looked_ns)
		p->lost_ns += patience_lost(&p->share, &share, now - p->looked_ns);
	bool over = p->looked_ns && now - p->since_ns - p->lost_ns >= limit_ns;
	p->looked_ns = now;
	p->share = share;
	return over;
}

double patience_silence(const struct patience *p)
{
	uint64_t ms = (util_now_ns() - p->since_ns) / 1000000;
	uint64_t seconds = (ms + 500) / 1000;

	return ms < 1000 ? (double)ms / 1000 : (double)seconds;
}
