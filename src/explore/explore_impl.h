/* SPDX-License-Identifier: MIT */
/* explore_impl.h - shared by the parent (explore.c) and its tasks (task.c). */
#ifndef EXPLORE_EXPLORE_IMPL_H
#define EXPLORE_EXPLORE_IMPL_H

#include "base/pool.h"
#include "explore/explore.h"

enum message_kind {
	MSG_KEPT, /* something was found, or made smaller: it is kept, and made smaller still */
	MSG_DUPLICATE,	/* the finding kept last was found before, and is gone again */
	MSG_SUPPRESSED, /* the same for one that is known, and not wanted */
	MSG_FOUND,	/* the last finding is as small as it gets; or could not be kept */
	MSG_CUT_SHORT,	/* the finding kept last would be smaller, with more time */
	MSG_ERROR,
	MSG_NOTE,
	MSG_WARNING,
	MSG_FATAL,
};

struct message {
	enum message_kind kind;
	unsigned task;
	uint64_t ops;
	char words[600], dir[300];
};

/* In memory that parent and task share. */
struct shared {
	struct search_progress progress;
	_Atomic uint64_t cases; /* findings */
	_Atomic uint64_t not_kept;
	uint64_t walk_from; /* the walk to begin with: another process did those before */
	_Atomic bool cut;   /* time is up, or a signal came: nothing is made smaller any more */
	_Atomic bool walks; /* the task cannot search as asked, and walks */
	struct script_note note; /* the script tried to make a finding smaller */
	struct coverage coverage;
};

/* The parameters of a task; its own memory is its own business. */
struct task_opts {
	const struct explore_opts *opts;
	unsigned number; /* on this machine */
	struct shared *shared;
	struct visited *visited;
	struct kmsg_shared *kmsg;
	_Atomic uint64_t *found;  /* findings of all tasks; see --findings */
	struct pool_worker *pool; /* messages go there */
};

/* Runs in a process of its own. */
void task_main(const struct task_opts *opts);

/* How a task differs from the others. */
void task_vary(const struct explore_opts *o, unsigned number, bool walks,
	       struct search_opts *search, struct inputs *in);

#endif
