/* SPDX-License-Identifier: MIT */
/*
 * attempt.h - one try at recovery: an image is put on the disk, recovered, mounted, looked at, used
 * and unmounted again.
 *
 * With r->read_only_first it is mounted read-only, so that what is looked at is what recovery made
 * of it; then it is made writable, checked if asked for, and used. Whether a new file system
 * can do that is found out once (attempt_read_only_first()). One that cannot be made writable is a
 * finding; one that refuses to be mounted read-only is not, if it can be mounted writable: many
 * write when they recover. But a bug that the kernel itself runs into meanwhile is.
 */
#ifndef RUN_ATTEMPT_H
#define RUN_ATTEMPT_H

#include "run/run_impl.h"

struct attempt {
	struct tree *seen; /* set by the caller; what was there, if it could be mounted */
	bool mounted;
	bool refused;				  /* to be mounted read-only, */
	bool at_once;				  /* and so it is mounted writable */
	struct vec_of(struct check_stamp) stamps; /* of the entries of `seen`, if times count */
	bool dumped;				  /* the user's command told what is there, */
	struct strbuf dump;			  /* and that is it */
	struct findings findings;
	struct strbuf said;	  /* by programs that were run */
	struct strbuf kernel_log; /* the complaints of the kernel */
};

#define ATTEMPT_INIT(tree)                                                                         \
	{                                                                                          \
		.seen = (tree)                                                                     \
	}

void attempt_release(struct attempt *a);
#define auto_attempt __attribute__((cleanup(attempt_release))) struct attempt

/*
 * Recovers `img` and judges it by the promises. With `record`, every request is recorded, and the
 * mark ATTEMPT_WALKED stands where recovery, mount and walk are over and the use begins: what makes
 * it writable comes before, and a check of the user's, which may write, after.
 */
int attempt_state(struct run *r, const struct image *img, const struct promises *p,
		  struct trace *record, struct attempt *a, struct err *err) must_check;

/* Asks a new file system, and sets r->read_only_first; what comes of it is no finding. */
int attempt_read_only_first(struct run *r, struct err *err) must_check;

/* How it was mounted, for run_case. */
const char *attempt_mounted(const struct run *r, const struct attempt *a);

/* How the words of a finding begin where it cannot be mounted again after a clean unmount, */
#define ATTEMPT_NOT_AGAIN "it can be mounted once, and not again"
/* and where it cannot be made writable. */
#define ATTEMPT_NOT_WRITABLE "it can be mounted read-only, and not be made writable"

#define ATTEMPT_WALKED "walked"
/* The events of a record up to that mark. */
size_t attempt_walked(const struct trace *record);

#endif
