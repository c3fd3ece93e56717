/* SPDX-License-Identifier: MIT */
/*
 * forget_place.h - where a mount is, who uses it, and where its server listens.
 *
 * All of it is read from the kernel's own lists, and the mount is never touched: its server may
 * hang, or not let us in.
 *
 * A server listens on a socket that is named after the number of the mounted device, which no other
 * mount of the machine has, in a directory that only its user may enter: /run/outage (root),
 * /run/user/UID/outage, $XDG_RUNTIME_DIR/outage, or /tmp/outage-UID, the first that can be had. A
 * client that looks for it knows the user from the kernel's list, and trusts no socket of another
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

/* The topmost mount on `mnt`; -ENOENT if nothing, or something that is not ours, is mounted. */
int forget_place_find(const char *mnt, struct forget_place *out, struct err *err) must_check;
/* All mounts that are ours, as far as they are seen from here. */
struct forget_places vec_of(struct forget_place);
int forget_place_all(struct forget_places *out, struct err *err) must_check;
/* Whether it is still in the list. */
bool forget_place_is_mounted(const struct forget_place *p);
/* An absolute path without symbolic links, whose last part is not looked at if it need not be. */
char *forget_place_path(const char *path, struct err *err) must_check;

/* "MAJOR:MINOR" */
enum { FORGET_SOCKET_NAME = 32 };
void forget_place_name(const struct forget_place *p, char name[FORGET_SOCKET_NAME]);

/*
 * The directory for sockets of this user, opened with O_PATH; it is made. `path`, if not NULL, gets
 * its name.
 */
int forget_place_dir_make(char **path, struct err *err) must_check;
/* The i-th directory in which the socket of `p` may be; -ENOENT: it is not there, -ERANGE: no more.
 */
int forget_place_dir_look(const struct forget_place *p, unsigned i, char **path);

/*
 * Adds "vim (412), bash (77)": the processes that have files open, or are, in there. False: no user
 * was seen. With `elsewhere`, those in other mount namespaces, which may have a copy of the mount
 * and keep it alive.
 */
bool forget_place_users(const struct forget_place *p, bool elsewhere, struct strbuf *out);

#endif
