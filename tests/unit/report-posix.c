/* SPDX-License-Identifier: MIT */
/*
 * report-posix.c - an application's calls with their names: paths through renames, links and
 * removals, what was synced, runs, suggestions, the picture, and traces that nobody would record.
 */
#include "base/rng.h"
#include "app/posix_log.h"
#include "tap.h"

static void add(struct posix_log *log, struct posix_event p)
{
	auto_strbuf buf = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct event ev;
	uint64_t n = log->calls.n;

	if (p.op == POSIX_WRITE && !p.result)
		p.result = (int64_t)p.len;
	posix_to_event(&p, (n + 1) * 1000, &buf, &ev);
	if (posix_log_add(log, n, &ev, &err))
		ok(false, "an event was refused: %s", err.msg);
}

#define ADD(...)	add(&log, (struct posix_event){ __VA_ARGS__ })
#define CREATE(i, d, n) ADD(.op = POSIX_CREATE, .ino = (i), .dir = (d), .name = (n))
#define WRITE(i, o, l)	ADD(.op = POSIX_WRITE, .ino = (i), .offset = (o), .len = (l))
#define FSYNC(i)	ADD(.op = POSIX_FSYNC, .ino = (i))
#define RENAME(d, n, d2, n2)                                                                       \
	ADD(.op = POSIX_RENAME, .dir = (d), .name = (n), .dir2 = (d2), .name2 = (n2))
#define UNLINK(d, n) ADD(.op = POSIX_UNLINK, .dir = (d), .name = (n))

static const char *last_path(const struct posix_log *log)
{
	return vec_last(&log->calls).path;
}

/* ---- names ---- */

static void test_paths(void)
{
	auto_posix_log log;

	posix_log_init(&log);
	ADD(.op = POSIX_MKDIR, .ino = 2, .dir = 1, .name = "A");
	is_s(last_path(&log), "A", "a directory");
	CREATE(10, 2, "foo");
	is_s(last_path(&log), "A/foo", "a file in it");
	WRITE(10, 0, 5);
	is_s(last_path(&log), "A/foo", "known by its inode");
	RENAME(2, "foo", 1, "bar");
	is_s(last_path(&log), "A/foo", "a rename has the old name");
	is_s(vec_last(&log.calls).path2, "bar", "and the new one");
	WRITE(10, 5, 5);
	is_s(last_path(&log), "bar", "which it has afterwards");
	is_u(vec_last(&log.calls).file, log.calls.v[2].file, "it is the same file");
	RENAME(1, "bar", 2, "foo");
	RENAME(1, "A", 1, "B");
	WRITE(10, 10, 5);
	is_s(last_path(&log), "B/foo", "a renamed directory takes its files along");
	FSYNC(1);
	is_s(last_path(&log), ".", "the root");
	ADD(.op = POSIX_UNLINK, .dir = 1, .name = "B", .result = -21);
	WRITE(10, 10, 5);
	is_s(last_path(&log), "B/foo", "what failed changed nothing");
	WRITE(77, 0, 1);
	is_s(last_path(&log), "#77", "nobody named it");
	CREATE(78, 66, "x");
	is_s(last_path(&log), "#66/x", "nor its directory");
}

static void test_links(void)
{
	auto_posix_log log;

	posix_log_init(&log);
	CREATE(10, 1, "a");
	ADD(.op = POSIX_LINK, .ino = 10, .dir = 1, .name = "b");
	is_s(last_path(&log), "a", "a link is made of a name");
	is_s(vec_last(&log.calls).path2, "b", "and makes another");
	UNLINK(1, "b");
	is_u(vec_last(&log.calls).ends, POSIX_NO_FILE, "one of two names is not the last");
	WRITE(10, 0, 1);
	is_s(last_path(&log), "a", "the other is still there");
	UNLINK(1, "a");
	is_u(vec_last(&log.calls).ends, log.calls.v[0].file, "the last name");
	CREATE(10, 1, "a");
	ok(vec_last(&log.calls).file != log.calls.v[0].file,
	   "an inode that is used again is another file");
	CREATE(10, 1, "a");
	is_u(vec_last(&log.calls).file, log.calls.v[5].file, "a creation may open what is there");

	CREATE(20, 1, "t");
	RENAME(1, "t", 1, "a");
	is_u(vec_last(&log.calls).file2, log.calls.v[5].file, "a rename replaces");
	is_u(vec_last(&log.calls).ends, log.calls.v[5].file, "which ends what was there");
	WRITE(20, 0, 1);
	is_s(last_path(&log), "a", "and has its name");
	CREATE(21, 1, "c");
	ADD(.op = POSIX_RENAME, .dir = 1, .name = "a", .dir2 = 1, .name2 = "c", .arg = 2);
	is_u(vec_last(&log.calls).ends, POSIX_NO_FILE, "an exchange ends nothing");
	WRITE(21, 0, 1);
	is_s(last_path(&log), "a", "both have the other's name");
	WRITE(20, 0, 1);
	is_s(last_path(&log), "c", "indeed");
}

static void test_late_names(void)
{
	auto_posix_log log;

	posix_log_init(&log);
	ADD(.op = POSIX_LOOKUP, .ino = 500, .name = ".");
	WRITE(10, 0, 1);
	is_s(last_path(&log), "#10", "a file from before the trace");
	RENAME(500, "old", 500, "new");
	ADD(.op = POSIX_RENAME, .ino = 10, .dir = 500, .name = "was", .dir2 = 500, .name2 = "is");
	WRITE(10, 0, 1);
	is_s(last_path(&log), "is", "is named by its rename");
	posix_log_finish(&log);
	is_s(log.calls.v[1].path, "was", "and in hindsight before it");
	is_u(log.calls.v[1].occurrence, 1, "where it is counted");
	is_s(log.calls.v[2].path2, "new", "the root was named by a lookup of '.'");
}

static void test_root_is_first(void)
{
	auto_posix_log log;

	posix_log_init(&log);
	CREATE(10, 4711, "foo");
	is_s(last_path(&log), "foo", "the first directory is taken for the root");
	CREATE(11, 4712, "foo");
	is_s(last_path(&log), "#4712/foo", "the second is not");
}

/* ---- what was synced ---- */

static enum posix_fate fate(const struct posix_log *log, size_t i)
{
	return log->calls.v[i].fate;
}

static void test_fates(void)
{
	auto_posix_log log;

	posix_log_init(&log);
	CREATE(10, 1, "a");
	CREATE(11, 1, "b");
	WRITE(10, 0, 1);
	WRITE(11, 0, 1);
	RENAME(1, "a", 1, "c");
	FSYNC(10);
	WRITE(10, 1, 1);
	ADD(.op = POSIX_FSYNC, .ino = 10, .result = -5);
	ADD(.op = POSIX_WRITE, .ino = 10, .len = 1, .flags = POSIX_DSYNC);
	ADD(.op = POSIX_TRUNCATE, .ino = 11);
	CREATE(12, 1, "d");
	WRITE(12, 0, 1);
	UNLINK(1, "d");
	WRITE(12, 1, 1);
	ADD(.op = POSIX_WRITE, .ino = 10, .len = 1, .result = -28);
	ADD(.op = POSIX_FSYNCDIR, .ino = 1);
	posix_log_finish(&log);
	is_u(fate(&log, 2), POSIX_FATE_SYNCED, "synced under another name");
	is_u(fate(&log, 3), POSIX_FATE_UNSYNCED, "a sync of another file does not count");
	is_u(fate(&log, 6), POSIX_FATE_UNSYNCED, "nor one that failed");
	is_u(fate(&log, 8), POSIX_FATE_SYNCED, "O_DSYNC");
	is_u(fate(&log, 9), POSIX_FATE_UNSYNCED, "a size is data");
	is_u(fate(&log, 11), POSIX_FATE_GONE, "the file was removed");
	is_u(fate(&log, 13), POSIX_FATE_GONE, "or had been");
	is_u(fate(&log, 14), POSIX_FATE_NONE, "what failed wrote nothing");
	is_u(fate(&log, 15), POSIX_FATE_NONE, "a sync is no data");
}

static void test_syncfs(void)
{
	auto_posix_log log;

	posix_log_init(&log);
	CREATE(10, 1, "a");
	CREATE(11, 1, "b");
	WRITE(10, 0, 1);
	WRITE(11, 0, 1);
	ADD(.op = POSIX_SYNCFS, .ino = 1);
	WRITE(11, 0, 1);
	posix_log_finish(&log);
	is_u(fate(&log, 2), POSIX_FATE_SYNCED, "syncfs syncs one file");
	is_u(fate(&log, 3), POSIX_FATE_SYNCED, "and the other");
	is_u(fate(&log, 5), POSIX_FATE_UNSYNCED, "but nothing later");
}

static void test_counts(void)
{
	auto_posix_log log;

	posix_log_init(&log);
	CREATE(10, 1, "a");
	WRITE(10, 0, 1);
	FSYNC(10);
	WRITE(10, 0, 1);
	WRITE(10, 0, 1);
	FSYNC(10);
	WRITE(10, 0, 1);
	WRITE(10, 0, 1);
	WRITE(10, 0, 1);
	RENAME(1, "a", 1, "b");
	WRITE(10, 0, 1);
	posix_log_finish(&log);
	is_u(log.calls.v[8].occurrence, 6, "the sixth write to this path");
	is_u(log.calls.v[5].occurrence, 2, "and its second sync");
	is_u(log.calls.v[1].run, 0, "a single write is no run");
	is_u(log.calls.v[4].run, 1, "two are the first");
	is_u(log.calls.v[8].run, 2, "then comes the second");
	is_u(log.calls.v[8].in_run, 3, "of three");
	is_u(log.calls.v[10].occurrence, 1, "another path has another count");
}

/* ---- filters and runs ---- */

static struct posix_filter everything(void)
{
	return (struct posix_filter){ .ops = POSIX_OPS_ALL, .to = UINT64_MAX };
}

static size_t count_selected(const struct posix_log *log, struct posix_filter f)
{
	struct posix_selection sel;
	size_t n;

	posix_select(log, &f, &sel);
	n = sel.n;
	vec_release(&sel);
	return n;
}

static void test_filters(void)
{
	auto_posix_log log;
	struct posix_filter f = everything();

	posix_log_init(&log);
	ADD(.op = POSIX_MKDIR, .ino = 2, .dir = 1, .name = "d", .pid = 5);
	CREATE(10, 2, "tmp");
	ADD(.op = POSIX_WRITE, .ino = 10, .len = 4096, .pid = 7, .tid = 8);
	ADD(.op = POSIX_WRITE, .ino = 10, .len = 4097, .pid = 7);
	RENAME(2, "tmp", 2, "real");
	CREATE(11, 2, "tmp");
	WRITE(11, 0, 1);
	posix_log_finish(&log);
	is_u(count_selected(&log, f), 7, "all");
	f.file = "real";
	is_u(count_selected(&log, f), 4, "a file has its history from before it got its name");
	f.file = "d/re*";
	is_u(count_selected(&log, f), 4, "a glob with a directory");
	f.file = "x/re*";
	is_u(count_selected(&log, f), 0, "and with the wrong one");
	f.file = "*";
	is_u(count_selected(&log, f), 7, "a star is everything");
	f = everything();
	f.ops = UINT64_C(1) << POSIX_WRITE;
	is_u(count_selected(&log, f), 3, "writes");
	f.from = 3;
	f.to = 5;
	is_u(count_selected(&log, f), 1, "some of them");
	f = everything();
	f.large = 4096;
	is_u(count_selected(&log, f), 1, "larger than a page");
	f = everything();
	f.pid = 7;
	is_u(count_selected(&log, f), 2, "a process");
	f.pid = 8;
	is_u(count_selected(&log, f), 1, "a thread");
	f.pid = 9;
	is_u(count_selected(&log, f), 0, "nobody");
}

static void runs_text(struct posix_log *log, struct strbuf *out)
{
	struct posix_filter f = everything();
	struct posix_selection sel;

	posix_log_finish(log);
	posix_select(log, &f, &sel);
	strbuf_clear(out);
	posix_text_runs(log, &sel, out);
	vec_release(&sel);
}

static void test_runs(void)
{
	auto_posix_log log;
	auto_strbuf out = STRBUF_INIT;

	posix_log_init(&log);
	CREATE(10, 1, "a");
	for (int i = 0; i < 12; i++) {
		for (int k = 0; k < 4; k++)
			WRITE(10, 0, 256);
		FSYNC(10);
	}
	runs_text(&log, &out);
	is_s(strbuf_str(&out),
	     "              0  a: create\n"
	     "           1-60  a: write x4, fsync; 12 times; 12 KiB\n",
	     "what repeats is told once");
	WRITE(10, 0, 1);
	WRITE(10, 0, 1);
	FSYNC(10);
	WRITE(10, 0, 1);
	runs_text(&log, &out);
	is_s(strbuf_str(&out),
	     "              0  a: create\n"
	     "           1-63  a: write x2 to x4, fsync; 13 times; 12290 bytes\n"
	     "             64  a: write (never synced); 1 byte\n",
	     "numbers may differ, what becomes of the data may not");
}

static void test_groups_of_files(void)
{
	auto_posix_log log;
	auto_strbuf out = STRBUF_INIT;

	posix_log_init(&log);
	CREATE(10, 1, "a");
	CREATE(11, 1, "b\n");
	FSYNC(10);
	for (int i = 0; i < 3; i++) {
		WRITE(10, 0, 1);
		WRITE(11, 0, 1);
		FSYNC(11);
		FSYNC(10);
	}
	ADD(.op = POSIX_FSYNC, .ino = 10, .result = -5);
	runs_text(&log, &out);
	is_s(strbuf_str(&out),
	     "              0  a: create\n"
	     "              1  b\\n: create\n"
	     "              2  a: fsync\n"
	     "           3-14  write a, write b\\n, fsync b\\n, fsync a; 3 times; 6 bytes\n"
	     "             15  a: fsync (failed: EIO)\n",
	     "a sync ends a sequence, and several files may be in one");
}

/* R1: whatever the calls, each is in exactly one run and one group. */
static void test_runs_cover(void)
{
	struct rng rng;
	bool covered = true;

	rng_init(&rng, 7);
	for (int round = 0; round < 200; round++) {
		auto_posix_log log;
		struct posix_filter f = everything();
		struct posix_selection sel;
		struct posix_runs runs;
		struct posix_groups groups;
		size_t calls = 0, at = 0;

		posix_log_init(&log);
		for (int i = 0; i < 60; i++) {
			if (rng_below(&rng, 3))
				WRITE(2 + rng_below(&rng, 2), 0, 1);
			else
				FSYNC(2 + rng_below(&rng, 2));
		}
		posix_log_finish(&log);
		posix_select(&log, &f, &sel);
		posix_find_runs(&log, &sel, &runs);
		posix_find_groups(&log, &sel, &runs, &groups);
		for (size_t i = 0; i < runs.n; i++) {
			covered &= runs.v[i].first == calls;
			calls += runs.v[i].n;
		}
		for (size_t i = 0; i < groups.n; i++) {
			covered &= groups.v[i].first == at && groups.v[i].n && groups.v[i].times;
			at += groups.v[i].n * groups.v[i].times;
		}
		covered &= calls == sel.n && at == runs.n;
		vec_release(&sel);
		vec_release(&runs);
		vec_release(&groups);
	}
	ok(covered, "200 random sequences: every call is in one run, every run in one group");
}

/* ---- suggestions ---- */

static bool suggests(struct posix_log *log, const char *command)
{
	struct posix_filter f = everything();
	struct posix_selection sel;
	struct posix_suggestions s;
	bool found = false;

	posix_log_finish(log);
	posix_select(log, &f, &sel);
	posix_suggest(log, &sel, 100, &s);
	for (size_t i = 0; i < s.list.n; i++)
		found |= streq(s.list.v[i].command, command);
	posix_suggestions_release(&s);
	vec_release(&sel);
	return found;
}

static void publish(struct posix_log *out, bool sync)
{
	posix_log_init(out);
	add(out, (struct posix_event){ .op = POSIX_CREATE, .ino = 10, .dir = 1, .name = "t" });
	add(out, (struct posix_event){ .op = POSIX_WRITE, .ino = 10, .len = 9 });
	if (sync)
		add(out, (struct posix_event){ .op = POSIX_FSYNC, .ino = 10 });
	add(out,
	    (struct posix_event){
		    .op = POSIX_RENAME, .dir = 1, .name = "t", .dir2 = 1, .name2 = "CURRENT" });
	add(out, (struct posix_event){ .op = POSIX_FSYNCDIR, .ino = 1 });
}

static void test_suggest_rename(void)
{
	auto_posix_log bad, good;
	static const char command[] = "crash timing=after op=rename from=t to=CURRENT";

	publish(&bad, false);
	publish(&good, true);
	ok(suggests(&bad, command), "a rename before the sync");
	ok(!suggests(&good, command), "not after it");
}

static void test_suggest_torn(void)
{
	auto_posix_log log;

	posix_log_init(&log);
	CREATE(10, 1, "a b");
	WRITE(10, 0, 4096);
	ok(!suggests(&log, "torn-op 'file=a b' parts=1 persist=1"), "a page is not torn");
	WRITE(10, 0, 12288);
	ok(suggests(&log, "torn-op 'file=a b' occurrence=2 parts=3 persist=3"),
	   "a larger write is, with its occurrence");
	FSYNC(10);
	WRITE(10, 0, 9000);
	WRITE(10, 0, 9000);
	ok(suggests(&log, "torn-seq op=write 'file=a b' occurrence=2 persist=2"),
	   "the run with most bytes");
	ok(!suggests(&log, "torn-seq op=write 'file=a b' persist=2"), "one of a kind for a file");
}

static void test_suggest_order(void)
{
	auto_posix_log log;
	static const char command[] = "crash timing=after op=fdatasync file=new";

	posix_log_init(&log);
	CREATE(10, 1, "old");
	CREATE(11, 1, "new");
	WRITE(11, 0, 10);
	ADD(.op = POSIX_FDATASYNC, .ino = 11);
	ok(!suggests(&log, command), "nothing older waits");
	WRITE(10, 0, 10);
	WRITE(11, 0, 10);
	ADD(.op = POSIX_FDATASYNC, .ino = 11);
	ok(suggests(&log, "crash timing=after op=fdatasync file=new occurrence=2"),
	   "older data of another file waits");
	ok(suggests(&log, "crash timing=before op=fdatasync file=new"), "before the sync");
	ok(suggests(&log, "crash timing=after op=write file=old"), "never synced");
}

/* One sync while many files wait: the same command is right for each of them. */
static void test_suggest_same(void)
{
	auto_posix_log log;
	struct posix_filter f = everything();
	struct posix_selection sel;
	struct posix_suggestions few, all;
	char name[16];

	posix_log_init(&log);
	for (uint64_t i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "f%d", (int)i);
		CREATE(10 + i, 1, name);
		WRITE(10 + i, 0, 10);
	}
	CREATE(50, 1, "new");
	WRITE(50, 0, 10);
	FSYNC(50);
	posix_log_finish(&log);
	posix_select(&log, &f, &sel);
	posix_suggest(&log, &sel, 1, &few);
	posix_suggest(&log, &sel, 1000, &all);
	ok(all.list.n > 1, "there is something to leave out");
	is_u(few.list.n + few.left_out, all.list.n, "each command is counted once");
	is_u(all.left_out, 0, "nothing is left out that would be shown");
	posix_suggestions_release(&few);
	posix_suggestions_release(&all);
	vec_release(&sel);
}

static void test_suggest_limit(void)
{
	auto_posix_log log;
	struct posix_filter f = everything();
	struct posix_selection sel;
	struct posix_suggestions s;
	char name[16];

	posix_log_init(&log);
	for (uint64_t i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "f%d", (int)i);
		CREATE(10 + i, 1, name);
		WRITE(10 + i, 0, 5000 + i);
	}
	CREATE(99, 1, "bad\nname");
	WRITE(99, 0, 1 << 20);
	WRITE(1234, 0, 1 << 20);
	posix_log_finish(&log);
	posix_select(&log, &f, &sel);
	posix_suggest(&log, &sel, 5, &s);
	is_u(s.list.n, 5, "no more than were asked for");
	is_u(s.left_out, 55, "the others are counted; names that no command can hold are not");
	is_s(s.list.v[0].command, "torn-op file=f29 parts=2 persist=2",
	     "most at stake comes first");
	ok(strncmp(s.list.v[1].command, "crash", 5) == 0, "then the best of the next kind");
	posix_suggestions_release(&s);
	posix_suggest(&log, &sel, 1000, &s);
	is_u(s.list.n, 60, "what is left out by one limit is shown by another");
	is_u(s.left_out, 0, "and then nothing is left out");
	posix_suggestions_release(&s);
	posix_suggest(&log, &(struct posix_selection){ 0 }, 5, &s);
	is_u(s.list.n, 0, "of nothing, nothing");
	posix_suggestions_release(&s);
	vec_release(&sel);
}

/* ---- the picture ---- */

static void draw(const struct posix_log *log, struct posix_graph_opts o, struct strbuf *svg,
		 struct posix_graph_cut *cut)
{
	struct posix_filter f = everything();
	struct posix_selection sel;

	posix_select(log, &f, &sel);
	strbuf_clear(svg);
	posix_graph(log, &sel, &o, svg, cut);
	vec_release(&sel);
}

static bool has(const struct strbuf *sb, const char *text)
{
	return strstr(strbuf_str(sb), text);
}

static void test_graph(void)
{
	auto_posix_log log;
	auto_strbuf svg = STRBUF_INIT;
	struct posix_graph_cut cut;

	posix_log_init(&log);
	CREATE(10, 1, "a<&>\x01");
	for (int i = 0; i < 4; i++)
		WRITE(10, 0, 1024);
	FSYNC(10);
	RENAME(1, "a<&>\x01", 1, "b");
	posix_log_finish(&log);
	draw(&log, (struct posix_graph_opts){ .title = "t" }, &svg, &cut);
	ok(has(&svg, "a&lt;&amp;&gt;\\x01"), "names are escaped");
	ok(has(&svg, ">write x4 4 KiB<"), "equal calls are one box");
	ok(has(&svg, "class=\"sync\""), "a barrier");
	ok(has(&svg, "class=\"arrow\""), "an arrow");
	ok(!has(&svg, "never synced:"), "everything was synced");
	is_u(cut.calls + cut.lanes + cut.rows, 0, "nothing was cut");
	WRITE(10, 0, 7);
	posix_log_finish(&log);
	draw(&log, (struct posix_graph_opts){ .title = "t" }, &svg, &cut);
	ok(has(&svg, "never synced: 7 bytes"), "now something was not");
}

static void test_graph_cut(void)
{
	auto_posix_log log;
	auto_strbuf svg = STRBUF_INIT;
	struct posix_graph_cut cut;
	char name[16];

	posix_log_init(&log);
	for (uint64_t i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "f%d", (int)i);
		CREATE(10 + i, 1, name);
		if (i % 2)
			WRITE(10 + i, 0, 1);
	}
	posix_log_finish(&log);
	draw(&log, (struct posix_graph_opts){ .rows_max = 45, .lanes_max = 8 }, &svg, &cut);
	is_u(cut.lanes, 22, "22 files share a lane");
	is_u(cut.calls, 0, "all calls are there");
	ok(has(&svg, "22 files with few calls share"), "which is said");
	draw(&log, (struct posix_graph_opts){ .rows_max = 40, .lanes_max = 50 }, &svg, &cut);
	is_u(cut.calls, 5, "5 calls are not drawn");
	ok(has(&svg, "5 further calls are not drawn"), "which is said");
	draw(&log, (struct posix_graph_opts){ .rows_max = 1, .lanes_max = 1 }, &svg, &cut);
	is_u(cut.calls, 44, "all but one");
}

/* ---- what nobody would record ---- */

static void test_circle(void)
{
	auto_posix_log log;

	posix_log_init(&log);
	CREATE(9, 1, "r");
	ADD(.op = POSIX_MKDIR, .ino = 2, .dir = 3, .name = "two");
	ADD(.op = POSIX_MKDIR, .ino = 3, .dir = 2, .name = "three");
	CREATE(10, 2, "x");
	ok(strstr(last_path(&log), "two/x"), "directories in a circle: %s", last_path(&log));
	ok(strlen(last_path(&log)) < 100, "are gone through once");
	ADD(.op = POSIX_MKDIR, .ino = 4, .dir = 4, .name = "self");
	CREATE(11, 4, "y");
	ok(strstr(last_path(&log), "/y"), "a directory in itself: %s", last_path(&log));
	ADD(.op = POSIX_RENAME, .ino = 1, .dir = 1, .name = "r", .dir2 = 2, .name2 = "root");
	FSYNC(1);
	is_s(last_path(&log), ".", "the root cannot be moved");
}

static void test_deep(void)
{
	auto_posix_log log;
	char name[256];

	posix_log_init(&log);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (uint64_t i = 1; i < 1000; i++)
		ADD(.op = POSIX_MKDIR, .ino = i + 1, .dir = i, .name = name);
	RENAME(1, name, 1, "top");
	CREATE(5000, 1000, "leaf");
	ok(strlen(last_path(&log)) <= POSIX_PATH_MAX + 16, "a path has a longest length");
	ok(strstr(last_path(&log), "leaf"), "and its end");
	CREATE(5001, 1, "a/b");
	is_s(last_path(&log), "a\\x2fb", "a slash in a name is no directory");
}

/* Anything at all: nothing may be assumed, and all reports must be made. */
static void test_random(void)
{
	static const char *const names[] = { "a", "b", ".", "..", "a/b", "\n", "\xff\xfe", NULL };
	struct rng rng;
	size_t drawn = 0;

	rng_init(&rng, 11);
	for (int round = 0; round < 300; round++) {
		auto_posix_log log;
		auto_strbuf out = STRBUF_INIT;
		struct posix_suggestions s;
		struct posix_filter f = everything();
		struct posix_selection sel;
		struct posix_graph_cut cut;

		posix_log_init(&log);
		for (int i = 0; i < 80; i++)
			ADD(.op = (enum posix_op)rng_below(&rng, POSIX_OP_END),
			    .ino = rng_below(&rng, 6), .ino2 = rng_below(&rng, 6),
			    .dir = rng_below(&rng, 6), .dir2 = rng_below(&rng, 6),
			    .name = names[rng_below(&rng, ARRAY_SIZE(names))],
			    .name2 = names[rng_below(&rng, ARRAY_SIZE(names))],
			    .len = rng_below(&rng, 10000), .arg = (uint32_t)rng_below(&rng, 4),
			    .result = (int64_t)rng_below(&rng, 4) - 1);
		posix_log_finish(&log);
		posix_select(&log, &f, &sel);
		posix_text_runs(&log, &sel, &out);
		posix_suggest(&log, &sel, 10, &s);
		posix_graph(&log, &sel, &(struct posix_graph_opts){ .lanes_max = 3 }, &out, &cut);
		drawn += out.len > 1000;
		posix_suggestions_release(&s);
		vec_release(&sel);
	}
	is_u(drawn, 300, "300 random traces are reported on");
}

int main(void)
{
	test_paths();
	test_links();
	test_late_names();
	test_root_is_first();
	test_fates();
	test_syncfs();
	test_counts();
	test_filters();
	test_runs();
	test_groups_of_files();
	test_runs_cover();
	test_suggest_rename();
	test_suggest_torn();
	test_suggest_order();
	test_suggest_limit();
	test_suggest_same();
	test_graph();
	test_graph_cut();
	test_circle();
	test_deep();
	test_random();
	return done_testing();
}
