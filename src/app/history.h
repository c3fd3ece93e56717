/* SPDX-License-Identifier: MIT */
/*
 * history.h - an application's changes to a directory, which a power cut may take back.
 *
 * A trace of calls (core/posix.h) becomes a list of changes. Each knows which earlier ones it
 * cannot be without, and at which call of the trace it became durable under the profile. Both
 * follow from the trace alone, so they are computed once; what may be lost at a crash point is then
 * a matter of looking.
 *
 * Objects. Inode numbers are used again by file systems, so each thing that was ever made gets a
 * number of its own here; what was in the directory before the first call has one too.
 *
 * Content. The file as the application saw it after each write is kept (pages are shared), because
 * what a write-back puts on the disk is a page as it is then: of a change in flight, each unit
 * (page or sector) survives or not, and one that survives is the unit as it was after that write.
 *
 * H1: a change needs only earlier ones. A needed change may come to it later, or never, if a sync
 *     made the change itself durable: the content of a file, say, whose name was not synced.
 * H2: a crash state is what is durable, and any set of other changes that is closed (with a change,
 *     all it needs that is not durable), done in the order of the trace. Content without a name is
 *     not seen.
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
	CHANGE_LINK,   /* one more name; the first one of an object made by O_TMPFILE */
	CHANGE_REMOVE, /* a name goes */
	CHANGE_RENAME,
	CHANGE_SWAP,
	CHANGE_ATTR, /* mode or owner */
	CHANGE_XATTR,
	CHANGE_DATA,  /* units of a file */
	CHANGE_SIZE,  /* a file got longer; where the profile lets that happen without its data */
	CHANGE_RESIZE /* truncate, and allocations that move or cut content */
};

struct change {
	enum change_kind kind;
	uint64_t event;		/* its number in the trace */
	uint64_t object, other; /* `other`: what a rename replaced, or the second of a swap; or 0 */
	uint64_t dir, dir2;	/* objects */
	const char *name, *name2; /* borrowed from the trace */
	const void *value;	  /* for an attribute; NULL: removed */
	size_t value_len;
	uint32_t mode, uid, gid; /* UINT32_MAX: as it is */
	bool moves;		 /* RESIZE: content moves, by collapse or insert */
	uint64_t from, to;	 /* bytes; of CHANGE_SIZE and CHANGE_RESIZE the size is `to` */
	const struct reffs_inode *content; /* the file after it; of DATA and RESIZE */
	uint64_t unit_size;
	uint32_t units;	     /* 1 for all but DATA */
	uint64_t first_unit; /* its place among the units of all changes */
	uint64_t durable_at; /* the number of the event; UINT64_MAX: never */
	uint32_t *needs;     /* changes, ascending */
	uint32_t n_needs;
	/*
	 * Under a profile that is in_order: metadata, which all later metadata needs; and the
	 * change before which all metadata must be there, or 0. The latter is the change itself, or
	 * the one that took the space that this one overwrites.
	 */
	bool ordered;
	uint32_t after;
	bool commits; /* a sync of data alone cannot do without a commit: new space, or a size */
};

struct object {
	enum tree_type type;
	uint32_t mode, uid, gid; /* when it was made */
	uint64_t rdev;
	const char *target; /* for a symbolic link */
	bool unnamed;	    /* made by O_TMPFILE */
	uint64_t live;	    /* its inode in the file system that has all contents; 0: none yet */
	uint64_t made;	    /* the event; UINT64_MAX: it was there before */
	uint32_t made_by;   /* the change that named it first; UINT32_MAX: none */
	uint32_t cut_by;    /* the last change of its size by force; UINT32_MAX: none */
	uint32_t names;	    /* changes that gave it a name */
	uint32_t now_mode, now_gid;	 /* after the last call */
	bool emptied;			 /* truncated to nothing, and not synced since */
	uint64_t touched;		 /* the commit that will bring its times; 0: none */
	struct vec_of(uint32_t) parts;	 /* its changes of content and attributes, in order */
	struct vec_of(uint32_t) waiting; /* parts that no sync has reached */
	struct ranges fresh; /* bytes that need the change that gave them space or a size */
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
	struct reffs *base;	    /* for putting states together; objects are its inodes */
	struct reffs_state *blank;  /* a state with nothing but the root */
	struct reffs_state *before; /* the directory before the first call */
	struct reffs *live;	    /* every object's content, by name of its number */
	struct vec_of(struct reffs_state *) kept; /* states of `live` that changes point into */
	struct vec_of(struct object) objects;	  /* from REFFS_ROOT_INO on */
	struct vec_of(char *) strings;		  /* that the trace does not have with their NUL */
	struct vec_of(struct change) changes;
	uint64_t units;
	struct vec_of(uint32_t) settled;       /* changes that are durable at some time, by then */
	size_t n_applied;		       /* of them, those that `durable` goes up to */
	struct vec_of(struct durable) durable; /* as far as asked for, ascending */
	/*
	 * The state that was built last: its point, its survivors up to the first that is torn, and
	 * what it was on the way. The next one mostly begins like it.
	 */
	uint64_t last_point;
	struct vec_of(uint32_t) last;
	struct vec_of(struct built {
		size_t n; /* survivors that are in it */
		struct reffs_state *state;
	}) built;
	struct vec_of(uint32_t) oldest; /* by point: no change before it is not durable */
	uint64_t skipped;		/* events about things that the history does not know */
	bool maps;			/* some file was written through a mapping */
	uint64_t first_point;		/* as it was given */
};

struct history_opts {
	const struct profile *profile;
	uint32_t unit_size; /* bytes that are written back together; 0: 4096 */
	int base;	    /* the directory before the first call; -1: it was empty */
	uint64_t root_ino;  /* of the directory itself in the trace */
	/*
	 * Its inode numbers are those of the trace. If not, the trace says which is which, with
	 * lookups before the first change, directories before what is in them: history_lookups().
	 */
	bool base_numbers;
	/* No crash comes before so many events: they tell what was there before (recovery). */
	uint64_t first_point;
};

/*
 * Appends a successful lookup for each name below a directory. To be called before the run, with
 * the directory that the recording mount shows.
 */
int history_lookups(int dir, struct trace *t, struct err *err) must_check;

/* Borrows the trace. */
int history_new(const struct trace *t, const struct history_opts *opts, struct history *out,
		struct err *err) must_check;
void history_release(struct history *h);

/* A change that is not durable and survives; of its units, all or those whose bit is set. */
struct survivor {
	uint32_t change;
	const uint64_t *units; /* bit i % 64 of word i / 64; NULL: all */
};

/*
 * Puts a crash state together: what is durable when the first `point` events have happened, and
 * what else survived, ascending. The set must be closed (H2). The caller owns the state.
 */
struct reffs_state *history_build(struct history *h, uint64_t point, const struct survivor *v,
				  size_t n);

/* The changes that have happened at a point, and are not durable, are in [*from, *to). */
void history_window(const struct history *h, uint64_t point, uint32_t *from, uint32_t *to);

/*
 * Whether two events are parts of one write(2), of which the recorder is given several: no call of
 * the application can come between them. An event is a part of its own call.
 */
bool history_same_call(const struct history *h, uint64_t first, uint64_t second);

/* Whether a change is durable when the first `point` events have happened. */
static inline bool change_is_durable(const struct change *c, uint64_t point)
{
	return c->durable_at < point;
}

#endif
