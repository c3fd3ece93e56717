/* SPDX-License-Identifier: MIT */
/*
 * sandbox-run.c - a command of the user's: how it ended is told, so much of its output is kept, and
 * nothing that it started is left.
 *
 * Each process of a tree that has to end holds a FIFO open for writing, and has written a letter to
 * it: once that was read, the end of the FIFO says that all of them are gone.
 */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "sandbox/no_shell.h"
#include "sandbox/sandbox.h"

enum { ENDS_MS = 900000 }; /* a limit for what hangs */

static char dir[] = "/tmp/outage-sandbox-XXXXXX";
static bool no_namespace;

static void run(struct sandbox_opts o, struct check_result *r)
{
	struct err err = ERR_INIT;

	o.dir = o.dir ? o.dir : dir;
	o.timeout_ms = o.timeout_ms ? o.timeout_ms : ENDS_MS;
	o.no_namespace = no_namespace;
	ok(!sandbox_run(&o, r, &err), "%s: %.40s%s", no_namespace ? "no namespace" : "namespace",
	   o.command, err.msg);
}

static int fifo_open(void)
{
	auto_free char *path = xasprintf("%s/fifo", dir);

	(void)unlink(path);
	if (mkfifo(path, 0600))
		printf("# %s: %m\n", path);
	return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

/* How many letters there are; -1: a process may still write. */
static int letters(int fd)
{
	char buf[16];
	ssize_t n;
	int all = 0;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		all += (int)n;
	return n ? -1 : all;
}

#define TREE                                                                                       \
	"exec 9>fifo; printf 1 >&9; setsid sh -c 'printf 2 >&9; sleep 1000' & "                    \
	"(sh -c 'trap \"\" TERM HUP INT; printf 3 >&9; sleep 1000; :' &); "

static void time_is_up(void)
{
	struct check_result r = { 0 };
	int got = 0;

	/* Time in which all of them have begun: a busy machine needs more. */
	for (uint64_t ms = 1000; ms < ENDS_MS && got >= 0 && got < 3; ms *= 4) {
		auto_fd fifo = fifo_open();

		run((struct sandbox_opts){ .command = TREE "sleep 1000", .timeout_ms = ms }, &r);
		got = letters(fifo);
	}
	is_i(got, 3, "when its time is up, all that it started ends");
	ok(r.end == CHECK_HUNG && !r.left_processes, "that it hung is told");
	check_result_release(&r);
}

static void leaves_processes(void)
{
	auto_fd fifo = fifo_open();
	struct check_result r = { 0 };

	run((struct sandbox_opts){ .command = "exec 9>fifo; for i in 1 2; do (printf $i >&9; : "
					      ">up$i; exec sleep 1000) & done; "
					      "until [ -e up1 ] && [ -e up2 ]; do sleep 0.01; "
					      "done; rm up1 up2; exit 7" },
	    &r);
	ok(r.end == CHECK_FAILED && r.exit_code == 7, "its own status counts");
	ok(r.left_processes, "processes that it left are told");
	is_i(letters(fifo), 2, "and ended");
	check_result_release(&r);
}

static void dies(void)
{
	struct check_result r = { 0 };

	run((struct sandbox_opts){ .command = "kill -SEGV $$" }, &r);
	ok(r.end == CHECK_KILLED && r.signal == SIGSEGV, "a signal ended it");
	run((struct sandbox_opts){ .command = "sh -c 'kill -KILL $$' 2>&1 | cat; echo so" }, &r);
	ok(r.end == CHECK_PASSED, "what ends a child of it is its own business");
	ok(strstr(strbuf_str(&r.output), "so\n"), "and it goes on");
	run((struct sandbox_opts){ .command = "true", .dir = "/nowhere/at/all" }, &r);
	ok(r.end == CHECK_FAILED && r.exit_code == 126, "no directory to run in");
	is_s(strbuf_str(&r.output), "cannot change to /nowhere/at/all: No such file or directory\n",
	     "is said");
	run((struct sandbox_opts){ .command = "exec head -c 5000 /dev/zero >large",
				   .file_max = 4096 },
	    &r);
	ok(r.end == CHECK_KILLED && r.signal == SIGXFSZ, "a file that is larger than it may be");
	check_result_release(&r);
}

static void output(void)
{
	struct check_result r = { 0 };

	run((struct sandbox_opts){ .command = "yes | head -c 300000", .output_limit = 1000 }, &r);
	ok(r.end == CHECK_PASSED, "who says much is not stopped");
	ok(r.output.len == 1000 && r.output_cut, "so much of it is kept, and that it was more");
	run((struct sandbox_opts){ .command = "yes | head -c 300000", .output_limit = 1 << 20 },
	    &r);
	ok(r.output.len == CHECK_OUTPUT_MAX && r.output_cut, "no limit is larger than the largest");
	run((struct sandbox_opts){ .command = "echo one; echo two >&2; echo three",
				   .errors_apart = true },
	    &r);
	is_s(strbuf_str(&r.output), "one\nthree\ntwo\n", "errors apart stand behind the rest");
	ok(r.errors == 4 && !r.output_cut, "with their length");
	check_result_release(&r);
}

static void what_it_finds(void)
{
	auto_strbuf variables = STRBUF_INIT;
	struct check_result r = { 0 };

	strbuf_add(&variables, "ONE=1\0TWO=two words", sizeof("ONE=1\0TWO=two words"));
	run((struct sandbox_opts){ .command = "echo \"$1 $ONE $TWO\"; cat; [ \"$PWD\" = \"$(pwd "
					      "-P)\" ]",
				   .argument = "arg",
				   .variables = &variables },
	    &r);
	ok(r.end == CHECK_PASSED, "it finds its directory, and nothing to read");
	is_s(strbuf_str(&r.output), "arg 1 two words\n", "its argument and its variables");
	check_result_release(&r);
}

/* The caller's caller is at the other end of a pipe, and gone. */
static void watched(void)
{
	auto_fd fifo = fifo_open();
	struct check_result r = { 0 };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return;
	close(ends[1]);
	run((struct sandbox_opts){ .command = TREE "sleep 1000",
				   .watched = true,
				   .watch = ends[0] },
	    &r);
	close(ends[0]);
	ok(letters(fifo) >= 0, "who has nobody to tell ends, with all it started");
	check_result_release(&r);
}

/* As timeout(1) and terminals do to all processes. */
static void keeper_told_to_end(void)
{
	struct sandbox_opts o = { .command = "kill -TERM $PPID; sleep 0.3; echo so",
				  .dir = dir,
				  .timeout_ms = ENDS_MS,
				  .no_namespace = no_namespace };
	struct check_result r = { 0 };
	struct err err = ERR_INIT;
	int rc = sandbox_run(&o, &r, &err);

	ok(rc == -ECHILD || (!rc && r.end == CHECK_PASSED),
	   "a signal to the keeper is no hang of the command");
	check_result_release(&r);
}

static void keeper_killed(void)
{
	struct sandbox_opts o = { .command = "kill -KILL $PPID; sleep 1000",
				  .dir = dir,
				  .timeout_ms = ENDS_MS,
				  .no_namespace = true };
	struct check_result r = { 0 };
	struct err err = ERR_INIT;

	is_i(sandbox_run(&o, &r, &err), -ECHILD, "a keeper that is killed is an error");
	is_s(err.msg, "the process that keeps a command was killed", "which says so");
	check_result_release(&r);
}

static void no_shell(void)
{
	static const char *const shells[] = {
		"",	    " ",      "true",	  "a b/c",	"X=/a b", "/a 'b'", "/a;b",
		"/a \"b\"", "/a $b",  "/a `b`",	  "/a|b",	"/a&",	  "/a>b",   "/a *",
		"/a ?",	    "/a [b]", "/a {b,c}", "/a ~",	"/a\n/b", "/a\tb",  "/a #b",
		"/a !b",    "(/a)",   "/a \\b",	  "/a\xc3\xa4", "\"/a\"",
	};
	size_t plain = 0;

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		auto_free char **words = no_shell_words(shells[i]);

		plain += words != NULL;
	}
	is_u(plain, 0, "what is left to a shell");
	auto_free char **words = no_shell_words("  ./a/b   -x=1 c:d,e@f%g+h_i  j ");
	ok(words && streq(words[0], "./a/b") && streq(words[1], "-x=1") &&
		   streq(words[2], "c:d,e@f%g+h_i") && streq(words[3], "j") && !words[4],
	   "a path and some words");
	auto_free char **one = no_shell_words("/a");
	ok(one && streq(one[0], "/a") && !one[1], "a path alone");
}

int main(void)
{
	const char *const remove[] = { "rm", "-rf", dir, NULL };
	struct proc_result res = { 0 };

	if (!mkdtemp(dir))
		return 1;
	no_shell();
	for (int i = 0; i < 2; i++) {
		no_namespace = i;
		time_is_up();
		leaves_processes();
		dies();
		output();
		what_it_finds();
		watched();
		keeper_told_to_end();
	}
	keeper_killed();
	(void)!proc_run(&(struct proc_opts){ .argv = remove }, &res, NULL);
	proc_result_release(&res);
	return done_testing();
}
