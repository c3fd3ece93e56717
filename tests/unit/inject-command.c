/* SPDX-License-Identifier: MIT */
/* inject-command.c - lines of LazyFS's FIFO, and words of outage ctl. */
#include <errno.h>

#include "base/words.h"
#include "inject/internal.h"
#include "tap.h"

/* "fault torn-op file=a ...", "clear finished::clear-cache", ... */
static void describe(const struct inject_command *c, struct strbuf *out)
{
	static const char *const kinds[] = {
		[COMMAND_FAULT] = "fault",	   [COMMAND_CLEAR] = "clear",
		[COMMAND_CRASH] = "crash",	   [COMMAND_CHECKPOINT] = "checkpoint",
		[COMMAND_SYNC] = "sync",	   [COMMAND_USAGE] = "usage",
		[COMMAND_REPORT] = "report",	   [COMMAND_FAULTS] = "faults",
		[COMMAND_CANCEL] = "cancel",	   [COMMAND_SNAPSHOT] = "snapshot",
		[COMMAND_ROLLBACK] = "rollback",   [COMMAND_DROP] = "drop",
		[COMMAND_SNAPSHOTS] = "snapshots", [COMMAND_STATUS] = "status",
		[COMMAND_HELP] = "help",
	};

	strbuf_adds(out, kinds[c->kind]);
	if (c->fault)
		strbuf_addf(out, " %s", strbuf_str(&c->fault->text));
	if (c->id)
		strbuf_addf(out, " #%" PRIu64, c->id);
	if (c->name)
		strbuf_addf(out, " name %s", c->name);
	if (c->answer)
		strbuf_addf(out, " answer %s", c->answer);
}

static int parse(const char *text, bool line, struct inject_command *c, struct err *err)
{
	auto_free char *copy = xstrdup(text);
	struct vec_of(char *) words = { 0 };
	char *rest = copy, *word;

	if (line)
		return inject_command_parse_lazyfs(text, "/root/dir", "/mnt/dir", c, err);
	while (*text && (word = strsep(&rest, " ")))
		vec_push(&words, word);
	int rc = inject_command_parse(words.v, words.n, "/root/dir", "/mnt/dir", c, err);

	vec_release(&words);
	return rc;
}

static void means(const char *text, bool line, const char *want)
{
	auto_strbuf got = STRBUF_INIT;
	struct inject_command c;
	struct err err = ERR_INIT;

	if (!ok(parse(text, line, &c, &err) == 0, "a command: %s", want)) {
		printf("#   %s\n", err.msg);
		return;
	}
	describe(&c, &got);
	is_s(strbuf_str(&got), want, "and means that");
	inject_command_release(&c);
}

static void refuses(const char *text, bool line, const char *want)
{
	struct inject_command c;
	struct err err = ERR_INIT;
	int rc = parse(text, line, &c, &err);

	is_i(rc, -EINVAL, "refused: %s", want);
	is_s(err.msg, want, "and the sentence");
	if (!rc)
		inject_command_release(&c);
}

static void test_lines(void)
{
	means("lazyfs::clear-cache", true, "clear answer finished::clear-cache");
	means("lazyfs::clear-cache\n", true, "clear answer finished::clear-cache");
	means("lazyfs::cache-checkpoint", true, "checkpoint");
	means("lazyfs::display-cache-usage", true, "usage");
	means("lazyfs::unsynced-data-report", true, "report");
	means("lazyfs::help", true, "help");
	means("lazyfs::crash", true, "crash");
	means("lazyfs::crash::timing=before::op=write::from_rgx=file1", true,
	      "fault crash timing=before op=write from_rgx=file1");
	means("lazyfs::crash::timing=before::op=rename::to_rgx=fileabd", true,
	      "fault crash timing=before op=rename to_rgx=fileabd");
	means("lazyfs::crash::timing=after::op=link::from_rgx=a::to_rgx=b", true,
	      "fault crash timing=after op=link from_rgx=a to_rgx=b");
	means("lazyfs::crash::op=open::from_rgx=a", true, "fault crash op=open from_rgx=a");
	means("lazyfs::crash::timing=after::op=write::from_rgx=a::b[[:alpha:]]::occurrence=2", true,
	      "fault crash timing=after op=write from_rgx=a::b[[:alpha:]] occurrence=2");
	means("lazyfs::torn-op::file=/root/dir/x::parts=3::persist=1,3", true,
	      "fault torn-op file=/root/dir/x parts=3 persist=1,3");
	means("lazyfs::torn-op::file=x::persist=2::parts_bytes=5,6::occurrence=4::return=True",
	      true, "fault torn-op file=x persist=2 parts_bytes=5,6 occurrence=4 return=True");
	means("lazyfs::torn-seq::op=write::file=x::persist=1,4::occurrence=2", true,
	      "fault torn-seq op=write file=x persist=1,4 occurrence=2");
	means("lazyfs::sync-pages::timing=now::pages=first-and-last::file=x::sync-other-files=true",
	      true, "sync sync-pages timing=now pages=first-and-last file=x sync_other_files=true");
	means("lazyfs::sync-pages::timing=before::op=fsync::from=x::file=y::pages=random", true,
	      "fault sync-pages timing=before op=fsync from=x file=y pages=random");
	means("lazyfs::error::op=write::file=x::error=EIO", true,
	      "fault error op=write file=x error=EIO");
}

static void test_wrong_lines(void)
{
	auto_strbuf noise = STRBUF_INIT;

	refuses("clear-cache", true,
		"a command begins with lazyfs::, as in lazyfs::clear-cache; this is 'clear-cache'");
	refuses("", true, "a command begins with lazyfs::, as in lazyfs::clear-cache; this is ''");
	refuses("lazyfs::clear-cach", true,
		"there is no command 'clear-cach'; did you mean 'clear-cache'?");
	refuses("lazyfs::clear-cachewxyz", true,
		"there is no command 'clear-cachewxyz'; 'lazyfs::help' lists them");
	refuses("lazyfs::status", true, "there is no command 'status'; 'lazyfs::help' lists them");
	refuses("lazyfs::snapshot::files_rgx=a::save=/x", true,
		"snapshots are made with 'outage ctl MNT snapshot NAME', not through the FIFO");
	refuses("lazyfs::crash::op=access::from_rgx=a", true,
		"op=access would never happen: the kernel itself looks who may do what; op=open "
		"sees who does");
	refuses("lazyfs::help::op=x", true, "help takes nothing; what is 'op=x'?");
	refuses("lazyfs::crash::timing=during::op=write::from_rgx=a", true,
		"timing is 'during', but must be before or after, or now");
	refuses("lazyfs::crash::timing=before::op=flush2::from_rgx=a", true,
		"op is 'flush2', which is no operation; did you mean 'flush'?");
	refuses("lazyfs::crash::timing=before::op=write", true,
		"crash needs from_rgx, the path of the file that it is about");
	refuses("lazyfs::crash::timing=before::from_rgx=a", true,
		"crash needs op, the operation that it waits for");
	refuses("lazyfs::crash::timing=before", true,
		"crash needs op, the operation that it waits for");
	refuses("lazyfs::crash::timing=before::op=write::to_rgx=a", true,
		"to is for rename, link and symlink; write has one path, which is from");
	refuses("lazyfs::crash::timing=before::op=write::form_rgx=a", true,
		"'form_rgx' is nothing that crash takes; did you mean 'from_rgx'?");
	refuses("lazyfs::crash::timing=before::op=write::from_rgx=(", true,
		"from_rgx is '(', which is no regular expression: a ) is missing");
	refuses("lazyfs::torn-op::file=::parts=3::persist=1", true,
		"file is empty; give a path in the mount");
	refuses("lazyfs::torn-op::file=x::parts=three::persist=1", true,
		"parts is 'three', but must be a number");
	refuses("lazyfs::torn-op::file=x::parts=3::persist=1,", true,
		"persist is '1,', but must be numbers with commas between them, as in persist=1,3");
	refuses("lazyfs::torn-op::file=x::parts=3::persist=4", true,
		"persist names part 4, but parts is only 3");
	refuses("lazyfs::torn-op::file=x::parts=3::parts_bytes=1::persist=1", true,
		"torn-op takes either parts or parts_bytes, not both of them");
	refuses("lazyfs::torn-op::parts=3::persist=1", true,
		"torn-op needs file, the path of the file whose writes it tears");
	refuses("lazyfs::torn-op::file=x::parts=3::persist=1::return=maybe", true,
		"return is 'maybe', but must be true or false");
	refuses("lazyfs::torn-seq::op=read::file=x::persist=1", true,
		"torn-seq is about writes, so op must be write");
	refuses("lazyfs::torn-seq::op=write::file=x", true,
		"torn-seq needs persist, what of it is durable, as in persist=1,3");
	refuses("lazyfs::sync-pages::timing=now::op=write::file=x", true,
		"timing is now, so sync-pages cannot wait for an operation as well");
	refuses("lazyfs::sync-pages::timing=now", true,
		"sync-pages needs file, the path of what becomes durable");

	/* no command is too long, and one that is cut is not another */
	strbuf_adds(&noise, "lazyfs::torn-op::file=");
	for (int i = 0; i < 10000; i++)
		strbuf_adds(&noise, "d/");
	strbuf_adds(&noise, "x::parts=2::persist=2");
	struct inject_command c;
	struct err err = ERR_INIT;

	ok(inject_command_parse_lazyfs(strbuf_str(&noise), NULL, NULL, &c, &err) == 0 &&
		   strlen(c.fault->from.text) == 20001,
	   "a long line");
	inject_command_release(&c);
}

static void test_words(void)
{
	means("clear-cache", false, "clear");
	means("clear", false, "clear");
	means("clear survive=data", false, "clear clear-cache survive=data");
	means("clear crash=true", false, "crash clear-cache crash=true");
	means("clear op=fsync", false, "fault clear-cache op=fsync");
	means("crash", false, "crash");
	means("crash timing=now", false, "crash crash timing=now");
	means("crash survive=random seed=3", false, "crash crash survive=random seed=3");
	means("crash op=write", false, "fault crash op=write");
	means("torn-op file=a.log parts=3 persist=1,3", false,
	      "fault torn-op file=a.log parts=3 persist=1,3");
	means("torn-seq file_rgx=wal persist=2", false, "fault torn-seq file_rgx=wal persist=2");
	means("sync", false, "checkpoint");
	means("checkpoint", false, "checkpoint");
	means("cache-checkpoint", false, "checkpoint");
	means("sync file=a pages=first", false, "sync sync-pages file=a pages=first");
	means("sync file=a op=write", false, "fault sync-pages file=a op=write");
	means("error op=any error=eio", false, "fault error op=any error=eio");
	means("short op=read bytes=1k", false, "fault short op=read bytes=1k");
	means("delay op=write delay=1s until=9", false, "fault delay op=write delay=1s until=9");
	means("usage", false, "usage");
	means("report", false, "report");
	means("unsynced-data-report", false, "report");
	means("faults", false, "faults");
	means("cancel 3", false, "cancel #3");
	means("snapshot s-1", false, "snapshot name s-1");
	means("rollback s-1", false, "rollback name s-1");
	means("snapshots", false, "snapshots");
	means("drop s-1", false, "drop name s-1");
	means("status", false, "status");
	means("help", false, "help");
}

/* A fault is listed in words that can be given again. */
static void test_quoted(void)
{
	char torn[] = "torn-seq", file[] = "file=a \"b\"", persist[] = "persist=1";
	char *words[] = { torn, file, persist };
	auto_words again = { 0 };
	struct inject_command c;
	struct err err = ERR_INIT;

	if (!ok(inject_command_parse(words, 3, NULL, NULL, &c, &err) == 0, "a path with blanks"))
		return;
	is_s(strbuf_str(&c.fault->text), "torn-seq file=\"a \\\"b\\\"\" persist=1", "is quoted");
	is_i(words_split(c.fault->text.buf, c.fault->text.len, &again, &err), 0, "as words are");
	ok(again.n == 3 && streq(again.v[1], file), "and is the same when it is read");
	inject_command_release(&c);
}

static void test_wrong_words(void)
{
	refuses("", false, "which command? 'help' lists them");
	refuses("crahs", false, "there is no command 'crahs'; did you mean 'crash'?");
	refuses("frobnicate", false, "there is no command 'frobnicate'; 'help' lists them");
	refuses("status x", false, "status takes nothing; what is 'x'?");
	refuses("cancel", false, "cancel takes one word, the number of a fault");
	refuses("cancel x", false, "'x' is not the number of a fault; 'faults' lists them");
	refuses("cancel 0", false, "'0' is not the number of a fault; 'faults' lists them");
	refuses("snapshot", false, "snapshot takes one word, a name");
	refuses("snapshot a/b", false,
		"'a/b' cannot be the name of a snapshot; take up to 64 letters, digits, '_', '-' "
		"and '.'");
	refuses("rollback ..", false,
		"'..' cannot be the name of a snapshot; take up to 64 letters, digits, '_', '-' "
		"and '.'");
	refuses("crash now", false,
		"'now' means nothing to crash, which takes words of the form KEY=VALUE");
	refuses("crash op=write op=read", false, "op is given twice; say it once");
	refuses("crash parts=2", false,
		"'parts' is nothing that crash takes; crash takes op, file, file_glob, file_rgx, "
		"from, from_glob, from_rgx, to, to_glob, to_rgx, timing, occurrence, return, "
		"survive, survivors, seed");
	refuses("crash occurrence=2", false, "crash needs op, the operation that it waits for");
	refuses("error op=fsync", false, "error needs error, what it fails with, as in error=EIO");
	refuses("short op=read", false,
		"short needs bytes, after how many it stops, as in bytes=512");
	refuses("torn-op file=a parts=2", false,
		"torn-op needs persist, what of it is durable, as in persist=1,3");
	refuses("torn-op file=a parts=3 persist=2,1,2", false,
		"persist names 2 twice; say it once");
	refuses("sync file=a pages=3,3", false, "pages names 3 twice; say it once");
	refuses("error error=EIO", false, "error needs op, the operation that it waits for");
	refuses("sync pages=first", false,
		"sync-pages needs file, the path of what becomes durable");
}

/* What "now" is done with, and what LazyFS and we take for granted. */
static void test_defaults(void)
{
	struct inject_command c;
	struct err err = ERR_INIT;

	if (parse("lazyfs::sync-pages::timing=now::file=x", true, &c, &err))
		abort();
	ok(c.fault->others && c.fault->pages == FAULT_PAGES_ALL, "sync-pages syncs others, too");
	is_s(c.fault->file.text, "x", "and this file");
	inject_command_release(&c);
	if (parse("sync file=x", false, &c, &err))
		abort();
	ok(!c.fault->others, "sync does not");
	inject_command_release(&c);
	if (parse("sync file=x op=write", false, &c, &err))
		abort();
	ok(c.fault->file.kind == PATH_ANY && streq(c.fault->from.text, "x"),
	   "an operation on the file itself is waited for");
	inject_command_release(&c);
	if (parse("lazyfs::crash::op=write::from_rgx=x", true, &c, &err))
		abort();
	ok(c.fault->after && c.fault->crash && !c.fault->returns && c.fault->occurrence == 1 &&
		   !c.fault->until,
	   "a crash is after the first");
	inject_command_release(&c);
	if (parse("crash survivors=a* op=write", false, &c, &err))
		abort();
	ok(c.fault->survive == FAULT_SURVIVE_LISTED &&
		   inject_path_matches(&c.fault->survivors, "ab"),
	   "survivors are listed");
	inject_command_release(&c);
}

static void test_help(void)
{
	auto_strbuf help = STRBUF_INIT;
	static const char *const words[] = { "clear-cache",
					     "crash",
					     "torn-op",
					     "torn-seq",
					     "sync-pages",
					     "checkpoint",
					     "usage",
					     "report",
					     "faults",
					     "cancel",
					     "snapshot",
					     "rollback",
					     "status",
					     "help",
					     "lazyfs::display-cache-usage",
					     "lazyfs::unsynced-data-report" };

	inject_command_help(&help);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		ok(strstr(strbuf_str(&help), words[i]), "help tells of %s", words[i]);
}

int main(void)
{
	test_lines();
	test_wrong_lines();
	test_words();
	test_quoted();
	test_wrong_words();
	test_defaults();
	test_help();
	return done_testing();
}
