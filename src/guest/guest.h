/* SPDX-License-Identifier: MIT */
/*
 * guest.h - a guest: a kernel that runs as a process of ours, with our disk, and the agent in it. A
 * guest is asked one question after the other; during the wait for its answer, its disks are served
 * and its console is read.
 *
 * N1: no part of a guest outlives this process, however that ends: another process, the keeper,
 *     kills the guest's processes then.
 * N2: complaints of its kernel from before an answer are read before the answer is given out.
 * N3: complaints count only when the kernel is known to be their cause: it has answered and did not
 *     die of another cause meanwhile, or it ended by itself. Complaints after we ended it, or after
 *     another program sent a signal to one of its processes, are dropped.
 */
#ifndef GUEST_GUEST_H
#define GUEST_GUEST_H

#include "agent/wire.h"
#include "record/disk.h"
#include "record/vhost_mail.h"

struct guest {
	struct vhost *device_of_disk; /* not owned; NULL: the disk is persistent memory */
	struct vhost_mail mail;
	struct strbuf *complaints; /* not owned: complaints of the kernel */
	struct strbuf said; /* complaints since its last answer, whose cause is not known yet */

	pid_t pid, keeper; /* 0: the guest does not run */
	int pidfd, console, keep;
	struct strbuf line;   /* the current line of the console */
	struct strbuf last;   /* its last lines, for an error message if it does not start */
	unsigned collecting;  /* lines that still belong to a complaint */
	bool quiet_of_device; /* we cause its complaints about the disk */
	bool has_disks;	      /* the guest has connected to both */
	bool emulated;
	int monitor;	   /* on which an emulator reports its end, or -1; not owned */
	uint64_t memory;   /* bytes; 0: not known */
	unsigned heard;	   /* bits of enum guest_word since the start */
	int keeper_fd;	   /* the pipe to the keeper, or -1 */
	char device[16];   /* the guest's name for our disk */
	bool refused_disk; /* we took a disk away after an impossible request */
	char end[160];	   /* how the guest ended */
	bool steady;	   /* served only when it has nothing else to do: let_settle() */

	void (*starting)(void *ctx); /* see target.h; or NULL */
	void *starting_ctx;
	uint64_t busy_ms; /* the next question may take so long, for which `starting` asks for time
			   */

	uint32_t serial;
	struct wire_out out;
};

void guest_init(struct guest *g, struct disk *disk, struct strbuf *complaints);
void guest_release(struct guest *g);
bool guest_runs(const struct guest *g);

/* Descriptors that the guest inherits. */
enum {
	GUEST_FD_DISK = 3,
	GUEST_FD_MAIL,
	GUEST_FD_ROOT,
	GUEST_FD_MORE,
	GUEST_FD_END = GUEST_FD_MORE + 7,
};

struct guest_start {
	const char *const *argv; /* "{disk}", "{mail}" and "{root}" in it are replaced by paths */
	int root;		 /* the root's archive */
	int more[GUEST_FD_END - GUEST_FD_MORE]; /* become GUEST_FD_MORE, and so on, if above 0 */
	int cpu;				/* for the guest and this process; -1: any */
	int monitor;				/* our end of the emulator's monitor, or -1 */
	uint64_t memory; /* its memory in bytes, for messages if that is too little */
	bool emulated;	 /* the program is an emulator, not a kernel */
};

/*
 * Starts the guest, and waits until the agent answers. Complaints of its kernel until then do not
 * concern a file system, and are dropped.
 */
int guest_start(struct guest *g, const struct guest_start *how, uint64_t timeout_ms,
		struct err *err) must_check;
void guest_stop(struct guest *g);

/*
 * guest_begin() begins a question, the caller adds parts to g->out, and guest_ask() asks it: 0 and
 * the parts of the answer, or 1 if the kernel died of it. A guest that was killed or disturbed from
 * outside, or that lacked memory, is an error: what its kernel would have done is unknown.
 * `timeout_ms` 0: the parent that watches this process decides how long it may take; else the
 * parent is told (g->starting) that there is a limit.
 */
void guest_begin(struct guest *g);
int guest_ask(struct guest *g, uint64_t timeout_ms, struct wire_in *answer, struct err *err)
	must_check;
/* Gives the next part, which must be of `command`, and done. */
int guest_part(struct wire_in *answer, enum agent_command command, struct wire_in *part,
	       struct err *err) must_check;
/* Checks that no field of a part was missing. */
int guest_part_ok(const struct wire_in *part, struct err *err) must_check;

/* Returns the end of its output since guest_hush(), on one line; "" if there was none. */
const char *guest_last_words(struct guest *g);
void guest_hush(struct guest *g);

/* Reads the console, without waiting. */
void guest_listen(struct guest *g);
/* Waits for the next event, also on `fd` unless that is -1, and serves it. 1: the guest is gone. */
int guest_serve(struct guest *g, int fd, int timeout_ms);

#endif
