/* SPDX-License-Identifier: MIT */
/*
 * guest.h - a guest: a kernel that runs as a process of ours, with our disk, and the agent in it. A
 * guest is asked one thing after the other; while its answer is waited for, its disks are served
 * and its console is read.
 *
 * N1: nothing of it outlives this process, however that ends: a keeper, a process of its own, kills
 *     the guest's processes when we are gone.
 * N2: complaints of its kernel from before an answer are in the complaints when the answer is.
 * N3: the guest's words are put down to its kernel only when that is known to be to blame: it has
 *     answered and did not die of something else meanwhile, or it ended by itself. Words from after
 *     we ended it, or after another program sent a signal to one of its processes, are dropped.
 */
#ifndef GUEST_GUEST_H
#define GUEST_GUEST_H

#include "agent/wire.h"
#include "record/disk.h"
#include "record/vhost_mail.h"

struct guest {
	struct vhost *device_of_disk; /* not owned; NULL: its disk is persistent memory */
	struct vhost_mail mail;
	struct strbuf *complaints; /* not owned: where complaints of its kernel go */
	struct strbuf
		said; /* complaints since its last answer: not yet known whose fault they are */

	pid_t pid, keeper; /* 0: it does not run */
	int pidfd, console, keep;
	struct strbuf line;   /* of the console, so far */
	struct strbuf last;   /* lines it said lately, for an error when it does not start */
	unsigned collecting;  /* lines that still belong to a complaint */
	bool quiet_of_device; /* its words about the disk are our doing */
	bool has_disks;	      /* has connected to both */
	bool emulated;
	int monitor;	   /* where an emulator tells why it ends, or -1; not owned */
	uint64_t memory;   /* bytes it has; 0: not known */
	unsigned heard;	   /* enum guest_word, since it was started */
	int keeper_fd;	   /* of the keeper, or -1 */
	char device[16];   /* its name for our disk */
	bool refused_disk; /* we took a disk away, because it asked for what cannot be */
	char end[160];	   /* how it ended */
	bool steady;	   /* served only when it has done all it could meanwhile */

	void (*starting)(void *ctx); /* see target.h; or NULL */
	void *starting_ctx;

	uint32_t serial;
	struct wire_out out;
};

void guest_init(struct guest *g, struct disk *disk, struct strbuf *complaints);
void guest_release(struct guest *g);
bool guest_runs(const struct guest *g);

/* Descriptors that it finds open. */
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
	int more[GUEST_FD_END - GUEST_FD_MORE]; /* become GUEST_FD_MORE and so on, if above 0 */
	int cpu;				/* to stay on, and this process with it; -1: any */
	int monitor;				/* our end of the emulator's, or -1 */
	uint64_t memory; /* bytes that it is given, to be told if they are too few */
	bool emulated;	 /* the program is no kernel, but runs one */
};

/*
 * Starts it, and waits until the agent answers. Complaints of its kernel until then are no word
 * about a file system, and dropped.
 */
int guest_start(struct guest *g, const struct guest_start *how, uint64_t timeout_ms,
		struct err *err) must_check;
void guest_stop(struct guest *g);

/*
 * A question is begun, parts are put into g->out, and it is asked: 0 and the parts of the answer, 1
 * if its kernel died of it. A guest that was killed or disturbed from outside, or that lacked
 * memory, is an error: what its kernel would have done is unknown. `timeout_ms` 0: the parent that
 * watches this process says how long it may take; else the parent is told (g->starting) that there
 * is a limit.
 */
void guest_begin(struct guest *g);
int guest_ask(struct guest *g, uint64_t timeout_ms, struct wire_in *answer, struct err *err)
	must_check;
/* The next part, which must be of `command`, and done. */
int guest_part(struct wire_in *answer, enum agent_command command, struct wire_in *part,
	       struct err *err) must_check;
/* Checks that all of a part was there. */
int guest_part_ok(const struct wire_in *part, struct err *err) must_check;

/* The end of what it said since guest_hush(), on one line; "" if that is nothing. */
const char *guest_last_words(struct guest *g);
void guest_hush(struct guest *g);

/* Reads what the console says, without waiting. */
void guest_listen(struct guest *g);
/* Waits for whatever comes next, also on `fd` unless that is -1, and serves it. 1: it is gone. */
int guest_serve(struct guest *g, int fd, int timeout_ms);

#endif
