/* SPDX-License-Identifier: MIT */
/* base-io-fault.c - whole reads and writes, files that appear complete, fault points, the log. */
#include "base/fault.h"
#include "base/io.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static char home[] = "/tmp/outage-io.XXXXXX";

static size_t count_files(void)
{
	DIR *d = opendir(".");
	size_t n = 0;

	for (struct dirent *e = readdir(d); e; e = readdir(d))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void test_full(void)
{
	int fds[2];
	char buf[16];
	static char big[300000], back[300000];
	int status;

	if (pipe(fds) < 0)
		abort();
	is_i(io_write_full(fds[1], "abc", 3), 0, "writes");
	close(fds[1]);
	is_i(io_read_full(fds[0], buf, sizeof(buf)), 3, "reads to the end");
	is_i(io_read_full(fds[0], buf, sizeof(buf)), 0, "then nothing");
	close(fds[0]);
	is_i(io_read_full(-1, buf, 1), -EBADF, "a failed read");
	is_i(io_write_full(-1, buf, 1), -EBADF, "a failed write");

	/* Larger than a pipe: takes several calls on both sides. */
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 31);
	if (pipe(fds) < 0)
		abort();
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		close(fds[0]);
		_exit(io_write_full(fds[1], big, sizeof(big)) ? 1 : 0);
	}
	close(fds[1]);
	is_i(io_read_full(fds[0], back, sizeof(back)), sizeof(back), "reads in pieces");
	ok(memcmp(big, back, sizeof(big)) == 0, "what was written in pieces");
	close(fds[0]);
	waitpid(pid, &status, 0);
	is_i(status, 0, "the writer is content");
}

static void test_positioned(void)
{
	auto_fd fd = open("positioned", O_RDWR | O_CREAT | O_EXCL, 0600);
	char buf[8] = "";

	is_i(io_pwrite_full(fd, "hello", 5, 3), 0, "writes at a place");
	is_i(io_pread_full(fd, buf, 4, 4), 4, "reads at a place");
	ok(memcmp(buf, "ello", 4) == 0, "what is there");
	is_i(io_pread_full(fd, buf, 8, 3), 5, "reads up to the end");
	is_i(io_pread_full(fd, buf, 8, 100), 0, "and nothing past it");
	is_i(io_pread_full(-1, buf, 8, 0), -EBADF, "a failed read");
	is_i(io_pwrite_full(-1, buf, 8, 0), -EBADF, "a failed write");
	unlink("positioned");
}

static int write_output(const char *path, const char *text, struct err *err)
{
	struct io_output out;
	int rc = io_output_open(path, &out, err);

	if (rc)
		return rc;
	rc = io_write_full(out.fd, text, strlen(text));
	if (rc)
		io_output_release(&out);
	else
		rc = io_output_commit(&out, err);
	return rc;
}

static void test_output(void)
{
	auto_strbuf sb = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct io_output out;
	struct stat st;

	umask(027);
	is_i(write_output("file", "first", &err), 0, "writes a file");
	ok(stat("file", &st) == 0 && (st.st_mode & 07777) == 0640, "with the usual mode");
	is_i(io_output_open("file", &out, &err), 0, "opens it again");
	is_i(io_write_full(out.fd, "second", 6), 0, "writes");
	is_i(io_slurp("file", 100, &sb, &err), 0, "reads");
	is_s(sb.buf, "first", "the old content until the end");
	io_output_release(&out);
	is_u(count_files(), 1, "released without commit, nothing is left");
	is_i(write_output("file", "third", &err), 0, "writes it again");
	strbuf_clear(&sb);
	is_i(io_slurp("file", 5, &sb, &err), 0, "reads a file as long as the limit");
	is_s(sb.buf, "third", "the new content");
	is_i(io_slurp("file", 4, &sb, &err), -EFBIG, "a longer one is refused");
	is_s(err.msg, "file is larger than 4 bytes, the limit here", "in words");
	err_clear(&err);
	is_i(io_slurp(".", 4, &sb, &err), -EISDIR, "a directory");
	is_s(err.msg, ". is a directory, not a file", "in words");
	err_clear(&err);
	is_i(io_slurp("nothing", 4, &sb, &err), -ENOENT, "no file");
	is_s(err.msg, "cannot open nothing: No such file or directory", "in words");
	err_clear(&err);
	is_i(io_output_open("no/where", &out, &err), -ENOENT, "no directory");
	is_s(err.msg, "cannot create no/where: No such file or directory", "in words");
	unlink("file");
}

static void test_slurp_large(void)
{
	static char big[200001];
	auto_strbuf sb = STRBUF_INIT, empty = STRBUF_INIT;
	struct err err = ERR_INIT;

	memset(big, 'x', sizeof(big) - 1);
	is_i(write_output("big", big, &err), 0, "writes a large file");
	strbuf_adds(&sb, ">");
	is_i(io_slurp("big", 1 << 20, &sb, &err), 0, "reads it");
	ok(sb.len == 200001 && sb.buf[0] == '>' && streq(sb.buf + 1, big), "behind what was there");
	is_i(io_slurp("/dev/null", 0, &empty, &err), 0, "an empty file");
	is_s(strbuf_str(&empty), "", "is an empty string");
	unlink("big");
}

/* Files that may come from anywhere. */
static void test_slurp_file(void)
{
	auto_strbuf sb = STRBUF_INIT;
	struct err err = ERR_INIT;

	is_i(write_output("file", "text", &err), 0, "writes a file");
	is_i(io_slurp_file(".", "file", 4, &sb, &err), 0, "reads it");
	is_s(strbuf_str(&sb), "text", "as it is");
	is_i(io_slurp_file(".", "file", 3, &sb, &err), -EFBIG, "there is a limit");
	err_clear(&err);
	is_i(io_slurp_file(".", "none", 3, &sb, &err), -ENOENT, "it must be there");
	err_clear(&err);
	ok(mkfifo("pipe", 0600) == 0, "a pipe");
	alarm(600);
	is_i(io_slurp_file(".", "pipe", 3, &sb, &err), -EINVAL, "is not waited for");
	is_s(err.msg, "./pipe is not a regular file", "in words");
	err_clear(&err);
	is_i(io_slurp_file("/dev", "zero", 3, &sb, &err), -EINVAL, "nor is a device read");
	alarm(0);
	unlink("pipe");
	unlink("file");
}

/* Every fault leaves either the old file or the new one, and nothing else. */
static void test_output_faults(void)
{
	struct fault_loop loop = { .error = ENOSPC };
	int rounds = 0, failed = 0, wrong = 0;
	struct err err = ERR_INIT;

	if (write_output("file", "old", &err))
		abort();
	while (fault_loop_next(&loop)) {
		char buf[8] = "";
		int rc = write_output("file", "new", &err);

		rounds++;
		failed += rc < 0;
		auto_fd fd = open("file", O_RDONLY);
		wrong += read(fd, buf, sizeof(buf)) != 3 || !streq(buf, rc ? "old" : "new") ||
			 (rc && rc != -ENOSPC) || count_files() != 1;
		err_clear(&err);
	}
	is_i(failed, rounds - 1, "every round but the last fails");
	ok(rounds >= 3, "writing and renaming failed once each");
	is_i(wrong, 0, "the file is there whole, old or new");
	unlink("file");
}

static void test_fault_points(void)
{
	const char *name = "unset";

	is_i(fault_point("idle"), 0, "nothing is armed");
	ok(!fault_disarm(&name) && !name, "and nothing was hit");
	fault_arm(2, EIO);
	is_i(fault_point("one"), 0, "the first passes");
	is_i(fault_point("two"), -EIO, "the second fails");
	is_i(fault_point("three"), 0, "then all pass");
	ok(fault_disarm(&name) && streq(name, "two"), "its name is known");
	ok(!fault_disarm(NULL), "once");
	fault_arm(5, EIO);
	is_i(fault_point("one"), 0, "not reached");
	ok(!fault_disarm(NULL), "was not hit");
	is_i(fault_countdown, 0, "and is disarmed");

	struct fault_loop loop = { .error = EINTR };
	int rounds = 0, hits = 0;
	while (fault_loop_next(&loop)) {
		for (int i = 0; i < 3; i++)
			hits += fault_point("loop") == -EINTR;
		rounds++;
	}
	ok(rounds == 4 && hits == 3, "a loop hits each point once and ends with a clean run");
	ok(!fault_loop_next(&loop) && !fault_countdown, "and stays ended");
	is_i(fault_point("after"), 0, "disarmed");
}

/* Runs `body` with standard error in a pipe. */
static void test_log(void)
{
	int fds[2], saved = dup(STDERR_FILENO);
	char buf[4096] = "", big[3000];

	if (pipe(fds) < 0 || dup2(fds[1], STDERR_FILENO) < 0)
		abort();
	close(fds[1]);
	ok(log_get_level() == LOG_WARN, "warnings are shown by default");
	log_info("hidden");
	errno = ENOENT;
	log_warn("about %s: %m", "x");
	is_i(errno, ENOENT, "errno is left alone");
	log_set_level(LOG_DEBUG);
	log_debug("detail");
	memset(big, 'b', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	log_error("%s", big);
	log_set_level(LOG_QUIET);
	log_error("hidden too");
	dup2(saved, STDERR_FILENO);
	close(saved);
	ssize_t n = io_read_full(fds[0], buf, sizeof(buf) - 1);
	close(fds[0]);
	static const char start[] = "outage: warning: about x: No such file or directory\n"
				    "outage: debug: detail\noutage: bbbb";
	ok(strncmp(buf, start, strlen(start)) == 0, "lines in order");
	ok(n > 1000 && n < 1200 && buf[n - 1] == '\n' && !strstr(buf, "hidden"),
	   "a long line is cut, and still a line");
}

/* What is not a regular file is written to, never replaced. */
static void test_output_in_place(void)
{
	char dir[] = "/tmp/outage-io-XXXXXX";
	struct io_output out;
	struct err err = ERR_INIT;
	struct stat st;

	if (!ok(mkdtemp(dir) != NULL, "a directory"))
		return;
	auto_free char *fifo = xasprintf("%s/fifo", dir), *file = xasprintf("%s/file", dir);
	auto_free char *link_ = xasprintf("%s/link", dir);
	mkfifo(fifo, 0600);
	int reader = open(fifo, O_RDONLY | O_NONBLOCK);
	ok(!io_output_open(fifo, &out, &err) && !io_write_full(out.fd, "x", 1) &&
		   !io_output_commit(&out, &err),
	   "a fifo is written to");
	ok(lstat(fifo, &st) == 0 && S_ISFIFO(st.st_mode), "and is still a fifo");
	close(reader);

	int fd = open(file, O_CREAT | O_WRONLY, 0640);
	close(fd);
	ok(symlink("file", link_) == 0, "a link");
	ok(!io_output_open(link_, &out, &err) && !io_write_full(out.fd, "new", 3) &&
		   !io_output_commit(&out, &err),
	   "a file is replaced through a link");
	ok(lstat(link_, &st) == 0 && S_ISLNK(st.st_mode), "the link is still one");
	ok(stat(file, &st) == 0 && st.st_size == 3 && (st.st_mode & 07777) == 0640,
	   "the file has the new content, and its old mode");
	ok(io_output_open(dir, &out, &err) == -EISDIR, "a directory is refused");
	unlink(fifo);
	unlink(file);
	unlink(link_);
	rmdir(dir);
}

int main(void)
{
	if (!mkdtemp(home) || chdir(home) < 0)
		return 2;
	test_full();
	test_positioned();
	test_output();
	test_slurp_large();
	test_slurp_file();
	test_output_faults();
	test_fault_points();
	test_log();
	if (chdir("/") < 0 || rmdir(home) < 0)
		ok(false, "nothing is left in %s", home);
	test_output_in_place();
	return done_testing();
}
