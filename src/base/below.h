/* SPDX-License-Identifier: MIT */
/*
 * below.h - opens files below a run's directory without following a link.
 *
 * A run may come from anywhere. Its files must lead neither to another file of this user, which
 * would be shown or overwritten, nor to a pipe or a device, on which an open may block.
 *
 * DIR is a directory that the user named: links on the way to it are followed, and ".." means its
 * parent. If it has the form ROOT/.//REST, as below_case() makes it, only ROOT was named, and REST
 * lies below a run. NAME is a path below DIR. Neither in REST nor in NAME is a link followed or
 * ".." allowed.
 */
#ifndef BASE_BELOW_H
#define BASE_BELOW_H

#include "base/err.h"
#include "base/words.h"

#define BELOW_MARK "/.//" /* for the kernel a slash; no user would type it */

/*
 * Opens DIR's root, and keeps it open until this process ends: from now on all functions here reach
 * it, and all paths that begin with its name, by that descriptor, and follow no link below it. So
 * all that is read is of the one directory that is verified (trust.h), whatever other users, who
 * may own a link or a directory on the way to it, put in its place meanwhile.
 */
int below_hold(const char *dir, struct err *err) must_check;
/* False: others are held, and this one is not. */
bool below_may_verify(const char *dir);
/* realpath(3) of a directory, to be freed; one that is held is held by that name, too. */
char *below_real(const char *dir);
/*
 * Opens a directory by its path in the mount namespace of this process, which may not be that of
 * the held one. -ESTALE: another directory has its name by now.
 */
int below_open_here(const char *dir, struct err *err) must_check;

/*
 * The directory of a case, to be freed: RUN/.//findings/3-1 for RUN/findings/3-1, since everything
 * below RUN belongs to the run. A case outside of any run is a directory that the user named.
 */
char *below_case(const char *dir);
/* The directory above a path, and its name there, both to be freed; "." if it has none. */
void below_parent(const char *path, char **dir, char **name);
/*
 * Where a case is to be made, both to be freed: RUN and "findings/3-1", or else the directory above
 * it and its name. True if it lies in a run.
 */
bool below_split(const char *path, char **dir, char **name);
/* The run that a case belongs to, to be freed. */
char *below_run_of(const char *case_dir);
/*
 * True if a file that the user named lies in a run, however deep; then `dir` and `name` are DIR and
 * NAME for the functions below.
 */
bool below_named(const char *path, char **dir, char **name);
/* The path DIR/NAME for messages, without the mark in it; to be freed. */
char *below_shown(const char *dir, const char *name);

/*
 * The absolute path of a file that the user named, to be freed. Links are resolved, except links in
 * a run. NULL if the file does not exist.
 */
char *below_absolute(const char *path);

/*
 * Opens a file that the user named, to read it. In a run, links and special files are refused as by
 * below_open(); elsewhere the user may name a link or a pipe.
 */
int below_open_named(const char *path, struct err *err) must_check;
/* Makes a directory that the user named, or finds it; `at` gets its path, to be freed. */
int below_make_named(const char *path, char **at, struct err *err) must_check;

/* Opens a directory, DIR itself if `name` is NULL. */
int below_open_dir(const char *dir, const char *name, struct err *err) must_check;
/* Opens an existing regular file, and nothing else. `flags` are O_RDONLY or O_RDWR. */
int below_open(const char *dir, const char *name, int flags, struct err *err) must_check;
/* True if a file of any type has that name; True if a regular file has it. */
bool below_exists(const char *dir, const char *name);
bool below_has_file(const char *dir, const char *name);

/* Opens the directory that holds NAME, or shall hold it; `last` points at the name in it. */
int below_open_parent(const char *dir, const char *name, const char **last, struct err *err)
	must_check;
/* Makes a directory, or finds it. */
int below_make_dir(const char *dir, const char *name, struct err *err) must_check;
/*
 * Removes a file, or a directory with all it holds, however deep: links are removed, not followed,
 * and mounts in it stay. A name that cannot be removed does not stop the removal of the others.
 */
int below_remove(const char *dir, const char *name, struct err *err) must_check;
/* Removes a file or directory in one step: a concurrent reader finds all of it, or nothing. */
int below_remove_whole(const char *dir, const char *name, struct err *err) must_check;

/*
 * A name for a file that is not complete yet, to be freed. The name is hidden, and contains its
 * process: listings of a directory leave it out, and below_sweep() removes the file once that
 * process is gone.
 */
char *below_new_name(const char *name);
/*
 * Removes the unfinished files of processes that are gone. The directory need not exist.
 */
int below_sweep(const char *dir, const char *name, struct err *err) must_check;

/* The names in a directory, but for hidden ones, sorted as numbers are. */
int below_list(const char *dir, const char *name, struct words *out, struct err *err) must_check;

/*
 * openat2(2) with O_CLOEXEC, RESOLVE_BENEATH and without links. Returns a descriptor, or -errno;
 * -ELOOP if the path has a link.
 */
int below_openat(int root, const char *path, int flags, mode_t mode);
/* below_openat() for kernels before 5.6, which have no openat2(). */
int below_openat_by_hand(int root, const char *path, int flags, mode_t mode);
/* below_remove() for a descriptor; `shown` names it in messages. */
int below_remove_at(int dir, const char *name, const char *shown, struct err *err) must_check;

#endif
