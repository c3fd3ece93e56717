/* SPDX-License-Identifier: MIT */
/*
 * forget_node.c - the table of nodes.
 *
 * N1: an inode has one node, with all its names, as long as the kernel knows it, the log needs it,
 *     or it has data in memory.
 * N2: a node has a descriptor (O_PATH), or can be opened again: by its handle, by a name of it, or
 *     by the descriptor of its data. When descriptors run short, those that were not used for a
 *     while are closed. So the number of known files is limited only by memory. A node that is only
 *     in the stash, and not open, is not used until it has a name again.
 * N3: a node with a descriptor keeps its inode, so that its number cannot become another file's. A
 *     node that lost its last name keeps its descriptor; the number of such nodes is limited
 *     (forget_fds.c).
 * N4: a node that lost its last name and has no descriptor is abandoned: another inode may get its
 *     number, so it is not in the table.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/hash.h"
#include "forget/forget_impl.h"

enum {
	BUCKETS_MIN = 1024,
	HANDLE_MAX = MAX_HANDLE_SZ,
	CLOCK_STEPS = 256,
};

static size_t bucket_of(const struct forget *f, uint64_t dev, uint64_t ino)
{
	return ((ino + dev * 31) * 0x9e3779b97f4a7c15ULL >> 20) & (f->n_buckets - 1);
}

void node_table_init(struct forget *f)
{
	f->n_buckets = BUCKETS_MIN;
	f->buckets = xcalloc(f->n_buckets, sizeof(*f->buckets));
	pthread_mutex_init(&f->table, NULL);
	pthread_mutex_init(&f->dirty, NULL);
}

void node_init(struct node *n, uint64_t dev, uint64_t ino, mode_t type)
{
	*n = (struct node){ .dev = dev, .ino = ino, .type = type, .fd = -1, .data = -1 };
	pthread_mutex_init(&n->lock, NULL);
}

/* ---- descriptors ---- */

/* Adds a node at the end of a ring. */
static void ring_add(struct node **ring, struct node *n)
{
	if (!*ring) {
		n->ring_prev = n->ring_next = n;
		*ring = n;
		return;
	}
	n->ring_next = *ring;
	n->ring_prev = (*ring)->ring_prev;
	n->ring_prev->ring_next = n;
	n->ring_next->ring_prev = n;
}

static void ring_remove(struct node **ring, struct node *n)
{
	assert(*ring && n->ring_next && n->ring_prev);
	if (n->ring_next == n) {
		*ring = NULL;
	} else {
		n->ring_prev->ring_next = n->ring_next;
		n->ring_next->ring_prev = n->ring_prev;
		if (*ring == n)
			*ring = n->ring_next;
	}
	n->ring_prev = n->ring_next = NULL;
}

/* Counts a new descriptor. */
static void fd_add(struct forget *f, struct node *n)
{
	assert(n->fd >= 0 && !n->ring_next); /* N3 */
	if (n->gone) {
		f->n_held++;
		return;
	}
	ring_add(&f->clock, n);
	f->n_fds++;
}

static void fd_remove(struct forget *f, struct node *n)
{
	if (n->fd < 0 || n == &f->root)
		return;
	if (n->gone) {
		assert(f->n_held > 0); /* N3, and B1 of forget_fds.c */
		f->n_held--;
		return;
	}
	ring_remove(&f->clock, n);
	assert(f->n_fds > 0); /* N2, and B2 of forget_fds.c */
	f->n_fds--;
}

static void set_gone(struct forget *f, struct node *n, bool gone)
{
	if (n->gone == gone)
		return;
	fd_remove(f, n);
	n->gone = gone;
	if (n->fd >= 0)
		fd_add(f, n);
}

static void *handle_of(struct forget *f, int fd)
{
	struct file_handle *h = xcalloc(1, sizeof(*h) + HANDLE_MAX);
	int mount;

	h->handle_bytes = HANDLE_MAX;
	if (f->handles && !name_to_handle_at(fd, "", h, &mount, AT_EMPTY_PATH))
		return h;
	free(h);
	return NULL;
}

static void close_fd(struct forget *f, struct node *n)
{
	assert(n->fd >= 0 && atomic_load(&n->pins) == -1); /* N2 */
	fd_remove(f, n);
	close(n->fd);
	n->fd = -1;
}

/* True if the node is not open. A node lock comes before the table lock, so it is only tried. */
static bool is_unused(struct node *n)
{
	if (pthread_mutex_trylock(&n->lock))
		return false;
	bool unused = !n->opens;

	pthread_mutex_unlock(&n->lock);
	return unused;
}

/* True if the node can be opened again (N2). */
static bool is_reachable(struct forget *f, struct node *n)
{
	if (!n->handle)
		n->handle = handle_of(f, n->fd);
	if (n->handle || n->names.n || (f->data_stays && n->data >= 0))
		return true;
	return atomic_load(&n->stash_links) && is_unused(n);
}

static bool try_close(struct forget *f, struct node *n)
{
	int none = 0;

	if (n->gone || n == &f->root || !is_reachable(f, n))
		return false;
	if (!atomic_compare_exchange_strong(&n->pins, &none, -1))
		return false;
	assert(!n->gone); /* N3 */
	close_fd(f, n);
	atomic_store(&n->pins, 0);
	return true;
}

/*
 * Makes room for one more descriptor, if there are `most`. If none can be closed, the kernel's
 * limit decides. A look at all nodes each time would take too long if many are in use; the next
 * call looks at others.
 */
static void make_room(struct forget *f, size_t most, size_t tries)
{
	while (f->n_fds >= most && f->n_fds && tries--) {
		struct node *n = f->clock;

		f->clock = n->ring_next;
		if (!atomic_exchange(&n->used, false))
			try_close(f, n);
	}
}

static void make_room_for_one(struct forget *f)
{
	make_room(f, forget_fds_each_max(f), CLOCK_STEPS);
}

static size_t two_rounds(const struct forget *f)
{
	return f->n_fds * 2;
}

void node_give_way(struct forget *f)
{
	auto_lock(&f->table);
	make_room(f, forget_fds_each_max(f), two_rounds(f));
}

static bool is_it(const struct node *n, int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_ino == n->ino && st.st_dev == n->dev;
}

static int reopen_by_name(struct forget *f, struct node *n, int depth)
{
	if (n == &f->root)
		return fcntl(f->root_fd, F_DUPFD_CLOEXEC, 0);
	for (size_t i = 0; i < n->names.n && depth; i++) {
		struct node *p = n->names.v[i]->parent;
		auto_fd own = p->fd >= 0 ? -1 : reopen_by_name(f, p, depth - 1);
		int dir = p->fd >= 0 ? p->fd : own;
		auto_fd fd =
			dir < 0 ? -1
				: openat(dir, n->names.v[i]->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

		if (is_it(n, fd))
			return steal_fd(&fd);
	}
	return -1;
}

/* The descriptor may be closed meanwhile, and its number used for another file. */
static int reopen_by_data(struct node *n)
{
	int data = n->data;
	auto_fd fd = data < 0 ? -1 : open(fd_path(data).text, O_PATH | O_CLOEXEC);

	return is_it(n, fd) ? steal_fd(&fd) : -1;
}

static int reopen_once(struct forget *f, struct node *n)
{
	int fd = -1;

	if (n->handle)
		fd = open_by_handle_at(f->root_fd, n->handle, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		fd = reopen_by_name(f, n, 256);
	return fd >= 0 ? fd : reopen_by_data(n);
}

/* Opens a node again; with the table lock. */
static int reopen(struct forget *f, struct node *n)
{
	int fd;

	if (n->abandoned) /* its descriptor, opened meanwhile, could not be closed */
		return -ESTALE;
	make_room_for_one(f);
	fd = reopen_once(f, n);
	if (fd < 0 && errno == EMFILE) { /* current requests have more than expected */
		make_room(f, 1, two_rounds(f));
		fd = reopen_once(f, n);
	}
	if (fd < 0)
		return -ESTALE;
	assert(n->fd < 0); /* N2 */
	n->fd = fd;
	fd_add(f, n);
	return fd;
}

int node_pin(struct forget *f, struct node *n)
{
	int pins = atomic_load(&n->pins), fd;

	while (pins >= 0)
		if (atomic_compare_exchange_weak(&n->pins, &pins, pins + 1)) {
			atomic_store_explicit(&n->used, true, memory_order_relaxed);
			if (n->fd >= 0)
				return n->fd;
			break;
		}
	/*
	 * The descriptor is closed. While it is being closed, `pins` is -1, but only under the
	 * lock.
	 */
	pthread_mutex_lock(&f->table);
	if (pins < 0)
		atomic_fetch_add(&n->pins, 1);
	fd = n->fd >= 0 ? n->fd : reopen(f, n);
	pthread_mutex_unlock(&f->table);
	if (fd < 0)
		node_unpin(n);
	return fd;
}

void node_unpin(struct node *n)
{
	int pins = atomic_fetch_sub(&n->pins, 1);

	assert(pins > 0); /* N2 */
}

/* ---- the table ---- */

static struct node *find(struct forget *f, uint64_t dev, uint64_t ino)
{
	struct node *n;

	if (dev == f->root.dev && ino == f->root.ino)
		return &f->root;
	for (n = f->buckets[bucket_of(f, dev, ino)]; n; n = n->hash_next)
		if (n->ino == ino && n->dev == dev)
			return n;
	return NULL;
}

static void grow(struct forget *f)
{
	size_t old_n = f->n_buckets;
	struct node **old = f->buckets;

	f->n_buckets *= 2;
	f->buckets = xcalloc(f->n_buckets, sizeof(*f->buckets));
	for (size_t i = 0; i < old_n; i++)
		while (old[i]) {
			struct node *n = old[i], **to;

			old[i] = n->hash_next;
			to = &f->buckets[bucket_of(f, n->dev, n->ino)];
			n->hash_next = *to;
			*to = n;
		}
	free(old);
}

static struct node *add(struct forget *f, const struct stat *st)
{
	struct node *n = xmalloc(sizeof(*n)), **at;

	node_init(n, st->st_dev, st->st_ino, st->st_mode & S_IFMT);
	if (f->n_nodes >= f->n_buckets)
		grow(f);
	assert(!find(f, n->dev, n->ino)); /* N1 */
	at = &f->buckets[bucket_of(f, n->dev, n->ino)];
	n->hash_next = *at;
	*at = n;
	f->n_nodes++;
	return n;
}

static void unlink_from_table(struct forget *f, struct node *n)
{
	struct node **at = &f->buckets[bucket_of(f, n->dev, n->ino)];

	assert(f->n_nodes > 0 && n != &f->root); /* N1 */
	f->n_nodes--;
	if (n->abandoned) {
		ring_remove(&f->abandoned, n);
		return;
	}
	while (*at != n)
		at = &(*at)->hash_next;
	*at = n->hash_next;
}

/* ---- sure names ---- */

static uint64_t name_hash(const struct node *parent, const char *name)
{
	return hash64(name, strlen(name)) ^ (uintptr_t)parent * 0x9e3779b97f4a7c15ULL;
}

static struct node_name **sure_bucket(struct forget *f, uint64_t hash)
{
	return &f->sure[hash & (f->sure_buckets - 1)];
}

static void grow_sure(struct forget *f)
{
	size_t old_n = f->sure_buckets;
	struct node_name **old = f->sure;

	f->sure_buckets = max(old_n * 2, (size_t)BUCKETS_MIN);
	f->sure = xcalloc(f->sure_buckets, sizeof(*f->sure));
	for (size_t i = 0; i < old_n; i++)
		while (old[i]) {
			struct node_name *a = old[i], **to = sure_bucket(f, a->hash);

			old[i] = a->hash_next;
			a->hash_next = *to;
			*to = a;
		}
	free(old);
}

static void make_sure(struct forget *f, struct node_name *a)
{
	struct node_name **to;

	if (a->sure)
		return;
	if (f->n_sure >= f->sure_buckets)
		grow_sure(f);
	a->sure = true;
	a->hash = name_hash(a->parent, a->name);
	to = sure_bucket(f, a->hash);
	a->hash_next = *to;
	*to = a;
	f->n_sure++;
}

static void free_name(struct forget *f, struct node_name *a)
{
	struct node_name **at;

	if (a->sure) {
		for (at = sure_bucket(f, a->hash); *at != a;)
			at = &(*at)->hash_next;
		*at = a->hash_next;
		f->n_sure--;
	}
	free(a);
}

struct node *node_of_name(struct forget *f, struct node *parent, const char *name)
{
	uint64_t hash = name_hash(parent, name);
	struct node_name *a;
	struct node *n;

	auto_lock(&f->table);
	for (a = f->sure ? *sure_bucket(f, hash) : NULL; a; a = a->hash_next)
		if (a->hash == hash && a->parent == parent && streq(a->name, name))
			break;
	n = a ? a->node : NULL;
	if (n)
		n->refs++;
	return n;
}

/* ---- releasing ---- */

/* Frees a node; without the table lock, as the lock of its data comes first. */
static void node_release(struct forget *f, struct node *n)
{
	forget_data_release(f, n);
	util_close(n->fd);
	free(n->handle);
	vec_release(&n->names);
	pthread_mutex_destroy(&n->lock);
	if (n != &f->root)
		free(n);
}

/*
 * Removes a node that is not needed any more, and perhaps the directories above it. With the table
 * lock; the caller releases the nodes in `dead`.
 */
static void drop_if_unused(struct forget *f, struct node *n, struct node **dead)
{
	/* One of its directories may be above another, and be removed with that. */
	while (n && n != &f->root && !n->dead && !n->nlookup && !n->refs &&
	       (n->gone || !forget_data_is_dirty(n))) {
		struct node *parent = NULL;

		for (size_t i = 0; i < n->names.n; i++) {
			struct node *p = n->names.v[i]->parent;

			free_name(f, n->names.v[i]);
			assert(p->refs > 0 && !p->dead); /* N1 */
			p->refs--;
			if (parent && parent != p)
				drop_if_unused(f, parent, dead);
			parent = p;
		}
		n->names.n = 0;
		fd_remove(f, n);
		unlink_from_table(f, n);
		n->dead = true;
		n->hash_next = *dead;
		*dead = n;
		n = parent;
	}
}

static void release_all(struct forget *f, struct node *dead)
{
	while (dead) {
		struct node *n = dead;

		dead = n->hash_next;
		assert(n->dead && !n->refs && !n->nlookup && !n->names.n); /* N1 */
		node_release(f, n);
	}
}

static void add_name(struct forget *f, struct node *n, struct node *parent, const char *name,
		     bool sure)
{
	size_t size = strlen(name) + 1;
	struct node_name *a = NULL;

	for (size_t i = 0; !a && i < n->names.n; i++)
		if (n->names.v[i]->parent == parent && streq(n->names.v[i]->name, name))
			a = n->names.v[i];
	assert(!n->dead && !parent->dead); /* N1 */
	if (!a) {
		a = xmalloc(sizeof(*a) + size);
		*a = (struct node_name){ .node = n, .parent = parent };
		memcpy(a->name, name, size);
		parent->refs++;
		vec_push(&n->names, a);
	}
	if (sure)
		make_sure(f, a);
}

struct node *node_adopt(struct forget *f, int fd, const struct stat *st, struct node *parent,
			const char *name, unsigned nlookup)
{
	struct node *n;

	pthread_mutex_lock(&f->table);
	n = find(f, st->st_dev, st->st_ino);
	if (!n)
		n = add(f, st);
	if (n->fd < 0) {
		make_room_for_one(f);
		n->fd = fd;
		fd_add(f, n);
		fd = -1;
	}
	if (parent && n != &f->root)
		add_name(f, n, parent, name, false);
	n->nlookup += nlookup;
	n->refs += !nlookup;
	pthread_mutex_unlock(&f->table);
	util_close(fd);
	return n;
}

struct node *node_find(struct forget *f, uint64_t dev, uint64_t ino)
{
	struct node *n;

	auto_lock(&f->table);
	n = find(f, dev, ino);
	if (n)
		n->refs++;
	return n;
}

void node_ref(struct forget *f, struct node *n)
{
	auto_lock(&f->table);
	n->refs++;
}

void node_unref(struct forget *f, struct node *n)
{
	struct node *dead = NULL;

	if (!n)
		return;
	pthread_mutex_lock(&f->table);
	assert(n->refs > 0 && !n->dead); /* N1 */
	n->refs--;
	drop_if_unused(f, n, &dead);
	pthread_mutex_unlock(&f->table);
	release_all(f, dead);
}

void node_forget(struct forget *f, struct node *n, uint64_t nlookup)
{
	struct node *dead = NULL;
	bool removed;

	pthread_mutex_lock(&f->table);
	n->nlookup -= min(nlookup, n->nlookup);
	drop_if_unused(f, n, &dead);
	removed = !dead && !n->nlookup && !n->names.n && n->made && S_ISREG(n->type);
	n->refs += removed;
	pthread_mutex_unlock(&f->table);
	release_all(f, dead);
	if (removed) { /* only the log needs the node */
		forget_data_forget_removed(f, n);
		node_unref(f, n);
	}
}

/* ---- without a name ---- */

static enum fds_for needed_for(struct node *n, bool lost)
{
	if (S_ISDIR(n->type))
		return lost ? FDS_LOST_OPEN : FDS_REMOVED_DIR;
	auto_lock(&n->lock);
	return n->opens ? FDS_LOST_OPEN : FDS_LOST;
}

bool node_keep(struct forget *f, struct node *n, bool lost)
{
	int fd = node_pin(f, n);
	struct stat st;

	if (fd < 0)
		return false;
	bool last = S_ISDIR(n->type) || fstatat(fd, "", &st, AT_EMPTY_PATH) || st.st_nlink <= 1;
	bool kept = !last || forget_fds_take(f, needed_for(n, lost));
	if (last && kept) {
		pthread_mutex_lock(&f->table);
		set_gone(f, n, true);
		pthread_mutex_unlock(&f->table);
	}
	node_unpin(n);
	return kept;
}

void node_not_gone(struct forget *f, struct node *n)
{
	auto_lock(&f->table);
	set_gone(f, n, false);
}

/* Removes all names of a node; with the table lock. */
static void forget_names(struct forget *f, struct node *n)
{
	for (size_t i = 0; i < n->names.n; i++) {
		assert(n->names.v[i]->parent->refs > 0); /* N1 */
		n->names.v[i]->parent->refs--;
		free_name(f, n->names.v[i]);
	}
	n->names.n = 0;
}

/* Removes a node without names from the table; with the table lock. */
static void leave_table(struct forget *f, struct node *n)
{
	assert(!n->names.n && !n->abandoned); /* N4 */
	unlink_from_table(f, n);
	f->n_nodes++;
	set_gone(f, n, true);
	n->abandoned = true;
	ring_add(&f->abandoned, n);
}

void node_abandon(struct forget *f, struct node *n)
{
	int none = 0;

	auto_lock(&f->table);
	if (!n->abandoned && n != &f->root) {
		forget_names(f, n);
		leave_table(f, n);
		/*
		 * A current request may go on with the descriptor; then the descriptor stays as
		 * long as the node.
		 */
		if (n->fd >= 0 && atomic_compare_exchange_strong(&n->pins, &none, -1)) {
			close_fd(f, n);
			atomic_store(&n->pins, 0);
		}
	}
}

/* ---- names ---- */

void node_named(struct forget *f, struct node *n, struct node *parent, const char *name)
{
	if (n == &f->root)
		return;
	auto_lock(&f->table);
	add_name(f, n, parent, name, f->log);
	set_gone(f, n, false);
}

void node_unnamed(struct forget *f, struct node *n, struct node *parent, const char *name)
{
	struct node *dead = NULL;

	pthread_mutex_lock(&f->table);
	for (size_t i = 0; i < n->names.n; i++)
		if (n->names.v[i]->parent == parent && streq(n->names.v[i]->name, name)) {
			free_name(f, n->names.v[i]);
			n->names.v[i] = n->names.v[--n->names.n];
			assert(parent->refs > 0); /* N1 */
			parent->refs--;
			drop_if_unused(f, parent, &dead);
			break;
		}
	pthread_mutex_unlock(&f->table);
	release_all(f, dead);
}

static void add_path(struct forget *f, struct node *n, struct strbuf *out, int depth)
{
	if (n == &f->root || !depth)
		return;
	if (!n->names.n) {
		strbuf_addf(out, "(unlinked %llu)", llu(n->ino));
		return;
	}
	add_path(f, n->names.v[0]->parent, out, depth - 1);
	if (out->len)
		strbuf_addch(out, '/');
	strbuf_adds(out, n->names.v[0]->name);
}

void node_path(struct forget *f, struct node *n, const char *name, struct strbuf *out)
{
	pthread_mutex_lock(&f->table);
	add_path(f, n, out, 4096);
	pthread_mutex_unlock(&f->table);
	if (!name)
		return;
	if (out->len)
		strbuf_addch(out, '/');
	strbuf_adds(out, name);
}

void node_abandon_all(struct forget *f)
{
	auto_lock(&f->table);
	for (size_t i = 0; i < f->n_buckets; i++)
		while (f->buckets[i]) {
			struct node *n = f->buckets[i];

			forget_names(f, n);
			leave_table(f, n);
		}
}

static void release_one(struct forget *f, struct node *n)
{
	for (size_t k = 0; k < n->names.n; k++)
		free(n->names.v[k]);
	node_release(f, n);
}

static void release_chain(struct forget *f, struct node *n)
{
	while (n) {
		struct node *next = n->hash_next;

		release_one(f, n);
		n = next;
	}
}

void node_table_release(struct forget *f)
{
	for (size_t i = 0; f->buckets && i < f->n_buckets; i++)
		release_chain(f, f->buckets[i]);
	while (f->abandoned) {
		struct node *n = f->abandoned;

		ring_remove(&f->abandoned, n);
		release_one(f, n);
	}
	free(f->buckets);
	free(f->sure);
	if (f->root.ino)
		node_release(f, &f->root);
	pthread_mutex_destroy(&f->table);
	pthread_mutex_destroy(&f->dirty);
}
