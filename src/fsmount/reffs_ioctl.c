/* SPDX-License-Identifier: MIT */
/* reffs_ioctl.c - performs the calls of <outage/reffs.h>. */
#include "fsmount/reffs_server.h"

#include <errno.h>
#include <outage/reffs.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"

/*
 * States are carried from process to process in files, with the numbers of their inodes; and the
 * kernel knows inodes by number. So that no number ever means two inodes, each process counts from
 * a start of its own, and from another one after it has loaded states of other processes.
 */
void reffs_new_numbers(struct reffs_mount *m)
{
	uint32_t place = 0;

	if (getrandom(&place, sizeof(place), GRND_NONBLOCK) != sizeof(place))
		place = (uint32_t)getpid();
	reffs_skip_inos(m->r, ((uint64_t)(place >> 3) + 1) << 32);
}

static int save(struct reffs_mount *m, const struct outage_reffs_key *k)
{
	reffs_mount_lock(m);
	struct reffs_state *s = reffs_save(m->r);
	reffs_pool_put(&m->pool, k->key, s);
	reffs_state_unref(s);
	reffs_mount_unlock(m);
	return 0;
}

/* The inodes and files that the kernel has to forget, and the listings that it has to finish. */
struct stale {
	struct reffs_mount *m;
	struct vec_of(uint64_t) inodes, files, listings;
};

static void note_stale(void *ctx, uint64_t ino)
{
	struct stale *s = ctx;

	if (reffs_is_open(s->m, ino))
		vec_push(&s->files, ino);
	else
		vec_push(&s->inodes, ino);
}

static void note_listings(struct stale *s)
{
	for (struct reffs_listing *l = s->m->listings; l; l = l->next) {
		if (l->plus)
			vec_push(&s->listings, l->ino);
		l->plus = false;
	}
}

/* Makes the kernel forget: S2, S4, S5. */
static void forget(struct stale *s)
{
	struct reffs_mount *m = s->m;

	for (size_t i = 0; i < s->listings.n; i++)
		reffs_kernel_await_listing(m, s->listings.v[i]);
	reffs_kernel_forget_names(m);
	for (size_t i = 0; i < s->inodes.n; i++)
		reffs_kernel_forget_attr(m, s->inodes.v[i]);
	for (size_t i = 0; i < s->files.n; i++)
		reffs_kernel_forget_file(m, s->files.v[i]);
}

static int restore(struct reffs_mount *m, const struct outage_reffs_key *k)
{
	struct stale stale = { .m = m };

	reffs_mount_lock(m);
	struct reffs_state *s = reffs_pool_get(&m->pool, k->key);
	if (s) {
		vfs_restore(m->r, s, note_stale, &stale);
		if (!(k->flags & OUTAGE_REFFS_KEEP))
			reffs_pool_drop(&m->pool, k->key);
		note_listings(&stale);
	}
	reffs_mount_unlock(m);
	if (s)
		forget(&stale);
	vec_release(&stale.inodes);
	vec_release(&stale.files);
	vec_release(&stale.listings);
	return s ? 0 : -ENOENT;
}

static int drop(struct reffs_mount *m, const struct outage_reffs_key *k)
{
	reffs_mount_lock(m);
	bool there = reffs_pool_get(&m->pool, k->key);
	reffs_pool_drop(&m->pool, k->key);
	reffs_mount_unlock(m);
	return there ? 0 : -ENOENT;
}

static int pickle(struct reffs_mount *m, const struct outage_reffs_file *f, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	uint64_t key = f->key;

	reffs_mount_lock(m);
	int rc = reffs_pickle(&m->pool, f->flags & OUTAGE_REFFS_ALL ? NULL : &key, &text, err);
	reffs_mount_unlock(m);
	return rc ? rc : io_write_file(NULL, f->path, text.buf, text.len, 0, err);
}

static int load(struct reffs_mount *m, const struct outage_reffs_file *f, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = io_slurp(f->path, REFFS_PICKLE_MAX, &text, err);

	if (rc)
		return rc;
	reffs_mount_lock(m);
	rc = reffs_load(m->r, &m->pool, strbuf_str(&text), text.len, err);
	if (!rc)
		reffs_new_numbers(m);
	reffs_mount_unlock(m);
	return rc ? err_context(err, "%s", f->path) : 0;
}

static int with_key(struct reffs_mount *m, unsigned cmd, const void *in)
{
	struct outage_reffs_key k;

	memcpy(&k, in, sizeof(k));
	unsigned allowed = cmd == OUTAGE_REFFS_RESTORE ? OUTAGE_REFFS_KEEP : 0;
	if (k.reserved || (k.flags & ~allowed))
		return -EINVAL;
	if (cmd == OUTAGE_REFFS_SAVE)
		return save(m, &k);
	return cmd == OUTAGE_REFFS_RESTORE ? restore(m, &k) : drop(m, &k);
}

static int with_file(struct reffs_mount *m, unsigned cmd, const void *in)
{
	auto_free struct outage_reffs_file *f = xmalloc(sizeof(*f));
	struct err err = ERR_INIT;
	int rc;

	memcpy(f, in, sizeof(*f));
	unsigned allowed = cmd == OUTAGE_REFFS_PICKLE ? OUTAGE_REFFS_ALL : 0;
	if (f->reserved || (f->flags & ~allowed) || f->path[0] != '/' ||
	    !memchr(f->path, 0, sizeof(f->path)))
		return -EINVAL;
	rc = cmd == OUTAGE_REFFS_PICKLE ? pickle(m, f, &err) : load(m, f, &err);
	if (rc)
		log_warn("%s", err.msg);
	return rc;
}

static void reply_hash(fuse_req_t req)
{
	struct reffs_mount *m = mount_of(req);

	reffs_mount_lock(m);
	struct reffs_state *s = reffs_save(m->r);
	struct hash128 h = reffs_state_hash(s);
	reffs_state_unref(s);
	reffs_mount_unlock(m);
	fuse_reply_ioctl(req, 0, &(struct outage_reffs_hash){ h.lo, h.hi },
			 sizeof(struct outage_reffs_hash));
}

void reffs_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg, struct fuse_file_info *fi,
		 unsigned flags, const void *in, size_t in_size, size_t out_size)
{
	struct reffs_mount *m = mount_of(req);
	uid_t uid = fuse_req_ctx(req)->uid;
	int rc = -ENOTTY;

	(void)ino, (void)arg, (void)fi, (void)flags, (void)out_size;
	if (_IOC_TYPE(cmd) == 'R' && uid && uid != m->owner)
		rc = -EPERM;
	else if ((cmd == OUTAGE_REFFS_SAVE || cmd == OUTAGE_REFFS_RESTORE ||
		  cmd == OUTAGE_REFFS_DROP) &&
		 in_size == sizeof(struct outage_reffs_key))
		rc = with_key(m, cmd, in);
	else if ((cmd == OUTAGE_REFFS_PICKLE || cmd == OUTAGE_REFFS_LOAD) &&
		 in_size == sizeof(struct outage_reffs_file))
		rc = with_file(m, cmd, in);
	else if (cmd == OUTAGE_REFFS_HASH) {
		reply_hash(req);
		return;
	}
	if (rc)
		fuse_reply_err(req, -rc);
	else
		fuse_reply_ioctl(req, 0, NULL, 0);
}
