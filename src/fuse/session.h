/* SPDX-License-Identifier: MIT */
/*
 * session.h - shared by our mounts: makes and mounts a FUSE session, and tells its kernel what
 * libfuse has no word for.
 *
 * The structure is the first member of what the session gets as its user data.
 */
#ifndef FUSE_SESSION_H
#define FUSE_SESSION_H

#define FUSE_USE_VERSION 312

#include <fuse3/fuse_lowlevel.h>

#include "base/err.h"

struct session {
	struct fuse_session *se;
	bool mounted, signals;
	/* The first request, and whether it offers that set-id bits be left to us. */
	bool init_seen, killpriv;
	uint64_t init_unique;
	/* Receives a request as read(2) would, if it is set when the session is opened. */
	ssize_t (*receive)(struct session *s, int fd, void *buf, size_t len);
};

/* Makes the session, catches signals and mounts. session_close() is due, also after a failure. */
int session_open(struct session *s, struct fuse_args *args, const struct fuse_lowlevel_ops *ops,
		 const char *dir, struct err *err) must_check;
/* Unmounts, if it is mounted. */
void session_close(struct session *s);

/*
 * To be called by `init`: set-id bits and file capabilities that a write takes away are ours to see
 * to. A kernel that is not told so asks for a file's capabilities before each write, which doubles
 * what a write costs. False if the kernel cannot be told.
 */
bool session_take_killpriv(struct session *s, struct fuse_conn_info *conn);
/* The last message of libfuse. */
const char *session_words(void);

#endif
