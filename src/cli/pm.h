/* SPDX-License-Identifier: MIT */
/* pm.h - what other commands do with a run of `outage pm`, or a finding of one. */
#ifndef CLI_PM_H
#define CLI_PM_H

#include "cli/cli.h"

int pm_replay(const char *dir, bool json, bool trust);
/* `html`: where a page goes, or NULL. */
int pm_report(const char *dir, bool json, const char *html);
int pm_export(const char *dir, const char *to, bool trust);

struct pm_shrink_command {
	const char *dir, *output;
	uint64_t max_tries;
	bool json, force, trust;
};

int pm_shrink_case(const struct pm_shrink_command *o);

#endif
