/* SPDX-License-Identifier: MIT */
/*
 * groups.h - options that several commands have, so that a word means the same in all of them.
 * A macro takes where the value goes: OPTION_JSON(AT(json)).
 */
#ifndef CLI_GROUPS_H
#define CLI_GROUPS_H

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
#define OPTION_SUPPRESS(...) \
	{ OPT_CALL, "suppress", 0, "FILE", __VA_ARGS__, .hint = HINT_FILE, .rare = true, \
	  .help = "findings that are known: counted apart, and not kept" }
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

#define OPTION_TIME(...) \
	{ OPT_DURATION, "time", 0, "DURATION", __VA_ARGS__, .least = 1, .help = "stop after that" }
#define OPTION_JOBS(words, max_, ...) \
	{ OPT_COUNT, "jobs", 'j', "N", __VA_ARGS__, .least = 1, .most = max_, .help = words }
/* Of a command that searches. */
#define EXIT_STATUS_SEARCH \
	"0 nothing found, 1 something found, 2 failed, in whole or part"

#define OPTION_HANG_AFTER(...) \
	{ OPT_DURATION, "hang-after", 0, "DURATION", __VA_ARGS__, \
	  .help = "a call without an answer for so long hangs" }

/* ---- CRASH ---- */

/* Which crashes are tried. */
#define OPTION_CRASH(words_, help_, ...) \
	{ OPT_SET, "crash", 0, "MODE,...", .words = words_, .help = help_, ##__VA_ARGS__ }

#define OPTION_MAX_SUBSET(words, ...) { OPT_COUNT, "max-subset", 0, "N", .help = words, __VA_ARGS__ }
#define OPTION_GUARANTEE(...) \
	{ OPT_TEXT, "guarantee", 0, "NAME", .list = list_guarantees, .strict = true, \
.help = "the promises of the file system, by default those the target is known for", \
	  ##__VA_ARGS__ }
#define OPTION_MODEL(kind, list_, ...) \
	{ kind, "model", 0, "NAME", .list = list_, .strict = true, .rare = true, \
	  .help = "the states a crash may leave, by default those that suit the target", ##__VA_ARGS__ }
/* Of persistent memory. */
#define OPTION_EADR(kind, ...) \
	{ kind, "eadr", .rare = true, .help = "caches are persistent, no flush is needed: the same " \
	  "as --model pm-eadr", ##__VA_ARGS__ }
#define OPTION_GRANULARITY(...) \
	{ OPT_NUMBER, "granularity", 0, "N", .words = "8 64", .strict = true, .rare = true, \
	  .help = "64: stores to a line of 64 bytes persist in order; 8: in any order", \
	  .otherwise = "64", ##__VA_ARGS__ }
#define OPTION_SPLIT(...) \
	{ OPT_FLAG, "split", .rare = true, \
	  .help = "take each store of a copy on its own, which is else cut at few places", ##__VA_ARGS__ }
#define OPTION_MEDIA(...) \
	{ OPT_SET, "media", 0, "WHAT,...", .words = "poison stale", .rare = true, \
	  .help = "poison, stale, or both: a line that was written last is bad after the crash", \
	  ##__VA_ARGS__ }
#define OPTION_MEDIA_MAX(number, ...) \
	{ OPT_COUNT, "media-max", 0, "N", .rare = true, .help = "such lines of one state", \
	  .otherwise = number, ##__VA_ARGS__ }
#define OPTION_PRUNE(words_, ...) \
	{ OPT_CHOICE, "prune", 0, "HOW", .words = "none reads", .rare = true, .help = words_, ##__VA_ARGS__ }

/* For a struct crashes: every record of a plan that has one takes them by name. */
#define CRASH_OPTIONS(crash, budget) \
	OPTION_CRASH(RUN_MODE_WORDS, crash), \
	{ OPT_FLAG, "torn", .rare = true, .help = "the same as --crash reorder,torn" }, \
	OPTION_BUDGET(budget), \
	OPTION_MAX_SUBSET("reorder: at most N writes lost, or surviving", .otherwise = "2", \
			  .rare = true), \
	OPTION_PRUNE("reads (default): vary only the writes that recovery or the walk reads; none " \
		     "(default for persistent memory): vary them all"), \
	{ OPT_COUNT, "lose-flush", 0, "N", .rare = true, \
	  .help = "judge as if the N-th flush of each workload had not been sent, to see that it " \
		  "is noticed" }, \
	OPTION_MODEL(OPT_TEXT, list_models), \
	OPTION_EADR(OPT_FLAG), \
	OPTION_GRANULARITY(), \
	OPTION_SPLIT(), \
	OPTION_MEDIA(), \
	OPTION_MEDIA_MAX("16"), \
	OPTION_GUARANTEE(.rare = true), \
	{ OPT_TEXT, "check", 0, "CMD", \
	  .help = "must succeed on every recovered state; it runs in the file system, in the " \
		  "guest if there is one" }, \
	{ OPT_TEXT, "dump", 0, "CMD", .rare = true, \
	  .help = "persistent memory: what it prints of a state is the state" }, \
	{ OPT_FLAG, "fsck", .rare = true, \
	  .help = "run the file system's own checker on every state" }, \
	{ OPT_FLAG, "paranoid", .rare = true, .help = "compare device and record after every run" }

/* ---- SEARCH ---- */

/* How much is tried: of what the command goes through, or prints. */
#define OPTION_LIMIT(what, ...) \
	{ OPT_COUNT, "limit", 'n', "N", .help = "at most N " what, ##__VA_ARGS__ }
#define OPTION_FINDINGS(words, ...) \
	{ OPT_COUNT, "findings", 0, "N", .rare = true, .help = words, ##__VA_ARGS__ }

#define OPTION_BUDGET(words, ...) { OPT_COUNT, "budget", 0, "N", .help = words, ##__VA_ARGS__ }
#define OPTION_SEED(words, ...) \
	{ OPT_NUMBER, "seed", 0, "N", .help = "for " words, .otherwise = "0", ##__VA_ARGS__ }

#define OPTION_BOUNDS(...) \
	{ OPT_TEXT, "bounds", 'b', "SET|FILE", .list = list_bounds, .hint = HINT_FILE, \
	  .help = "workloads of a named set (gen --list), or of a file", \
	  ##__VA_ARGS__ }
#define OPTION_PROFILE(kind, ...) \
	{ kind, "profile", 'p', "NAME", __VA_ARGS__, .list = list_profiles, .strict = true, \
	  .help = "promises without a sync, default first" }

/* clang-format on */

#endif
