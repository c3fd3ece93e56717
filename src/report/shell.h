/* SPDX-License-Identifier: MIT */
/* shell.h - operations as shell commands, for the exports that are scripts. */
#ifndef REPORT_SHELL_H
#define REPORT_SHELL_H

#include "report/texts.h"
#include "report/view.h"

enum shell_dialect {
	SHELL_PLAIN,	/* coreutils and util-linux, in the working directory */
	SHELL_XFSTESTS, /* below $SCRATCH_MNT, with xfs_io */
};

/* Adds one line for operation `i`; a call of `skip` if no command does the same. */
void shell_op(const struct workload *w, size_t i, enum shell_dialect d, struct strbuf *out);
/* True if the command makes one system call, that of the operation, and tells how it ended. */
bool shell_is_one_call(const struct op *op);

/* Adds one word, quoted for the shell. */
void shell_quote(struct strbuf *out, const char *text);
/* Each %s is such a word. */
void shell_addf(struct strbuf *out, const char *fmt, ...) printf_like(2, 3);
/* Adds lines for `base64 -d`. */
void shell_base64(struct strbuf *out, const unsigned char *data, size_t len);
/* Adds page `n` of a file, for a function `page`; `arg` comes before the number, or is "". */
void shell_page(struct strbuf *out, const char *arg, uint64_t n, const unsigned char *data,
		size_t len);
/* Adds the problems and the promises as comment lines. */
void shell_finding(const struct view *v, struct strbuf *out);
/* Adds a warning about a stranger's finding as comment lines that begin with `begin`. */
void shell_strange(bool ours, const char *begin, struct strbuf *out);
/* Adds one line of text for a comment, which the text cannot end. */
void shell_clean(struct strbuf *out, const char *text);
/* Each %s is such a text. */
void shell_notef(struct strbuf *out, const char *fmt, ...) printf_like(2, 3);
/* Adds a call of the function `judge` with these words. */
void shell_put_judge(struct strbuf *out, const char *status, const char *words);
/* Adds the operation as a comment. */
void shell_comment(const struct op *op, struct strbuf *out);
/* Adds a command of the user; its argument is the variable `name`. */
void shell_command(struct strbuf *out, uint64_t timeout_ms, const char *command, const char *name);
/* Adds the head of a script that shows a finding; `what` names the file that `command` wrote. */
void shell_head(struct strbuf *out, bool ours, const char *title, const char *what,
		const char *command);
bool shell_has_control(const char *path);
/* Adds the facts of an entry, in words of the function `facts` of shell_functions. */
void shell_facts(const struct tree_entry *e, struct strbuf *out);
/*
 * Adds the facts of each entry, one line each. A star marks entries that the case is about. Names
 * with control characters, which a line cannot hold, are left out here and by the function
 * `listing`.
 */
void shell_listing(const struct view *v, const struct tree *t, struct strbuf *out);
/* Adds the output of cksum(1) for a file's content; false if the content is unknown. */
bool shell_cksum(const struct tree_entry *e, struct strbuf *out);
/* Adds the attributes that workloads set, as the function `xattrs` prints them. */
void shell_xattrs(const struct tree_entry *e, struct strbuf *out);

/*
 * Gives the value that a problem of that kind is about, and the name of that value in the function
 * `value`; false if it is unknown.
 */
bool shell_value(enum finding_kind kind, const struct tree_entry *e, const char **what,
		 struct strbuf *value);

/* follow_log, listen and kernel_complained, which finds the complaints that check/kmsg.h finds. */
void shell_kernel_log(const struct view *v, struct strbuf *out);

#endif
