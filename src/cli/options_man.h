/* SPDX-License-Identifier: MIT */
/* options_man.h - the options part of a manual page, made from the tables of options. */
#ifndef CLI_OPTIONS_MAN_H
#define CLI_OPTIONS_MAN_H

#include "cli/cli.h"

/*
 * `out` gets the page with its options told; options_man.c says how a page asks for them. `shared`
 * has what several pages say. Both texts are cut up. `programs` ends with NULL.
 */
int man_page(const struct command *const *programs, char *page, char *shared, struct strbuf *out,
	     struct err *err) must_check;

#endif
