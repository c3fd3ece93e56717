/* SPDX-License-Identifier: MIT */
/* modules.h - a kernel's modules: which others each needs, and the bytes to load. */
#ifndef GUEST_MODULES_H
#define GUEST_MODULES_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

struct module_list vec_of(char *); /* paths below the folder, in the order in which to load them */

/*
 * `dir` is the folder of a kernel's modules. The members of `names` that it does not have are built
 * into the kernel, and left out; each of the others brings along what it needs. The needs of a
 * module are read from modules.dep, or from the modules themselves where that file is missing.
 */
int modules_order(const char *dir, const char *const *names, struct module_list *out,
		  struct err *err) must_check;
void module_list_release(struct module_list *list);
/*
 * Appends the module, uncompressed. `path` is of a list, which may not tell that the file is
 * compressed. -EBADMSG if it is damaged, -EFBIG if it is larger than any module.
 */
int modules_read(const char *dir, const char *path, struct strbuf *out, struct err *err) must_check;
/* Whether the file that a list names is there, compressed or not. */
bool modules_has_file(const char *dir, const char *path);
/* Whether the path of `len` bytes is the file of a module of that name; "-" and "_" are the same.
 */
bool modules_is(const char *path, size_t len, const char *name);
/* Whether the kernel has it as a module, or built in. */
bool modules_have(const char *dir, const char *name);
/* -ENODEV and a sentence if it has it neither way; 0 where no list tells, as then it is unknown. */
int modules_need(const char *dir, const char *name, struct err *err) must_check;

#endif
