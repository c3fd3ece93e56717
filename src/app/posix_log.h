/* SPDX-License-Identifier: MIT */
/*
 * posix_log.h - the calls of an application, with the names that people know things by.
 *
 * Events name inodes; this gives each call the path its file had at that moment, and each file one
 * history, whatever it is called meanwhile. On top of that: which data was never synced, runs of
 * equal calls, a picture, and faults that are worth trying.
 *
 * L1: a path is relative to the mount. Its parts are the names that events gave; what no event
 *     named is "#" and its inode number. The mount's root, ".", is the inode that a lookup of
 *     "." in no directory names; without one, the directory that is mentioned first.
 * L2: nothing is assumed of a trace: directories may be in a circle, inodes come and go, names hold
 *     any byte. The result is a strange path, and nothing else.
 */
#ifndef APP_POSIX_LOG_H
#define APP_POSIX_LOG_H

#include "base/json.h"
#include "core/posix.h"
#include "core/trace_file.h"
#include "app/posix_names.h"

/* The fate of data, as far as the trace shows. */
enum posix_fate {
	POSIX_FATE_NONE,     /* not data, or the call failed */
	POSIX_FATE_SYNCED,   /* a sync of the file came after it */
	POSIX_FATE_UNSYNCED, /* none did */
	POSIX_FATE_GONE,     /* none did, and the file was removed */
};

struct posix_call {
	uint64_t event; /* its number in the trace */
	uint64_t time_ns;
	enum posix_op op;
	enum posix_fate fate;
	uint32_t flags, pid, tid;
	uint64_t offset, len;
	int64_t result;
	uint32_t file, file2;	  /* POSIX_NO_FILE: none; file2 was replaced, or copied from */
	uint32_t ends;		  /* the file that lost its last name; or POSIX_NO_FILE */
	const char *path, *path2; /* path2: the new name of a rename or link; or NULL */
	uint64_t occurrence;	  /* the n-th of its kind on these paths, from 1 */
	uint64_t run, in_run;	  /* for writes: the run without a sync in it, and the place there;
				   * a single write is no run, 0 */
	uint64_t at;		  /* of the log's own events */
	bool unnamed;		  /* the file had no name yet */
};

/* Something the recorder had to say, before call `at`. */
struct posix_note {
	uint64_t event;
	size_t at;
	const char *text;
};

struct posix_log {
	struct posix_names names;
	struct vec_of(struct posix_call) calls;
	struct vec_of(struct posix_note) notes;
	struct trace trace; /* EV_POSIX only, without data unless it was asked for */
	bool keep_data;
};

enum {
	POSIX_LOG_MAX = 4 << 20, /* calls that are held */
	POSIX_PAGE_SIZE = 4096,	 /* a write of no more is not torn by a page cache */
};

void posix_log_init(struct posix_log *log);
void posix_log_release(struct posix_log *log);
#define auto_posix_log __attribute__((cleanup(posix_log_release))) struct posix_log

/* Event `n` of a trace; what is not of an application is passed over. -EFBIG if there are too many.
 */
int posix_log_add(struct posix_log *log, uint64_t n, const struct event *ev, struct err *err)
	must_check;
/* After the last event: later names for what had none, occurrences, and what was synced. */
void posix_log_finish(struct posix_log *log);
/* All of it. Damage is no failure. */
int posix_log_read(struct posix_log *log, struct trace_reader *r, struct err *err) must_check;

/* For who reads a trace as it comes, and keeps no call: resolves the names of one. */
void posix_call_resolve(struct posix_names *names, uint64_t n, const struct event *ev,
			const struct posix_event *p, struct posix_call *out);

/* Whether it changes data of a file, and not only names and attributes. */
bool posix_op_is_data(enum posix_op op);
/* Whether it makes data of one file durable. */
bool posix_op_syncs_file(enum posix_op op);

/* ---- what is looked at ---- */

struct posix_filter {
	const char *file;  /* glob; NULL: all */
	uint64_t ops;	   /* bits 1 << enum posix_op */
	uint64_t from, to; /* events, both included */
	uint32_t pid;	   /* process or thread; 0: all */
	uint64_t large;	   /* only writes of more bytes; 0: all calls */
};

#define POSIX_OPS_ALL ((UINT64_C(1) << POSIX_OP_END) - 1)
/* The calls that change or persist something. */
uint64_t posix_ops_effective(void);

/* All but the file. */
bool posix_filter_call(const struct posix_filter *f, const struct posix_call *c);
/*
 * The calls that pass, as indexes. A file that had a matching name once matches with all its
 * history.
 */
struct posix_selection vec_of(size_t);
void posix_select(const struct posix_log *log, const struct posix_filter *f,
		  struct posix_selection *out);

/* ---- text ---- */

/* Names hold anything; a terminal should see none of it. */
void posix_add_safe(struct strbuf *sb, const char *text, size_t len);
/* "       3     0.000412 4711/4712   write     A/foo 0+4096 = 4096 sync" */
void posix_add_line(struct strbuf *sb, const struct posix_call *c, const struct posix_event *p);
/* The members of an object that is open. */
void posix_json_call(struct json *j, const struct posix_call *c, const struct posix_event *p);
void posix_add_bytes(struct strbuf *sb, uint64_t n); /* "16 KiB", "100 bytes" */

/* ---- runs ---- */

/* Equal calls on one file, one after the other; equal as far as a fault could tell. */
struct posix_run {
	size_t first; /* of the selection */
	size_t n;
	uint64_t bytes;
};

struct posix_runs vec_of(struct posix_run);

/* A few runs, several times. Run i of repetition r is first + r * n + i. */
struct posix_group {
	size_t first, n;
	size_t times;
};

struct posix_groups vec_of(struct posix_group);

void posix_find_runs(const struct posix_log *log, const struct posix_selection *sel,
		     struct posix_runs *out);
void posix_find_groups(const struct posix_log *log, const struct posix_selection *sel,
		       const struct posix_runs *runs, struct posix_groups *out);

void posix_text_runs(const struct posix_log *log, const struct posix_selection *sel,
		     struct strbuf *out);
/* An array. */
void posix_json_runs(const struct posix_log *log, const struct posix_selection *sel,
		     struct json *j);

/* ---- a picture ---- */

struct posix_graph_opts {
	const char *title;
	size_t rows_max, lanes_max; /* 0: a good number */
	/* A crash: which calls were lost, and the first event that did not happen any more. */
	bool crash;
	uint64_t crash_at;
	const uint64_t *lost;
	size_t n_lost;
};

struct posix_graph_cut {
	size_t rows, lanes;   /* not drawn */
	size_t calls, others; /* calls not drawn, and calls drawn in the lane of all other files */
};

/* One SVG file. */
void posix_graph(const struct posix_log *log, const struct posix_selection *sel,
		 const struct posix_graph_opts *o, struct strbuf *out, struct posix_graph_cut *cut);

/* ---- faults worth trying ---- */

struct posix_suggestion {
	char *command; /* words for `outage ctl MNT`, quoted for a shell */
	char *why;
	uint64_t event; /* the call it is about */
	unsigned rank;	/* smaller is better */
};

struct posix_suggestions {
	struct vec_of(struct posix_suggestion) list; /* best first */
	size_t left_out;
};

void posix_suggest(const struct posix_log *log, const struct posix_selection *sel, size_t limit,
		   struct posix_suggestions *out);
void posix_suggestions_release(struct posix_suggestions *s);

#endif
