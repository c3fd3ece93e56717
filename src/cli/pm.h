/* SPDX-License-Identifier: MIT */
/* pm.h - what other commands do with a run of `outage pm`, or a finding of one. */
#ifndef CLI_PM_H
#define CLI_PM_H

#include "cli/cli.h"

int pm_replay(const char *dir, bool json, bool trust);
int pm_report(const char *dir, bool json);

#endif
