/* SPDX-License-Identifier: MIT */
/*
 * guest_files.h - files of the user's that a guest gets beside its own: a program for commands, or
 * what it reads. Each is told as "HOST:GUEST", two absolute paths; a list has one a line.
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

/* From what a user says, HOST or HOST:GUEST, to be freed; without GUEST it is /bin/NAME. */
int guest_file_name(const char *words, char **out, struct err *err) must_check;
/*
 * Reads those of `list`; NULL: none. Each is a regular file, goes to a place that is not the
 * guest's own, and is no program that the guest cannot run; all fit into a guest with `memory`.
 */
int guest_files_read(const char *list, uint64_t memory, struct guest_files *out, struct err *err)
	must_check;
void guest_files_release(struct guest_files *f);
/* Of what they hold and where they go, to be freed. */
char *guest_files_hash(const struct guest_files *f);

/* The kind of program that the bytes are. */
enum guest_program {
	GUEST_NO_PROGRAM, /* a script, or no program at all */
	GUEST_STATIC,	  /* needs nothing but itself */
	GUEST_DYNAMIC,	  /* needs libraries, which a guest does not have */
	GUEST_OTHER,	  /* of another processor, or broken */
};

enum guest_program guest_program(const struct strbuf *text);

#endif
