/* SPDX-License-Identifier: MIT */
/*
 * side_target.c - a target as a side: a file system of this kernel, or a FUSE server.
 *
 * A saved state is an image of the disk, which shares every page that did not change. A journaling
 * file system is saved while it is mounted: after syncfs(2) and when nothing is in flight any more,
 * the disk holds all of it, and the next mount replays the journal. Others are unmounted for it.
 * Going back is unmounting, putting the pages back that differ, and mounting; so it is done only
 * when it has to be.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "check/check.h"
#include "explore/side.h"
#include "workload/exec.h"

enum { FILL_BLOCK = 64 << 10, ROOM_POLL_MS = 20, ROOM_WAIT_MS = 3000 };

struct target_side {
	struct side base;
	struct target t;
	bool unmounts; /* to be saved */
	uint64_t room; /* free bytes of a new file system */
	bool around;   /* unmounted and mounted again after every step */
};
static_assert(sizeof(struct target_side) <= 4096, "side_open() makes it");

struct side_state {
	struct image image;
};

static struct target_side *own(struct side *s)
{
	return container_of(s, struct target_side, base);
}

/* ---- mounting ---- */

/* 1 if it cannot be mounted. */
static int mount_it(struct target_side *o, struct strbuf *said, struct err *err)
{
	int rc = target_recover(&o->t, said, err);

	if (!rc)
		rc = target_mount(&o->t, said, err);
	o->base.counts.mounts++;
	return rc;
}

static int unmount_it(struct target_side *o, bool clean, struct err *err)
{
	return target_is_mounted(&o->t) ? target_umount(&o->t, clean, err) : 0;
}

static int remount(void *ctx, int *root)
{
	struct target_side *o = ctx;
	auto_strbuf said = STRBUF_INIT;
	struct err err = ERR_INIT;
	int rc = unmount_it(o, true, &err);

	if (!rc)
		rc = mount_it(o, &said, &err);
	if (rc)
		return rc < 0 ? rc : -EIO;
	*root = o->t.root;
	return 0;
}

/* ---- a side ---- */

/* No side can go on with a system that died; the log of its kernel is the error. */
static int dead(struct target_side *o, int rc, struct err *err)
{
	auto_strbuf log = STRBUF_INIT;

	if (rc < 0)
		err_context(err, "%s", o->base.spec);
	if (rc <= 0)
		return rc;
	target_kernel_log(&o->t, &log);
	return err_set(err, -EIO, "%s: its kernel died: %s", o->base.spec, strbuf_str(&log));
}

static int measure_room(struct target_side *o, uint64_t *out, struct err *err)
{
	return dead(o, target_room(&o->t, out, err), err);
}

static int open_target(struct side *s, const struct side_opts *opts, struct err *err)
{
	struct target_side *o = own(s);
	auto_image fresh = IMAGE_INIT;
	auto_strbuf said = STRBUF_INIT;
	int rc = target_open(&opts->target, &o->t, err);

	if (rc)
		return rc;
	s->differences = differences_of(target_fs_name(&o->t));
	o->around = opts->strategy == STRATEGY_REMOUNT;
	const struct difference *save = differences_find(s->differences, DIFFER_SAVE);
	o->unmounts = save != NULL;
	s->saving = o->unmounts || o->around ? SAVING_UNMOUNTS : SAVING_CHEAP;
	if (save)
		s->note = save->reason;
	rc = target_mkfs(&o->t, &fresh, err);
	if (!rc)
		rc = disk_load(o->t.disk, &fresh, err);
	if (!rc)
		rc = mount_it(o, &said, err);
	/* A file system that was mounted once writes less when it is mounted again. */
	if (!rc)
		rc = unmount_it(o, true, err);
	if (!rc)
		rc = mount_it(o, &said, err);
	if (rc > 0)
		rc = err_set(err, -EIO, "a new %s cannot be mounted: %s", o->t.ops->name,
			     strbuf_str(&said));
	return rc ? rc : measure_room(o, &o->room, err);
}

static void close_target(struct side *s)
{
	struct target_side *o = own(s);

	if (o->t.ops)
		target_close(&o->t);
}

static void begin(struct side *s, const struct workload *w)
{
	struct target_side *o = own(s);
	struct exec_env env = { .ctx = o, .remount = remount, .drop_caches = exec_drop_here };

	struct err err = ERR_INIT;
	int rc = target_end(&o->t, &err);

	if (!rc)
		rc = target_begin(&o->t, w, &env, &err);
	if (rc)
		log_warn("%s: %s", s->spec, err.msg);
}

static int64_t perform(struct side *s, size_t i)
{
	struct target_side *o = own(s);
	struct err err = ERR_INIT;
	int64_t result = -EIO;

	/* Where the whole system died of it, nothing is mounted when the step is settled. */
	if (target_is_mounted(&o->t) && target_op(&o->t, i, &result, &err) < 0)
		log_warn("%s: %s", s->spec, err.msg);
	return result;
}

static int settle(struct side *s, struct strbuf *said, struct err *err)
{
	struct target_side *o = own(s);
	int rc = 0;

	if (!target_is_mounted(&o->t)) {
		strbuf_adds(said, "it could not be mounted again\n");
		return 1;
	}
	if (o->around) {
		rc = unmount_it(o, true, err);
		if (!rc)
			rc = mount_it(o, said, err);
	}
	return rc;
}

static int tree(struct side *s, const struct tree_opts *opts, struct tree *out, struct err *err)
{
	struct target_side *o = own(s);

	return dead(o, target_walk(&o->t, opts, out, err), err);
}

/* The content of the disk, when all that was sent there has arrived. */
static int snapshot(struct target_side *o, struct image *out, struct err *err)
{
	int rc = disk_start(o->t.disk, NULL, err);

	if (!rc)
		rc = disk_stop(o->t.disk, err);
	if (!rc)
		image_snapshot(disk_image(o->t.disk), out);
	return rc;
}

static int save(struct side *s, struct side_state **out, struct err *err)
{
	struct target_side *o = own(s);
	auto_strbuf said = STRBUF_INIT;
	auto_free struct side_state *state = xcalloc(1, sizeof(*state));
	int rc = 0;

	s->counts.saves++;
	if (o->unmounts || o->around)
		rc = unmount_it(o, true, err);
	else
		rc = dead(o, target_sync(&o->t, err), err);
	if (!rc)
		rc = snapshot(o, &state->image, err);
	if (rc == -ETIMEDOUT && target_is_mounted(&o->t)) {
		/* The end of some request was not seen; unmounted, all of them have ended. */
		err_clear(err);
		rc = unmount_it(o, true, err);
		if (!rc)
			rc = snapshot(o, &state->image, err);
	}
	if (!rc && !target_is_mounted(&o->t))
		rc = mount_it(o, &said, err);
	if (rc > 0) {
		image_release(&state->image);
		rc = err_set(err, -EIO, "%s cannot be mounted again: %s", s->spec,
			     strbuf_str(&said));
	}
	if (!rc)
		*out = steal(state);
	return rc;
}

static int restore(struct side *s, struct side_state *state, struct strbuf *said, struct err *err)
{
	struct target_side *o = own(s);
	int rc = unmount_it(o, false, err);

	s->counts.restores++;
	if (!rc)
		rc = disk_load(o->t.disk, &state->image, err);
	return rc ? rc : mount_it(o, said, err);
}

static void drop(struct side *s, struct side_state *state)
{
	(void)s;
	image_release(&state->image);
	free(state);
}

static int from_image(struct side *s, const struct image *img, struct side_state **out,
		      struct err *err)
{
	const struct image *base = side_image(s, s->base);

	if (img->size != base->size)
		return err_set(err, -EINVAL, "the image has %llu bytes, and the disk of %s %llu",
			       llu(img->size), s->spec, llu(base->size));
	*out = xcalloc(1, sizeof(**out));
	image_snapshot(img, &(*out)->image);
	return 0;
}

/* Some free what was removed in the background, and neither syncfs nor statfs waits for that. */
static int empty(struct side *s, const struct tree *seen, struct findings *out, uint64_t *missing,
		 struct err *err)
{
	const struct difference *allowed = differences_find(s->differences, DIFFER_ROOM);
	struct target_side *o = own(s);
	uint64_t left = 0;
	int rc = dead(o, target_usable(&o->t, seen, out, err), err);

	for (unsigned ms = 0; !rc; ms += ROOM_POLL_MS) {
		rc = measure_room(o, &left, err);
		*missing = o->room > left ? o->room - left : 0;
		if (*missing <= (allowed ? allowed->bytes : 0) || ms >= ROOM_WAIT_MS)
			break;
		util_sleep_ms(ROOM_POLL_MS);
	}
	return rc;
}

static int room(struct side *s, uint64_t *out, struct err *err)
{
	return measure_room(own(s), out, err);
}

static int fill(struct side *s, uint64_t bytes, struct err *err)
{
	struct target_side *o = own(s);
	int rc = dead(o, target_fill(&o->t, SIDE_FILLER, bytes, err), err);

	if (rc)
		return rc;
	rc = measure_room(o, &o->room, err);
	if (rc)
		return rc;
	/* From now on this is what a new file system looks like. */
	s->ops->drop(s, s->base);
	s->base = NULL;
	return s->ops->save(s, &s->base, err);
}

static bool kernel_log(struct side *s, struct strbuf *out)
{
	return target_kernel_log(&own(s)->t, out);
}

const struct side_ops side_target = {
	.name = "target",
	.help = "a file system that can be mounted",
	.open = open_target,
	.close = close_target,
	.begin = begin,
	.op = perform,
	.settle = settle,
	.tree = tree,
	.save = save,
	.restore = restore,
	.drop = drop,
	.from_image = from_image,
	.empty = empty,
	.room = room,
	.fill = fill,
	.kernel_log = kernel_log,
};

const char *const *side_ignore(const struct side *s)
{
	if (s->ops != &side_target)
		return NULL;
	return container_of(s, const struct target_side, base)->t.ops->ignore;
}

const struct image *side_image(const struct side *s, const struct side_state *state)
{
	return s->ops == &side_target ? &state->image : NULL;
}

const struct target *side_target_of(const struct side *s)
{
	if (s->ops != &side_target)
		return NULL;
	return &container_of(s, const struct target_side, base)->t;
}
