/* SPDX-License-Identifier: MIT */
/*
 * report-shell.c - what exported scripts are made of: whatever a name is, a shell takes it for one
 * word, and a comment for one line. A real shell is asked.
 */
#include "report/shell.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "hostile.h"
#include "tap.h"
#include "workload/workload.h"

static char home[] = "/tmp/outage-shell.XXXXXX";

/* Lets the shell run `script` in the directory; its output, to be freed. */
static char *run_sh(const char *shell, const struct strbuf *script)
{
	auto_strbuf command = STRBUF_INIT, got = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (io_write_file(home, "script", strbuf_str(script), script->len, 0, &err))
		return NULL;
	strbuf_addf(&command, "cd %s && %s script >out 2>&1 </dev/null", home, shell);
	int status = system(command.buf);

	if (io_slurp_file(home, "out", 1 << 20, &got, &err) || status)
		printf("#   %s ends with %d: %s\n", shell, status, strbuf_str(&got));
	return status ? NULL : xstrdup(strbuf_str(&got));
}

/* ---- words ---- */

static void test_quote(void)
{
	static const char *const shells[] = { "sh", "bash" };
	auto_strbuf script = STRBUF_INIT, want = STRBUF_INIT;

	strbuf_adds(&script, "printf '<%s>'");
	for (size_t i = 0; i < ARRAY_SIZE(hostile_names); i++) {
		strbuf_addch(&script, ' ');
		shell_quote(&script, hostile_names[i]);
		strbuf_addf(&want, "<%s>", hostile_names[i]);
	}
	strbuf_adds(&script, " ''\n");
	strbuf_adds(&want, "<>");
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		auto_free char *got = run_sh(shells[i], &script);

		is_s(got, want.buf, "%s takes each name as one word", shells[i]);
	}

	auto_strbuf out = STRBUF_INIT;
	shell_quote(&out, "A/foo");
	shell_quote(&out, "");
	shell_quote(&out, "it's");
	is_s(out.buf, "A/foo'''it'\\''s'", "what is plain stays so, and nothing is a word, too");
}

static void test_clean(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(hostile_names); i++) {
		auto_strbuf out = STRBUF_INIT;
		bool fine = true;

		shell_clean(&out, hostile_names[i]);
		for (size_t k = 0; k < out.len; k++)
			fine &= (unsigned char)out.buf[k] >= 0x20 && out.buf[k] != 0x7f;
		ok(fine && out.len >= strlen(hostile_names[i]), "name %zu is one line of a comment",
		   i);
	}
	auto_strbuf out = STRBUF_INIT;
	shell_clean(&out, "a\nb\tc\033d\177");
	is_s(out.buf, "a b c\\x1bd\\x7f", "what cannot be shown is told by its number");
}

static void test_control(void)
{
	ok(!shell_has_control("A/it's <fine>") && !shell_has_control("\xc3\xa9"),
	   "names without control characters");
	ok(shell_has_control("a\nb") && shell_has_control("\177") && shell_has_control("\001"),
	   "and with them");
}

static void test_base64(void)
{
	/* RFC 4648, and lines of 76 */
	static const char *const pairs[][2] = {
		{ "", "\n" },
		{ "f", "Zg==\n" },
		{ "fo", "Zm8=\n" },
		{ "foo", "Zm9v\n" },
		{ "foob", "Zm9vYg==\n" },
		{ "fooba", "Zm9vYmE=\n" },
		{ "foobar", "Zm9vYmFy\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		auto_strbuf out = STRBUF_INIT;

		shell_base64(&out, (const unsigned char *)pairs[i][0], strlen(pairs[i][0]));
		is_s(strbuf_str(&out), pairs[i][1], "base64 of '%s'", pairs[i][0]);
	}
	unsigned char all[256];
	auto_strbuf script = STRBUF_INIT, want = STRBUF_INIT;

	for (size_t i = 0; i < sizeof(all); i++) {
		all[i] = (unsigned char)i;
		strbuf_addf(&want, "%02x", (unsigned)i);
	}
	auto_strbuf lines = STRBUF_INIT;
	size_t longest = 0;

	shell_base64(&lines, all, sizeof(all));
	for (const char *at = lines.buf; *at; at += strcspn(at, "\n") + 1)
		longest = max(longest, strcspn(at, "\n"));
	is_u(longest, 76, "no line of it is longer than base64(1) makes them");
	strbuf_adds(&script, "base64 -d <<'END' | od -An -v -tx1 | tr -d ' \\n'\n");
	strbuf_adds(&script, lines.buf);
	strbuf_adds(&script, "END\n");
	auto_free char *got = run_sh("sh", &script);

	is_s(got, want.buf, "base64(1) gives every byte back");
}

/* ---- operations ---- */

/* A word of a workload that stands for `name`, whatever is in it. */
static void add_word(struct strbuf *out, const char *name)
{
	for (; *name; name++)
		strbuf_addf(out, "\\x%02x", (unsigned char)*name);
}

static void add_line(struct workload *w, const char *op, const char *name, const char *rest)
{
	auto_strbuf line = STRBUF_INIT;
	struct err err = ERR_INIT;

	strbuf_addf(&line, "%s ", op);
	add_word(&line, name);
	strbuf_adds(&line, rest);
	if (workload_add_line(w, line.buf, &err))
		printf("#   %s: %s\n", line.buf, err.msg);
}

static bool is_there(const char *name, mode_t type, off_t size)
{
	auto_strbuf path = STRBUF_INIT;
	struct stat st;

	strbuf_addf(&path, "%s/%s", home, name);
	return lstat(path.buf, &st) == 0 && (st.st_mode & S_IFMT) == type &&
	       (size < 0 || st.st_size == size);
}

/* The commands of an operation on each name do what the operation does, and nothing else. */
static void test_operations(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(hostile_names); i++) {
		const char *name = hostile_names[i];
		auto_strbuf script = STRBUF_INIT, rm = STRBUF_INIT, ran = STRBUF_INIT;
		auto_workload w;

		workload_init(&w);
		add_line(&w, "creat", name, "");
		add_line(&w, "truncate", name, " 77");
		add_line(&w, "chmod", name, " 0640");
		add_line(&w, "symlink", name, " link");
		strbuf_adds(&script, "set -e\nskip() { echo skipped; }\n");
		for (size_t k = 0; k < w.ops.n; k++) {
			shell_op(&w, k, SHELL_PLAIN, &script);
			strbuf_addch(&script, '\n');
		}
		auto_free char *got = run_sh("sh", &script);
		char target[300] = "";
		strbuf_addf(&ran, "%s/link", home);
		ssize_t n = readlink(ran.buf, target, sizeof(target) - 1);

		ok(w.ops.n == 4 && got && is_there(name, S_IFREG, 77) && n > 0 &&
			   streq(target, name),
		   "name %zu: a script makes a file of it", i);
		ok(!is_there("ran", S_IFREG, -1), "name %zu: and runs nothing", i);
		strbuf_addf(&rm, "%s/%s", home, name);
		unlink(rm.buf);
		unlink(ran.buf);
	}
}

static void test_xfstests(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(hostile_names); i++) {
		auto_strbuf script = STRBUF_INIT, want = STRBUF_INIT;
		auto_workload w;

		workload_init(&w);
		add_line(&w, "mkdir", hostile_names[i], "");
		/* What it is called with, instead of that. */
		strbuf_adds(&script,
			    "SCRATCH_MNT=/scratch\n"
			    "mkdir() { for word; do last=$word; done; printf '%s' \"$last\"; }\n");
		shell_op(&w, 0, SHELL_XFSTESTS, &script);
		strbuf_addf(&want, "/scratch/%s", hostile_names[i]);
		auto_free char *got = run_sh("bash", &script);

		is_s(got, want.buf, "name %zu: below the mount of a test of xfstests", i);
	}
}

/* ---- what can be seen ---- */

static void test_facts(void)
{
	static const struct tree_xattr xattrs[] = { { "security.x", "no", 2 },
						    { "user.a", "b\n'", 3 } };
	struct tree_entry e = { .path = "l\nx",
				.type = TREE_SYMLINK,
				.mode = 0777,
				.uid = 7,
				.gid = 8,
				.nlink = 1,
				.target = "a\nb" };
	auto_strbuf out = STRBUF_INIT, attributes = STRBUF_INIT, sum = STRBUF_INIT;

	shell_facts(&e, &out);
	is_s(strbuf_str(&out), "l 777 7:8 links=1 -> a\nb", "the facts of a link");
	e = (struct tree_entry){ .path = "f",
				 .type = TREE_FILE,
				 .mode = 0644,
				 .nlink = 1,
				 .size = 3,
				 .content = "abc",
				 .xattrs = xattrs,
				 .n_xattrs = 2 };
	shell_xattrs(&e, &attributes);
	is_s(strbuf_str(&attributes), "user.a=0x620a27",
	     "attributes in numbers, those of others not");
	ok(shell_cksum(&e, &sum), "the sum of a content");
	is_s(strbuf_str(&sum), "1219131554 3", "is that of cksum(1)");
}

int main(void)
{
	if (!mkdtemp(home))
		return 1;
	test_quote();
	test_clean();
	test_control();
	test_base64();
	test_operations();
	test_xfstests();
	test_facts();
	auto_strbuf rm = STRBUF_INIT;
	strbuf_addf(&rm, "rm -rf %s", home);
	if (system(rm.buf))
		printf("# %s stays\n", home);
	return done_testing();
}
