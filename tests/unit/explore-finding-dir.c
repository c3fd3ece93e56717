/* SPDX-License-Identifier: MIT */
/* Findings that are replaced by smaller ones: whatever dies, there always is a complete one. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/below.h"
#include "base/fault.h"
#include "base/io.h"
#include "explore/finding_dir.h"
#include "run/store.h"
#include "tap.h"

static char home[] = "/tmp/outage-finding.XXXXXX";
static const char *const files[] = { "problems", "script", "case" };

/* Writes a finding whose files all say `text`, as keep.c does. */
static int keep(const char *name, const char *text, struct err *err)
{
	auto_free char *next = NULL;
	auto_newdir new = IO_NEWDIR_INIT;
	int rc = finding_dir_next("run", name, &next, err);

	if (!rc)
		rc = io_newdir_open("run", next, &new, err);
	for (size_t i = 0; i < ARRAY_SIZE(files) && !rc; i++)
		rc = io_write_file(new.path, files[i], text, strlen(text), 0, err);
	if (!rc)
		rc = io_newdir_commit(&new, err);
	return rc ? rc : finding_dir_take("run", name, next, err);
}

/* Whether all files of a finding say `text`. */
static bool says(const char *dir, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		auto_strbuf got = STRBUF_INIT;
		struct err err = ERR_INIT;

		if (io_slurp_file(dir, files[i], 100, &got, &err) || !streq(strbuf_str(&got), text))
			return false;
	}
	return true;
}

/* Whether the list of findings has one that is complete, whichever it is. */
static bool lists_one(void)
{
	auto_words list = { 0 };
	struct err err = ERR_INIT;
	bool any = false;

	if (case_list("run", &list, &err))
		return false;
	for (size_t i = 0; i < list.n; i++)
		any |= says(list.v[i], "found") || says(list.v[i], "smaller") ||
		       says(list.v[i], "smallest");
	return any;
}

static size_t count(const char *name)
{
	struct words names = { 0 };
	struct err err = ERR_INIT;
	size_t n = below_list("run", name, &names, &err) ? 0 : names.n;

	words_release(&names);
	return n;
}

static void fresh(void)
{
	struct err err = ERR_INIT;

	if (system("rm -rf run && mkdir -p run/findings") || keep("1-0", "found", &err))
		abort();
}

static void test_replace(const char *how)
{
	struct err err = ERR_INIT;

	fresh();
	ok(says("run/findings/1-0", "found"), "%s: one is kept", how);
	ok(!keep("1-0", "smaller", &err), "a smaller one: %s", err.msg);
	ok(says("run/findings/1-0", "smaller"), "is in its place");
	ok(says("run/whole/1-0", "found"), "and what was found is put away");
	ok(!keep("1-0", "smallest", &err), "one that is smaller still: %s", err.msg);
	ok(says("run/findings/1-0", "smallest"), "is in its place");
	ok(says("run/whole/1-0", "found"), "what was found stays");
	is_u(count("findings"), 1, "and what was in between is gone");
	ok(!finding_dir_remove("run", "1-0", &err), "it can be removed: %s", err.msg);
	is_u(count("findings") + count("whole"), 0, "as can what was found");
}

/* In a process that is killed at the n-th point; false if it came to its end before. */
static bool killed_at(int n)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct err err = ERR_INIT;

		fault_arm(n, FAULT_KILL);
		_exit(keep("1-0", "smaller", &err) || keep("1-0", "smallest", &err));
	}
	if (waitpid(pid, &status, 0) != pid)
		abort();
	return WIFSIGNALED(status);
}

static void test_deaths(const char *how)
{
	unsigned rounds = 0, lost = 0;

	do
		fresh();
	while (killed_at((int)++rounds) && (lost += !lists_one(), true));
	ok(rounds > 10, "%s: killed at each of %u points", how, rounds - 1);
	is_u(lost, 0, "it never leaves a run without a finding");
	ok(says("run/findings/1-0", "smallest"), "and if it is not killed, it is the smallest");
}

static void test_names(void)
{
	struct err err = ERR_INIT;

	fresh();
	is_u(finding_dir_free("run", 1, 0), 2, "the next of task 0");
	is_u(finding_dir_free("run", 1, 1), 1, "another task has none");
	ok(!keep("2-0", "x", &err) && !keep("2-0", "y", &err), "more: %s", err.msg);
	ok(!below_remove("run", "findings/2-0", &err), "one is removed: %s", err.msg);
	is_u(finding_dir_free("run", 1, 0), 3, "what was found has its name still");
}

int main(void)
{
	if (!mkdtemp(home) || chdir(home))
		return 1;
	test_replace("in one step");
	test_deaths("in one step");
	io_cannot_exchange = true;
	test_replace("by hand");
	test_deaths("by hand");
	io_cannot_exchange = false;
	test_names();
	if (system("rm -rf run") || chdir("/") || rmdir(home))
		return 1;
	return done_testing();
}
