/* SPDX-License-Identifier: MIT */
/*
 * host.h - file systems of Linux, whatever kernel mounts them: how each is made, recovered and
 * checked, and by which programs.
 */
#ifndef TARGET_HOST_H
#define TARGET_HOST_H

#include "target/target.h"

/* The differences between file systems of this machine's kernel. */
struct host_fs {
	const char *name;
	const char *module;	 /* the module's name; NULL: the same as `name` */
	const char *const *mkfs; /* without the device, which comes last; NULL: see made_by */
	const char *made_by;	 /* options of a first mount, which makes the file system */
	uint64_t size;
	const char *mount_opts;	    /* always given */
	const char *const *recover; /* without the device; NULL: mounting recovers */
	const char *const *repair;  /* the repair tool, if recovery refuses */
	const char *const *fsck;
	uint64_t
		journal_size; /* of the smallest disk that gets a journal by default; 0: has none */
	bool own_id;   /* the kernel has one device per id: two processes may not share one */
	bool shutdown; /* has the shutdown ioctl, after which unmounting writes nothing */
	bool foreign;  /* no kernel of Debian 12 has it */
};

/* Returns NULL if it is not tested with this machine's kernel. */
const struct host_fs *host_fs_find(const char *name);

/* Runs a program on `file`. Returns 0 and its exit status, or -errno if it could not be run. */
int host_run_tool(struct target *t, const char *const *argv, const char *extra, const char *file,
		  int *status, struct strbuf *said, struct err *err) must_check;
/* Returns the options that mount always gets, and those after the comma of the spec; NULL: none. */
char *host_mount_options(const struct host_fs *fs, const char *spec);
/* Splits mount options into generic flags and the options for the file system. */
void host_split_options(const char *options, unsigned long *flags, struct strbuf *data);
/* Makes a file system on `fd`, which is the file `path`, and reads the result. */
int host_make_fs(struct target *t, const struct host_fs *fs, int fd, const char *path,
		 struct image *out, struct err *err) must_check;

/*
 * Checks that a new file system fits its guarantee: mke2fs silently makes no journal on a small
 * disk.
 */
int host_check_new(const struct target *t, const struct host_fs *fs, const struct image *img,
		   struct err *err) must_check;

#endif
