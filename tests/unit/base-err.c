/* SPDX-License-Identifier: MIT */
/* base-err.c - errors for a person: first writer wins, context, bounds. */
#include "base/err.h"

#include <errno.h>

#include "tap.h"

static void test_set(void)
{
	struct err err = ERR_INIT;

	errno = EPERM;
	is_i(err_set(&err, -ENOENT, "cannot open %s: %m", "x"), -ENOENT, "returns the code");
	is_s(err.msg, "cannot open x: No such file or directory", "%%m is the code, not errno");
	is_i(err.code, -ENOENT, "keeps the code");
	is_i(err_set(&err, -EIO, "later"), -EIO, "a second failure returns its own code");
	is_s(err.msg, "cannot open x: No such file or directory", "but the first writer wins");
	is_i(err.code, -ENOENT, "with its code");
	is_i(err_set(NULL, -EIO, "nobody listens"), -EIO, "nobody needs to listen");
	err_clear(&err);
	ok(err.code == 0 && err.msg[0] == '\0', "cleared");
	is_i(err_set(&err, -EIO, "again"), -EIO, "and used again");
	is_s(err.msg, "again", "with the new message");
}

static void test_context(void)
{
	struct err err = ERR_INIT;

	is_i(err_context(&err, "nothing"), 0, "no failure, no context");
	is_s(err.msg, "", "and no message");
	is_i(err_context(NULL, "nobody"), 0, "nobody needs to listen");
	err_set(&err, -EIO, "read failed");
	is_i(err_context(&err, "line %d", 7), -EIO, "context returns the recorded code");
	err_context(&err, "%s", "file.txt");
	is_s(err.msg, "file.txt: line 7: read failed", "the outermost comes first");
}

static void test_bounds(void)
{
	struct err err = ERR_INIT;
	char big[2000];

	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	err_set(&err, -EIO, "%s", big);
	is_u(strlen(err.msg), sizeof(err.msg) - 1, "a long message is cut");
	err_context(&err, "where");
	is_u(strlen(err.msg), sizeof(err.msg) - 1, "also with context");
	ok(strncmp(err.msg, "where: aaa", 10) == 0, "which is not what is cut");
	err_context(&err, "%s", big);
	ok(strlen(err.msg) < sizeof(err.msg) && strstr(err.msg, ": where: a"),
	   "a long context leaves room");
}

int main(void)
{
	test_set();
	test_context();
	test_bounds();
	return done_testing();
}
