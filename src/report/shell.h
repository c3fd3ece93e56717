/* SPDX-License-Identifier: MIT */
/* shell.h - operations as commands of a shell; shared by the exports that are scripts. */
#ifndef REPORT_SHELL_H
#define REPORT_SHELL_H

#include "report/view.h"

enum shell_dialect {
	SHELL_PLAIN,	/* coreutils and util-linux, in the working directory */
	SHELL_XFSTESTS, /* below $SCRATCH_MNT, with xfs_io */
};

/* One line for operation `i`; a call of `skip` where no command does the same. */
void shell_op(const struct workload *w, size_t i, enum shell_dialect d, struct strbuf *out);

/* One word that the shell takes as it is. */
void shell_quote(struct strbuf *out, const char *text);
/* The problems and what was promised, as comment lines. */
void shell_finding(const struct view *v, struct strbuf *out);
/* One line of text for a comment: nothing in it can end the comment. */
void shell_clean(struct strbuf *out, const char *text);
/*
 * An entry, or a tree, as `find` prints it with the format of shell_find(), sorted. Names with
 * control characters, which a line cannot hold, are left out by both.
 */
void shell_entry(const struct tree_entry *e, struct strbuf *out);
bool shell_has_control(const char *path);
void shell_listing(const struct tree *t, struct strbuf *out);
/* The command that prints the working directory that way. */
void shell_find(struct strbuf *out);

#endif
