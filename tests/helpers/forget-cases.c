/* SPDX-License-Identifier: MIT */
/*
 * forget-cases.c - short stories that once ended badly, each told again with its mount. What the
 * model found by chance is here for certain.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "forget-world.h"

/* The n-th call of this makes paths that live until the n+4-th. */
static const char *at(struct worker *k, const char *name)
{
	static char paths[4][PATH];
	static unsigned n;
	char *path = paths[n++ % ARRAY_SIZE(paths)];

	snprintf(path, PATH, "%s/%s", k->w->mnt, name);
	return path;
}

static void must(struct worker *k, const char *what, long rc)
{
	if (rc < 0)
		differs(k, "%s: %s", what, strerror(errno));
}

static void tell(struct worker *k, const char *words)
{
	char answer[256];

	note(k, "ctl %s", words);
	if (!command(k->w, answer, sizeof(answer), "%s", words))
		differs(k, "it was refused: %s", answer);
}

static void put(struct worker *k, const char *name, const char *text)
{
	auto_fd fd = open(at(k, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	must(k, name, fd);
	must(k, name, write(fd, text, strlen(text)));
}

static void expect(struct worker *k, const char *path, const char *text)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[256];
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	must(k, path, fd);
	must(k, path, n);
	buf[n] = '\0';
	if (!streq(buf, text))
		differs(k, "%s holds '%s', and should hold '%s'", path, buf, text);
}

static void sync_at(struct worker *k, const char *name)
{
	auto_fd fd = open(at(k, name), O_RDONLY | O_CLOEXEC);

	must(k, name, fd);
	must(k, "fsync", fsync(fd));
}

/* With `guarded`, its guardian has time to clear up; else we are as fast as it. */
static void restart(struct worker *k, bool guarded)
{
	server_kill(k->w);
	if (guarded)
		util_sleep_ms(300);
	server_end(k->w, k, -1);
	server_start(k->w, k);
}

/* ---- stories ---- */

/* An attribute is taken back although the name that was found for the file is, too. */
static void links_and_attributes(struct worker *k)
{
	static const char *const names[] = { "0", "a", "m", "z" };
	struct stat st;

	put(k, "file", "x");
	tell(k, "checkpoint");
	must(k, "chmod", chmod(at(k, "file"), 0600));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		must(k, "link", link(at(k, "file"), at(k, names[i])));
	restart(k, true);
	must(k, "stat", stat(at(k, "file"), &st));
	if ((st.st_mode & 07777) != 0644 || st.st_nlink != 1)
		differs(k, "file has the mode %o and %u links", st.st_mode & 07777,
			(unsigned)st.st_nlink);
}

/* Two names that wait for their removal are two names of one file in a snapshot. */
static void links_in_snapshots(struct worker *k)
{
	struct stat st;

	put(k, "a", "x");
	must(k, "link", link(at(k, "a"), at(k, "b")));
	tell(k, "checkpoint");
	must(k, "unlink", unlink(at(k, "a")));
	must(k, "unlink", unlink(at(k, "b")));
	tell(k, "snapshot links");
	tell(k, "rollback links");
	must(k, "stat", stat(at(k, "b"), &st));
	if (st.st_nlink != 2)
		differs(k, "b has %u links", (unsigned)st.st_nlink);
	expect(k, at(k, "a"), "x");
	k->w->has_kept = true;
	model_init(&k->w->kept, k->w->model.profile);
}

/*
 * In a snapshot, too, an attribute is taken back whichever of the names is. Which name is met first
 * is the file system's choice: with so many files it will be the new one for some.
 */
static void attributes_in_snapshots(struct worker *k)
{
	char file[] = "file-0", link_name[] = "link-0", value[8];
	enum { FILES = 10 };

	for (int i = 0; i < FILES; i++) {
		file[5] = (char)('0' + i);
		put(k, file, "x");
	}
	tell(k, "checkpoint");
	for (int i = 0; i < FILES; i++) {
		file[5] = link_name[5] = (char)('0' + i);
		must(k, "setxattr", setxattr(at(k, file), "user.a", "new", 3, 0));
		must(k, "link", link(at(k, file), at(k, link_name)));
	}
	tell(k, "snapshot attributes");
	tell(k, "rollback attributes");
	for (int i = 0; i < FILES; i++) {
		file[5] = (char)('0' + i);
		if (getxattr(at(k, file), "user.a", value, sizeof(value)) >= 0)
			differs(k, "the attribute of %s is in the snapshot", file);
	}
	k->w->has_kept = true;
	model_init(&k->w->kept, k->w->model.profile);
}

/* A file whose removal is durable is still there for who has it open, and a checkpoint is for all.
 */
static void checkpoint_of_removed(struct worker *k)
{
	auto_fd fd = open(at(k, "file"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct stat st;

	if (fd < 0)
		differs(k, "file cannot be made: %s", strerror(errno));
	must(k, "unlink", unlink(at(k, "file")));
	tell(k, "checkpoint");
	must(k, "ftruncate", ftruncate(fd, 4000));
	tell(k, "checkpoint");
	tell(k, "clear-cache");
	must(k, "fstat", fstat(fd, &st));
	if (st.st_size != 4000)
		differs(k, "it has %lld bytes", (long long)st.st_size);
}

/* What a failed sync left is not written again, but the size is, whoever names the file how. */
static void size_after_failed_sync(struct worker *k)
{
	static const char *const names[] = { "file=grown", "file_glob=grown*" };
	char words[64], answer[256];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		put(k, "grown", "");
		tell(k, "checkpoint");
		tell(k, "error op=fsync error=EIO file=grown");
		auto_fd fd = open(at(k, "grown"), O_WRONLY | O_CLOEXEC);
		if (fd < 0 || pwrite(fd, "x", 1, 9999) != 1 || !fdatasync(fd))
			differs(k, "a sync of what was written did not fail");
		snprintf(words, sizeof(words), "sync %s", names[i]);
		if (command(k->w, answer, sizeof(answer), "%s", words) ||
		    !strstr(answer, "a sync of grown failed"))
			differs(k, "%s: %s", words, answer);
		tell(k, "clear-cache");
		must(k, "stat", stat(at(k, "grown"), &st));
		if (st.st_size != 10000)
			differs(k, "%s: it has %lld bytes", words, (long long)st.st_size);
		must(k, "unlink", unlink(at(k, "grown")));
	}
}

/* The data of a file that was replaced by truncation comes with the next commit. */
static void closed_before_commit(struct worker *k)
{
	put(k, "a", "old");
	tell(k, "checkpoint");
	for (int i = 0; i < 30; i++) {
		char text[16];

		snprintf(text, sizeof(text), "new %d", i);
		put(k, "a", text);
		put(k, "other", "x");
		sync_at(k, "other");
		tell(k, "clear-cache");
		expect(k, at(k, "a"), text);
	}
}

/* A truncation that metadata brings leaves the time that was set after it. */
static void times_that_were_set(struct worker *k)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1000 } };
	struct stat st;

	put(k, "a", "123456");
	tell(k, "checkpoint");
	must(k, "truncate", truncate(at(k, "a"), 3));
	must(k, "utimensat", utimensat(AT_FDCWD, at(k, "a"), times, 0));
	put(k, "other", "x");
	sync_at(k, "other");
	tell(k, "clear-cache");
	must(k, "stat", stat(at(k, "a"), &st));
	if (st.st_size != 3 || st.st_mtime != 1000)
		differs(k, "a has %lld bytes, and was changed at %lld", (long long)st.st_size,
			(long long)st.st_mtime);
}

/* Data that survives without metadata does not bring a time that was set and is lost. */
static void times_that_were_lost(struct worker *k)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1000 } };
	struct stat st;

	put(k, "a", "123456");
	must(k, "utimensat", utimensat(AT_FDCWD, at(k, "a"), times, 0));
	tell(k, "checkpoint");
	put(k, "a", "654321");
	times[1].tv_sec = 2000;
	must(k, "utimensat", utimensat(AT_FDCWD, at(k, "a"), times, 0));
	tell(k, "clear-cache survive=data");
	expect(k, at(k, "a"), "654321");
	must(k, "stat", stat(at(k, "a"), &st));
	if (st.st_mtime == 2000)
		differs(k, "a was changed at a time that is lost");
}

static void a_is_one_two(struct worker *k, void *ctx)
{
	(void)ctx;
	expect(k, at(k, "a"), "one two");
}

/* The kernel thinks that the file is longer than it is. */
static void append_after_loss(struct worker *k)
{
	auto_fd fd = open(at(k, "a"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	must(k, "open", fd);
	must(k, "write", write(fd, "one ", 4));
	tell(k, "checkpoint");
	must(k, "write", write(fd, "lost ", 5));
	tell(k, "clear-cache");
	must(k, "write", write(fd, "two", 3));
	util_sleep_ms(100);
	comes_right(k, a_is_one_two, NULL); /* the kernel is told after the answer */
}

/* A directory comes back, and something that was in it is open. */
static void directory_comes_back(struct worker *k)
{
	must(k, "mkdir", mkdir(at(k, "d"), 0755));
	put(k, "d/f", "x");
	tell(k, "checkpoint");
	auto_fd fd = open(at(k, "d/f"), O_RDONLY | O_CLOEXEC);
	must(k, "open", fd);
	must(k, "unlink", unlink(at(k, "d/f")));
	must(k, "rmdir", rmdir(at(k, "d")));
	tell(k, "clear-cache");
	expect(k, at(k, "d/f"), "x");
	put(k, "d/g", "y");
	DIR *d = opendir(at(k, "d"));
	int n = 0;
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	if (n != 4)
		differs(k, "d has %d entries", n);
}

/* The first name of a file is lost, its second is not; then it is written to. */
static void second_name_stays(struct worker *k)
{
	must(k, "mkdir", mkdir(at(k, "d1"), 0755));
	must(k, "mkdir", mkdir(at(k, "d2"), 0755));
	tell(k, "checkpoint");
	put(k, "d1/a", "x");
	must(k, "link", link(at(k, "d1/a"), at(k, "d2/b")));
	sync_at(k, "d2");
	tell(k, "clear-cache");
	if (!access(at(k, "d1/a"), F_OK))
		differs(k, "d1/a is there, although its directory was not synced");
	auto_fd fd = open(at(k, "d2/b"), O_WRONLY | O_CLOEXEC);
	must(k, "open", fd);
	must(k, "write", write(fd, "written later", 13));
	close(steal_fd(&fd));
	must(k, "remount", mount(NULL, k->w->mnt, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, NULL));
	util_sleep_ms(50); /* the kernel forgets in its own time */
	expect(k, at(k, "d2/b"), "written later");
}

/* The directories of a file's two names go with it, the one above the other. */
static void one_name_above(struct worker *k)
{
	must(k, "mkdir", mkdir(at(k, "d"), 0755));
	must(k, "mkdir", mkdir(at(k, "d/e"), 0755));
	put(k, "d/e/f", "x");
	must(k, "link", link(at(k, "d/e/f"), at(k, "d/f")));
	tell(k, "checkpoint");
	must(k, "chmod", chmod(at(k, "d/f"), 0600));
	must(k, "remount", mount(NULL, k->w->mnt, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, NULL));
	util_sleep_ms(50);
	put(k, "other", "x");
	sync_at(k, "other"); /* only the change of the mode has kept them */
	expect(k, at(k, "d/e/f"), "x");
}

/* Who mounts again at once stays mounted. */
static void mounted_again(struct worker *k)
{
	struct statvfs st;

	for (int i = 0; i < 5; i++) {
		restart(k, false);
		put(k, "a", "x");
		util_sleep_ms(100);
		expect(k, at(k, "a"), "x");
		must(k, "statvfs", statvfs(k->w->mnt, &st));
	}
}

const struct forget_case forget_cases[] = {
	{ "minimal", "links and attributes", links_and_attributes },
	{ "ext4-ordered", "links in snapshots", links_in_snapshots },
	{ "ext4-ordered", "attributes in snapshots", attributes_in_snapshots },
	{ "minimal", "a checkpoint of what was removed", checkpoint_of_removed },
	{ "minimal", "the size after a failed sync", size_after_failed_sync },
	{ "ext4-ordered", "closed before a commit", closed_before_commit },
	{ "ext4-ordered", "times that were set", times_that_were_set },
	{ "ext4-ordered", "times that were lost", times_that_were_lost },
	{ "lazyfs", "append after a loss", append_after_loss },
	{ "minimal", "a directory comes back", directory_comes_back },
	{ "minimal", "the second name stays", second_name_stays },
	{ "xfs", "one name above the other", one_name_above },
	{ "xfs", "mounted again", mounted_again },
	{ NULL, NULL, NULL },
};
