/* SPDX-License-Identifier: MIT */
/*
 * groups.h - options that several commands have, so that a word means the same in all of them.
 * A macro takes where the value goes: OPTION_JSON(AT(json)).
 */
#ifndef CLI_GROUPS_H
#define CLI_GROUPS_H

#include "cli/options.h"

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

/* clang-format on */

#endif
