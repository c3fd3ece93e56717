/* SPDX-License-Identifier: MIT */
/*
 * names_in.h - the names in a directory, without "." and "..":
 *
 *	auto_names_in d = names_in(AT_FDCWD, "/proc");
 *	while ((e = names_next(d))) ... e->d_name ...
 */
#ifndef BASE_NAMES_IN_H
#define BASE_NAMES_IN_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "base/err.h"
#include "base/words.h"

/* Takes ownership of the descriptor. Returns NULL and sets errno on failure. */
static inline DIR *names_of(int fd)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		util_close(fd);
	return d;
}

static inline DIR *names_in(int at, const char *name)
{
	return names_of(openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/* Returns the next name; NULL at the end, or if `d` is NULL. */
static inline struct dirent *names_next(DIR *d)
{
	struct dirent *e = NULL;

	while (d && (e = readdir(d)) && (streq(e->d_name, ".") || streq(e->d_name, "..")))
		;
	return e;
}

static inline void names_close_(DIR **d)
{
	if (*d)
		closedir(*d);
}
#define auto_names_in auto_call(names_close_) DIR *

/* Adds the names in the directory `fd`, which `shown` names in messages. Names may go meanwhile. */
static inline int names_all(int fd, const char *shown, struct words *out, struct err *err)
{
	auto_names_in d = names_in(fd, ".");

	if (!d)
		return err_set(err, -errno, "cannot read %s: %m", shown);
	for (struct dirent *e; errno = 0, (e = names_next(d));)
		vec_push(out, xstrdup(e->d_name));
	return errno ? err_set(err, -errno, "cannot read %s: %m", shown) : 0;
}

#endif
