/* SPDX-License-Identifier: MIT */
/*
 * guest_target.h - the functions that all targets in a guest share, whatever runs the kernel: all
 * but the start of the guest.
 */
#ifndef TARGET_GUEST_TARGET_H
#define TARGET_GUEST_TARGET_H

#include "guest/guest.h"
#include "guest/guest_args.h"
#include "target/guest_fs.h"

/* The first member of such a target's `own`, which guest_target_close() frees. */
struct guest_target {
	const struct host_fs *fs;
	struct guest_named_fs named;	 /* `fs`, if it is in no list */
	const struct guest_flash *flash; /* NULL: it is on a disk */
	/*
	 * `guest` is the current one. The others are for recordings of persistent memory: they are
	 * traced, and slower; the last one with loads, and slower still.
	 */
	struct guest *guest, guests[3];
	/* The boot from which each guest comes; guests of one boot have the same memory map.
	 */
	uint64_t boots[3];
	bool ready;					 /* the guests are initialised */
	int (*start)(struct target *t, struct err *err); /* starts the guest, which does not run */
	char *kernel, *modules;
	struct guest_args args;		     /* the user's, for the kernel */
	uint64_t memory;		     /* the guest's memory in bytes, whole MiB */
	int root;			     /* the archive */
	char *files_hash;		     /* the hash of the user's files in it, or NULL */
	uint64_t head;			     /* bytes of the disk before the file system, */
	void (*put_head)(struct image *img); /* writes these; NULL: none */
	const struct workload *workload;     /* the operations to perform, or NULL */
	const struct tree *walked;	     /* the agent's last walk, or NULL */
	bool begun;			     /* the agent knows the workload */
	bool shell;			     /* the guest was seen to have a shell */
	uint64_t clock; /* the clock at each mount, in seconds since 1970; 0: not set */
};

/*
 * Called first when a target is opened; `g` is zeroed memory, which the target then owns. The guest
 * has `memory` bytes unless the options say otherwise.
 */
int guest_target_init(struct target *t, struct guest_target *g, const struct target_opts *opts,
		      uint64_t memory, struct err *err) must_check;
/* Called last when a target is opened: makes the disk. */
int guest_target_ready(struct target *t, struct err *err) must_check;

/* Tells whether the guest has its disk mounted. */

/* Begins a question of one part, whose bytes go into the returned buffer. */
struct strbuf *guest_target_begin(struct target *t, enum agent_command command);
/* Asks the question. Returns 0 and the answer, or 1 if the guest died of it. */
int guest_target_ask(struct target *t, enum agent_command command, struct wire_in *part,
		     struct err *err) must_check;
/* As guest_target_ask(), for a question of several parts. */
int guest_target_ask_all(struct target *t, struct wire_in *answer, struct err *err) must_check;
/* Add a part that sets the clock, before the others, and read its answer, if the clock is set. */
void guest_target_set_clock(struct target *t, uint64_t seconds);
int guest_target_clock_set(struct target *t, struct wire_in *answer, struct err *err) must_check;

/*
 * Freezes a mounted file system: it writes all its data and then nothing more, so the disk is as
 * after an unmount; or thaws it. No operation may write meanwhile.
 */
int guest_target_freeze(struct target *t, struct err *err) must_check;
int guest_target_thaw(struct target *t, struct err *err) must_check;

/* The functions of struct target_ops. */
int guest_target_mkfs(struct target *t, struct image *out, struct err *err) must_check;
int guest_target_recover(struct target *t, struct strbuf *said, struct err *err) must_check;
int guest_target_mount(struct target *t, struct strbuf *said, struct err *err) must_check;
int guest_target_remount(struct target *t, struct strbuf *said, struct err *err) must_check;
int guest_target_umount(struct target *t, bool clean, struct err *err) must_check;
int guest_target_fsck(struct target *t, struct strbuf *said, struct err *err) must_check;
void guest_target_close(struct target *t);
extern const struct target_far guest_far;

/* All that such targets have in common. */
#define GUEST_TARGET_CALLS                                                                         \
	.mkfs = guest_target_mkfs, .recover = guest_target_recover, .mount = guest_target_mount,   \
	.umount = guest_target_umount, .fsck = guest_target_fsck, .far = &guest_far

/* A target of GUEST_FILE_SYSTEMS; `kind_` is "uml" or "vm", `program_` what runs its kernel. */
#define GUEST_TARGET(kind_, program_, help_, open_, close_, coarse_, name_, guarantee_, ignore_,   \
		     package_, ...)                                                                \
	static const char *const name_##_programs[] = { program_, __VA_ARGS__, NULL };             \
	const struct target_ops target_##kind_##_##name_ = {                                       \
		.name = #kind_ ":" #name_,                                                         \
		.help = #name_ " " help_,                                                          \
		.guarantee = guarantee_,                                                           \
		.ignore = ignore_,                                                                 \
		.programs = name_##_programs,                                                      \
		.package = package_,                                                               \
		.coarse = coarse_,                                                                 \
		.open = open_,                                                                     \
		.close = close_,                                                                   \
		GUEST_TARGET_CALLS,                                                                \
	};

#endif
