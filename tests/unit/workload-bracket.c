/* SPDX-License-Identifier: MIT */
/*
 * workload-bracket.c - between begin and end of an operation stand its own system calls, and no
 * other (E5 in exec.h).
 *
 * A child performs operations, and says begin and end by a system call that nothing else makes. The
 * parent traces the child, and notes what it calls in between. All of it is done twice: the second
 * time the child's kernel has no openat2(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "tap.h"
#include "workload/exec.h"

/* A line, and its system calls; NULL: any. "open" is the call that the kernel has for that. */
static const struct {
	const char *line, *calls;
} lines[] = {
	{ "creat f", "open" },
	{ "write f 0 8192", "write" },
	{ "creat f", "open" },
	{ "write f 0 8192", "write" },
	{ "write f 0 4096 dsync", "write" },
	{ "write new 0 4096", "open lseek write" },
	{ "h = open f rdwr", "open" },
	{ "write h 0 4096", "write" },
	{ "write h 0 4096 sync", "pwritev2" },
	{ "pwrite h 4096 100", "pwrite64" },
	{ "close h", "close" },
	{ "close h", "" },
	{ "a = open f wronly,append", "open" },
	{ "write a 0 100", "write" },
	{ "close a", "close" },
	{ "append f 100", "write" },
	{ "append grown 100", "open lseek write" },
	{ "pwrite f 4096 100", "pwrite64" },
	{ "pwrite gone 4096 100", "" },
	{ "dwrite f 0 4096", NULL }, /* tmpfs may refuse it */
	{ "mmapwrite f 0 100", "madvise msync" },
	{ "mmapwrite f 0 100 nosync", "madvise" },
	{ "mmapwrite f 16384 100", "fallocate mmap madvise msync" },
	{ "msync f 0 4096", "msync" },
	{ "read f 0 100", "pread64" },
	{ "truncate f 4096", "ftruncate" },
	{ "falloc f plain 0 8192", "fallocate" },
	{ "copy_file_range f 0 new 0 100", "copy_file_range" },
	{ "copy_file_range f 0 copied 0 100", "open copy_file_range" },
	{ "reflink f new", "ioctl" },
	{ "mkdir D", "mkdirat" },
	{ "mkdir D/e", "mkdirat" },
	{ "mkdir gone/e", "" },
	{ "mknod D/n char", "mknodat" },
	{ "mkfifo D/p", "mknodat" },
	{ "link f D/l", "linkat" },
	{ "symlink f D/s", "symlinkat" },
	{ "rename D/l D/m", "renameat" },
	{ "rename D/m D/s exchange", "renameat2" },
	{ "setxattr f user.a 1", "fsetxattr" },
	{ "removexattr f user.a", "fremovexattr" },
	{ "chmod f 0600", "fchmod" },
	{ "chown f 0 0", "fchownat" },
	{ "utimens f 1 1", "utimensat" },
	{ "fsync f", "fsync" },
	{ "fsync D", "fsync" },
	{ "fdatasync f", "fdatasync" },
	{ "sync_file_range f 0 4096", "sync_file_range" },
	{ "sync", "syncfs" },
	{ "syncfs", "syncfs" },
	{ "unlink D/m", "unlinkat" },
	{ "remove D/s", "unlinkat" },
	{ "remove D/e", "unlinkat unlinkat" },
	{ "mkdir D/e", "mkdirat" },
	{ "rmdir D/e", "unlinkat" },
	/* The environment does these; each is an operation of many calls. */
	{ "remount", "" },
	{ "drop_caches", "" },
	{ "shell \"true\"", NULL },
};

static const struct {
	int number;
	const char *name;
} names[] = {
	{ SYS_openat2, "open" },
	{ SYS_openat, "openat" },
	{ SYS_write, "write" },
	{ SYS_pwrite64, "pwrite64" },
	{ SYS_pwritev2, "pwritev2" },
	{ SYS_lseek, "lseek" },
	{ SYS_close, "close" },
	{ SYS_madvise, "madvise" },
	{ SYS_msync, "msync" },
	{ SYS_mmap, "mmap" },
	{ SYS_munmap, "munmap" },
	{ SYS_fallocate, "fallocate" },
	{ SYS_pread64, "pread64" },
	{ SYS_ftruncate, "ftruncate" },
	{ SYS_ioctl, "ioctl" },
	{ SYS_copy_file_range, "copy_file_range" },
	{ SYS_mkdirat, "mkdirat" },
	{ SYS_mknodat, "mknodat" },
	{ SYS_linkat, "linkat" },
	{ SYS_symlinkat, "symlinkat" },
	{ SYS_renameat, "renameat" },
	{ SYS_renameat2, "renameat2" },
	{ SYS_fsetxattr, "fsetxattr" },
	{ SYS_fremovexattr, "fremovexattr" },
	{ SYS_fchmod, "fchmod" },
	{ SYS_fchownat, "fchownat" },
	{ SYS_utimensat, "utimensat" },
	{ SYS_fsync, "fsync" },
	{ SYS_fdatasync, "fdatasync" },
	{ SYS_syncfs, "syncfs" },
	{ SYS_sync_file_range, "sync_file_range" },
	{ SYS_unlinkat, "unlinkat" },
	{ SYS_umask, "umask" },
	{ SYS_fstat, "fstat" },
	{ SYS_newfstatat, "newfstatat" },
	{ SYS_brk, "brk" },
	{ SYS_fcntl, "fcntl" },
};

/* getpriority(2) of kinds that there are not. */
enum { SAYS_BEGIN = 0xbe917, SAYS_END = 0xe4d, MORE_MAX = 64 };

static char top[] = "/tmp/workload-bracket-XXXXXX";

/* ---- the child ---- */

static void say_begin(void *ctx, size_t op)
{
	(void)ctx;
	syscall(SYS_getpriority, SAYS_BEGIN, op);
}

static void say_end(void *ctx, size_t op)
{
	(void)ctx;
	syscall(SYS_getpriority, SAYS_END, op);
}

/* Takes openat2(2) away from this process. */
static void lose_openat2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(3);
}

static void perform(const char *root_path, bool old_kernel)
{
	struct exec_env env = { .begin = say_begin, .end = say_end };
	struct workload w;
	struct exec x;
	struct err err = ERR_INIT;
	int root = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	workload_init(&w);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (workload_add_line(&w, lines[i].line, &err))
			_exit(2);
	exec_init(&x, root, &w, &env);
	if (old_kernel)
		lose_openat2();
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		exec_op(&x, i);
	_exit(0);
}

/* ---- the parent ---- */

struct bracket {
	unsigned begun, ended;
	struct strbuf calls;
};

static void note_call(struct bracket *all, const struct __ptrace_syscall_info *info, long *open)
{
	uint64_t n = info->entry.nr, i = info->entry.args[1];
	bool mark = n == SYS_getpriority;

	if (mark && info->entry.args[0] == SAYS_BEGIN && i < ARRAY_SIZE(lines)) {
		all[i].begun++;
		*open = (long)i;
	} else if (mark && info->entry.args[0] == SAYS_END && i < ARRAY_SIZE(lines)) {
		all[i].ended += *open == (long)i;
		*open = -1;
	} else if (*open >= 0) {
		struct strbuf *calls = &all[*open].calls;
		const char *name = NULL;

		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			if ((uint64_t)names[k].number == n)
				name = names[k].name;
		strbuf_adds(calls, calls->len ? " " : "");
		if (name)
			strbuf_adds(calls, name);
		else
			strbuf_addf(calls, "%llu", (unsigned long long)n);
	}
}

static void trace(pid_t child, struct bracket *all)
{
	long open = -1;
	int status;

	waitpid(child, &status, 0);
	ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (int sig = 0;;) {
		struct __ptrace_syscall_info info;

		ptrace(PTRACE_SYSCALL, child, 0, sig);
		if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
			break;
		sig = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
		if (!sig && ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) > 0 &&
		    info.op == PTRACE_SYSCALL_INFO_ENTRY)
			note_call(all, &info, &open);
	}
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the operations are performed");
}

/* The kernel without openat2(2) opens with openat(2). */
static void compare(size_t i, const char *seen, bool old_kernel)
{
	auto_strbuf want = STRBUF_INIT;
	const char *calls = lines[i].calls;

	if (!strncmp(calls, "open", 4)) {
		strbuf_adds(&want, old_kernel ? "openat" : "open");
		calls += 4;
	}
	strbuf_adds(&want, calls);
	if (!ok(streq(seen, strbuf_str(&want)), "%s: '%s'", lines[i].line, strbuf_str(&want)))
		printf("#   called: '%s'\n", seen);
}

static void try_all(bool old_kernel)
{
	struct bracket all[ARRAY_SIZE(lines)] = { 0 };
	auto_free char *path = xasprintf("%s/%d", top, old_kernel);
	auto_free char *rm = xasprintf("rm -rf %s", path);

	printf("# %s\n", old_kernel ? "without openat2" : "with openat2");
	if (mkdir(path, 0700))
		abort();
	pid_t child = fork();
	if (!child)
		perform(path, old_kernel);
	trace(child, all);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		if (!ok(all[i].begun == 1 && all[i].ended == 1, "%s: one begin, one end",
			lines[i].line))
			printf("#   begun %u, ended %u\n", all[i].begun, all[i].ended);
		if (lines[i].calls)
			compare(i, strbuf_str(&all[i].calls), old_kernel);
		strbuf_release(&all[i].calls);
	}
	if (system(rm))
		abort();
}

static void every_operation_is_here(void)
{
	bool seen[OP_COUNT] = { false };
	struct err err = ERR_INIT;
	auto_workload w;

	workload_init(&w);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (workload_add_line(&w, lines[i].line, &err))
			printf("# %s: %s\n", lines[i].line, err.msg);
	for (size_t i = 0; i < w.ops.n; i++)
		seen[op_id(w.ops.v[i].def)] = true;
	for (size_t i = 0; i < OP_COUNT; i++)
		ok(seen[i], "%s is tried", op_table[i].name);
}

int main(void)
{
	every_operation_is_here();
	if (!mkdtemp(top))
		return 2;
	try_all(false);
	try_all(true);
	rmdir(top);
	return done_testing();
}
