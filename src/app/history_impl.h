/* SPDX-License-Identifier: MIT */
/* history_impl.h - declarations that the history_*.c files share. */
#ifndef APP_HISTORY_IMPL_H
#define APP_HISTORY_IMPL_H

#include "app/history.h"
#include "core/u64map.h"
#include "fs/pending.h"

/*
 * Objects by inode number, which file systems use again: the last one counts. No object has number
 * 0, and no inode.
 */
struct objects_by_ino {
	struct u64map places;
	struct vec_of(uint64_t) objects;
};

struct history_maker {
	struct history *h;
	struct objects_by_ino objects; /* by inode number of the trace */
	struct pending *pending; /* changes of names and attributes, by number of the change */
	uint64_t event;
	uint64_t commit;	       /* of all metadata: the number of the next one, from 1 on */
	struct vec_of(uint32_t) sizes; /* changes of size that are not durable, in all files */
	/*
	 * Files that were truncated to nothing, written and closed: the content at that time
	 * becomes durable with the next metadata, if the profile says so.
	 */
	struct vec_of(struct flushing {
		uint64_t object;
		uint32_t before; /* the first change after the close */
	}) flushing;
	struct vec_of(uint32_t) needs; /* of the current change */
};

/* Drops the kept states of the last build that have more survivors than this. */
void history_forget_built(struct history *h, size_t beyond);
/*
 * Returns the durable state when the first `point` events have happened; borrowed. `times` counts
 * the events that made something durable by then, and so identifies the set of durable changes; the
 * state may be the same for two sets.
 */
struct reffs_state *history_durable(struct history *h, uint64_t point, size_t *times);
/*
 * Makes a state with an object to which some changes of its content and attributes are applied, in
 * this order. The object starts as in `from`, if it exists there; or, if `from` is NULL, as
 * created.
 */
struct reffs_state *history_object_state(struct history *h, uint64_t point,
					 struct reffs_state *from, uint64_t object,
					 const struct survivor *parts, size_t n);

static inline struct object *object_of(struct history *h, uint64_t object)
{
	assert(object >= REFFS_ROOT_INO && object - REFFS_ROOT_INO < h->objects.n);
	return &h->objects.v[object - REFFS_ROOT_INO];
}

/* Returns 0 if there is none. */
static inline uint64_t objects_by_ino_get(const struct objects_by_ino *t, uint64_t ino)
{
	uint32_t i = u64map_get(&t->places, ino);

	return i == U64MAP_NONE ? 0 : t->objects.v[i];
}

void objects_by_ino_set(struct objects_by_ino *t, uint64_t ino, uint64_t object);
void objects_by_ino_release(struct objects_by_ino *t);

/* Adds an object, and returns its number. */
uint64_t maker_new_object(struct history_maker *m, const struct object *o);

/*
 * Add to the needs of the next change: another change; all content of an object before change
 * `before`; the content of files that were emptied, written and closed. (history_changes.c)
 */
void maker_need(struct history_maker *m, uint32_t change);
void maker_need_content(struct history_maker *m, uint64_t object, uint32_t before);
void maker_need_flushed(struct history_maker *m);

#define CHANGE_AFTER_ALL UINT32_MAX /* for change.after: all metadata before the change itself */

/* Adds a change with its needs, and returns its number. The second is for names and attributes. */
uint32_t maker_add(struct history_maker *m, struct change c);
uint32_t maker_add_metadata(struct history_maker *m, struct change c);

/* Handle the sync of an object or of everything, and the close of an open's last descriptor. */
void maker_sync(struct history_maker *m, uint64_t object, bool data_only);
void maker_sync_all(struct history_maker *m);
void maker_closed(struct history_maker *m, uint64_t object);

/* Handle calls that change content (history_content.c); false if the file does not allow it. */
bool maker_write(struct history_maker *m, uint64_t object, const void *data, uint64_t from,
		 uint64_t len);
bool maker_truncate(struct history_maker *m, uint64_t object, uint64_t size);
bool maker_allocate(struct history_maker *m, uint64_t object, int mode, uint64_t from,
		    uint64_t len);
/* Returns the live inode of an object's content, made if there is none. */
uint64_t maker_live(struct history *h, uint64_t object);

/* Loads the directory before the first call (history_base.c). */
int maker_load(struct history_maker *m, const struct history_opts *opts, struct err *err)
	must_check;
/* Goes through all calls (history_calls.c). */
int maker_follow(struct history_maker *m, struct err *err) must_check;

#endif
