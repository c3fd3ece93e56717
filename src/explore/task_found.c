/* SPDX-License-Identifier: MIT */
/*
 * task_found.c - keeps a finding of a search first, as it was found, and makes it smaller then.
 *
 * Each smaller one takes the place of the one before at once, so that whatever ends this - the
 * time, a signal, a file system that hangs - there is a complete finding, and the smallest so far.
 */
#include "explore/finding_dir.h"
#include "explore/explore_keep.h"
#include "explore/reproduce.h"
#include "explore/task.h"

/* How a finding that is kept begins, the better the later. */
enum quality {
	AS_FOUND,   /* with all that was done; it may not show again */
	FROM_IMAGE, /* shown from a state that was reached before */
	FROM_EMPTY, /* shown from new file systems */
};

/* A finding that is made smaller. */
struct small {
	struct task *t;
	char *name, *dir;
	size_t before; /* operations when it was found */
	/* The finding as it is kept now: */
	enum quality quality;
	size_t items, ops;
	struct hash128 hash; /* of its script */
	uint64_t shown, tries;
	char *words;
};

static void small_release(struct small *f)
{
	free(f->name);
	free(f->dir);
	free(f->words);
}

static struct hash128 script_hash(const struct script *s)
{
	auto_strbuf text = STRBUF_INIT;

	script_print(s, &text);
	return hash_bytes(strbuf_str(&text), text.len);
}

/* ---- telling ---- */

static void remember_words(struct small *f, const struct step_result *result)
{
	free(f->words);
	f->words = xstrdup(result->findings.v[0].words);
}

/* "f0: mode is 0644, was 0600 (shown 3 of 3 times)" */
static void tell(const struct small *f, enum message_kind kind)
{
	const char *cut = kind == MSG_CUT_SHORT ? "; shrinking was cut short" : "";
	auto_free char *words = NULL;

	if (!f->tries)
		words = xasprintf("%s (as it was found%s)", f->words, cut);
	else
		words = xasprintf(
			"%s (shown %llu of %llu times%s%s)", f->words, llu(f->shown), llu(f->tries),
			f->quality == FROM_IMAGE ? ", from the image start.img" : "", cut);
	task_tell(f->t, kind, words, f->dir, f->ops);
}

/* So that it is known even if this process does not come to its end. */
static void tell_kept(const struct small *f)
{
	task_tell(f->t, MSG_KEPT, f->words, f->dir, f->ops);
}

/* ---- keeping ---- */

static struct kept kept_of(const struct small *f, const struct script *script,
			   struct step_result *result)
{
	return (struct kept){ .run = f->t->opts->dir,
			      .strange = f->t->opts->strange,
			      .name = f->name,
			      .script = script,
			      .stepper = &f->t->stepper,
			      .result = result,
			      .shown = f->shown,
			      .tries = f->tries,
			      .ops_before = f->before };
}

/* Makes the stepper's trees show what is there, but where everything was removed since. */
static void show_trees(struct task *t, const struct step_result *result)
{
	struct err ignored = ERR_INIT;

	if (streq(result->signature, SIGNATURE_ROOM))
		return;
	if (stepper_show(&t->stepper, &ignored))
		err_clear(&ignored); /* a file system that cannot be walked has no tree */
}

static bool has_saved(const struct script *s)
{
	return any_of(i, s->items.n,
		      s->items.v[i].kind == SCRIPT_SAVE || s->items.v[i].kind == SCRIPT_RESTORE);
}

/*
 * The path as it was found, and to be done again, all that happened lately: it is not known
 * yet whether a state that was saved or put back has to do with it.
 */
static int keep_first(struct small *f, const struct search *s, const struct script *path,
		      struct step_result *result, struct err *err)
{
	auto_call(script_release) struct script lately;
	struct kept k = kept_of(f, path, result);

	script_init(&lately);
	script_from_log(&s->log, &s->alphabet, &lately);
	if (has_saved(&lately))
		k.lately = &lately;
	show_trees(f->t, result);
	int rc = keep_case(&k, err);
	if (!rc) {
		f->dir = xasprintf("%s/findings/%s", k.run, k.name);
		tell_kept(f);
		rc = keep_disk(&k, err);
	} else {
		tell(f, MSG_FOUND); /* a finding that cannot be kept is told all the same */
	}
	return rc;
}

/* A state that has no disk is gone with this process: nothing that begins with it can be kept. */
static bool can_begin_with(const struct task *t, const struct point *start)
{
	return !start || side_image(t->stepper.sides[0], start->states[0]);
}

static bool is_smaller(const struct small *f, const struct script *s, enum quality quality)
{
	if (quality != f->quality)
		return quality > f->quality;
	if (s->items.n != f->items)
		return s->items.n < f->items;
	return !hash_eq(script_hash(s), f->hash); /* as many, and simpler */
}

/* A script has shown it: if it is smaller than what is kept, it takes its place. */
static int on_shown(void *ctx, const struct script *s, const struct shrunk *so_far,
		    struct step_result *result, const struct strbuf *log, struct err *err)
{
	struct small *f = ctx;
	const struct point *start = f->t->stepper.start;
	enum quality quality = start ? FROM_IMAGE : FROM_EMPTY;

	if (!can_begin_with(f->t, start) || !is_smaller(f, s, quality))
		return 0;
	f->quality = quality;
	f->items = s->items.n;
	f->ops = s->w.ops.n;
	f->hash = script_hash(s);
	f->shown = max(so_far->shown, (uint64_t)1);
	f->tries = max(so_far->tries, f->shown);
	remember_words(f, result);
	show_trees(f->t, result);
	struct kept k = kept_of(f, s, result);
	k.log = log;
	k.start = start;
	int rc = keep_case(&k, err);
	if (!rc)
		tell_kept(f);
	return rc;
}

/*
 * Runs the script once more, for the log, the trees and the disk. A finding that did not show at
 * all stays as it was found.
 */
static int keep_last(struct small *f, const struct script *script, const struct reproduced *how,
		     struct step_result *first, struct err *err)
{
	auto_strbuf log = STRBUF_INIT;
	auto_call(step_result_release) struct step_result again = { 0 };
	struct stepper *st = &f->t->stepper;
	size_t at;

	st->start = how->start;
	st->start_steps = how->start_steps;
	st->room_after = streq(first->signature, SIGNATURE_ROOM);
	int rc = script_run(script, st, &again, &at, &log, err);
	st->start = NULL;
	st->room_after = false;
	bool shows = again.verdict == STEP_DIFFERENT;
	struct kept k = kept_of(f, script, shows ? &again : first);
	k.log = &log;
	k.start = how->start;
	k.runs = how->runs;
	k.steps = how->steps;
	k.disk = true;
	if (!rc && shows && f->shown) {
		show_trees(f->t, &again);
		remember_words(f, &again);
		rc = keep_case(&k, err);
		f->quality = how->start ? FROM_IMAGE : FROM_EMPTY;
		f->ops = script->w.ops.n;
	} else if (!rc && !task_cut(f->t)) {
		/* One that showed before has the log of that. */
		if (f->quality != AS_FOUND)
			k.log = NULL;
		rc = keep_update(&k, err);
	}
	return rc;
}

/* ---- all of it ---- */

/* 1, and the finding is gone: it is told why. */
static int forget(struct small *f, enum message_kind why, struct err *err)
{
	int rc = finding_dir_remove(f->t->opts->dir, f->name, err);

	f->t->o.shared->cases--;
	task_tell(f->t, why, "", NULL, 0);
	return rc ? rc : 1;
}

/* If another finding was made to the same script, or a rule names what is left of it. */
static int forget_known(struct small *f, const struct script *script,
			const struct step_result *first, struct err *err)
{
	const struct explore_opts *o = f->t->opts;

	if (!hashset_insert(&f->t->seen, script_hash(script)))
		return forget(f, MSG_DUPLICATE, err);
	if (o->suppress && store_suppressed(o->suppress, o->specs[0], &first->findings, &script->w,
					    RUN_NO_OPERATION))
		return forget(f, MSG_SUPPRESSED, err);
	return 0;
}

/* The script made of the path, or the path if that begins with nothing that can be kept. */
static void take_made(struct small *f, const struct script *path, struct reproduced *made,
		      struct script *script)
{
	f->shown = made->shrunk.shown;
	f->tries = made->shrunk.tries;
	if (can_begin_with(f->t, made->start))
		return;
	f->shown = 0;
	made->start = NULL;
	script_copy(script, path);
}

static int make_small(struct small *f, const struct search *s, const struct script *path,
		      struct step_result *first, struct err *err)
{
	struct shrink_how how = { .signature = first->signature, .shown = on_shown, .ctx = f };
	struct reproduced made = { 0 };
	auto_call(script_release) struct script script;

	script_init(&script);
	script_copy(&script, path);
	int rc = reproduce(s, &script, &how, &made, err);
	if (!rc && !made.cut) {
		take_made(f, path, &made, &script);
		rc = forget_known(f, &script, first, err);
		if (!rc)
			rc = keep_last(f, &script, &made, first, err);
	}
	if (rc > 0)
		return 0;
	tell(f, made.cut || task_cut(f->t) ? MSG_CUT_SHORT : MSG_FOUND);
	return rc;
}

int task_found(void *ctx, struct search *s, const struct script *script, struct step_result *result,
	       struct err *err)
{
	struct task *t = ctx;
	auto_call(small_release) struct small f = { .t = t,
						    .before = script->w.ops.n,
						    .ops = script->w.ops.n };

	if (task_has_enough(t, result->signature, SAME_MAX))
		return 0; /* one of many of its kind */
	f.name = finding_dir_name(task_next_case(t), t->o.number);
	remember_words(&f, result);
	int rc = keep_first(&f, s, script, result, err);
	if (!rc)
		rc = make_small(&f, s, script, result, err);
	task_count_cases(t, s);
	return rc;
}
