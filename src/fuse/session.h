/* SPDX-License-Identifier: MIT */
/*
 * session.h - makes and mounts a FUSE session, for all our mounts, and sets what libfuse has no
 * option for.
 *
 * `struct session` is the first member of the session's user data.
 */
#ifndef FUSE_SESSION_H
#define FUSE_SESSION_H

#define FUSE_USE_VERSION 312

#include <fuse3/fuse_lowlevel.h>

#include "base/err.h"

struct session {
	struct fuse_session *se;
	bool mounted, signals;
	/* Whether the first request was seen, and whether it offers to leave set-id bits to us. */
	bool init_seen, killpriv;
	uint64_t init_unique;
	/* If set before session_open(): receives a request, as read(2) would. */
	ssize_t (*receive)(struct session *s, int fd, void *buf, size_t len);
};

/* Makes the session, catches signals and mounts. Call session_close(), also after a failure. */
int session_open(struct session *s, struct fuse_args *args, const struct fuse_lowlevel_ops *ops,
		 const char *dir, struct err *err) must_check;
/* Unmounts if mounted, and destroys the session. */
void session_close(struct session *s);

/*
 * Called by `init`: tells the kernel that we remove set-id bits and file capabilities at a write.
 * Otherwise the kernel asks for a file's capabilities before each write, which doubles the cost of
 * a write. False if the kernel cannot be told.
 */
bool session_take_killpriv(struct session *s, struct fuse_conn_info *conn);
/* The last message of libfuse. */
const char *session_words(void);

#endif
