/* SPDX-License-Identifier: MIT */
/*
 * forget_control.h - how people and programs talk to a mount: a Unix socket with commands and
 * answers, and the FIFO that users of LazyFS know.
 *
 * A request on the socket is a line of words (base/words.h), the command; with the word "--json" in
 * front the answer is one JSON object. The answer is a line "ok N" or "error N", and then N bytes:
 * what the command says, or why it was not done. A connection may carry any number of requests, one
 * after the other; a line without an end is not done. There is no limit to a command's length. If
 * the mount ends badly, all who are connected get one more "error N" that says so.
 *
 * S1: a socket has the mode 0600, and only its own user and root are answered, whatever its
 *     directory lets others do.
 * S2: a client that is slow, silent or gone costs a thread that waits, and no other client
 *     anything.
 * S3: a command that was not done is never answered with "ok", and never reported as finished.
 *
 * FIFOs that are there already are used, whatever their mode, if they belong to this user or root;
 * others are made, with the mode 0600, and removed at the end. A FIFO that is removed meanwhile is
 * not made again (its directory may be being cleared away), but if a new one appears in its place,
 * that is used. A FIFO has one server: a second one is refused. Commands are lines; the end of what
 * a writer wrote ends a line as well.
 */
#ifndef FORGET_FORGET_CONTROL_H
#define FORGET_FORGET_CONTROL_H

#include "base/err.h"
#include "base/strbuf.h"
#include "forget/forget_place.h"
#include "inject/inject.h"

struct forget_control_opts {
	const char *root, *mnt;		   /* absolute */
	const char *fifo, *fifo_completed; /* absolute, or NULL */
	const char *socket;		   /* one more socket; absolute, or NULL */
	const struct forget_place *place;  /* names the usual one */
	bool socket_optional;		   /* a missing socket is logged, and no failure */
	/* Does a command: forget_command(). */
	int (*command)(void *ctx, const struct inject_command *c, struct strbuf *text,
		       struct strbuf *json, struct err *err);
	void *command_ctx;
	void (*log)(void *ctx, const char *line); /* from any thread */
	void *log_ctx;
};

struct forget_control;

/* Listens until it is stopped. On failure nothing is left behind. */
int forget_control_start(const struct forget_control_opts *opts, struct forget_control **out,
			 struct err *err) must_check;
/*
 * The mount ended badly: `why` is the last thing that all who are connected hear, as an error
 * without a request, when the control stops. The text must stay until then.
 */
void forget_control_farewell(struct forget_control *c, const char *why);
/* Requests that are being answered get their answer, within a moment. NULL is fine. */
void forget_control_stop(struct forget_control *c);

/* ---- the parts, for each other ---- */

/* Takes the events of inotify that wait. */
void forget_control_drain(int fd);
void forget_control_logf(const struct forget_control_opts *o, const char *fmt, ...)
	printf_like(2, 3);

struct forget_fifo;

int forget_fifo_start(const struct forget_control_opts *opts, struct forget_fifo **out,
		      struct err *err) must_check;
void forget_fifo_stop(struct forget_fifo *f); /* NULL is fine */

#endif
