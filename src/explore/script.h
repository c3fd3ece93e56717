/* SPDX-License-Identifier: MIT */
/*
 * script.h - the way to a state: operations, and where states were saved and put back.
 *
 * Most of what is found shows when the operations of the shortest known path are done again. Some
 * shows only after a state was put back, so a log keeps what happened lately, with the path to
 * every state that was saved; from that a script is made which needs nothing but an empty file
 * system. As text a script is a workload; saving and putting back are comments of a certain form:
 *
 *	mkdir A
 *	#@ save 1
 *	creat A/foo
 *	#@ restore 1
 *	unlink A/foo
 */
#ifndef EXPLORE_SCRIPT_H
#define EXPLORE_SCRIPT_H

#include "base/vec.h"
#include "explore/stepper.h"

enum {
	SCRIPT_MAX = 16384,  /* steps of a path */
	SCRIPT_RECENT = 256, /* events of the log */
	SCRIPT_NOTE_MAX = 1 << 20,
};

enum script_kind { SCRIPT_OP, SCRIPT_SAVE, SCRIPT_RESTORE, SCRIPT_BASE };

struct script_item {
	enum script_kind kind;
	uint32_t n; /* SCRIPT_OP: of the workload; else which saved state */
};

struct script {
	struct workload w;
	struct vec_of(struct script_item) items;
};

void script_init(struct script *s);
void script_release(struct script *s);
void script_clear(struct script *s);
void script_copy(struct script *to, const struct script *from);
void script_add_op(struct script *s, const struct op *op);
/* Adds the operations of a step. */
void script_add_step(struct script *s, const struct alphabet *a, size_t step);
void script_add(struct script *s, enum script_kind kind, uint32_t n);
/* The items whose `keep` is set; operations on handles that are then never opened go, too. */
void script_select(const struct script *s, const bool *keep, struct script *out);
void script_print(const struct script *s, struct strbuf *out);
int script_parse(const char *text, size_t len, const char *source, struct script *out,
		 struct err *err) must_check;

/* ---- doing it ---- */

/*
 * Which script is being done, and how far: for a parent that finds out that it hangs. The text is
 * valid if `len` is not 0; a script that is longer is not told.
 */
struct script_note {
	_Atomic uint32_t len, at; /* bytes; items that have begun */
	_Atomic uint32_t before;  /* steps of the search's path that lead to where it begins */
	char text[SCRIPT_NOTE_MAX];
};

/*
 * Does all of it from where scripts begin (the stepper knows), comparing after every operation,
 * until something differs; then `result` says what, and `*at` is the number of items done. `log`,
 * if not NULL, gets a line for each operation. If the stepper is cut, it ends early, with
 * STEP_SAME.
 */
int script_run(const struct script *s, struct stepper *st, struct step_result *result, size_t *at,
	       struct strbuf *log, struct err *err) must_check;

struct shrunk {
	uint64_t runs;
	uint64_t shown; /* of the tries to see it again before anything was left out */
	uint64_t tries;
	bool budget_hit;
};

/* The finding that a script has to show, and how to look for a smaller script. */
struct shrink_how {
	const char *signature;
	uint64_t max_runs;
	/*
	 * A script has shown it, and all sides are where it ends. Called for all that are smaller
	 * than the last one, and for some that are not. NULL: not called.
	 */
	int (*shown)(void *ctx, const struct script *s, const struct shrunk *so_far,
		     struct step_result *result, const struct strbuf *log, struct err *err);
	void *ctx;
};

/*
 * Makes `s` as short as it can while it shows something of the same signature, or until the stepper
 * is cut; then it is as short as it was by then. 1 if it does not show at all; then `s` is as it
 * was.
 */
int script_shrink(struct script *s, struct stepper *st, const struct shrink_how *how,
		  struct shrunk *out, struct err *err) must_check;

/*
 * Shrinks a script that is a part of another: only operations are left out and nothing is made
 * simpler, and the difference has to show the first time.
 */
int script_cut(struct script *s, struct stepper *st, const struct shrink_how *how,
	       struct shrunk *out, struct err *err) must_check;

/* ---- what happened lately ---- */

struct script_path vec_of(uint32_t);
struct script_path script_path_of(const uint32_t *steps, size_t n);

struct script_event {
	enum script_kind kind;
	uint32_t n;		 /* SCRIPT_OP: the step; else which saved state */
	struct script_path path; /* SCRIPT_SAVE, SCRIPT_RESTORE: how it was reached */
};

struct script_log {
	struct script_path path; /* steps from the empty file system to where we are */
	struct script_event recent[SCRIPT_RECENT];
	uint64_t n;		   /* events so far; the ring holds the last of them */
	struct script_path before; /* the path before the oldest event of the ring */
};

void script_log_release(struct script_log *l);
void script_log_reset(struct script_log *l); /* at the empty file system, nothing happened */
void script_log_step(struct script_log *l, uint32_t step);
void script_log_save(struct script_log *l, uint32_t id);
/* `path` is the path of that state. */
void script_log_restore(struct script_log *l, uint32_t id, const uint32_t *path, size_t n);
/* The path alone; or with it all that the log still knows. */
void script_from_path(const struct script_log *l, const struct alphabet *a, struct script *out);
void script_from_log(const struct script_log *l, const struct alphabet *a, struct script *out);

#endif
