/* SPDX-License-Identifier: MIT */
/* forget_client.h - a client for the socket of forget_control.h. */
#ifndef FORGET_FORGET_CLIENT_H
#define FORGET_FORGET_CLIENT_H

#include "base/err.h"
#include "base/strbuf.h"
#include "forget/forget_place.h"

struct forget_client {
	int fd;
	pid_t server;
};

/*
 * Connects to the server of a mount, or to the socket `path` if that is not NULL. The process that
 * answers must belong to the user who mounted it.
 */
int forget_client_open(const struct forget_place *p, const char *path, struct forget_client *out,
		       struct err *err) must_check;
void forget_client_close(struct forget_client *c);
/*
 * Gives the server's last words, if the mount ended badly; false if there are none. Called when the
 * server has ended.
 */
bool forget_client_farewell(const struct forget_client *c, struct strbuf *why);

/*
 * Sends a command and waits for the answer, at most `timeout_s` seconds (0: for ever). `done`: the
 * command was done; `answer` is its output, or the reason why it was not done.
 */
int forget_client_call(const struct forget_client *c, char *const *words, size_t n, bool json,
		       unsigned timeout_s, struct strbuf *answer, bool *done, struct err *err)
	must_check;

#endif
