/* SPDX-License-Identifier: MIT */
/*
 * stack-grab.c - the call stack of a process that waits in the kernel: functions and lines are as
 * they were written here.
 */
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/proc.h"
#include "stack/grab.h"
#include "stack/table.h"

/* Lines of the calls below. */
static int line_of_read, line_of_inner, line_of_outer;

/* A call that is no jump: something is done after it. */
#define AFTER() __asm__ volatile("" ::: "memory")

static __attribute__((noinline)) void inner(int fd)
{
	char c;

	line_of_read = __LINE__ + 1;
	(void)!read(fd, &c, 1);
	AFTER();
}

/* So much on the stack that its frame is far from the next. */
static __attribute__((noinline)) void outer(int fd)
{
	char room[5000];

	__asm__ volatile("" : : "r"(room) : "memory");
	line_of_inner = __LINE__ + 1;
	inner(fd);
	__asm__ volatile("" : : "r"(room) : "memory");
}

static __attribute__((noinline)) void outermost(int fd, void (*call)(int))
{
	line_of_outer = __LINE__ + 1;
	call(fd);
	AFTER();
}

static pid_t start(int ends[2])
{
	if (pipe(ends))
		exit(1);
	/* The lines are needed on both sides. */
	int null = open("/dev/null", O_RDONLY);
	outermost(null, outer);
	close(null);
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[1]);
		outermost(ends[0], outer);
		_exit(0);
	}
	return pid;
}

static bool has(const struct stack_table *t, const struct stack_list *s, const char *function,
		int line)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct stack_frame *f = &t->frames.v[s->frames[i]];

		if (f->function && streq(f->function, function) && f->line == (uint32_t)line &&
		    f->file && strstr(f->file, "stack-grab.c"))
			return true;
	}
	printf("# no %s at line %d\n", function, line);
	return false;
}

static void print_stack(const struct stack_table *t, const struct stack_list *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		auto_strbuf words = STRBUF_INIT;

		stack_frame_words(t, &t->frames.v[s->frames[i]], &words);
		printf("# %s\n", strbuf_str(&words));
	}
}

static void look(const struct stack_table *t)
{
	const struct stack_list *s = stack_table_find(t, 5), *again = stack_table_find(t, 6);

	ok(s, "there is a stack");
	if (!s)
		return;
	print_stack(t, s);
	ok(s == again, "the same stack is kept once");
	ok(has(t, s, "inner", line_of_read), "the innermost function, and its line");
	ok(has(t, s, "outer", line_of_inner), "who called it");
	ok(has(t, s, "outermost", line_of_outer), "and who called that");
	const struct stack_frame *f = stack_place(t, s);
	ok(f && f->function && streq(f->function, "inner"), "the place is that outside of libc");
	ok(!stack_table_find(t, 7), "of a process that is not there, there is none");
	ok(t->missing.n == 2, "which is counted, and what came late is, too");
}

int main(void)
{
#ifdef __x86_64__
	char path[] = "/tmp/stack-grab-XXXXXX";
	struct stacks *s = stacks_new("/nosuch/mount", "/nosuch/root");
	struct stack_table t = { 0 };
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;
	int ends[2], fd = mkstemp(path);
	pid_t pid = start(ends);

	if (fd < 0)
		return 1;
	close(fd);
	/* While it runs it is asked again, but not for ever. */
	struct proc_stat p;
	for (int i = 0; i < 60000 && proc_stat(pid, &p) && p.state != 'S'; i++)
		usleep(5000);
	stacks_grab(s, (uint32_t)pid, 5);
	stacks_grab(s, (uint32_t)pid, 6);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	stacks_grab(s, (uint32_t)pid, 7);
	stacks_none(s);
	ok(!stacks_save(s, path, &err) && !io_slurp(path, 1 << 20, &text, &err), "it is written");
	ok(!stack_table_parse(strbuf_str(&text), text.len, &t, &err), "and read: %s", err.msg);
	look(&t);
	stack_table_release(&t);
	stacks_free(s);
	unlink(path);
#else
	skip("this is not x86-64");
#endif
	return done_testing();
}
