/* SPDX-License-Identifier: MIT */
/*
 * vm_template.h - a virtual machine that has booted, as two files: its memory, and the state of the
 * rest. A machine that is started from them goes on where that one was.
 *
 * T1: a template never changes: a machine that starts from it gets a copy of the memory.
 * T2: in the cache it is there whole or not at all.
 */
#ifndef GUEST_VM_TEMPLATE_H
#define GUEST_VM_TEMPLATE_H

#include "base/err.h"
#include "base/strbuf.h"

struct vm_template {
	int ram, state;		    /* -1: there is none */
	uint64_t boot;		    /* the number of the boot that it was made of; see vm_start.c */
	char name[48];		    /* in the cache; tells all that it depends on */
	int lock;		    /* the holder makes the template, and others wait for it; -1 */
	void (*waiting)(void *ctx); /* called while we wait for that; or NULL */
	void *waiting_ctx;
};

void vm_template_init(struct vm_template *t, const struct strbuf *depends_on);
void vm_template_release(struct vm_template *t);

/*
 * Looks in the cache, and waits for the process that makes it right now. False: it is ours to make,
 * and others are kept from that until _keep or _unlock; or that process does not come to an end.
 */
bool vm_template_find(struct vm_template *t);
/*
 * Takes both over, whatever it returns, and keeps copies for the next run. -errno if there is a
 * cache, and they cannot be kept there.
 */
int vm_template_keep(struct vm_template *t, int ram, int state, struct err *err) must_check;
void vm_template_unlock(struct vm_template *t);
/* The template does not work: it is forgotten, also by the next run. */
void vm_template_drop(struct vm_template *t);

/* A file in memory for a guest's memory, with what `from` holds; -1: nothing. */
int vm_memory(uint64_t size, int from, struct err *err) must_check;

#endif
