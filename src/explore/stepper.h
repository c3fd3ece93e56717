/* SPDX-License-Identifier: MIT */
/*
 * stepper.h - performs a step on all sides and compares them: what each operation returned, then
 * what a user sees.
 *
 * Side 0 is the target; the others are references. With one reference, what differs from it is a
 * finding. With more the majority decides, so that a finding may be about a reference; where there
 * is none, that is said.
 *
 * T1: after STEP_SAME all sides show the same state.
 * T2: where the target failed for a reason of its own, a reference in this process took that over
 *     and still is where it was before. If that is not possible, or the target stopped half-way,
 *     the step is abandoned: no side is to blame, but all have to go back to a common state.
 */
#ifndef EXPLORE_STEPPER_H
#define EXPLORE_STEPPER_H

#include "check/finding.h"
#include "explore/coverage.h"
#include "explore/side.h"

enum { SIDES_MAX = 5 };

enum step_verdict { STEP_SAME, STEP_ABANDONED, STEP_DIFFERENT };

#define SIGNATURE_ROOM	 "room"
#define SIGNATURE_RESULT "result "

/* How the sides differed. */
struct step_result {
	enum step_verdict verdict;
	size_t op; /* of the alphabet's workload, at which it was seen */
	struct findings findings;
	int64_t seen, expected; /* results of `op`, if they differed */
	char signature[96];	/* "result rename", "state size": what it is about */
	struct strbuf said, kernel_log;
};

struct stepper_counts {
	uint64_t operations; /* on the target */
	uint64_t steps;
	uint64_t compared;  /* states */
	uint64_t adopted;   /* results that are the target's own business */
	uint64_t abandoned; /* steps */
};

struct point {
	struct side_state *states[SIDES_MAX];
};

struct stepper {
	struct side *sides[SIDES_MAX];
	unsigned n;
	const struct alphabet *a;
	bool parts; /* some operations would leave the sides in different states */
	struct tree_opts tree_opts;
	const char *ignore[16];
	struct tree trees[SIDES_MAX];
	struct tree fresh[SIDES_MAX]; /* new file systems, for what mkfs gave to the root */
	struct hash128 shown;	      /* which state of the reference trees[1] shows */
	bool shown_valid;
	bool walked;		   /* trees[0] shows the target as it is */
	struct coverage *coverage; /* or NULL */
	struct stepper_counts counts;
	_Atomic uint64_t *beat;	   /* goes on with every step, for a watchdog; or NULL */
	struct strbuf *log;	   /* operations and results go here; or NULL */
	uint64_t compare_every;	   /* steps */
	uint64_t since;		   /* steps since the last comparison */
	const struct point *start; /* where scripts begin; NULL: at new file systems */
	size_t start_steps;	   /* of the search's path that lead there */
	bool room_after;	   /* scripts end with stepper_check_room() */
	const _Atomic bool *cut;   /* once it is set, scripts are given up half-way; or NULL */
	struct script_note *note;  /* which script is done goes here; or NULL */
};

/* Whether there is no time left for scripts. */
static inline bool stepper_cut(const struct stepper *s)
{
	return s->cut && *s->cut;
}

/* Opens all sides: specs[0] is the target. `strategy` is for those that can be mounted. */
int stepper_open(struct stepper *s, const struct side_opts *opts, const char *const *specs,
		 unsigned n, struct err *err) must_check;
void stepper_close(struct stepper *s);

void step_result_release(struct step_result *r);
void step_result_clear(struct step_result *r);

/* From now on steps are those of `a`. */
void stepper_begin(struct stepper *s, const struct alphabet *a);
/* Fails only if it cannot be done; `out` is cleared first. */
int stepper_step(struct stepper *s, size_t step, struct step_result *out, struct err *err)
	must_check;
/* Compares the states now, whenever they were compared last. */
int stepper_compare(struct stepper *s, struct step_result *out, struct err *err) must_check;

/* Makes trees[0] and trees[1] show the target and the first reference as they are now. */
int stepper_show(struct stepper *s, struct err *err) must_check;

/*
 * A hash of the state that all sides are in. Cheap with a reference in this process, else it takes
 * a walk of the target unless it was walked just now.
 */
int stepper_hash(struct stepper *s, struct hash128 *out, struct err *err) must_check;
/*
 * Which state the step leads to, and what its first operation returns, without touching the target.
 * False: the state is unknown.
 */
bool stepper_predict(struct stepper *s, size_t step, struct hash128 *out, int64_t *result);

int stepper_save(struct stepper *s, struct point *out, struct err *err) must_check;
/* STEP_DIFFERENT if a side cannot be put back. */
int stepper_restore(struct stepper *s, const struct point *p, struct step_result *out,
		    struct err *err) must_check;
int stepper_reset(struct stepper *s, struct step_result *out, struct err *err) must_check;
/* To where scripts begin. */
int stepper_to_start(struct stepper *s, struct step_result *out, struct err *err) must_check;
/*
 * Makes a state of all sides from images of their disks; a side without one gets what a user sees
 * of the target's. Fails if a side can do neither.
 */
int stepper_from_images(struct stepper *s, const struct image *const *images, struct point *out,
			struct err *err) must_check;
void stepper_drop(struct stepper *s, struct point *p);

/*
 * Removes everything from the target and asks whether its room came back. trees[0] and trees[1]
 * show what was there before. Then reset.
 */
int stepper_check_room(struct stepper *s, struct step_result *out, struct err *err) must_check;

#endif
