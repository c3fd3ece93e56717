/* SPDX-License-Identifier: MIT */
/*
 * inject.h - faults: failures that are caused on purpose, and their times.
 *
 * A fault waits for an operation, given by kind, by path (exact, glob or regular expression), by
 * the number of matching operations before, and strikes before or after it. Faults come from a
 * LazyFS configuration file, from LazyFS's commands, or from ours; all become the same struct. The
 * caller asks the set of faults about every operation, and performs the actions of the answer.
 *
 * Thread-safe: many threads may ask at once. Without faults, a question costs one atomic read.
 */
#ifndef INJECT_INJECT_H
#define INJECT_INJECT_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "base/words.h"
#include "core/posix.h"

enum fault_type {
	FAULT_CRASH,	/* everything unsynced is lost, and the mount ends */
	FAULT_CLEAR,	/* everything unsynced is lost; the mount ends only with `crash` */
	FAULT_TORN_OP,	/* some parts of one write are durable; the mount ends */
	FAULT_TORN_SEQ, /* some operations of a run are durable; the mount ends */
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
	FAULT_PAGES_INTERLEAVED, /* every second one, from the first */
	FAULT_PAGES_LISTED,
};

/* The unsynced parts that survive a crash or a clearing. */
enum fault_survive {
	FAULT_SURVIVE_NONE,
	FAULT_SURVIVE_DATA,	/* all data; names and attributes are lost */
	FAULT_SURVIVE_METADATA, /* all names and attributes; data is lost */
	FAULT_SURVIVE_LISTED,	/* metadata operations that `survivors` matches, with their needs
				 */
	FAULT_SURVIVE_RANDOM,	/* any allowed part, drawn with `seed` */
};

struct path_match {
	enum { PATH_ANY, PATH_EXACT, PATH_GLOB, PATH_REGEX } kind;
	char *text;
	void *regex; /* the compiled expression */
};

struct fault_numbers vec_of(uint64_t);

struct fault {
	enum fault_type type;
	enum posix_op op;	      /* POSIX_OP_END: any */
	struct path_match from, to;   /* for symlink, `from` is the target, `to` the name */
	bool after;		      /* timing */
	uint64_t occurrence;	      /* the n-th, from 1; for FAULT_TORN_SEQ, the n-th run */
	uint64_t until;		      /* and all up to this one; 0: only that one */
	bool crash;		      /* the mount ends as well */
	bool returns;		      /* after the operation has returned to its caller */
	struct fault_numbers persist; /* which parts or operations, from 1, ascending */
	uint64_t parts;		      /* equal parts; the last one has the remainder */
	struct fault_numbers parts_bytes;
	struct path_match file; /* FAULT_SYNC: whose pages; PATH_ANY: of the operation's file */
	enum fault_pages pages; /* which of the file's unsynced ones, in order of offset */
	struct fault_numbers page_list; /* FAULT_PAGES_LISTED, from 1, ascending */
	bool others;			/* FAULT_SYNC: all other files become durable as well */
	enum fault_survive survive;
	struct path_match survivors;
	uint64_t seed;
	int error;	 /* errno, positive */
	bool keep_dirty; /* after a failed sync pages stay dirty for a later one */
	uint64_t bytes;
	uint64_t delay_ms;
	uint64_t id;	     /* its number in the set, from 1 */
	uint64_t seen;	     /* matching operations so far */
	bool done;	     /* can happen no more */
	bool misfit;	     /* FAULT_TORN_OP: the write had another length */
	uint64_t misfit_len; /* that length */
	struct strbuf text;  /* the fault in words of `outage ctl`, for reports */
};

void fault_free(struct fault *f); /* NULL is fine */
const char *fault_type_name(enum fault_type type);

/*
 * FAULT_TORN_OP: calls `durable` for the durable parts of a write of `len` bytes, as ranges in it.
 * Returns false, and calls nothing, if the parts have another length together; LazyFS does not tear
 * such a write either.
 */
bool fault_tear(const struct fault *f, uint64_t len,
		void (*durable)(void *ctx, uint64_t offset, uint64_t len), void *ctx);
/* FAULT_SYNC: true if the i-th of a file's `n` unsynced pages, from 0, becomes durable. */
bool fault_wants_page(const struct fault *f, uint64_t i, uint64_t n);
/* For FAULT_SURVIVE_LISTED, and for the files of FAULT_SYNC. PATH_ANY matches everything. */
bool inject_path_matches(const struct path_match *m, const char *path);

struct inject; /* a set of faults */

struct inject *inject_new(void);
void inject_free(struct inject *s);

/*
 * Adds a checked fault, which the set then owns. Fails if the fault conflicts with another one
 * (both tear the same file) or is wrong (it persists a part that does not exist); then the caller
 * still owns it.
 */
int inject_add(struct inject *s, struct fault *f, uint64_t *id, struct err *err) must_check;
int inject_remove(struct inject *s, uint64_t id, struct err *err) must_check;
/* Calls `fn`, which must not use the set, for each fault; a result other than 0 ends that. */
int inject_each(struct inject *s, int (*fn)(void *ctx, const struct fault *f), void *ctx);

/* An operation of the mount. Paths are relative to the mount, without a slash in front. */
struct inject_op {
	enum posix_op op;
	const char *from, *to;
	uint64_t offset, len;
};

/* The actions for an operation, in this order. `sync` comes first, unless its timing is after. */
enum { INJECT_DELAYS_MAX = 16 };

struct inject_action {
	/* Delays, one after the other. The delay of a cancelled fault ends. */
	struct inject_delay {
		uint64_t ms, fault;
	} delays[INJECT_DELAYS_MAX];
	size_t n_delays;
	bool clear_before, crash_before;
	struct fault *lose;   /* the fault, which says what survives; NULL: none */
	int error;	      /* positive: fail with this, and do nothing */
	bool keep_dirty;      /* with a failing sync */
	int64_t short_bytes;  /* -1: all */
	struct fault *tear;   /* this fault's parts of the write are durable; then crash */
	struct fault *misfit; /* should have torn this write, which has another length */
	bool durable;	      /* torn-seq: this operation is durable at once */
	/*
	 * torn-seq, before the operation is done: exactly this range of the file becomes durable.
	 * The range is the first write of the run, which counts only from its second write on.
	 */
	uint64_t first_offset, first_len; /* first_len 0: none */
	struct fault *sync;		  /* the fault that says what becomes durable */
	bool clear_after, crash_after;	  /* crash_after is set with `tear` as well */
	uint64_t fired;			  /* the fault, for the log; 0: none */
};

/* True if any fault could match: a cheap test for every operation. */
bool inject_armed(const struct inject *s);
/*
 * Counts the operation, and gives its actions. Faults in the answer live as long as the set, also
 * if they are removed meanwhile; callers may read only their configured members.
 */
void inject_ask(struct inject *s, const struct inject_op *op, struct inject_action *out);

/* ---- where faults and commands come from ---- */

/* The settings of a LazyFS configuration file, with our own keys. */
struct inject_config {
	char *fifo, *fifo_completed; /* NULL: not given; LazyFS's default is faults.fifo */
	char *logfile;		     /* NULL: none */
	bool log_all;
	bool evict;
	uint64_t cache_bytes; /* 0: not given */
	uint32_t page_size, block_size;
	uint64_t pages;
	char *profile, *socket, *trace;
	unsigned profile_line; /* the line of that key */
	struct vec_of(struct fault *) faults;
	struct words warnings; /* keys that have no effect here */
};

/* `root` and `mnt` are cut from the front of absolute paths. */
int inject_config_read(const char *path, const char *root, const char *mnt,
		       struct inject_config *out, struct err *err) must_check;
/* inject_config_read() for a text in memory; `path` is for messages. */
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
	COMMAND_REPORT, /* report unsynced data and operations */
	COMMAND_FAULTS, /* list the faults */
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
	struct fault *fault; /* FAULT, SYNC; CLEAR, CRASH: what survives, or NULL */
	uint64_t id;
	char *name;   /* a snapshot's name */
	char *answer; /* LazyFS's answer when done: "finished::clear-cache"; or NULL */
};

/* Parses a line of LazyFS's FIFO, "lazyfs::clear-cache". */
int inject_command_parse_lazyfs(const char *line, const char *root, const char *mnt,
				struct inject_command *out, struct err *err) must_check;
/* Parses words of `outage ctl`, "torn-op file=a.log parts=3 persist=1,3". */
int inject_command_parse(char *const *words, size_t n, const char *root, const char *mnt,
			 struct inject_command *out, struct err *err) must_check;
void inject_command_release(struct inject_command *c);
/* Adds a line for each command with its arguments. */
void inject_command_help(struct strbuf *out);

#endif
