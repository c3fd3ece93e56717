/* SPDX-License-Identifier: MIT */
/* options_complete.h - completion for shells, made from the tables of options. */
#ifndef CLI_OPTIONS_COMPLETE_H
#define CLI_OPTIONS_COMPLETE_H

#include "cli/cli.h"

/* `programs` ends with NULL; their subcommands come along. */
void complete_bash(const struct command *const *programs, struct strbuf *out);
void complete_zsh(const struct command *const *programs, struct strbuf *out);
void complete_fish(const struct command *const *programs, struct strbuf *out);

/* The parts that are the same for all tables; options_complete.text has them. */
extern const char complete_bash_head[], complete_bash_tail[], complete_zsh_head[],
	complete_zsh_tail[], complete_fish_head[];

#endif
