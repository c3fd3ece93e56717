/* SPDX-License-Identifier: MIT */
/*
 * gen_world.c - phase 4 of generation: adds the operations that a workload depends on.
 *
 * W1: at[] maps a name to its node; names of one file share a node.
 * W2: every node but NODE_ABSENT has a directory as its parent.
 * W3: node 0 is NODE_ABSENT and never changes.
 */
#include "workload/gen_world.h"

#include <linux/falloc.h>

enum { PAGE = 4096 };

/* ---- names ---- */

static unsigned add_name(struct gen_pool *p, const char *path, unsigned parent, bool is_dir)
{
	assert(p->n < BOUNDS_NAMES_MAX);
	struct gen_name *name = &p->name[p->n];
	const char *slash = strrchr(path, '/');

	*name = (struct gen_name){
		.path = path,
		.base = slash ? slash + 1 : path,
		.parent = (uint8_t)parent,
		.is_dir = is_dir,
		.line = p->n == NAME_ROOT ? 0 : p->name[parent].line | name_bit(p->n),
	};
	if (p->n != NAME_ROOT)
		p->name[parent].children |= name_bit(p->n);
	return p->n++;
}

static unsigned find_path(const struct gen_pool *p, const char *path, size_t len)
{
	for (unsigned i = 0; i < p->n; i++)
		if (strlen(p->name[i].path) == len && memcmp(p->name[i].path, path, len) == 0)
			return i;
	return NAME_ROOT;
}

/* Returns the entry of directory `dir` with this last component, or NAME_NONE. */
static unsigned gen_pool_entry(const struct gen_pool *p, unsigned dir, const char *base)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->name[dir].children & name_bit(i) && streq(p->name[i].base, base))
			return i;
	return NAME_NONE;
}

/* Two directories are interchangeable if the bounds allow the same names in both. */
static bool same_shape(const struct gen_pool *p, unsigned a, unsigned b)
{
	if (p->name[a].is_dir != p->name[b].is_dir ||
	    __builtin_popcountll(p->name[a].children) != __builtin_popcountll(p->name[b].children))
		return false;
	for (unsigned i = 0; i < p->n; i++) {
		if (!(p->name[a].children & name_bit(i)))
			continue;
		unsigned twin = gen_pool_entry(p, b, p->name[i].base);
		if (twin == NAME_NONE || !same_shape(p, i, twin))
			return false;
	}
	return true;
}

void gen_pool_init(struct gen_pool *p, const struct bounds *b, struct arena *arena)
{
	p->n = 0;
	add_name(p, ".", NAME_ROOT, true);
	for (size_t i = 0; i < b->directories.n; i++) {
		const char *path = b->directories.v[i];
		const char *slash = strrchr(path, '/');

		add_name(p, path, slash ? find_path(p, path, (size_t)(slash - path)) : NAME_ROOT,
			 true);
	}
	for (unsigned dir = 0, dirs = p->n; dir < dirs; dir++)
		for (size_t i = 0; i < b->files.n; i++) {
			auto_strbuf path = STRBUF_INIT;

			if (dir != NAME_ROOT)
				strbuf_addf(&path, "%s/", p->name[dir].path);
			strbuf_adds(&path, b->files.v[i]);
			add_name(p, arena_strdup(arena, strbuf_str(&path)), dir, false);
		}
	for (unsigned i = 1; i < p->n; i++)
		for (unsigned j = 1; j < p->n; j++) {
			if (i == j || p->name[i].parent != p->name[j].parent ||
			    p->name[i].is_dir != p->name[j].is_dir)
				continue;
			p->name[i].siblings |= name_bit(j);
			if (j < i && same_shape(p, i, j))
				p->name[i].older |= name_bit(j);
		}
}

names_t gen_pool_names(const struct gen_pool *p, bool dirs)
{
	names_t names = 0;

	for (unsigned i = 1; i < p->n; i++)
		if (p->name[i].is_dir == dirs)
			names |= name_bit(i);
	return names;
}

/* ---- the world ---- */

void gen_world_init(struct gen_world *w)
{
	memset(w->at, 0, sizeof(w->at));
	w->node[0] = (struct gen_node){ NODE_ABSENT, 0, 0 };
	w->node[1] = (struct gen_node){ NODE_DIR, 0, 0 };
	w->at[NAME_ROOT] = 1;
	w->n_nodes = 2;
}

/* Returns a node that no name leads to; there is one, as there are more nodes than names. */
static unsigned unused_node(const struct gen_world *w)
{
	bool used[NODES_MAX] = { true };

	static_assert(NODES_MAX > BOUNDS_NAMES_MAX + 1, "one is always free");
	for (unsigned i = 0; i < BOUNDS_NAMES_MAX; i++)
		used[w->at[i]] = true;
	for (unsigned node = 1;; node++) {
		assert(node < NODES_MAX);
		if (!used[node])
			return node;
	}
}

static void make(struct gen_world *w, unsigned name, enum node_type type)
{
	unsigned node = w->n_nodes;

	if (node < NODES_MAX)
		w->n_nodes++;
	else
		node = unused_node(w);
	w->node[node] = (struct gen_node){ (uint8_t)type, 0, 0 };
	w->at[name] = (uint8_t)node;
}

static void add_setup(struct strbuf *out, const char *op, const char *path)
{
	strbuf_add(out, "setup ", 6);
	strbuf_adds(out, op);
	strbuf_adds(out, path);
	strbuf_addch(out, '\n');
}

static void require_parents(struct gen_world *w, const struct gen_pool *p, unsigned name,
			    struct strbuf *out)
{
	unsigned parent = p->name[name].parent;

	if (w->at[parent])
		return;
	require_parents(w, p, parent, out);
	make(w, parent, NODE_DIR);
	add_setup(out, "mkdir ", p->name[parent].path);
}

void gen_world_require(struct gen_world *w, const struct gen_pool *p, unsigned name,
		       struct strbuf *out)
{
	if (w->at[name])
		return;
	require_parents(w, p, name, out);
	make(w, name, p->name[name].is_dir ? NODE_DIR : NODE_FILE);
	add_setup(out, p->name[name].is_dir ? "mkdir " : "creat ", p->name[name].path);
}

static void require_absent(struct gen_world *w, const struct gen_pool *p, unsigned name,
			   struct strbuf *out);

static void require_empty(struct gen_world *w, const struct gen_pool *p, unsigned dir,
			  struct strbuf *out)
{
	for (names_t left = p->name[dir].children; left; left &= left - 1)
		require_absent(w, p, (unsigned)__builtin_ctzll(left), out);
}

static void require_absent(struct gen_world *w, const struct gen_pool *p, unsigned name,
			   struct strbuf *out)
{
	if (!w->at[name])
		return;
	bool dir = gen_node_at(w, name)->type == NODE_DIR;
	if (dir)
		require_empty(w, p, name, out);
	add_setup(out, dir ? "rmdir " : "unlink ", p->name[name].path);
	w->at[name] = 0;
}

/* Makes sure that `name` is a regular file of at least `size` bytes, whatever it was before. */
static void require_file(struct gen_world *w, const struct gen_pool *p, unsigned name,
			 uint32_t size, struct strbuf *out)
{
	if (gen_node_at(w, name)->type == NODE_OTHER)
		require_absent(w, p, name, out);
	if (gen_node_at(w, name)->size < size) {
		require_parents(w, p, name, out);
		if (!w->at[name])
			make(w, name, NODE_FILE);
		gen_node_at(w, name)->size = FILE_SIZE;
		strbuf_adds(out, "setup write ");
		strbuf_adds(out, p->name[name].path);
		strbuf_adds(out, " 0 16384\n");
		static_assert(FILE_SIZE == 16384, "the text above");
	}
	gen_world_require(w, p, name, out);
}

/* Makes the file that an operation on files needs, if there is none; it has data if that is asked
 * for.
 */
static void require_some_file(struct gen_world *w, const struct gen_pool *p, const struct bounds *b,
			      unsigned name, uint32_t size, struct strbuf *out)
{
	bool fill = b->filled && !w->at[name] && !p->name[name].is_dir;

	if (fill || size)
		require_file(w, p, name, fill ? 1 : size, out);
	else
		gen_world_require(w, p, name, out);
}

/* The same where any kind of file will do: the bounds say which is made. */
static void require_kind(struct gen_world *w, const struct gen_pool *p, const struct bounds *b,
			 unsigned name, struct strbuf *out)
{
	if (b->file_kind == KIND_FILE || w->at[name] || p->name[name].is_dir) {
		require_some_file(w, p, b, name, 0, out);
		return;
	}
	require_parents(w, p, name, out);
	make(w, name, NODE_OTHER);
	add_setup(out, b->file_kind == KIND_FIFO ? "mkfifo " : "symlink target ",
		  p->name[name].path);
}

/* Removes names that have no counterpart in the pool, before their directory moves. */
static void require_movable(struct gen_world *w, const struct gen_pool *p, unsigned from,
			    unsigned to, struct strbuf *out)
{
	if (!p->name[from].is_dir)
		return;
	for (names_t left = p->name[from].children; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);
		unsigned twin = gen_pool_entry(p, to, p->name[child].base);

		if (twin == NAME_NONE)
			require_absent(w, p, child, out);
		else if (w->at[child])
			require_movable(w, p, child, twin, out);
	}
	require_empty(w, p, to, out);
}

static void require_xattrs(struct gen_world *w, const struct gen_pool *p, const struct bounds *b,
			   unsigned name, struct strbuf *out)
{
	for (size_t i = 0; i < b->xattrs.n; i++) {
		if (gen_node_at(w, name)->xattrs & 1u << i)
			continue;
		strbuf_addf(out, "setup setxattr %s %s v%zu\n", p->name[name].path, b->xattrs.v[i],
			    i + 1);
		gen_node_at(w, name)->xattrs |= (uint16_t)(1u << i);
	}
}

/* True for a fallocate that moves the data behind the range: it needs whole blocks. */
bool gen_choice_shifts(const struct gen_choice *c)
{
	return c->def->flags & OP_RANGES &&
	       c->value & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE);
}

/* The number of bytes that the operation needs in the file. */
static uint32_t wants_size(const struct gen_choice *c, enum path_role role)
{
	if (gen_choice_shifts(c))
		return 3 * PAGE;
	if (c->range == RANGE_LATER_PAGES || c->range == RANGE_OVER_END)
		return 2 * PAGE;
	return role == ROLE_DATA ||
	       (c->range >= 0 && c->range != RANGE_APPEND && c->range != RANGE_GAP);
}

static void prepare_name(struct gen_world *w, const struct gen_pool *p, const struct bounds *b,
			 const struct gen_choice *c, unsigned i, enum path_role role,
			 struct strbuf *out)
{
	unsigned name = c->name[i];
	bool exchange = c->value & RENAME_W_EXCHANGE;

	switch (role) {
	case ROLE_GONE_FILE:
	case ROLE_LINK_OLD:
		if (b->file_kind != KIND_FILE) {
			require_kind(w, p, b, name, out);
			break;
		}
		/* fall through */
	case ROLE_FILE:
	case ROLE_DATA:
		if (gen_node_at(w, name)->type == NODE_OTHER)
			require_absent(w, p, name, out);
		require_some_file(w, p, b, name, wants_size(c, role), out);
		break;
	case ROLE_MAKE:
		/* Copying a file over itself, by another of its names, is refused. */
		if (i && w->at[name] && w->at[name] == w->at[c->name[0]])
			require_absent(w, p, name, out);
		if (wants_size(c, role))
			require_file(w, p, name, wants_size(c, role), out);
		else if (gen_node_at(w, name)->type == NODE_OTHER)
			require_absent(w, p, name, out);
		require_parents(w, p, name, out);
		break;
	case ROLE_OBJECT:
		if (gen_node_at(w, name)->type == NODE_OTHER)
			require_absent(w, p, name, out); /* a link whose target may not exist */
		require_some_file(w, p, b, name, 0, out);
		break;
	case ROLE_FROM:
		require_kind(w, p, b, name, out);
		break;
	case ROLE_NEW_FILE:
	case ROLE_NEW_OTHER:
	case ROLE_NEW_DIR:
	case ROLE_LINK_NEW:
		require_absent(w, p, name, out);
		require_parents(w, p, name, out);
		break;
	case ROLE_GONE_DIR:
		gen_world_require(w, p, name, out);
		require_empty(w, p, name, out);
		break;
	case ROLE_TO:
		require_parents(w, p, name, out);
		if (exchange)
			require_kind(w, p, b, name, out);
		else if (c->value & RENAME_W_NOREPLACE)
			require_absent(w, p, name, out);
		require_movable(w, p, c->name[0], name, out);
		if (exchange)
			require_movable(w, p, name, c->name[0], out);
		break;
	case ROLE_NONE:
		break;
	}
}

/* Prepares the names of which the bits are set: the first, the second. */
static void prepare_names(struct gen_world *w, const struct gen_pool *p, const struct bounds *b,
			  const struct gen_choice *c, unsigned which, struct strbuf *out)
{
	unsigned i = 0;

	for (const struct arg_def *arg = c->def->args; arg->kind != ARG_END; arg++) {
		if (arg->role != ROLE_NONE && which & 1u << i++)
			prepare_name(w, p, b, c, i - 1, arg->role, out);
		if (arg->kind == ARG_XATTR && arg[1].kind == ARG_END && which & 1)
			require_xattrs(w, p, b, c->name[0], out);
	}
}

void gen_world_prepare(struct gen_world *w, const struct gen_pool *p, const struct bounds *b,
		       const struct gen_choice *c, struct strbuf *out)
{
	prepare_names(w, p, b, c, ~0u, out);
}

void gen_world_prepare_first(struct gen_world *w, const struct gen_pool *p, const struct bounds *b,
			     const struct gen_choice *c, names_t used, struct strbuf *out)
{
	unsigned which = 0, i = 0;

	for (const struct arg_def *arg = c->def->args; arg->kind != ARG_END; arg++) {
		if (arg->role == ROLE_NONE)
			continue;
		unsigned name = c->name[i++];
		bool is_free = !(p->name[name].line & used);

		which |= (unsigned)is_free << (i - 1);
		if (is_free && arg->role == ROLE_MAKE && b->existing)
			gen_world_require(w, p, name, out);
	}
	prepare_names(w, p, b, c, which, out);
}

/* ---- doing it ---- */

struct extent {
	uint32_t off, len;
};

/* Chooses the numbers for a class of range, given the size of the file. */
static struct extent place(const struct gen_choice *c, uint32_t size)
{
	/* The range's begin, from the file's start or end; direct I/O has whole pages. */
	static const struct {
		bool from_end;
		int offset;
		uint32_t len;
	} ranges[2][RANGE_COUNT] = {
		{ [RANGE_APPEND] = { true, 0, 4096 },
		  [RANGE_START] = { false, 0, 5000 },
		  [RANGE_MIDDLE] = { false, 8000, 4096 },
		  [RANGE_END] = { true, -5000, 5000 },
		  [RANGE_EXTEND] = { true, -2000, 5000 },
		  [RANGE_BEYOND] = { true, 10000, 4096 } },
		{ [RANGE_APPEND] = { true, 0, 2 * PAGE },
		  [RANGE_START] = { false, 0, 2 * PAGE },
		  [RANGE_MIDDLE] = { false, PAGE, 2 * PAGE },
		  [RANGE_END] = { true, -2 * PAGE, 2 * PAGE },
		  [RANGE_EXTEND] = { true, -PAGE, 2 * PAGE },
		  [RANGE_BEYOND] = { true, 2 * PAGE, 2 * PAGE },
		  [RANGE_FIRST_PAGE] = { false, 0, PAGE },
		  [RANGE_LAST_PAGE] = { true, -PAGE, PAGE },
		  [RANGE_LATER_PAGES] = { false, PAGE, 0 },
		  [RANGE_OVER_END] = { true, -2 * PAGE, 4 * PAGE },
		  [RANGE_GAP] = { true, 2 * PAGE, 2 * PAGE } },
	};
	bool pages = c->direct || c->range >= RANGE_FIRST_PAGE;
	int64_t end = pages ? (size + PAGE - 1) / PAGE * PAGE : size, at;
	uint32_t len = ranges[pages][c->range].len;

	if (gen_choice_shifts(c))
		return (struct extent){ PAGE, PAGE };
	at = (ranges[pages][c->range].from_end ? end : 0) + ranges[pages][c->range].offset;
	if (c->range == RANGE_END && !pages)
		len = min(size, len);
	if (c->range == RANGE_LATER_PAGES)
		len = (uint32_t)(end - at);
	return (struct extent){ (uint32_t)max(at, (int64_t)0), len };
}

static void grow(struct gen_node *node, uint32_t size)
{
	if (node->size < size)
		node->size = size;
}

static void change_data(struct gen_world *w, const struct gen_choice *c, struct extent e)
{
	/* The file that is named last changes. */
	unsigned last = c->name[1] != NAME_NONE ? c->name[1] : c->name[0];
	struct gen_node *to = gen_node_at(w, last), *from = gen_node_at(w, c->name[0]);

	if (c->def->flags & OP_RANGES) {
		if (c->value & FALLOC_FL_COLLAPSE_RANGE)
			to->size -= min(to->size, e.len);
		else if (c->value & FALLOC_FL_INSERT_RANGE)
			to->size += e.len;
		else if (!(c->value & FALLOC_FL_KEEP_SIZE))
			grow(to, e.off + e.len);
	} else if (c->def->args[1].kind == ARG_SIZE) {
		to->size = c->value;
	} else if (c->range >= 0) {
		grow(to, e.off + e.len);
	} else if (c->def->args[1].kind == ARG_LENGTH) {
		to->size += c->value; /* append */
	} else if (c->def->args[1].kind == ARG_FILE) {
		to->size = from->size; /* reflink */
	} else {
		grow(to, min(from->size, c->value)); /* copy_file_range */
	}
}

static void move_name(struct gen_world *w, const struct gen_pool *p, unsigned from, unsigned to)
{
	for (names_t left = p->name[from].children; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		if (w->at[child])
			move_name(w, p, child, gen_pool_entry(p, to, p->name[child].base));
	}
	w->at[to] = w->at[from];
	w->at[from] = 0;
}

static void change_name(struct gen_world *w, const struct gen_pool *p, const struct gen_choice *c,
			unsigned i, enum path_role role)
{
	unsigned name = c->name[i];

	switch (role) {
	case ROLE_MAKE:
		if (!w->at[name])
			make(w, name, NODE_FILE);
		break;
	case ROLE_NEW_FILE:
		make(w, name, NODE_FILE);
		break;
	case ROLE_NEW_OTHER:
		make(w, name, NODE_OTHER);
		break;
	case ROLE_NEW_DIR:
		make(w, name, NODE_DIR);
		break;
	case ROLE_GONE_FILE:
	case ROLE_GONE_DIR:
		w->at[name] = 0;
		break;
	case ROLE_LINK_NEW:
		w->at[name] = w->at[c->name[0]];
		break;
	case ROLE_TO:
		if (c->value & RENAME_W_EXCHANGE) {
			uint8_t node = w->at[name]; /* both are empty, if directories */
			w->at[name] = w->at[c->name[0]];
			w->at[c->name[0]] = node;
		} else if (w->at[name] != w->at[c->name[0]]) {
			/* Renaming one name of a file to another of its names does nothing. */
			move_name(w, p, c->name[0], name);
		}
		break;
	default:
		break;
	}
}

void gen_world_perform(struct gen_world *w, const struct gen_pool *p, const struct gen_choice *c,
		       struct strbuf *out)
{
	unsigned i = 0;
	struct extent e = { 0, 0 };

	strbuf_add(out, c->head, c->head_len);
	if (c->range >= 0) {
		e = place(c, gen_node_at(w, c->name[0])->size);
		strbuf_addu(out, e.off);
		strbuf_addch(out, ' ');
		strbuf_addu(out, e.len);
	}
	strbuf_adds(out, c->tail);
	strbuf_addch(out, '\n');
	for (const struct arg_def *arg = c->def->args; arg->kind != ARG_END; arg++) {
		if (arg->role != ROLE_NONE)
			change_name(w, p, c, i++, arg->role);
		if (arg->kind == ARG_XATTR && arg[1].kind == ARG_END)
			gen_node_at(w, c->name[0])->xattrs &= (uint16_t) ~(1u << c->xattr);
		else if (arg->kind == ARG_XATTR)
			gen_node_at(w, c->name[0])->xattrs |= (uint16_t)(1u << c->xattr);
	}
	if (c->def->flags & OP_DATA)
		change_data(w, c, e);
}
