/* SPDX-License-Identifier: MIT */
/*
 * stepper.c - performs a step on each side, compares results and trees, and votes on which side is
 * wrong.
 */
#include "explore/stepper_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* ---- opening ---- */

static void add_ignored(struct stepper *s, const char *const *names)
{
	size_t n = 0;

	while (s->ignore[n])
		n++;
	for (; names && *names && n + 1 < ARRAY_SIZE(s->ignore); names++)
		s->ignore[n++] = *names;
}

/* Only properties that every side can tell are compared. */
static void choose_tree_opts(struct stepper *s)
{
	static const char *const filler[] = { SIDE_FILLER, NULL };

	s->tree_opts = (struct tree_opts){ .dir_nlink = true, .ignore = s->ignore };
	add_ignored(s, filler);
	for (unsigned i = 0; i < s->n; i++) {
		add_ignored(s, side_ignore(s->sides[i]));
		if (differences_find(s->sides[i]->differences, DIFFER_DIR_NLINK))
			s->tree_opts.dir_nlink = false;
		s->parts |= !differences_find(s->sides[i]->differences, DIFFER_WHITEOUT) !=
			    !differences_find(s->sides[0]->differences, DIFFER_WHITEOUT);
	}
}

static int look_at_fresh(struct stepper *s, struct err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < s->n && !rc; i++)
		rc = s->sides[i]->ops->tree(s->sides[i], &s->tree_opts, &s->fresh[i], err);
	return rc;
}

/* Sides that can run full get the room of the smallest. */
static int equal_room(struct stepper *s, struct err *err)
{
	uint64_t room[SIDES_MAX], least = UINT64_MAX;
	unsigned limited = 0;
	int rc = 0;

	for (unsigned i = 0; i < s->n && !rc; i++) {
		if (!s->sides[i]->ops->room)
			continue;
		rc = s->sides[i]->ops->room(s->sides[i], &room[i], err);
		least = min(least, room[i]);
		limited++;
	}
	for (unsigned i = 0; i < s->n && !rc && limited > 1; i++)
		if (s->sides[i]->ops->fill && room[i] > least)
			rc = s->sides[i]->ops->fill(s->sides[i], room[i] - least, err);
	return rc;
}

int stepper_open(struct stepper *s, const struct side_opts *opts, const char *const *specs,
		 unsigned n, struct err *err)
{
	struct side_opts how = *opts;
	int rc = 0;

	*s = (struct stepper){ .compare_every = 1 };
	assert(n >= 2 && n <= SIDES_MAX);
	for (unsigned i = 0; i < n && !rc; i++) {
		/* Options of the target's disk are not for the others. */
		if (i)
			how.target = opts->references ? opts->references[i]
						      : (struct target_opts){ 0 };
		how.target.worker = opts->target.worker;
		how.target.timeout_ms = opts->target.timeout_ms;
		how.target.kmsg = opts->target.kmsg;
		how.target.starting = opts->target.starting;
		how.target.starting_ctx = opts->target.starting_ctx;
		how.target.spec = specs[i];
		rc = side_open(&how, &s->sides[i], err);
		if (rc)
			break;
		s->n++;
		if (!i)
			how.relative_to = s->sides[0]->differences;
	}
	if (!rc)
		rc = stepper_check_comparable(s, err);
	if (!rc)
		rc = equal_room(s, err);
	if (!rc) {
		choose_tree_opts(s);
		rc = look_at_fresh(s, err);
	}
	if (rc)
		stepper_close(s);
	return rc;
}

void stepper_close(struct stepper *s)
{
	for (unsigned i = 0; i < s->n; i++)
		side_close(s->sides[i]);
	for (unsigned i = 0; i < SIDES_MAX; i++)
		tree_release(&s->trees[i]), tree_release(&s->fresh[i]);
	*s = (struct stepper){ 0 };
}

void step_result_clear(struct step_result *r)
{
	findings_clear(&r->findings);
	strbuf_clear(&r->said);
	strbuf_clear(&r->kernel_log);
	r->verdict = STEP_SAME;
	r->signature[0] = '\0';
}

void step_result_release(struct step_result *r)
{
	findings_release(&r->findings);
	strbuf_release(&r->said);
	strbuf_release(&r->kernel_log);
}

void stepper_begin(struct stepper *s, const struct alphabet *a)
{
	s->a = a;
	for (unsigned i = 0; i < s->n; i++)
		s->sides[i]->ops->begin(s->sides[i], &a->w);
}

/* ---- results ---- */

static void add_result(struct strbuf *out, int64_t result)
{
	const char *name = result < 0 ? strerrorname_np((int)-result) : NULL;

	if (result < 0)
		strbuf_addf(out, "fails with %s", name ? name : "an unknown error");
	else
		strbuf_addf(out, "returns %lld", (long long)result);
}

/* "ext4 returns 0; reffs fails with EEXIST" */
static void describe_results(const struct stepper *s, const int64_t *results, struct strbuf *out)
{
	for (unsigned i = 0; i < s->n; i++) {
		strbuf_addf(out, "%s%.60s ", i ? "; " : "", s->sides[i]->spec);
		add_result(out, results[i]);
	}
}

static void differ_in_result(const struct stepper *s, const struct op *op, const int64_t *results,
			     struct step_result *out)
{
	struct strbuf words = { 0 };

	op_print(op, &words);
	if (words.len > 300)
		strbuf_cut(&words, 300);
	strbuf_adds(&words, ": ");
	describe_results(s, results, &words);
	findings_add(&out->findings, FINDING_LIVE,
		     op->args[0].text ? xstrdup(op->args[0].text) : NULL, strbuf_detach(&words),
		     xstrdup("nothing had crashed yet"));
	snprintf(out->signature, sizeof(out->signature), SIGNATURE_RESULT "%s", op->def->name);
	out->seen = results[0];
	out->expected = results[1];
	out->verdict = STEP_DIFFERENT;
}

static unsigned votes(const struct stepper *s, const int64_t *results, int64_t for_)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n; i++)
		n += results[i] == for_;
	return n;
}

/*
 * With more than one reference, which side is at fault: of `n` sides `for_target` are as the target
 * is, and of the others at most `for_other` are of one mind.
 */
static void add_majority(const struct stepper *s, unsigned for_target, unsigned for_other,
			 struct step_result *out)
{
	const char *words;

	if (s->n == 2 || for_other * 2 > s->n)
		return;
	words = for_target * 2 > s->n
			? "the majority is with the target: a reference is at fault"
			: "there is no majority: the target or a reference may be at fault";
	findings_add(&out->findings, FINDING_LIVE, NULL, xstrdup(words), NULL);
}

/* The most sides that returned the same, and not what the target did. */
static unsigned votes_of_others(const struct stepper *s, const int64_t *results)
{
	unsigned most = 0;

	for (unsigned i = 1; i < s->n; i++)
		if (results[i] != results[0])
			most = max(most, votes(s, results, results[i]));
	return most;
}

/* A write that stopped early, for want of room. */
static bool stopped_early(const struct op *op, int64_t result, int64_t other)
{
	return result >= 0 && other > result && op->def->flags & (OP_WRITES | OP_DATA);
}

struct before {
	struct side_state *states[SIDES_MAX]; /* of the sides in this process */
};

static void forget(struct stepper *s, struct before *b)
{
	for (unsigned i = 1; i < s->n; i++)
		if (b->states[i])
			s->sides[i]->ops->drop(s->sides[i], b->states[i]);
}

/* A side in this process has its state before the step, in case the target refuses. */
static int remember(struct stepper *s, struct before *b, struct err *err)
{
	int rc = 0;

	*b = (struct before){ 0 };
	for (unsigned i = 1; i < s->n && !rc; i++)
		if (side_in_process(s->sides[i])) {
			rc = s->sides[i]->ops->save(s->sides[i], &b->states[i], err);
			s->sides[i]->counts.saves--; /* not one of the search */
		}
	return rc;
}

/* The references go back to where the target still is. */
static int adopt(struct stepper *s, const struct op *op, const struct before *b,
		 const int64_t *results, struct step_result *out, struct err *err)
{
	int rc = 0;

	s->counts.adopted++;
	if (s->coverage)
		coverage_count_adopted(s->coverage, op, results[0]);
	for (unsigned i = 1; i < s->n && !rc; i++) {
		if (results[i] == results[0] || results[i] < 0)
			continue;
		if (!b->states[i]) {
			out->verdict = STEP_ABANDONED;
			continue;
		}
		rc = s->sides[i]->ops->restore(s->sides[i], b->states[i], &out->said, err);
		s->sides[i]->counts.restores--;
	}
	return rc;
}

/* The target may fail so, whatever the references did. */
static bool target_is_excused(const struct stepper *s, const struct op *op, const int64_t *results)
{
	return !any_of(i, s->n,
		       results[i] != results[0] && !differences_excuse(s->sides[0]->differences, op,
								       results[0], results[i]));
}

/* Judges what one operation returned. `first`: nothing of the step was done before it. */
static int judge(struct stepper *s, const struct op *op, const int64_t *results,
		 const struct before *b, bool first, bool *adopted, struct step_result *out,
		 struct err *err)
{
	bool excused = true, same = true;

	if (votes(s, results, results[0]) == s->n)
		return 0;
	for (unsigned i = 1; i < s->n; i++)
		same &= differences_same_failure(op, results[0], results[i]);
	if (same)
		return 0;
	if (target_is_excused(s, op, results)) {
		*adopted = true;
		if (first)
			return adopt(s, op, b, results, out, err);
		out->verdict = STEP_ABANDONED;
		return 0;
	}
	for (unsigned i = 1; i < s->n; i++)
		excused &= differences_same_failure(op, results[i], results[0]) ||
			   differences_can_more(s->sides[0]->differences, op, results[i]) ||
			   stopped_early(op, results[0], results[i]) ||
			   (!side_in_process(s->sides[i]) &&
			    (differences_excuse(s->sides[i]->differences, op, results[i],
						results[0]) ||
			     stopped_early(op, results[i], results[0])));
	if (excused) {
		out->verdict = STEP_ABANDONED;
		return 0;
	}
	differ_in_result(s, op, results, out);
	add_majority(s, votes(s, results, results[0]), votes_of_others(s, results), out);
	return 0;
}

/* ---- states ---- */

static bool same_xattrs(const struct tree_entry *a, const struct tree_entry *b)
{
	if (a->n_xattrs != b->n_xattrs)
		return false;
	return !any_of(i, a->n_xattrs,
		       !streq(a->xattrs[i].name, b->xattrs[i].name) ||
			       a->xattrs[i].len != b->xattrs[i].len ||
			       memcmp(a->xattrs[i].value, b->xattrs[i].value, a->xattrs[i].len) !=
				       0);
}

static struct tree_entry *root_of(struct tree *t)
{
	return t->entries.n && !*t->entries.v[0].path ? &t->entries.v[0] : NULL;
}

/*
 * The attributes mkfs gave to the root are its own business, and so is how many links that has to
 * begin with (lost+found counts). Later changes are compared: where neither side changed it, the
 * root of side `i` is made to look like that of reference 1.
 */
static void equal_roots(struct stepper *s, unsigned i)
{
	struct tree_entry *r = root_of(&s->trees[i]), *as = root_of(&s->trees[1]);
	struct tree_entry *was = root_of(&s->fresh[i]), *as_was = root_of(&s->fresh[1]);

	if (!r || !as || !was || !as_was)
		return;
	if (r->mode == was->mode && as->mode == as_was->mode)
		r->mode = as->mode;
	if (r->uid == was->uid && as->uid == as_was->uid)
		r->uid = as->uid;
	if (r->gid == was->gid && as->gid == as_was->gid)
		r->gid = as->gid;
	r->nlink += as_was->nlink - was->nlink;
	if (same_xattrs(r, was) && same_xattrs(as, as_was)) {
		r->xattrs = as->xattrs;
		r->n_xattrs = as->n_xattrs;
	}
}

static void differ_in_state(const struct stepper *s, unsigned side, struct step_result *out)
{
	auto_tree_diff diff = { 0 };

	tree_diff(&s->trees[1], &s->trees[side], &s->tree_opts, &diff);
	for (size_t i = 0; i < diff.list.n; i++) {
		const struct tree_difference *d = &diff.list.v[i];

		findings_add(&out->findings, FINDING_LIVE, xstrdup(d->path),
			     xasprintf("%s (%s, compared with %s)", d->words, s->sides[side]->spec,
				       s->sides[1]->spec),
			     xstrdup("nothing had crashed yet"));
		/* A link count that is off often only follows from something else. */
		if (!i || streq(out->signature, "state nlink"))
			snprintf(out->signature, sizeof(out->signature), "state %s",
				 tree_diff_kind_name(d->kind));
	}
	out->verdict = STEP_DIFFERENT;
}

static bool all_have_hashes(const struct stepper *s)
{
	return !any_of(i, s->n, !s->sides[i]->ops->hash);
}

static int show(struct stepper *s, unsigned i, struct err *err)
{
	struct side *side = s->sides[i];

	if (i == 1 && side->ops->hash) {
		struct hash128 now = side->ops->hash(side);

		if (s->shown_valid && hash_eq(now, s->shown))
			return 0;
		s->shown = now;
		s->shown_valid = true;
	}
	s->walked |= i == 0;
	return side->ops->tree(side, &s->tree_opts, &s->trees[i], err);
}

int stepper_show(struct stepper *s, struct err *err)
{
	int rc = show(s, 1, err);

	if (!rc)
		rc = show(s, 0, err);
	if (!rc)
		equal_roots(s, 0);
	return rc;
}

static bool same_trees(const struct stepper *s, unsigned a, unsigned b)
{
	return a == b || tree_equal(&s->trees[a], &s->trees[b], &s->tree_opts);
}

static unsigned same_as(const struct stepper *s, unsigned side)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n; i++)
		n += same_trees(s, i, side);
	return n;
}

static void judge_states(const struct stepper *s, struct step_result *out)
{
	unsigned most = 0;

	for (unsigned i = 1; i < s->n; i++)
		if (!same_trees(s, i, 0))
			most = max(most, same_as(s, i));
	add_majority(s, same_as(s, 0), most, out);
}

/* The state of reference 1 is what the others are held against; the majority decides. */
static int compare_trees(struct stepper *s, struct step_result *out, struct err *err)
{
	int rc = show(s, 1, err);
	unsigned odd = 1;

	for (unsigned i = 0; i < s->n && !rc; i++) {
		if (i == 1)
			continue;
		rc = show(s, i, err);
		if (rc)
			break;
		equal_roots(s, i);
		/* The target's difference tells more than that of a reference. */
		if (odd != 0 && !same_trees(s, 1, i))
			odd = i;
	}
	if (rc || odd == 1)
		return rc;
	differ_in_state(s, odd, out);
	judge_states(s, out);
	return 0;
}

static bool hashes_agree(struct stepper *s)
{
	struct hash128 first = s->sides[0]->ops->hash(s->sides[0]);

	return !any_of(i, s->n, i && !hash_eq(first, s->sides[i]->ops->hash(s->sides[i])));
}

static void ask_kernel(struct stepper *s, struct step_result *out)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct side *side = s->sides[i];

		if (!side->ops->kernel_log || !side->ops->kernel_log(side, &out->kernel_log))
			continue;
		findings_add(&out->findings, FINDING_KERNEL_LOG, NULL,
			     xasprintf("the kernel says: %.300s", strbuf_str(&out->kernel_log)),
			     xstrdup("nothing had crashed yet"));
		snprintf(out->signature, sizeof(out->signature), "kernel-log");
		out->verdict = STEP_DIFFERENT;
	}
}

int stepper_compare(struct stepper *s, struct step_result *out, struct err *err)
{
	s->since = 0;
	s->counts.compared++;
	if (all_have_hashes(s) && hashes_agree(s))
		return 0;
	int rc = compare_trees(s, out, err);
	if (!rc && out->verdict == STEP_SAME)
		ask_kernel(s, out);
	return rc;
}

/* ---- a step ---- */

static void log_op(struct stepper *s, const struct op *op, const int64_t *results)
{
	if (!s->log)
		return;
	op_print(op, s->log);
	strbuf_adds(s->log, "\t# ");
	describe_results(s, results, s->log);
	strbuf_addch(s->log, '\n');
}

/*
 * The target refused after it had made the file: the reference makes it as well. Only where the
 * file was not there; else creat would truncate it.
 */
static int adopt_made(struct stepper *s, size_t op, struct step_result *out, struct err *err)
{
	uint32_t made = s->a->made_only.v[op];
	int rc = stepper_compare(s, out, err);

	if (rc || out->verdict != STEP_DIFFERENT || made == UINT32_MAX)
		return rc;
	for (unsigned i = 1; i < s->n; i++)
		s->sides[i]->ops->op(s->sides[i], made);
	step_result_clear(out);
	rc = stepper_compare(s, out, err);
	if (!rc && out->verdict == STEP_DIFFERENT) {
		/* Half-way: some of the data arrived. No promise forbids that. */
		step_result_clear(out);
		out->verdict = STEP_ABANDONED;
	}
	return rc;
}

static int perform(struct stepper *s, const struct step *step, const struct before *b,
		   bool *adopted, struct step_result *out, struct err *err)
{
	int rc = 0;

	for (uint32_t k = 0; k < step->n && !rc && out->verdict == STEP_SAME; k++) {
		size_t i = step->first + k;
		const struct op *op = &s->a->w.ops.v[i];
		int64_t results[SIDES_MAX] = { 0 };

		for (unsigned side = 0; side < s->n; side++)
			results[side] = s->sides[side]->ops->op(s->sides[side], i);
		s->counts.operations++;
		out->op = i;
		if (s->coverage)
			coverage_count(s->coverage, op, results[0]);
		log_op(s, op, results);
		rc = judge(s, op, results, b, k == 0, adopted, out, err);
	}
	return rc;
}

static int unmountable(struct step_result *out, const char *promise)
{
	findings_add(&out->findings, FINDING_UNMOUNTABLE, NULL,
		     xasprintf("the file system cannot be mounted: %.200s", strbuf_str(&out->said)),
		     xstrdup(promise));
	snprintf(out->signature, sizeof(out->signature), "unmountable");
	out->verdict = STEP_DIFFERENT;
	return 0;
}

static int settle(struct stepper *s, struct step_result *out, struct err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < s->n && rc == 0; i++)
		if (s->sides[i]->ops->settle)
			rc = s->sides[i]->ops->settle(s->sides[i], &out->said, err);
	if (rc <= 0)
		return rc;
	return unmountable(out, "it had been unmounted cleanly");
}

static int log_state(struct stepper *s, struct err *err)
{
	struct hash128 h;
	char hex[HASH_HEX_SIZE];
	int rc = stepper_hash(s, &h, err);

	if (!rc)
		strbuf_addf(s->log, "\t# state %s\n", hash_hex(h, hex));
	return rc;
}

static bool avoided(const struct stepper *s, const struct step *st)
{
	for (uint32_t k = 0; s->parts && k < st->n; k++)
		for (unsigned i = 1; i < s->n; i++)
			if (differences_part(s->sides[0]->differences, s->sides[i]->differences,
					     &s->a->w.ops.v[st->first + k]))
				return true;
	return false;
}

int stepper_step(struct stepper *s, size_t step, struct step_result *out, struct err *err)
{
	const struct step *st = &s->a->steps.v[step];
	struct before b;
	bool adopted = false;
	int rc;

	step_result_clear(out);
	if (avoided(s, st))
		return 0;
	rc = remember(s, &b, err);
	s->walked = false;
	s->counts.steps++;
	if (s->beat)
		++*s->beat;
	if (!rc)
		rc = perform(s, st, &b, &adopted, out, err);
	forget(s, &b);
	if (!rc && out->verdict == STEP_SAME)
		rc = settle(s, out, err);
	if (!rc && out->verdict == STEP_SAME) {
		if (adopted)
			rc = adopt_made(s, out->op, out, err);
		else if (++s->since >= s->compare_every)
			rc = stepper_compare(s, out, err);
	}
	s->counts.abandoned += out->verdict == STEP_ABANDONED;
	return !rc && s->log && out->verdict == STEP_SAME ? log_state(s, err) : rc;
}

/* ---- which state it is ---- */

int stepper_hash(struct stepper *s, struct hash128 *out, struct err *err)
{
	int rc = 0;

	for (unsigned i = 1; i < s->n; i++)
		if (s->sides[i]->ops->hash) {
			*out = s->sides[i]->ops->hash(s->sides[i]);
			return 0;
		}
	if (!s->walked)
		rc = show(s, 0, err);
	if (!rc)
		*out = tree_hash(&s->trees[0], &s->tree_opts);
	return rc;
}

bool stepper_predict(struct stepper *s, size_t step, struct hash128 *out, int64_t *result)
{
	const struct step *st = &s->a->steps.v[step];
	struct side *side = s->sides[1];
	struct side_state *now;
	struct err ignored = ERR_INIT;
	auto_strbuf said = STRBUF_INIT;

	if (!side->ops->hash || side->ops->save(side, &now, &ignored))
		return false;
	*result = 0;
	for (uint32_t k = 0; k < st->n && !avoided(s, st); k++) {
		int64_t rc = side->ops->op(side, st->first + k);

		if (!k)
			*result = rc;
	}
	*out = side->ops->hash(side);
	int rc = side->ops->restore(side, now, &said, &ignored);
	side->ops->drop(side, now);
	side->counts.saves--;
	side->counts.restores--;
	return !rc;
}

/* ---- going back ---- */

void stepper_drop(struct stepper *s, struct point *p)
{
	for (unsigned i = 0; i < s->n; i++)
		if (p->states[i])
			s->sides[i]->ops->drop(s->sides[i], p->states[i]);
	*p = (struct point){ 0 };
}

int stepper_save(struct stepper *s, struct point *out, struct err *err)
{
	int rc = 0;

	*out = (struct point){ 0 };
	for (unsigned i = 0; i < s->n && !rc; i++)
		rc = s->sides[i]->ops->save(s->sides[i], &out->states[i], err);
	if (rc)
		stepper_drop(s, out);
	return rc;
}

static int put_back(struct stepper *s, struct side_state *const *states, struct step_result *out,
		    struct err *err)
{
	int rc = 0;

	step_result_clear(out);
	s->since = 0;
	s->walked = false;
	for (unsigned i = 0; i < s->n && rc == 0; i++)
		rc = s->sides[i]->ops->restore(s->sides[i], states[i], &out->said, err);
	if (rc <= 0)
		return rc;
	return unmountable(out, "syncfs had returned");
}

int stepper_restore(struct stepper *s, const struct point *p, struct step_result *out,
		    struct err *err)
{
	int rc = put_back(s, p->states, out, err);

	if (!rc && out->verdict == STEP_SAME)
		rc = stepper_compare(s, out, err);
	return rc;
}

int stepper_reset(struct stepper *s, struct step_result *out, struct err *err)
{
	struct side_state *states[SIDES_MAX];

	for (unsigned i = 0; i < s->n; i++)
		states[i] = s->sides[i]->base;
	return put_back(s, states, out, err);
}

int stepper_to_start(struct stepper *s, struct step_result *out, struct err *err)
{
	return s->start ? stepper_restore(s, s->start, out, err) : stepper_reset(s, out, err);
}

/* The tree of the target in this state, with the content of all files. */
static int look_at_target(struct stepper *s, struct side_state *state, struct tree *out,
			  struct err *err)
{
	struct side *t = s->sides[0];
	struct tree_opts opts = s->tree_opts;
	auto_strbuf said = STRBUF_INIT;
	int rc = t->ops->restore(t, state, &said, err);

	opts.content_limit = OP_DATA_MAX;
	if (rc > 0)
		return err_set(err, -EIO, "the image to begin with cannot be mounted: %.200s",
			       strbuf_str(&said));
	return rc ? rc : t->ops->tree(t, &opts, out, err);
}

int stepper_from_images(struct stepper *s, const struct image *const *images, struct point *out,
			struct err *err)
{
	auto_tree seen = TREE_INIT;
	int rc = 0;

	*out = (struct point){ 0 };
	for (unsigned i = 0; i < s->n && !rc; i++) {
		struct side *side = s->sides[i];

		if (images[i] && side->ops->from_image)
			rc = side->ops->from_image(side, images[i], &out->states[i], err);
		else if (i && side->ops->from_tree)
			rc = side->ops->from_tree(side, &seen, &out->states[i], err);
		else
			rc = err_set(err, -EINVAL, "%s cannot begin with an image", side->spec);
		if (!rc && !i)
			rc = look_at_target(s, out->states[0], &seen, err);
	}
	if (rc)
		stepper_drop(s, out);
	s->shown_valid = false;
	return rc;
}

int stepper_check_room(struct stepper *s, struct step_result *out, struct err *err)
{
	struct side *t = s->sides[0];
	const struct difference *allowed = differences_find(t->differences, DIFFER_ROOM);
	uint64_t missing = 0;

	step_result_clear(out);
	if (!t->ops->empty)
		return 0;
	int rc = stepper_show(s, err);
	if (!rc)
		rc = t->ops->empty(t, &s->trees[0], &out->findings, &missing, err);
	if (rc)
		return rc;
	if (missing > (allowed ? allowed->bytes : 0))
		findings_add(&out->findings, FINDING_UNUSABLE, NULL,
			     xasprintf("%llu bytes of room did not come back when everything was "
				       "removed",
				       llu(missing)),
			     xstrdup("nothing had crashed yet"));
	if (out->findings.n) {
		snprintf(out->signature, sizeof(out->signature), SIGNATURE_ROOM);
		out->verdict = STEP_DIFFERENT;
	}
	return 0;
}
