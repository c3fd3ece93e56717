/* SPDX-License-Identifier: MIT */
/* workload-jlang.c - j-lang files become the workloads they mean, and those run. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"
#include "workload/exec.h"
#include "workload/j2lang.h"
#include "workload/jlang.h"

static FILE *open_text(const char *text, size_t len)
{
	return fmemopen((void *)(uintptr_t)text, len, "r");
}

static int import_len(const char *text, size_t len, const char *source, struct workload *w,
		      struct err *err)
{
	auto_file in = open_text(text, len);

	return jlang_import(in, source, w, err);
}

/* Performs every operation in a fresh directory. True if none failed. */
static bool runs(const struct workload *w)
{
	char dir[] = "/tmp/workload-jlang-XXXXXX";
	bool good = true;
	struct exec x;

	if (!mkdtemp(dir))
		return false;
	auto_fd root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	exec_init(&x, root, w, NULL);
	for (size_t i = 0; i < w->ops.n; i++) {
		int64_t rc = exec_op(&x, i);

		if (rc >= 0)
			continue;
		auto_strbuf text = STRBUF_INIT;
		op_print(&w->ops.v[i], &text);
		printf("#   %s: %s\n", strbuf_str(&text), strerror((int)-rc));
		if (rc != -EOPNOTSUPP)
			good = false;
	}
	exec_release(&x);
	auto_free char *cmd = xasprintf("rm -rf %s", dir);
	if (system(cmd))
		printf("# %s failed\n", cmd);
	return good;
}

static void becomes(const char *text, const char *want, const char *what)
{
	auto_workload w, again;
	auto_strbuf got = STRBUF_INIT, twice = STRBUF_INIT;
	struct err err = ERR_INIT;

	workload_init(&w);
	workload_init(&again);
	if (import_len(text, strlen(text), "dir/sample", &w, &err))
		strbuf_addf(&got, "error: %s", err.msg);
	else
		workload_print(&w, &got);
	is_s(strbuf_str(&got), want, "%s", what);
	ok(runs(&w), "%s: runs without an error", what);
	ok(workload_parse(got.buf, got.len, "t", &again, &err) == 0, "%s: is a workload", what);
	workload_print(&again, &twice);
	is_s(strbuf_str(&twice), strbuf_str(&got), "%s: of the same text", what);
}

static void refused_len(const char *text, size_t len, const char *want)
{
	auto_workload w;
	struct err err = ERR_INIT;

	workload_init(&w);
	int rc = import_len(text, len, "bad", &w, &err);
	is_s(rc ? err.msg : "(accepted)", want, "bad input");
	ok(rc == -EINVAL && !w.ops.n && !w.named, "leaves nothing");
}

static void refused(const char *text, const char *want)
{
	refused_len(text, strlen(text), want);
}

/* ---- what files mean ---- */

static void test_sections(void)
{
	becomes("# define\n"
		"foo\n"
		"A\n"
		"A/foo\n"
		"test\n"
		"\n"
		"# declare\n"
		"local_checkpoint\n"
		"anything at all\n"
		"\n"
		"# setup\n"
		"mkdir A 0700\n"
		"open Afoo O_RDWR|O_CREAT 0777\n"
		"write Afoo 0 4096\n"
		"\n"
		"# run\n"
		"open Afoo O_RDWR\n"
		"# a comment\n"
		"write Afoo 4096 100\n"
		"fsync Afoo\n"
		"checkpoint 1\n"
		"opendir test\n"
		"fsync test\n"
		"checkpoint 2\n"
		"none\n"
		"close test\n"
		"close Afoo\n",
		"workload sample\n"
		"setup mkdir A 0700\n"
		"setup fAfoo = open A/foo rdwr,creat 0777\n"
		"setup pwrite fAfoo 0 4096\n"
		"setup close fAfoo\n"
		"setup sync\n"
		"fAfoo = open A/foo rdwr 0644\n"
		"pwrite fAfoo 4096 100\n"
		"fsync fAfoo\n"
		"ftest = open . rdonly,directory\n"
		"fsync ftest\n"
		"close ftest\n"
		"close fAfoo\n",
		"the sections");
	becomes("# define\nfoo\n# setup\n# run\nopen foo O_RDWR|O_CREAT 0600\nfdatasync foo",
		"workload sample\nffoo = open foo rdwr,creat 0600\nfdatasync ffoo\n",
		"an empty setup, and no line end");
	becomes("# define\r\nfoo\r\n\r\n# run\r\nopen  foo\tO_WRONLY|O_CREAT|O_TRUNC "
		"0600\r\nsync\r\n",
		"workload sample\nffoo = open foo wronly,creat,trunc 0600\nsync\n",
		"lines of other systems");
}

static void test_names(void)
{
	becomes("# define\nA\nB\nA/foo\nA/bar\nB/bar\nA/C\n"
		"# run\n"
		"mkdir A\nmkdir B 0755\nmkdir AC 0777\n"
		"open Afoo O_CREAT|O_RDWR 0644\nclose Afoo\nclose Afoo\n"
		"link Afoo Abar\nrename Afoo Bbar\nunlink Abar\nremove Bbar\nrmdir AC\n"
		"mknod Afoo S_IFREG|S_IRWXU 0\nmknod Abar S_IFIFO|0644\n",
		"workload sample\n"
		"mkdir A 0777\nmkdir B 0755\nmkdir A/C 0777\n"
		"fAfoo = open A/foo creat,rdwr 0644\nclose fAfoo\n"
		"link A/foo A/bar\nrename A/foo B/bar\nunlink A/bar\nremove B/bar\nrmdir A/C\n"
		"mknod A/foo regular 0\nmknod A/bar fifo 0\n",
		"operations on names");
	/* Handles have letters, digits and _, and no two names share one. */
	becomes("# define\nA\na.b\na-b\nA/x\na_b\n# run\nopen a.b O_CREAT|O_RDWR 0600\n"
		"open a-b O_CREAT|O_RDWR 0600\nopen a_b O_CREAT|O_RDWR 0600\nwrite a.b 0 1\n"
		"write a-b 0 2\nfsync a_b\n",
		"workload sample\nfa_b = open a.b creat,rdwr 0600\n"
		"g2 = open a-b creat,rdwr 0600\ng4 = open a_b creat,rdwr 0600\n"
		"pwrite fa_b 0 1\npwrite g2 0 2\nfsync g4\n",
		"names that are no identifiers");
	/* The old name is below the root, and the link must lead there from where it is. */
	becomes("# define\nfoo\nl\nA\nA/foo\nA/l\nA/B\nA/B/l\n"
		"# run\nmkdir A\nmkdir AB\nopen Afoo O_RDWR|O_CREAT 0644\nsymlink Afoo l\n"
		"symlink Afoo Al\nsymlink Afoo ABl\n"
		"open ABl O_RDWR\nfsync ABl\nopen l O_RDWR\nopen Al O_RDWR\n",
		"workload sample\nmkdir A 0777\nmkdir A/B 0777\n"
		"fAfoo = open A/foo rdwr,creat 0644\nsymlink A/foo l\n"
		"symlink ../A/foo A/l\nsymlink ../../A/foo A/B/l\n"
		"fABl = open A/B/l rdwr 0644\nfsync fABl\nfl = open l rdwr 0644\n"
		"fAl = open A/l rdwr 0644\n",
		"symbolic links");
}

static void test_data(void)
{
	becomes("# define\nfoo\n"
		"# run\n"
		"open foo O_RDWR|O_CREAT 0644\n"
		"write foo 0 32768\n"
		"mmapwrite foo 4096 4096\n"
		"falloc foo 0 0 40000\n"
		"falloc foo FALLOC_FL_ZERO_RANGE|FALLOC_FL_KEEP_SIZE 30000 5000\n"
		"falloc foo FALLOC_FL_PUNCH_HOLE|FALLOC_FL_KEEP_SIZE 0 4096\n"
		"truncate foo 2500\n"
		"dwrite foo 0 4096\n"
		"close foo\n"
		"open foo O_RDWR 0644\n"
		"fsetxattr foo\n"
		"removexattr foo\n"
		"fdatasync foo\n"
		"sync\n",
		"workload sample\n"
		"ffoo = open foo rdwr,creat 0644\n"
		"pwrite ffoo 0 32768\n"
		"mmapwrite ffoo 4096 4096\n"
		"falloc ffoo plain 0 40000\n"
		"falloc ffoo zero,keep 30000 5000\n"
		"falloc ffoo punch,keep 0 4096\n"
		"truncate foo 2500\n"
		"close ffoo\n"
		"dwrite foo 0 4096 sync\n"
		"ffoo = open foo rdwr 0644\n"
		"setxattr ffoo user.xattr1 val1\n"
		"removexattr foo user.xattr1\n"
		"fdatasync ffoo\n"
		"sync\n",
		"operations on data");
}

/* Two long names in one operation are more than a line of the file, and neither is cut. */
static void test_long_names(void)
{
	auto_strbuf text = STRBUF_INIT, a = STRBUF_INIT, b = STRBUF_INIT, got = STRBUF_INIT;
	auto_workload w;
	struct err err = ERR_INIT;

	for (int i = 0; i < 1000; i++) {
		strbuf_adds(&a, i ? "/aa" : "aaa");
		strbuf_adds(&b, i ? "/bb" : "bbb");
	}
	strbuf_addf(&text, "# define\n%s\n%s\n# run\nrename ", strbuf_str(&a), strbuf_str(&b));
	for (int i = 0; i < 2001; i++)
		strbuf_addch(&text, 'a');
	strbuf_addch(&text, ' ');
	for (int i = 0; i < 2001; i++)
		strbuf_addch(&text, 'b');
	strbuf_addch(&text, '\n');
	workload_init(&w);
	is_i(import_len(text.buf, text.len, "x", &w, &err), 0, "long names");
	workload_print(&w, &got);
	strbuf_clear(&text);
	strbuf_addf(&text, "workload x\nrename %s %s\n", strbuf_str(&a), strbuf_str(&b));
	is_s(strbuf_str(&got), strbuf_str(&text), "come out whole");
}

static void test_source_name(void)
{
	static const char text[] = "# define\nA\n# run\nmkdir A\n";
	static const struct {
		const char *source, *want;
	} cases[] = {
		{ "j-lang1", "workload j-lang1\nmkdir A 0777\n" },
		{ "/some/where/j lang", "workload j\\x20lang\nmkdir A 0777\n" },
		{ "dir/", "workload dir/\nmkdir A 0777\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_workload w;
		auto_strbuf got = STRBUF_INIT;
		struct err err = ERR_INIT;

		workload_init(&w);
		is_i(import_len(text, sizeof(text) - 1, cases[i].source, &w, &err), 0, "import");
		workload_print(&w, &got);
		is_s(strbuf_str(&got), cases[i].want, "named after %s", cases[i].source);
	}
}

/* ---- what is no j-lang ---- */

static void recognised(const char *text, bool want, const char *what)
{
	auto_file in = open_text(text, strlen(text));
	char c;

	ok(fread(&c, 1, 1, in) == 1 && fseek(in, 0, SEEK_SET) == 0, "a stream");
	ok(jlang_recognise(in) == want, "%s: %s", what, want ? "j-lang" : "not j-lang");
	is_i(ftell(in), 0, "and the stream is where it was");
}

static void test_recognise(void)
{
	int fds[2];

	recognised("# define\nA\n# setup\n# run\nmkdir A\n", true, "a file");
	recognised("\n#  define\r\nA\r\n\r\n#run\r\n", true, "with blanks");
	recognised("# by a person\n\n# define\nA\n# run\n", true, "after a comment");
	recognised("mkdir A\n", false, "a workload");
	recognised("# run\nmkdir A\n", false, "no names");
	recognised("# define\nA\n", false, "no operations");
	recognised("mkdir A\n# define\n# run\n", false, "a workload with such comments");
	recognised("# defined\n# runs\n", false, "other words");

	if (pipe(fds))
		return;
	auto_file in = fdopen(fds[0], "r");
	close(fds[1]);
	ok(!jlang_recognise(in), "a pipe is not read");
	auto_file zero = fopen("/dev/zero", "r");
	alarm(600);
	ok(!jlang_recognise(zero), "an endless file is given up");
	alarm(0);
}

static void test_errors(void)
{
	auto_strbuf text = STRBUF_INIT;

	refused("mkdir A\n", "bad:1: expected a section such as '# define'");
	refused("# define\nA\n# run\nfrobnicate A\n",
		"bad:4: unknown j-lang operation 'frobnicate'");
	refused("# define\nA\n# run\nmkdir B\n", "bad:4: 'B' is not in the define section");
	refused("# define\nA\n# run\nrename A B\n", "bad:4: 'B' is not in the define section");
	refused("# define\nA\n# run\nsymlink A B\n", "bad:4: 'B' is not in the define section");
	refused("# define\nA\n# run\nrename A\n", "bad:4: rename needs 2 words after it");
	refused("# define\nA\n# run\nwrite A 0\n", "bad:4: write needs 3 words after it");
	refused("# define\nA\n# run\nfsync A\n", "bad:4: 'A' is used before it is opened");
	refused("# define\nA\n# setup\nopen A O_CREAT|O_RDWR\n# run\nwrite A 0 1\n",
		"bad:6: 'A' is used before it is opened");
	refused("# define\nA\n# run\nfsetxattr A\n", "bad:4: 'A' is used before it is opened");
	refused("# define\nA\n# run\nopen A O_RDWR|O_FAST\n", "bad:4: unknown open flag 'O_FAST'");
	refused("# define\nA\n# run\nopen A O_RDWR\nfalloc A FALLOC_FL_X 0 1\n",
		"bad:5: unknown fallocate mode 'FALLOC_FL_X'");
	refused("# define\n/A\n",
		"bad:2: path '/A' is absolute; paths are relative to the root of the file system");
	refused("# define\nA/../B\n",
		"bad:2: path 'A/../B' has a '..', which could leave the root");
	refused("# define\nA\n# run\nopen A O_RDWR\nwrite A x 1\n",
		"bad:5: expected OFFSET, a number, not 'x'");
	refused("# define\nA\n# run\nmkdir A 0999\n", "bad:4: expected MODE, "
						      "permission bits such as 0644, not '0999'");
	refused("# define\nA\n# run\nmkdir 1 2 3 4 5 6 7 8\n", "bad:4: more than 8 words");
	refused_len("# define\nA\n# run\nmk\0dir A\n", 26,
		    "bad:4: a NUL byte; is this a text file?");
	refused_len("# define\nA\0", 11, "bad:2: a NUL byte; is this a text file?");
	strbuf_adds(&text, "# define\n");
	for (int i = 0; i < 4096; i++)
		strbuf_addch(&text, 'x');
	refused(strbuf_str(&text), "bad:2: the line is longer than 4095 bytes");
}

/* ---- templates ---- */

struct imported {
	size_t n, broken;
	struct strbuf text;
};

static int take(void *ctx, struct workload *w)
{
	struct imported *to = ctx;

	to->n++;
	to->broken += !runs(w);
	workload_print(w, &to->text);
	strbuf_addch(&to->text, '\n');
	return 0;
}

/* A template gives so many workloads, which run; one of them has this text. */
static void template_becomes(const char *text, size_t n, const char *one)
{
	struct imported got = { .n = 0 };
	struct err err = ERR_INIT;
	auto_file in = open_text(text, strlen(text));

	ok(j2lang_recognise(in), "a template is recognised");
	if (j2lang_import(in, "dir/t", take, &got, &err))
		printf("# %s\n", err.msg);
	is_u(got.n, n, "it gives %zu workloads", n);
	is_u(got.broken, 0, "all of them run");
	if (!ok(strstr(strbuf_str(&got.text), one), "one is as it should be"))
		printf("# %s\n", strbuf_str(&got.text));
	strbuf_release(&got.text);
}

static void template_refused(const char *text, const char *says)
{
	struct imported got = { .n = 0 };
	struct err err = ERR_INIT;
	auto_file in = open_text(text, strlen(text));

	if (!ok(j2lang_import(in, "bad", take, &got, &err) < 0 && strstr(err.msg, says),
		"refused: %s", says))
		printf("#   said: %s\n", err.msg);
	strbuf_release(&got.text);
}

static void test_templates(void)
{
	template_becomes("# J2-Lang\nfile1 foo Afoo\nfile2 bar Abar\nlink $file1 $file2\n", 28,
			 "workload t-12\nsetup creat foo\nsetup mkdir A\nlink foo A/bar\n"
			 "fdatasync A\n\n");
	template_becomes("# J2-Lang\nfile1 A AC foo\nfile2 B bar\nrename $file1 $file2\n", 14,
			 "setup mkdir A\nsetup mkdir A/C\nrename A/C B\nfsync B\n\n");
	template_becomes(
		"# J2-Lang\nfile1 ACfoo\noption1 FALLOC_FL_KEEP_SIZE 0\n"
		"option2 append overlap_extend\nfalloc $file1 $option1 $option2\n",
		16,
		"workload t-5\nsetup mkdir A\nsetup mkdir A/C\nsetup write A/C/foo 0 32768\n"
		"falloc A/C/foo keep 30768 5000\nfsync A/C\n\n");
	template_becomes("# J2-Lang\nfile1 foo\noption1 append overlap_start\n"
			 "mmapwrite $file1 $option1\n",
			 2, "workload t-2\nsetup write foo 0 32768\nmmapwrite foo 0 8192\n\n");
	template_becomes("# J2-Lang\nfile1 foo\nunlink $file1\n", 2,
			 "setup creat foo\nunlink foo\nfsync .\n\n");
	template_becomes("# J2-Lang\nfile1 foo\nremovexattr $file1\n", 4,
			 "setup setxattr foo user.xattr1 val1\nremovexattr foo user.xattr1\n");
	template_becomes("# J2-Lang\nfile1 A\nmkdir $file1 0777\n", 4, "mkdir A 0777\nfsync A\n\n");
	template_becomes("# J2-Lang\nfile1 foo\noption1 0 2500\ntruncate $file1 $option1\n", 8,
			 "setup creat foo\ntruncate foo 2500\nfsync foo\n\n");
	template_refused("# J2-Lang\n", "there is no operation");
	template_refused("# J2-Lang\nfile1 foo\nfrob $file1\n", "unknown J2-lang operation 'frob'");
	template_refused("# J2-Lang\nfile1 foo\nunlink $file2\n", "there is no list 'file2'");
	template_refused("# J2-Lang\nfile1 foo\nunlink $file1\nunlink $file1\n",
			 "bad:4: a second operation");
	template_refused("# J2-Lang\nfile1 foo\nlink $file1\n", "link has 2 words after it");
	template_refused("# J2-Lang\nfile1 foo\nwrite $file1 sideways\n", "'sideways' is no range");
	template_refused("# J2-Lang\nfile1 ../foo\nunlink $file1\n", "could leave the root");
	template_refused("# J2-Lang\na b c d e\n", "more than 4 words");
	auto_file other = open_text("# define\nA\n", 11);
	ok(!j2lang_recognise(other), "a file with sections is no template");
}

int main(void)
{
	test_sections();
	test_names();
	test_data();
	test_long_names();
	test_source_name();
	test_recognise();
	test_errors();
	test_templates();
	return done_testing();
}
