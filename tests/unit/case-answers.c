/* SPDX-License-Identifier: MIT */
/* Answers are found again by a later process; a file that is damaged loses no more than it must. */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "case/answers.h"

static char dir[] = "/tmp/outage-answers-XXXXXX", *file;

static struct hash128 question(int n)
{
	return hash_bytes(&n, sizeof(n));
}

static struct answers *again(void)
{
	struct answers *a = NULL;
	struct err err = ERR_INIT;

	if (answers_open(dir, &a, &err))
		printf("# %s\n", err.msg);
	return a;
}

static void add(struct answers *a, int n)
{
	auto_free char *text = xasprintf("answer %d", n);

	answers_add(a, question(n), text, strlen(text));
}

static bool has(struct answers *a, int n)
{
	auto_free char *text = xasprintf("answer %d", n);
	auto_strbuf found = STRBUF_INIT;

	return answers_find(a, question(n), &found) && streq(strbuf_str(&found), text);
}

/* Which of 0 to 9 are there: "0 2". */
static char *all(void)
{
	struct strbuf out = { 0 };
	struct answers *a = again();

	for (int i = 0; i < 10; i++)
		if (has(a, i))
			strbuf_addf(&out, "%s%d", out.len ? " " : "", i);
	answers_close(a);
	return out.len ? strbuf_detach(&out) : xstrdup("");
}

static void is_all(const char *want, const char *what)
{
	auto_free char *there = all();

	is_s(there, want, "%s", what);
}

static void append(const void *data, size_t len)
{
	auto_fd fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);

	ok(write(fd, data, len) == (ssize_t)len, "the file is damaged");
}

static void test_found(void)
{
	struct answers *a = again();
	auto_strbuf none = STRBUF_INIT;

	add(a, 3);
	add(a, 1);
	ok(!answers_find(a, question(3), &none), "what this process adds is for a later one");
	answers_close(a);
	a = again();
	ok(has(a, 3) && !has(a, 2) && has(a, 1), "which finds it");
	answers_close(a);
	ok(!answers_find(NULL, question(1), &none), "without a file nothing is known");
	answers_add(NULL, question(1), "", 0);
	answers_close(NULL);
}

/* A1 */
static void test_processes(void)
{
	struct answers *a = again();
	int status = 0;

	for (int i = 4; i < 8; i++)
		if (fork() == 0) {
			add(a, i);
			_exit(0);
		}
	while (wait(&status) > 0)
		;
	answers_close(a);
	is_all("1 3 4 5 6 7", "processes add to it at the same time");
}

/* A2 */
static void test_damaged(void)
{
	struct stat st;
	struct answers *old;

	unlink(file);
	old = again();
	for (int i = 1; i < 8; i++)
		if (i != 2)
			add(old, i);
	answers_close(old);

	append("no record at all, but longer than the head of one would be", 58);
	is_all("1 3 4 5 6 7", "what is no record ends it");
	struct answers *a = again();
	add(a, 8);
	answers_close(a);
	is_all("1 3 4 5 6 7 8", "and is gone: the next one comes in its place");
	ok(!stat(file, &st) && !truncate(file, st.st_size - 1), "the last record is cut");
	is_all("1 3 4 5 6 7", "and is not taken for one");
	a = again();
	struct answers_head huge = { .len = UINT64_MAX };
	append(&huge, sizeof(huge));
	answers_close(a);
	is_all("1 3 4 5 6 7", "nor is one of a size that cannot be");
	struct err err = ERR_INIT;
	ok(!io_write_file(dir, CASE_ANSWERS, "outage-answers 0.0.0\nxyz", 24, 0, &err),
	   "another version's");
	is_all("", "is begun anew");
	unlink(file);
	ok(!symlink("/dev/zero", file), "a link");
	struct answers *none = NULL;
	ok(answers_open(dir, &none, &err) < 0 && !none, "is not followed: %s", err.msg);
}

/* A4 */
static void test_shared(void)
{
	static const char *const precious[] = { "not answers at all\n", NULL };
	auto_free char *other = xasprintf("%s/other", dir);
	struct stat was, is;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(precious); i++) {
		unlink(file);
		unlink(other);
		if (precious[i]) {
			ok(!io_write_file(dir, CASE_ANSWERS, precious[i], strlen(precious[i]), 0,
					  &err),
			   "a file that is something else");
		} else {
			struct answers *a = again();

			add(a, 1);
			answers_close(a);
		}
		ok(!link(file, other) && !stat(other, &was), "has another name");
		struct answers *a = again();
		ok(has(a, 1) == !precious[i], "what it knows is known");
		add(a, 2);
		answers_close(a);
		ok(!stat(other, &is) && is.st_size == was.st_size && is.st_nlink == 1 &&
			   is.st_mtime == was.st_mtime,
		   "which has the same as before");
		is_all(precious[i] ? "2" : "1 2", "what is added is in a file of its own");
	}
	unlink(other);
	if (geteuid())
		return;
	ok(!chown(file, 65534, 65534) && !stat(file, &was), "a file of another user's");
	answers_close(again());
	ok(!stat(file, &is) && is.st_uid == 0 && is.st_ino != was.st_ino, "is replaced");
	is_all("1 2", "and nothing is lost");
}

/* A3; and what another user's key sealed. */
static void test_others(void)
{
	struct answers *a, *none = NULL;
	struct err err = ERR_INIT;
	unsigned char key[KEY_SIZE];
	auto_free char *path = xasprintf("%s/outage/key", dir);
	int status = 0;

	unlink(file);
	a = again();
	add(a, 1);
	if (fork() == 0)
		_exit(answers_open(dir, &none, &err) != -EBUSY || none);
	ok(wait(&status) > 0 && !status, "another process cannot have it at the same time");
	answers_close(a);
	is_all("1", "but afterwards");
	ok(!unlink(path) && !key_make(key, &err), "a run that came from another user");
	is_all("", "has answers that are not believed");
	a = again();
	add(a, 2);
	answers_close(a);
	is_all("2", "and gets its own");
	ok(!unlink(path), "without a key");
	a = again();
	add(a, 3);
	ok(a && !has(a, 2), "nothing is known");
	answers_close(a);
	ok(!key_make(key, &err), "nor kept: %s", err.msg);
}

int main(void)
{
	unsigned char key[KEY_SIZE];
	struct err err = ERR_INIT;

	if (!mkdtemp(dir))
		return 1;
	setenv("XDG_STATE_HOME", dir, 1);
	if (key_make(key, &err)) {
		printf("Bail out! %s\n", err.msg);
		return 1;
	}
	file = xasprintf("%s/" CASE_ANSWERS, dir);
	test_found();
	test_processes();
	test_others();
	test_damaged();
	test_shared();
	unlink(file);
	auto_free char *state = xasprintf("rm -rf %s", dir);
	ok(!system(state), "nothing is left");
	free(file);
	return done_testing();
}
