/* SPDX-License-Identifier: MIT */
/* options_complete.h - completion for shells, made from the tables of options. */
#ifndef CLI_OPTIONS_COMPLETE_H
#define CLI_OPTIONS_COMPLETE_H

#include "cli/cli.h"

/* `programs` ends with NULL; their subcommands come along. */
void complete_bash(const struct command *const *programs, struct strbuf *out);
void complete_zsh(const struct command *const *programs, struct strbuf *out);
void complete_fish(const struct command *const *programs, struct strbuf *out);

#endif
