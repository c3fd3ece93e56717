/* SPDX-License-Identifier: MIT */
/* forget-faults.c - what goes wrong on purpose, in the mount and in the model. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forget-world.h"

static void must(struct worker *k, const char *what)
{
	char answer[512];

	note(k, "ctl %s", what);
	/* What a failed sync left is said, and nothing more can be done about it. */
	if (!command(k->w, answer, sizeof(answer), "%s", what) && !strstr(answer, "a sync of "))
		differs(k, "it was refused: %s", answer);
}

static unsigned arm(struct worker *k, const char *what)
{
	char answer[512];
	unsigned id = 0;

	note(k, "ctl %s", what);
	if (!command(k->w, answer, sizeof(answer), "%s", what) ||
	    sscanf(answer, "fault %u waits", &id) != 1)
		differs(k, "it was refused: %s", answer);
	atomic_fetch_add(&k->w->faults, 1);
	return id;
}

static void disarm(struct worker *k, unsigned id)
{
	char answer[512];

	if (!command(k->w, answer, sizeof(answer), "cancel %u", id))
		differs(k, "fault %u cannot be cancelled: %s", id, answer);
}

static void lost(struct worker *k, enum model_survive what)
{
	lock(k);
	model_lose(&k->w->model, what);
	unlock(k);
	for (int i = 0; i < WORKERS; i++)
		for (int o = 0; o < OPENS; o++)
			k->w->workers[i].open[o].stale = true;
	atomic_fetch_add(&k->w->losses, 1);
}

static const char *const survivals[] = { "", " survive=data", " survive=metadata" };

static enum model_survive any_survival(struct worker *k)
{
	return chance(k, 2) ? SURVIVE_NONE : below(k, ARRAY_SIZE(survivals));
}

/*
 * For one write of the application that is one of the mount: a page of which the kernel knows
 * nothing ends a request, unless it is written from its start.
 */
static void whole_range(struct worker *k, uint32_t *off, uint32_t *len)
{
	any_range(k, off, len);
	*off = *off / BLOCK * BLOCK;
}

/* A file with one name, so that the mount knows it by this path; opened by it. */
static bool file_of_one_name(struct worker *k, struct target *t)
{
	for (int i = 0; i < 8; i++) {
		if (!target_open(k, O_NOFOLLOW, t))
			continue;
		if (model_links(&k->w->model, t->o->ino) == 1)
			return true;
		target_close(k, t);
	}
	return false;
}

/* ---- what does not end the mount ---- */

static void strike_clear(struct worker *k)
{
	enum model_survive what = any_survival(k);
	char words[64];

	snprintf(words, sizeof(words), "clear-cache%s", survivals[what]);
	must(k, words);
	lost(k, what);
}

static void check_mount(struct worker *k, void *ctx)
{
	(void)ctx;
	check_all(k, k->w->mnt);
}

/* The kernel is told after the operation was answered; there is no way to ask if it was. */
static void strike_clear_at(struct worker *k)
{
	static unsigned char buf[3000];
	bool before = chance(k, 2);
	uint32_t off = below(k, BLOCKS - 1) * BLOCK, len = 1 + below(k, sizeof(buf));
	char words[PATH + 64];
	struct target t;

	if (!file_of_one_name(k, &t))
		return;
	snprintf(words, sizeof(words), "clear-cache op=write timing=%s file=%s",
		 before ? "before" : "after", in_mount(k, t.path));
	arm(k, words);
	note(k, "write %u bytes at %u of %s", len, off, in_mount(k, t.path));
	fill(k, buf, len);
	if (before)
		lost(k, SURVIVE_NONE);
	if (as_expected(k, 0, result(pwrite(t.o->fd, buf, len, off))))
		model_write(&k->w->model, t.o->ino, buf, off, len);
	if (!before)
		lost(k, SURVIVE_NONE);
	util_sleep_ms(400); /* something wrong may come late, too */
	check_target_soon(k, &t);
	comes_right(k, check_mount, NULL);
	target_close(k, &t);
}

static void strike_error(struct worker *k)
{
	void (*fn)(struct worker * k);
	const char *op = any_operation(k, &fn);
	bool space = chance(k, 2);
	char words[128];
	unsigned id;

	snprintf(words, sizeof(words), "error op=%s error=%s", op, space ? "ENOSPC" : "EIO");
	id = arm(k, words);
	k->error = space ? ENOSPC : EIO;
	k->failed = false;
	fn(k);
	k->error = 0;
	disarm(k, id);
}

static void strike_short(struct worker *k)
{
	static unsigned char buf[FILE_MAX];
	uint32_t off, len, part;
	char words[PATH + 64];
	struct target t;
	int got;

	whole_range(k, &off, &len);
	if (len < 2 || !file_of_one_name(k, &t))
		return;
	part = 1 + below(k, len - 1);
	snprintf(words, sizeof(words), "short op=write bytes=%u file=%s", part,
		 in_mount(k, t.path));
	arm(k, words);
	note(k, "write %u bytes at %u of %s, of which %u are", len, off, in_mount(k, t.path), part);
	fill(k, buf, len);
	got = result(pwrite(t.o->fd, buf, len, off));
	if (as_expected(k, 0, got)) {
		if ((uint32_t)got != part)
			differs(k, "it wrote %d bytes, and should write %u", got, part);
		model_write(&k->w->model, t.o->ino, buf, off, part);
	}
	check_target(k, &t, true);
	target_close(k, &t);
}

static void strike_sync(struct worker *k)
{
	static unsigned char buf[FILE_MAX];
	bool keep = chance(k, 2), data_only = chance(k, 2);
	char words[PATH + 64];
	uint32_t off, len;
	struct target t;

	whole_range(k, &off, &len);
	if (!file_of_one_name(k, &t))
		return;
	fill(k, buf, len);
	note(k, "write %u bytes at %u of %s", len, off, in_mount(k, t.path));
	if (as_expected(k, 0, result(pwrite(t.o->fd, buf, len, off))))
		model_write(&k->w->model, t.o->ino, buf, off, len);
	snprintf(words, sizeof(words), "error op=fsync error=EIO%s file=%s",
		 keep ? " keep_dirty=true" : "", in_mount(k, t.path));
	arm(k, words);
	note(k, "%s %s, which fails", data_only ? "fdatasync" : "fsync", in_mount(k, t.path));
	if (result(data_only ? fdatasync(t.o->fd) : fsync(t.o->fd)) != -EIO)
		differs(k, "it did not");
	if (!keep)
		model_fail(t.o->ino);
	check_target(k, &t, true);
	if (chance(k, 2)) {
		note(k, "and again, which works");
		if (as_expected(k, 0, result(fsync(t.o->fd))))
			model_sync(&k->w->model, t.o->ino, false);
	}
	target_close(k, &t);
	if (chance(k, 2))
		strike_clear(k);
}

/* The live name of what has one; false: it is the root. */
static bool name_of(const struct model *m, const struct inode *ino, struct slot *out)
{
	for (size_t i = 0; i < m->inodes.n; i++)
		for (int n = 0; n < NAMES; n++)
			if (m->inodes.v[i]->entry[LIVE][n] == ino) {
				*out = (struct slot){ m->inodes.v[i], n };
				return true;
			}
	return false;
}

/* Whether the change is of a name that leads to the file, or of an attribute of it. */
static bool is_on_the_way(const struct model *m, const struct change *c, const struct inode *file)
{
	const struct inode *at = file;
	struct slot s;

	if (c->kind == ATTR || c->kind == XATTR)
		return c->ino == file;
	for (; name_of(m, at, &s); at = s.dir)
		for (int i = 0; i < (c->kind == RENAME || c->kind == SWAP ? 2 : 1); i++)
			if (c->slot[i].dir == s.dir && c->slot[i].name == s.name)
				return true;
	return false;
}

static bool can_be_lost(const struct model *m, const struct inode *file)
{
	for (size_t i = 0; i < m->changes.n; i++)
		if (is_on_the_way(m, &m->changes.v[i], file))
			return true;
	return false;
}

/* The file, then the directories above it, as long as that is of use. */
static void sync_with_names(struct model *m, struct inode *file)
{
	struct inode *at = file;
	struct slot s;

	model_sync(m, file, false);
	for (; can_be_lost(m, file) && name_of(m, at, &s); at = s.dir)
		model_sync(m, s.dir, false);
}

static void strike_pages(struct worker *k)
{
	bool data = chance(k, 2); /* alone: that is what a pattern means */
	char words[PATH + 64];
	struct target t;

	if (!file_of_one_name(k, &t))
		return;
	snprintf(words, sizeof(words), "sync %s=%s", data ? "file_glob" : "file",
		 in_mount(k, t.path));
	must(k, words);
	if (data)
		model_write_back(t.o->ino);
	else
		sync_with_names(&k->w->model, t.o->ino);
	target_close(k, &t);
}

static void strike_checkpoint(struct worker *k)
{
	must(k, "checkpoint");
	model_sync_all(&k->w->model);
}

static void strike_snapshot(struct worker *k)
{
	struct world *w = k->w;
	char words[64];

	if (!w->has_kept || chance(k, 3)) {
		snprintf(words, sizeof(words), "snapshot s%u", ++w->n_kept);
		must(k, words);
		if (w->has_kept)
			model_release(&w->kept);
		model_snapshot(&w->model, &w->kept);
		w->has_kept = true;
		return;
	}
	for (int i = 0; i < WORKERS; i++)
		close_all(&w->workers[i]);
	snprintf(words, sizeof(words), "rollback s%u", w->n_kept);
	must(k, words);
	model_release(&w->model);
	model_snapshot(&w->kept, &w->model);
	for (int i = 0; i < WORKERS; i++)
		w->workers[i].home = w->model.root->entry[LIVE][i];
	atomic_fetch_add(&w->losses, 1);
}

void strike_once(struct worker *k)
{
	static void (*const all[])(struct worker * k) = {
		strike_clear, strike_clear, strike_clear,      strike_clear,	strike_clear_at,
		strike_error, strike_error, strike_error,      strike_short,	strike_sync,
		strike_sync,  strike_pages, strike_checkpoint, strike_snapshot,
	};

	all[below(k, ARRAY_SIZE(all))](k);
	check_all(k, k->w->mnt);
}

/* ---- what does ---- */

static bool must_fail(struct worker *k, int got)
{
	if (got >= 0)
		differs(k, "it worked, although the mount should have crashed");
	return true;
}

static void end_by_command(struct worker *k)
{
	enum model_survive what = any_survival(k);
	char words[64];

	snprintf(words, sizeof(words), "crash%s", survivals[what]);
	must(k, words);
	lost(k, what);
	server_end(k->w, k, 3);
}

static void end_by_kill(struct worker *k)
{
	note(k, "kill the server");
	server_kill(k->w);
	lost(k, SURVIVE_NONE);
	server_end(k->w, k, -1);
}

static void end_by_unmount(struct worker *k)
{
	for (int i = 0; i < WORKERS; i++)
		close_all(&k->w->workers[i]);
	note(k, "unmount");
	unmount(k);
	model_sync_all(&k->w->model);
	lost(k, SURVIVE_NONE);
	server_end(k->w, k, 0);
}

static bool end_at_write(struct worker *k)
{
	static unsigned char buf[FILE_MAX];
	bool before = chance(k, 2);
	char words[PATH + 64];
	uint32_t off, len;
	struct target t;

	whole_range(k, &off, &len);
	if (!file_of_one_name(k, &t))
		return false;
	snprintf(words, sizeof(words), "crash op=write timing=%s file=%s",
		 before ? "before" : "after", in_mount(k, t.path));
	arm(k, words);
	note(k, "write %u bytes at %u of %s", len, off, in_mount(k, t.path));
	must_fail(k, result(pwrite(t.o->fd, buf, len, off)));
	lost(k, SURVIVE_NONE);
	target_close(k, &t);
	server_end(k->w, k, 3);
	return true;
}

/* One of the numbers up to `n` each with a chance of a half, at least one. */
static uint32_t any_set(struct worker *k, uint32_t n, char *out, size_t size)
{
	uint32_t set = 1 + below(k, (1u << n) - 1);
	size_t len = 0;

	for (uint32_t i = 0; i < n; i++)
		if (set & 1u << i)
			len += (size_t)snprintf(out + len, size - len, "%s%u", len ? "," : "",
						i + 1);
	return set;
}

static bool end_by_torn_op(struct worker *k)
{
	static unsigned char buf[FILE_MAX];
	uint32_t parts = 1 + below(k, 5), set, off, len;
	char words[PATH + 128], list[32];
	struct target t;

	whole_range(k, &off, &len);
	if (len < parts || !file_of_one_name(k, &t))
		return false;
	set = any_set(k, parts, list, sizeof(list));
	snprintf(words, sizeof(words), "torn-op file=%s parts=%u persist=%s", in_mount(k, t.path),
		 parts, list);
	arm(k, words);
	note(k, "write %u bytes at %u of %s", len, off, in_mount(k, t.path));
	fill(k, buf, len);
	must_fail(k, result(pwrite(t.o->fd, buf, len, off)));
	lost(k, SURVIVE_NONE);
	for (uint32_t i = 0; i < parts; i++) {
		uint32_t at = i * (len / parts);
		uint32_t n = i == parts - 1 ? len - at : len / parts;

		if (!(set & 1u << i))
			continue;
		model_write(&k->w->model, t.o->ino, buf + at, off + at, n);
		model_durable_bytes(t.o->ino, off + at, n);
	}
	/* its times were not set back */
	t.o->ino->attr[DURABLE].mtime_known = false;
	model_lose(&k->w->model, SURVIVE_NONE);
	target_close(k, &t);
	server_end(k->w, k, 3);
	return true;
}

static bool end_by_torn_seq(struct worker *k)
{
	static unsigned char buf[FILE_MAX];
	uint32_t set, off, len, last = 0, first_off = 0, first_len = 0;
	char words[PATH + 128], list[32];
	struct target t;

	if (!file_of_one_name(k, &t))
		return false;
	set = any_set(k, 4, list, sizeof(list));
	snprintf(words, sizeof(words), "torn-seq file=%s persist=%s", in_mount(k, t.path), list);
	arm(k, words);
	for (uint32_t i = 0; i < 4; i++)
		if (set & 1u << i)
			last = i + 1;
	last = max(last, 2u);
	for (uint32_t i = 1; i <= last; i++) {
		whole_range(k, &off, &len);
		fill(k, buf, len);
		note(k, "write %u bytes at %u of %s", len, off, in_mount(k, t.path));
		int got = result(pwrite(t.o->fd, buf, len, off));
		if (i == last)
			must_fail(k, got);
		else
			as_expected(k, 0, got);
		if (i == 2 && (set & 1))
			model_durable_bytes(t.o->ino, first_off, first_len);
		model_write(&k->w->model, t.o->ino, buf, off, len);
		if (i > 1 && (set & 1u << (i - 1)))
			model_durable_bytes(t.o->ino, off, len);
		first_off = i == 1 ? off : first_off;
		first_len = i == 1 ? len : first_len;
	}
	t.o->ino->attr[DURABLE].mtime_known = false;
	lost(k, SURVIVE_NONE);
	target_close(k, &t);
	server_end(k->w, k, 3);
	return true;
}

void end_once(struct worker *k)
{
	bool ended = false;

	switch (below(k, 7)) {
	case 0:
		ended = end_by_torn_op(k);
		break;
	case 1:
		ended = end_by_torn_seq(k);
		break;
	case 2:
		ended = end_at_write(k);
		break;
	case 3:
		end_by_unmount(k);
		ended = true;
		break;
	case 4:
		end_by_command(k);
		ended = true;
		break;
	}
	if (!ended)
		end_by_kill(k);
	for (int i = 0; i < WORKERS; i++)
		close_all(&k->w->workers[i]);
	check_all(k, k->w->root);
	server_start(k->w, k);
	check_all(k, k->w->mnt);
}

/* ---- any part may survive ---- */

static bool has_change_at(const struct model *m, const struct inode *dir, int name)
{
	for (size_t i = 0; i < m->changes.n; i++)
		for (int s = 0; s < 2; s++)
			if (m->changes.v[i].slot[s].dir == dir &&
			    m->changes.v[i].slot[s].name == name)
				return true;
	return false;
}

/* Of a file whose name is durable, each byte is an old or a new one, or a zero. */
static void check_mixed(struct worker *k, const char *path, const struct inode *ino)
{
	static unsigned char buf[FILE_MAX + 1];
	const struct data *d = &ino->data;
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, sizeof(buf), 0);

	if (n < 0)
		differs(k, "%s, whose name was durable, cannot be read: %s", path, strerror(errno));
	if (n > max(d->size[LIVE], d->size[DURABLE]))
		differs(k, "%s has %zd bytes, more than it ever had", path, n);
	for (ssize_t i = 0; i < n; i++)
		if (buf[i] && buf[i] != d->bytes[LIVE][i] && buf[i] != d->bytes[DURABLE][i])
			differs(k, "%s: byte %zd is %02x; it was %02x, and then %02x", path, i,
				buf[i], d->bytes[DURABLE][i], d->bytes[LIVE][i]);
}

void end_by_chance(struct worker *k)
{
	struct world *w = k->w;
	char words[64], path[PATH];

	snprintf(words, sizeof(words), "crash survive=random seed=%u", below(k, 1000000));
	must(k, words);
	server_end(w, k, 3);
	for (int i = 0; i < WORKERS; i++)
		for (int n = 0; n < NAMES; n++) {
			const struct inode *home = w->workers[i].home;
			const struct inode *ino = home->entry[DURABLE][n];

			if (!ino || !S_ISREG(ino->type) || has_change_at(&w->model, home, n))
				continue;
			snprintf(path, sizeof(path), "%s/n%d/n%d", w->root, i, n);
			check_mixed(k, path, ino);
		}
	/* It can be used. */
	server_start(w, k);
	end_by_unmount(k);
}
