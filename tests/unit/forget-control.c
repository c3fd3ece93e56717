/* SPDX-License-Identifier: MIT */
/* forget-control.c - commands by socket and FIFO, without a mount: what is done is only counted. */
#include "forget/forget_control.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "forget/forget_client.h"
#include "tap.h"

enum { WAIT_MS = 300000, BIG = 8 << 20 };

/* ---- a mount that only counts ---- */

struct fake {
	pthread_mutex_t lock;
	unsigned clears, checkpoints, faults, logs;
	struct strbuf log;
	unsigned slow_ms; /* a checkpoint takes so long */
	bool big;	  /* the answer to status is BIG */
};

static struct fake fake = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int do_command(void *ctx, const struct inject_command *c, struct strbuf *text,
		      struct strbuf *json, struct err *err)
{
	struct fake *f = ctx;

	pthread_mutex_lock(&f->lock);
	f->clears += c->kind == COMMAND_CLEAR;
	f->checkpoints += c->kind == COMMAND_CHECKPOINT;
	f->faults += c->kind == COMMAND_FAULT;
	bool big = f->big && c->kind == COMMAND_STATUS;
	unsigned slow_ms = c->kind == COMMAND_CHECKPOINT ? f->slow_ms : 0;
	pthread_mutex_unlock(&f->lock);
	if (slow_ms)
		util_sleep_ms(slow_ms);
	if (c->kind == COMMAND_USAGE)
		return err_set(err, -EIO, "this fails");
	for (size_t i = 0; big && i < BIG; i += 16)
		strbuf_adds(text ? text : json, "0123456789abcde\n");
	if (text && !big)
		strbuf_adds(text, "done");
	if (json && !big)
		strbuf_adds(json, "{\"done\":true}");
	return 0;
}

static void log_line(void *ctx, const char *line)
{
	struct fake *f = ctx;

	pthread_mutex_lock(&f->lock);
	strbuf_addf(&f->log, "%s\n", line);
	pthread_mutex_unlock(&f->lock);
}

static bool logged(const char *what)
{
	pthread_mutex_lock(&fake.lock);
	bool there = strstr(strbuf_str(&fake.log), what) != NULL;
	pthread_mutex_unlock(&fake.lock);
	return there;
}

static unsigned counted(const unsigned *n)
{
	pthread_mutex_lock(&fake.lock);
	unsigned value = *n;
	pthread_mutex_unlock(&fake.lock);
	return value;
}

static bool becomes(const unsigned *n, unsigned want)
{
	for (unsigned ms = 0; counted(n) != want && ms < WAIT_MS; ms += 5)
		util_sleep_ms(5);
	return counted(n) == want;
}

static bool becomes_logged(const char *what)
{
	for (unsigned ms = 0; !logged(what) && ms < WAIT_MS; ms += 5)
		util_sleep_ms(5);
	return logged(what);
}

/* ---- where ---- */

static char dir[] = "/tmp/outage-control-XXXXXX";
static char fifo[64], completed[64], extra[64];
static struct forget_place place;
static struct forget_control_opts opts = {
	.root = "/nowhere/root",
	.mnt = "/nowhere/mnt",
	.place = &place,
	.command = do_command,
	.command_ctx = &fake,
	.log = log_line,
	.log_ctx = &fake,
};
static struct forget_control *control;

static void begin(void)
{
	struct err err = ERR_INIT;

	fake.clears = fake.checkpoints = fake.faults = 0;
	fake.big = false;
	fake.slow_ms = 0;
	strbuf_clear(&fake.log);
	control = NULL;
	if (!ok(forget_control_start(&opts, &control, &err) == 0, "it starts"))
		printf("# %s\n", err.msg);
}

static bool fails_with(const char *word)
{
	struct forget_control *c = NULL;
	struct err err = ERR_INIT;
	bool failed = forget_control_start(&opts, &c, &err) != 0 && strstr(err.msg, word);

	if (!failed)
		printf("# %s\n", err.msg);
	forget_control_stop(c);
	return failed;
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? 0 : st.st_mode;
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static void put(const char *path, const char *text, size_t len)
{
	auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || io_write_full(fd, text, len))
		printf("# cannot write to %s: %m\n", path);
}

static void puts_to(const char *path, const char *text)
{
	put(path, text, strlen(text));
}

/* ---- the FIFO ---- */

static bool finished(int fd, const char *want)
{
	char line[128];
	size_t n = 0;

	for (unsigned ms = 0; ms < WAIT_MS; ms += 5) {
		ssize_t k = read(fd, line + n, sizeof(line) - 1 - n);

		n += (size_t)max(k, (ssize_t)0);
		line[n] = '\0';
		if (strchr(line, '\n'))
			return streq(line, want);
		util_sleep_ms(5);
	}
	return false;
}

static void test_fifo(void)
{
	opts.fifo = fifo;
	opts.fifo_completed = completed;
	begin();
	is_u(mode_of(fifo), S_IFIFO | 0600, "the FIFO is for its user alone");
	is_u(mode_of(completed), S_IFIFO | 0600, "and so is the second");
	auto_fd reader = open(completed, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	puts_to(fifo, "lazyfs::clear-cache\n");
	ok(finished(reader, "finished::clear-cache\n"), "a command is done, and told");
	is_u(counted(&fake.clears), 1, "once");
	ok(logged("clear cache request submitted...") && becomes_logged("cache is cleared"),
	   "the log has LazyFS's words");
	puts_to(fifo, "lazyfs::clear-cache");
	ok(becomes(&fake.clears, 2), "a line that ends with its writer is done");
	puts_to(fifo, "lazyfs::clear-cache\nlazyfs::cache-checkpoint\nlazyfs::clear-cache\n");
	ok(becomes(&fake.clears, 4) && becomes(&fake.checkpoints, 1), "three in one write");
	puts_to(fifo, "\n\r\n");
	puts_to(fifo, "lazyfs::clear-cache\r\n");
	ok(becomes(&fake.clears, 5), "empty lines are nothing, and a carriage return is no part");
	forget_control_stop(control);
	ok(!exists(fifo) && !exists(completed), "both are removed at the end");
}

static void test_fifo_long(void)
{
	auto_strbuf line = STRBUF_INIT;
	auto_fd writer = -1;

	opts.fifo_completed = NULL;
	begin();
	strbuf_adds(&line, "lazyfs::torn-seq::op=write::file=a::persist=1");
	for (int i = 2; i < 40000; i++)
		strbuf_addf(&line, ",%d", i);
	strbuf_addch(&line, '\n');
	put(fifo, line.buf, line.len);
	ok(becomes(&fake.faults, 1), "a line of %zu bytes is one command", line.len);
	ok(becomes_logged("received: VALID torn-seq fault"), "and a fault that is valid");

	writer = open(fifo, O_WRONLY | O_CLOEXEC);
	(void)!write(writer, "lazyfs::clear", 13);
	util_sleep_ms(50);
	is_u(counted(&fake.clears), 0, "half a line is not done");
	(void)!write(writer, "-cache\n", 7);
	ok(becomes(&fake.clears, 1), "the whole is");
	forget_control_stop(control);
}

static void test_fifo_wrong(void)
{
	static const char *const wrong[] = { "lazyfs::clear-cach\n", "clear-cache\n",
					     "lazyfs::crash::timing=never::op=write::from_rgx=a\n",
					     "lazyfs::torn-op::file=a::parts=2::persist=3\n" };
	char left[64];

	opts.fifo_completed = completed;
	begin();
	auto_fd reader = open(completed, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		puts_to(fifo, wrong[i]);
	put(fifo, "lazyfs::clear-cache\0x\n", 22);
	puts_to(fifo, "lazyfs::display-cache-usage\n"); /* fails */
	ok(becomes_logged("not done: this fails"), "what fails is logged");
	is_u(counted(&fake.clears) + counted(&fake.faults), 0, "what is wrong is not done");
	ok(read(reader, left, sizeof(left)) <= 0, "and never told as finished");
	puts_to(fifo, "lazyfs::clear-cache\n");
	ok(finished(reader, "finished::clear-cache\n"), "what comes next is");
	forget_control_stop(control);
}

static void test_fifo_moves(void)
{
	char other[80];

	opts.fifo_completed = NULL;
	mkfifo(fifo, 0622);
	chmod(fifo, 0622);
	begin();
	is_u(mode_of(fifo), S_IFIFO | 0622, "one that is there is used as it is");
	puts_to(fifo, "lazyfs::clear-cache\n");
	ok(becomes(&fake.clears, 1), "and read");
	unlink(fifo);
	ok(becomes_logged("was removed"), "that it is removed is seen");
	ok(!exists(fifo), "and it is not made again");
	mkfifo(fifo, 0600);
	ok(becomes_logged("there is a new"), "a new one is used");
	puts_to(fifo, "lazyfs::clear-cache\n");
	ok(becomes(&fake.clears, 2), "and read");
	snprintf(other, sizeof(other), "%s.new", fifo);
	mkfifo(other, 0600);
	strbuf_clear(&fake.log);
	(void)!rename(other, fifo);
	ok(becomes_logged("there is a new"), "one that replaces it, too");
	puts_to(fifo, "lazyfs::clear-cache\n");
	ok(becomes(&fake.clears, 3), "is read");
	forget_control_stop(control);
	ok(exists(fifo), "what others made stays");
	unlink(fifo);
}

static void test_fifo_refused(void)
{
	util_close(open(fifo, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));

	ok(fails_with("no FIFO"), "a file in its place is refused");
	unlink(fifo);
	opts.fifo = "/nowhere/at/all";
	ok(fails_with("cannot make the FIFO"), "so is a directory that is not there");
	opts.fifo = fifo;
	if (geteuid() == 0) {
		mkfifo(fifo, 0600);
		(void)!chown(fifo, 12345, 12345);
		ok(fails_with("belongs to user 12345"), "so is another user's FIFO");
		unlink(fifo);
	}
	(void)!mkdir(completed, 0700);
	opts.fifo_completed = completed;
	ok(fails_with("no FIFO") && !exists(fifo), "if the second fails, the first is removed");
	rmdir(completed);
	opts.fifo = opts.fifo_completed = NULL;
}

/* ---- the socket ---- */

/* The answer to a command of up to two words, "ok: done"; one connection each. */
static const char *ask(const char *path, bool json, const char *word)
{
	static char text[256];
	struct forget_client c = { .fd = -1 };
	auto_strbuf answer = STRBUF_INIT;
	auto_free char *w = xstrdup(word);
	struct err err = ERR_INIT;
	bool done = false;
	int rc = forget_client_open(&place, path, &c, &err);

	if (!rc)
		rc = forget_client_call(&c, &w, 1, json, WAIT_MS / 1000, &answer, &done, &err);
	forget_client_close(&c);
	if (rc)
		snprintf(text, sizeof(text), "failed: %.200s", err.msg);
	else
		snprintf(text, sizeof(text), "%s: %.200s", done ? "ok" : "error",
			 strbuf_str(&answer));
	return text;
}

static char *usual_path(void)
{
	char name[FORGET_SOCKET_NAME];
	char *path = NULL, *whole;
	struct err err = ERR_INIT;
	int fd = forget_place_dir_make(&path, &err);

	forget_place_name(&place, name);
	whole = xasprintf("%s/%s", path ? path : "", name);
	util_close(fd);
	free(path);
	return whole;
}

static void test_socket(void)
{
	auto_free char *usual = usual_path();

	opts.socket = extra;
	begin();
	is_u(mode_of(extra), S_IFSOCK | 0600, "the socket is for its user alone");
	is_u(mode_of(usual), S_IFSOCK | 0600, "and so is the usual one");
	is_s(ask(NULL, false, "clear-cache"), "ok: done\n", "a command is answered");
	is_s(ask(extra, false, "clear-cache"), "ok: done\n", "on the other one, too");
	is_u(counted(&fake.clears), 2, "and done");
	is_s(ask(NULL, true, "clear-cache"), "ok: {\"done\":true}\n", "as JSON");
	ok(strncmp(ask(NULL, false, "clear-cach"), "error: ", 7) == 0, "a wrong one is no success");
	ok(strncmp(ask(NULL, true, "clear-cach"), "error: {\"error\":", 16) == 0, "nor as JSON");
	is_s(ask(NULL, false, "usage"), "error: this fails\n", "nor is one that fails");
	is_u(counted(&fake.clears), 3, "and what is wrong is not done");
	forget_control_stop(control);
	ok(!exists(extra) && !exists(usual), "both sockets are removed at the end");
}

static int connect_raw(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		printf("# cannot connect: %m\n");
	return fd;
}

/* All that comes until the other end closes. */
static void read_all(int fd, struct strbuf *out)
{
	ssize_t n;

	while ((n = read(fd, strbuf_grow(out, 4096), 4096)) > 0)
		out->len += (size_t)n;
	strbuf_addch(out, '\0');
}

static void test_lines(void)
{
	auto_strbuf got = STRBUF_INIT, line = STRBUF_INIT;
	auto_fd fd = -1, cut = -1;

	begin();
	fd = connect_raw(extra);
	(void)!write(fd, "clear-cache\n\nclear-", 19);
	util_sleep_ms(20);
	(void)!write(fd, "cache\nnonsense\n", 15);
	shutdown(fd, SHUT_WR);
	read_all(fd, &got);
	ok(strncmp(strbuf_str(&got), "ok 5\ndone\nok 5\ndone\nerror ", 26) == 0,
	   "several on one connection, each with its answer");
	cut = connect_raw(extra);
	(void)!write(cut, "clear-cache", 11);
	shutdown(cut, SHUT_WR);
	strbuf_clear(&got);
	read_all(cut, &got);
	ok(strncmp(strbuf_str(&got), "error ", 6) == 0, "a line without an end is not done");
	is_u(counted(&fake.clears), 2, "really not");

	for (int i = 0; i < 300000; i++)
		strbuf_adds(&line, "lots of words ");
	ok(strncmp(ask(NULL, false, line.buf), "error: ", 7) == 0, "%zu bytes get an answer",
	   line.len);
	strbuf_clear(&line);
	strbuf_adds(&line, "a line\nand 'quotes' \"of\" all\\kinds");
	ok(strncmp(ask(NULL, false, line.buf), "error: ", 7) == 0, "and so does any text");
	forget_control_stop(control);
}

static void test_bad_clients(void)
{
	auto_fd silent = -1, greedy = -1, half = -1;

	begin();
	silent = connect_raw(extra);
	half = connect_raw(extra);
	(void)!write(half, "clear", 5);
	greedy = connect_raw(extra);
	pthread_mutex_lock(&fake.lock);
	fake.big = true;
	pthread_mutex_unlock(&fake.lock);
	(void)!write(greedy, "status\n", 7); /* and does not read */
	for (int i = 0; i < 20; i++) {
		int gone = connect_raw(extra);

		(void)!write(gone, "status\n", 7);
		util_close(gone); /* before the answer */
	}
	is_s(ask(NULL, false, "clear-cache"), "ok: done\n", "others are answered");
	forget_control_stop(control);
	ok(true, "and it can be stopped");
	is_u(counted(&fake.clears), 1, "half a command is not done at the end");
}

static void *ask_slow(void *arg)
{
	struct forget_client c = { .fd = -1 };
	auto_strbuf answer = STRBUF_INIT;
	char word[] = "sync", *words[] = { word };
	struct err err = ERR_INIT;
	bool *done = arg;

	if (forget_client_open(&place, NULL, &c, &err) ||
	    forget_client_call(&c, words, 1, false, WAIT_MS / 1000, &answer, done, &err))
		*done = false;
	forget_client_close(&c);
	return NULL;
}

static void test_slow_command(void)
{
	bool done = false;
	pthread_t t;

	begin();
	fake.slow_ms = 1000;
	pthread_create(&t, NULL, ask_slow, &done);
	ok(becomes(&fake.checkpoints, 1), "a slow command begins");
	is_s(ask(NULL, false, "clear-cache"), "ok: done\n", "another one is done meanwhile");
	forget_control_stop(control);
	pthread_join(t, NULL);
	ok(done, "whoever is being answered at the end gets the answer");
}

/* The kernel gave the number of our device to another mount before we ended. */
static void test_later_mount(void)
{
	struct forget_control_opts o = opts;
	struct forget_control *later = NULL, *first = control;
	struct err err = ERR_INIT;
	unsigned clears = counted(&fake.clears);

	o.socket = o.fifo = o.fifo_completed = NULL;
	ok(forget_control_start(&o, &later, &err) == 0, "a later mount takes over the usual name");
	forget_control_stop(first);
	control = NULL;
	is_s(ask(NULL, false, "clear-cache"), "ok: done\n", "and keeps it when the first one ends");
	is_u(counted(&fake.clears), clears + 1, "which does nothing any more");
	control = later;
}

static void test_socket_moves(void)
{
	auto_free char *usual = usual_path();

	begin();
	unlink(usual);
	ok(becomes_logged("is made again"), "a socket that is removed is made again");
	is_s(ask(NULL, false, "clear-cache"), "ok: done\n", "and answers");
	ok(fails_with("listens on"), "a second server is refused");
	is_s(ask(NULL, false, "clear-cache"), "ok: done\n", "and the first answers still");
	test_later_mount();
	forget_control_stop(control);

	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", extra);
	(void)!bind(fd, (struct sockaddr *)&sa, sizeof(sa));
	util_close(fd);
	begin();
	is_s(ask(extra, false, "clear-cache"), "ok: done\n",
	     "one that a dead server left is replaced");
	forget_control_stop(control);
	fd = open(extra, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	util_close(fd);
	ok(fails_with("no socket") && exists(extra), "a file in its place is refused, and stays");
	unlink(extra);
}

/* Whoever may connect is asked who it is, nevertheless (S1). */
static void test_other_user(void)
{
	auto_strbuf got = STRBUF_INIT;
	int status = 0;

	if (geteuid() != 0) {
		skip("another user can be tried by root only");
		return;
	}
	begin();
	chmod(dir, 0755);
	chmod(extra, 0666);
	pid_t child = fork();
	if (child == 0) {
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(9);
		signal(SIGPIPE, SIG_IGN); /* it may be refused before it has asked */
		int fd = connect_raw(extra);
		(void)!write(fd, "clear-cache\n", 12);
		read_all(fd, &got);
		_exit(strncmp(strbuf_str(&got), "error ", 6) == 0 ? 0 : 1);
	}
	waitpid(child, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "another user is told no");
	is_u(counted(&fake.clears), 0, "and nothing is done");
	ok(logged("was refused"), "and it is logged");
	place.owner = 65534;
	ok(strstr(ask(extra, false, "clear-cache"), "belongs to user 0"),
	   "a server of another user than the mount's is not trusted");
	place.owner = geteuid();
	forget_control_stop(control);
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	alarm(900); /* a server that does not stop, or does not answer, fails */
	snprintf(fifo, sizeof(fifo), "%s/faults.fifo", dir);
	snprintf(completed, sizeof(completed), "%s/completed.fifo", dir);
	snprintf(extra, sizeof(extra), "%s/socket", dir);
	/* A device that no mount has. */
	place = (struct forget_place){
		.mnt = dir, .major = 4095, .minor = (unsigned)getpid(), .owner = geteuid()
	};
	test_fifo();
	test_fifo_long();
	test_fifo_wrong();
	test_fifo_moves();
	test_fifo_refused();
	test_socket();
	test_lines();
	test_bad_clients();
	test_slow_command();
	test_socket_moves();
	test_other_user();
	strbuf_release(&fake.log);
	rmdir(dir);
	return done_testing();
}
