/* SPDX-License-Identifier: MIT */
/* forget-world.h - a mount, its model, and the threads that work on both; see forget-model.c. */
#ifndef FORGET_WORLD_H
#define FORGET_WORLD_H

#include <setjmp.h>
#include <stdatomic.h>
#include <stdnoreturn.h>

#include "base/rng.h"
#include "forget-model.h"

enum {
	WORKERS = 3,
	OPENS = 3, /* descriptors that a worker keeps */
	HISTORY = 1000,
	SHOWN = 20, /* operations that a failure shows */
	TEXT = 200,
};

struct opened {
	int fd; /* -1: none */
	int flags;
	struct inode *ino;
	bool stale; /* something was lost under it */
};

struct world {
	struct model model;
	const char *server, *dir, *root, *mnt;
	uint64_t seed, life;
	bool dir_links; /* ROOT's file system counts them */

	/*
	 * In a step, each worker does one operation, all at the same time; then those that
	 * concern everybody, one after the other: so what comes before what is always the same.
	 */
	bool steps;
	int operations; /* of each worker in this round */
	bool few_syncs; /* in this round, so that much is pending */
	pthread_barrier_t together, apart;
	pthread_mutex_t turn_lock;
	pthread_cond_t turn_done;
	bool race;	  /* nobody takes turns: only live states are exact */
	atomic_bool over; /* the mount was killed: errors are expected */
	atomic_bool bad;
	atomic_ulong done; /* operations, for the watchdog too */
	atomic_ulong losses, faults;

	int pid, to, from;
	unsigned minor; /* of the mount, to end it by force */
	struct worker *workers;
	struct model kept; /* a snapshot */
	bool has_kept;
	unsigned n_kept;
};

struct worker {
	struct world *w;
	int id;
	struct rng rng;
	struct inode *home;
	struct opened open[OPENS];
	char history[HISTORY][TEXT];
	unsigned n_history;
	bool alone, alone_done; /* in this step */
	/* an error that is waited for; and whether it came */
	int error;
	bool failed;
	jmp_buf *again;	  /* what differs is looked at again: see comes_right() */
	uint64_t kept;	  /* files that were promised, in a race */
	uint64_t seen[4]; /* of each shared file, the last that was promised */
};

/* Says what differs, with all that is needed to see it again, and ends the program. */
noreturn void differs(struct worker *k, const char *fmt, ...) printf_like(2, 3);
void note(struct worker *k, const char *fmt, ...) printf_like(2, 3);
/*
 * Calls `fn` until nothing differs there any more, but not for ever: the kernel is told after an
 * operation was answered, and nobody can ask if it was. A call that fails may leave a descriptor
 * open.
 */
void comes_right(struct worker *k, void (*fn)(struct worker *k, void *ctx), void *ctx);
void unmount(struct worker *k);

/* ---- forget-ops.c ---- */

enum { PATH = 1024, SOME_ERROR = -100000 };

struct place {
	struct inode *dir, *ino; /* what is there, or NULL */
	int name;
	char dir_path[PATH], path[PATH + 8];
};

/* One of the worker's descriptors, or a new one for this operation alone. */
struct target {
	struct opened own; /* closed afterwards */
	struct opened *o;
	char path[PATH + 8]; /* "" if it is not known */
};

uint32_t below(struct worker *k, uint32_t n);
bool chance(struct worker *k, uint32_t one_in);
int result(long rc);
void enter(struct worker *k, bool alone);
void leave(struct worker *k);
void lock(struct worker *k);
void unlock(struct worker *k);
bool as_expected(struct worker *k, int want, int got);
bool any_that_is(struct worker *k, mode_t type, struct place *out);
const char *in_mount(const struct worker *k, const char *path);
bool target_open(struct worker *k, int flags, struct target *t);
const char *target_name(struct worker *k, struct target *t, char *buf, size_t size);
void check_target(struct worker *k, struct target *t, bool whole);
/* All of it, as soon as the kernel knows what was lost. */
void check_target_soon(struct worker *k, struct target *t);
void target_close(struct worker *k, struct target *t);
void fill(struct worker *k, unsigned char *buf, uint32_t len);
void any_range(struct worker *k, uint32_t *off, uint32_t *len);
/* An operation that a fault can be set on, by its name, and what does it. */
const char *any_operation(struct worker *k, void (**fn)(struct worker *k));

/* One operation, on what belongs to the worker. */
void work_once(struct worker *k);
/* All are done with theirs. */
void step_end(struct worker *k);
void close_all(struct worker *k);
void on_bus_error(int sig);
/* Compares all below `base`, the mount or ROOT, with the live state. */
void check_all(struct worker *k, const char *base);
/* ---- forget-faults.c ---- */

/* What goes wrong between rounds, while nobody else works; it may not end the mount. */
void strike_once(struct worker *k);
/* Ends the mount in some way, and mounts again. */
void end_once(struct worker *k);
/* Loses some of what is pending: only what holds in any case is compared. Nothing is mounted then.
 */
void end_by_chance(struct worker *k);

/* ---- forget-share.c ---- */

/* One that only promises what holds under races, in a directory that all share. */
void share_once(struct worker *k);
/* A file that survives from now on, whatever else goes on. False: the mount has ended. */
bool keep_one(struct worker *k);
void check_kept(struct worker *k, const char *base);
void check_shared(struct worker *k, const char *base);

/* ---- forget-cases.c ---- */

struct forget_case {
	const char *profile, *name;
	void (*fn)(struct worker *k);
};

extern const struct forget_case forget_cases[]; /* the last has no name */

/* ---- forget-model.c ---- */

/* A command, as words; false if the mount refused it. The answer is what it said. */
bool command(struct world *w, char *answer, size_t size, const char *fmt, ...) printf_like(4, 5);
void server_start(struct world *w, struct worker *k);
/* Waits for its end; what its status should be, or -1 if it was killed. */
void server_end(struct world *w, struct worker *k, int status);
void server_kill(struct world *w);

#endif
