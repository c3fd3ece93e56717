/* SPDX-License-Identifier: MIT */
/* alphabet.c - draws steps. See inputs.h. */
#include <fcntl.h>
#include <sys/stat.h>

#include "core/hashset.h"
#include "explore/inputs.h"

enum { BLOCK = 4096 };

struct drawer {
	const struct inputs *in;
	struct rng rng;
	struct alphabet *a;
	struct wheel names, dirs, files; /* over the whole pool */
	struct wheel powers;		 /* for a number, unless weights are given */
	struct wheel places;
	struct wheel scratch;
	char *text; /* the value of an attribute */
};

/* ---- arguments ---- */

static const char *draw_name(struct drawer *d, enum path_role role)
{
	const struct wheel *w = &d->names;

	/* Mostly what the operation is made for; sometimes anything, for the errors. */
	if (rng_below(&d->rng, 8)) {
		if (role == ROLE_NEW_DIR || role == ROLE_GONE_DIR)
			w = &d->dirs;
		else if (role != ROLE_OBJECT && role != ROLE_FROM && role != ROLE_TO)
			w = &d->files;
	}
	if (!wheel_turns(w))
		w = &d->names;
	return d->in->pool.v[wheel_draw(w, &d->rng)].path;
}

/* The weight that the inputs give to a value; `fallback` if they give none. */
static double weight_of(const struct drawer *d, const struct op_def *def, unsigned arg,
			enum inputs_kind kind, uint64_t value, double fallback)
{
	for (size_t i = d->in->weights.n; i-- > 0;) {
		const struct inputs_weight *w = &d->in->weights.v[i];

		if (w->def == def && w->arg == arg && w->kind == kind && w->value == value)
			return w->weight;
	}
	return fallback;
}

/* Where weights are given for an argument, what is not named weighs nothing. */
static bool any_weight(const struct drawer *d, const struct op_def *def, unsigned arg,
		       enum inputs_kind kind)
{
	return any_of(i, d->in->weights.n,
		      d->in->weights.v[i].def == def && d->in->weights.v[i].arg == arg &&
			      d->in->weights.v[i].kind == kind);
}

static const struct wheel *power_wheel(struct drawer *d, const struct op_def *def, unsigned arg)
{
	if (!any_weight(d, def, arg, INPUTS_PART))
		return &d->powers;
	wheel_clear(&d->scratch);
	for (unsigned p = 0; p < INPUTS_POWERS; p++)
		wheel_add(&d->scratch,
			  weight_of(d, def, arg, INPUTS_PART, p ? (uint64_t)1 << (p - 1) : 0, 0));
	return &d->scratch;
}

/* Somewhere in the partition: mostly at its boundary or beside it, else anywhere. */
static uint64_t inside(struct drawer *d, unsigned power)
{
	uint64_t from = (uint64_t)1 << (power - 1);

	switch ((enum inputs_place)wheel_draw(&d->places, &d->rng)) {
	case PLACE_INSIDE:
		return from + rng_below(&d->rng, from);
	case PLACE_ABOVE:
		return power > 1 ? from + 1 : from;
	case PLACE_BELOW:
		return 2 * from - 1;
	default:
		return from;
	}
}

static uint64_t draw_number(struct drawer *d, const struct op_def *def, unsigned arg)
{
	unsigned power = (unsigned)wheel_draw(power_wheel(d, def, arg), &d->rng);
	uint64_t n = power ? inside(d, power) : 0;

	return min(n, d->in->max_size);
}

static size_t count_words(const struct word *words)
{
	size_t n = 0;

	while (words[n].name)
		n++;
	return n;
}

/* ---- bitmaps ---- */

static bool toss(struct drawer *d, double p)
{
	return rng_below(&d->rng, 1000000) < (uint64_t)(min(p, 1.0) * 1e6);
}

/* One of the first three words, by the probabilities of the last two, or as they are used. */
static uint64_t draw_access(struct drawer *d, const struct op_def *def, unsigned arg)
{
	static const uint64_t access[] = { O_RDONLY, O_WRONLY, O_RDWR };

	wheel_clear(&d->scratch);
	for (size_t i = 0; i < ARRAY_SIZE(access); i++)
		wheel_add(&d->scratch, weight_of(d, def, arg, INPUTS_BIT, access[i],
						 dist_weight(d->in->flags, i, ARRAY_SIZE(access))));
	return wheel_turns(&d->scratch) ? access[wheel_draw(&d->scratch, &d->rng)] : O_RDONLY;
}

/* Bit by bit; without given weights, half a bit is set on average. */
static uint64_t draw_flag_bits(struct drawer *d, const struct op_def *def, unsigned arg)
{
	const struct word *words = def->args[arg].words;
	bool opens = def->flags & OP_MAKES_HANDLE;
	size_t n = count_words(words);
	uint64_t flags = opens ? draw_access(d, def, arg) : 0;

	for (size_t i = 0; i < n; i++) {
		double p = 0.5 * dist_weight(d->in->flags, i, n) / (double)n;

		/* How a file is opened is one of three, not a matter of bits. */
		if (opens && words[i].value <= O_RDWR)
			continue;
		if (toss(d, weight_of(d, def, arg, INPUTS_BIT, words[i].value, p)))
			flags |= words[i].value;
	}
	return flags;
}

/* Each by the toss of a coin; if bits are given, only these. */
static uint64_t draw_mode_bits(struct drawer *d, const struct op_def *def, unsigned arg)
{
	double p = any_weight(d, def, arg, INPUTS_BIT) ? 0 : 0.5;
	uint64_t mode = 0;

	for (unsigned bit = 0; bit < MODE_BITS; bit++)
		if (toss(d, weight_of(d, def, arg, INPUTS_BIT, (uint64_t)1 << bit, p)))
			mode |= (uint64_t)1 << bit;
	return mode;
}

static uint64_t draw_bits(struct drawer *d, const struct op_def *def, unsigned arg)
{
	return def->args[arg].kind == ARG_MODE ? draw_mode_bits(d, def, arg)
					       : draw_flag_bits(d, def, arg);
}

static bool combination_given(const struct drawer *d, const struct op_def *def, unsigned arg)
{
	return any_weight(d, def, arg, INPUTS_COMBINATION) ||
	       any_weight(d, def, arg, INPUTS_BY_BIT);
}

/* Whether the inputs have weights for it. */
static bool bitmap_given(const struct drawer *d, const struct op_def *def, unsigned arg)
{
	return any_weight(d, def, arg, INPUTS_BIT) || combination_given(d, def, arg);
}

static bool in_wheel(const struct inputs_weight *w, const struct op_def *def, unsigned arg)
{
	return w->def == def && w->arg == arg &&
	       (w->kind == INPUTS_COMBINATION || w->kind == INPUTS_BY_BIT);
}

/* One of the given combinations, in whose order the distribution applies. */
static uint64_t draw_given(struct drawer *d, const struct op_def *def, unsigned arg)
{
	size_t n = 0, place = 0;

	for (size_t i = 0; i < d->in->weights.n; i++)
		n += in_wheel(&d->in->weights.v[i], def, arg);
	wheel_clear(&d->scratch);
	vec_each(w, &d->in->weights) {
		bool in = in_wheel(w, def, arg);
		double given = in && w->weight < 0 ? dist_weight(d->in->flags, place, n)
						   : w->weight;

		place += in;
		wheel_add(&d->scratch, in ? given : 0);
	}
	const struct inputs_weight *w = &d->in->weights.v[wheel_draw(&d->scratch, &d->rng)];
	return w->kind == INPUTS_BY_BIT ? draw_bits(d, def, arg) : w->value;
}

/* The values that programs use most come first; all others now and then, bit by bit. */
static uint64_t draw_usual(struct drawer *d, const struct op_def *def, unsigned arg,
			   const uint64_t *usual, size_t n, unsigned by_bit)
{
	if (any_weight(d, def, arg, INPUTS_BIT) || !rng_below(&d->rng, by_bit))
		return draw_bits(d, def, arg);
	wheel_clear(&d->scratch);
	for (size_t i = 0; i < n; i++)
		wheel_add(&d->scratch, dist_weight(d->in->flags, i, n));
	return usual[wheel_draw(&d->scratch, &d->rng)];
}

static uint64_t draw_bitmap(struct drawer *d, const struct op_def *def, unsigned arg)
{
	static const uint64_t modes[] = {
		0644, 0755, 0600, 0777, 0, 0400, 0111, 01777, 02755, 04755
	};
	/* The modes of fallocate mean something only in certain combinations. */
	static const uint64_t fallocs[] = {
		0,
		FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_COLLAPSE_RANGE,
		FALLOC_FL_INSERT_RANGE,
	};

	if (combination_given(d, def, arg))
		return draw_given(d, def, arg);
	if (def->args[arg].kind == ARG_MODE)
		return draw_usual(d, def, arg, modes, ARRAY_SIZE(modes), 8);
	if (def->args[arg].words == op_falloc_words)
		return draw_usual(d, def, arg, fallocs, ARRAY_SIZE(fallocs), 16);
	return draw_bits(d, def, arg);
}

/* ---- other arguments ---- */

static uint64_t draw_word(struct drawer *d, const struct op_def *def, unsigned arg)
{
	const struct word *words = def->args[arg].words;
	size_t n = count_words(words);

	wheel_clear(&d->scratch);
	for (size_t i = 0; i < n; i++)
		wheel_add(&d->scratch,
			  any_weight(d, def, arg, INPUTS_PART)
				  ? weight_of(d, def, arg, INPUTS_PART, words[i].value, 0)
				  : dist_weight(d->in->flags, i, n));
	return words[wheel_draw(&d->scratch, &d->rng)].value;
}

static uint64_t draw_id(struct drawer *d)
{
	static const uint64_t ids[] = { 0, 1, 1000, 65534 };

	return ids[rng_below(&d->rng, ARRAY_SIZE(ids))];
}

static const char *draw_text(struct drawer *d, const struct arg_def *arg)
{
	if (arg->target)
		return rng_below(&d->rng, 8) ? draw_name(d, ROLE_OBJECT) : "nowhere";
	unsigned power = (unsigned)rng_below(&d->rng, inputs_power(d->in->max_xattr) + 1);
	uint64_t len = power ? min(inside(d, power), d->in->max_xattr) : 0;
	memset(d->text, 'a' + (int)rng_below(&d->rng, 26), len);
	d->text[len] = '\0';
	return d->text;
}

static const char *draw_xattr(struct drawer *d)
{
	static const char *const names[] = { "user.a", "user.b", "trusted.c", "user.d" };

	return names[rng_below(&d->rng, ARRAY_SIZE(names))];
}

static void draw_arg(struct drawer *d, const struct op_def *def, unsigned i, struct arg *out)
{
	const struct arg_def *arg = &def->args[i];

	out->given = true;
	switch (arg->kind) {
	case ARG_PATH:
	case ARG_FILE:
	case ARG_HANDLE:
		out->text = draw_name(d, arg->role);
		break;
	case ARG_TEXT:
		out->text = draw_text(d, arg);
		break;
	case ARG_XATTR:
		out->text = draw_xattr(d);
		break;
	case ARG_OFFSET:
	case ARG_LENGTH:
	case ARG_SIZE:
		out->num = draw_number(d, def, i);
		break;
	case ARG_MODE:
		out->num = draw_bitmap(d, def, i);
		break;
	case ARG_NUMBER:
		out->num = draw_id(d);
		break;
	case ARG_FLAGS:
		out->num = draw_bitmap(d, def, i);
		out->given = out->num || !arg->optional;
		break;
	case ARG_CHOICE:
		out->num = draw_word(d, def, i);
		break;
	case ARG_END:
		break;
	}
}

/* ---- operations ---- */

static uint64_t *length_of(struct op *op)
{
	for (unsigned i = 0; op->def->args[i].kind != ARG_END; i++) {
		enum arg_kind kind = op->def->args[i].kind;

		if (kind == ARG_LENGTH ||
		    (kind == ARG_SIZE && i && op->def->args[i - 1].kind == ARG_OFFSET))
			return &op->args[i].num;
	}
	return NULL;
}

static void round_to_blocks(struct op *op)
{
	for (unsigned i = 0; op->def->args[i].kind != ARG_END; i++) {
		enum arg_kind kind = op->def->args[i].kind;

		if (kind == ARG_OFFSET || kind == ARG_LENGTH || kind == ARG_SIZE)
			op->args[i].num = op->args[i].num / BLOCK * BLOCK;
	}
}

/* Leaves only one of two words that exclude each other, unless the inputs ask for both. */
static void tame_words(struct drawer *d, struct op *op, unsigned i)
{
	const struct arg_def *arg = &op->def->args[i];
	uint64_t value = op->args[i].num;

	if (arg->exclusive && value & (value - 1) && !bitmap_given(d, op->def, i))
		op->args[i].num = arg->words[rng_below(&d->rng, count_words(arg->words))].value;
}

/* Keeps what is drawn inside what is asked for: sizes, and what direct I/O is aligned to. */
static void tame(struct drawer *d, struct op *op)
{
	uint64_t *length = length_of(op), end = 0;
	/* These modes take whole blocks, mostly. */
	bool whole = op_words(op, op_falloc_words) &
		     (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE | FALLOC_FL_ZERO_RANGE |
		      FALLOC_FL_UNSHARE_RANGE);

	if (op->def->flags & OP_DIRECT || (whole && rng_below(&d->rng, 8)))
		round_to_blocks(op);
	for (unsigned i = 0; op->def->args[i].kind != ARG_END; i++)
		if (op->def->args[i].kind == ARG_OFFSET)
			end = max(end, op->args[i].num);
	for (unsigned i = 0; op->def->args[i].kind != ARG_END; i++)
		tame_words(d, op, i);
	if (length && end + *length > d->in->max_size)
		*length = d->in->max_size - min(end, d->in->max_size);
}

static void draw_op(struct drawer *d, const struct op_def *def, struct op *op)
{
	*op = (struct op){ .def = def };
	for (unsigned i = 0; def->args[i].kind != ARG_END; i++)
		draw_arg(d, def, i, &op->args[i]);
	tame(d, op);
}

static void push(struct drawer *d, const struct op *op)
{
	workload_add(&d->a->w, op);
	vec_push(&d->a->made_only, UINT32_MAX);
}

/* ---- steps with a handle ---- */

static void push_open_as(struct drawer *d, const char *handle, const char *path, uint64_t flags,
			 uint64_t mode)
{
	push(d, &(struct op){ .def = OP_DEF(open),
			      .handle = handle,
			      .args = { { .text = path, .given = true },
					{ .num = flags, .given = true },
					{ .num = mode, .given = true } } });
}

static void push_open(struct drawer *d, const char *handle, const char *path, uint64_t flags)
{
	push_open_as(d, handle, path, flags, 0644);
}

static void push_on(struct drawer *d, const struct op_def *def, const char *handle, uint64_t offset,
		    uint64_t length)
{
	struct op op = { .def = def,
			 .args = { { .text = handle, .is_handle = true, .given = true } } };
	unsigned i = 1;

	if (def->args[i].kind == ARG_OFFSET)
		op.args[i++] = (struct arg){ .num = offset, .given = true };
	if (def->args[i].kind == ARG_LENGTH || def->args[i].kind == ARG_SIZE)
		op.args[i++] = (struct arg){ .num = length, .given = true };
	push(d, &op);
}

static void push_path(struct drawer *d, const struct op_def *def, const char *path,
		      const char *other)
{
	push(d, &(struct op){ .def = def,
			      .args = { { .text = path, .given = true },
					{ .text = other, .given = other != NULL } } });
}

/* Opens, acts, closes: one step. The places of writes are multiples of a block for direct I/O. */
static void draw_handle_step(struct drawer *d)
{
	const char *path = draw_name(d, ROLE_MAKE);
	uint64_t room = d->in->max_size / 2;
	uint64_t offset = min(draw_number(d, OP_DEF(pwrite), 1), room);
	uint64_t length = min(draw_number(d, OP_DEF(pwrite), 2), room);
	const struct op_def *def = OP_DEF(open);
	bool given = bitmap_given(d, def, 1) || bitmap_given(d, def, 2);
	uint64_t flags;

	/* If the inputs say how files are opened, they are opened so and not otherwise. */
	switch (given ? 4 : rng_below(&d->rng, 5)) {
	case 0:
		push_open(d, "h", path, O_RDWR | O_CREAT);
		push_path(d, OP_DEF(unlink), path, NULL);
		push_on(d, OP_DEF(write), "h", offset, length);
		break;
	case 1:
		push_open(d, "h", path, O_RDWR);
		push_path(d, OP_DEF(rename), path, draw_name(d, ROLE_TO));
		push_on(d, OP_DEF(truncate), "h", 0, length);
		break;
	case 2:
		push_open(d, "h", path, O_RDWR | O_CREAT | O_APPEND);
		push_open(d, "i", path, O_RDWR);
		push_on(d, OP_DEF(pwrite), "i", offset, length);
		push_on(d, OP_DEF(append), "h", 0, min(length, (uint64_t)BLOCK));
		push_on(d, OP_DEF(close), "i", 0, 0);
		break;
	default:
		flags = draw_bitmap(d, def, 1);
		if (flags & O_DIRECT) {
			offset = offset / BLOCK * BLOCK;
			length = length / BLOCK * BLOCK;
		}
		if ((flags & O_TMPFILE) == O_TMPFILE)
			path = draw_name(d, ROLE_NEW_DIR);
		push_open_as(d, "h", path, flags, draw_bitmap(d, def, 2));
		push_on(d, OP_DEF(pwrite), "h", offset, length);
	}
	push_on(d, OP_DEF(close), "h", 0, 0);
}

static void draw_step(struct drawer *d)
{
	const struct op_def *def = &op_table[wheel_draw(&d->in->op_wheel, &d->rng)];
	struct op op;

	if (def->flags & OP_MAKES_HANDLE) {
		draw_handle_step(d);
		return;
	}
	draw_op(d, def, &op);
	push(d, &op);
}

/* ---- all of them ---- */

/* Behind the steps: what is left of an operation that makes its file, and then fails. */
void alphabet_add_made_only(struct alphabet *a)
{
	size_t n = a->w.ops.n;
	const struct op_def *creat = OP_DEF(creat);

	for (size_t i = 0; i < n; i++) {
		const struct op *op = &a->w.ops.v[i];
		const struct op_def *def = op->def;

		for (unsigned k = 0; def->args[k].kind != ARG_END; k++) {
			if (def->args[k].role != ROLE_MAKE || op->args[k].is_handle)
				continue;
			struct op made = { .def = creat,
					   .args = { { .text = op->args[k].text, .given = true },
						     { .num = 0644, .given = true } } };
			a->made_only.v[i] = (uint32_t)a->w.ops.n;
			workload_push(&a->w, &made);
			vec_push(&a->made_only, UINT32_MAX);
			break;
		}
	}
}

static struct hash128 step_hash(const struct alphabet *a, size_t from)
{
	auto_strbuf text = STRBUF_INIT;

	for (size_t i = from; i < a->w.ops.n; i++) {
		op_print(&a->w.ops.v[i], &text);
		strbuf_addch(&text, '\n');
	}
	return hash_bytes(strbuf_str(&text), text.len);
}

static void drawer_init(struct drawer *d, struct alphabet *a, const struct inputs *in,
			uint64_t seed)
{
	unsigned powers = min(inputs_power(in->max_size) + 1, (unsigned)INPUTS_POWERS);

	*d = (struct drawer){ .in = in, .a = a, .text = xmalloc(in->max_xattr + 1) };
	rng_init(&d->rng, seed);
	for (size_t i = 0; i < in->pool.n; i++) {
		double w = dist_weight(in->paths, i, in->pool.n);

		wheel_add(&d->names, w);
		wheel_add(&d->dirs, in->pool.v[i].dir ? w : 0);
		wheel_add(&d->files, in->pool.v[i].dir ? 0 : w);
	}
	for (unsigned p = 0; p < powers; p++)
		wheel_add(&d->powers, dist_weight(in->sizes, p, powers));
	for (enum inputs_place p = 0; p < PLACE_END; p++)
		wheel_add(&d->places, in->place[p]);
}

static void drawer_release(struct drawer *d)
{
	wheel_release(&d->names);
	wheel_release(&d->dirs);
	wheel_release(&d->files);
	wheel_release(&d->powers);
	wheel_release(&d->places);
	wheel_release(&d->scratch);
	free(d->text);
}

void alphabet_init(struct alphabet *a)
{
	*a = (struct alphabet){ 0 };
	workload_init(&a->w);
}

void alphabet_release(struct alphabet *a)
{
	workload_release(&a->w);
	vec_release(&a->steps);
	vec_release(&a->made_only);
}

void alphabet_draw(struct alphabet *a, const struct inputs *in, uint64_t seed, size_t n,
		   bool distinct)
{
	auto_call(drawer_release) struct drawer d;
	auto_hashset seen = HASHSET_INIT;
	size_t tries = distinct ? 20 * n + 100 : n;

	workload_clear(&a->w);
	vec_clear(&a->steps);
	vec_clear(&a->made_only);
	drawer_init(&d, a, in, seed);
	while (a->steps.n < n && tries--) {
		size_t from = a->w.ops.n;

		draw_step(&d);
		if (distinct && !hashset_insert(&seen, step_hash(a, from))) {
			a->w.ops.n = a->made_only.n = from;
			continue;
		}
		vec_push(&a->steps, (struct step){ (uint32_t)from, (uint32_t)(a->w.ops.n - from) });
	}
	alphabet_add_made_only(a);
}
