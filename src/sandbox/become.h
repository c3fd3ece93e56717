/* SPDX-License-Identifier: MIT */
/* become.h - turns a process that was just forked into the user's command. */
#ifndef SANDBOX_BECOME_H
#define SANDBOX_BECOME_H

struct become {
	const char *command;  /* for a shell */
	const char *argument; /* its $1; may be NULL */
	char *const *words;   /* not NULL: the command without a shell (no_shell.h) */
	const char *dir;      /* its working directory, and its PWD; NULL: here */
	int output, errors;   /* descriptors; -1: /dev/null */
};

/*
 * Runs the command, with standard input from /dev/null and default signals. Status 126 means that
 * it could not be run; the reason is written to `errors`. May be called after vfork(), if the
 * caller uses no changed variable.
 */
_Noreturn void become_command(const struct become *b);

#endif
