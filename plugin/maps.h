/* SPDX-License-Identifier: MIT */
/*
 * maps.h - writes down the mappings of a traced program, so that addresses of code can be named
 * later.
 */
#ifndef PLUGIN_MAPS_H
#define PLUGIN_MAPS_H

#include <stdint.h>

/*
 * Writes to a file, which is there, a line for each part of a program or library that this process
 * has mapped to be executed: "START-END OFFSET PATH", in hexadecimal. `base` is taken off the
 * addresses. Does nothing if it cannot.
 */
void maps_write(const char *path, uint64_t base);

#endif
