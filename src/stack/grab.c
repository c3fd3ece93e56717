/* SPDX-License-Identifier: MIT */
/*
 * grab.c - reads the stack of a waiting thread from its memory, and names the addresses at the end
 * of a run.
 */
#include "stack/grab.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "stack/symbols.h"
#include "stack/unwind.h"

enum { COPY_MAX = 256 << 10, TRIES = 200, TRY_MS = 1 };

/* Addresses relative to their files, so that the same code is equal in all processes. */
struct taken {
	uint32_t n;
	struct taken_at {
		uint32_t module;
		uint64_t addr;
	} at[UNWIND_MAX];
};

struct stacks {
	struct modules modules;
	struct vec_of(struct taken *) all;
	struct vec_of(struct taken_slot {
		uint64_t hash;
		uint32_t stack; /* index + 1; 0: free */
	}) slots;		/* open addressing, a power of two */
	struct vec_of(struct stack_call) calls;
	uint64_t unreadable, late;
	unsigned char copy[COPY_MAX];
};

struct stacks *stacks_new(const char *dir, const char *root)
{
	struct stacks *s = xcalloc(1, sizeof(*s));

	elf_version(EV_CURRENT);
	s->modules.dir = xstrdup(dir);
	s->modules.root = xstrdup(root);
	return s;
}

void stacks_free(struct stacks *s)
{
	if (!s)
		return;
	vec_release_each(p, &s->all, free(*p));
	vec_release(&s->slots);
	vec_release(&s->calls);
	modules_release(&s->modules);
	free(s);
}

/* ---- equal stacks are kept once ---- */

static size_t slot_of(const struct stacks *s, uint64_t hash, const struct taken *t, size_t size)
{
	size_t at = hash & (s->slots.n - 1);

	for (;; at = (at + 1) & (s->slots.n - 1)) {
		const struct taken_slot *x = &s->slots.v[at];

		if (!x->stack)
			return at;
		if (t && x->hash == hash && s->all.v[x->stack - 1]->n == t->n &&
		    !memcmp(s->all.v[x->stack - 1], t, size))
			return at;
	}
}

static void grow_slots(struct stacks *s)
{
	struct taken_slot *old = s->slots.v;
	size_t n = s->slots.n;

	s->slots.n = n ? 2 * n : 64;
	s->slots.cap = s->slots.n;
	s->slots.v = xcalloc(s->slots.n, sizeof(*s->slots.v));
	for (size_t i = 0; i < n; i++)
		if (old[i].stack)
			s->slots.v[slot_of(s, old[i].hash, NULL, 0)] = old[i];
	free(old);
}

static uint32_t stack_index(struct stacks *s, const struct taken *t)
{
	size_t size = offsetof(struct taken, at) + t->n * sizeof(t->at[0]);
	uint64_t hash = hash64(t, size);

	if (2 * (s->all.n + 1) > s->slots.n)
		grow_slots(s);
	size_t at = slot_of(s, hash, t, size);
	if (!s->slots.v[at].stack) {
		struct taken *copy = xmalloc(size);

		memcpy(copy, t, size);
		vec_push(&s->all, copy);
		s->slots.v[at] = (struct taken_slot){ hash, (uint32_t)s->all.n };
	}
	return s->slots.v[at].stack - 1;
}

/* ---- a thread ---- */

/*
 * Gives the place where a thread entered the kernel. The thread has sent a request and is about to
 * wait for the answer; as long as it still runs, /proc does not tell the place.
 */
static bool where_is(uint32_t tid, uint64_t *sp, uint64_t *pc)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/syscall", tid);
	for (int i = 0; i < TRIES; i++) {
		auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

		if (n <= 0)
			return false;
		text[n] = '\0';
		if (strncmp(text, "running", 7) != 0)
			break;
		if (i < TRIES / 2)
			sched_yield();
		else
			util_sleep_ms(TRY_MS);
	}
	/* The file has the call's number, six arguments, and these two. */
	return sscanf(text, "%*s %*s %*s %*s %*s %*s %*s %" SCNx64 " %" SCNx64, sp, pc) == 2;
}

static bool copy_stack(struct stacks *s, uint32_t tid, const struct process *p, uint64_t sp,
		       struct stack_copy *out)
{
	const struct mapping *map = mapping_at(p, sp);
	size_t len = map ? (size_t)min(map->end - sp, (uint64_t)COPY_MAX) : 0;
	struct iovec to = { s->copy, len }, from = { (void *)(uintptr_t)sp, len };
	ssize_t n = len ? process_vm_readv((pid_t)tid, &to, 1, &from, 1, 0) : -1;

	*out = (struct stack_copy){ sp, s->copy, n > 0 ? (size_t)n : 0 };
	return n > 0;
}

static bool take(struct stacks *s, uint32_t tid, struct taken *t)
{
	uint64_t sp, pc, pcs[UNWIND_MAX];
	struct stack_copy copy;

	if (!where_is(tid, &sp, &pc))
		return false;
	struct process *p = modules_process(&s->modules, tid, false);
	/* The process may have new libraries or threads. */
	if (p && (!mapping_at(p, pc) || !mapping_at(p, sp)))
		p = modules_process(&s->modules, tid, true);
	if (!p || !copy_stack(s, tid, p, sp, &copy))
		return false;
	size_t n = unwind(&s->modules, p, pc, &copy, pcs);
	for (size_t i = 0; i < n; i++) {
		struct module *m;
		uint64_t at;

		if (!module_address(&s->modules, p, pcs[i] - (i > 0), &m, &at))
			break;
		t->at[t->n].module = (uint32_t)(m - s->modules.all.v);
		t->at[t->n++].addr = at;
	}
	return t->n;
}

void stacks_grab(struct stacks *s, uint32_t tid, uint64_t number)
{
	struct taken t;

	memset(&t, 0, sizeof(t)); /* with its padding, which is hashed */
#ifdef __x86_64__
	if (tid && take(s, tid, &t)) {
		vec_push(&s->calls, (struct stack_call){ number, stack_index(s, &t) });
		return;
	}
#endif
	s->unreadable++;
}

void stacks_none(struct stacks *s)
{
	s->late++;
}

/* ---- names and lines ---- */

struct saving {
	struct stacks *s;
	struct stack_table t;
	struct symbols **symbols; /* by module, opened when first needed */
	bool *tried;
	struct vec_of(struct named_at {
		uint32_t module;
		uint32_t first;
		uint32_t n;
		uint64_t addr;
	}) known; /* frames of addresses that are known */
};

static uint32_t table_module(struct saving *w, uint32_t n)
{
	struct module *m = &w->s->modules.all.v[n];

	if (!m->used) {
		vec_push(&w->t.modules,
			 (struct stack_module){ xstrdup(m->path), symbols_build_id(m) });
		m->used = (uint32_t)w->t.modules.n;
	}
	return m->used - 1;
}

static const struct named_at *name_address(struct saving *w, const struct taken_at *at)
{
	auto_vec struct stack_frames frames = { 0 };

	for (size_t i = 0; i < w->known.n; i++)
		if (w->known.v[i].module == at->module && w->known.v[i].addr == at->addr)
			return &w->known.v[i];
	if (!w->tried[at->module])
		w->symbols[at->module] = symbols_new(&w->s->modules.all.v[at->module]);
	w->tried[at->module] = true;
	symbols_add(w->symbols[at->module], at->addr, &frames);
	struct named_at k = { at->module, (uint32_t)w->t.frames.n, (uint32_t)frames.n, at->addr };
	for (size_t i = 0; i < frames.n; i++) {
		frames.v[i].module = table_module(w, at->module);
		frames.v[i].offset = at->addr;
		vec_push(&w->t.frames, frames.v[i]);
	}
	vec_push(&w->known, k);
	return &vec_last(&w->known);
}

static void name_stack(struct saving *w, const struct taken *t)
{
	struct vec_of(uint32_t) list = { 0 };

	for (uint32_t i = 0; i < t->n; i++) {
		const struct named_at *k = name_address(w, &t->at[i]);

		for (uint32_t j = 0; j < k->n && list.n < STACK_DEPTH_MAX; j++)
			vec_push(&list, k->first + j);
	}
	vec_push(&w->t.stacks, (struct stack_list){ list.v, (uint32_t)list.n });
}

static void add_missing(struct stack_table *t, uint64_t count, const char *reason)
{
	if (count)
		vec_push(&t->missing, (struct stack_missing){ count, xstrdup(reason) });
}

int stacks_save(struct stacks *s, const char *path, struct err *err)
{
	struct saving w = { .s = s };
	auto_strbuf text = STRBUF_INIT;

	/* No debug information is fetched from other machines. */
	unsetenv("DEBUGINFOD_URLS");
	w.symbols = xcalloc(s->modules.all.n + 1, sizeof(struct symbols *));
	w.tried = xcalloc(s->modules.all.n + 1, sizeof(*w.tried));
	for (size_t i = 0; i < s->all.n; i++)
		name_stack(&w, s->all.v[i]);
	for (size_t i = 0; i < s->calls.n; i++)
		vec_push(&w.t.calls, s->calls.v[i]);
	add_missing(&w.t, s->unreadable, "the caller could not be looked at");
	add_missing(&w.t, s->late,
		    "the kernel wrote later, and by itself, what was stored in memory");
	stack_table_print(&w.t, &text);
	for (size_t i = 0; i < s->modules.all.n; i++) {
		symbols_free(w.symbols[i]);
		s->modules.all.v[i].used = 0;
	}
	free(w.symbols);
	free(w.tried);
	vec_release(&w.known);
	stack_table_release(&w.t);
	/* The file is part of a run: a group may not write to it, whatever umask says. */
	const char *name = strrchr(path, '/');
	auto_free char *dir = name && name > path ? xmemdupz(path, (size_t)(name - path)) : NULL;
	return io_write_file(dir, dir ? name + 1 : path, strbuf_str(&text), text.len, 0, err);
}
