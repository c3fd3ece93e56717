/* SPDX-License-Identifier: MIT */
/*
 * base-patience.c - what is silent hangs, unless it waits for a processor that somebody else has.
 */
#include "tap.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/patience.h"

enum { LIMIT_MS = 400, ASK_MS = 20, LATE_MS = 60, LONG_MS = 300000 };

#define LIMIT_NS (LIMIT_MS * 1000000ULL)

static pid_t start(void (*fn)(void))
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		fn();
	_exit(0);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void sleep_on(void)
{
	for (;;)
		pause();
}

static void spin(void)
{
	for (volatile unsigned i = 0;; i++)
		;
}

/* The first processor that we may use. */
static void stay_on_one(void)
{
	cpu_set_t may, one;
	int cpu = 0;

	CPU_ZERO(&one);
	sched_getaffinity(0, sizeof(may), &may);
	while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &may))
		cpu++;
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* There are always some that could run, and soon they are others. */
static void fork_on(void)
{
	stay_on_one();
	for (unsigned n = 0;; n++) {
		if (n >= 8)
			waitpid(-1, NULL, 0);
		if (!fork()) {
			for (volatile unsigned i = 0; i < 10000000; i++)
				;
			_exit(0);
		}
	}
}

static void take_processor(void)
{
	stay_on_one();
	spin();
}

static void get_none(void)
{
	stay_on_one();
	sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 });
	spin();
}

/* It is not the one that is asked for, but its child. */
static void let_child_get_none(void)
{
	start(get_none);
	sleep_on();
}

/* Asks until `ms` are over, by the clock; true if patience came to its end. */
static bool ends_within(pid_t pid, uint64_t ms, struct patience *p)
{
	patience_renew(p);
	while (util_now_ns() - p->since_ns < ms * 1000000) {
		if (patience_ends(p, pid, LIMIT_NS))
			return true;
		util_sleep_ms(ASK_MS);
	}
	return false;
}

/*
 * Asks until `ms` are over, and is not late: who gets no processor to ask with knows little of the
 * time in between. True if patience did not come to its end.
 */
static bool lasts(pid_t pid, uint64_t ms, struct patience *p)
{
	uint64_t first = util_now_ns(), asked = first;

	patience_renew(p);
	while (util_now_ns() - p->since_ns < ms * 1000000) {
		bool late = util_now_ns() - asked > LATE_MS * 1000000ULL;

		if (late && util_now_ns() - first < LONG_MS * 1000000ULL)
			patience_renew(p);
		asked = util_now_ns();
		if (patience_ends(p, pid, LIMIT_NS))
			return false;
		util_sleep_ms(ASK_MS);
	}
	return true;
}

static void test_silent(void)
{
	struct patience p;
	struct patience_share share;
	pid_t pid = start(sleep_on);

	/* On a busy machine it waits for a processor before it can sleep. */
	do
		patience_share(pid, &share);
	while (share.waits);
	patience_renew(&p);
	ok(!patience_ends(&p, pid, LONG_MS * 1000000ULL), "who has just moved does not hang");
	ok(ends_within(pid, LONG_MS, &p), "who sleeps on does");
	ok(util_now_ns() - p.since_ns >= LIMIT_NS, "but not before the limit");
	ok(p.lost_ns < LIMIT_NS, "and was not waiting for a processor");
	end(pid);
}

/* Who asks about himself runs while he does so: that says nothing of the time before. */
static void test_self(void)
{
	struct patience p;
	struct patience_share share;

	patience_share(getpid(), &share);
	ok(share.ran_ns > 0, "who looks sees himself");
	ok(!share.waits, "but not as one that waits for a processor");
	ok(ends_within(getpid(), LONG_MS, &p), "who sleeps on, and asks, hangs");
}

/* One that waits is seen, although who looks is above it. */
static void test_self_and_child(void)
{
	struct patience_share share;
	pid_t pid = start(spin);

	patience_share(pid, &share);
	bool told = share.waits;
	patience_share(getpid(), &share);
	if (told)
		ok(share.waits, "a child that could run counts for who looks");
	else
		skip("the kernel does not tell who waits for a processor");
	end(pid);
}

static void test_fork(void)
{
	struct patience p;
	struct rusage used;
	pid_t pid = start(fork_on);

	ok(ends_within(pid, LONG_MS, &p), "who forks for ever hangs");
	kill(pid, SIGKILL);
	wait4(pid, NULL, 0, &used);
	uint64_t ran_ms = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
			  (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
	ok(ran_ms < 2ULL * LIMIT_MS, "near the limit: it ran for %" PRIu64 " ms", ran_ms);
}

static void test_silence(void)
{
	struct patience p = { .since_ns = util_now_ns() - 2600 * 1000000ULL,
			      .lost_ns = 2000 * 1000000ULL };
	double s = patience_silence(&p);

	ok(s >= 3 && s == (double)(uint64_t)s, "silence is all of it, in whole seconds: %g", s);
	p.since_ns = util_now_ns() - 400 * 1000000ULL;
	s = patience_silence(&p);
	ok(s >= 0.4, "but not none where it was short: %g", s);
}

/* What is lost of 1000 ns, if `waits` threads ran for so long together. */
static uint64_t lost(uint64_t ran_ns, unsigned waits, unsigned processors)
{
	const struct patience_share before = { .ran_ns = 5000, .waits = waits }, now = {
		.ran_ns = 5000 + ran_ns, .waits = waits, .processors = processors
	};

	return patience_lost(&before, &now, 1000);
}

static void test_lost(void)
{
	is_u(lost(600, 4, 1), 400, "four share a part of one processor");
	is_u(lost(600, 4, 2), 700, "four share a part of two: each lost more");
	is_u(lost(600, 1, 2), 400, "one cannot use two");
	is_u(lost(2000, 4, 2), 0, "who has all that there are waits for none");
	is_u(lost(0, 4, 2), 900, "some of it counts always");
	is_u(lost(0, 0, 0), 0, "who sleeps does not wait");
}

/* A machine that is busy from the start is no less so before half of the time is over. */
static void test_first_look(void)
{
	struct patience p = { .since_ns = util_now_ns() - LONG_MS * 1000000ULL / 5 };

	ok(!patience_ends(&p, getpid(), LONG_MS * 1000000ULL) && p.looked_ns,
	   "what is compared with is seen early");
}

static void test_busy(void)
{
	struct patience p;
	struct patience_share share;
	pid_t hog = start(take_processor), pid = start(get_none),
	      parent = start(let_child_get_none);

	util_sleep_ms(LIMIT_MS);
	patience_share(pid, &share);
	if (!share.waits) {
		skip("the kernel does not tell who waits for a processor");
	} else {
		bool patient = lasts(pid, LIMIT_MS * 3 / 2, &p);

		/* On a busy machine, a look may come at a moment from which nothing is to be seen.
		 */
		for (int i = 0; i < 100 && patient && !p.lost_ns; i++)
			patient = lasts(pid, LIMIT_MS * 3 / 2, &p);
		ok(patient, "who gets no processor does not hang");
		ok(p.lost_ns > 0, "that time does not count");
		ok(lasts(parent, LIMIT_MS * 3 / 2, &p), "nor who waits for such a child");
		ok(ends_within(pid, LONG_MS, &p), "but not for ever");
	}
	end(hog);
	end(pid);
	end(parent);
}

/* Processes that share a processor are slower, by a factor that has bounds. */
static void test_factor(void)
{
	stay_on_one();
	pid_t a = start(spin), b = start(spin), c = start(spin), idle = start(sleep_on);
	unsigned factor = 0;

	for (int i = 0; i < LONG_MS / 20 && factor < 2; i++) {
		util_sleep_ms(20);
		factor = patience_factor(a);
	}
	ok(factor >= 2, "a process that shares its processor is slower: %u times", factor);
	ok(factor <= 10, "at most ten times");
	ok(patience_factor(idle) <= 10 && patience_factor(idle) >= 1, "one that sleeps: %u",
	   patience_factor(idle));
	end(a);
	end(b);
	end(c);
	end(idle);
	is_u(patience_factor(a), 1, "one that is not there: as fast as ever");
}

int main(void)
{
	test_silent();
	test_self();
	test_self_and_child();
	test_fork();
	test_silence();
	test_lost();
	test_first_look();
	test_busy();
	test_factor();
	return done_testing();
}
