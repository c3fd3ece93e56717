/* SPDX-License-Identifier: MIT */
/*
 * history.h - an application's changes to a directory, which a power cut may take back.
 *
 * A trace of calls (core/posix.h) becomes a list of changes. Each change knows the earlier changes
 * that it needs, and at which call of the trace it became durable under the profile. Both follow
 * from the trace alone, so they are computed once; the changes that may be lost at a crash point
 * are then looked up.
 *
 * Objects. File systems use inode numbers again, so each file or directory that ever existed gets a
 * number of its own here, with those before the first call.
 *
 * Content. The file as the application saw it after each write is kept (pages are shared), because
 * write-back puts a page on the disk as it is at that time: each unit (page or sector) of a change
 * in flight survives or not, and a survivor is the unit as it was after that write.
 *
 * H1: a change needs only earlier ones. A needed change may become durable later, or never, if a
 *     sync made the change itself durable: the content of a file, say, whose name was not synced.
 * H2: a crash state is the durable changes, and any set of other changes that is closed (with a
 *     change, all its needs that are not durable), done in the order of the trace. Content without
 *     a name is not visible.
 */
#ifndef APP_HISTORY_H
#define APP_HISTORY_H

#include "base/err.h"
#include "base/vec.h"
#include "core/posix.h"
#include "core/ranges.h"
#include "core/trace.h"
#include "fs/profile.h"
#include "fs/reffs.h"

enum change_kind {
	CHANGE_MAKE,   /* a new object and its name */
	CHANGE_LINK,   /* one more name; or the first name of an object made by O_TMPFILE */
	CHANGE_REMOVE, /* a name is removed */
	CHANGE_RENAME,
	CHANGE_SWAP,
	CHANGE_ATTR, /* mode or owner */
	CHANGE_XATTR,
	CHANGE_DATA,  /* units of a file */
	CHANGE_SIZE,  /* a file got longer; if the profile lets that happen without its data */
	CHANGE_RESIZE /* truncate, and allocations that move or cut content */
};

struct change {
	enum change_kind kind;
	uint64_t event;		  /* its number in the trace */
	uint64_t object, other;	  /* `other`: replaced by a rename, or the second of a swap; or 0 */
	uint64_t dir, dir2;	  /* objects */
	const char *name, *name2; /* borrowed from the trace */
	const void *value;	  /* the value of an attribute; NULL: removed */
	size_t value_len;
	uint32_t mode, uid, gid; /* UINT32_MAX: unchanged */
	bool moves;		 /* RESIZE: content moves, by collapse or insert */
	uint64_t from, to;	 /* bytes; for CHANGE_SIZE and CHANGE_RESIZE, `to` is the size */
	const struct reffs_inode *content; /* the file after the change; for DATA and RESIZE */
	uint64_t unit_size;
	uint32_t units;	     /* 1 for all but DATA */
	uint64_t first_unit; /* the index of its first unit among all units */
	uint64_t durable_at; /* the number of the event; UINT64_MAX: never durable */
	uint32_t *needs;     /* changes, ascending */
	uint32_t n_needs;
	/*
	 * For a profile that is in_order. `ordered`: metadata, which all later metadata needs.
	 * `after`: the change before which all metadata must have survived, or 0: this change
	 * itself, or the change that took the space that this one overwrites.
	 */
	bool ordered;
	uint32_t after;
	bool commits; /* even a sync of data alone needs a commit for it: new space, or a size */
};

struct object {
	enum tree_type type;
	uint32_t mode, uid, gid; /* at its creation */
	uint64_t rdev;
	const char *target;	    /* the target of a symbolic link */
	bool unnamed;		    /* made by O_TMPFILE */
	uint64_t live;		    /* its inode in `live`, which has all contents; 0: none yet */
	uint64_t made;		    /* the event; UINT64_MAX: it existed before */
	uint32_t made_by;	    /* the change that gave its first name; UINT32_MAX: none */
	uint32_t cut_by;	    /* its last CHANGE_RESIZE; UINT32_MAX: none */
	uint32_t names;		    /* changes that gave it a name */
	uint32_t now_mode, now_gid; /* after the last call */
	bool emptied;		    /* truncated to nothing, and not synced since */
	uint64_t touched;	    /* the commit that will include its times; 0: none */
	struct vec_of(uint32_t) parts;	 /* its changes of content and attributes, in order */
	struct vec_of(uint32_t) waiting; /* parts that are not synced yet */
	struct ranges fresh; /* bytes that need the change that gave them space or size */
};

/* The state that is durable from the end of an event on. */
struct durable {
	uint64_t event;
	struct reffs_state *state;
};

struct history {
	const struct trace *trace;
	const struct profile *profile;
	uint32_t unit_size;
	struct reffs *base;	    /* the file system to build states in; objects are its inodes */
	struct reffs_state *blank;  /* a state of `base` with only the root */
	struct reffs_state *before; /* the directory before the first call */
	struct reffs *live;	    /* the content of each object, in a file named by its number */
	struct vec_of(struct reffs_state *) kept; /* states of `live`; changes point into them */
	struct vec_of(struct object) objects;	  /* from REFFS_ROOT_INO on */
	struct vec_of(char *) strings; /* texts that the trace does not have with their NUL */
	struct vec_of(struct change) changes;
	uint64_t units;
	struct vec_of(uint32_t) settled; /* changes that become durable, in the order of that */
	size_t n_applied;		 /* so many of them are in `durable` */
	struct vec_of(struct durable) durable; /* as far as needed, ascending */
	/*
	 * The state that was built last: its point, its survivors up to the first torn one, and the
	 * states on the way. The next state usually begins like it.
	 */
	uint64_t last_point;
	struct vec_of(uint32_t) last;
	struct vec_of(struct built {
		size_t n; /* survivors that are in the state */
		struct reffs_state *state;
	}) built;
	struct vec_of(uint32_t) oldest; /* by point: all earlier changes are durable */
	uint64_t skipped;		/* events about objects that the history does not know */
	bool maps;			/* some file was written through a mapping */
	uint64_t first_point;		/* as in the options */
};

struct history_opts {
	const struct profile *profile;
	uint32_t unit_size; /* bytes that are written back together; 0: 4096 */
	int base;	    /* the directory before the first call; -1: it was empty */
	uint64_t root_ino;  /* the directory's inode number in the trace */
	/*
	 * True if inode numbers in the directory are those of the trace. Otherwise the trace gives
	 * the numbers by lookups before the first change, directories before their entries:
	 * history_lookups().
	 */
	bool base_numbers;
	/* No crash is tried before so many events, which tell the state before (restarts). */
	uint64_t first_point;
};

/*
 * Appends a successful lookup for each name below a directory. Called before the run, with the
 * directory that the recording mount shows.
 */
int history_lookups(int dir, struct trace *t, struct err *err) must_check;

/* Makes the history of a trace, which it borrows. */
int history_new(const struct trace *t, const struct history_opts *opts, struct history *out,
		struct err *err) must_check;
void history_release(struct history *h);

/* A change that is not durable and survives, with all its units or those whose bit is set. */
struct survivor {
	uint32_t change;
	const uint64_t *units; /* bit i % 64 of word i / 64; NULL: all */
};

/*
 * Builds a crash state from the changes that are durable when the first `point` events have
 * happened, and the other survivors, ascending. The set must be closed (H2). The caller owns the
 * state.
 */
struct reffs_state *history_build(struct history *h, uint64_t point, const struct survivor *v,
				  size_t n);

/* Sets [*from, *to), which has all changes that have happened at a point and are not durable. */
void history_window(const struct history *h, uint64_t point, uint32_t *from, uint32_t *to);

/*
 * True if two events are parts of one write(2), which the recorder gets as several requests: no
 * call of the application can come between them. An event is a part of its own call.
 */
bool history_same_call(const struct history *h, uint64_t first, uint64_t second);

/* True if a change is durable when the first `point` events have happened. */
static inline bool change_is_durable(const struct change *c, uint64_t point)
{
	return c->durable_at < point;
}

/* Returns the number of words that have a bit for each unit of a change. */
static inline uint32_t change_words(const struct change *c)
{
	return (c->units + 63) / 64;
}

#endif
