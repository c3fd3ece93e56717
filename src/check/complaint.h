/* SPDX-License-Identifier: MIT */
/*
 * complaint.h - recognises complaints in a kernel's log: bugs of the kernel itself, and messages of
 * a file system about its block device.
 *
 * The tables are public because exported scripts search for the same words.
 */
#ifndef CHECK_COMPLAINT_H
#define CHECK_COMPLAINT_H

#include <stdbool.h>

/* Each table ends with NULL. A line with one of these is a bug of the kernel, */
extern const char *const complaint_bugs[];
/* unless it begins with this: a program that crashed, in the words of the processor; */
#define COMPLAINT_PROGRAM "traps: "
/*
 * or has one of these: a processor, or a queue, that did not move for seconds. Such stalls happen
 * on a busy machine, or if a virtual one does not get to run; the process that waits for a file
 * system notices a hang of it.
 */
extern const char *const complaint_stalls[];

/*
 * A line that names a device and has one of these, in upper or lower case, is a complaint about
 * that device; but not an option such as "errors=remount-ro", a word of this table followed by
 * "s=".
 */
extern const char *const complaint_of_device[];
/* unless it has one of these, which we have requested ourselves before an unmount. */
extern const char *const complaint_asked_for[];

bool complaint_is_bug(const char *line);
/* `device` is "loop0", or NULL. */
bool complaint_is_of_device(const char *line, const char *device);
/* Whether the line has `word`, and no letter or digit is before or behind it. */
bool complaint_has_word(const char *line, const char *word);

#endif
