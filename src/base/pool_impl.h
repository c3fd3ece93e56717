/* SPDX-License-Identifier: MIT */
/*
 * pool_impl.h - shared by the parts of a pool: pool.c and pool_talk.c are its parent, pool_worker.c
 * is a worker.
 */
#ifndef BASE_POOL_IMPL_H
#define BASE_POOL_IMPL_H

#include <stdatomic.h>

#include "base/patience.h"
#include "base/pool.h"
#include "base/vec.h"

/*
 * A frame on the socket: this header, and `len` bytes. A frame to the worker is a unit; one from
 * the worker is a message or a result.
 */
struct pool_frame {
	uint32_t kind, magic;
	uint64_t len;
	uint64_t seq;  /* of the unit, if it is no message */
	uint64_t unit; /* to the worker */
};

enum { POOL_MAGIC = 0x706f6f6c };
#define POOL_RESULT  UINT32_MAX /* the kind of a frame that is no message */
#define POOL_LEN_MAX ((uint64_t)1 << 32)

/* A worker's notes about itself; the parent reads them when the worker is silent. */
struct pool_beat {
	_Atomic uint64_t beats, slow;
	_Atomic uint64_t seq, unit, step; /* the unit that it took last */
	_Atomic bool ready;
	char at[POOL_AT_MAX];
};

/* The memory that all processes of a pool share. */
struct pool_shared {
	_Atomic bool stop, begun;
	struct pool_beat beat[POOL_JOBS_MAX];
};

struct pool_worker {
	unsigned number;
	int fd;
	uint64_t seq; /* of the unit at hand */
	struct pool_shared *shared;
	struct pool_beat *beat;
};

/* ---- the parent ---- */

struct pool_job {
	uint64_t seq, unit;
	struct strbuf data;
	uint64_t step; /* the step at which the last `times` workers ended */
	uint64_t turn; /* the number of units that came to its place before */
	unsigned times;
};

struct pool_slot {
	pid_t pid; /* 0: none */
	int fd;
	bool off;	   /* no worker is started here any more */
	bool closed;	   /* the worker was told to end */
	bool eof, wrong;   /* has closed its end; has sent nonsense */
	bool deaf;	   /* a call on the socket failed */
	bool did;	   /* has done a unit */
	bool heard;	   /* all that had come when it was looked at last */
	uint64_t eof_ns;   /* when that was */
	struct strbuf in;  /* bytes that have come, and are not a whole frame yet */
	struct strbuf out; /* bytes to be sent */
	struct pool_job job[POOL_DEPTH_MAX];
	unsigned n;		    /* the number of these */
	uint64_t turns, turns_over; /* units that came here, and that have ended or gone */
	unsigned deaths;
	struct patience patience;
	uint64_t beats, slow;
};

struct pool_early {
	uint64_t seq, unit;
	struct strbuf data;
	struct pool_end lost;
	bool is_lost;
};

struct pool {
	struct pool_opts opts;
	struct pool_shared *shared;
	struct pool_slot slot[POOL_JOBS_MAX];
	struct vec_of(struct pool_job) back; /* units whose place is gone */
	struct vec_of(struct pool_early) early;
	uint64_t given, told; /* units */
	uint64_t over;	      /* ended units */
	bool more;	      /* there may be another unit */
	bool stopping, killing;
	uint64_t stop_ms;   /* the patience after pool_stop(); 0: as before */
	uint64_t looked_ns; /* when all were looked at last */
	uint64_t ready_ns;  /* when all were ready; 0: they are not yet */
	int rc;		    /* the run's result, from done() */
	struct err why;	    /* why the first worker that could not be started failed */
};

void pool_job_release(struct pool_job *j);
/* Ends the oldest unit of a worker: with a result, or, with `lost`, as given up. */
void pool_finish(struct pool *p, struct pool_slot *s, const void *data, size_t len,
		 const struct pool_end *lost);
/* Passes on the results whose turn it is; with `all`, all that have come. */
void pool_tell_early(struct pool *p, bool all);
/* Reads what the worker has sent, at most `limit` bytes at a time. */
void pool_hear(struct pool *p, struct pool_slot *s, size_t limit);
/* Sends as much of the output buffer as the socket takes. */
void pool_send(struct pool_slot *s);
void pool_send_job(struct pool_slot *s, const struct pool_job *j);
/*
 * Tells the worker that there is no more to do: it reads the end of the stream, even if other
 * processes hold the socket.
 */
void pool_tell_end(struct pool_slot *s);

#endif
