/* SPDX-License-Identifier: MIT */
/*
 * gen_choices.c - goes through the arguments of an operation as the table describes them, and takes
 * every value that the bounds allow for each kind. A new operation whose arguments are of known
 * kinds is generated without a change here.
 */
#include "workload/gen_choices.h"

#include "workload/workload.h"

/* Values for kinds that the bounds do not mention. */
enum {
	GEN_MODE = 0700,
	GEN_ID = 1000,
	GEN_TIME = 1000000000,
	GEN_COPY = 8192,
	GEN_APPEND = 4096,
};

struct builder {
	struct gen_choices *list;
	const struct bounds *b;
	const struct gen_pool *p;
	struct arena *arena;
	struct gen_choice choice;
	struct op op; /* the choice as an operation, to be printed; `tail` is printed after it */
	unsigned n_names;
};

static void add_arg(struct builder *s, size_t at);

/* The names that a path of this role may have. */
static names_t candidates(const struct builder *s, const struct arg_def *arg)
{
	switch (arg->role) {
	case ROLE_NEW_DIR:
	case ROLE_GONE_DIR:
		return gen_pool_names(s->p, true);
	case ROLE_OBJECT:
	case ROLE_FROM:
	case ROLE_TO:
		return gen_pool_names(s->p, false) | gen_pool_names(s->p, true);
	default:
		return gen_pool_names(s->p, false);
	}
}

/* True if a second name fits the first: different, of one kind, neither inside the other. */
static bool fits_first(const struct builder *s, unsigned name)
{
	const struct gen_name *a = &s->p->name[s->choice.name[0]], *b = &s->p->name[name];

	return s->choice.name[0] != name && a->is_dir == b->is_dir && !(a->line & name_bit(name)) &&
	       !(b->line & name_bit(s->choice.name[0]));
}

/* Whether neither a file nor a directory may be at the name. */
static bool may_be_other(const struct builder *s, const struct arg_def *arg, unsigned name)
{
	switch (arg->role) {
	case ROLE_NEW_OTHER:
		return true;
	case ROLE_FROM:
	case ROLE_TO:
	case ROLE_LINK_OLD:
	case ROLE_LINK_NEW:
		return s->b->file_kind != KIND_FILE && !s->p->name[name].is_dir;
	default:
		return false;
	}
}

static void add_path(struct builder *s, size_t at, const struct arg_def *arg)
{
	struct gen_choice saved = s->choice;
	unsigned slot = s->n_names++;

	for (names_t left = candidates(s, arg); left; left &= left - 1) {
		unsigned name = (unsigned)__builtin_ctzll(left);

		s->choice = saved;
		if (slot && !fits_first(s, name))
			continue;
		s->choice.name[slot] = (uint8_t)name;
		s->choice.uses |= name_bit(name);
		/* Other nodes cannot be synced, but their directory can. */
		names_t subject = may_be_other(s, arg, name) ? name_bit(s->p->name[name].parent)
							     : name_bit(name);
		s->choice.subjects |= subject;
		s->choice.left |= arg->role == ROLE_FROM ? 0 : subject;
		if (s->op.def->flags & OP_DATA)
			s->choice.data = name_bit(name); /* the file that is named last changes */
		s->op.args[at].text = s->p->name[name].path;
		add_arg(s, at + 1);
	}
	s->choice = saved;
	s->n_names--;
}

static unsigned ranges_for(const struct builder *s)
{
	if (s->op.def->flags & OP_RANGES)
		return s->b->falloc_ranges;
	return s->choice.direct ? s->b->direct_ranges : s->b->ranges;
}

/* An offset and the length after it are one range; its numbers are chosen when the file's size is
 * known.
 */
static void add_range(struct builder *s, size_t at)
{
	if (s->op.def->args[at + 1].kind == ARG_FILE || s->choice.name[1] != NAME_NONE) {
		/* copy_file_range copies from the start to the start */
		s->op.args[at].num = 0;
		add_arg(s, at + 1);
		return;
	}
	for (int range = 0; range < RANGE_COUNT; range++) {
		if (!(ranges_for(s) & 1u << range))
			continue;
		s->choice.range = (int8_t)range;
		add_arg(s, at + 2);
		if (gen_choice_shifts(&s->choice))
			break;
	}
	s->choice.range = -1;
}

static void add_value(struct builder *s, size_t at, uint64_t value)
{
	s->op.args[at].num = value;
	add_arg(s, at + 1);
}

static void add_listed(struct builder *s, size_t at, const struct arg_def *arg)
{
	if (arg->words == op_falloc_words) {
		for (size_t i = 0; i < s->b->falloc_modes.n; i++) {
			s->op.args[at].text = s->b->falloc_modes.v[i].text;
			s->choice.value = s->b->falloc_modes.v[i].value;
			add_arg(s, at + 1);
		}
	} else if (arg->kind == ARG_XATTR) {
		for (size_t i = 0; i < s->b->xattrs.n; i++) {
			s->op.args[at].text = s->b->xattrs.v[i];
			s->choice.xattr = (uint8_t)i;
			add_arg(s, at + 1);
		}
	} else if (arg->kind == ARG_SIZE) {
		for (size_t i = 0; i < s->b->sizes.n; i++) {
			s->choice.value = (uint32_t)s->b->sizes.v[i];
			add_value(s, at, s->b->sizes.v[i]);
		}
	} else {
		s->op.args[at].text = arg->words[0].name; /* a choice: the first word */
		add_arg(s, at + 1);
	}
}

/* Whether the operation is a persistence point; its range is not chosen yet, but holds a byte. */
static bool persists(struct op op)
{
	for (size_t i = 0; op.def->args[i].kind != ARG_END; i++)
		if (op.def->args[i].kind == ARG_LENGTH)
			op.args[i].num = 1;
	return op_persists(&op);
}

/* Called when all arguments are chosen: prints the operation up to its range. */
static void finish(struct builder *s)
{
	auto_strbuf text = STRBUF_INIT;
	struct gen_choice c = s->choice;

	c.persists = persists(s->op);
	op_print(&s->op, &text);
	if (c.range >= 0) {
		/* The range is printed last, as "0 0". */
		assert(text.len > 3);
		strbuf_cut(&text, text.len - 3);
	}
	c.head = arena_memdupz(s->arena, strbuf_str(&text), text.len);
	c.head_len = (uint16_t)text.len;
	vec_push(s->list, c);
}

/* Flags that may be left out: each mode that the bounds have. Other flags are left out. */
static void add_modes(struct builder *s, size_t at, const struct arg_def *arg)
{
	static const struct {
		const struct word *words; /* NULL ends the table */
		bool direct;
		unsigned mode;
		uint64_t flags;
		const char *tail;
	} modes[] = {
		{ op_write_words, false, MODE_PLAIN, 0, "" },
		{ op_write_words, false, MODE_SYNC, WRITE_SYNC, " sync" },
		{ op_write_words, false, MODE_DSYNC, WRITE_DSYNC, " dsync" },
		{ op_write_words, true, MODE_PLAIN, 0, "" },
		{ op_write_words, true, MODE_SYNC, WRITE_SYNC, " sync" },
		{ op_write_words, true, MODE_DSYNC, WRITE_DSYNC, " dsync" },
		{ op_mmap_words, true, MODE_MSYNC, 0, "" },
		{ op_mmap_words, true, MODE_NOSYNC, MMAP_NOSYNC, " nosync" },
		{ NULL, false, 0, 0, NULL },
	};
	unsigned chosen = arg->words == op_mmap_words ? s->b->map_modes
			  : s->choice.direct	      ? s->b->direct_modes
						      : s->b->write_modes;
	bool any = false;

	for (size_t i = 0; modes[i].words; i++) {
		if (modes[i].words != arg->words || modes[i].direct != s->choice.direct)
			continue;
		any = true;
		if (!(chosen & modes[i].mode))
			continue;
		s->choice.tail = modes[i].tail;
		s->op.args[at].num = modes[i].flags;
		finish(s);
	}
	s->op.args[at].num = 0;
	s->choice.tail = "";
	if (!any)
		finish(s);
}

static void add_arg(struct builder *s, size_t at)
{
	const struct arg_def *arg = &s->op.def->args[at];

	if (arg->kind == ARG_END) {
		finish(s);
		return;
	}
	if (arg->optional) {
		add_modes(s, at, arg);
		return;
	}
	s->op.args[at].given = true;
	switch (arg->kind) {
	case ARG_PATH:
	case ARG_FILE:
		add_path(s, at, arg);
		break;
	case ARG_OFFSET:
		s->op.args[at + 1].given = true;
		add_range(s, at);
		break;
	case ARG_LENGTH:
		s->choice.value = s->n_names > 1 ? GEN_COPY : GEN_APPEND;
		add_value(s, at, s->choice.value);
		break;
	case ARG_MODE:
		add_value(s, at, GEN_MODE);
		break;
	case ARG_NUMBER:
		add_value(s, at,
			  s->op.def->args[1].kind == ARG_CHOICE		       ? 0
			  : streq(arg->name, "UID") || streq(arg->name, "GID") ? GEN_ID
									       : GEN_TIME);
		break;
	case ARG_TEXT:
		s->op.args[at].text = arg->target ? "target" : "value";
		add_arg(s, at + 1);
		break;
	default:
		add_listed(s, at, arg);
	}
}

void gen_choices_init(struct gen_choices *list, const struct bounds *b, const struct gen_pool *p,
		      struct arena *arena)
{
	*list = (struct gen_choices){ 0 };
	for (size_t i = 0; i < b->operations.n; i++) {
		const struct op_def *def = b->operations.v[i];
		struct builder s = {
			.list = list,
			.b = b,
			.p = p,
			.arena = arena,
			.op.def = def,
			.choice = { .def = def,
				    .name = { NAME_NONE, NAME_NONE },
				    .range = -1,
				    .tail = "" },
		};

		s.choice.direct = def->flags & (OP_DIRECT | OP_MAPS);
		add_arg(&s, 0);
	}
}

void gen_choices_release(struct gen_choices *list)
{
	vec_release(list);
}
