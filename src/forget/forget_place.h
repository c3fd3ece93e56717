/* SPDX-License-Identifier: MIT */
/*
 * forget_place.h - finds a mount, its users, and its server's socket.
 *
 * All facts are read from the kernel's own lists, and the mount is never touched: its server may
 * hang, or refuse us.
 *
 * A server listens on a socket that is named after the number of the mounted device, which no other
 * mount of the machine has, in a directory that only its user may enter: the first that can be made
 * of /run/outage (root), /run/user/UID/outage, $XDG_RUNTIME_DIR/outage, and /tmp/outage-UID. A
 * client knows the user from the kernel's list, and trusts no socket of another user.
 * user.
 */
#ifndef FORGET_FORGET_PLACE_H
#define FORGET_FORGET_PLACE_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

struct forget_place {
	char *mnt;  /* as the kernel names it */
	char *type; /* "fuse.outage" */
	unsigned id;
	unsigned major, minor;
	uid_t owner; /* the user who mounted it */
};

void forget_place_release(struct forget_place *p);
#define auto_place auto_call(forget_place_release) struct forget_place

/* Finds the topmost mount on `mnt`; -ENOENT if there is none, or it is not ours. */
int forget_place_find(const char *mnt, struct forget_place *out, struct err *err) must_check;
/* All our mounts that are visible here. */
struct forget_places vec_of(struct forget_place);
int forget_place_all(struct forget_places *out, struct err *err) must_check;
/* True if the mount is still in the list. */
bool forget_place_is_mounted(const struct forget_place *p);
/* Returns an absolute path without symbolic links; looks at the last part only if needed. */
char *forget_place_path(const char *path, struct err *err) must_check;

/* "MAJOR:MINOR" */
enum { FORGET_SOCKET_NAME = 32 };
void forget_place_name(const struct forget_place *p, char name[FORGET_SOCKET_NAME]);

/*
 * Opens, with O_PATH, the directory for this user's sockets, made if there is none. `path`, if not
 * NULL, gets its name.
 */
int forget_place_dir_make(char **path, struct err *err) must_check;
/* Opens the i-th directory that may have the socket of `p`; -ENOENT: missing, -ERANGE: no more. */
int forget_place_dir_look(const struct forget_place *p, unsigned i, char **path);

/*
 * Adds "vim (412), bash (77)": the processes that have files open, or are, below the mount. False
 * if there is none. With `elsewhere`, those in other mount namespaces, whose copy of the mount
 * keeps it alive.
 */
bool forget_place_users(const struct forget_place *p, bool elsewhere, struct strbuf *out);

#endif
