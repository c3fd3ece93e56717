/* SPDX-License-Identifier: MIT */
/*
 * host.h - file systems of Linux, whatever kernel mounts them: how each is made, recovered and
 * checked, and the programs that do it.
 */
#ifndef TARGET_HOST_H
#define TARGET_HOST_H

#include "target/target.h"

/* The differences between file systems of this machine's kernel. */
struct host_fs {
	const char *name;
	const char *module;	 /* the module's name; NULL: the same as `name` */
	const char *const *mkfs; /* without the device, which comes last; NULL: see made_by */
	const char *made_by;	 /* options of a first mount, which makes it */
	uint64_t size;
	const char *mount_opts;	    /* always given */
	const char *const *recover; /* without the device; NULL: mounting recovers */
	const char *const *repair;  /* the tool for a person, where recovery refuses */
	const char *const *fsck;
	uint64_t
		journal_size; /* of the smallest disk that gets a journal by default; 0: has none */
	bool own_id;   /* the kernel keeps one device for each id: no two processes may share one */
	bool shutdown; /* can be cut off, so that unmounting writes nothing */
	bool foreign;  /* no kernel of Debian 12 has it */
};

/* NULL: it is none that this machine's kernel is tested with. */
const struct host_fs *host_fs_find(const char *name);

/* Runs a program on `file`. 0 and its exit status, or -errno if it could not be run. */
int host_run_tool(struct target *t, const char *const *argv, const char *extra, const char *file,
		  int *status, struct strbuf *said, struct err *err) must_check;
/* The options that mount always gets, and those after the comma of the spec; NULL: none. */
char *host_mount_options(const struct host_fs *fs, const char *spec);
/* Generic words of a mount's options are flags; the rest goes to the file system. */
void host_split_options(const char *options, unsigned long *flags, struct strbuf *data);
/* Makes a file system on `fd`, which is the file `path`, and reads that. */
int host_make_fs(struct target *t, const struct host_fs *fs, int fd, const char *path,
		 struct image *out, struct err *err) must_check;

/*
 * Whether a new file system is what its guarantee is about: mke2fs makes no journal on a small
 * disk, and says nothing.
 */
int host_check_new(const struct target *t, const struct host_fs *fs, const struct image *img,
		   struct err *err) must_check;

#endif
