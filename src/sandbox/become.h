/* SPDX-License-Identifier: MIT */
/* become.h - a process that was just forked becomes a command of the user's. */
#ifndef SANDBOX_BECOME_H
#define SANDBOX_BECOME_H

struct become {
	const char *command;  /* for a shell */
	const char *argument; /* its $1; may be NULL */
	char *const *words;   /* not NULL: the command without a shell (no_shell.h) */
	const char *dir;      /* where it runs, and its PWD; NULL: here */
	int output, errors;   /* descriptors; -1: nowhere */
};

/*
 * Reads from /dev/null, and has signals as a program expects them. Status 126 tells that it could
 * not be run; why is said to `errors`. May be called after vfork(),
 * if the caller cares for no variable.
 */
_Noreturn void become_command(const struct become *b);

#endif
