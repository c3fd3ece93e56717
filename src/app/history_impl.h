/* SPDX-License-Identifier: MIT */
/* history_impl.h - declarations that the history_*.c files share. */
#ifndef APP_HISTORY_IMPL_H
#define APP_HISTORY_IMPL_H

#include "app/history.h"
#include "app/numbers.h"
#include "fs/pending.h"

struct history_maker {
	struct history *h;
	struct numbers objects;	 /* by inode number of the trace */
	struct pending *pending; /* changes of names and attributes; `number` is the change's */
	uint64_t event;
	uint64_t commit;	       /* of all metadata: the number of the next, from 1 on */
	struct vec_of(uint32_t) sizes; /* changes of size that are not durable, of all files */
	/*
	 * Files that were truncated to nothing, written and closed: what they held then comes with
	 * the next metadata, where the profile says so.
	 */
	struct vec_of(struct flushing {
		uint64_t object;
		uint32_t before; /* the first change after the close */
	}) flushing;
	struct vec_of(uint32_t) needs; /* of the change at hand */
};

/* Drops what is kept of the last state built, beyond so many survivors. */
void history_forget_built(struct history *h, size_t beyond);
/*
 * The durable state when the first `point` events have happened; borrowed. How often anything had
 * become so by then says which changes are durable; what is seen of them may be the same.
 */
struct reffs_state *history_durable(struct history *h, uint64_t point, size_t *times);
/*
 * A state in which an object is what some changes of its content and attributes make of it, in this
 * order. The object starts as in `from`, if it is there; or if that is NULL, as it was made.
 */
struct reffs_state *history_object_state(struct history *h, uint64_t point,
					 struct reffs_state *from, uint64_t object,
					 const struct survivor *parts, size_t n);

static inline struct object *object_of(struct history *h, uint64_t object)
{
	assert(object >= REFFS_ROOT_INO && object - REFFS_ROOT_INO < h->objects.n);
	return &h->objects.v[object - REFFS_ROOT_INO];
}

/* A new object; its number. */
uint64_t maker_new_object(struct history_maker *m, const struct object *o);

/* The next change needs another one; all content of an object that was there before change
 * `before`; what files held that were emptied, written and closed. (history_changes.c) */
void maker_need(struct history_maker *m, uint32_t change);
void maker_need_content(struct history_maker *m, uint64_t object, uint32_t before);
void maker_need_flushed(struct history_maker *m);

#define CHANGE_AFTER_ALL UINT32_MAX /* for change.after: all metadata before the change itself */

/* Adds a change, with what it needs; its number. The second is for names and attributes. */
uint32_t maker_add(struct history_maker *m, struct change c);
uint32_t maker_add_metadata(struct history_maker *m, struct change c);

/* An object, or everything, was synced; the last descriptor of an open was closed. */
void maker_sync(struct history_maker *m, uint64_t object, bool data_only);
void maker_sync_all(struct history_maker *m);
void maker_closed(struct history_maker *m, uint64_t object);

/* Calls that change content (history_content.c); false if the file cannot be changed like that. */
bool maker_write(struct history_maker *m, uint64_t object, const void *data, uint64_t from,
		 uint64_t len);
bool maker_truncate(struct history_maker *m, uint64_t object, uint64_t size);
bool maker_allocate(struct history_maker *m, uint64_t object, int mode, uint64_t from,
		    uint64_t len);
/* The live inode of an object's content, made if there is none. */
uint64_t maker_live(struct history *h, uint64_t object);

/* Loads what was there before the first call (history_base.c). */
int maker_load(struct history_maker *m, const struct history_opts *opts, struct err *err)
	must_check;
/* Goes through all calls (history_calls.c). */
int maker_follow(struct history_maker *m, struct err *err) must_check;

#endif
