/* SPDX-License-Identifier: MIT */
/*
 * vm_template.h - a template: a virtual machine that has booted, as two files, its memory and the
 * state of its devices. A clone goes on from there.
 *
 * T1: a template never changes: a machine that starts from it gets a copy of the memory.
 * T2: in the cache a template exists whole or not at all.
 */
#ifndef GUEST_VM_TEMPLATE_H
#define GUEST_VM_TEMPLATE_H

#include "base/err.h"
#include "base/strbuf.h"

struct vm_template {
	int ram, state;		    /* -1: no template */
	uint64_t boot;		    /* the number of its boot; see vm_start.c */
	char name[48];		    /* its name in the cache, a hash of all that it depends on */
	int lock;		    /* the holder makes the template, others wait; or -1 */
	void (*waiting)(void *ctx); /* called during that wait; or NULL */
	void *waiting_ctx;
};

void vm_template_init(struct vm_template *t, const struct strbuf *depends_on);
void vm_template_release(struct vm_template *t);

/*
 * Looks in the cache, and waits for a process that is making the template. False: the caller has to
 * make it, and others wait until _keep or _unlock; or that process does not come to an end.
 */
bool vm_template_find(struct vm_template *t);
/*
 * Takes ownership of both descriptors, whatever it returns, and keeps copies for the next run.
 * -errno if there is a cache, and the copies cannot be kept.
 */
int vm_template_keep(struct vm_template *t, int ram, int state, struct err *err) must_check;
void vm_template_unlock(struct vm_template *t);
/* Drops a template that does not work, also from the cache. */
void vm_template_drop(struct vm_template *t);

/* Makes a file in memory for a guest's memory, with the content of `from`; -1: empty. */
int vm_memory(uint64_t size, int from, struct err *err) must_check;

#endif
