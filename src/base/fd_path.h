/* SPDX-License-Identifier: MIT */
/* fd_path.h - the path of an open descriptor, for calls that take none: fd_path(fd).text */
#ifndef BASE_FD_PATH_H
#define BASE_FD_PATH_H

#include <stdio.h>

struct fd_path {
	char text[32];
};

static inline struct fd_path fd_path(int fd)
{
	struct fd_path p;

	snprintf(p.text, sizeof(p.text), "/proc/self/fd/%d", fd);
	return p;
}

#endif
