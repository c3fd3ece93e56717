/* SPDX-License-Identifier: MIT */
/*
 * groups.h - options that several commands have, so that a word means the same in all of them.
 * A macro takes where the value goes: OPTION_JSON(AT(json)).
 */
#ifndef CLI_GROUPS_H
#define CLI_GROUPS_H

#include "case/plan_def.h"
#include "cli/options.h"
#include "target/target.h"

/* GUEST, for a struct target_opts: another kernel, for a file system or under a finding. */
extern const struct opt guest_options[];

/*
 * TARGET, for a struct target_line: all of a target but its guest, and -t itself. A command that
 * takes -t has both tables.
 */
extern const struct opt target_options[];
struct target_line {
	struct target_opts o;
	const char *fstype, *mount_options;
};
/* Takes the two options that are a part of the target's name; false: it is another option. */
bool target_line_take(struct target_line *t, const struct opt *o, const char *arg);
/*
 * "vm:pm:pmfs,option" is one word, and can be said with two options: makes it of `spec`, which may
 * be NULL. `out` is NULL if there is nothing to change.
 */
int target_line_name(const struct target_line *t, const char *spec, char **out, struct err *err)
	must_check;

/* Names that a table of another room has, for `list` of an option. */
void list_bounds(struct strbuf *out);
void list_profiles(struct strbuf *out);
void list_guarantees(struct strbuf *out);
void list_targets(struct strbuf *out);
void list_models(struct strbuf *out);
void list_pm_models(struct strbuf *out);

/* clang-format off */

/* ---- OUTPUT ---- */

#define OPTION_JSON(...) \
	{ OPT_FLAG, "json", 0, NULL, __VA_ARGS__, .help = "one JSON object on standard output" }
#define OPTION_OUTPUT(...) \
	{ OPT_TEXT, "output", 'o', "DIR", __VA_ARGS__, .hint = HINT_FILE, \
	  .help = "where findings go; default: below ./outage-runs" }
#define HELP_SUPPRESS \
	"findings that are known: counted apart, and not kept", .hint = HINT_FILE, .rare = true
#define OPTION_RESUME(...) \
	{ OPT_TEXT, "resume", 0, "RUN", __VA_ARGS__, .hint = HINT_DIR, \
	  .help = "go on with an interrupted run, with its options" }
#define OPTION_TRUST(...) \
	{ OPT_FLAG, "trust", 0, NULL, __VA_ARGS__, \
	  .help = "also if you did not make it on this machine, and it leads to more than a guest" }

/* ---- RUN ---- */

/* --hang-after is about what is tested, --timeout about commands and servers that it waits for. */

#define OPTION_FINDING \
	{ OPT_ARGUMENT, .arg = "FINDING", .hint = HINT_DIR, .help = "its directory, RUN/findings/NAME, or that of a run with one finding" }
#define OPTION_TIMEOUT(words, ...) \
	{ OPT_DURATION, "timeout", 0, "DURATION", __VA_ARGS__, .rare = true, .help = words }

#define OPTION_TIME(words, ...) \
	{ OPT_DURATION, "time", 0, "DURATION", __VA_ARGS__, .least = 1, .help = words }
#define OPTION_JOBS(words, max_, ...) \
	{ OPT_COUNT, "jobs", 'j', "N", __VA_ARGS__, .least = 1, .most = max_, .help = words }
/* The exit status of a command that searches. */
#define EXIT_STATUS_SEARCH \
	"0 nothing found, 1 something found, 2 failed, in whole or part"

#define OPTION_HANG_AFTER(...) \
	{ OPT_DURATION, "hang-after", 0, "DURATION", __VA_ARGS__, \
	  .help = "a call without an answer for so long hangs" }

/* ---- CRASH, in tables of options (case/plan_def.h) ---- */

/* PLAN_AT(member) says where values go, ", OPT_AT(...)", or is empty. */
#define PLAN_ENTRY_OPTION(key, kind_, member, opt, name_, arg_, leads, both, record, ...) \
	PLAN_ENTRY(opt, name_, arg_, both, PLAN_AT(member), __VA_ARGS__)
#define PLAN_ENTRY(kind_, name_, arg_, both, at_, help_, ...) \
	{ .kind = OPT_##kind_, .name = name_, .arg = arg_, .help = help_ PLAN_REST both at_, ##__VA_ARGS__ },
#define PLAN_ENTRY_NOTED(...)
#define PLAN_ENTRY_SHORT(name_, help_, ...) \
	{ .kind = OPT_FLAG, .name = name_, .help = help_, ##__VA_ARGS__ },
#define PLAN_ENTRY_SECTION(title) { .kind = OPT_SECTION, .help = title },
#define PLAN_ENTRY_ARGUMENT(arg_, help_, ...) \
	{ .kind = OPT_ARGUMENT, .arg = arg_, .help = help_, ##__VA_ARGS__ },

#define HELP_GUARANTEE \
	"the promises of the file system, by default those the target is known for", \
	.list = list_guarantees, .strict = true, .rare = true
#define HELP_MODEL \
	"the states a crash may leave, by default those that suit the target", .strict = true, .rare = true
#define HELP_RECOVERIES \
	"how many of these are traced", .least = 1, .otherwise = "16", .rare = true
#define HELP_TIMEOUT \
	"for the run and for each check", .unit = 1000000, .least = 1, .otherwise = "60s", .rare = true
/* Of persistent memory. */
#define HELP_EADR \
	"caches are persistent, no flush is needed: the same as --model pm-eadr", .rare = true
#define HELP_GRANULARITY \
	"64: stores to a line of 64 bytes persist in order; 8: in any order", .words = "8 64", \
	.strict = true, .otherwise = "64", .rare = true
#define HELP_SPLIT \
	"take each store of a copy on its own, which is else cut at few places", .rare = true
#define HELP_MEDIA \
	"poison, stale, or both: a line that was written last is bad after the crash", \
	.words = "poison stale", .rare = true
#define HELP_MEDIA_MAX "such lines of one state", .rare = true
#define HELP_BOUNDS \
	"workloads of a named set (gen --list), or of a file", .letter = 'b', .list = list_bounds, \
	.hint = HINT_FILE
#define HELP_PROFILE "promises without a sync, default first", .list = list_profiles, .strict = true

/* ---- SEARCH ---- */

/* How much is tried: of what the command goes through, or prints. */
#define OPTION_LIMIT(what, ...) \
	{ OPT_COUNT, "limit", 'n', "N", .help = "at most N " what, ##__VA_ARGS__ }

/* clang-format on */

#endif
