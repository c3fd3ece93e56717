/* SPDX-License-Identifier: MIT */
/*
 * inject.h - faults: what shall go wrong, and when.
 *
 * A fault waits for its operation: by kind, by path (exact, glob or regular expression), by how
 * many of them have come before, before it is done or after. Faults come from a LazyFS
 * configuration file, from LazyFS's commands, or from ours; all three end in the same struct. The
 * set of faults is asked about every operation and says what to do; the caller does it.
 *
 * Thread-safe: operations of many threads ask at once. Without faults, asking costs one atomic
 * read.
 */
#ifndef INJECT_INJECT_H
#define INJECT_INJECT_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "core/posix.h"

enum fault_type {
	FAULT_CRASH,	/* everything unsynced is lost, and the mount ends */
	FAULT_CLEAR,	/* everything unsynced is lost; the mount ends only with `crash` */
	FAULT_TORN_OP,	/* of one write, some parts are durable; the mount ends */
	FAULT_TORN_SEQ, /* of a run of operations, some are durable; the mount ends */
	FAULT_SYNC,	/* unsynced data of the file, or some of its pages, becomes durable */
	FAULT_ERROR,	/* the operation fails with `error` and does nothing */
	FAULT_SHORT,	/* a write or read stops after `bytes` */
	FAULT_DELAY,	/* the operation waits `delay_ms` */
};

enum fault_pages {
	FAULT_PAGES_ALL,
	FAULT_PAGES_FIRST,
	FAULT_PAGES_LAST,
	FAULT_PAGES_FIRST_HALF,
	FAULT_PAGES_LAST_HALF,
	FAULT_PAGES_RANDOM,
	FAULT_PAGES_FIRST_AND_LAST,
	FAULT_PAGES_INTERLEAVED, /* every other one, from the first */
	FAULT_PAGES_LISTED,
};

/* The unsynced parts that survive a crash or a clearing. */
enum fault_survive {
	FAULT_SURVIVE_NONE,
	FAULT_SURVIVE_DATA,	/* all data; names and attributes are lost */
	FAULT_SURVIVE_METADATA, /* all names and attributes; data is lost */
	FAULT_SURVIVE_LISTED,	/* metadata operations that `survivors` matches, with what they need
				 */
	FAULT_SURVIVE_RANDOM,	/* any allowed part of it, drawn with `seed` */
};

struct path_match {
	enum { PATH_ANY, PATH_EXACT, PATH_GLOB, PATH_REGEX } kind;
	char *text;
	void *regex; /* compiled, with what it needs */
};

struct fault_numbers vec_of(uint64_t);

struct fault {
	enum fault_type type;
	enum posix_op op;	      /* POSIX_OP_END: any */
	struct path_match from, to;   /* of symlink, `from` is the text it holds, `to` its name */
	bool after;		      /* timing */
	uint64_t occurrence;	      /* the n-th, from 1; of FAULT_TORN_SEQ, the n-th run */
	uint64_t until;		      /* and all following up to this one; 0: only that one */
	bool crash;		      /* the mount ends as well */
	bool returns;		      /* and the operation returns to its caller before it does */
	struct fault_numbers persist; /* which parts or operations, from 1, ascending */
	uint64_t parts;		      /* equal ones; the rest belongs to the last */
	struct fault_numbers parts_bytes;
	struct path_match file; /* FAULT_SYNC: whose pages; PATH_ANY: of the operation's file */
	enum fault_pages pages; /* which of the file's unsynced ones, in order of offset */
	struct fault_numbers page_list; /* FAULT_PAGES_LISTED, from 1, ascending */
	bool others;			/* FAULT_SYNC: all other files become durable as well */
	enum fault_survive survive;
	struct path_match survivors;
	uint64_t seed;
	int error;	 /* errno, positive */
	bool keep_dirty; /* of a failed sync: pages stay dirty, and a later sync writes them */
	uint64_t bytes;
	uint64_t delay_ms;
	uint64_t id;	     /* given by the set, from 1 */
	uint64_t seen;	     /* matching operations so far */
	bool done;	     /* can happen no more */
	bool misfit;	     /* FAULT_TORN_OP: the write that came had another length */
	uint64_t misfit_len; /* this one */
	struct strbuf text;  /* as it was given, as words of `outage ctl`, for reports */
};

void fault_free(struct fault *f); /* NULL is fine */
const char *fault_type_name(enum fault_type type);

/*
 * FAULT_TORN_OP: the parts of a write of `len` bytes that are durable, as ranges in it. False, and
 * nothing is called, if the write has another length than the parts have together; then LazyFS does
 * not tear it either.
 */
bool fault_tear(const struct fault *f, uint64_t len,
		void (*durable)(void *ctx, uint64_t offset, uint64_t len), void *ctx);
/* FAULT_SYNC: whether of a file's `n` unsynced pages the i-th, from 0, becomes durable. */
bool fault_wants_page(const struct fault *f, uint64_t i, uint64_t n);
/* For FAULT_SURVIVE_LISTED, and for the files of FAULT_SYNC. PATH_ANY matches everything. */
bool inject_path_matches(const struct path_match *m, const char *path);

struct inject; /* a set of faults */

struct inject *inject_new(void);
void inject_free(struct inject *s);

/*
 * Adds a checked fault, which the set then owns. Fails if it conflicts with another (two that tear
 * the same file) or makes no sense (persist a part that there is not); then it is the caller's
 * still.
 */
int inject_add(struct inject *s, struct fault *f, uint64_t *id, struct err *err) must_check;
int inject_remove(struct inject *s, uint64_t id, struct err *err) must_check;
/* In order of their numbers. `fn` must not use the set; if it gives something else than 0, that is
 * it. */
int inject_each(struct inject *s, int (*fn)(void *ctx, const struct fault *f), void *ctx);

/* An operation, as the mount sees it. Paths are relative to the mount, without a slash in front. */
struct inject_op {
	enum posix_op op;
	const char *from, *to;
	uint64_t offset, len;
};

/* The actions, in this order. `sync` comes first, unless its timing is after. */
enum { INJECT_DELAYS_MAX = 16 };

struct inject_action {
	/* Wait, one after the other. A fault that is cancelled is not waited for any longer. */
	struct inject_delay {
		uint64_t ms, fault;
	} delays[INJECT_DELAYS_MAX];
	size_t n_delays;
	bool clear_before, crash_before;
	struct fault *lose;  /* which fault says so, for what survives; NULL: none does */
	int error;	     /* positive: fail so, and do nothing */
	bool keep_dirty;     /* with a failing sync */
	int64_t short_bytes; /* -1: all */
	struct fault *tear;  /* of this write, the parts that `tear` says are durable; then crash */
	struct fault *misfit; /* should have torn this write, but its parts are of another length */
	bool durable;	      /* torn-seq: this operation goes to the durable content at once */
	/*
	 * torn-seq, before the operation is done: what the file holds in this range, no byte more,
	 * becomes durable. The write is the first of a run, which is one only with its second.
	 */
	uint64_t first_offset, first_len; /* no length: nothing does */
	struct fault *sync;		  /* make durable what it says */
	bool clear_after, crash_after;	  /* crash_after is set with `tear` as well */
	uint64_t fired;			  /* the fault that did it, for the log; 0: none */
};

/* Whether any fault could match: cheap, for the way of every operation. */
bool inject_armed(const struct inject *s);
/*
 * Counts the operation, and tells what to do. Faults in the answer live as long as the set, also if
 * they are removed meanwhile; of them, only what was given may be read.
 */
void inject_ask(struct inject *s, const struct inject_op *op, struct inject_action *out);

/* ---- where faults and commands come from ---- */

/* The settings of a LazyFS configuration file; with our own keys where LazyFS has none. */
struct inject_config {
	char *fifo, *fifo_completed; /* NULL: not said; LazyFS's default is faults.fifo */
	char *logfile;		     /* NULL: none */
	bool log_all;
	bool evict;
	uint64_t cache_bytes; /* 0: not said */
	uint32_t page_size, block_size;
	uint64_t pages;
	char *profile, *socket, *trace;
	unsigned profile_line; /* where it says so */
	struct vec_of(struct fault *) faults;
	struct vec_of(char *) warnings; /* keys that have no meaning here */
};

/* `root` and `mnt` are cut from the front of paths that are given absolute. */
int inject_config_read(const char *path, const char *root, const char *mnt,
		       struct inject_config *out, struct err *err) must_check;
/* The same for a text that is there already; `path` is for messages. */
int inject_config_parse(const char *text, size_t len, const char *path, const char *root,
			const char *mnt, struct inject_config *out, struct err *err) must_check;
void inject_config_release(struct inject_config *c);

enum command_kind {
	COMMAND_FAULT, /* add `fault` */
	COMMAND_CLEAR,
	COMMAND_CRASH,
	COMMAND_CHECKPOINT, /* everything becomes durable */
	COMMAND_SYNC,	    /* the data named by `fault` becomes durable now */
	COMMAND_USAGE,
	COMMAND_REPORT, /* tells what is unsynced */
	COMMAND_FAULTS, /* list them */
	COMMAND_CANCEL, /* remove fault `id` */
	COMMAND_SNAPSHOT,
	COMMAND_ROLLBACK,
	COMMAND_DROP, /* remove the snapshot `name` */
	COMMAND_SNAPSHOTS,
	COMMAND_STATUS,
	COMMAND_HELP,
};

struct inject_command {
	enum command_kind kind;
	struct fault *fault; /* FAULT, SYNC; for CLEAR and CRASH what survives, or NULL */
	uint64_t id;
	char *name;   /* of a snapshot */
	char *answer; /* LazyFS's words when it is done: "finished::clear-cache"; or NULL */
};

/* A line of LazyFS's FIFO, "lazyfs::clear-cache". */
int inject_command_parse_lazyfs(const char *line, const char *root, const char *mnt,
				struct inject_command *out, struct err *err) must_check;
/* Words of `outage ctl`, "torn-op file=a.log parts=3 persist=1,3". */
int inject_command_parse(char *const *words, size_t n, const char *root, const char *mnt,
			 struct inject_command *out, struct err *err) must_check;
void inject_command_release(struct inject_command *c);
/* One line for each command and what it takes. */
void inject_command_help(struct strbuf *out);

#endif
