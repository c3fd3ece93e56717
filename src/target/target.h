/* SPDX-License-Identifier: MIT */
/*
 * target.h - something under test: a file system that can be given a disk, mounted, driven through
 * a directory, and asked for its state.
 *
 * A target is named "ext4", "ext4,data=writeback", "uml:ext4", "vm:ext4" or "fuse:COMMAND {disk}
 * {mnt}"; the words after the comma go to mount. A target lives in one worker process, which has a
 * mount namespace of its own: when the worker is gone, so is everything it mounted.
 *
 * To add one, copy skeleton.c.
 */
#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include "base/err.h"
#include "base/strbuf.h"
#include "check/finding.h"
#include "check/times.h"
#include "core/image.h"
#include "record/disk.h"
#include "check/kmsg.h"
#include "tree/tree.h"
#include "workload/exec.h"
#include "workload/user_command.h"

struct target;
struct guest_files;

/* The types of members that options.def has, borrowed, and owned by a record. */
#define TARGET_IS_TEXT	   const char *
#define TARGET_IS_LINES	   const char *
#define TARGET_IS_SIZE	   uint64_t
#define TARGET_IS_FLAG	   bool
#define TARGET_OWNED_TEXT  char *
#define TARGET_OWNED_LINES char *
#define TARGET_OWNED_SIZE  uint64_t
#define TARGET_OWNED_FLAG  bool

struct target_opts {
	const char *spec;
#define TARGET_OPTION(member, kind, ...) TARGET_IS_##kind member;
#define GUEST_OPTION			 TARGET_OPTION
#include "target/options.def"
	bool eadr; /* vm: an NVDIMM says that caches are persistent, too */
	/* Its disk is a stranger's: the guest looks at it, and no program of this machine. */
	bool strange;
	unsigned worker;	  /* which of the parallel workers this is, from 0 */
	const char *recorder;	  /* NULL: the best that works */
	const char *fsck;	  /* fuse: the command that checks "{disk}" */
	struct kmsg_shared *kmsg; /* NULL: no other process of this run reads the kernel's log */
	uint64_t timeout_ms;	  /* for programs that are run; 0: 60 s */
	/* Of what they hold; once they are in a guest, of what it was given. NULL: not known. */
	const char *files_hash;
	/*
	 * Called again and again while a guest starts, which has a limit of its own: a parent that
	 * watches this process for hangs must not count that time. NULL: not watched.
	 */
	void (*starting)(void *ctx);
	void *starting_ctx;
};

/* Whether the target can have what was said; names of options begin with `prefix`. */
int target_opts_fit(const struct target_opts *o, const char *spec, const char *prefix,
		    struct err *err) must_check;

enum {
	TARGET_UML_MEMORY = 160 << 20,
	TARGET_VM_MEMORY = 256 << 20,
	TARGET_MEMORY_MIN = 96 << 20,
};
#define TARGET_MEMORY_MAX (64ULL << 30)
/* Of an NVDIMM (guest_pm), what is before the file system. */
enum { TARGET_NVDIMM_HEAD = 2 << 20 };

struct target_stat {
	bool is_file;
	uint64_t size, blocks;
};

/*
 * The requests to a file system that is mounted elsewhere, in a guest: there is no directory here,
 * and t->root stays -1. Each returns 0 or -errno; or 1, if the system under test died of it. Then
 * nothing is mounted any more, t->complaints says why, and the next mount finds it alive again.
 */
struct target_far {
	/* Operations of a workload, which outlives them; remounts are done there. */
	int (*begin)(struct target *t, const struct workload *w, struct err *err);
	int (*op)(struct target *t, size_t i, int64_t *result, struct err *err);
	int (*end)(struct target *t, struct err *err);
	int (*walk)(struct target *t, const struct tree_opts *opts, struct tree *out,
		    struct err *err);
	/* As check_usable() does it. */
	int (*usable)(struct target *t, const struct tree *seen, struct findings *out,
		      struct err *err);
	int (*stat)(struct target *t, const char *path, struct target_stat *out, struct err *err);
	int (*sync)(struct target *t, struct err *err);
	int (*room)(struct target *t, uint64_t *bytes, struct err *err);
	/*
	 * The functions of the kernel of a machine, as in its /proc/kallsyms, by the number that a
	 * trace has of it; NULL: they cannot be asked for.
	 */
	int (*symbols)(struct target *t, uint64_t machine, struct strbuf *out, struct err *err);
	/* A command of the user's, in the root; NULL: there is nothing that could run it. */
	int (*command)(struct target *t, const struct user_command *c, struct user_end *end,
		       struct err *err);
	/*
	 * The times of `n` paths, without changing an access time; NULL: they cannot be asked for.
	 */
	int (*times)(struct target *t, const char *const *paths, size_t n, struct check_stamp *out,
		     struct err *err);
	/* -ENOSPC is no failure. */
	int (*fill)(struct target *t, const char *name, uint64_t bytes, struct err *err);
};

struct target_ops {
	const char *name;
	const char *help;
	const char *guarantee;	     /* the profile it gets by default */
	const char *const *ignore;   /* names in the root that mkfs makes; NULL-terminated */
	const char *const *programs; /* the programs that it runs, NULL-terminated; NULL: none */
	const char *package;	     /* of Debian, with those programs */
	bool in_kernel;		     /* /proc/filesystems must have its name */
	bool needs_root;
	bool deaf_to_sync; /* the kernel does not pass sync and syncfs on to it */
	bool pm;	   /* its disk is persistent memory: DISK_PM */
	bool pm_loads;	   /* and a trace of it has loads, if disk_want_loads() asks for them */
	bool coarse;	   /* its writes are seen between operations, and in one piece */

	/* Makes ready for `opts`; the disk is open afterwards. */
	int (*open)(struct target *t, const struct target_opts *opts, struct err *err);
	/* Puts a new, empty file system on a disk of the right size. */
	int (*mkfs)(struct target *t, struct image *out, struct err *err);
	/*
	 * Does what a boot after a power cut would do before mounting, such as fsck -p. 0 if it
	 * could be done; 1 if the file system is beyond it, and `said` tells what was said.
	 */
	int (*recover)(struct target *t, struct strbuf *said, struct err *err);
	/* Mounts what is on the disk; t->root is its root. 1 if it cannot be mounted, and why. */
	int (*mount)(struct target *t, struct strbuf *said, struct err *err);
	/*
	 * Makes what is mounted read-only (t->read_only) as mount() would have left it. 1 if the
	 * file system refuses, and why; then it is still mounted read-only, unless it died. A
	 * target that has this is walked read-only after a crash; NULL: it is mounted writable at
	 * once.
	 */
	int (*remount)(struct target *t, struct strbuf *said, struct err *err);
	/*
	 * Unmounts. Nothing is mounted afterwards, or it fails. Unless `clean`, data that was not
	 * written yet may be dropped: this disk will not be looked at again.
	 */
	int (*umount)(struct target *t, bool clean, struct err *err);
	/* Runs the file system's own checker, changing nothing. 1 if it complains. */
	int (*fsck)(struct target *t, struct strbuf *said, struct err *err);
	void (*close)(struct target *t); /* accepts a half-built target */
	const struct target_far *far;	 /* NULL: it is mounted here */
};

extern const struct target_ops target_ext2, target_ext3, target_ext4, target_xfs, target_btrfs,
	target_fuse;
/* The targets of guests are declared by guest_fs.h, which lists them. */
extern const struct target_ops *const targets[]; /* ends with NULL */
extern const struct target_ops target_skeleton;	 /* to copy; not in the list */

#define TARGET_PLACE_SIZE 64

struct target {
	const struct target_ops *ops;
	struct target_opts opts;
	char *mount_opts; /* from the spec, or NULL */
	char *command;	  /* of a FUSE server, or NULL */
	struct disk *disk;
	int root;	/* while mounted, else -1 */
	bool mounted;	/* also while it cannot be unmounted, and root is closed already */
	bool read_only; /* the mount is, or has to be */
	bool died;	/* the last mount or remount was refused by a death of the kernel */
	char mnt[TARGET_PLACE_SIZE];
	bool cut_off;		  /* the last unmount was none that a user would do */
	struct kmsg kmsg;	  /* the log of the kernel, read so far */
	struct strbuf complaints; /* of the kernel, not yet asked for */
	char console[320];	  /* of a guest: what it said when it last could not mount */
	int server;		  /* process of a FUSE server, or 0 */
	/*
	 * Of a guest with a clock that is set: the second since 1970 at which each mount finds it.
	 * Operation i begins i + 1 seconds later. 0: it just runs.
	 */
	int64_t clock;
	struct exec exec; /* between target_begin() and target_end() */
	bool performing;
	void *own; /* of the target's kind */
};

/* Which target a spec means; NULL and a sentence if there is none. */
const struct target_ops *target_find(const char *spec, struct err *err);
/* Whether it has a kernel of its own: of its file system, that of this machine says nothing. */
bool target_is_guest(const char *spec);

/* Adds a target to those that are found by name: for programs with targets of their own. */
void target_register(const struct target_ops *ops);

/*
 * The target that is tested without -t: one that this user can run. NULL and a sentence: nothing.
 */
const struct target_ops *target_default(struct err *err);

/*
 * An empty directory to mount something on, in a mount namespace of this process's own: it is gone
 * with the process, whatever ends it. Each call gives another one.
 */
int target_place(char mnt[TARGET_PLACE_SIZE], struct err *err) must_check;

/*
 * Checks the options before anything is begun: whether they make sense, and whether what a virtual
 * machine needs is there. Its kernel comes last, and is fetched if need be.
 */
int target_check(const struct target_opts *opts, struct err *err) must_check;
/* The user's files for a guest, as they are now, if it would get them; see guest_files.h. */
int target_files(const struct target_opts *opts, struct guest_files *out, struct err *err)
	must_check;
/*
 * The release of the kernel that the file system would be in, to be freed; "unknown" where that is
 * not there, or not yet: see target_check().
 */
char *target_kernel(const struct target_opts *opts);
/* A hash of the file that was named as a guest's kernel, to be freed; NULL: none was. */
char *target_kernel_hash(const struct target_opts *opts);
/* The same for the user's files in it, as they are now; NULL also if a guest would not get them. */
char *target_files_hash(const struct target_opts *opts);

/* Opens a target in this process, which gets a mount namespace of its own. */
int target_open(const struct target_opts *opts, struct target *t, struct err *err) must_check;
/* The same for a target that need not be in the list. */
int target_open_as(const struct target_ops *ops, const struct target_opts *opts, struct target *t,
		   struct err *err) must_check;
void target_close(struct target *t);

/* The checking wrappers. */
int target_mkfs(struct target *t, struct image *out, struct err *err) must_check;
int target_recover(struct target *t, struct strbuf *said, struct err *err) must_check;
int target_mount(struct target *t, struct strbuf *said, struct err *err) must_check;
/* For targets that have remount(): mounts read-only, and makes that writable. */
int target_mount_read_only(struct target *t, struct strbuf *said, struct err *err) must_check;
int target_remount(struct target *t, struct strbuf *said, struct err *err) must_check;
int target_umount(struct target *t, bool clean, struct err *err) must_check;
int target_fsck(struct target *t, struct strbuf *said, struct err *err) must_check;

/*
 * The functions below act on a mounted file system, here or elsewhere. 0, -errno, or 1 if the
 * system under test died of it (struct target_far).
 */
bool target_is_mounted(const struct target *t);
/* "ext4" for "ext4" and "uml:ext4": what it is, whatever kernel it is in. */
const char *target_fs_name(const struct target *t);
/* `env` is for what is mounted here; the workload outlives the operations. */
int target_begin(struct target *t, const struct workload *w, const struct exec_env *env,
		 struct err *err) must_check;
int target_op(struct target *t, size_t i, int64_t *result, struct err *err) must_check;
int target_end(struct target *t, struct err *err) must_check;
int target_walk(struct target *t, const struct tree_opts *opts, struct tree *out, struct err *err)
	must_check;
/* `seen` is what the last walk saw. */
enum { TARGET_PATIENCE_MS = 4000 };
int target_usable(struct target *t, const struct tree *seen, struct findings *out, struct err *err)
	must_check;
int target_stat(struct target *t, const char *path, struct target_stat *out, struct err *err)
	must_check;
int target_sync(struct target *t, struct err *err) must_check;
/*
 * The functions of the kernel that a trace is of (trace.machine), as in /proc/kallsyms. Modules are
 * elsewhere in each machine that boots: of one that is gone, with none left that has the same,
 * there are no names. Nothing need be mounted.
 */
int target_symbols(struct target *t, uint64_t machine, struct strbuf *out, struct err *err)
	must_check;
/* Runs a command of the user's in what is mounted. */
int target_command(struct target *t, const struct user_command *c, struct user_end *end,
		   struct err *err) must_check;
int target_times(struct target *t, const char *const *paths, size_t n, struct check_stamp *out,
		 struct err *err) must_check;
int target_room(struct target *t, uint64_t *bytes, struct err *err) must_check;
int target_fill(struct target *t, const char *name, uint64_t bytes, struct err *err) must_check;

/* For host targets: mounts another device than the disk, as a measure of what a mount costs. */
int target_mount_device(struct target *t, const char *device, struct strbuf *said, struct err *err)
	must_check;

/* Adds the kernel's complaints about this target since the last call; true if there are any. */
bool target_kernel_log(struct target *t, struct strbuf *out);

#endif
