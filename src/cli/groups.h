/* SPDX-License-Identifier: MIT */
/*
 * groups.h - options that several commands have, so that a word means the same in all of them.
 * A macro takes where the value goes: OPTION_JSON(AT(json)).
 */
#ifndef CLI_GROUPS_H
#define CLI_GROUPS_H

#include "cli/options.h"

/* GUEST, for a struct target_opts: another kernel, for a file system or under a finding. */
extern const struct opt guest_options[];

/* Names that a table of another room has, for `list` of an option. */
void list_bounds(struct strbuf *out);
void list_profiles(struct strbuf *out);
void list_guarantees(struct strbuf *out);
void list_targets(struct strbuf *out);

/* clang-format off */

/* ---- OUTPUT ---- */

#define OPTION_JSON(...) \
	{ OPT_FLAG, "json", 0, NULL, __VA_ARGS__, .help = "one JSON object on standard output" }
#define OPTION_OUTPUT(...) \
	{ OPT_TEXT, "output", 'o', "DIR", __VA_ARGS__, .hint = HINT_FILE, \
	  .help = "where to keep what is found; default: below ./outage-runs" }
#define OPTION_TRUST(...) \
	{ OPT_FLAG, "trust", 0, NULL, __VA_ARGS__, \
	  .help = "also if you did not make it on this machine, and it leads to more than a guest" }

/* ---- RUN ---- */

#define OPTION_FINDING \
	{ OPT_ARGUMENT, .arg = "FINDING", .hint = HINT_DIR, .help = "its directory, RUN/findings/NAME" }
#define OPTION_TIMEOUT(words, ...) \
	{ OPT_DURATION, "timeout", 0, "DURATION", __VA_ARGS__, .help = words }

#define OPTION_TIME(...) \
	{ OPT_DURATION, "time", 0, "DURATION", __VA_ARGS__, .least = 1, .help = "stop after that" }
#define OPTION_JOBS(words, max_, ...) \
	{ OPT_COUNT, "jobs", 'j', "N", __VA_ARGS__, .least = 1, .most = max_, .help = words }
/* What a command that searches says at the end of its --help, before the example. */
#define EXIT_STATUS_NOTES \
	"Exit status: 0 nothing was found, 1 something was, 2 it could not be run, or part of it,\n" \
	"or nothing was tried.\n\n"

/* ---- SEARCH ---- */

#define OPTION_BUDGET(words, ...) { OPT_COUNT, "budget", 0, "N", __VA_ARGS__, .help = words }
#define OPTION_SEED(words, ...) \
	{ OPT_NUMBER, "seed", 0, "N", __VA_ARGS__, .help = "for " words, .otherwise = "0" }

#define OPTION_BOUNDS(...) \
	{ OPT_TEXT, "bounds", 'b', "SET|FILE", __VA_ARGS__, .list = list_bounds, .hint = HINT_FILE, \
	  .help = "generated workloads: a named set (outage gen --list), or a file of bounds" }
#define OPTION_PROFILE(kind, ...) \
	{ kind, "profile", 'p', "NAME", __VA_ARGS__, .list = list_profiles, .strict = true, \
	  .help = "what an application may count on without a sync: ext4-ordered (default), " \
		  "ext4-writeback, xfs, btrfs, minimal, lazyfs" }

/* clang-format on */

#endif
