/* SPDX-License-Identifier: MIT */
/*
 * target.h - a target: a file system under test that can be given a disk, mounted, driven through a
 * directory, and asked for its state.
 *
 * A target is named "ext4", "ext4,data=writeback", "uml:ext4", "vm:ext4" or "fuse:COMMAND {disk}
 * {mnt}"; the words after the comma go to mount. A target lives in one worker process, which has a
 * mount namespace of its own: when the worker is gone, so are its mounts.
 *
 * To add a target, copy skeleton.c.
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

/* The types of the members that options.def defines: borrowed, and owned by a record. */
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
	bool eadr; /* vm: an NVDIMM reports that caches are persistent, too */
	/* The disk is a stranger's: only the guest reads it, and no program of this machine. */
	bool strange;
	unsigned worker;	  /* the number of this worker, from 0 */
	const char *recorder;	  /* NULL: the best that works */
	const char *fsck;	  /* fuse: the command that checks "{disk}" */
	struct kmsg_shared *kmsg; /* NULL: no other process of this run reads the kernel's log */
	uint64_t timeout_ms;	  /* for programs that are run; 0: 60 s */
	/* The hash of the user's files; once a guest has them, of those. NULL: not known. */
	const char *files_hash;
	/*
	 * Called repeatedly while a guest starts, for which there is another limit: a parent that
	 * watches this process for hangs must not count that time. NULL: not watched.
	 */
	void (*starting)(void *ctx);
	void *starting_ctx;
};

/* Checks that the options fit the target; in messages, names of options begin with `prefix`. */
int target_opts_fit(const struct target_opts *o, const char *spec, const char *prefix,
		    struct err *err) must_check;

enum {
	TARGET_UML_MEMORY = 160 << 20,
	TARGET_VM_MEMORY = 256 << 20,
	TARGET_MEMORY_MIN = 96 << 20,
};
#define TARGET_MEMORY_MAX (64ULL << 30)
/* Bytes of an NVDIMM (guest_pm) before the file system. */
enum { TARGET_NVDIMM_HEAD = 2 << 20 };

struct target_stat {
	bool is_file;
	uint64_t size, blocks;
};

/*
 * The requests to a file system that is mounted in a guest: there is no directory here, and t->root
 * stays -1. Each returns 0 or -errno; or 1, if the system under test died of it. Then nothing is
 * mounted any more, t->complaints has the reason, and the next mount starts the system again.
 */
struct target_far {
	/* Begins operations of a workload, which must outlive them; the guest remounts. */
	int (*begin)(struct target *t, const struct workload *w, struct err *err);
	int (*op)(struct target *t, size_t i, int64_t *result, struct err *err);
	int (*end)(struct target *t, struct err *err);
	int (*walk)(struct target *t, const struct tree_opts *opts, struct tree *out,
		    struct err *err);
	/* Does check_usable() in the guest. */
	int (*usable)(struct target *t, const struct tree *seen, struct findings *out,
		      struct err *err);
	int (*stat)(struct target *t, const char *path, struct target_stat *out, struct err *err);
	int (*sync)(struct target *t, struct err *err);
	int (*room)(struct target *t, uint64_t *bytes, struct err *err);
	/*
	 * Gives the functions of a machine's kernel, as in its /proc/kallsyms; `machine` is the
	 * number in a trace. NULL: there is no such request.
	 */
	int (*symbols)(struct target *t, uint64_t machine, struct strbuf *out, struct err *err);
	/* Runs the user's command in the root; NULL: no program could run it. */
	int (*command)(struct target *t, const struct user_command *c, struct user_end *end,
		       struct err *err);
	/*
	 * Gives the times of `n` paths, without changing an access time; NULL: there is no such
	 * request.
	 */
	int (*times)(struct target *t, const char *const *paths, size_t n, struct check_stamp *out,
		     struct err *err);
	/* Fills a file; -ENOSPC is no failure. */
	int (*fill)(struct target *t, const char *name, uint64_t bytes, struct err *err);
};

struct target_ops {
	const char *name;
	const char *help;
	const char *guarantee;	     /* the default profile; see target_guarantee() */
	const char *const *ignore;   /* names in the root that mkfs makes; NULL-terminated */
	const char *const *programs; /* the programs that it runs, NULL-terminated; NULL: none */
	const char *package;	     /* the Debian package with those programs */
	bool in_kernel;		     /* /proc/filesystems must have its name */
	bool needs_root;
	bool deaf_to_sync; /* the kernel does not pass sync and syncfs to it */
	bool pm;	   /* the disk is persistent memory: DISK_PM */
	bool pm_loads;	   /* and a trace of it has loads, if disk_want_loads() asks for them */
	bool coarse;	   /* writes are seen between operations, in one piece */

	/* Opens the target for `opts`, and its disk. */
	int (*open)(struct target *t, const struct target_opts *opts, struct err *err);
	/* Makes an image with a new, empty file system. */
	int (*mkfs)(struct target *t, struct image *out, struct err *err);
	/*
	 * Recovers as a boot after a power cut would before mounting, such as by fsck -p. Returns 0
	 * on success; 1 if the file system cannot be repaired, with the output in `said`.
	 */
	int (*recover)(struct target *t, struct strbuf *said, struct err *err);
	/* Mounts the disk; opens t->root. Returns 1 and the reason if it cannot be mounted. */
	int (*mount)(struct target *t, struct strbuf *said, struct err *err);
	/*
	 * Makes a read-only mount (t->read_only) as mount() would have left it. Returns 1 and the
	 * reason if the file system refuses; then it is still mounted read-only, unless it died. A
	 * target with this function is walked read-only after a crash; NULL: it is mounted writable
	 * at once.
	 */
	int (*remount)(struct target *t, struct strbuf *said, struct err *err);
	/*
	 * Unmounts, or fails. Unless `clean`, data that was not written yet may be dropped: this
	 * disk is not read again.
	 */
	int (*umount)(struct target *t, bool clean, struct err *err);
	/* Runs the file system's own checker, changing nothing. Returns 1 if it complains. */
	int (*fsck)(struct target *t, struct strbuf *said, struct err *err);
	void (*close)(struct target *t); /* accepts a half-built target */
	const struct target_far *far;	 /* NULL: the file system is mounted here */
};

extern const struct target_ops target_ext2, target_ext3, target_ext4, target_xfs, target_btrfs,
	target_fuse;
/* guest_fs.h declares the targets of guests. */
extern const struct target_ops *const targets[]; /* ends with NULL */
extern const struct target_ops target_skeleton;	 /* to copy; not in the list */

#define TARGET_PLACE_SIZE 64

struct target {
	const struct target_ops *ops;
	struct target_opts opts;
	char *mount_opts; /* from the spec, or NULL */
	char *command;	  /* the command of a FUSE server, or NULL */
	struct disk *disk;
	int root;	/* while mounted, else -1 */
	bool mounted;	/* also after a failed unmount, with root closed */
	bool read_only; /* the mount is, or must be, read-only */
	bool died;	/* the kernel died at the last mount or remount */
	char mnt[TARGET_PLACE_SIZE];
	bool cut_off;		  /* the last unmount followed a shutdown */
	struct kmsg kmsg;	  /* the log of the kernel, read so far */
	struct strbuf complaints; /* of the kernel, not yet read by a caller */
	char console[320];	  /* a guest's output when it last could not mount */
	int server;		  /* process of a FUSE server, or 0 */
	/*
	 * A guest's clock at each mount, in seconds since 1970. Operation i begins i + 1 seconds
	 * later. 0: the clock is not set.
	 */
	int64_t clock;
	struct exec exec; /* between target_begin() and target_end() */
	bool performing;
	void *own; /* data of the target's kind */
};

/* Finds the target of a spec; NULL and a sentence if there is none. */
const struct target_ops *target_find(const char *spec, struct err *err);
/* True if the target has a kernel of its own, so that this machine's log does not concern it. */
bool target_is_guest(const char *spec);

/* Adds a target to the list, for programs with targets of their own. */
void target_register(const struct target_ops *ops);

/*
 * Returns the target that is tested without -t, one that this user can run; or NULL and a sentence.
 */
const struct target_ops *target_default(struct err *err);

/*
 * Makes an empty directory to mount on, in a mount namespace of this process's own: it is gone with
 * the process, whatever ends that. Each call makes another one.
 */
int target_place(char mnt[TARGET_PLACE_SIZE], struct err *err) must_check;

/*
 * Checks the options before a run: that they are right, and that a virtual machine has all that it
 * needs. Its kernel is checked last, and fetched if needed.
 */
int target_check(const struct target_opts *opts, struct err *err) must_check;
/* Reads the user's files for a guest, if it would get them; see guest_files.h. */
int target_files(const struct target_opts *opts, struct guest_files *out, struct err *err)
	must_check;
/*
 * Returns the release of the file system's kernel, to be freed; "unknown" if there is no such
 * kernel, or not yet: see target_check().
 */
char *target_kernel(const struct target_opts *opts);
/* Returns a hash of the file that was named as a guest's kernel, to be freed; NULL: none was. */
char *target_kernel_hash(const struct target_opts *opts);
/* Returns a hash of the user's files for a guest; NULL also if the guest would not get them. */
char *target_files_hash(const struct target_opts *opts);

/* Opens a target in this process, which gets a mount namespace of its own. */
int target_open(const struct target_opts *opts, struct target *t, struct err *err) must_check;
/* target_open() for a target that need not be in the list. */
int target_open_as(const struct target_ops *ops, const struct target_opts *opts, struct target *t,
		   struct err *err) must_check;
void target_close(struct target *t);

/* The checking wrappers. */
int target_mkfs(struct target *t, struct image *out, struct err *err) must_check;
int target_recover(struct target *t, struct strbuf *said, struct err *err) must_check;
int target_mount(struct target *t, struct strbuf *said, struct err *err) must_check;
/* For targets that have remount(): mount read-only; and make the mount writable. */
int target_mount_read_only(struct target *t, struct strbuf *said, struct err *err) must_check;
int target_remount(struct target *t, struct strbuf *said, struct err *err) must_check;
int target_umount(struct target *t, bool clean, struct err *err) must_check;
int target_fsck(struct target *t, struct strbuf *said, struct err *err) must_check;

/*
 * The functions below act on a mounted file system, here or in a guest. Each returns 0, -errno, or
 * 1 if the system under test died of it (struct target_far).
 */
bool target_is_mounted(const struct target *t);
/* The name of the file system, whatever kernel it is in: "ext4" for "ext4" and "uml:ext4". */
const char *target_fs_name(const struct target *t);
/* The default profile of the file system as it is mounted: some options make it promise more. */
const char *target_guarantee(const struct target *t);
/* `env` is for mounts here; the workload must outlive the operations. */
int target_begin(struct target *t, const struct workload *w, const struct exec_env *env,
		 struct err *err) must_check;
int target_op(struct target *t, size_t i, int64_t *result, struct err *err) must_check;
int target_end(struct target *t, struct err *err) must_check;
int target_walk(struct target *t, const struct tree_opts *opts, struct tree *out, struct err *err)
	must_check;
/* `seen` is the tree of the last walk. */
enum { TARGET_PATIENCE_MS = 4000 };
int target_usable(struct target *t, const struct tree *seen, struct findings *out, struct err *err)
	must_check;
int target_stat(struct target *t, const char *path, struct target_stat *out, struct err *err)
	must_check;
int target_sync(struct target *t, struct err *err) must_check;
/*
 * Gives the functions of the kernel of a trace (trace.machine), as in /proc/kallsyms. Modules have
 * other addresses after each boot: if no machine of that boot is left, there are no names. Nothing
 * need be mounted.
 */
int target_symbols(struct target *t, uint64_t machine, struct strbuf *out, struct err *err)
	must_check;
/* Runs the user's command in the mounted file system. */
int target_command(struct target *t, const struct user_command *c, struct user_end *end,
		   struct err *err) must_check;
int target_times(struct target *t, const char *const *paths, size_t n, struct check_stamp *out,
		 struct err *err) must_check;
int target_room(struct target *t, uint64_t *bytes, struct err *err) must_check;
int target_fill(struct target *t, const char *name, uint64_t bytes, struct err *err) must_check;

/* For host targets: mounts another device than the disk, to measure the cost of a mount. */
int target_mount_device(struct target *t, const char *device, struct strbuf *said, struct err *err)
	must_check;

/* Adds the kernel's complaints about this target since the last call; true if there are any. */
bool target_kernel_log(struct target *t, struct strbuf *out);

#endif
