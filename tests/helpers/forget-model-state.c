/* SPDX-License-Identifier: MIT */
/* forget-model-state.c - see forget-model.h. */
#include "forget-model.h"

#include <sys/stat.h>

void model_init(struct model *m, const struct profile *p)
{
	*m = (struct model){ .profile = p };
	pthread_mutex_init(&m->lock, NULL);
	m->root = model_inode(m, S_IFDIR, 0755);
}

static void inode_free(struct inode *ino)
{
	free(ino->data.bytes[LIVE]);
	free(ino->data.bytes[DURABLE]);
	free(ino->data.zeroed);
	free(ino->data.without);
	free(ino);
}

void model_release(struct model *m)
{
	for (size_t i = 0; i < m->inodes.n; i++)
		inode_free(m->inodes.v[i]);
	vec_release(&m->inodes);
	vec_release(&m->changes);
	pthread_mutex_destroy(&m->lock);
}

struct inode *model_inode(struct model *m, mode_t type, unsigned mode)
{
	struct inode *ino = xcalloc(1, sizeof(*ino));

	ino->number = ++m->next;
	ino->type = type;
	for (int s = LIVE; s < STATES; s++) {
		ino->attr[s].mode = mode;
		for (int i = 0; i < XATTRS; i++)
			ino->xattr[s][i].len = -1;
		if (S_ISREG(type))
			ino->data.bytes[s] = xcalloc(1, FILE_MAX);
	}
	ino->data.cut = NO_CUT;
	if (S_ISREG(type))
		ino->data.zeroed = xcalloc(1, FILE_MAX);
	vec_push(&m->inodes, ino);
	return ino;
}

/* ---- names and attributes ---- */

static void put(struct inode *dir, int state, int name, struct inode *ino)
{
	dir->entry[state][name] = ino;
}

static void redo(const struct change *c, int state)
{
	switch (c->kind) {
	case MAKE:
	case LINK:
		put(c->slot[0].dir, state, c->slot[0].name, c->ino);
		break;
	case REMOVE:
		put(c->slot[0].dir, state, c->slot[0].name, NULL);
		break;
	case RENAME:
		put(c->slot[0].dir, state, c->slot[0].name, NULL);
		put(c->slot[1].dir, state, c->slot[1].name, c->ino);
		break;
	case SWAP:
		put(c->slot[0].dir, state, c->slot[0].name, c->other);
		put(c->slot[1].dir, state, c->slot[1].name, c->ino);
		break;
	case ATTR:
		c->ino->attr[state] = c->attr;
		/* What was written since then may have come with it. */
		if (state == DURABLE)
			c->ino->attr[state].mtime_known &= c->ino->attr[LIVE].mtime_known;
		break;
	case XATTR:
		c->ino->xattr[state][c->xattr] = c->value;
		break;
	}
}

static bool making_waits(const struct model *m, const struct inode *ino)
{
	for (size_t i = 0; i < m->changes.n; i++)
		if (m->changes.v[i].kind == MAKE && m->changes.v[i].ino == ino)
			return true;
	return false;
}

/* A kernel drops what it has of a file that nobody can reach. */
static void note_removed(struct model *m, const struct change *c)
{
	struct inode *old = c->kind == REMOVE ? c->ino : c->kind == RENAME ? c->other : NULL;

	if (old && S_ISREG(old->type) && !model_links(m, old) && making_waits(m, old))
		old->data.may_go = true;
	else if (c->kind == LINK)
		c->ino->data.may_go = false;
}

static void add(struct model *m, const struct change *c)
{
	redo(c, LIVE);
	note_removed(m, c);
	if (m->profile->metadata)
		vec_push(&m->changes, *c);
	else
		redo(c, DURABLE);
}

void model_make(struct model *m, struct inode *dir, int name, struct inode *ino)
{
	add(m, &(struct change){ MAKE, .ino = ino, .slot = { { dir, name } } });
}

void model_link(struct model *m, struct inode *dir, int name, struct inode *ino)
{
	add(m, &(struct change){ LINK, .ino = ino, .slot = { { dir, name } } });
}

void model_remove(struct model *m, struct inode *dir, int name)
{
	add(m,
	    &(struct change){ REMOVE, .ino = dir->entry[LIVE][name], .slot = { { dir, name } } });
}

void model_rename(struct model *m, struct inode *dir, int name, struct inode *dir2, int name2)
{
	add(m, &(struct change){ RENAME, .ino = dir->entry[LIVE][name],
				 .other = dir2->entry[LIVE][name2],
				 .slot = { { dir, name }, { dir2, name2 } } });
}

void model_swap(struct model *m, struct inode *dir, int name, struct inode *dir2, int name2)
{
	add(m, &(struct change){ SWAP, .ino = dir->entry[LIVE][name],
				 .other = dir2->entry[LIVE][name2],
				 .slot = { { dir, name }, { dir2, name2 } } });
}

void model_attr(struct model *m, struct inode *ino, const struct attr *a)
{
	add(m, &(struct change){ ATTR, .ino = ino, .attr = *a });
}

void model_xattr(struct model *m, struct inode *ino, int which, const struct value *v)
{
	add(m, &(struct change){ XATTR, .ino = ino, .xattr = which, .value = *v });
}

/* ---- data ---- */

static void forget_mtime(struct inode *ino)
{
	ino->attr[LIVE].mtime_known = false;
}

void model_write(struct model *m, struct inode *ino, const void *bytes, uint32_t off, uint32_t len)
{
	struct data *d = &ino->data;

	if (!len)
		return;
	memcpy(d->bytes[LIVE] + off, bytes, len);
	d->size[LIVE] = max(d->size[LIVE], off + len);
	for (uint32_t b = off / BLOCK; b * BLOCK < off + len; b++)
		d->block[b] = BLOCK_WRITTEN;
	d->sized |= !m->profile->size_with_data;
	forget_mtime(ino);
}

/* What is durable and shows where nothing was written. */
static uint32_t durable_end(const struct data *d)
{
	return min(d->size[DURABLE], d->cut);
}

/* A block that has nothing but zeros left needs not to be written; one with a rest does. */
static void zero_live(struct data *d, uint32_t start, uint32_t end)
{
	if (start >= end)
		return;
	memset(d->bytes[LIVE] + start, 0, end - start);
	for (uint32_t b = start / BLOCK; b * BLOCK < end; b++) {
		bool whole = b * BLOCK >= start && min((b + 1) * BLOCK, d->size[LIVE]) <= end;

		if (whole)
			d->block[b] = BLOCK_SAME;
		else if (d->block[b] != BLOCK_SAME)
			d->block[b] = BLOCK_WRITTEN;
	}
}

static void set_size(struct data *d, uint32_t size)
{
	d->size[LIVE] = d->set_size = size;
	d->size_set = true;
}

void model_truncate(struct model *m, struct inode *ino, uint32_t size)
{
	struct data *d = &ino->data;

	(void)m;
	zero_live(d, size, d->size[LIVE]);
	if (size < durable_end(d)) {
		memset(d->zeroed + size, 0, FILE_MAX - size);
		d->cut = size;
	}
	if (size != d->size[LIVE])
		set_size(d, size);
	d->emptied |= !size;
	d->sized = true;
	forget_mtime(ino);
}

void model_allocate(struct model *m, struct inode *ino, uint32_t end, bool keep)
{
	struct data *d = &ino->data;

	(void)m;
	if (!keep && end > d->size[LIVE])
		set_size(d, end);
	d->sized = true;
	forget_mtime(ino);
}

void model_zero(struct model *m, struct inode *ino, uint32_t off, uint32_t len, bool keep)
{
	struct data *d = &ino->data;

	zero_live(d, off, min(off + len, d->size[LIVE]));
	for (uint32_t i = off; i < min(off + len, durable_end(d)); i++)
		d->zeroed[i] = 1;
	model_allocate(m, ino, off + len, keep);
}

static void resize_durable(struct data *d, uint32_t size)
{
	if (size < d->size[DURABLE])
		memset(d->bytes[DURABLE] + size, 0, d->size[DURABLE] - size);
	d->size[DURABLE] = size;
}

static void apply_cut(struct data *d)
{
	if (d->cut != NO_CUT)
		resize_durable(d, d->cut);
	d->cut = NO_CUT;
}

/* What a journal of metadata has of a file. */
static void sync_size(struct data *d, bool grown)
{
	apply_cut(d);
	for (uint32_t i = 0; i < FILE_MAX; i++)
		if (d->zeroed[i])
			d->bytes[DURABLE][i] = d->zeroed[i] = 0;
	if (d->size_set)
		resize_durable(d, max(d->size[DURABLE], d->set_size));
	if (grown)
		resize_durable(d, d->size[LIVE]);
	d->size_set = false;
}

/* Data that becomes durable brings the time at which it was written. */
static void forget_durable_mtime(struct inode *ino)
{
	ino->attr[DURABLE].mtime_known &= ino->attr[LIVE].mtime_known;
}

void model_write_back(struct inode *ino)
{
	struct data *d = &ino->data;

	forget_durable_mtime(ino);

	sync_size(d, true);
	for (uint32_t b = 0; b < BLOCKS; b++)
		if (d->block[b] == BLOCK_WRITTEN) {
			memcpy(d->bytes[DURABLE] + b * BLOCK, d->bytes[LIVE] + b * BLOCK, BLOCK);
			d->block[b] = BLOCK_SAME;
		}
}

static void sync_data(struct inode *ino)
{
	model_write_back(ino);
	ino->data.emptied = ino->data.sized = ino->data.with_next = false;
}

void model_durable_bytes(struct inode *ino, uint32_t off, uint32_t len)
{
	struct data *d = &ino->data;

	if (!len)
		return;
	if (off + len > d->cut)
		apply_cut(d);
	memcpy(d->bytes[DURABLE] + off, d->bytes[LIVE] + off, len);
	memset(d->zeroed + off, 0, len);
	d->size[DURABLE] = max(d->size[DURABLE], off + len);
}

static bool has_data(const struct inode *ino)
{
	const struct data *d = &ino->data;

	if (!S_ISREG(ino->type))
		return false;
	for (int b = 0; b < BLOCKS; b++)
		if (d->block[b] != BLOCK_SAME)
			return true;
	return d->size[LIVE] != d->size[DURABLE] || d->cut != NO_CUT ||
	       memchr(d->zeroed, 1, FILE_MAX);
}

static bool has_bytes(const struct data *d, uint32_t block)
{
	for (uint32_t i = block * BLOCK; i < min((block + 1) * BLOCK, d->size[DURABLE]); i++)
		if (d->bytes[DURABLE][i])
			return true;
	return false;
}

enum model_commits model_data_commits(const struct inode *ino, uint32_t off, uint32_t len)
{
	const struct data *d = &ino->data;
	bool sure = true;

	if (!S_ISREG(ino->type))
		return COMMITS_NOT;
	if (d->size[LIVE] != d->size[DURABLE] || off + len > d->size[DURABLE] || d->cut != NO_CUT ||
	    memchr(d->zeroed, 1, FILE_MAX))
		return COMMITS;
	for (uint32_t b = 0; b < BLOCKS; b++)
		if (d->block[b] == BLOCK_WRITTEN ||
		    (len && b * BLOCK < off + len && (b + 1) * BLOCK > off))
			sure = sure && has_bytes(d, b);
	return sure ? COMMITS_NOT : COMMITS_PERHAPS;
}

void model_closed(struct model *m, struct inode *ino)
{
	if (m->profile->truncate_flushes && ino->data.emptied && has_data(ino))
		ino->data.with_next = ino->data.sized = true;
	ino->data.emptied = false;
}

void model_fail(struct inode *ino)
{
	for (int b = 0; b < BLOCKS; b++)
		if (ino->data.block[b] == BLOCK_WRITTEN)
			ino->data.block[b] = BLOCK_TAKEN_FOR_CLEAN;
}

/* ---- what becomes durable ---- */

static int slots_of(const struct change *c)
{
	return c->kind <= REMOVE ? 1 : c->kind <= SWAP ? 2 : 0;
}

static bool moves_a_directory(const struct change *c)
{
	return slots_of(c) == 2 && c->slot[0].dir != c->slot[1].dir &&
	       (S_ISDIR(c->ino->type) || c->kind == SWAP);
}

static bool share_a_slot(const struct change *a, const struct change *b)
{
	for (int i = 0; i < slots_of(a); i++)
		for (int k = 0; k < slots_of(b); k++)
			if (a->slot[i].dir == b->slot[k].dir && a->slot[i].name == b->slot[k].name)
				return true;
	return false;
}

static bool has_slot_in(const struct change *c, const struct inode *dir)
{
	for (int i = 0; i < slots_of(c); i++)
		if (c->slot[i].dir == dir)
			return true;
	return false;
}

/* From this directory to another, which has the new name. */
static bool moved_out(const struct change *c, const struct inode *dir)
{
	return c->kind == RENAME && c->slot[1].dir != dir;
}

static const struct inode *directory_removed(const struct change *c)
{
	const struct inode *gone = c->kind == REMOVE ? c->ino : c->kind == RENAME ? c->other : NULL;

	return gone && S_ISDIR(gone->type) ? gone : NULL;
}

/* Whether `late` cannot be durable without `early`. */
static bool needs(const struct change *late, const struct change *early)
{
	if (share_a_slot(late, early))
		return true;
	if (late->kind == early->kind && late->ino == early->ino &&
	    (late->kind == ATTR || (late->kind == XATTR && late->xattr == early->xattr)))
		return true;
	if (early->kind == MAKE && has_slot_in(late, early->ino))
		return true;
	if (directory_removed(late) && has_slot_in(early, directory_removed(late)))
		return true;
	return moves_a_directory(late) && moves_a_directory(early);
}

static void commit_sizes(struct model *m)
{
	for (size_t i = 0; i < m->inodes.n; i++) {
		struct inode *ino = m->inodes.v[i];

		if (!S_ISREG(ino->type) || !ino->data.sized)
			continue;
		if (ino->data.with_next)
			sync_data(ino);
		else
			sync_size(&ino->data, !m->profile->size_with_data);
		forget_durable_mtime(ino);
		ino->data.sized = ino->data.with_next = false;
	}
}

/* Carries over what was chosen, with what it needs. Gives how many. */
static size_t carry_over(struct model *m)
{
	size_t left = 0, all = m->changes.n;

	for (size_t i = m->changes.n; i-- > 0;)
		for (size_t k = 0; m->changes.v[i].chosen && k < i; k++)
			m->changes.v[k].chosen |= needs(&m->changes.v[i], &m->changes.v[k]);
	for (size_t i = 0; i < all; i++) {
		struct change *c = &m->changes.v[i];

		if (!c->chosen) {
			m->changes.v[left++] = *c;
			continue;
		}
		redo(c, DURABLE);
		if (m->profile->replace_orders_data && c->kind == RENAME && c->other &&
		    S_ISREG(c->ino->type))
			sync_data(c->ino);
	}
	m->changes.n = left;
	return all - left;
}

static bool is_name_of(const struct change *c, const struct inode *ino)
{
	return slots_of(c) && (c->ino == ino || (slots_of(c) == 2 && c->other == ino));
}

static bool is_attribute_of(const struct change *c, const struct inode *ino)
{
	return !slots_of(c) && c->ino == ino;
}

/* With one journal: whether a sync of this has a reason to write it. */
static bool asks_for_all(const struct model *m, const struct inode *ino, bool data_only, bool data)
{
	if (data)
		return true;
	for (size_t i = 0; i < m->changes.n; i++) {
		const struct change *c = &m->changes.v[i];

		if (data_only && !S_ISDIR(ino->type)
			    ? c->kind == MAKE && c->ino == ino
			    : is_attribute_of(c, ino) || is_name_of(c, ino) || has_slot_in(c, ino))
			return true;
	}
	return false;
}

void model_sync(struct model *m, struct inode *ino, bool data_only)
{
	bool is_dir = S_ISDIR(ino->type);
	bool data = data_only ? model_data_commits(ino, 0, 0) == COMMITS : has_data(ino);
	enum profile_sync how = is_dir ? m->profile->dir : m->profile->file;

	if (S_ISREG(ino->type))
		sync_data(ino);
	if (!m->profile->metadata)
		return;
	if (how == PROFILE_ALL && !asks_for_all(m, ino, data_only, data))
		return;
	for (size_t i = 0; i < m->changes.n; i++) {
		struct change *c = &m->changes.v[i];

		c->chosen = how == PROFILE_ALL || (!data_only && is_attribute_of(c, ino)) ||
			    (is_dir && has_slot_in(c, ino) &&
			     !(how == PROFILE_OWN && moved_out(c, ino))) ||
			    (how == PROFILE_NAMES && is_name_of(c, ino));
	}
	carry_over(m);
	if (how == PROFILE_ALL)
		commit_sizes(m);
}

static void choose_all(struct model *m)
{
	for (size_t i = 0; i < m->changes.n; i++)
		m->changes.v[i].chosen = true;
}

void model_sync_all(struct model *m)
{
	for (size_t i = 0; i < m->inodes.n; i++) {
		struct inode *ino = m->inodes.v[i];

		if (S_ISREG(ino->type)) /* also what has no name: somebody may have it open */
			sync_data(ino);
	}
	choose_all(m);
	carry_over(m);
	if (m->profile->metadata)
		commit_sizes(m);
}

static void lose_data(struct data *d)
{
	memcpy(d->bytes[LIVE], d->bytes[DURABLE], FILE_MAX);
	memset(d->zeroed, 0, FILE_MAX);
	memset(d->block, BLOCK_SAME, sizeof(d->block));
	d->size[LIVE] = d->size[DURABLE];
	d->cut = NO_CUT;
	d->size_set = d->emptied = d->with_next = d->sized = d->may_go = false;
}

static void keep_without(struct inode *ino)
{
	struct data *d = &ino->data;

	if (!d->may_go || ino->opens)
		return;
	if (!d->without)
		d->without = xmalloc(FILE_MAX);
	memcpy(d->without, d->bytes[DURABLE], FILE_MAX);
	d->size_without = d->size[DURABLE];
}

void model_seen(struct model *m, const struct inode *ino, const void *bytes, uint32_t size)
{
	for (size_t i = 0; i < m->inodes.n; i++) {
		struct data *d = &m->inodes.v[i]->data;

		if (m->inodes.v[i] != ino || !d->without)
			continue;
		if (size == d->size_without && !memcmp(bytes, d->without, size))
			for (int s = LIVE; s < STATES; s++) {
				memcpy(d->bytes[s], d->without, FILE_MAX);
				d->size[s] = size;
			}
		free(d->without);
		d->without = NULL;
	}
}

void model_lose(struct model *m, enum model_survive what)
{
	if (what == SURVIVE_METADATA) {
		choose_all(m);
		carry_over(m);
		if (m->profile->in_order)
			commit_sizes(m);
	}
	m->changes.n = 0;
	for (size_t i = 0; i < m->inodes.n; i++) {
		struct inode *ino = m->inodes.v[i];

		if (S_ISREG(ino->type) && what == SURVIVE_DATA) {
			keep_without(ino);
			sync_data(ino);
		}
		if (S_ISREG(ino->type))
			lose_data(&ino->data);
		ino->attr[LIVE] = ino->attr[DURABLE];
		memcpy(ino->xattr[LIVE], ino->xattr[DURABLE], sizeof(ino->xattr[LIVE]));
		memcpy(ino->entry[LIVE], ino->entry[DURABLE], sizeof(ino->entry[LIVE]));
	}
}

/* ---- copies ---- */

static struct inode *copy_inode(struct model *to, const struct inode *ino)
{
	struct inode *copy = model_inode(to, ino->type, 0);

	for (int s = LIVE; s < STATES; s++) {
		copy->attr[s] = ino->attr[DURABLE];
		memcpy(copy->xattr[s], ino->xattr[DURABLE], sizeof(copy->xattr[s]));
		if (!S_ISREG(ino->type))
			continue;
		memcpy(copy->data.bytes[s], ino->data.bytes[DURABLE], FILE_MAX);
		copy->data.size[s] = ino->data.size[DURABLE];
	}
	memcpy(copy->target, ino->target, sizeof(copy->target));
	return copy;
}

void model_snapshot(struct model *m, struct model *out)
{
	model_init(out, m->profile);
	/* The i-th inode here is the i-th there, the root first. */
	for (size_t i = 1; i < m->inodes.n; i++)
		copy_inode(out, m->inodes.v[i]);
	for (size_t i = 0; i < m->inodes.n; i++)
		for (size_t k = 0; k < m->inodes.n; k++)
			for (int n = 0; n < NAMES; n++)
				if (m->inodes.v[i]->entry[DURABLE][n] == m->inodes.v[k])
					for (int s = LIVE; s < STATES; s++)
						put(out->inodes.v[i], s, n, out->inodes.v[k]);
}

/* ---- questions ---- */

unsigned model_links(const struct model *m, const struct inode *ino)
{
	unsigned links = 0;

	for (size_t i = 0; i < m->inodes.n; i++)
		for (int n = 0; n < NAMES && S_ISDIR(m->inodes.v[i]->type); n++)
			links += m->inodes.v[i]->entry[LIVE][n] == ino;
	return links;
}

bool model_is_empty(const struct inode *dir)
{
	for (int n = 0; n < NAMES; n++)
		if (dir->entry[LIVE][n])
			return false;
	return true;
}

bool model_is_below(const struct inode *dir, const struct inode *ino)
{
	if (dir == ino)
		return true;
	for (int n = 0; n < NAMES; n++) {
		const struct inode *e = dir->entry[LIVE][n];

		if (e && S_ISDIR(e->type) && model_is_below(e, ino))
			return true;
	}
	return false;
}
