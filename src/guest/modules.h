/* SPDX-License-Identifier: MIT */
/* modules.h - a kernel's modules: their needs, and the bytes to load. */
#ifndef GUEST_MODULES_H
#define GUEST_MODULES_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/words.h"

/*
 * `dir` is the folder of a kernel's modules. Modules of `names` that are not in it are built into
 * the kernel, and left out; the needs of the others are added. The needs are read from modules.dep,
 * or from the modules themselves if that file is missing. Gives paths below the folder, in the
 * order in which to load them.
 */
int modules_order(const char *dir, const char *const *names, struct words *out, struct err *err)
	must_check;
/*
 * Appends the module, uncompressed. `path` comes from a list, which may not tell that the file is
 * compressed. Returns -EBADMSG if the module is damaged, -EFBIG if it is too large for a module.
 */
int modules_read(const char *dir, const char *path, struct strbuf *out, struct err *err) must_check;
/* Whether the file that a list names is there, compressed or not. */
bool modules_has_file(const char *dir, const char *path);
/* Whether the path of `len` bytes is the file of a module of that name; "-" and "_" are the same.
 */
bool modules_is(const char *path, size_t len, const char *name);
/* True if the kernel has the module, as a file or built in. */
bool modules_have(const char *dir, const char *name);
/* Returns -ENODEV and a sentence if the kernel lacks the module; 0 also if no list tells. */
int modules_need(const char *dir, const char *name, struct err *err) must_check;

#endif
