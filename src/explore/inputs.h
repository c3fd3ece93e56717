/* SPDX-License-Identifier: MIT */
/*
 * inputs.h - the operations that the model checker does to a file system: those of ops.def, on a
 * bounded pool of names, with arguments drawn from partitions by weight.
 *
 * Numbers are partitioned by powers of two, and zero: a partition is drawn by its weight, then its
 * boundary, a neighbour of it, or something inside. Bitmaps (flags, modes) are drawn bit by bit,
 * each with a probability, or as one of several combinations, each with a weight. Words are
 * categories. Everything has a weight; a file of one's own changes them (outage-explore(1) has the
 * format).
 *
 * An alphabet is a fixed list of steps drawn from these. A step is one operation, or several where
 * a handle is open in between: a file system that is put back to an earlier state cannot have open
 * files, so open, act and close belong together. The data that a write puts into a file depend on
 * the operation's place in the alphabet: the same step in the same state leads to the same state.
 */
#ifndef EXPLORE_INPUTS_H
#define EXPLORE_INPUTS_H

#include "base/strbuf.h"
#include "explore/dist.h"
#include "workload/workload.h"

enum {
	INPUTS_NAMES_MAX = 4096,
	INPUTS_POWERS = 28, /* partitions of a number: 0, 1, 2-3, 4-7, ... */
};

struct inputs_name {
	char *path;
	bool dir; /* meant to be a directory */
};

enum inputs_kind {
	INPUTS_PART,	    /* the lower end of a number's partition, or a word */
	INPUTS_BIT,	    /* a bit of a bitmap: the weight is the probability that it is set */
	INPUTS_COMBINATION, /* all bits of a bitmap together */
	INPUTS_BY_BIT,	    /* how often, among combinations, it is drawn bit by bit */
};

/* A weight that was asked for. */
struct inputs_weight {
	const struct op_def *def;
	unsigned arg;
	enum inputs_kind kind;
	uint64_t value;
	double weight; /* below 0: as its place among the combinations says */
};

/* Where in its partition a number is. */
enum inputs_place { PLACE_AT, PLACE_ABOVE, PLACE_BELOW, PLACE_INSIDE, PLACE_END };

struct inputs {
	uint32_t files, dirs, depth; /* in each directory; levels of directories */
	uint32_t long_names;	     /* of 255 bytes, in the root */
	uint32_t many;		     /* more files in the first directory */
	uint64_t max_size;	     /* no file gets longer */
	uint64_t max_xattr;	     /* bytes of an attribute's value */
	enum dist operations, paths, sizes, flags;
	double place[PLACE_END];
	double op_weight[OP_COUNT];
	struct vec_of(struct inputs_weight) weights;
	struct vec_of(struct inputs_name) pool; /* made by inputs_finish() */
	struct wheel op_wheel;
};

void inputs_init(struct inputs *in);
void inputs_release(struct inputs *in);
/* Changes the weights, and the names, for runs that cut the power. */
void inputs_for_crashes(struct inputs *in);
/* Reads a file of one's own over what is there. */
int inputs_parse(struct inputs *in, const char *text, size_t len, const char *source,
		 struct err *err) must_check;
/* "rank": the distribution of everything. */
int inputs_distribute(struct inputs *in, const char *name, struct err *err) must_check;
/* Makes the pool; fails if nothing could be drawn. Call it once, before drawing. */
int inputs_finish(struct inputs *in, struct err *err) must_check;

/* Which partition a number is in: 0 for 0, else 1 and its highest bit. */
unsigned inputs_power(uint64_t value);
/* Where a number from 1 on is: a power of two, one more, one less than the next, or between. */
enum inputs_place inputs_place(uint64_t value);
const char *inputs_place_name(enum inputs_place place);

/* ---- bitmaps ---- */

enum { BITMAP_WORDS_MAX = 16, MODE_BITS = 12 };

/* Whether an argument is one: flags, or a mode. */
bool bitmap_is(const struct arg_def *arg);
/* "creat,excl", "0644"; "none" if no bit is set. */
void bitmap_print(const struct arg_def *arg, uint64_t value, struct strbuf *out);

struct bitmap_values vec_of(uint64_t);

/* Every value that the words of an argument can make, or every mode; ascending. */
void bitmap_all(const struct arg_def *arg, struct bitmap_values *out);

struct step {
	uint32_t first, n; /* operations of the alphabet's workload */
};

struct alphabet {
	struct workload w;
	struct vec_of(struct step) steps;
	/*
	 * For an operation that makes its file if it is not there: a creat of the same name, which
	 * is in no step; for others UINT32_MAX. A target that fails half-way may have come so far.
	 */
	struct vec_of(uint32_t) made_only;
};

void alphabet_init(struct alphabet *a);
void alphabet_release(struct alphabet *a);
/*
 * Draws `n` steps. With `distinct`, no step twice, and fewer if there are not so many. The same
 * inputs, seed and n give the same alphabet.
 */
void alphabet_draw(struct alphabet *a, const struct inputs *in, uint64_t seed, size_t n,
		   bool distinct);

/* Fills in made_only for the operations that are there. */
void alphabet_add_made_only(struct alphabet *a);

#endif
