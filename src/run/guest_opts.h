/* SPDX-License-Identifier: MIT */
/* guest_opts.h - replay and shrink put another kernel under a finding: is it gone with my fix? */
#ifndef RUN_GUEST_OPTS_H
#define RUN_GUEST_OPTS_H

#include "run/store.h"

/* Puts what options gave into a case, which must have been found in a guest then. */
int guest_opts_apply(const struct target_opts *given, struct stored_case *c, struct err *err)
	must_check;

/*
 * Looks for the kernel that the case would be tried on. `out` gets one sentence if that is another
 * than the one it was found on, else nothing.
 */
int guest_opts_compare(const struct stored_case *c, struct strbuf *out, struct err *err) must_check;

#endif
