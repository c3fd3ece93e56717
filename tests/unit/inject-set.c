/* SPDX-License-Identifier: MIT */
/* inject-set.c - the set of faults: what is told to whom, exactly once, and runs of writes. */
#include <errno.h>
#include <pthread.h>

#include "inject/internal.h"
#include "tap.h"

/* Adds a fault in words of a command; gives its number, 0 if it was refused. */
static uint64_t add(struct inject *s, const char *text, struct err *err)
{
	auto_free char *copy = xstrdup(text);
	struct vec_of(char *) words = { 0 };
	struct inject_command c;
	char *rest = copy, *word;
	uint64_t id = 0;

	while ((word = strsep(&rest, " ")))
		vec_push(&words, word);
	if (inject_command_parse(words.v, words.n, NULL, NULL, &c, err) == 0) {
		assert(c.kind == COMMAND_FAULT);
		if (inject_add(s, c.fault, &id, err) == 0)
			c.fault = NULL; /* the set's */
		inject_command_release(&c);
	}
	vec_release(&words);
	return id;
}

static void must_add(struct inject *s, const char *text)
{
	struct err err = ERR_INIT;

	if (!ok(add(s, text, &err) > 0, "fault: %s", text))
		printf("#   %s\n", err.msg);
}

static struct inject_action ask(struct inject *s, enum posix_op op, const char *from,
				const char *to)
{
	struct inject_op o = { .op = op, .from = from, .to = to, .offset = 4096, .len = 100 };
	struct inject_action a;

	inject_ask(s, &o, &a);
	return a;
}

static bool quiet(const struct inject_action *a)
{
	return !a->n_delays && !a->clear_before && !a->crash_before && !a->lose && !a->error &&
	       a->short_bytes == -1 && !a->tear && !a->misfit && !a->durable && !a->first_len &&
	       !a->sync && !a->clear_after && !a->crash_after && !a->fired;
}

/* What the n-th such operation is told: '.' nothing, or a letter. */
static char letter(const struct inject_action *a)
{
	if (quiet(a))
		return '.';
	if (a->crash_before)
		return 'B';
	if (a->clear_before)
		return 'b';
	if (a->tear)
		return 'T';
	if (a->misfit)
		return 'm';
	if (a->crash_after)
		return a->durable ? 'D' : 'A';
	if (a->clear_after)
		return 'a';
	if (a->durable)
		return a->first_len ? '2' : 'd';
	if (a->first_len)
		return 'f';
	if (a->error)
		return 'e';
	if (a->n_delays)
		return 'w';
	return a->sync ? 'y' : '?';
}

/* "w" writes to the file x, "v" to y, "s" syncs x, "t" y, "r" reads x, "d" is fdatasync of x. */
static void plays(const char *fault, const char *ops, const char *want)
{
	struct inject *s = inject_new();
	char got[64] = "";

	must_add(s, fault);
	for (size_t i = 0; ops[i]; i++) {
		enum posix_op op = strchr("wv", ops[i])	  ? POSIX_WRITE
				   : strchr("st", ops[i]) ? POSIX_FSYNC
				   : ops[i] == 'd'	  ? POSIX_FDATASYNC
							  : POSIX_READ;
		struct inject_action a = ask(s, op, strchr("vt", ops[i]) ? "y" : "x", NULL);

		got[i] = letter(&a);
		got[i + 1] = '\0';
	}
	is_s(got, want, "%s: %s", fault, ops);
	inject_free(s);
}

static void test_occurrence(void)
{
	plays("crash op=write file=x timing=before", "rvwww", "..B..");
	plays("crash op=write file=x occurrence=3", "wwwww", "..A..");
	plays("clear-cache op=fsync file=x occurrence=2 timing=before", "wsdsw", "..b..");
	plays("clear-cache op=fdatasync file=x", "sd", ".a");
	plays("clear-cache op=write file=x occurrence=2 until=3", "wwwww", ".aa..");
	plays("clear-cache op=write file=x crash=true", "ww", "A.");
	plays("error op=write error=EIO occurrence=2 until=end", "wwvw", ".eee");
	plays("error op=any error=EIO file=y", "wrsv", "...e");
	plays("delay op=read delay=5ms", "wr", ".w");
	plays("torn-op file=x parts=3 persist=1,3 occurrence=2", "wvrw", "...T");
	plays("torn-op file=x parts_bytes=60,40 persist=2", "w", "T");
	plays("torn-op file=x parts_bytes=60,41 persist=2", "ww", "m.");
	plays("sync file=x op=write occurrence=2", "wvww", "..y.");
}

/* What ends a run, what counts as one, and which write is the last. */
static void test_runs(void)
{
	plays("torn-seq file=x op=write persist=1,4", "wwwww", ".f.D.");
	plays("torn-seq file=x persist=2", "wrvw", "...D");
	plays("torn-seq file=x persist=1", "www", ".A.");
	plays("torn-seq file=x persist=1,2", "ww", ".D");
	plays("torn-seq file=x persist=2,3", "www", ".dD");
	plays("torn-seq file=x persist=3", "wwsww", ".....");
	plays("torn-seq file=x persist=2", "wswswsww", ".......D");
	plays("torn-seq file=x persist=2", "wdww", "...D");
	plays("torn-seq file=x persist=2 occurrence=2", "wwswsww", "......D");
	plays("torn-seq file=x persist=2", "wtw", "..D");
	plays("torn-seq file=x persist=2 occurrence=1", "wwww", ".D..");
	plays("torn-seq file=x persist=3 occurrence=1", "wwswww", "......");
	plays("torn-seq file=* persist=2", "wvwv", "..D.");
	plays("torn-seq file=* persist=2 occurrence=2", "wvwv", "...D");
}

static void test_first(void)
{
	struct inject *s = inject_new();
	struct inject_action a;

	must_add(s, "torn-seq file=x persist=1,3");
	ask(s, POSIX_WRITE, "x", NULL);
	a = ask(s, POSIX_WRITE, "x", NULL);
	ok(a.first_offset == 4096 && a.first_len == 100 && !a.durable, "the first, by the second");
	a = ask(s, POSIX_WRITE, "x", NULL);
	ok(a.durable && a.crash_after && a.lose && !a.first_len && a.fired == 1, "the third");
	inject_free(s);
}

static void test_two_paths(void)
{
	struct inject *s = inject_new();
	struct inject_action a;

	must_add(s, "crash op=rename from=a to=b");
	must_add(s, "crash op=link to_rgx=^z timing=before");
	a = ask(s, POSIX_RENAME, "a", "c");
	ok(quiet(&a), "another target");
	a = ask(s, POSIX_RENAME, "c", "b");
	ok(quiet(&a), "another source");
	a = ask(s, POSIX_RENAME, "a", "b");
	ok(a.crash_after, "both are right");
	a = ask(s, POSIX_LINK, "q", "az");
	ok(quiet(&a), "a link elsewhere");
	a = ask(s, POSIX_LINK, "q", "za");
	ok(a.crash_before && a.fired == 2, "only the new name was asked for");
	inject_free(s);
}

static void test_together(void)
{
	struct inject *s = inject_new();
	struct inject_action a;

	must_add(s, "delay op=write delay=10ms");
	must_add(s, "delay op=write delay=5ms");
	must_add(s, "short op=write bytes=60");
	must_add(s, "short op=write bytes=50");
	must_add(s, "error op=write error=ENOSPC");
	must_add(s, "error op=write error=EIO");
	must_add(s, "sync op=write file=x timing=before crash=true");
	a = ask(s, POSIX_WRITE, "x", NULL);
	ok(a.n_delays == 2 && a.delays[0].ms + a.delays[1].ms == 15 && a.short_bytes == 50 &&
		   a.error == ENOSPC,
	   "all at once");
	ok(a.sync && !a.sync->after && a.crash_before && a.lose == a.sync,
	   "and a sync with a crash");
	ok(!inject_armed(s), "then nothing is left");
	must_add(s, "short op=write bytes=100");
	a = ask(s, POSIX_WRITE, "x", NULL);
	ok(quiet(&a), "a write that is no longer than that is whole");
	must_add(s, "error op=fsync error=5 keep_dirty=true");
	a = ask(s, POSIX_FDATASYNC, "x", NULL);
	ok(a.error == EIO && a.keep_dirty, "a sync that fails");
	must_add(s, "torn-seq file=x persist=2");
	must_add(s, "torn-op file=x parts=2 persist=1 occurrence=2");
	ask(s, POSIX_WRITE, "x", NULL);
	a = ask(s, POSIX_WRITE, "x", NULL);
	ok(a.durable && a.crash_after && !a.tear, "the last of a run is not torn");
	inject_free(s);
}

static int count(void *ctx, const struct fault *f)
{
	*(uint64_t *)ctx += f->id;
	return 0;
}

static int stop(void *ctx, const struct fault *f)
{
	(void)ctx;
	return (int)f->id;
}

static void test_set(void)
{
	struct inject *s = inject_new();
	struct err err = ERR_INIT;
	uint64_t sum = 0;

	ok(!inject_armed(s), "nothing is armed");
	must_add(s, "torn-op file=x parts=2 persist=1");
	ok(inject_armed(s), "a fault is");
	is_u(add(s, "torn-op file=/x parts=3 persist=1", &err), 0, "two that tear a file");
	is_s(err.msg,
	     "fault 1 (torn-op file=x parts=2 persist=1) tears the same file already; cancel it "
	     "first",
	     "conflict");
	must_add(s, "torn-seq file=x persist=2");
	must_add(s, "torn-op file=y parts=2 persist=1");
	err_clear(&err);
	is_i(inject_remove(s, 1, &err), 0, "one is removed");
	ok(inject_remove(s, 1, &err) == -ENOENT, "but once");
	is_s(err.msg, "there is no fault 1", "which is said");
	err_clear(&err);
	ok(inject_remove(s, 0, &err) == -ENOENT && inject_remove(s, 9, &err) == -ENOENT,
	   "what never was");
	must_add(s, "torn-op file=x parts=3 persist=1");
	is_i(inject_each(s, count, &sum), 0, "those that are left");
	is_u(sum, 2 + 3 + 4, "have their numbers");
	is_i(inject_each(s, stop, NULL), 2, "who is called can stop it");
	for (uint64_t i = 2; i <= 4; i++)
		ok(inject_remove(s, i, &err) == 0, "removed %" PRIu64, i);
	ok(!inject_armed(s), "nothing is armed any more");
	inject_free(s);
	inject_free(NULL);
}

struct ranges {
	char text[128];
};

static void add_range(void *ctx, uint64_t offset, uint64_t len)
{
	struct ranges *r = ctx;
	size_t n = strlen(r->text);

	snprintf(r->text + n, sizeof(r->text) - n, "%s%" PRIu64 "+%" PRIu64, n ? " " : "", offset,
		 len);
}

static void tears(const char *words, uint64_t len, const char *want)
{
	struct inject *s = inject_new();
	struct ranges r = { "" };
	struct inject_op o = { .op = POSIX_WRITE, .from = "x", .len = len };
	struct inject_action a;
	struct err err = ERR_INIT;

	if (!add(s, words, &err))
		printf("# %s\n", err.msg);
	inject_ask(s, &o, &a);
	if (ok(a.tear, "torn: %s", words)) {
		ok(fault_tear(a.tear, len, add_range, &r), "it fits");
		is_s(r.text, want, "into these");
	}
	inject_free(s);
}

static void test_tear(void)
{
	tears("torn-op file=x parts=2 persist=2", 8192, "4096+4096");
	tears("torn-op file=x parts=3 persist=3,1", 10, "0+3 6+4");
	tears("torn-op file=x parts=5 persist=1,5", 3, "0+3");
	tears("torn-op file=x parts=9223372036854775807 persist=9223372036854775807", 3, "0+3");
	tears("torn-op file=x parts_bytes=4096,3600,1260 persist=1,3", 8956, "0+4096 7696+1260");
	tears("torn-op file=x parts_bytes=1,2 persist=2", 3, "1+2");
}

static void picks(const char *pages, const char *want)
{
	struct inject *s = inject_new();
	char words[128], got[8] = "";
	struct inject_action a;
	struct err err = ERR_INIT;

	snprintf(words, sizeof(words), "sync file=x op=write pages=%s", pages);
	if (!add(s, words, &err))
		printf("# %s\n", err.msg);
	a = ask(s, POSIX_WRITE, "x", NULL);
	for (uint64_t i = 0; a.sync && i < 5; i++) {
		got[i] = fault_wants_page(a.sync, i, 5) ? 'x' : '.';
		got[i + 1] = '\0';
	}
	is_s(got, want, "pages=%s", pages);
	inject_free(s);
}

static void test_pages(void)
{
	picks("all", "xxxxx");
	picks("first", "x....");
	picks("last", "....x");
	picks("first-half", "xx...");
	picks("last-half", "..xxx");
	picks("first-and-last", "x...x");
	picks("interleaved", "x.x.x");
	picks("2,5", ".x..x");
}

/* Random pages are the same for the same seed, and not for others. */
static void test_random(void)
{
	struct fault *f = fault_new(FAULT_SYNC);
	unsigned ones = 0, changed = 0;
	bool same = true;

	f->pages = FAULT_PAGES_RANDOM;
	for (uint64_t i = 0; i < 200; i++) {
		bool first = fault_wants_page(f, i, 200);

		ones += first;
		same &= first == fault_wants_page(f, i, 200);
		f->seed = 1;
		changed += first != fault_wants_page(f, i, 200);
		f->seed = 0;
	}
	ok(same && ones > 50 && ones < 150 && changed > 50, "random pages");
	fault_free(f);
}

enum { THREADS = 4, ASKS = 5000 };

struct worker {
	struct inject *s;
	unsigned fired[3];
};

static void *work(void *ctx)
{
	struct worker *w = ctx;

	for (int i = 0; i < ASKS; i++) {
		struct inject_action a = ask(w->s, POSIX_WRITE, "x", NULL);

		w->fired[0] += a.crash_after;
		w->fired[1] += a.error != 0;
		w->fired[2] += a.n_delays != 0;
	}
	return NULL;
}

/* Of all threads together, each is told exactly as often as it should be. */
static void test_threads(void)
{
	struct inject *s = inject_new();
	struct worker w[THREADS] = { 0 };
	pthread_t t[THREADS];
	unsigned sum[3] = { 0 };
	struct err err = ERR_INIT;

	must_add(s, "crash op=write file=x occurrence=10000");
	must_add(s, "error op=write error=EIO occurrence=101 until=200");
	must_add(s, "delay op=write delay=1ms occurrence=20000");
	must_add(s, "delay op=write delay=1ms occurrence=20001");
	for (int i = 0; i < THREADS; i++) {
		w[i].s = s;
		pthread_create(&t[i], NULL, work, &w[i]);
	}
	uint64_t extra = add(s, "delay op=read delay=1ms", &err);

	ok(extra && inject_remove(s, extra, &err) == 0, "meanwhile, one comes and goes");
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		for (int k = 0; k < 3; k++)
			sum[k] += w[i].fired[k];
	}
	is_u(sum[0], 1, "one crash");
	is_u(sum[1], 100, "a hundred errors");
	is_u(sum[2], 1, "the last one of all, and none after it");
	ok(inject_armed(s), "which is still waited for");
	inject_free(s);
}

int main(void)
{
	test_occurrence();
	test_runs();
	test_first();
	test_two_paths();
	test_together();
	test_set();
	test_tear();
	test_pages();
	test_random();
	test_threads();
	return done_testing();
}
