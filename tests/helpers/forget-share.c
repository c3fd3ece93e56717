/* SPDX-License-Identifier: MIT */
/*
 * forget-share.c - what holds under races: a file that was synced with its directory is there after
 * a power cut, and one that is replaced by rename is never seen in part.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "forget-world.h"

enum { SHARED = 4, SHARED_MAX = 20000 };

/* A file says how long it is and what it holds: a length, a seed, and bytes that follow from it. */
static size_t make_content(uint64_t seed, unsigned char *buf)
{
	struct rng r;
	uint64_t head[2] = { 0, seed };

	rng_init(&r, seed);
	head[0] = sizeof(head) + rng_below(&r, SHARED_MAX - sizeof(head));
	memcpy(buf, head, sizeof(head));
	for (size_t i = sizeof(head); i < head[0]; i++)
		buf[i] = (unsigned char)(rng_next(&r) | 1);
	return head[0];
}

static bool is_whole(const unsigned char *buf, size_t len)
{
	static _Thread_local unsigned char want[SHARED_MAX];
	uint64_t head[2];

	if (len < sizeof(head))
		return false;
	memcpy(head, buf, sizeof(head));
	return head[0] == len && make_content(head[1], want) == len && !memcmp(buf, want, len);
}

/* False if the mount has ended. */
static bool ok(struct worker *k, const char *what, long rc)
{
	int saved = errno;

	if (k->w->over)
		return false;
	if (rc < 0)
		differs(k, "%s failed: %s", what, strerror(saved));
	return true;
}

static bool sync_path(struct worker *k, const char *path)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	return ok(k, "opening a directory", fd) && ok(k, "fsync of a directory", fsync(fd));
}

static bool write_synced(struct worker *k, const char *path, uint64_t seed)
{
	static _Thread_local unsigned char buf[SHARED_MAX];
	size_t len = make_content(seed, buf);
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ssize_t n;

	if (!ok(k, "creating", fd))
		return false;
	n = write(fd, buf, len);
	if (!ok(k, "writing", n))
		return false;
	if ((size_t)n != len)
		differs(k, "%zd of %zu bytes were written to %s", n, len, path);
	return ok(k, "fsync", fsync(fd));
}

bool keep_one(struct worker *k)
{
	char path[PATH], dir[PATH];
	uint64_t seed = rng_next(&k->rng);

	snprintf(dir, sizeof(dir), "%s/n%d", k->w->mnt, k->id);
	snprintf(path, sizeof(path), "%s/n%d/kept%llu", k->w->mnt, k->id,
		 (unsigned long long)k->kept);
	note(k, "write and sync kept%llu", (unsigned long long)k->kept);
	if (!write_synced(k, path, seed) || !sync_path(k, dir))
		return false;
	k->kept++;
	atomic_fetch_add(&k->w->done, 1);
	return true;
}

/* 0: it is not there */
static size_t read_whole(struct worker *k, const char *path)
{
	static _Thread_local unsigned char buf[SHARED_MAX + 1];
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (!ok(k, "opening", fd))
		return 0;
	n = read(fd, buf, sizeof(buf));
	if (!ok(k, "reading", n))
		return 0;
	if (!is_whole(buf, (size_t)n))
		differs(k, "%s is not whole: it has %zd bytes", path, n);
	return (size_t)n;
}

void check_kept(struct worker *k, const char *base)
{
	char path[PATH];

	for (uint64_t i = 0; i < k->kept; i++) {
		snprintf(path, sizeof(path), "%s/n%d/kept%llu", base, k->id, (unsigned long long)i);
		if (!read_whole(k, path))
			differs(k, "%s is lost, although it was synced with its directory", path);
	}
}

void check_shared(struct worker *k, const char *base)
{
	char path[PATH];

	for (int i = 0; i < SHARED; i++) {
		snprintf(path, sizeof(path), "%s/shared/f%d", base, i);
		if (!read_whole(k, path) && k->seen[i])
			differs(k, "%s is lost, although its directory was synced", path);
	}
}

void share_once(struct worker *k)
{
	uint32_t which = below(k, SHARED);
	char path[PATH], tmp[PATH], dir[PATH];
	bool look = chance(k, 2), sync = chance(k, 2);
	uint64_t seed = rng_next(&k->rng);

	snprintf(dir, sizeof(dir), "%s/shared", k->w->mnt);
	snprintf(path, sizeof(path), "%s/shared/f%u", k->w->mnt, which);
	snprintf(tmp, sizeof(tmp), "%s/shared/tmp%d", k->w->mnt, k->id);
	note(k, "%s shared/f%u", look ? "read" : "replace", which);
	atomic_fetch_add(&k->w->done, 1);
	if (look) {
		if (!read_whole(k, path) && k->seen[which] && !k->w->over)
			differs(k, "%s is gone", path);
		return;
	}
	if (write_synced(k, tmp, seed) && ok(k, "rename", rename(tmp, path)) && sync &&
	    sync_path(k, dir))
		k->seen[which] = 1;
}
