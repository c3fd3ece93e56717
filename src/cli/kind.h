/* SPDX-License-Identifier: MIT */
/*
 * kind.h - replay, report, shrink and export of the findings of each kind of run. A kind is an
 * entry in kinds.def and a struct case_ops; its records name it (case/dir.h).
 */
#ifndef CLI_KIND_H
#define CLI_KIND_H

#include "case/dir.h"
#include "cli/cli.h"
#include "target/target.h"

/* Requests to the commands; `dir` is the finding. */
struct replay_request {
	const char *dir;
	bool rerun, json, trust;
	uint64_t time_ns; /* 0: not said */
	struct target_opts guest;
};

struct shrink_request {
	const char *dir;
	char *output;
	uint64_t max_runs, time_ns;
	bool json, force, trust;
	struct target_opts guest;
};

struct export_request {
	const char *dir, *output;
	bool trust;
};

enum report_form { REPORT_TEXT, REPORT_JSON, REPORT_HTML, REPORT_SUPPRESSIONS };

struct case_ops {
	const char *name; /* as in "pm-run" and "pm-case" */
	bool on_target;	  /* findings are of a target: it may be a guest, and is run again */
	/* One line about a finding. */
	int (*title)(const char *dir, struct strbuf *out, struct err *err);
	/* A report of a run, or of one finding. */
	int (*report)(const char *dir, enum report_form form, struct strbuf *out, struct err *err);
	/* These print what they do; an exit status. */
	int (*replay)(const struct replay_request *r);
	int (*shrink)(const struct shrink_request *r);
	int (*export)(const struct export_request *r);
};

/* How long a replay may take, if nothing is said. */
#define REPLAY_TIME_NS (600 * 1000000000ULL)

#define KIND(name_) extern const struct case_ops kind_##name_;
#include "cli/kinds.def"
#undef KIND

/* A bit for each field of a plan whose option was given, as given_agree() takes them. */
uint64_t kind_given(const struct record_type *plan, const struct args *args);
/*
 * Replays a finding of that kind, and says if another version of the program found it; and makes
 * one small. Options that the kind does not have are refused.
 */
int kind_replay(const struct case_ops *ops, const struct replay_request *r);
int kind_shrink(const struct case_ops *ops, const struct shrink_request *r);
/* Prints how much smaller a finding became; what was lost has a name for one, and for more. */
void kind_print_shrunk(const struct shrink_request *r, const struct case_shrunk *small,
		       const char *one, const char *more);
/* The kind of a run or a finding. */
int kind_find(const char *dir, const struct case_ops **out, struct err *err) must_check;
/*
 * The finding that a command was given as its argument, to be freed: itself, or the only one of a
 * run. If a run has several, they are listed. EXIT_OK, or the status to end with.
 */
int kind_choose(const struct command *cmd, const struct args *args, char **dir,
		const struct case_ops **out);

#endif
