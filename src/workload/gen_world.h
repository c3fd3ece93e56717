/* SPDX-License-Identifier: MIT */
/*
 * gen_world.h - the names that bounds allow, and a small model of the file system, from which the
 * needs of an operation follow.
 */
#ifndef WORKLOAD_GEN_WORLD_H
#define WORKLOAD_GEN_WORLD_H

#include "base/strbuf.h"
#include "workload/bounds.h"

/* A set of names. */
typedef uint64_t names_t;

static inline names_t name_bit(unsigned n)
{
	return (names_t)1 << n;
}

enum { NAME_ROOT = 0, NAME_NONE = 0xff };

struct gen_name {
	const char *path;
	const char *base; /* the last component */
	uint8_t parent;
	bool is_dir;
	names_t line;	  /* the name and its ancestors below the root */
	names_t older;	  /* interchangeable siblings that come before it */
	names_t siblings; /* names of the same kind in the same directory */
	names_t children;
};

struct gen_pool {
	struct gen_name name[BOUNDS_NAMES_MAX];
	unsigned n;
};

void gen_pool_init(struct gen_pool *p, const struct bounds *b, struct arena *arena);
names_t gen_pool_names(const struct gen_pool *p, bool dirs); /* files or dirs, without the root */

/* ---- the world ---- */

enum node_type { NODE_ABSENT, NODE_FILE, NODE_DIR, NODE_OTHER };

enum {
	NODES_MAX = 128,
	FILE_SIZE = 16384, /* size of a file that must not be empty: four pages */
};

struct gen_node {
	uint8_t type;
	uint16_t xattrs; /* a bit for each of bounds.xattrs that it has */
	uint32_t size;
};

struct gen_world {
	uint8_t at[BOUNDS_NAMES_MAX]; /* name to node; 0: the name does not exist */
	uint8_t n_nodes;
	struct gen_node node[NODES_MAX];
};

void gen_world_init(struct gen_world *w);

static inline struct gen_node *gen_node_at(struct gen_world *w, unsigned name)
{
	return &w->node[w->at[name]];
}

/* An operation with its arguments, as phase 2 of generation chooses it. */
struct gen_choice {
	const struct op_def *def;
	uint8_t name[2]; /* in the order of the arguments; NAME_NONE: none */
	int8_t range;	 /* enum range, or -1 */
	bool direct;	 /* ranges are whole pages */
	uint8_t xattr;
	uint32_t value;	  /* falloc modes, size for truncate */
	const char *head; /* the text up to the range, or all of it */
	uint16_t head_len;
	names_t uses;	  /* the names it takes */
	names_t subjects; /* names that can be persisted */
	names_t left;	  /* names that it leaves behind, unless it only removes */
	names_t data;	  /* names whose data it changes */
	bool persists;	  /* by itself, as msync does */
	const char *tail; /* the text after the range */
};

/* True for a falloc that moves data: its range is fixed, whatever the class. */
bool gen_choice_shifts(const struct gen_choice *c);

/* Appends the operations that the choice depends on, marked "setup", and performs them here. */
void gen_world_prepare(struct gen_world *w, const struct gen_pool *p, const struct bounds *b,
		       const struct gen_choice *c, struct strbuf *out);
/*
 * Appends those of them that may stand before every operation of the workload: for the names on
 * whose way no name is in `used`, which operations before have.
 */
void gen_world_prepare_first(struct gen_world *w, const struct gen_pool *p, const struct bounds *b,
			     const struct gen_choice *c, names_t used, struct strbuf *out);
/* Appends the operation itself, and performs it in the world. */
void gen_world_perform(struct gen_world *w, const struct gen_pool *p, const struct gen_choice *c,
		       struct strbuf *out);
/* Makes sure that the name exists, so that it can be persisted. */
void gen_world_require(struct gen_world *w, const struct gen_pool *p, unsigned name,
		       struct strbuf *out);

#endif
