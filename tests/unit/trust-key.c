/* SPDX-License-Identifier: MIT */
/* The key is made once, by whoever comes first, and is this user's alone; any other is refused. */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/io.h"
#include "trust/key.h"

static char dir[] = "/tmp/outage-key-XXXXXX";

static char *path_of(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static mode_t mode_of(const char *name)
{
	auto_free char *path = path_of(name);
	struct stat st;

	return lstat(path, &st) < 0 ? 0 : st.st_mode;
}

static void remove_all(void)
{
	auto_free char *command = xasprintf("rm -rf %s/*  %s/.local", dir, dir);

	ok(system(command) == 0, "what was there is removed");
}

static void use_state(void)
{
	auto_free char *state = path_of("state");

	setenv("XDG_STATE_HOME", state, 1);
	setenv("HOME", dir, 1);
}

static void test_made(void)
{
	unsigned char key[KEY_SIZE], again[KEY_SIZE];
	struct err err = ERR_INIT;

	use_state();
	ok(key_load(key, &err) == -ENOENT, "at first there is no key: %s", err.msg);
	ok(!mode_of("state"), "looking for it makes nothing");
	err_clear(&err);
	is_i(key_make(key, &err), 0, "it is made");
	is_u(mode_of("state/outage/key"), S_IFREG | 0600, "for this user alone");
	is_u(mode_of("state/outage"), S_IFDIR | 0700, "in a directory of his own");
	ok(!key_make(again, &err) && memcmp(key, again, KEY_SIZE) == 0, "and not made again");
	ok(!key_load(again, &err) && memcmp(key, again, KEY_SIZE) == 0, "it is read");
	remove_all();
	unsetenv("XDG_STATE_HOME");
	is_i(key_make(key, &err), 0, "without XDG_STATE_HOME");
	is_u(mode_of(".local/state/outage/key"), S_IFREG | 0600, "it is below .local/state");
	ok(memcmp(key, again, KEY_SIZE) != 0, "another one is different");
	remove_all();
}

static void test_no_place(void)
{
	unsigned char key[KEY_SIZE];
	struct err err = ERR_INIT;

	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	ok(key_make(key, &err) == -ENOENT && strstr(err.msg, "HOME"), "no home: %s", err.msg);
	err_clear(&err);
	setenv("HOME", "here", 1);
	ok(key_make(key, &err) == -ENOENT, "a home that is no path from the root: %s", err.msg);
	err_clear(&err);
	setenv("HOME", "/proc/1/fdinfo", 1);
	ok(key_make(key, &err) < 0, "one where nothing can be made: %s", err.msg);
	err_clear(&err);
	auto_free char *file = path_of("file");
	ok(!io_write_file(dir, "file", "", 0, 0, &err), "a file");
	setenv("XDG_STATE_HOME", file, 1);
	ok(key_make(key, &err) < 0, "in place of a directory: %s", err.msg);
	remove_all();
}

/* Each time `spoil` is done to a key that is fine; then it must be refused, with such words. */
static void refused(const char *what, const char *spoil, const char *words)
{
	auto_free char *command = xasprintf("cd %s/state/outage && %s", dir, spoil);
	unsigned char key[KEY_SIZE];
	struct err err = ERR_INIT;

	use_state();
	ok(!key_make(key, &err), "a key");
	ok(system(command) == 0, "%s", what);
	ok(key_load(key, &err) < 0 && strstr(err.msg, words), "is refused: %s", err.msg);
	err_clear(&err);
	ok(key_make(key, &err) < 0 && strstr(err.msg, words), "and no other made");
	remove_all();
}

static void test_refused(void)
{
	refused("a key that others can read", "chmod 0644 key", "has mode 0644");
	refused("one that a group can write", "chmod 0620 key", "has mode 0620");
	refused("one that is too short", "chmod 0600 key && truncate -s 31 key", "is no key");
	refused("one that is too long", "truncate -s 33 key", "is no key");
	refused("a pipe", "rm key && mkfifo -m 0600 key", "is no key");
	refused("a link", "mv key real && ln -s real key", "cannot open");
	refused("a directory", "rm key && mkdir key", "is no key");
	refused("a directory that others can write", "chmod 0777 .", "no other user may write");
	if (geteuid() != 0) {
		skip("giving a file away needs root");
		return;
	}
	refused("one of another user", "chown 12345 key", "another user");
	refused("a directory of another user", "chown 12345 .", "must belong to this user");
	refused("the place of another user", "chown 12345 ..", "another user");
}

/* Many workers come at once. */
static void test_race(void)
{
	enum { N = 16 };
	unsigned char first[KEY_SIZE], key[KEY_SIZE];
	struct err err = ERR_INIT;
	int go[2], out[2];
	bool same = true;

	use_state();
	ok(!pipe(go) && !pipe(out), "pipes");
	for (unsigned i = 0; i < N; i++)
		if (fork() == 0) {
			char c;

			close(go[1]);
			if (read(go[0], &c, 1) != 0 || key_make(key, &err) ||
			    write(out[1], key, KEY_SIZE) != KEY_SIZE)
				_exit(1);
			_exit(0);
		}
	close(go[1]); /* all of them begin now */
	close(out[1]);
	for (unsigned i = 0; i < N; i++) {
		int status;

		same &= wait(&status) > 0 && status == 0;
		same &= io_read_full(out[0], key, KEY_SIZE) == KEY_SIZE;
		if (!i)
			memcpy(first, key, KEY_SIZE);
		same &= memcmp(first, key, KEY_SIZE) == 0;
	}
	ok(same, "%d processes that make it at once have the same", N);
	close(out[0]);
	close(go[0]);
	auto_free char *count = xasprintf("[ $(ls %s/state/outage | wc -l) = 1 ]", dir);
	ok(system(count) == 0, "and nothing else is left");
	remove_all();
}

static void test_faults(void)
{
	struct fault_loop loop = { .error = ENOSPC };
	unsigned char key[KEY_SIZE];
	unsigned failed = 0;

	use_state();
	while (fault_loop_next(&loop)) {
		auto_free char *clear = xasprintf("rm -rf %s/state", dir);
		auto_free char *only = xasprintf("! ls %s/state/outage/key.* 2>/dev/null", dir);
		struct err err = ERR_INIT;
		int rc = key_make(key, &err);

		failed += rc != 0;
		if ((rc && !*err.msg) || system(only) != 0 || system(clear) != 0)
			ok(false, "round %d: %d %s", loop.round, rc, err.msg);
	}
	ok(failed > 4, "%u ways to fail leave a sentence, and no half of a key", failed);
}

int main(void)
{
	umask(0);
	if (!mkdtemp(dir))
		return 1;
	test_made();
	test_no_place();
	test_refused();
	test_race();
	test_faults();
	rmdir(dir);
	return done_testing();
}
