/* SPDX-License-Identifier: MIT */
/*
 * forget-mutant.c - the mount that forgets with one known bug, to prove that its model finds it:
 * FORGET_MUTANT in the environment names the bug. Linked with the server of the tests; the linker
 * puts what is here before the functions of the same name (--wrap).
 *
 * A bug strikes now and then, not always: what is always wrong is too easily found.
 */
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "forget/forget_mount.h"

static bool has(const char *bug, unsigned one_in)
{
	static atomic_uint calls;
	const char *name = getenv("FORGET_MUTANT");

	return name && streq(name, bug) && atomic_fetch_add(&calls, 1) % one_in == one_in - 1;
}

int __real_forget_root_remove(struct forget *f, struct node *dir, const char *text, bool is_dir);
int __wrap_forget_root_remove(struct forget *f, struct node *dir, const char *text, bool is_dir);
int __real_forget_root_make(struct forget *f, struct node *n, struct node *dir, const char *text,
			    int fd, struct stat *st);
int __wrap_forget_root_make(struct forget *f, struct node *n, struct node *dir, const char *text,
			    int fd, struct stat *st);
int __real_forget_root_rename(struct forget *f, const struct node_name *from,
			      const struct node_name *to, unsigned flags);
int __wrap_forget_root_rename(struct forget *f, const struct node_name *from,
			      const struct node_name *to, unsigned flags);
int __real_forget_root_set_looks(struct forget *f, struct node *n, const struct looks *l,
				 unsigned sets);
int __wrap_forget_root_set_looks(struct forget *f, struct node *n, const struct looks *l,
				 unsigned sets);
int __real_forget_file_write_shadow(struct node_file *x, int fd);
int __wrap_forget_file_write_shadow(struct node_file *x, int fd);
int __real_pagefile_sync(struct pagefile *f);
int __wrap_pagefile_sync(struct pagefile *f);
int __real_pagefile_sync_size(struct pagefile *f, bool grown);
int __wrap_pagefile_sync_size(struct pagefile *f, bool grown);
void __real_pagefile_fail(struct pagefile *f);
void __wrap_pagefile_fail(struct pagefile *f);
void __real_pagefile_drop(struct pagefile *f);
void __wrap_pagefile_drop(struct pagefile *f);
size_t __real_pending_choose_sync(struct pending *l, uint64_t ino, bool is_dir, bool data_only,
				  bool has_data);
size_t __wrap_pending_choose_sync(struct pending *l, uint64_t ino, bool is_dir, bool data_only,
				  bool has_data);
bool __real_forget_file_needs_metadata(struct node_file *x);
bool __wrap_forget_file_needs_metadata(struct node_file *x);
int __real_forget_copy_tree(int from, int to, const char *skip);
int __wrap_forget_copy_tree(int from, int to, const char *skip);
void __real_forget_lose_inside(struct forget *f, struct fault *fault, enum lose_end end,
			       const char *why, struct told_list *told, struct strbuf *text,
			       struct strbuf *json);
void __wrap_forget_lose_inside(struct forget *f, struct fault *fault, enum lose_end end,
			       const char *why, struct told_list *told, struct strbuf *text,
			       struct strbuf *json);
void __real_told_add(struct forget *f, struct told_list *told, struct node *n, const char *name);
void __wrap_told_add(struct forget *f, struct told_list *told, struct node *n, const char *name);

/* The server, or its guardian, is killed at the n-th of these. */
static void die_at(const char *bug)
{
	static atomic_uint calls;
	const char *name = getenv("FORGET_MUTANT"), *at = getenv("FORGET_MUTANT_AT");

	if (name && at && streq(name, bug) &&
	    atomic_fetch_add(&calls, 1) + 1 == strtoul(at, NULL, 10))
		kill(getpid(), SIGKILL);
}

/* A removal becomes durable, but not in ROOT. */
int __wrap_forget_root_remove(struct forget *f, struct node *dir, const char *text, bool is_dir)
{
	int rc;

	die_at("killed");
	rc = has("removal", 8) ? 0 : __real_forget_root_remove(f, dir, text, is_dir);
	die_at("killed");
	return rc;
}

int __wrap_forget_root_make(struct forget *f, struct node *n, struct node *dir, const char *text,
			    int fd, struct stat *st)
{
	int rc;

	die_at("killed");
	rc = __real_forget_root_make(f, n, dir, text, fd, st);
	die_at("killed");
	return rc;
}

/* What is renamed is left where it was. */
int __wrap_forget_root_rename(struct forget *f, const struct node_name *from,
			      const struct node_name *to, unsigned flags)
{
	int rc;

	die_at("killed");
	rc = has("rename", 8) ? 0 : __real_forget_root_rename(f, from, to, flags);
	die_at("killed");
	return rc;
}

/* Attributes stay as they are. */
int __wrap_forget_root_set_looks(struct forget *f, struct node *n, const struct looks *l,
				 unsigned sets)
{
	return has("attributes", 8) ? 0 : __real_forget_root_set_looks(f, n, l, sets);
}

/* The data of a file that gets its first name is left out. */
int __wrap_forget_file_write_shadow(struct node_file *x, int fd)
{
	return has("new-data", 4) ? 0 : __real_forget_file_write_shadow(x, fd);
}

/* ROOT is empty, or full again, when its copy from a snapshot (which skips nothing) is left. */
int __wrap_forget_copy_tree(int from, int to, const char *skip)
{
	int rc;

	if (!skip)
		die_at("rollback");
	rc = __real_forget_copy_tree(from, to, skip);
	if (!skip)
		die_at("rollback");
	return rc;
}

int __wrap_pagefile_sync(struct pagefile *f)
{
	/* The last page of the file is not written. */
	if (pagefile_size(f) > 4096 && has("page", 4)) {
		int rc = __real_pagefile_sync_size(f, true);

		return rc ? rc : pagefile_sync_range(f, 0, pagefile_size(f) - 4096);
	}
	/* Only data, no size. */
	if (has("size", 4))
		return pagefile_sync_range(f, 0, pagefile_durable_size(f));
	return __real_pagefile_sync(f);
}

/* Truncations wait longer than metadata. */
int __wrap_pagefile_sync_size(struct pagefile *f, bool grown)
{
	return has("truncation", 2) ? 0 : __real_pagefile_sync_size(f, grown);
}

/* What a failed sync could not write is written by the next one. */
void __wrap_pagefile_fail(struct pagefile *f)
{
	if (!has("failed-sync", 1))
		__real_pagefile_fail(f);
}

/* Data survives a power cut. */
void __wrap_pagefile_drop(struct pagefile *f)
{
	if (has("survivor", 4) && __real_pagefile_sync(f))
		return;
	__real_pagefile_drop(f);
}

/* A sync of a directory does nothing. */
size_t __wrap_pending_choose_sync(struct pending *l, uint64_t ino, bool is_dir, bool data_only,
				  bool has_data)
{
	if (is_dir && has("directory", 2))
		return 0;
	return __real_pending_choose_sync(l, ino, is_dir, data_only, has_data);
}

/* A sync of data that is written in place commits, too. */
bool __wrap_forget_file_needs_metadata(struct node_file *x)
{
	return has("in-place", 1) || __real_forget_file_needs_metadata(x);
}

/* The kernel is not told of a loss. */
void __wrap_told_add(struct forget *f, struct told_list *told, struct node *n, const char *name)
{
	if (!has("kernel", 4))
		__real_told_add(f, told, n, name);
}

/* Between losing what waits and what comes next there is time for others, if they are let in. */
void __wrap_forget_lose_inside(struct forget *f, struct fault *fault, enum lose_end end,
			       const char *why, struct told_list *told, struct strbuf *text,
			       struct strbuf *json)
{
	__real_forget_lose_inside(f, fault, end, why, told, text, json);
	if (has("slow-loss", 1))
		util_sleep_ms(20);
}
