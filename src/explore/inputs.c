/* SPDX-License-Identifier: MIT */
/* inputs.c - weights and the pool of names; alphabet.c draws from them. */
#include "explore/inputs.h"

#include <errno.h>

#include "base/number.h"

static const struct {
	double usual, crashes;
} op_weights[OP_COUNT] = {
#define WEIGHT(usual_, crashes_)	      .usual = usual_, .crashes = crashes_
#define OP(name, help, args, is, weight, ...) [OP_ID(name)] = { weight },
#include "workload/ops.def"
};

void inputs_init(struct inputs *in)
{
	*in = (struct inputs){
		.files = 2,
		.dirs = 2,
		.depth = 2,
		.max_size = 64 << 10,
		.max_xattr = 1024,
		.sizes = DIST_UNIFORM,
		.place = { 1, 1, 1, 1 },
	};
	for (size_t i = 0; i < OP_COUNT; i++)
		in->op_weight[i] = op_weights[i].usual;
}

/* Crashes are about what was made durable: that has to happen often, and to few names. */
void inputs_for_crashes(struct inputs *in)
{
	in->depth = 1;
	for (size_t i = 0; i < OP_COUNT; i++)
		if (op_weights[i].crashes != op_weights[i].usual)
			in->op_weight[i] = op_weights[i].crashes;
}

void inputs_release(struct inputs *in)
{
	for (size_t i = 0; i < in->pool.n; i++)
		free(in->pool.v[i].path);
	vec_release(&in->pool);
	vec_release(&in->weights);
	wheel_release(&in->op_wheel);
}

unsigned inputs_power(uint64_t value)
{
	return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

static const char *const places[PLACE_END] = {
	[PLACE_AT] = "at",
	[PLACE_ABOVE] = "above",
	[PLACE_BELOW] = "below",
	[PLACE_INSIDE] = "inside",
};

const char *inputs_place_name(enum inputs_place place)
{
	assert(place < PLACE_END);
	return places[place];
}

/* Of 1, 2 and 3, which are all of these, the boundary counts before its neighbours. */
enum inputs_place inputs_place(uint64_t value)
{
	if (!(value & (value - 1)))
		return PLACE_AT;
	if (!((value - 1) & (value - 2)))
		return PLACE_ABOVE;
	return value & (value + 1) ? PLACE_INSIDE : PLACE_BELOW;
}

int inputs_distribute(struct inputs *in, const char *name, struct err *err)
{
	enum dist d = dist_find(name);

	if (d == DIST_END)
		return err_set(err, -EINVAL,
			       "'%.40s' is none of uniform, rank, inverse, decay, inverse-decay",
			       name);
	in->operations = in->paths = in->sizes = in->flags = d;
	return 0;
}

/* ---- the file ---- */

struct inputs_line {
	const char *source;
	unsigned number;
	char *words[8];
	unsigned n;
};

static int complain(const struct inputs_line *l, struct err *err, const char *what,
		    const char *word)
{
	return err_set(err, -EINVAL, "%s:%u: %s '%.60s'", l->source, l->number, what, word);
}

static int read_weight(const struct inputs_line *l, const char *word, double *out, struct err *err)
{
	char *end;
	double w = strtod(word, &end);

	if (*end || end == word || !(w >= 0) || w > WHEEL_WEIGHT_MAX)
		return complain(l, err, "a weight is a number from 0 to a million, not", word);
	*out = w;
	return 0;
}

static const struct op_def *read_op(const struct inputs_line *l, const char *word, struct err *err)
{
	const struct op_def *def = op_find(word, strlen(word));

	if (!def)
		complain(l, err, "there is no operation", word);
	return def;
}

/* operation NAME WEIGHT */
static int parse_operation(struct inputs *in, const struct inputs_line *l, struct err *err)
{
	const struct op_def *def = read_op(l, l->words[1], err);

	return def ? read_weight(l, l->words[2], &in->op_weight[op_id(def)], err) : -EINVAL;
}

/* only NAME...: the others weigh nothing */
static int parse_only(struct inputs *in, const struct inputs_line *l, struct err *err)
{
	double chosen[OP_COUNT] = { 0 };

	for (unsigned i = 1; i < l->n; i++) {
		const struct op_def *def = read_op(l, l->words[i], err);

		if (!def)
			return -EINVAL;
		chosen[op_id(def)] = in->op_weight[op_id(def)] ?: 10;
	}
	memcpy(in->op_weight, chosen, sizeof(chosen));
	return 0;
}

static int parse_names(struct inputs *in, const struct inputs_line *l, struct err *err)
{
	const struct {
		const char *name;
		uint32_t *to;
		uint32_t most;
	} kinds[] = { { "files", &in->files, 100 },
		      { "dirs", &in->dirs, 100 },
		      { "depth", &in->depth, 16 },
		      { "long", &in->long_names, 100 },
		      { "many", &in->many, 2000 } };
	uint64_t n;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!streq(kinds[i].name, l->words[1]))
			continue;
		if (number_parse(l->words[2], &n) || n > kinds[i].most)
			return err_set(err, -EINVAL, "%s:%u: %s is a number up to %u", l->source,
				       l->number, kinds[i].name, kinds[i].most);
		*kinds[i].to = (uint32_t)n;
		return 0;
	}
	return complain(l, err, "names are files, dirs, depth, long or many, not", l->words[1]);
}

static int parse_max(struct inputs *in, const struct inputs_line *l, struct err *err)
{
	bool xattr = streq(l->words[1], "xattr");
	uint64_t *to = xattr ? &in->max_xattr : &in->max_size;
	uint64_t limit = xattr ? 65537 : (uint64_t)1 << 26, size;

	if (!xattr && !streq(l->words[1], "size"))
		return complain(l, err, "max is of size or xattr, not of", l->words[1]);
	if (number_parse_size(l->words[2], &size, err))
		return -EINVAL;
	if (!size || size > limit)
		return err_set(err, -EINVAL, "%s:%u: max %s is from 1 to %llu bytes", l->source,
			       l->number, l->words[1], llu(limit));
	*to = size;
	return 0;
}

static int parse_distribution(struct inputs *in, const struct inputs_line *l, struct err *err)
{
	const struct {
		const char *name;
		enum dist *to;
	} whats[] = { { "operations", &in->operations },
		      { "paths", &in->paths },
		      { "sizes", &in->sizes },
		      { "flags", &in->flags } };
	enum dist d = dist_find(l->words[2]);

	if (d == DIST_END)
		return complain(l, err,
				"a distribution is uniform, rank, inverse, decay or inverse-decay, "
				"not",
				l->words[2]);
	for (size_t i = 0; i < ARRAY_SIZE(whats); i++)
		if (streq(whats[i].name, l->words[1])) {
			*whats[i].to = d;
			return 0;
		}
	return complain(l, err, "operations, paths, sizes and flags have distributions, not",
			l->words[1]);
}

static int read_word(const struct inputs_line *l, const struct arg_def *arg, const char *word,
		     uint64_t *out, struct err *err)
{
	for (const struct word *w = arg->words; w->name; w++)
		if (streq(w->name, word)) {
			*out = w->value;
			return 0;
		}
	return complain(l, err, "this argument has no word", word);
}

static int read_mode(const struct inputs_line *l, const char *word, uint64_t *out, struct err *err)
{
	char *end;

	*out = strtoull(word, &end, 8);
	if (!*word || *end || *out > 07777)
		return complain(l, err, "a mode is octal, not", word);
	return 0;
}

/* "creat,excl" or "none"; "0644". */
static int read_combination(const struct inputs_line *l, const struct arg_def *arg,
			    const char *text, uint64_t *out, struct err *err)
{
	auto_free char *copy = xstrdup(text);
	char *rest = copy;
	int rc = 0;

	*out = 0;
	if (arg->kind == ARG_MODE)
		return read_mode(l, text, out, err);
	if (streq(text, "none"))
		return 0;
	for (char *word; !rc && (word = strsep(&rest, ","));) {
		uint64_t one = 0;

		rc = read_word(l, arg, word, &one, err);
		*out |= one;
	}
	return rc;
}

/* Reads the name of a value of this argument. */
static int read_part(const struct inputs_line *l, const struct arg_def *arg, const char *word,
		     uint64_t *out, struct err *err)
{
	switch (arg->kind) {
	case ARG_CHOICE:
		return read_word(l, arg, word, out, err);
	case ARG_OFFSET:
	case ARG_LENGTH:
	case ARG_SIZE:
		if (number_parse_size(word, out, err))
			return -EINVAL;
		if (*out & (*out - 1))
			return complain(l, err, "a partition begins at 0 or a power of two, not at",
					word);
		return 0;
	default:
		return complain(l, err, "this argument has no partitions:", arg->name);
	}
}

/* OPERATION ARGUMENT, the second and third word. */
static const struct arg_def *read_arg(const struct inputs_line *l, struct inputs_weight *w,
				      struct err *err)
{
	w->def = read_op(l, l->words[1], err);
	if (!w->def)
		return NULL;
	while (w->def->args[w->arg].kind != ARG_END &&
	       !streq(w->def->args[w->arg].name, l->words[2]))
		w->arg++;
	if (w->def->args[w->arg].kind != ARG_END)
		return &w->def->args[w->arg];
	auto_strbuf names = STRBUF_INIT;
	for (unsigned i = 0; w->def->args[i].kind != ARG_END; i++)
		strbuf_addf(&names, "%s%s", i ? ", " : "", w->def->args[i].name);
	err_set(err, -EINVAL, "%s:%u: %s has no argument '%.60s'; it has %s", l->source, l->number,
		w->def->name, l->words[2], names.len ? strbuf_str(&names) : "none");
	return NULL;
}

static int read_bitmap_arg(const struct inputs_line *l, struct inputs_weight *w,
			   const struct arg_def **out, struct err *err)
{
	*out = read_arg(l, w, err);
	if (!*out)
		return -EINVAL;
	return bitmap_is(*out) ? 0 : complain(l, err, "neither flags nor a mode:", (*out)->name);
}

/* bit OPERATION ARGUMENT BIT PROBABILITY */
static int parse_bit(struct inputs *in, const struct inputs_line *l, struct err *err)
{
	struct inputs_weight w = { .kind = INPUTS_BIT };
	const struct arg_def *arg;
	int rc = read_bitmap_arg(l, &w, &arg, err);

	if (!rc && arg->kind == ARG_FLAGS)
		rc = read_word(l, arg, l->words[3], &w.value, err);
	else if (!rc)
		rc = read_mode(l, l->words[3], &w.value, err);
	if (!rc && arg->kind == ARG_MODE && (!w.value || w.value & (w.value - 1)))
		rc = complain(l, err, "a bit of a mode is 1, 2, 4, 10, 20 and so on, not",
			      l->words[3]);
	if (!rc)
		rc = read_weight(l, l->words[4], &w.weight, err);
	if (!rc && w.weight > 1)
		rc = complain(l, err, "the probability of a bit is from 0 to 1, not", l->words[4]);
	if (!rc)
		vec_push(&in->weights, w);
	return rc;
}

/* combination OPERATION ARGUMENT BITS [WEIGHT]; BITS may be "by-bit" */
static int parse_combination(struct inputs *in, const struct inputs_line *l, struct err *err)
{
	struct inputs_weight w = { .kind = INPUTS_COMBINATION, .weight = -1 };
	const struct arg_def *arg;
	int rc = read_bitmap_arg(l, &w, &arg, err);

	if (!rc && streq(l->words[3], "by-bit"))
		w.kind = INPUTS_BY_BIT;
	else if (!rc)
		rc = read_combination(l, arg, l->words[3], &w.value, err);
	if (!rc && l->n == 5)
		rc = read_weight(l, l->words[4], &w.weight, err);
	if (!rc)
		vec_push(&in->weights, w);
	return rc;
}

/* weight OPERATION ARGUMENT VALUE WEIGHT: of flags a bit, of a mode a combination */
static int parse_weight(struct inputs *in, const struct inputs_line *l, struct err *err)
{
	struct inputs_weight w = { .kind = INPUTS_PART };
	const struct arg_def *arg = read_arg(l, &w, err);

	if (!arg)
		return -EINVAL;
	if (arg->kind == ARG_FLAGS)
		return parse_bit(in, l, err);
	if (arg->kind == ARG_MODE)
		return parse_combination(in, l, err);
	int rc = read_part(l, arg, l->words[3], &w.value, err);
	if (!rc)
		rc = read_weight(l, l->words[4], &w.weight, err);
	if (!rc)
		vec_push(&in->weights, w);
	return rc;
}

/* place at|above|below|inside WEIGHT */
static int parse_place(struct inputs *in, const struct inputs_line *l, struct err *err)
{
	for (enum inputs_place p = 0; p < PLACE_END; p++)
		if (streq(places[p], l->words[1]))
			return read_weight(l, l->words[2], &in->place[p], err);
	return complain(l, err, "a place is at, above, below or inside, not", l->words[1]);
}

static int parse_line(struct inputs *in, struct inputs_line *l, struct err *err)
{
	static const struct {
		const char *name;
		unsigned min, max;
		int (*parse)(struct inputs *in, const struct inputs_line *l, struct err *err);
	} kinds[] = {
		{ "operation", 3, 3, parse_operation },
		{ "only", 2, 8, parse_only },
		{ "names", 3, 3, parse_names },
		{ "max", 3, 3, parse_max },
		{ "distribution", 3, 3, parse_distribution },
		{ "weight", 5, 5, parse_weight },
		{ "bit", 5, 5, parse_bit },
		{ "combination", 4, 5, parse_combination },
		{ "place", 3, 3, parse_place },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!streq(kinds[i].name, l->words[0]))
			continue;
		if (l->n < kinds[i].min || l->n > kinds[i].max)
			return complain(l, err, "wrong number of words after", l->words[0]);
		return kinds[i].parse(in, l, err);
	}
	return complain(l, err,
			"a line begins with operation, only, names, max, distribution, weight, "
			"bit, combination or place, not",
			l->words[0]);
}

int inputs_parse(struct inputs *in, const char *text, size_t len, const char *source,
		 struct err *err)
{
	auto_free char *copy = xmemdupz(text, len);
	char *rest = copy;
	struct inputs_line l = { .source = source };

	if (strlen(copy) != len)
		return err_set(err, -EINVAL, "%s is no text: it holds a zero byte", source);
	for (char *line; (line = strsep(&rest, "\n"));) {
		l.number++;
		l.n = 0;
		line[strcspn(line, "#")] = '\0';
		for (char *word; (word = strsep(&line, " \t"));) {
			if (!*word)
				continue;
			if (l.n == ARRAY_SIZE(l.words))
				return complain(&l, err, "too many words in the line at", word);
			l.words[l.n++] = word;
		}
		int rc = l.n ? parse_line(in, &l, err) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- the pool ---- */

static void add_name(struct inputs *in, const char *dir, const char *name, bool is_dir)
{
	if (in->pool.n == INPUTS_NAMES_MAX)
		return;
	vec_push(&in->pool,
		 (struct inputs_name){ xasprintf("%s%s%s", dir, *dir ? "/" : "", name), is_dir });
}

static void fill_dir(struct inputs *in, const char *dir, uint32_t level)
{
	char name[16];

	for (uint32_t i = 0; i < in->files; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		add_name(in, dir, name, false);
	}
	for (uint32_t i = 0; i < in->dirs && level < in->depth; i++) {
		snprintf(name, sizeof(name), "%c", 'A' + (int)i);
		if (i >= 26)
			snprintf(name, sizeof(name), "D%u", i);
		add_name(in, dir, name, true);
	}
}

/* Level by level, so that names near the root come first. */
static void make_pool(struct inputs *in)
{
	fill_dir(in, "", 0);
	size_t from = 0;
	for (uint32_t level = 1; level <= in->depth; level++) {
		size_t to = in->pool.n;

		for (; from < to; from++)
			if (in->pool.v[from].dir)
				fill_dir(in, in->pool.v[from].path, level);
	}
	for (uint32_t i = 0; i < in->long_names; i++) {
		char name[256];

		snprintf(name, sizeof(name), "%u", i);
		memset(name + strlen(name), 'L', 255 - strlen(name));
		name[255] = '\0';
		add_name(in, "", name, i % 2);
	}
	for (uint32_t i = 0; i < in->many; i++) {
		char name[16];

		snprintf(name, sizeof(name), "m%04u", i);
		add_name(in, in->dirs && in->depth ? "A" : "", name, false);
	}
}

/* Counts the weights of that kind for the argument of `like`, and sums them up. */
static size_t sum_up(const struct inputs *in, const struct inputs_weight *like,
		     enum inputs_kind kind, double *sum)
{
	size_t n = 0;

	vec_each(w, &in->weights) {
		if (w->def != like->def || w->arg != like->arg || w->kind != kind)
			continue;
		n++;
		*sum += w->weight < 0 ? 1 : w->weight;
	}
	return n;
}

/* Checks weights: no bit need be set, but a category or a combination is always drawn. */
static int check_partitions(const struct inputs *in, struct err *err)
{
	vec_each(w, &in->weights) {
		const char *arg = w->def->args[w->arg].name;
		double sum = 0, ignored = 0;
		size_t bits = sum_up(in, w, INPUTS_BIT, &ignored);
		size_t others =
			sum_up(in, w, INPUTS_PART, &sum) + sum_up(in, w, INPUTS_COMBINATION, &sum);
		size_t by_bit = sum_up(in, w, INPUTS_BY_BIT, &sum);

		if (bits && others && !by_bit)
			return err_set(err, -EINVAL,
				       "%s %s has bits and combinations: say with 'combination %s "
				       "%s by-bit WEIGHT' how often bits are drawn",
				       w->def->name, arg, w->def->name, arg);
		if (others + by_bit && sum <= 0)
			return err_set(err, -EINVAL,
				       "the weights of %s %s sum to zero: nothing could be drawn",
				       w->def->name, arg);
	}
	return 0;
}

static int check_places(const struct inputs *in, struct err *err)
{
	double sum = 0;

	for (enum inputs_place p = 0; p < PLACE_END; p++)
		sum += in->place[p];
	return sum > 0 ? 0
		       : err_set(err, -EINVAL,
				 "the weights of at, above, below and inside sum to zero: no "
				 "number could be drawn");
}

int inputs_finish(struct inputs *in, struct err *err)
{
	for (size_t i = 0; i < OP_COUNT; i++)
		wheel_add(&in->op_wheel,
			  in->op_weight[i] * dist_weight(in->operations, i, OP_COUNT));
	if (!wheel_turns(&in->op_wheel))
		return err_set(err, -EINVAL,
			       "the weights of all operations are zero: nothing could be drawn");
	make_pool(in);
	if (!in->pool.n)
		return err_set(err, -EINVAL, "there are no names: files and dirs are both zero");
	int rc = check_places(in, err);
	return rc ? rc : check_partitions(in, err);
}
