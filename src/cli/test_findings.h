/* SPDX-License-Identifier: MIT */
/* test_findings.h - what commands do with findings of outage test, and mostly of outage explore. */
#ifndef CLI_TEST_FINDINGS_H
#define CLI_TEST_FINDINGS_H

#include "cli/kind.h"

/* See struct case_ops. */
int test_title(const char *dir, struct strbuf *out, struct err *err) must_check;
int test_report(const char *dir, enum report_form form, struct strbuf *out, struct err *err)
	must_check;
int test_shrink(const struct shrink_request *r);
int test_export(const struct export_request *r);

#endif
