/* SPDX-License-Identifier: MIT */
/*
 * complaint.h - which lines of a kernel's log are complaints: bugs of the kernel itself, and what a
 * file system says of its block device.
 *
 * The tables are public because scripts that are made for others look for the same.
 */
#ifndef CHECK_COMPLAINT_H
#define CHECK_COMPLAINT_H

#include <stdbool.h>

/* Each table ends with NULL. A line with one of these is a bug of the kernel, */
extern const char *const complaint_bugs[];
/* unless it begins with this: a program that crashed, in the words of the processor; */
#define COMPLAINT_PROGRAM "traps: "
/*
 * or has one of these: a processor, or a queue, that did not move for seconds. So it looks when the
 * machine was busy, or a virtual one was not let run; a file system that never ends is seen by the
 * process that waits for it.
 */
extern const char *const complaint_stalls[];

/*
 * A line that names a device and has one of these, in any case, is a complaint of that device. An
 * option is none: "errors=remount-ro", a word of this table with "s=" behind it.
 */
extern const char *const complaint_of_device[];
/* Unless it has one of these: what we asked for ourselves, before an unmount. */
extern const char *const complaint_asked_for[];

bool complaint_is_bug(const char *line);
/* `device` is "loop0"; NULL: there is none. */
bool complaint_is_of_device(const char *line, const char *device);
/* Whether the line has `word`, and no letter or digit is before or behind it. */
bool complaint_has_word(const char *line, const char *word);

#endif
