/* SPDX-License-Identifier: MIT */
/*
 * guest_target.h - shared by targets in a guest, whatever runs its kernel: all but how the guest is
 * started.
 */
#ifndef TARGET_GUEST_TARGET_H
#define TARGET_GUEST_TARGET_H

#include "guest/guest.h"
#include "target/guest_fs.h"

/* Stands first in what such a target keeps in `own`, which guest_target_close() frees. */
struct guest_target {
	const struct host_fs *fs;
	struct guest_named_fs named;	 /* `fs`, where it is in no list */
	const struct guest_flash *flash; /* NULL: it is on a disk */
	/*
	 * The one that is asked. The others are for persistent memory, while it is recorded: they
	 * are traced, which makes them slower; the last one with loads, and still slower.
	 */
	struct guest *guest, guests[3];
	/* Which boot each of them comes from; those with the same number have the same memory map.
	 */
	uint64_t boots[3];
	bool ready;					 /* the guests are initialised */
	int (*start)(struct target *t, struct err *err); /* the guest; it does not run */
	char *kernel, *modules;
	uint64_t memory;		     /* bytes that it is given, whole MiB */
	int root;			     /* the archive */
	char *files_hash;		     /* of the user's files in it, or NULL */
	uint64_t head;			     /* bytes of the disk before the file system, */
	void (*put_head)(struct image *img); /* and what puts them there; NULL: none */
	const struct workload *workload;     /* the operations to perform, or NULL */
	const struct tree *walked;	     /* the agent's last walk, or NULL */
	bool begun;			     /* the agent knows the workload */
	bool shell;			     /* the guest was seen to have a shell */
	uint64_t clock; /* where the clock starts at each mount, in seconds since 1970; 0: it just
			   runs */
};

/*
 * To be called first when a target is opened; `g` is zeroed memory, and the target's from then on.
 * The guest has `memory` bytes unless the options say otherwise.
 */
int guest_target_init(struct target *t, struct guest_target *g, const struct target_opts *opts,
		      uint64_t memory, struct err *err) must_check;
/* And last: makes the disk. */
int guest_target_ready(struct target *t, struct err *err) must_check;

/* Whether the guest has its disk mounted. */
void guest_target_in_use(struct target *t, bool in_use);

/* A question of one part; the bytes put into the returned buffer are the part's. */
struct strbuf *guest_target_begin(struct target *t, enum agent_command command);
/* Asks it: 0 and the answer, 1 if the guest died of it. */
int guest_target_ask(struct target *t, enum agent_command command, struct wire_in *part,
		     struct err *err) must_check;
/* The same for all parts that were put into the question. */
int guest_target_ask_all(struct target *t, struct wire_in *answer, struct err *err) must_check;
/* Puts a part that sets the clock before the others, and reads its answer, if that is wanted. */
void guest_target_set_clock(struct target *t, uint64_t seconds);
int guest_target_clock_set(struct target *t, struct wire_in *answer, struct err *err) must_check;

/*
 * Makes a mounted file system write out what it has, and keep still; the disk is then as if it were
 * unmounted. Thawed, it goes on. Nothing may be written to it meanwhile.
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
