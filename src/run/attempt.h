/* SPDX-License-Identifier: MIT */
/*
 * attempt.h - one try at recovery: an image is put on the disk, recovered, mounted, looked at, used
 * and unmounted again.
 */
#ifndef RUN_ATTEMPT_H
#define RUN_ATTEMPT_H

#include "run/run_impl.h"

struct attempt {
	struct tree *seen; /* set by the caller; what was there, if it could be mounted */
	bool mounted;
	struct vec_of(struct check_stamp) stamps; /* of the entries of `seen`, if times count */
	bool dumped;				  /* the user's command told what is there, */
	struct strbuf dump;			  /* and that is it */
	struct findings findings;
	struct strbuf said;	  /* by programs that were run */
	struct strbuf kernel_log; /* what the kernel complained about */
};

#define ATTEMPT_INIT(tree)                                                                         \
	{                                                                                          \
		.seen = (tree)                                                                     \
	}

void attempt_release(struct attempt *a);
#define auto_attempt __attribute__((cleanup(attempt_release))) struct attempt

/*
 * Recovers `img` and judges it by the promises. With `record`, every request is recorded, and the
 * mark ATTEMPT_WALKED stands where recovery, mount and walk are over and the use begins.
 */
int attempt_state(struct run *r, const struct image *img, const struct promises *p,
		  struct trace *record, struct attempt *a, struct err *err) must_check;

#define ATTEMPT_WALKED "walked"
/* The events of a record up to that mark. */
size_t attempt_walked(const struct trace *record);

#endif
