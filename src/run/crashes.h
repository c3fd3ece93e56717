/* SPDX-License-Identifier: MIT */
/*
 * crashes.h - which crashes of a workload are tried, and what looks at each state: the part that
 * the plans of outage test and outage explore share.
 */
#ifndef RUN_CRASHES_H
#define RUN_CRASHES_H

#include "case/record.h"
#include "run/bad_media.h"
#include "run/run.h"

/* In the order of enum run_mode. */
#define RUN_MODE_WORDS "persist last prefix reorder torn recovery"

struct crashes {
	uint64_t modes, max_subset, budget, lose_flush;
	uint64_t media_max;   /* lines of a state that are bad */
	uint64_t granularity; /* of persistent memory: 8 or 64 */
	char *media, *model;
	char *dump, *check; /* commands of the user's that look at each state */
	bool vary_all, fsck, paranoid, eadr, split;
};

/* The fields of a plan that has it as its `member`. */
/* clang-format off */
#define CRASH_FIELDS(plan, member) \
	RECORD_FIELD(plan, "crash", TRUST_HARMLESS, COUNT, member.modes, \
		     .set = crashes_set_modes, .put = crashes_put_modes), \
	RECORD_FIELD(plan, "max-subset", TRUST_HARMLESS, COUNT, member.max_subset), \
	RECORD_FIELD(plan, "budget", TRUST_HARMLESS, COUNT, member.budget), \
	RECORD_FIELD(plan, "prune", TRUST_HARMLESS, FLAG, member.vary_all, \
		     .set = crashes_set_prune, .put = crashes_put_prune), \
	RECORD_FIELD(plan, "lose-flush", TRUST_HARMLESS, COUNT, member.lose_flush), \
	RECORD_FIELD(plan, "model", TRUST_HARMLESS, TEXT, member.model, \
		     .set = crashes_set_model), \
	RECORD_FIELD(plan, "eadr", TRUST_HARMLESS, FLAG, member.eadr), \
	RECORD_FIELD(plan, "granularity", TRUST_HARMLESS, COUNT, member.granularity), \
	RECORD_FIELD(plan, "split", TRUST_HARMLESS, FLAG, member.split), \
	RECORD_FIELD(plan, "media", TRUST_HARMLESS, TEXT, member.media), \
	RECORD_FIELD(plan, "media-max", TRUST_HARMLESS, COUNT, member.media_max, \
		     .otherwise = BAD_MEDIA_MAX), \
	RECORD_FIELD(plan, "fsck", TRUST_HARMLESS, FLAG, member.fsck), \
	RECORD_FIELD(plan, "dump", TRUST_COMMAND, TEXT, member.dump), \
	RECORD_FIELD(plan, "check", TRUST_COMMAND, TEXT, member.check), \
	RECORD_FIELD(plan, "paranoid", TRUST_HARMLESS, FLAG, member.paranoid)
/* clang-format on */

/* For these fields; the modes, "persist,reorder", for cases as well. */
int crashes_set_modes(void *member, const char *value, struct err *err) must_check;
void crashes_put_modes(const void *member, struct strbuf *out);
int crashes_set_prune(void *member, const char *value, struct err *err) must_check;
void crashes_put_prune(const void *member, struct strbuf *out);
int crashes_set_model(void *member, const char *value, struct err *err) must_check;

/*
 * Refuses what does not fit together, or not to the target; fills in what follows from the rest,
 * but for modes and budget. `pruned`: --prune was given.
 */
int crashes_complete(struct crashes *c, const struct target_ops *target, bool pruned,
		     struct err *err) must_check;
/* The members of `out` that it is about. Borrows from the plan. */
void crashes_opts(const struct crashes *c, struct run_opts *out);

#endif
