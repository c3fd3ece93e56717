/* SPDX-License-Identifier: MIT */
/*
 * guest_files.h - the user's files that a guest gets beside its own: programs for commands, and
 * their input. A file is given as "HOST:GUEST", two absolute paths; a list has one per line.
 */
#ifndef GUEST_GUEST_FILES_H
#define GUEST_GUEST_FILES_H

#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

struct guest_file {
	char *host, *guest;
	mode_t mode;
	struct strbuf text;
};

struct guest_files vec_of(struct guest_file);

/* Makes "HOST:GUEST", to be freed, of the user's HOST or HOST:GUEST; by default /bin/NAME. */
int guest_file_name(const char *words, char **out, struct err *err) must_check;
/*
 * Reads the files of `list`; NULL: none. Fails unless each is a regular file, goes to a place that
 * the guest does not need, and can run in the guest if it is a program; all must fit into a guest
 * with `memory`.
 */
int guest_files_read(const char *list, uint64_t memory, struct guest_files *out, struct err *err)
	must_check;
void guest_files_release(struct guest_files *f);
/* Returns a hash of the files' contents and places, to be freed. */
char *guest_files_hash(const struct guest_files *f);

/* The kind of program that the bytes are. */
enum guest_program {
	GUEST_NO_PROGRAM, /* a script, or no program */
	GUEST_STATIC,	  /* needs no libraries */
	GUEST_DYNAMIC,	  /* needs libraries, which a guest does not have */
	GUEST_OTHER,	  /* for another processor, or broken */
};

enum guest_program guest_program(const struct strbuf *text);

#endif
