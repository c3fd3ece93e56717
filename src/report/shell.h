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
/* Whether its command makes one system call, the operation's, and tells how that ended. */
bool shell_is_one_call(const struct op *op);

/* One word that the shell takes as it is. */
void shell_quote(struct strbuf *out, const char *text);
/* A %s stands for such a word. */
void shell_addf(struct strbuf *out, const char *fmt, ...) printf_like(2, 3);
/* In lines, for `base64 -d`. */
void shell_base64(struct strbuf *out, const unsigned char *data, size_t len);
/* Page `n` of a file, for a function `page`; its argument before the number is `arg`, or "". */
void shell_page(struct strbuf *out, const char *arg, uint64_t n, const unsigned char *data,
		size_t len);
/* The problems and what was promised, as comment lines. */
void shell_finding(const struct view *v, struct strbuf *out);
/* For the head of what is not this user's own, as comment lines that begin so. */
void shell_strange(bool ours, const char *begin, struct strbuf *out);
/* One line of text for a comment: nothing in it can end the comment. */
void shell_clean(struct strbuf *out, const char *text);
/* A %s stands for such a text. */
void shell_notef(struct strbuf *out, const char *fmt, ...) printf_like(2, 3);
/* A call of the function `judge` with these words. */
void shell_put_judge(struct strbuf *out, const char *status, const char *words);
/* The operation as a comment. */
void shell_comment(const struct op *op, struct strbuf *out);
/* Runs a command of the user's; its argument is that variable. */
void shell_command(struct strbuf *out, uint64_t timeout_ms, const char *command, const char *name);
/* The head of a script that shows a finding: of `what`, which `command` wrote. */
void shell_head(struct strbuf *out, bool ours, const char *title, const char *what,
		const char *command);
bool shell_has_control(const char *path);
/* Adds what can be seen of an entry, in words of the function `facts` of shell_functions. */
void shell_facts(const struct tree_entry *e, struct strbuf *out);
/*
 * The facts of each entry, a line each. A star marks what the case is about. Names with control
 * characters, which a line cannot hold, are left out here and by the function `listing`.
 */
void shell_listing(const struct view *v, const struct tree *t, struct strbuf *out);
/* Adds what cksum(1) prints of a file's content; false if it is not known. */
bool shell_cksum(const struct tree_entry *e, struct strbuf *out);
/* Attributes that workloads set, as the function `xattrs` prints them. */
void shell_xattrs(const struct tree_entry *e, struct strbuf *out);

/*
 * The value of what a problem of that kind is about, and the name that the function `value` has for
 * it; false if that is not known.
 */
bool shell_value(enum finding_kind kind, const struct tree_entry *e, const char **what,
		 struct strbuf *value);

/* judge STATUS WORDS, which tells of one problem, and finish, which ends the script. */
extern const char shell_judge[];
/* Functions that look at the working directory: listing, facts PATH, is WHAT PATH VALUE, ... */
extern const char shell_functions[];
/* use: does what check/usable.h does, and calls `listen`. */
extern const char shell_use[];
/* follow_log, listen and kernel_complained, which looks for what check/kmsg.h looks for. */
void shell_kernel_log(const struct view *v, struct strbuf *out);

#endif
