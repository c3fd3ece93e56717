/* SPDX-License-Identifier: MIT */
/*
 * app-history.c - crash states of an application's calls, against hand-written cases and against a
 * naive enumeration that knows nothing but the rules of doc/profiles.md.
 *
 * Calls are given as text, one after the other with "; " between:
 *
 *	creat a; mkdir d; write a FIRST UNITS LETTER [sync|dsync]; trunc a UNITS; rename a d/b;
 *	swap a b; link a b; unlink a; rmdir d; tmpfile T (and then T instead of a name); chmod a
 *MODE; chown a UID GID; xattr a LETTER; symlink a TARGET; collapse a FIRST UNITS; punch a FIRST
 *UNITS; close a; fsync a; fsync .; fdatasync a; syncfs
 *
 * and a state as its paths in order: "a=xx. d/ d/b=y", with a letter for each unit of a file ('.'
 *is zeros), "/" for a directory, "@" for a link, and behind that mode, owner and attribute if they
 *are not the usual ones.
 */
#include "calls.h"
#include "tap.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/history.h"
#include "app/app_model.h"
#include "app/outline.h"
#include "base/io.h"
#include "base/proc.h"
#include "base/rng.h"
#include "core/hashset.h"
#include "fs/vfs.h"

enum {
	OBJECTS = 16,
	NAMES = 3,
	UNITS = 4,
	ATOMS = 160,
	FILE_MAX = UNITS * 4096,
	BIT = 256, /* bytes; no call is about less */
	ROOT = 0,
	INO = 100
};

static const char *const names[NAMES] = { "a", "b", "d" };

/* ---- the naive model: what the application sees ---- */

struct thing {
	bool there, dir, link, unnamed;
	uint32_t mode, uid, gid;
	char xattr; /* 0: none */
	uint64_t size;
	unsigned char *data;
	bool page[UNITS]; /* has blocks */
	/* By bit: the call that gave it a block or made the file reach it, and one more; or 0. */
	uint64_t born[FILE_MAX / BIT];
	uint64_t touched; /* when it was last written to */
};

struct view {
	int slot[OBJECTS][NAMES]; /* object, or -1 */
	struct thing thing[OBJECTS];
	int n;
};

enum atom_kind { MAKE, LINK, REMOVE, RENAME, SWAP, ATTR, XATTR, UNIT, SIZE, RESIZE };

/* The least that survives or not. */
struct atom {
	enum atom_kind kind;
	uint64_t event, durable_at, flushed_at;
	int object, other; /* other: -1 */
	int dir[2], name[2];
	uint32_t mode, uid, gid;
	char xattr;
	uint64_t from, to;
	uint64_t after;	     /* what was changed before this call it cannot be without */
	bool commits;	     /* it has space or a size that only a commit can make durable */
	unsigned char *data; /* of a unit, or of a whole file whose content moved */
};

struct world {
	const struct profile *p;
	uint64_t unit;
	struct view live;
	struct atom atom[ATOMS];
	int n;
	bool emptied[OBJECTS];
	uint64_t clock, committed; /* when all metadata last became durable */
	struct trace trace;
	int tmp; /* the object that T means */
};

static void world_init(struct world *w, const struct profile *p, uint64_t unit)
{
	memset(w, 0, sizeof(*w));
	memset(w->live.slot, -1, sizeof(w->live.slot));
	w->p = p;
	w->unit = unit;
	w->live.n = 1;
	w->live.thing[ROOT] = (struct thing){ .there = true, .dir = true, .mode = 0755 };
	w->tmp = -1;
	trace_init(&w->trace);
}

static void world_release(struct world *w)
{
	for (int i = 0; i < w->live.n; i++)
		free(w->live.thing[i].data);
	for (int i = 0; i < w->n; i++)
		free(w->atom[i].data);
	trace_release(&w->trace);
}

/* ---- the rules, in the words of the document ---- */

static bool is_content(const struct atom *a)
{
	return a->kind >= UNIT;
}

static bool is_name(const struct atom *a)
{
	return a->kind <= SWAP;
}

static bool waits(const struct atom *a)
{
	return a->durable_at == UINT64_MAX;
}

static int n_places(const struct atom *a)
{
	return !is_name(a) ? 0 : a->kind == RENAME || a->kind == SWAP ? 2 : 1;
}

static bool in_dir(const struct atom *a, int dir)
{
	for (int i = 0; i < n_places(a); i++)
		if (a->dir[i] == dir)
			return true;
	return false;
}

static bool makes_dir(const struct world *w, const struct atom *a, int dir)
{
	return a->kind == MAKE && a->object == dir && w->live.thing[dir].dir;
}

static bool removes_dir(const struct world *w, const struct atom *a, int dir)
{
	return w->live.thing[dir].dir &&
	       ((a->kind == REMOVE && a->object == dir) || (a->kind == RENAME && a->other == dir));
}

static bool moves_dir(const struct world *w, const struct atom *a)
{
	return n_places(a) == 2 && a->dir[0] != a->dir[1] &&
	       (w->live.thing[a->object].dir || a->kind == SWAP);
}

/* Operations on names and attributes that keep their order; a came before b. */
static bool conflict(const struct world *w, const struct atom *a, const struct atom *b)
{
	if (is_content(a) || is_content(b))
		return false;
	if (!is_name(a) || !is_name(b)) /* attributes of the same thing */
		return a->kind == b->kind && a->object == b->object;
	for (int i = 0; i < n_places(a); i++)
		for (int j = 0; j < n_places(b); j++)
			if (a->dir[i] == b->dir[j] && a->name[i] == b->name[j])
				return true;
	for (int dir = 0; dir < w->live.n; dir++)
		if ((makes_dir(w, a, dir) && in_dir(b, dir)) ||
		    (removes_dir(w, b, dir) && in_dir(a, dir)))
			return true;
	return moves_dir(w, a) && moves_dir(w, b);
}

static bool is_metadata(const struct atom *a)
{
	return !is_content(a) || a->kind == RESIZE;
}

/* Whether b cannot survive without a, which came before it; neither is durable. */
static bool must(const struct world *w, const struct atom *a, const struct atom *b)
{
	if (conflict(w, a, b))
		return true;
	if (a->kind == RESIZE && is_content(b) && a->object == b->object)
		return true;
	if (b->kind == RESIZE && b->data && is_content(a) && a->object == b->object)
		return true; /* content that moves is written first */
	if (w->p->in_order && is_metadata(a) &&
	    (is_metadata(b) || b->kind == SIZE || (b->kind == UNIT && a->event < b->after)))
		return true;
	if (w->p->replace_orders_data && b->kind == RENAME && b->other >= 0 && is_content(a) &&
	    a->object == b->object)
		return true;
	return w->p->truncate_flushes && is_content(a) && is_metadata(b) &&
	       a->flushed_at < b->event;
}

static void close_over(struct world *w, uint64_t event)
{
	for (int j = w->n - 1; j >= 0; j--)
		for (int i = 0; i < j && w->atom[j].durable_at == event; i++)
			if (waits(&w->atom[i]) && conflict(w, &w->atom[i], &w->atom[j]))
				w->atom[i].durable_at = event;
}

static void content_durable(struct world *w, int object, int before, uint64_t event)
{
	for (int i = 0; i < before; i++)
		if (waits(&w->atom[i]) && is_content(&w->atom[i]) && w->atom[i].object == object)
			w->atom[i].durable_at = event;
}

/* All metadata, and what comes with it. */
static void commit(struct world *w, uint64_t event)
{
	w->committed = ++w->clock;
	for (int i = 0; i < w->n; i++) {
		struct atom *a = &w->atom[i];

		if (!waits(a))
			continue;
		if (is_metadata(a) || a->kind == SIZE)
			a->durable_at = event;
		if (w->p->truncate_flushes && a->flushed_at != UINT64_MAX) {
			a->durable_at = event;
			w->emptied[a->object] = false;
		}
		if (a->kind == RESIZE && a->data)
			content_durable(w, a->object, i, event);
		if (a->kind == RENAME && a->other >= 0 && w->p->replace_orders_data)
			content_durable(w, a->object, i, event);
	}
}

static bool about_names(const struct atom *a, int object)
{
	return is_name(a) && (a->object == object || (n_places(a) == 2 && a->other == object));
}

static bool about_attributes(const struct atom *a, int object)
{
	return (a->kind == ATTR || a->kind == XATTR) && a->object == object;
}

static void sync_thing(struct world *w, int object, bool data_only, uint64_t event)
{
	bool dir = w->live.thing[object].dir, anything = false;
	enum profile_sync what = dir ? w->p->dir : w->p->file;

	for (int i = 0; i < w->n; i++)
		anything |= waits(&w->atom[i]) && is_content(&w->atom[i]) &&
			    w->atom[i].object == object && (!data_only || w->atom[i].commits);
	/* The time of a write is no reason to sync data alone. */
	anything |= !data_only && w->live.thing[object].touched > w->committed;
	content_durable(w, object, w->n, event);
	w->emptied[object] = false;
	for (int i = 0; i < w->n; i++) {
		struct atom *a = &w->atom[i];
		bool entry = dir && in_dir(a, object);

		if (!waits(a))
			continue;
		/* What left this directory has its name in another. */
		if (what == PROFILE_OWN && a->kind == RENAME && a->dir[1] != object)
			entry = false;
		if (what == PROFILE_ALL)
			anything |= data_only && !dir
					    ? a->object == object &&
						      (a->kind == MAKE ||
						       (a->kind == LINK &&
							w->live.thing[object].unnamed))
					    : about_names(a, object) ||
						      about_attributes(a, object) || entry;
		else if (entry || (!data_only && about_attributes(a, object)) ||
			 (what == PROFILE_NAMES && about_names(a, object)))
			a->durable_at = event;
	}
	if (what == PROFILE_ALL && anything)
		commit(w, event);
	close_over(w, event);
}

/* ---- calls ---- */

static struct atom *atom_add(struct world *w, struct atom a)
{
	assert(w->n < ATOMS);
	a.event = w->trace.events.n;
	a.flushed_at = UINT64_MAX;
	a.durable_at = w->p->metadata || is_content(&a) ? UINT64_MAX : a.event;
	w->atom[w->n] = a;
	return &w->atom[w->n++];
}

struct place {
	int dir, name, object; /* -1: no such thing */
};

static struct place find(const struct world *w, const char *path)
{
	struct place p = { ROOT, -1, -1 };

	if (streq(path, "."))
		return (struct place){ -1, -1, ROOT };
	if (streq(path, "T"))
		return (struct place){ -1, -1, w->tmp };
	const char *slash = strchr(path, '/');
	if (slash) {
		p.dir = w->live.slot[ROOT][2];
		path = slash + 1;
	}
	if (p.dir < 0 || !w->live.thing[p.dir].dir)
		return (struct place){ -1, -1, -1 };
	for (int i = 0; i < NAMES; i++)
		if (streq(path, names[i]))
			p.name = i;
	if (p.name >= 0)
		p.object = w->live.slot[p.dir][p.name];
	return p;
}

static bool is_empty(const struct world *w, int dir)
{
	for (int i = 0; i < NAMES; i++)
		if (w->live.slot[dir][i] >= 0)
			return false;
	return true;
}

static int thing_new(struct world *w, struct thing t)
{
	assert(w->live.n < OBJECTS);
	t.there = true;
	t.data = xcalloc(1, FILE_MAX);
	w->live.thing[w->live.n] = t;
	return w->live.n++;
}

static bool call_make(struct world *w, const char *verb, const char *path, const char *target)
{
	struct place p = find(w, path);
	bool dir = streq(verb, "mkdir"), link = streq(verb, "symlink");
	enum posix_op op = dir ? POSIX_MKDIR : link ? POSIX_SYMLINK : POSIX_CREATE;

	if (streq(verb, "tmpfile")) {
		if (w->live.n == OBJECTS)
			return false;
		w->tmp = thing_new(w, (struct thing){ .mode = 0644, .unnamed = true });
		calls_add(&w->trace, (struct posix_event){ .op = POSIX_TMPFILE,
							   .ino = INO + (uint64_t)w->tmp,
							   .arg = 0644 });
		return true;
	}
	if (p.name < 0 || p.object >= 0 || w->live.n == OBJECTS)
		return false;
	uint32_t mode = dir ? 0755 : link ? 0777 : 0644;
	int object = thing_new(w, (struct thing){ .dir = dir, .link = link, .mode = mode });
	w->live.slot[p.dir][p.name] = object;
	atom_add(w, (struct atom){ .kind = MAKE,
				   .object = object,
				   .other = -1,
				   .dir = { p.dir },
				   .name = { p.name } });
	calls_add(&w->trace, (struct posix_event){ .op = op,
						   .ino = INO + (uint64_t)object,
						   .dir = INO + (uint64_t)p.dir,
						   .name = names[p.name],
						   .arg = mode,
						   .payload = link ? target : NULL,
						   .payload_len = link ? strlen(target) : 0 });
	return true;
}

static bool call_link(struct world *w, const char *from, const char *to)
{
	struct place p = find(w, from), q = find(w, to);

	if (p.object < 0 || q.name < 0 || q.object >= 0 || w->live.thing[p.object].dir)
		return false;
	w->live.slot[q.dir][q.name] = p.object;
	atom_add(w, (struct atom){ .kind = LINK,
				   .object = p.object,
				   .other = -1,
				   .dir = { q.dir },
				   .name = { q.name } });
	calls_add(&w->trace, (struct posix_event){ .op = POSIX_LINK,
						   .ino = INO + (uint64_t)p.object,
						   .dir = INO + (uint64_t)q.dir,
						   .name = names[q.name] });
	if (p.object == w->tmp)
		w->tmp = -1; /* once */
	return true;
}

static bool call_remove(struct world *w, const char *path, bool dir)
{
	struct place p = find(w, path);

	if (p.name < 0 || p.object < 0 || w->live.thing[p.object].dir != dir ||
	    (dir && !is_empty(w, p.object)))
		return false;
	w->live.slot[p.dir][p.name] = -1;
	atom_add(w, (struct atom){ .kind = REMOVE,
				   .object = p.object,
				   .other = -1,
				   .dir = { p.dir },
				   .name = { p.name } });
	calls_add(&w->trace, (struct posix_event){ .op = dir ? POSIX_RMDIR : POSIX_UNLINK,
						   .ino = INO + (uint64_t)p.object,
						   .dir = INO + (uint64_t)p.dir,
						   .name = names[p.name] });
	return true;
}

static bool call_rename(struct world *w, const char *from, const char *to, bool swap)
{
	struct place p = find(w, from), q = find(w, to);

	if (p.name < 0 || q.name < 0 || p.object < 0 || p.object == q.object ||
	    (swap && q.object < 0))
		return false;
	bool p_dir = w->live.thing[p.object].dir;
	if (p_dir && q.dir != p.dir)
		return false; /* only d is a directory: it cannot move */
	if (!swap && q.object >= 0 &&
	    (w->live.thing[q.object].dir != p_dir || (p_dir && !is_empty(w, q.object))))
		return false;
	if (swap && w->live.thing[q.object].dir && q.dir != p.dir)
		return false;
	w->live.slot[p.dir][p.name] = swap ? q.object : -1;
	w->live.slot[q.dir][q.name] = p.object;
	atom_add(w, (struct atom){ .kind = swap ? SWAP : RENAME,
				   .object = p.object,
				   .other = q.object,
				   .dir = { p.dir, q.dir },
				   .name = { p.name, q.name } });
	calls_add(&w->trace,
		  (struct posix_event){ .op = POSIX_RENAME,
					.ino = INO + (uint64_t)p.object,
					.ino2 = q.object < 0 ? 0 : INO + (uint64_t)q.object,
					.dir = INO + (uint64_t)p.dir,
					.dir2 = INO + (uint64_t)q.dir,
					.name = names[p.name],
					.name2 = names[q.name],
					.arg = swap ? RENAME_EXCHANGE : 0 });
	return true;
}

/* Each unit as it is now, and the size, as far as the profile lets it go alone. */
static void units_add(struct world *w, int object, uint64_t from, uint64_t to, uint64_t before,
		      uint64_t after, bool takes)
{
	struct thing *t = &w->live.thing[object];
	bool commits = takes || (to > before && w->p->size_with_data);

	t->touched = ++w->clock;
	if (to > before && !w->p->size_with_data)
		atom_add(w, (struct atom){ .kind = SIZE,
					   .object = object,
					   .other = -1,
					   .to = to,
					   .commits = true });
	for (uint64_t at = from / w->unit * w->unit; at < to; at += w->unit) {
		struct atom *a = atom_add(w, (struct atom){ .kind = UNIT,
							    .object = object,
							    .other = -1,
							    .from = at,
							    .to = min(at + w->unit, t->size),
							    .after = after,
							    .commits = commits });

		a->data = xmalloc(w->unit);
		memcpy(a->data, t->data + at, w->unit);
	}
}

/* Whether content that a call wrote is still to be lost. */
static bool call_waits(const struct world *w, int object, uint64_t event)
{
	for (int i = 0; i < w->n; i++)
		if (w->atom[i].kind == UNIT && w->atom[i].object == object &&
		    w->atom[i].event == event && waits(&w->atom[i]))
			return true;
	return false;
}

/*
 * Gives a file the space that a write needs, and says what was changed before which call it cannot
 * be without: before this one if there was none or the file gets longer; else before the one that
 * brought the space, or made the file that long, if what that wrote can be lost; else 0.
 */
static uint64_t take_space(struct world *w, int object, uint64_t from, uint64_t to, bool *takes)
{
	struct thing *t = &w->live.thing[object];
	uint64_t now = w->trace.events.n, after = 0, first = t->size;

	*takes = false;
	for (uint64_t page = from / 4096; page * 4096 < to; page++) {
		if (!t->page[page] && !*takes)
			first = min(first, page * 4096);
		*takes |= !t->page[page];
		t->page[page] = true;
	}
	if (*takes || to > t->size) {
		uint64_t end = *takes ? (to + 4095) / 4096 * 4096 : to;

		for (uint64_t at = first; at < end; at += BIT)
			t->born[at / BIT] = now + 1;
		return now;
	}
	uint64_t end = (to + w->unit - 1) / w->unit * w->unit;
	for (uint64_t at = from / w->unit * w->unit; at < end; at += BIT) {
		uint64_t born = t->born[at / BIT];

		if (born && call_waits(w, object, born - 1))
			after = max(after, born - 1);
	}
	return after;
}

/* The blocks from one page on are gone. */
static void drop_space(struct thing *t, uint64_t from, uint64_t to)
{
	for (uint64_t page = from / 4096; page < to / 4096; page++)
		t->page[page] = false;
	for (uint64_t at = from; at < to; at += BIT)
		t->born[at / BIT] = 0;
}

/* In halves of units, so that writes meet within one. */
static bool call_write(struct world *w, const char *path, uint64_t first, uint64_t n, char letter,
		       const char *how)
{
	struct place p = find(w, path);
	uint64_t from = first * w->unit / 2, to = (first + n) * w->unit / 2;
	bool takes;

	if (p.object < 0 || w->live.thing[p.object].dir || w->live.thing[p.object].link || !n ||
	    to > UNITS * w->unit)
		return false;
	struct thing *t = &w->live.thing[p.object];
	uint64_t before = t->size, after = take_space(w, p.object, from, to, &takes);
	memset(t->data + from, letter, to - from);
	t->size = max(t->size, to);
	units_add(w, p.object, from, to, before, after, takes);
	uint64_t event = w->trace.events.n;
	bool sync = how && streq(how, "sync"), dsync = how && streq(how, "dsync");
	calls_add(&w->trace, (struct posix_event){ .op = POSIX_WRITE,
						   .flags = sync    ? POSIX_SYNC
							    : dsync ? POSIX_DSYNC
								    : 0,
						   .ino = INO + (uint64_t)p.object,
						   .offset = from,
						   .len = to - from,
						   .result = (int64_t)(to - from),
						   .payload = t->data + from,
						   .payload_len = to - from });
	if (sync || dsync) /* when the call has returned, which is before the next event */
		sync_thing(w, p.object, dsync, event + 1);
	return true;
}

static bool call_trunc(struct world *w, const char *path, uint64_t n)
{
	struct place p = find(w, path);
	uint64_t size = n * w->unit / 2;

	if (p.object < 0 || w->live.thing[p.object].dir || w->live.thing[p.object].link ||
	    size > UNITS * w->unit || size == w->live.thing[p.object].size)
		return false;
	struct thing *t = &w->live.thing[p.object];
	memset(t->data + size, 0, FILE_MAX - size);
	t->size = size;
	t->touched = ++w->clock;
	drop_space(t, (size + 4095) / 4096 * 4096, FILE_MAX);
	w->emptied[p.object] |= !size;
	atom_add(w, (struct atom){ .kind = RESIZE,
				   .object = p.object,
				   .other = -1,
				   .to = size,
				   .commits = true });
	calls_add(&w->trace, (struct posix_event){ .op = POSIX_TRUNCATE,
						   .ino = INO + (uint64_t)p.object,
						   .offset = size });
	return true;
}

/* Only with units of 4096 bytes. */
static bool call_falloc(struct world *w, const char *path, uint64_t first, uint64_t n, int mode)
{
	struct place p = find(w, path);
	uint64_t from = first * w->unit, len = n * w->unit;

	if (p.object < 0 || w->unit != 4096 || from + len >= w->live.thing[p.object].size)
		return false;
	struct thing *t = &w->live.thing[p.object];
	if (mode == FALLOC_FL_COLLAPSE_RANGE) {
		memmove(t->data + from, t->data + from + len, FILE_MAX - from - len);
		memset(t->data + FILE_MAX - len, 0, len);
		t->size -= len;
		t->touched = ++w->clock;
		for (uint64_t page = first; page < UNITS; page++)
			t->page[page] = page + n < UNITS && t->page[page + n];
		memset(t->born, 0, sizeof(t->born)); /* all of it needs the move */
		struct atom *a = atom_add(w, (struct atom){ .kind = RESIZE,
							    .object = p.object,
							    .other = -1,
							    .to = t->size,
							    .commits = true });
		a->data = xmalloc(FILE_MAX);
		memcpy(a->data, t->data, FILE_MAX);
	} else {
		memset(t->data + from, 0, len);
		drop_space(t, from, from + len);
		units_add(w, p.object, from, from + len, t->size, w->trace.events.n, true);
	}
	calls_add(&w->trace, (struct posix_event){ .op = POSIX_FALLOCATE,
						   .ino = INO + (uint64_t)p.object,
						   .offset = from,
						   .len = len,
						   .arg = (uint32_t)mode });
	return true;
}

static bool call_attr(struct world *w, const char *path, uint32_t mode, uint32_t uid, uint32_t gid)
{
	struct place p = find(w, path);

	if (p.object < 0 || w->live.thing[p.object].link)
		return false;
	atom_add(w, (struct atom){ .kind = ATTR,
				   .object = p.object,
				   .other = -1,
				   .mode = mode,
				   .uid = uid,
				   .gid = gid });
	calls_add(&w->trace,
		  (struct posix_event){ .op = mode == UINT32_MAX ? POSIX_CHOWN : POSIX_CHMOD,
					.ino = INO + (uint64_t)p.object,
					.arg = mode == UINT32_MAX ? 0 : mode,
					.offset = mode == UINT32_MAX ? uid : 0,
					.len = mode == UINT32_MAX ? gid : 0 });
	return true;
}

static bool call_xattr(struct world *w, const char *path, char letter)
{
	struct place p = find(w, path);
	bool set = letter != '-';

	if (p.object < 0 || w->live.thing[p.object].link)
		return false;
	atom_add(w, (struct atom){ .kind = XATTR,
				   .object = p.object,
				   .other = -1,
				   .xattr = set ? letter : 0 });
	calls_add(&w->trace, (struct posix_event){ .op = set ? POSIX_SETXATTR : POSIX_REMOVEXATTR,
						   .ino = INO + (uint64_t)p.object,
						   .name2 = "user.x",
						   .payload = set ? &letter : NULL,
						   .payload_len = set });
	return true;
}

static bool call_sync(struct world *w, const char *path, bool data_only)
{
	struct place p = find(w, path);
	uint64_t event = w->trace.events.n;

	if (p.object < 0 || w->live.thing[p.object].link)
		return false;
	bool dir = w->live.thing[p.object].dir;
	calls_add(&w->trace, (struct posix_event){ .op = dir	     ? POSIX_FSYNCDIR
							 : data_only ? POSIX_FDATASYNC
								     : POSIX_FSYNC,
						   .ino = INO + (uint64_t)p.object });
	sync_thing(w, p.object, data_only && !dir, event);
	return true;
}

static bool call_close(struct world *w, const char *path)
{
	struct place p = find(w, path);

	if (p.object < 0 || w->live.thing[p.object].dir)
		return false;
	for (int i = 0; i < w->n; i++)
		if (w->emptied[p.object] && waits(&w->atom[i]) && is_content(&w->atom[i]) &&
		    w->atom[i].object == p.object && w->atom[i].flushed_at == UINT64_MAX)
			w->atom[i].flushed_at = w->trace.events.n;
	calls_add(&w->trace,
		  (struct posix_event){ .op = POSIX_RELEASE, .ino = INO + (uint64_t)p.object });
	return true;
}

static bool call_syncfs(struct world *w)
{
	w->committed = ++w->clock;
	for (int i = 0; i < w->n; i++)
		if (waits(&w->atom[i]))
			w->atom[i].durable_at = w->trace.events.n;
	calls_add(&w->trace, (struct posix_event){ .op = POSIX_SYNCFS });
	return true;
}

/* Does one call; false if it cannot be done, and nothing happens. */
static bool call(struct world *w, const char *text)
{
	auto_free char *copy = xstrdup(text);
	char *word[6] = { 0 }, *save = NULL;
	int n = 0;

	for (char *s = strtok_r(copy, " ", &save); s && n < 6; s = strtok_r(NULL, " ", &save))
		word[n++] = s;
	const char *verb = word[0], *path = n > 1 ? word[1] : ".";
	uint64_t x = n > 2 ? strtoul(word[2], NULL, 10) : 0,
		 y = n > 3 ? strtoul(word[3], NULL, 10) : 0;
	if (streq(verb, "write"))
		return call_write(w, path, x, y, word[4][0], word[5]);
	if (streq(verb, "trunc"))
		return call_trunc(w, path, x);
	if (streq(verb, "collapse"))
		return call_falloc(w, path, x, y, FALLOC_FL_COLLAPSE_RANGE);
	if (streq(verb, "punch"))
		return call_falloc(w, path, x, y, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
	if (streq(verb, "rename") || streq(verb, "swap"))
		return call_rename(w, path, word[2], streq(verb, "swap"));
	if (streq(verb, "link"))
		return call_link(w, path, word[2]);
	if (streq(verb, "unlink") || streq(verb, "rmdir"))
		return call_remove(w, path, streq(verb, "rmdir"));
	if (streq(verb, "chmod"))
		return call_attr(w, path, (uint32_t)strtoul(word[2], NULL, 8), UINT32_MAX,
				 UINT32_MAX);
	if (streq(verb, "chown"))
		return call_attr(w, path, UINT32_MAX, (uint32_t)x, (uint32_t)y);
	if (streq(verb, "xattr"))
		return call_xattr(w, path, word[2][0]);
	if (streq(verb, "fsync") || streq(verb, "fdatasync"))
		return call_sync(w, path, streq(verb, "fdatasync"));
	if (streq(verb, "close"))
		return call_close(w, path);
	if (streq(verb, "syncfs"))
		return call_syncfs(w);
	return call_make(w, verb, path, word[2]);
}

static void calls(struct world *w, const char *text)
{
	auto_free char *copy = xstrdup(text);
	char *save = NULL;

	for (char *s = strtok_r(copy, ";", &save); s; s = strtok_r(NULL, ";", &save))
		if (!call(w, s + (*s == ' ')))
			printf("# cannot: %s\n", s);
}

/* ---- naive states ---- */

static void apply(struct view *v, const struct atom *a)
{
	struct thing *t = &v->thing[a->object];

	switch (a->kind) {
	case MAKE:
	case LINK:
		v->slot[a->dir[0]][a->name[0]] = a->object;
		break;
	case REMOVE:
		v->slot[a->dir[0]][a->name[0]] = -1;
		break;
	case RENAME:
	case SWAP:
		v->slot[a->dir[0]][a->name[0]] = a->kind == SWAP ? a->other : -1;
		v->slot[a->dir[1]][a->name[1]] = a->object;
		break;
	case ATTR:
		t->mode = a->mode == UINT32_MAX ? t->mode : a->mode;
		t->uid = a->uid == UINT32_MAX ? t->uid : a->uid;
		t->gid = a->gid == UINT32_MAX ? t->gid : a->gid;
		break;
	case XATTR:
		t->xattr = a->xattr;
		break;
	case UNIT:
		memcpy(t->data + a->from, a->data, a->to - a->from);
		t->size = max(t->size, a->to);
		break;
	case SIZE:
		t->size = max(t->size, a->to);
		break;
	case RESIZE:
		if (a->data)
			memcpy(t->data, a->data, FILE_MAX);
		memset(t->data + a->to, 0, FILE_MAX - a->to);
		t->size = a->to;
	}
}

static void to_reffs(const struct view *v, struct reffs *r, int dir, uint64_t ino, uint64_t *inos)
{
	for (int i = 0; i < NAMES; i++) {
		int object = v->slot[dir][i], rc;
		if (object < 0)
			continue;
		const struct thing *t = &v->thing[object];
		uint64_t *at = &inos[object];

		if (*at) {
			rc = vfs_link(r, &reffs_root, *at, ino, names[i]);
		} else if (t->dir) {
			rc = vfs_mkdir(r, &reffs_root, ino, names[i], t->mode, at);
			to_reffs(v, r, object, *at, inos);
		} else if (t->link) {
			rc = vfs_symlink(r, &reffs_root, "target", ino, names[i], at);
		} else {
			rc = vfs_create(r, &reffs_root, ino, names[i], t->mode, at);
			if (t->size)
				vfs_write(r, &reffs_root, *at, t->data, 0, t->size, 0);
		}
		assert(rc == 0);
		struct vfs_setattr set = { .set = VFS_SET_UID | VFS_SET_GID,
					   .uid = t->uid,
					   .gid = t->gid };
		if (t->uid || t->gid)
			rc = vfs_setattr(r, &reffs_root, *at, &set);
		if (t->xattr)
			rc = vfs_setxattr(r, &reffs_root, *at, "user.x", &t->xattr, 1, 0);
		assert(rc == 0);
	}
}

struct hashes vec_of(struct hash128);

static int compare_hashes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct hash128));
}

static void hashes_sort(struct hashes *h)
{
	size_t kept = 0;

	if (h->n)
		qsort(h->v, h->n, sizeof(*h->v), compare_hashes);
	for (size_t i = 0; i < h->n; i++)
		if (!kept || compare_hashes(&h->v[kept - 1], &h->v[i]))
			h->v[kept++] = h->v[i];
	h->n = kept;
}

/* A quick hash, so that only different states are made. */
static struct hash128 view_hash(const struct view *v)
{
	struct hash128 sum = hash_bytes(v->slot, sizeof(v->slot));

	for (int i = 1; i < v->n; i++) {
		const struct thing *t = &v->thing[i];
		uint64_t what[] = { (uint64_t)i,
				    t->mode,
				    t->uid,
				    t->gid,
				    (unsigned char)t->xattr,
				    t->size,
				    hash64(t->data, t->size) };

		sum = hash_add(sum, hash_bytes(what, sizeof(what)));
	}
	return sum;
}

struct naive {
	struct reffs *r;
	struct reffs_state *empty;
	unsigned char *data[OBJECTS];
};

static struct hash128 naive_state(struct naive *x, const struct world *w, uint64_t point,
				  const int *open, uint32_t set, struct hashset *seen, bool *fresh)
{
	struct view v = { .n = w->live.n };
	uint64_t inos[OBJECTS] = { 0 };
	int k = 0;

	memset(v.slot, -1, sizeof(v.slot));
	for (int i = 0; i < v.n; i++) {
		v.thing[i] = w->live.thing[i];
		v.thing[i].data = x->data[i];
		v.thing[i].size = 0;
		memset(x->data[i], 0, FILE_MAX);
	}
	for (int i = 0; i < w->n && w->atom[i].event < point; i++) {
		bool is_open = w->atom[i].durable_at >= point;

		if (is_open)
			assert(open[k] == i);
		if (!is_open || set >> k & 1)
			apply(&v, &w->atom[i]);
		k += is_open;
	}
	*fresh = hashset_insert(seen, view_hash(&v));
	if (!*fresh)
		return (struct hash128){ 0 };
	reffs_restore(x->r, x->empty);
	to_reffs(&v, x->r, ROOT, REFFS_ROOT_INO, inos);
	struct reffs_state *s = reffs_save(x->r);
	struct hash128 h = reffs_state_hash(s);
	reffs_state_unref(s);
	return h;
}

/* The atoms that are not durable at a point; how many. */
static int atoms_open(const struct world *w, uint64_t point, int *open)
{
	int n = 0;

	for (int i = 0; i < w->n && w->atom[i].event < point; i++)
		if (w->atom[i].durable_at >= point)
			open[n++] = i;
	return n;
}

static bool closed(const struct world *w, const int *open, int n, uint32_t set)
{
	for (int j = 0; j < n; j++)
		for (int i = 0; i < j; i++)
			if ((set >> j & 1) && !(set >> i & 1) &&
			    must(w, &w->atom[open[i]], &w->atom[open[j]]))
				return false;
	return true;
}

static void naive_states(const struct world *w, uint64_t point, struct hashes *out)
{
	struct naive x = { .r = reffs_new(NULL) };
	auto_hashset seen = HASHSET_INIT;
	int open[ATOMS], n = atoms_open(w, point, open);
	bool fresh;

	x.empty = reffs_save(x.r);
	for (int i = 0; i < OBJECTS; i++)
		x.data[i] = xmalloc(FILE_MAX);
	for (uint32_t set = 0; set < (uint32_t)1 << n; set++) {
		if (!closed(w, open, n, set))
			continue;
		struct hash128 h = naive_state(&x, w, point, open, set, &seen, &fresh);
		if (fresh)
			vec_push(out, h);
	}
	for (int i = 0; i < OBJECTS; i++)
		free(x.data[i]);
	reffs_state_unref(x.empty);
	reffs_free(x.r);
	hashes_sort(out);
}

/* ---- the engine's states ---- */

static int make_history(const struct world *w, struct history *h)
{
	struct history_opts opts = {
		.profile = w->p, .unit_size = (uint32_t)w->unit, .base = -1, .root_ino = INO
	};
	struct err err = ERR_INIT;
	int rc = history_new(&w->trace, &opts, h, &err);

	if (rc)
		printf("# %s\n", err.msg);
	return rc;
}

struct texts vec_of(char *);

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct printing {
	struct strbuf *out;
	const struct reffs_state *s;
	const char *prefix;
	uint64_t unit;
};

static int print_xattr(void *ctx, const char *name, const void *value, size_t len)
{
	(void)name;
	strbuf_addf(ctx, "(%.*s)", (int)len, (const char *)value);
	return 0;
}

static int print_entry(void *ctx, const char *name, uint64_t ino)
{
	struct printing *p = ctx;
	const struct reffs_inode *i = reffs_inode(p->s, ino);
	struct reffs_attr a;

	reffs_attr(i, &a);
	strbuf_addf(p->out, "%s%s%s", p->out->len ? " " : "", p->prefix, name);
	strbuf_adds(p->out, a.type == TREE_DIR ? "/" : a.type == TREE_SYMLINK ? "@" : "=");
	if (a.target)
		strbuf_adds(p->out, a.target);
	for (uint64_t at = 0; a.type == TREE_FILE && at < a.size; at += p->unit) {
		const unsigned char *page = reffs_page(i, at / REFFS_PAGE);
		unsigned char c = page ? page[at % REFFS_PAGE] : 0;

		strbuf_addch(p->out, c ? (char)c : '.');
	}
	if (a.type == TREE_FILE && a.mode != 0644)
		strbuf_addf(p->out, ",%o", a.mode);
	/* What the test makes, and what it writes down as root's, is not worth a word. */
	if ((a.uid || a.gid) && (a.uid != geteuid() || a.gid != getegid()))
		strbuf_addf(p->out, ",%u:%u", a.uid, a.gid);
	reffs_xattrs(i, print_xattr, p->out);
	if (a.type != TREE_DIR)
		return 0;
	auto_free char *prefix = xasprintf("%s%s/", p->prefix, name);
	struct printing below = { p->out, p->s, prefix, p->unit };
	return reffs_entries(i, print_entry, &below);
}

static char *state_text(const struct reffs_state *s, uint64_t unit)
{
	auto_strbuf out = STRBUF_INIT;
	struct printing p = { &out, s, "", unit };

	reffs_entries(reffs_inode(s, REFFS_ROOT_INO), print_entry, &p);
	return xstrdup(out.len ? strbuf_str(&out) : "-");
}

static bool replays(const struct world *w, struct history *h, const struct crash_state *s,
		    struct hash128 want)
{
	auto_image base = IMAGE_INIT;
	struct crash_opts only = { .model = &model_posix, .model_ctx = h, .base = &base };
	auto_crash_state again = CRASH_STATE_INIT;
	struct survivors v = { 0 };

	image_init(&base, h->units);
	if (crash_replay(&w->trace, &only, strbuf_str(&s->id), &again, NULL))
		return false;
	survivors_of(h, &again, &v);
	struct reffs_state *built = history_build(h, again.point, v.v.v, v.v.n);
	bool same = hash_eq(reffs_state_hash(built), want);
	reffs_state_unref(built);
	survivors_release(&v);
	return same;
}

/* All states at a point, with nothing left out. Whether each replays. */
static bool engine_states(const struct world *w, uint64_t point, bool torn, struct hashes *out,
			  struct texts *texts)
{
	struct history h;
	auto_image base = IMAGE_INIT;
	auto_crash_state s = CRASH_STATE_INIT;
	struct survivors v = { 0 };
	auto_crash e = NULL;
	bool all = true;
	size_t i = 0;

	if (make_history(w, &h))
		return false;
	image_init(&base, h.units);
	struct crash_opts opts = { .model = &model_posix,
				   .model_ctx = &h,
				   .base = &base,
				   .points = &point,
				   .n_points = 1,
				   .layers = CRASH_WITH_WHOLE | (torn ? CRASH_WITH_TORN : 0),
				   .max_subset = UINT32_MAX,
				   .tear_unit = 1 };
	if (crash_new(&w->trace, &opts, &e, NULL)) {
		history_release(&h);
		return false;
	}
	for (; crash_next(e, &s); i++) {
		survivors_of(&h, &s, &v);
		struct reffs_state *built = history_build(&h, point, v.v.v, v.v.n);
		struct hash128 hash = reffs_state_hash(built);

		if (out)
			vec_push(out, hash);
		if (texts)
			vec_push(texts, state_text(built, w->unit));
		reffs_state_unref(built);
		all &= i % 7 || replays(w, &h, &s, hash);
	}
	if (out)
		hashes_sort(out);
	all &= h.skipped == 0;
	survivors_release(&v);
	history_release(&h);
	return all;
}

/* ---- named cases ---- */

static void expect_unit(const char *profile, const char *text, const char *want, const char *name,
			uint64_t unit)
{
	auto_strbuf got = STRBUF_INIT;
	struct texts texts = { 0 };
	struct world w;
	const char *last = "";

	world_init(&w, profile_find(profile), unit);
	calls(&w, text);
	engine_states(&w, w.trace.events.n, true, NULL, &texts);
	if (texts.n)
		qsort(texts.v, texts.n, sizeof(*texts.v), by_text);
	for (size_t i = 0; i < texts.n; i++) {
		if (!streq(last, texts.v[i]))
			strbuf_addf(&got, "%s%s", got.len ? " | " : "", texts.v[i]);
		last = texts.v[i];
	}
	is_s(strbuf_str(&got), want, "%s: %s", profile, name);
	for (size_t i = 0; i < texts.n; i++)
		free(texts.v[i]);
	vec_release(&texts);
	world_release(&w);
}

static void expect(const char *profile, const char *text, const char *want, const char *name)
{
	expect_unit(profile, text, want, name, 512);
}

static void test_names(void)
{
	expect("minimal", "creat a; creat b", "- | a= | a= b= | b=", "names come in any order");
	expect("xfs", "creat a; creat b", "- | a= | a= b=", "names come in order");
	expect("lazyfs", "creat a; creat b", "a= b=", "names are durable at once");
	expect("minimal", "creat a; fsync a", "- | a=", "a synced file may have no name");
	expect("minimal", "creat a; fsync .", "a=", "but for a sync of its directory");
	expect("ext4-ordered", "creat b; creat a; fsync a",
	       "a= b=", "a sync brings all metadata before it");
	expect("btrfs", "creat b; creat a; fsync a", "a= | a= b=", "only names of what is synced");
	expect("btrfs", "mkdir d; creat b; creat d/a; fsync d/a",
	       "b= d/ d/a= | d/ d/a=", "and the directories they need");
	expect("btrfs", "creat a; creat b; mkdir d; fsync b", "a= b= | a= b= d/ | b=",
	       "what is left survives in order, what was synced does not count");
	expect("minimal", "creat a; syncfs; rename a b", "a= | b=", "rename is atomic");
	expect("minimal", "mkdir d; creat a; syncfs; rename a d/a; fsync .", "a= d/ | d/ d/a=",
	       "a rename is not durable by a sync of the directory that it left");
	expect("minimal", "mkdir d; creat a; syncfs; rename a d/a; fsync d",
	       "d/ d/a=", "but by one of the directory with the new name");
	expect("minimal", "mkdir d; creat a; syncfs; rename a d/a; creat a; fsync .",
	       "a= d/ d/a=", "or if the old name was used again");
	expect("xfs", "mkdir d; creat a; syncfs; rename a d/a; fsync .",
	       "d/ d/a=", "with a journal, by either");
	expect("minimal", "creat a; syncfs; rename a b; creat a",
	       "a= | a= b= | b=", "the same name keeps its order");
	expect("minimal", "mkdir d; syncfs; rmdir d; mkdir d; creat d/a",
	       "- | d/ | d/ d/a=", "a new directory under an old name");
	expect("minimal", "mkdir d; syncfs; creat d/a; unlink d/a; rmdir d",
	       "- | d/ | d/ d/a=", "the removal of a directory needs what emptied it");
	expect("minimal", "creat a; syncfs; creat b; syncfs; swap a b; xattr a x",
	       "a= b= | a= b=(x) | a=(x) b=", "an exchange is whole");
	expect("minimal", "symlink a target", "- | a@target", "a link with its target");
	expect("minimal", "creat a; chmod a 600; fsync a; fsync .", "a=,600",
	       "attributes that were durable before the name");
	expect("minimal", "creat a; fsync .; chown a 1 2; xattr a x",
	       "a= | a=(x) | a=,1:2 | a=,1:2(x)", "owner and attribute");
	expect("minimal", "creat a; xattr a x; syncfs; xattr a -", "a= | a=(x)",
	       "an attribute is removed");
}

static void test_links(void)
{
	expect("minimal", "creat a; write a 0 2 x; fsync a; link a b", "- | a=x | a=x b=x | b=x",
	       "either name finds the content that was synced");
	expect("minimal", "mkdir d; syncfs; creat a; link a d/b; fsync d; write a 0 2 x",
	       "a= d/ d/b= | a=. d/ d/b=. | a=x d/ d/b=x | d/ d/b= | d/ d/b=. | d/ d/b=x",
	       "content is seen by the name that survived");
	expect("minimal", "mkdir d; creat a; write a 0 2 x; syncfs; link a d/b; unlink a; fsync .",
	       "d/ | d/ d/b=x", "an old file by its new name, after the old name went");
	expect("minimal", "tmpfile T; write T 0 2 x; fsync T; link T a", "- | a=x",
	       "a file without a name has its content when it gets one");
	expect("minimal", "tmpfile T; write T 0 2 x; link T a", "- | a= | a=. | a=x",
	       "or not, if it was not synced");
	expect("minimal", "tmpfile T; write T 0 2 x; chmod T 600; link T a; fsync .",
	       "a= | a=,600 | a=. | a=.,600 | a=x | a=x,600", "and its attributes");
	expect("ext4-ordered", "creat b; tmpfile T; link T a; fdatasync a",
	       "a= b=", "its first name makes it new");
}

static void test_content(void)
{
	expect("minimal", "creat a; fsync .; write a 0 4 x", "a= | a=.. | a=.x | a=x | a=x. | a=xx",
	       "units survive alone");
	expect("minimal", "creat a; write a 0 4 x; syncfs; write a 2 4 y",
	       "a=xx | a=xx. | a=xxy | a=xy | a=xy. | a=xyy", "over old ones and behind the end");
	expect("minimal", "creat a; fsync .; write a 0 1 x; write a 1 1 y", "a= | a=. | a=x",
	       "a unit is what it was after the write that survived");
	expect("minimal", "creat a; write a 0 4 x; syncfs; trunc a 2; write a 2 2 y",
	       "a=x | a=x. | a=xx | a=xy", "what is behind a cut needs the cut");
	expect("lazyfs", "creat a; write a 0 4 x; fsync a; trunc a 0", "a= | a=xx",
	       "a cut waits like data");
	expect("xfs", "creat b; creat a; write a 0 4 x; trunc a 2; fsync b", "a=. b= | a=x b=",
	       "a commit has sizes that were set; what was cut off does not come back");
	expect("xfs", "creat a; write a 0 2 x; syncfs; creat b; write a 0 2 y; write a 2 2 z",
	       "a=x | a=x b= | a=xz b= | a=y | a=y b= | a=yz b=",
	       "what is allocated comes after metadata, what is overwritten does not wait");
	expect("ext4-writeback", "creat b; syncfs; creat a; write a 0 2 x; creat d; fsync d",
	       "a=. b= d= | a=x b= d=", "a size may come without its data");
	expect("ext4-ordered", "creat b; syncfs; creat a; write a 0 2 x; creat d; fsync d",
	       "a= b= d= | a=x b= d=", "or not");
	expect("minimal", "creat a; write a 0 2 x; syncfs; write a 2 2 y", "a=x | a=x. | a=xy",
	       "without a sync, a file may end in zeros");
	expect("minimal", "creat a; write a 0 2 x; syncfs; write a 2 2 y; fsync a", "a=xy",
	       "with one it does not");
	expect("minimal", "creat a; fsync .; write a 0 2 x sync; write a 2 2 y dsync; close a",
	       "a=xy", "synchronous writes that have returned");
	expect("minimal", "creat a; write a 0 4 o; syncfs; write a 0 4 n sync",
	       "a=nn | a=no | a=on | a=oo", "while a synchronous write runs it is in flight");
	expect("minimal", "creat a; write a 0 4 o; syncfs; write a 0 4 n dsync; creat b",
	       "a=nn | a=nn b=", "and durable from then on");
	expect("ext4-ordered",
	       "creat b; creat a; write a 0 2 x dsync; chmod b 600; write a 2 2 y dsync; close a",
	       "a=xy b=,600", "each of them commits, if it takes space or gives a size");
	expect("ext4-ordered",
	       "creat b; creat a; write a 0 2 x dsync; chmod b 600; write a 0 2 y dsync; close a",
	       "a=y b= | a=y b=,600", "and does not, if it overwrites");
	expect("ext4-ordered", "creat b; creat a; write a 0 2 x dsync",
	       "- | a= b= | a=x b= | b=", "and does not before it returns");
	expect("ext4-ordered", "creat a; syncfs; chmod a 600; fdatasync a", "a= | a=,600",
	       "fdatasync does not commit for a mode");
	expect_unit("xfs", "creat a; write a 0 6 x; syncfs; write a 2 2 y; collapse a 0 1",
		    "a=xxx | a=xyx | a=yx", "content that moves is written first", 4096);
	expect_unit("minimal", "creat a; write a 0 6 x; syncfs; punch a 0 2",
		    "a=..x | a=.xx | a=x.x | a=xxx", "holes are like data", 4096);
}

/* What fdatasync commits for, and what a write in place may come without. */
static void test_space(void)
{
	static const char *const alike[] = { "ext4-ordered", "ext4-writeback", "xfs" };

	for (size_t i = 0; i < ARRAY_SIZE(alike); i++) {
		expect(alike[i],
		       "creat a; write a 0 2 x; syncfs; creat b; write a 0 2 y; fdatasync a",
		       "a=y | a=y b=", "fdatasync of what is overwritten leaves names behind");
		expect(alike[i], "creat a; write a 0 2 x; syncfs; creat b; write a 0 2 y; fsync a",
		       "a=y b=", "fsync does not, for the time has changed");
		expect(alike[i],
		       "creat a; write a 0 2 x; syncfs; creat b; write a 0 2 y; fdatasync a; fsync "
		       "a",
		       "a=y b=", "nor does it after fdatasync");
		expect(alike[i],
		       "creat a; write a 0 2 x; syncfs; write a 0 2 y; fdatasync a; creat d; fsync "
		       "d; creat b; fsync a",
		       "a=y b= d= | a=y d=", "unless a commit has brought the time before");
		expect(alike[i],
		       "creat a; write a 0 2 x; syncfs; creat b; write a 1 2 y; fdatasync a",
		       "a=xy b=", "a longer file is committed");
		expect(alike[i],
		       "creat a; syncfs; write a 0 2 x; write a 0 2 y; creat b; fdatasync a",
		       "a=y b=", "so is one that is overwritten before its space is durable");
		expect_unit(alike[i],
			    "creat a; trunc a 4; syncfs; creat b; write a 0 2 y; fdatasync a",
			    "a=y. b=", "space in a hole is committed", 4096);
		expect_unit(alike[i],
			    "creat a; write a 0 4 x; syncfs; punch a 0 1; syncfs; creat b; write a "
			    "0 2 y; fdatasync a",
			    "a=yx b=", "also in one that was punched", 4096);
		expect_unit(alike[i],
			    "creat a; write a 0 4 x; syncfs; creat b; punch a 0 1; fdatasync a",
			    "a=.x b=", "and so is the punching", 4096);
		expect_unit(alike[i],
			    "creat a; write a 0 4 x; syncfs; trunc a 2; trunc a 4; syncfs; creat "
			    "b; write a 2 2 y; fdatasync a",
			    "a=xy b=", "and what lies behind a cut", 4096);
		expect_unit(alike[i],
			    "creat a; write a 0 6 x; syncfs; creat b; collapse a 0 1; write a 2 2 "
			    "y; fdatasync a; creat d; write a 0 2 z; fdatasync a",
			    "a=zy b= | a=zy b= d=", "and what moved, but not after that", 4096);
	}
	expect("xfs", "creat a; syncfs; creat b; write a 0 2 x; write a 0 2 y",
	       "a= | a= b= | a=x b= | a=y b=",
	       "what is written over space that is not durable needs what that needs");
	expect("xfs", "creat a; syncfs; write a 0 2 x; creat b; write a 0 2 y",
	       "a= | a= b= | a=x | a=x b= | a=y | a=y b=", "and no more");
	expect("ext4-writeback",
	       "creat a; write a 0 1 x; syncfs; write a 1 1 y; creat b; fsync b; creat d; "
	       "fdatasync "
	       "a",
	       "a=x b= | a=x b= d=", "a size that a commit has is no reason for another");
	expect_unit("ext4-writeback",
		    "creat a; write a 0 2 x; syncfs; write a 2 2 y; creat b; fsync b; creat d; "
		    "fdatasync a",
		    "a=xy b= d=", "but space behind the end is", 4096);
	expect("btrfs", "creat a; write a 0 2 x; syncfs; creat b; write a 0 2 y; fdatasync a",
	       "a=y | a=y b=", "only names of what is synced");
	expect("minimal", "creat a; syncfs; creat b; write a 0 2 y; fdatasync a",
	       "a=y | a=y b=", "never any");
}

static void test_replacing(void)
{
	static const char by_rename[] =
		"creat a; write a 0 2 x; syncfs; creat b; write b 0 2 y; rename b a";
	static const char by_trunc[] =
		"creat a; write a 0 2 x; syncfs; trunc a 0; write a 0 2 y; close a; creat b";

	expect("ext4-ordered", by_rename, "a=x | a=x b= | a=x b=y | a=y",
	       "a file that replaces another has its data");
	expect("xfs", by_rename, "a= | a=x | a=x b= | a=x b=y | a=y", "or not");
	expect("ext4-ordered", by_trunc, "a= | a=x | a=y | a=y b=",
	       "a file that was emptied, written and closed has it with the next metadata");
	expect("xfs", by_trunc, "a= | a= b= | a=x | a=y | a=y b=", "or not");
	expect("ext4-ordered",
	       "creat a; write a 0 2 x; syncfs; trunc a 0; write a 0 2 y; close a; creat b; fsync "
	       "b",
	       "a=y b=", "and when that is durable, it is");
	expect("ext4-ordered",
	       "creat a; write a 0 2 x; syncfs; trunc a 0; write a 0 2 y; creat b; fsync b",
	       "a= b= | a=y b=", "while it is open it is not");
}

/* ---- a directory that was there before ---- */

static void write_file(const char *dir, const char *name, const char *text)
{
	struct err err = ERR_INIT;

	if (io_write_file(dir, name, text, strlen(text), 0, &err))
		printf("# %s\n", err.msg);
}

/* The texts of all states at the end of a trace. */
static void expect_base(const struct trace *t, const struct history_opts *opts, const char *want,
			const char *name)
{
	auto_strbuf got = STRBUF_INIT;
	auto_image base = IMAGE_INIT;
	auto_crash_state s = CRASH_STATE_INIT;
	struct survivors v = { 0 };
	struct texts texts = { 0 };
	struct err err = ERR_INIT;
	auto_crash e = NULL;
	struct history h;
	uint64_t point = t->events.n;

	if (history_new(t, opts, &h, &err)) {
		ok(false, "%s: %s", name, err.msg);
		return;
	}
	image_init(&base, h.units);
	struct crash_opts all = { .model = &model_posix,
				  .model_ctx = &h,
				  .base = &base,
				  .points = &point,
				  .n_points = 1,
				  .layers = CRASH_WITH_WHOLE,
				  .max_subset = UINT32_MAX };
	bool made = !crash_new(t, &all, &e, NULL);
	while (made && crash_next(e, &s)) {
		survivors_of(&h, &s, &v);
		struct reffs_state *built = history_build(&h, point, v.v.v, v.v.n);
		vec_push(&texts, state_text(built, 1));
		reffs_state_unref(built);
	}
	if (texts.n)
		qsort(texts.v, texts.n, sizeof(*texts.v), by_text);
	for (size_t i = 0; i < texts.n; i++) {
		if (!i || !streq(texts.v[i - 1], texts.v[i]))
			strbuf_addf(&got, "%s%s", i ? " | " : "", texts.v[i]);
	}
	is_s(strbuf_str(&got), want, "%s", name);
	for (size_t i = 0; i < texts.n; i++)
		free(texts.v[i]);
	vec_release(&texts);
	survivors_release(&v);
	history_release(&h);
}

static uint64_t ino_of(const char *dir, const char *name)
{
	auto_free char *path = xasprintf("%s/%s", dir, name);
	struct stat st = { 0 };

	if (lstat(path, &st))
		printf("# %s: %m\n", path);
	return st.st_ino;
}

/* The run sees a copy, whose numbers are others than those of the directory. */
static void test_base(void)
{
	char dirs[2][40] = { "/tmp/outage-app-base-XXXXXX", "/tmp/outage-app-copy-XXXXXX" };
	auto_trace t;
	struct err err = ERR_INIT;

	for (int i = 0; i < 2; i++) {
		if (!mkdtemp(dirs[i])) {
			ok(false, "a temporary directory: %m");
			return;
		}
		auto_free char *sub = xasprintf("%s/s", dirs[i]);
		auto_free char *link = xasprintf("%s/l", dirs[i]);
		ok(!mkdir(sub, 0700) && !symlink("old", link), "a directory");
		write_file(sub, i ? "x" : "f", "xyz");
		write_file(sub, i ? "f" : "x", "abc");
		write_file(sub, "f", "abc");
		write_file(sub, "x", "xyz");
	}
	auto_free char *copy_sub = xasprintf("%s/s", dirs[1]);
	auto_fd base = open(dirs[0], O_RDONLY | O_DIRECTORY);
	auto_fd copy = open(dirs[1], O_RDONLY | O_DIRECTORY);
	struct history_opts opts = { .profile = profile_find("minimal"),
				     .base = base,
				     .root_ino = ino_of(dirs[1], ".") };
	uint64_t f = ino_of(copy_sub, "f"), sub = ino_of(dirs[1], "s");

	trace_init(&t);
	is_i(history_lookups(copy, &t, &err), 0, "numbers of a copy");
	is_u(t.events.n, 4, "one for each name");
	expect_base(&t, &opts, "l@old s/ s/f=abc s/x=xyz", "the directory, before any call");
	calls_add(&t, (struct posix_event){ .op = POSIX_WRITE,
					    .ino = f,
					    .offset = 2,
					    .result = 2,
					    .payload = "DE",
					    .payload_len = 2 });
	expect_base(
		&t, &opts,
		"l@old s/ s/f=abDE s/x=xyz | l@old s/ s/f=abc s/x=xyz | l@old s/ s/f=abc. s/x=xyz",
		"a file of it is written");
	calls_add(&t, (struct posix_event){
			      .op = POSIX_LINK, .ino = f, .dir = opts.root_ino, .name = "n" });
	calls_add(&t,
		  (struct posix_event){ .op = POSIX_UNLINK, .ino = f, .dir = sub, .name = "f" });
	calls_add(&t, (struct posix_event){ .op = POSIX_FSYNCDIR, .ino = sub });
	expect_base(&t, &opts,
		    "l@old n=abDE s/ s/x=xyz | l@old n=abc s/ s/x=xyz | l@old n=abc. s/ s/x=xyz | "
		    "l@old s/ s/x=xyz",
		    "its old content comes with a new name, though the old one is gone");
	trace_clear(&t);
	calls_add(&t,
		  (struct posix_event){
			  .op = POSIX_UNLINK, .ino = ino_of(dirs[0], "l"), .dir = 7, .name = "l" });
	opts.base_numbers = true;
	opts.root_ino = 7;
	expect_base(&t, &opts, "l@old s/ s/f=abc s/x=xyz | s/ s/f=abc s/x=xyz",
		    "with its own numbers");
	for (int i = 0; i < 2; i++) {
		struct proc_result res = { 0 };
		const char *const argv[] = { "rm", "-rf", dirs[i], NULL };

		if (proc_run(&(struct proc_opts){ .argv = argv }, &res, NULL))
			printf("# cannot remove %s\n", dirs[i]);
		proc_result_release(&res);
	}
}

/* Where a file of the directory has a hole, a write takes space. */
static void test_base_holes(void)
{
	char dir[] = "/tmp/outage-app-holes-XXXXXX", data[8192] = { 0 };
	struct history_opts opts = { .profile = profile_find("ext4-ordered"),
				     .base_numbers = true };
	struct proc_result res = { 0 };
	const char *const argv[] = { "rm", "-rf", dir, NULL };

	if (!mkdtemp(dir)) {
		ok(false, "a temporary directory: %m");
		return;
	}
	auto_free char *path = xasprintf("%s/f", dir);
	auto_fd f = open(path, O_RDWR | O_CREAT, 0644);
	ok(pwrite(f, data, 4096, 0) == 4096 && !ftruncate(f, 8192), "a file that ends in a hole");
	opts.base = open(dir, O_RDONLY | O_DIRECTORY);
	opts.root_ino = ino_of(dir, ".");
	bool told = lseek(f, 0, SEEK_HOLE) == 4096;
	for (uint64_t at = 0; at < 8192; at += 4096) {
		bool in_place = !at || !told;
		auto_trace t;
		struct err err = ERR_INIT;
		struct history h;

		trace_init(&t);
		calls_add(&t, (struct posix_event){ .op = POSIX_CREATE,
						    .ino = 7,
						    .dir = opts.root_ino,
						    .name = "n" });
		calls_add(&t, (struct posix_event){ .op = POSIX_WRITE,
						    .ino = ino_of(dir, "f"),
						    .offset = at,
						    .result = 4096,
						    .payload = data,
						    .payload_len = 4096 });
		calls_add(&t,
			  (struct posix_event){ .op = POSIX_FDATASYNC, .ino = ino_of(dir, "f") });
		if (history_new(&t, &opts, &h, &err)) {
			ok(false, "a history: %s", err.msg);
			continue;
		}
		is_u(h.changes.n, 2, "a name and a write, at %" PRIu64, at);
		ok(change_is_durable(&h.changes.v[0], 3) == !in_place, "the write %s",
		   in_place ? "commits nothing" : "commits");
		ok(change_is_durable(&h.changes.v[1], 3), "and is durable");
		history_release(&h);
	}
	close(opts.base);
	if (proc_run(&(struct proc_opts){ .argv = argv }, &res, NULL))
		printf("# cannot remove %s\n", dir);
	proc_result_release(&res);
}

/* ---- the comparison ---- */

/* Two files that are written over and over, while names and attributes wait. */
static void random_overwrite(struct rng *rng, char *text, size_t size)
{
	static const char *const verbs[] = { "write",	   "write",	"write",     "write dsync",
					     "write sync", "fdatasync", "fdatasync", "fsync",
					     "chmod",	   "trunc",	"punch",     "rename",
					     "creat",	   "collapse" };
	const char *verb = verbs[rng_below(rng, ARRAY_SIZE(verbs))];
	const char *p = rng_below(rng, 3) ? "a" : "d/b";
	unsigned x = (unsigned)rng_below(rng, 4), y = (unsigned)rng_below(rng, 2);
	char letter = (char)('e' + rng_below(rng, 20));

	if (!strncmp(verb, "write", 5))
		snprintf(text, size, "write %s %u %u %c %s", p, x, y + 1, letter, verb + 5);
	else if (streq(verb, "trunc"))
		snprintf(text, size, "trunc %s %u", p, x + y);
	else if (streq(verb, "punch") || streq(verb, "collapse"))
		snprintf(text, size, "%s %s %u 1", verb, p, y);
	else if (streq(verb, "chmod"))
		snprintf(text, size, "chmod d 7%o0", x);
	else if (streq(verb, "creat"))
		snprintf(text, size, "creat %s", y ? "b" : "d/a");
	else if (streq(verb, "rename"))
		snprintf(text, size, "rename b d/a");
	else
		snprintf(text, size, "%s %s", verb, p);
}

static void random_call(struct rng *rng, char *text, size_t size)
{
	static const char *const paths[] = { "a", "b", "d", "d/a", "d/b", "a", "b", "T" };
	static const char *const verbs[] = { "creat",  "creat",	    "mkdir",  "write",	"write",
					     "write",  "trunc",	    "rename", "link",	"unlink",
					     "rmdir",  "tmpfile",   "chmod",  "xattr",	"close",
					     "fsync",  "fdatasync", "fsync",  "syncfs", "swap",
					     "writes", "symlink" };
	const char *verb = verbs[rng_below(rng, ARRAY_SIZE(verbs))];
	const char *p = paths[rng_below(rng, ARRAY_SIZE(paths))];
	const char *q = paths[rng_below(rng, ARRAY_SIZE(paths) - 1)];
	unsigned x = (unsigned)rng_below(rng, 4), y = (unsigned)rng_below(rng, 4);
	char letter = (char)('e' + rng_below(rng, 20));

	if (streq(verb, "write"))
		snprintf(text, size, "write %s %u %u %c", p, x, y + 1, letter);
	else if (streq(verb, "writes"))
		snprintf(text, size, "write %s %u %u %c %s", p, x, y + 1, letter,
			 x & 1 ? "sync" : "dsync");
	else if (streq(verb, "trunc"))
		snprintf(text, size, "trunc %s %u", p, x + y > 3 ? 0 : x);
	else if (streq(verb, "chmod"))
		snprintf(text, size, "chmod %s 6%o0", p, x);
	else if (streq(verb, "xattr"))
		snprintf(text, size, "xattr %s %c", p, x ? letter : '-');
	else if (streq(verb, "fsync"))
		snprintf(text, size, "fsync %s", x ? p : ".");
	else if (streq(verb, "symlink"))
		snprintf(text, size, "symlink %s target", p);
	else
		snprintf(text, size, "%s %s %s", verb, p, q);
}

static bool same_hashes(const struct hashes *a, const struct hashes *b)
{
	return a->n == b->n && (!a->n || !memcmp(a->v, b->v, a->n * sizeof(*a->v)));
}

/* The state in which everything survives is what the application saw. */
static bool all_is_live(const struct world *w)
{
	struct history h;
	struct hash128 hash[2];
	struct naive x = { 0 };
	auto_hashset seen = HASHSET_INIT;
	struct vec_of(struct survivor) v = { 0 };
	int open[ATOMS], n = atoms_open(w, w->trace.events.n, open);
	uint32_t from, to;
	bool fresh;

	if (n > 31 || make_history(w, &h))
		return n > 31;
	x.r = reffs_new(NULL);
	x.empty = reffs_save(x.r);
	for (int i = 0; i < OBJECTS; i++)
		x.data[i] = xmalloc(FILE_MAX);
	hash[0] = naive_state(&x, w, w->trace.events.n, open, UINT32_MAX, &seen, &fresh);
	history_window(&h, w->trace.events.n, &from, &to);
	for (uint32_t i = from; i < to; i++)
		if (!change_is_durable(&h.changes.v[i], w->trace.events.n))
			vec_push(&v, (struct survivor){ i, NULL });
	struct reffs_state *s = history_build(&h, w->trace.events.n, v.v, v.n);
	hash[1] = reffs_state_hash(s);
	reffs_state_unref(s);
	vec_release(&v);
	for (int i = 0; i < OBJECTS; i++)
		free(x.data[i]);
	reffs_state_unref(x.empty);
	reffs_free(x.r);
	history_release(&h);
	return hash_eq(hash[0], hash[1]);
}

static bool compare_at(const struct world *w, uint64_t point, int most, uint64_t *states)
{
	struct hashes naive = { 0 }, engine = { 0 };
	int open[ATOMS];
	bool same = true;

	if (atoms_open(w, point, open) > most)
		return true;
	naive_states(w, point, &naive);
	same = engine_states(w, point, true, &engine, NULL);
	*states += naive.n;
	if (!same)
		printf("# at %" PRIu64 ": a state does not replay, or an event was not known\n",
		       point);
	if (!same_hashes(&naive, &engine)) {
		printf("# at %" PRIu64 ": %zu states, want %zu\n", point, engine.n, naive.n);
		same = false;
	}
	vec_release(&naive);
	vec_release(&engine);
	return same;
}

/* How often the hash was known without the state; how often not. */
struct outlined {
	uint64_t told, untold;
};

/* At all points, to and fro between them, with one outline. */
static bool outlines(const struct world *w, struct outlined *count)
{
	struct history h;
	auto_image base = IMAGE_INIT;
	auto_crash_state s = CRASH_STATE_INIT;
	struct crash_points points = { 0 };
	struct survivors v = { 0 };
	struct hash128 hash;
	auto_crash e = NULL;
	bool same = true;

	if (make_history(w, &h))
		return false;
	struct outline *o = outline_new(&h);
	image_init(&base, h.units);
	crash_points_all(&w->trace, &points);
	struct crash_opts opts = { .model = &model_posix,
				   .model_ctx = &h,
				   .base = &base,
				   .points = points.v,
				   .n_points = points.n,
				   .layers = CRASH_WITH_WHOLE | CRASH_WITH_TORN,
				   .max_subset = 2,
				   .tear_unit = 1,
				   .budget = 400,
				   .sample = 100 };
	bool made = !crash_new(&w->trace, &opts, &e, NULL);
	while (made && same && crash_next(e, &s)) {
		survivors_of(&h, &s, &v);
		bool told = outline_hash(o, s.point, v.v.v, v.v.n, &hash);
		struct reffs_state *built = history_build(&h, s.point, v.v.v, v.v.n);

		same = !told || hash_eq(hash, reffs_state_hash(built));
		if (!same)
			printf("# %s: another hash than that of %s\n", strbuf_str(&s.id),
			       state_text(built, w->unit));
		count->told += told;
		count->untold += !told;
		reffs_state_unref(built);
	}
	crash_points_release(&points);
	survivors_release(&v);
	outline_free(o);
	history_release(&h);
	return made && same;
}

static bool compare_run(const struct profile *p, uint64_t seed, bool over, uint64_t *states,
			struct outlined *outlined)
{
	auto_strbuf said = STRBUF_INIT;
	struct world w;
	struct rng rng;
	bool same = true;
	char text[64];

	rng_init(&rng, seed);
	world_init(&w, p, rng_below(&rng, 2) ? 512 : 4096);
	if (over || rng_below(&rng, 2)) {
		calls(&w, "mkdir d; creat a; write a 0 3 x; creat d/b; syncfs");
		strbuf_adds(&said, "mkdir d; creat a; write a 0 3 x; creat d/b; syncfs; ");
	}
	for (int i = 0; i < 40 && w.trace.events.n < 14; i++) {
		if (over)
			random_overwrite(&rng, text, sizeof(text));
		else
			random_call(&rng, text, sizeof(text));
		if (call(&w, text))
			strbuf_addf(&said, "%s; ", text);
	}
	for (uint64_t point = 1; same && point < w.trace.events.n; point++)
		same = compare_at(&w, point, 9, states);
	same = same && compare_at(&w, w.trace.events.n, 12, states);
	same = same && outlines(&w, outlined);
	if (same && !all_is_live(&w)) {
		printf("# with everything it is not what was seen\n");
		same = false;
	}
	if (!same)
		printf("# unit %" PRIu64 ", seed %" PRIu64 ": %s\n", w.unit, seed,
		       strbuf_str(&said));
	world_release(&w);
	return same;
}

static void test_random(void)
{
	const struct profile *p;

	for (size_t i = 0; (p = profile_at(i)); i++) {
		uint64_t states = 0, seed = 1, wrong = 0;
		struct outlined o = { 0 };

		for (; seed <= 600 && wrong < 3; seed++)
			wrong += !compare_run(p, seed, seed % 2, &states, &o);
		ok(!wrong && states > 500,
		   "%s: the same states as a naive enumeration (%" PRIu64 ")", p->name, states);
		ok(!wrong && o.told > 1000 && o.told > 9 * o.untold,
		   "%s: the hash of most is known without them (%" PRIu64 ", not of %" PRIu64 ")",
		   p->name, o.told, o.untold);
	}
}

/* ---- parts of one call ---- */

static uint64_t write_of(struct trace *t, uint32_t tid, uint64_t ino, uint64_t offset, size_t len)
{
	auto_free char *data = xcalloc(1, len);

	calls_add(t, (struct posix_event){ .op = POSIX_WRITE,
					   .tid = tid,
					   .ino = ino,
					   .offset = offset,
					   .result = (int64_t)len,
					   .payload = data,
					   .payload_len = len });
	return t->events.n - 1;
}

static void test_calls(void)
{
	auto_trace t;
	struct history h = { .trace = &t };

	trace_init(&t);
	uint64_t a = write_of(&t, 1, 7, 100, 3996), b = write_of(&t, 1, 7, 4096, 5000);
	uint64_t c = write_of(&t, 1, 7, 9096, 100);
	ok(history_same_call(&h, a, b), "to the end of a page, and on");
	ok(!history_same_call(&h, b, c) && !history_same_call(&h, a, c),
	   "what does not end there is another call");
	ok(history_same_call(&h, c, c) && !history_same_call(&h, b, a), "one is itself");
	a = write_of(&t, 1, 7, 8192, 4096);
	b = write_of(&t, 1, 7, 12288, 4096);
	ok(!history_same_call(&h, a, b), "whole pages are calls of their own");
	a = write_of(&t, 1, 7, 4000, 96);
	uint64_t other = write_of(&t, 2, 8, 0, 10);
	b = write_of(&t, 1, 7, 4096, 1 << 20);
	c = write_of(&t, 1, 7, 4096 + (1 << 20), 10);
	ok(history_same_call(&h, a, c) && !history_same_call(&h, a, other),
	   "three parts, and another thread between");
	a = write_of(&t, 1, 7, 100, 3996);
	calls_add(&t, (struct posix_event){ .op = POSIX_FSYNC, .tid = 1, .ino = 7 });
	b = write_of(&t, 1, 7, 4096, 10);
	ok(!history_same_call(&h, a, b), "not with a sync between");
	a = write_of(&t, 1, 7, 100, 3996);
	b = write_of(&t, 1, 9, 4096, 10);
	ok(!history_same_call(&h, a, b), "nor in another file");
}

int main(void)
{
	test_names();
	test_links();
	test_content();
	test_space();
	test_replacing();
	test_base();
	test_base_holes();
	test_calls();
	test_random();
	return done_testing();
}
