/* SPDX-License-Identifier: MIT */
/*
 * workload-parse.c - text to workload and back. Every operation of the table is covered by lines
 * made from its argument kinds, so a new operation is tested without a change here.
 */
#include <errno.h>

#include "base/rng.h"
#include "tap.h"
#include "workload/workload.h"

static int parse(const char *text, struct workload *w, struct err *err)
{
	return workload_parse(text, strlen(text), "t", w, err);
}

/* What a text becomes when it is read and printed. */
static void becomes(const char *text, const char *want, const char *what)
{
	auto_workload w;
	auto_strbuf got = STRBUF_INIT;
	struct err err = ERR_INIT;

	workload_init(&w);
	if (parse(text, &w, &err))
		strbuf_addf(&got, "error: %s", err.msg);
	else
		workload_print(&w, &got);
	is_s(strbuf_str(&got), want, "%s", what);
}

static void stays(const char *text, const char *what)
{
	becomes(text, text, what);
}

static int refusals;

static void refused_len(const char *text, size_t len, const char *want)
{
	auto_workload w;
	struct err err = ERR_INIT;

	workload_init(&w);
	int rc = workload_parse(text, len, "t", &w, &err);
	is_s(rc ? err.msg : "(accepted)", want, "refusal %d", ++refusals);
	ok(rc == -EINVAL && !w.ops.n && !w.named && !w.name[0], "and nothing is left");
}

static void refused(const char *text, const char *want)
{
	refused_len(text, strlen(text), want);
}

/* ---- every operation of the table ---- */

struct style {
	bool handle;   /* files are written as handles */
	bool command;  /* texts are commands */
	size_t word;   /* which word of a list */
	size_t n_args; /* how many arguments are given */
};

/* An argument as the printer would write it. False: a kind this test does not know. */
static bool add_arg(struct strbuf *sb, const struct arg_def *arg, const struct style *s)
{
	static const char *const values[] = {
		[ARG_PATH] = "A/foo",	 [ARG_FILE] = "B/bar",	 [ARG_HANDLE] = "h1",
		[ARG_TEXT] = "a\\x20b",	 [ARG_XATTR] = "user.x", [ARG_OFFSET] = "4096",
		[ARG_LENGTH] = "100",	 [ARG_SIZE] = "70000",	 [ARG_MODE] = "0640",
		[ARG_NUMBER] = "123456",
	};
	size_t n = 0;

	strbuf_addch(sb, ' ');
	if (arg->kind == ARG_TEXT && s->command) {
		strbuf_adds(sb, "\"a b; \\\"c\\\" # \\\\d\"");
		return true;
	}
	if (arg->kind == ARG_FLAGS || arg->kind == ARG_CHOICE) {
		while (arg->words[n].name)
			n++;
		strbuf_adds(sb, arg->words[s->word % n].name);
		if (arg->kind == ARG_FLAGS && s->word >= n)
			strbuf_addf(sb, ",%s", arg->words[(s->word + 1) % n].name);
		return true;
	}
	if ((size_t)arg->kind >= ARRAY_SIZE(values) || !values[arg->kind])
		return false;
	strbuf_adds(sb, arg->kind == ARG_FILE && s->handle ? "h1" : values[arg->kind]);
	return true;
}

static bool add_line(struct strbuf *sb, const struct op_def *def, const struct style *s)
{
	struct style style = *s;
	bool known = true;

	style.command = def->flags & OP_COMMAND;
	if (def->flags & OP_MAKES_HANDLE)
		strbuf_adds(sb, "h2 = ");
	strbuf_adds(sb, def->name);
	for (size_t i = 0; i < s->n_args; i++)
		known &= add_arg(sb, &def->args[i], &style);
	return known;
}

static size_t required_args(const struct op_def *def)
{
	size_t n = 0;

	while (def->args[n].kind != ARG_END && !def->args[n].optional)
		n++;
	return n;
}

static const char opened[] = "h1 = open A/foo rdwr\n";

static void check_op(const struct op_def *def, const struct style *s, bool setup)
{
	auto_strbuf text = STRBUF_INIT, got = STRBUF_INIT;
	auto_workload w;
	struct err err = ERR_INIT;

	workload_init(&w);
	strbuf_adds(&text, opened);
	strbuf_adds(&text, setup ? "setup " : "");
	bool known = add_line(&text, def, s);
	strbuf_addch(&text, '\n');
	int rc = parse(strbuf_str(&text), &w, &err);
	if (!rc)
		workload_print(&w, &got);
	if (!ok(known && !rc && streq(strbuf_str(&got), strbuf_str(&text)), "%s, %zu arguments",
		def->name, s->n_args))
		printf("#   want %s#   got  %s#   %s\n", strbuf_str(&text), strbuf_str(&got),
		       err.msg);
	if (rc)
		return;
	const struct op *op = &w.ops.v[1];
	bool right = op->def == def && op->setup == setup;
	for (size_t i = 0; def->args[i].kind != ARG_END; i++) {
		right &= op->args[i].given == (i < s->n_args);
		right &= i < s->n_args || op->args[i].num == def->args[i].fallback;
		if (def->args[i].kind == ARG_FILE)
			right &= op->args[i].is_handle == s->handle;
	}
	ok(right, "%s in memory", def->name);
}

/* Without its last required argument, and with one too many. */
static void check_count(const struct op_def *def)
{
	auto_strbuf line = STRBUF_INIT, text = STRBUF_INIT, usage = STRBUF_INIT;
	size_t required = required_args(def);
	struct style s = { .n_args = required ? required - 1 : 0 };
	char want[512];

	op_usage(def, &usage);
	if (required) {
		add_line(&line, def, &s);
		strbuf_addf(&text, "%s%s", opened, strbuf_str(&line));
		snprintf(want, sizeof(want), "t:2:%zu: expected %s here: %s", line.len + 1,
			 def->args[required - 1].name, strbuf_str(&usage));
		refused(strbuf_str(&text), want);
	}
	strbuf_clear(&line);
	strbuf_clear(&text);
	s.n_args = op_count_args(def);
	add_line(&line, def, &s);
	strbuf_addf(&text, "%s%s more", opened, strbuf_str(&line));
	snprintf(want, sizeof(want), "t:2:%zu: 'more' is too much: %s", line.len + 2,
		 strbuf_str(&usage));
	refused(strbuf_str(&text), want);
}

static void test_table(void)
{
	size_t n_ops = 0;

	for (const struct op_def *def = op_table; def->name; def++, n_ops++) {
		size_t all = op_count_args(def);

		ok(op_find(def->name, strlen(def->name)) == def, "%s is found by its name",
		   def->name);
		for (size_t n = required_args(def); n <= all; n++)
			for (int handle = 0; handle < 2; handle++)
				check_op(def, &(struct style){ .handle = handle, .n_args = n },
					 n == all);
		for (size_t word = 1; word < 15; word++) /* pairs of words as well */
			check_op(def, &(struct style){ .word = word, .n_args = all }, false);
		check_count(def);
	}
	ok(n_ops >= 34, "%zu operations", n_ops);
	ok(!op_find("", 0) && !op_find("mkdi", 4) && !op_find("mkdirs", 6), "nothing else is");
}

/* ---- form ---- */

static void test_form(void)
{
	becomes("", "", "an empty text");
	stays("sync\n", "one operation");
	becomes("sync", "sync\n", "no line end at the end");
	becomes("sync # why", "sync # why\n", "no line end after a comment");
	stays("# only\n\n  # comments\n", "only comments");
	stays("\n\n# a\n\nmkdir A # b\n#c\n  \n\nsync\n# d\n\n", "comments and blank lines");
	stays("# a\nworkload x\n# b\nsync\n# c\n", "comments around a header");
	stays("workload x\n", "a workload without operations");
	stays("workload x\\x20y#\n", "an escape in a name");
	becomes("workload \\x23x\\x41\nsync\n", "workload \\x23xA\nsync\n",
		"a name that begins with a hash");
	becomes("# a\nworkload x # b\nsync\n", "# a\n# b\nworkload x\nsync\n",
		"a comment behind a name moves above it");
	stays("setup mkdir A\nsetup f1 = open A rdonly\nfsync f1\n", "setup");
	becomes("\t mkdir \t A//./b/ \t0755  \n", "mkdir A/b 0755\n", "blanks and paths");
	becomes("mkdir A  #  c \n", "mkdir A #  c \n", "a comment keeps its blanks");
	becomes("mkdir ./\nfsync .//.\n", "mkdir .\nfsync .\n", "the root");
	becomes("mkdir A\r\n# c\r\n\r\nsync # d\r\n", "mkdir A\n# c\n\nsync # d\n",
		"lines of other systems");
	becomes("# c\r\r\nsync # d\r\r", "# c\nsync # d\n", "and worse ones");
	becomes("chmod A 7\nmkdir B 00000755\n", "chmod A 0007\nmkdir B 0755\n", "modes in octal");
	becomes("write A 4k 1.5K\ntruncate A 1M\n", "write A 4096 1536\ntruncate A 1048576\n",
		"sizes in decimal");
	stays("chown A 4294967295 0\ntruncate A 4611686018427387904\nwrite A 0 67108864\n",
	      "the largest numbers");
}

static void test_words(void)
{
	becomes("symlink \"\" A\n", "symlink \"\" A\n", "the empty word");
	stays("shell \"a\tb \\\" \\\\ \\x0a\" atomic # why\n", "a command");
	becomes("shell a\\x20b\n", "shell \"a b\"\n", "a command without quotes");
	becomes("symlink \"a # b\" \"A\"\n", "symlink a\\x20#\\x20b A\n", "quoted words");
	becomes("shell \"\"\n", "shell \"\"\n", "an empty command");
	stays("symlink \\x22\\x5c\\x09\\x0a\\x7f\\x20\\x01 A\n", "escapes that are needed");
	becomes("symlink \\x61\\xc3\\xa9 A\n", "symlink a\xc3\xa9 A\n", "and that are not");
	becomes("\\x6dkdir \\x41\n", "mkdir A\n", "in any word");
	stays("mkdir \\x23A\nmkdir A#\nmkdir A#B # c\n", "a hash at the start of a word");
	becomes("symlink ../x \\xff\\xfe\n", "symlink ../x \xff\xfe\n", "bytes that are no text");
	becomes("mkdir ./=\n", "mkdir \\x3d\n", "a name that looks like an assignment");
	stays("mkdir \\x3d\nmkdir == 0755\nsymlink \\x3d \\x3d\nrename a= =b\n", "and the like");
	stays("mkdir ...\nmkdir ..a/b..\nmkdir .a\n", "dots that are names");
	stays("mkdir mkdir\nmkdir setup\nmkdir workload\n", "names like keywords");
}

static void test_handles(void)
{
	auto_workload w;
	struct err err = ERR_INIT;
	static const char text[] = "fsync f1\n"
				   "f1 = open f1 rdwr,creat 0600\n"
				   "fsync f1\n"
				   "fsync ./f1\n"
				   "fsync f1/x\n"
				   "mkdir f1\n"
				   "close f1\n"
				   "f1 = open f1 rdonly\n"
				   "copy_file_range f1 0 ./f1 0 10\n"
				   "_a9 = open . rdonly,directory\n"
				   "fdatasync _a9\n";

	stays(text, "handles and paths of the same spelling");
	becomes("f1 = open A rdonly\nfsync f1/\nfsync .//f1\n",
		"f1 = open A rdonly\nfsync ./f1\nfsync ./f1\n", "other spellings of the path");
	workload_init(&w);
	is_i(parse(text, &w, &err), 0, "parse");
	ok(!w.ops.v[0].args[0].is_handle, "before open it is a path");
	ok(w.ops.v[2].args[0].is_handle, "afterwards the handle");
	ok(!w.ops.v[3].args[0].is_handle, "./f1 is the path");
	is_s(w.ops.v[3].args[0].text, "f1", "kept without ./");
	is_s(w.ops.v[1].handle, "f1", "the handle's name");
	ok(w.ops.v[8].args[0].is_handle && !w.ops.v[8].args[2].is_handle, "one of each");
}

static void test_persists(void)
{
	static const struct {
		const char *line;
		bool want;
	} cases[] = {
		{ "fsync A", true },
		{ "fdatasync A", true },
		{ "sync", true },
		{ "syncfs", true },
		{ "remount", true },
		{ "sync_file_range A 0 1", false },
		{ "write A 0 1", false },
		{ "write A 0 1 sync", true },
		{ "append A 1 dsync", true },
		{ "append A 1", false },
		{ "mmapwrite A 0 1", true },
		{ "mmapwrite A 0 1 nosync", false },
		{ "msync A 0 1", true },
		{ "mkdir A", false },
		{ "setxattr A user.a b create", false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_workload w;
		struct err err = ERR_INIT;

		workload_init(&w);
		ok(workload_add_line(&w, cases[i].line, &err) == 0 &&
			   op_persists(&w.ops.v[0]) == cases[i].want,
		   "%s: %s promise", cases[i].line, cases[i].want ? "a" : "no");
	}
}

/* A workload made of copies is the same, also when the first is gone. */
static void test_copy(void)
{
	auto_workload copy;
	auto_strbuf got = STRBUF_INIT;
	struct workload w;
	struct err err = ERR_INIT;
	static const char text[] = "# a\nsetup f1 = open A rdwr # b\nsymlink \"\" B\nfsync ./f1\n";

	workload_init(&w);
	workload_init(&copy);
	is_i(parse(text, &w, &err), 0, "parse");
	for (size_t i = 0; i < w.ops.n; i++)
		workload_add(&copy, &w.ops.v[i]);
	workload_release(&w);
	workload_print(&copy, &got);
	is_s(strbuf_str(&got), text, "a copy");
	is_i(workload_add_line(&copy, "write f1 0 1\nsync", &err), -EINVAL, "one line, not two");
	is_s(err.msg, "operation:1:13: byte 0x0a must be written \\x0a", "says so");
	is_u(copy.ops.n, 3, "and adds nothing");
}

/* ---- streams ---- */

static void test_reader(void)
{
	static const char text[] = "# top\nmkdir A\n# before b\n\nworkload b\nsync\nworkload c\n"
				   "workload d\nf1 = open A rdonly\n# end\n";
	static const char *const names[] = { "", "b", "c", "d" };
	static const size_t n_ops[] = { 1, 1, 0, 1 };
	auto_file in = fmemopen((void *)(uintptr_t)text, sizeof(text) - 1, "r");
	auto_strbuf got = STRBUF_INIT;
	auto_workload w;
	struct workload_reader r;
	struct err err = ERR_INIT;
	size_t n = 0;
	int rc;

	workload_init(&w);
	workload_reader_init(&r, in, "t");
	while ((rc = workload_reader_next(&r, &w, &err)) > 0 && n < 10) {
		if (n < ARRAY_SIZE(names)) {
			is_s(w.name, names[n], "workload %zu: its name", n);
			is_u(w.ops.n, n_ops[n], "its operations");
			ok(w.named == (n > 0), "whether it has a header");
		}
		workload_print(&w, &got);
		n++;
	}
	is_i(rc, 0, "the end");
	is_u(n, 4, "four workloads");
	is_s(strbuf_str(&got), text, "printed one after the other, the same text");
	is_i(workload_reader_next(&r, &w, &err), 0, "and the end again");
	workload_reader_release(&r);
}

/* A handle is known only in its own workload; a mistake is found on its line. */
static void test_reader_errors(void)
{
	static const char text[] = "workload a\nf1 = open A rdonly\nworkload b\n\nclose f1\n";
	auto_file in = fmemopen((void *)(uintptr_t)text, sizeof(text) - 1, "r");
	auto_workload w;
	struct workload_reader r;
	struct err err = ERR_INIT;

	workload_init(&w);
	workload_reader_init(&r, in, "t");
	is_i(workload_reader_next(&r, &w, &err), 1, "the first");
	is_i(workload_reader_next(&r, &w, &err), -EINVAL, "the second is wrong");
	is_s(err.msg, "t:5:7: there is no handle 'f1'", "on line 5");
	workload_reader_release(&r);

	auto_file dir = fopen("/", "r");
	err_clear(&err);
	workload_reader_init(&r, dir, "/");
	is_i(workload_reader_next(&r, &w, &err), -EISDIR, "a directory cannot be read");
	is_s(err.msg, "/:1: cannot read: Is a directory", "and that is said");
	workload_reader_release(&r);
}

/* ---- what is wrong, and where ---- */

static void test_errors(void)
{
	refused("# c\nfrobnicate A\n",
		"t:2:1: unknown operation 'frobnicate' (outage gen --list-operations)");
	refused("sync\n  setup  Mkdir A\n",
		"t:2:10: unknown operation 'Mkdir' (outage gen --list-operations)");
	refused("setup\n", "t:1:6: expected an operation");
	refused("setup # mkdir A\n", "t:1:7: expected an operation");
	refused("f1 =\n", "t:1:5: expected an operation");
	refused("rename A\n", "t:1:9: expected NEW here: rename OLD NEW [FLAGS]");
	refused("rename A # B\n", "t:1:10: expected NEW here: rename OLD NEW [FLAGS]");
	refused("open A rdonly\n", "t:1:1: expected a name for the handle: NAME = open ...");
	refused("f = mkdir A\n", "t:1:5: mkdir makes no handle");
	refused("f-1 = open A rdonly\n",
		"t:1:1: 'f-1' cannot name a handle: use letters, digits and _");
	refused("1f = open A rdonly\n",
		"t:1:1: '1f' cannot name a handle: use letters, digits and _");
	refused("\\x77orkload = open A rdonly\n",
		"t:1:1: 'workload' cannot name a handle: it begins a line");
	refused("setup setup = open A rdonly\n",
		"t:1:7: 'setup' cannot name a handle: it begins a line");
	refused("f1 = open A rdonly\nclose f2\n", "t:2:7: there is no handle 'f2'");
	refused("close f1\nf1 = open A rdonly\n", "t:1:7: there is no handle 'f1'");

	refused("mkdir A/../..\n", "t:1:7: path 'A/../..' has a '..', which could leave the root");
	refused("rename A ..\n", "t:1:10: path '..' has a '..', which could leave the root");
	refused("mkdir A/\\x2e\\x2e\n",
		"t:1:7: path 'A/..' has a '..', which could leave the root");
	refused("fsync /etc\n", "t:1:7: path '/etc' is absolute; paths are relative to the root of "
				"the file system");
	refused("mkdir \"\"\n", "t:1:7: path '' is empty");

	refused("write A 0 67108865\n",
		"t:1:11: LENGTH is 67108865, more than 67108864, the most that write takes");
	refused("write A 4611686018427387905 1\n",
		"t:1:9: OFFSET is 4611686018427387905, more than "
		"4611686018427387904, the most that write takes");
	refused("truncate A 99999999999999999999\n",
		"t:1:12: SIZE is 99999999999999999999, more than 4611686018427387904, the most "
		"that truncate takes");
	refused("chown A 4294967296 0\n",
		"t:1:9: UID is 4294967296, more than 4294967295, the most that chown takes");
	refused("falloc A plain 4611686018427387904 1\n",
		"t:1:1: the range ends beyond 4611686018427387904");
	refused("truncate A -1\n", "t:1:12: expected SIZE, a number, not '-1'");
	refused("truncate A 1x\n", "t:1:12: expected SIZE, a number, not '1x'");
	refused("truncate A \"\"\n", "t:1:12: expected SIZE, a number, not ''");

	refused("write A 0 1 sync,fast\n", "t:1:18: 'fast' is none of sync, dsync");
	refused("write A 0 1 sync,\n", "t:1:18: '' is none of sync, dsync");
	refused("write A 0 1 \"\"\n", "t:1:13: '' is none of sync, dsync");
	refused("mknod A fifo,char\n", "t:1:13: only one word goes here");
	refused("mknod A file\n", "t:1:9: 'file' is none of char, block, fifo, socket, regular");
	refused("chmod A 0888\n", "t:1:9: expected MODE, permission bits such as 0644, not '0888'");
	refused("chmod A 10000\n",
		"t:1:9: expected MODE, permission bits such as 0644, not '10000'");
	refused("chmod A -1\n", "t:1:9: expected MODE, permission bits such as 0644, not '-1'");
	refused("chmod A rwx\n", "t:1:9: expected MODE, permission bits such as 0644, not 'rwx'");
	refused("setxattr A user v\n", "t:1:12: expected an attribute such as user.x, not 'user'");
}

static void test_lexical_errors(void)
{
	refused("mkdir A\\x4\n", "t:1:8: expected \\xHH with two hex digits");
	refused("mkdir A\\n\n", "t:1:8: expected \\xHH with two hex digits");
	refused("mkdir \\x4G\n", "t:1:7: expected \\xHH with two hex digits");
	refused("mkdir \\x00\n", "t:1:7: \\x00 cannot be part of a word");
	refused("mkdir A\"B\n", "t:1:8: byte 0x22 must be written \\x22");
	refused("symlink \"\"x A\n", "t:1:11: expected a blank after the \"");
	refused("shell \"a b\n", "t:1:7: this \" has no second one");
	refused("shell \"a\\\"\n", "t:1:7: this \" has no second one");
	refused("shell \"a\"b\n", "t:1:10: expected a blank after the \"");
	refused("shell \"a\\n\"\n", "t:1:9: expected \\xHH with two hex digits");
	refused("shell \"a\x01\"\n", "t:1:9: byte 0x01 must be written \\x01");
	refused("shell a b\n", "t:1:9: 'b' is none of atomic");
	refused("mkdir A\x01\n", "t:1:8: byte 0x01 must be written \\x01");
	refused("mkdir A\rB\n", "t:1:8: byte 0x0d must be written \\x0d");
	refused("frob\\x0a\\x1b[31m\n",
		"t:1:1: unknown operation 'frob??[31m' (outage gen --list-operations)");
	refused("\xef\xbb\xbfsync\n",
		"t:1:1: unknown operation '\xef\xbb\xbfsync' (outage gen --list-operations)");
	refused_len("sync\nmkdir A\0B\n", 16, "t:2:8: a NUL byte; is this a text file?");
	refused_len("# c\0\n", 5, "t:1:4: a NUL byte; is this a text file?");
	refused_len("\0", 1, "t:1:1: a NUL byte; is this a text file?");

	refused("workload\n", "t:1:9: expected a name: workload NAME");
	refused("workload # x\n", "t:1:10: expected a name: workload NAME");
	refused("workload a b\n", "t:1:12: 'b' is too much: workload NAME");
	refused("workload \"\"\n", "t:1:10: a name has 1 to 255 bytes");
	refused("sync\nworkload a\n", "t:2: a second workload begins where one is expected");
	refused("workload a\n\nworkload b\n",
		"t:3: a second workload begins where one is expected");
	refused("workloads a\n",
		"t:1:1: unknown operation 'workloads' (outage gen --list-operations)");
}

/* ---- limits ---- */

static void add_many(struct strbuf *sb, char c, size_t n)
{
	memset(strbuf_grow(sb, n), c, n);
	sb->len += n;
	sb->buf[sb->len] = '\0';
}

static void test_limits(void)
{
	auto_strbuf text = STRBUF_INIT;

	strbuf_adds(&text, "sync #");
	add_many(&text, 'x', WORKLOAD_LINE_MAX - text.len);
	strbuf_addch(&text, '\n');
	stays(strbuf_str(&text), "the longest line");
	strbuf_cut(&text, text.len - 1);
	strbuf_adds(&text, "x\n");
	refused(strbuf_str(&text), "t:1: the line is longer than 65536 bytes");

	strbuf_clear(&text);
	strbuf_adds(&text, "mkdir ");
	add_many(&text, 'x', OP_PATH_MAX);
	strbuf_addch(&text, '\n');
	stays(strbuf_str(&text), "the longest path");
	text.buf[text.len - 1] = 'x';
	refused(strbuf_str(&text), "t:1:7: path "
				   "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' "
				   "is longer than 4096 bytes");

	strbuf_clear(&text);
	strbuf_adds(&text, "workload ");
	add_many(&text, 'n', WORKLOAD_NAME_MAX);
	strbuf_addch(&text, '\n');
	stays(strbuf_str(&text), "the longest name");
	text.buf[text.len - 1] = 'n';
	refused(strbuf_str(&text), "t:1:10: a name has 1 to 255 bytes");

	strbuf_clear(&text);
	for (int i = 0; i < WORKLOAD_OPS_MAX; i++)
		strbuf_adds(&text, "sync\n");
	stays(strbuf_str(&text), "the most operations");
	strbuf_adds(&text, "sync\n");
	refused(strbuf_str(&text), "t:65537:1: a workload has at most 65536 operations");
}

/* A stream of comments ends before the memory does. */
static void test_endless(void)
{
	auto_strbuf text = STRBUF_INIT;

	for (int i = 0; i < 1025; i++) {
		strbuf_addch(&text, '#');
		add_many(&text, 'x', (64 << 10) - 2);
		strbuf_addch(&text, '\n');
	}
	refused(strbuf_str(&text), "t:1025:1: the workload is longer than 67108864 bytes");
}

/* ---- anything ---- */

/* Reads every workload of a text and prints them. 0 or -errno. */
static int reprint(const char *text, size_t len, struct strbuf *out, struct err *err)
{
	auto_file in = fmemopen((void *)(uintptr_t)text, len, "r");
	auto_workload w;
	struct workload_reader r;
	int rc;

	workload_init(&w);
	workload_reader_init(&r, in, "t");
	while ((rc = workload_reader_next(&r, &w, err)) > 0)
		workload_print(&w, out);
	workload_reader_release(&r);
	return rc;
}

static const char *const snippets[] = {
	"\n",
	" ",
	"\t",
	"\r\n",
	"#",
	"\"\"",
	"\\x20",
	"\\x",
	"./",
	"//",
	"..",
	"=",
	" = ",
	"setup ",
	"f1",
	"f1 = open A rdwr\n",
	"sync\n",
	"fsync ",
	"workload ",
	"workload x\n",
	"0644",
	"4k",
	"99999999999999999999",
	"sync,",
	"\x80",
	"\x01",
	"fsync f1\n",
	"fsync ./f1\n",
	"mkdir \\x3d\n",
};

static void mutate(struct rng *rng, struct strbuf *text)
{
	size_t at = rng_below(rng, text->len + 1);
	size_t n = rng_below(rng, text->len - at + 1);
	auto_free char *tail = xmemdupz(text->buf + at, text->len - at);
	size_t tail_len = text->len - at;

	switch (rng_below(rng, 4)) {
	case 0: /* a byte changes */
		if (tail_len)
			text->buf[at] = (char)rng_next(rng);
		return;
	case 1: /* a piece goes */
		n = min(n, 1 + rng_below(rng, 8));
		strbuf_cut(text, at);
		strbuf_add(text, tail + min(n, tail_len), tail_len - min(n, tail_len));
		return;
	case 2: /* a piece comes again */
		strbuf_add(text, tail, n);
		return;
	default:
		strbuf_cut(text, at);
		strbuf_adds(text, snippets[rng_below(rng, ARRAY_SIZE(snippets))]);
		strbuf_add(text, tail, tail_len);
	}
}

/* 1: accepted and stable, 0: refused with a sentence, -1: neither. */
static int stable(const struct strbuf *text)
{
	auto_strbuf once = STRBUF_INIT, twice = STRBUF_INIT;
	auto_free char *exact = xmemdupz(text->buf, text->len); /* so that overruns are seen */
	struct err err = ERR_INIT;

	if (!text->len)
		return 0;
	int rc = reprint(exact, text->len, &once, &err);
	if (rc)
		return rc == -EINVAL && strncmp(err.msg, "t:", 2) == 0 && !strchr(err.msg, '\n')
			       ? 0
			       : -1;
	if (once.len && reprint(once.buf, once.len, &twice, &err))
		return -1;
	return streq(strbuf_str(&once), strbuf_str(&twice)) ? 1 : -1;
}

static void test_mutations(void)
{
	static const char *const seeds[] = {
		("# a\nworkload x\nsetup mkdir A\nf1 = open A/foo rdwr,creat 0600\nwrite f1 0 4096 "
		 "sync # c\nfsync ./f1\nclose f1\nworkload y\nrename A/foo B noreplace\n"),
		"symlink \\x20\\x23 A\r\nmknod B char 5\nfalloc A punch,keep 0 4k\n\n# end",
		"setxattr A user.x \"\" create\nmkdir ./=\nchmod A 7\nsync\n",
	};
	struct rng rng;
	size_t accepted = 0, bad = 0, rounds = 30000;

	rng_init(&rng, 7);
	for (size_t i = 0; i < rounds; i++) {
		auto_strbuf text = STRBUF_INIT;

		strbuf_adds(&text, seeds[i % ARRAY_SIZE(seeds)]);
		for (uint64_t n = 1 + rng_below(&rng, 2); n; n--)
			mutate(&rng, &text);
		int rc = stable(&text);
		accepted += rc > 0;
		if (rc >= 0)
			continue;
		if (!bad++) {
			printf("#   for example ");
			for (size_t j = 0; j < text.len; j++)
				printf("%02x", (unsigned char)text.buf[j]);
			printf("\n");
		}
	}
	is_u(bad, 0, "%zu changed texts: refused with a sentence, or printing is stable", rounds);
	ok(accepted > rounds / 10 && accepted < rounds * 9 / 10, "%zu of them accepted", accepted);
}

int main(void)
{
	test_table();
	test_form();
	test_words();
	test_handles();
	test_persists();
	test_copy();
	test_reader();
	test_reader_errors();
	test_errors();
	test_lexical_errors();
	test_limits();
	test_endless();
	test_mutations();
	return done_testing();
}
