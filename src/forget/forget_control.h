/* SPDX-License-Identifier: MIT */
/*
 * forget_control.h - commands for a mount: a Unix socket with commands and answers, and the FIFO
 * that LazyFS's users know.
 *
 * A request on the socket is a line of words (base/words.h), the command; with the word "--json" in
 * front the answer is one JSON object. The answer is a line "ok N" or "error N", and then N bytes:
 * the command's output, or why it was not done. A connection may carry any number of requests, one
 * after the other; a line without an end is not executed. A command may have any length. If the
 * mount ends badly, all connected clients get one more "error N" with the reason.
 *
 * S1: a socket has the mode 0600, and only its own user and root get answers, whatever the mode of
 *     its directory.
 * S2: a client that is slow, silent or gone costs one waiting thread, and does not disturb other
 *     clients.
 * S3: a command that was not done is never answered with "ok", and never reported as finished.
 *
 * Existing FIFOs are used, with any mode, if they belong to this user or root; missing FIFOs are
 * made, with the mode 0600, and removed in the end. A FIFO that is removed meanwhile is not made
 * again (its directory may be about to be removed), but a new one in its place is used. A FIFO has
 * one server: a second server is refused. Commands are lines; the end of a writer's text ends a
 * line as well.
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
	const struct forget_place *place;  /* names the usual socket */
	bool socket_optional;		   /* log a missing socket, and go on */
	/* Executes a command: forget_command(). */
	int (*command)(void *ctx, const struct inject_command *c, struct strbuf *text,
		       struct strbuf *json, struct err *err);
	void *command_ctx;
	void (*log)(void *ctx, const char *line); /* from any thread */
	void *log_ctx;
};

struct forget_control;

/* Listens in a thread until it is stopped. On failure nothing is left. */
int forget_control_start(const struct forget_control_opts *opts, struct forget_control **out,
			 struct err *err) must_check;
/*
 * Sets the reason why the mount ended badly, which all connected clients get as an error without a
 * request when the control stops. The text must stay valid until then.
 */
void forget_control_farewell(struct forget_control *c, const char *why);
/* Answers current requests, within a moment, and ends. NULL is fine. */
void forget_control_stop(struct forget_control *c);

/* ---- for forget_fifo.c ---- */

/* Reads the waiting events of inotify. */
void forget_control_drain(int fd);
void forget_control_logf(const struct forget_control_opts *o, const char *fmt, ...)
	printf_like(2, 3);

struct forget_fifo;

int forget_fifo_start(const struct forget_control_opts *opts, struct forget_fifo **out,
		      struct err *err) must_check;
void forget_fifo_stop(struct forget_fifo *f); /* NULL is fine */

#endif
