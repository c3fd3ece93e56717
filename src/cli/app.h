/* SPDX-License-Identifier: MIT */
/* app.h - what other commands do with a run of `outage app`, or a finding of one. */
#ifndef CLI_APP_H
#define CLI_APP_H

#include "app/keep.h"
#include "cli/cli.h"

int app_replay(const char *dir, bool json, bool trust);
int app_report(const char *dir, bool json, const char *html);
int app_export(const char *dir, const char *to, bool trust);

#endif
