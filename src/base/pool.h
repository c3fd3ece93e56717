/* SPDX-License-Identifier: MIT */
/*
 * pool.h - worker processes that do units of work.
 *
 * A worker is a forked copy of its parent with a socket between them. The parent gives out units,
 * reads the messages of workers, and watches: a worker that dies, or does not move for too long, is
 * killed with all that it started, and another process takes its place and its units. The pool's
 * user decides whether the unit at hand is done again.
 *
 * The parent never waits for one worker: it reads and writes without blocking. A message comes
 * whole or not at all, and in the order in which its worker sent it. Each unit has one result, or
 * is reported as given up; with `ordered`, results come in the order of the units.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/err.h"
#include "base/strbuf.h"

enum { POOL_JOBS_MAX = 256, POOL_DEPTH_MAX = 2, POOL_AT_MAX = 640 };
#define POOL_NONE UINT64_MAX

struct pool;
struct pool_worker;

enum pool_how {
	POOL_EXITED,   /* ended with a status: not 0, or before it had done anything */
	POOL_KILLED,   /* by a signal that was not ours */
	POOL_HUNG,     /* did not move for too long */
	POOL_LINGERED, /* had done its work, and did not end */
	POOL_NONSENSE, /* sent bytes that are no message */
	POOL_DEAF,     /* a call on its socket failed, though it was there */
};

/* The end of a worker that should not have ended. */
struct pool_end {
	enum pool_how how;
	int code;	     /* the status, or the signal */
	unsigned worker;     /* its place */
	uint64_t unit, step; /* the last that it took, and noted; POOL_NONE: none */
	bool open;	     /* the unit is not done */
	unsigned times;	     /* the number of workers in a row that ended at this unit and step */
	unsigned deaths;     /* workers of this place that ended in a row without a unit done */
	double silence;	     /* seconds */
	bool stuck;	     /* killed, and still there, stuck in the kernel */
	/* set only for ended(): */
	const char *at;	     /* the worker's last note, in words */
	const char *kernel;  /* if it hung: where in the kernel it was */
	const char *stopped; /* if it hung: the process that was stopped, as by SIGSTOP, or NULL */
};

enum pool_then {
	POOL_AGAIN, /* another worker takes its place, and does the unit again */
	POOL_SKIP,  /* another worker takes its place; the unit is given up */
	POOL_DROP,  /* the place stays empty; the unit is given up, others go elsewhere */
};

struct pool_opts {
	unsigned jobs;	/* workers at most */
	unsigned depth; /* units that a worker has at a time; 0: 1 */
	bool ordered;	/* results come in the order of the units */
	bool keep;	/* workers without work stay, until pool_free() */
	/* A worker that has work, or is told to end, may be silent for so long; 0: for ever. */
	uint64_t patience_ms;
	void *ctx;

	/* In the worker: does units until pool_next() is false. Returns the exit status. */
	int (*work)(void *ctx, struct pool_worker *w);

	/*
	 * All others run in the parent. Gives the next unit: its number, and data for the worker.
	 * Returns false if there is none; it is not called again in this pool_run().
	 */
	bool (*next)(void *ctx, uint64_t *unit, struct strbuf *data);
	/*
	 * Takes the result of a unit; if the unit was given up, `lost` says how the last worker at
	 * it ended. A non-zero return ends the run, and is its result. May be NULL.
	 */
	int (*done)(void *ctx, uint64_t unit, const void *data, size_t len,
		    const struct pool_end *lost);
	/* Takes a worker's message. May be NULL if workers send none. */
	void (*message)(void *ctx, unsigned worker, uint32_t kind, const void *data, size_t len);
	/*
	 * Decides what follows the end of a worker. Called when all its messages have been read.
	 * Not called for workers that the pool ends.
	 */
	enum pool_then (*ended)(void *ctx, const struct pool_end *e);
	/* Called several times a second. May be NULL. */
	void (*tick)(void *ctx);
	/* Returns a number whose change is a sign of life of the unit, too. May be NULL. */
	uint64_t (*beats)(void *ctx, uint64_t unit);
};

/* `opts` is copied. */
int pool_new(const struct pool_opts *opts, struct pool **out, struct err *err) must_check;
/* Gives out units until all are done, or the run was stopped. */
int pool_run(struct pool *p, struct err *err) must_check;
/* Ends the remaining workers. NULL is fine. */
void pool_free(struct pool *p);

/*
 * Called from a callback: no unit is given out any more, and no worker replaced. Workers that do
 * not end within `limit_ms` without a sign of life hang; 0: as before.
 */
void pool_stop(struct pool *p, uint64_t limit_ms);
/*
 * Called from a callback: ends the run at once. Messages that workers have sent by then are heard;
 * the workers are killed.
 */
void pool_kill(struct pool *p);

/* True if a worker has called pool_ready(). */
bool pool_has_begun(const struct pool *p);
/* The time since all workers had called pool_ready(); 0 if they have not yet. */
uint64_t pool_ready_ns(const struct pool *p);
/* "was ended by signal 9 (Killed)", "ended with status 1", "did not answer for 9 s". */
void pool_end_words(const struct pool_end *e, struct strbuf *out);

/* ---- in the worker ---- */

/* The worker's place, from 0. */
unsigned pool_number(const struct pool_worker *w);
/* Waits for the next unit. False: there is no more to do. `data` may be NULL. */
bool pool_next(struct pool_worker *w, uint64_t *unit, struct strbuf *data) must_check;
/* Sends the result of the unit. */
void pool_done(struct pool_worker *w, const void *data, size_t len);
void pool_tell(struct pool_worker *w, uint32_t kind, const void *data, size_t len);
/* Notes the worker's step, which tells later where it ended. The call is a sign of life. */
void pool_at(struct pool_worker *w, uint64_t step, const char *fmt, ...) printf_like(3, 4);
/* Gives a sign of life; the second one does not count after pool_stop(). */
void pool_beat(struct pool_worker *w);
void pool_beat_slow(struct pool_worker *w);
void pool_ready(struct pool_worker *w);

/* ---- memory that parent and workers share, zeroed ---- */

void *pool_share(size_t size, struct err *err) must_check;
void pool_unshare(void *memory, size_t size); /* NULL is fine */

#endif
