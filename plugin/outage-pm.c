/* SPDX-License-Identifier: MIT */
/*
 * outage-pm.c - a QEMU plugin that traces persistent memory: every store to it, every flush and
 * fence, and marks. The same source serves user emulation and system emulation.
 *
 *	stream=FILE		where the trace goes: writer.h
 *	region=user:POOL	user emulation: the file POOL, wherever the program maps it (shared)
 *	region=phys:START,SIZE,FILE[,OFFSET]
 *				system emulation: SIZE bytes at the guest's physical address START,
 *				which are the bytes from OFFSET (if not given: START) of FILE
 *	loads=on		loads, too
 *	stacks=on		and call stacks, of what is recorded: shadow.h
 *	maps=FILE		user emulation: what is mapped in the end, for names of code: maps.h
 *	filter=off		do not rely on F2, see below
 *	begin=mark		trace nothing before the mark OUTAGE_MARK_START; OUTAGE_MARK_STOP
 *				ends the stream, and the next start begins it anew
 *
 * Stored data is read from memory, after the store: no interface for values is needed, and the
 * trace tells what is there even if threads race. The gaps of version 1 of QEMU's interface are
 * filled in ways that the interface does not promise; outage tests them at each start by a program
 * whose trace is known, and each run by replaying it.
 *
 * F1: registers. A callback is called from translated code, which holds the pointer to the CPU's
 *     state in a fixed register of the host; the general registers come first in that state. The
 *     registers are up to date only if the code believes that the callback reads them: we say so in
 *     QEMU's table of helpers. Later versions have a call for it.
 * F2: the filter for stores. In version 1 it compares a number with a mask one off: asked for
 *     loads, it gives the stores of translated code, and asked for stores, everything. Where
 *     stores are made by helpers it works as it should. So we ask by what the instruction is.
 * F3: physical addresses. Version 1 gives the place of RAM among all RAM, not the address. Behind
 *     what it hands out is the host's address, and FILE is mapped there.
 *
 * P1: one lock, and when none is needed: tracer.h.
 * P2: the stack is not in the region: accesses addressed by the stack pointer alone are not looked
 *     at. Where that does not hold, it is noticed when the stack pointer is set, at a mark or
 *     flush, or by the replay.
 * P3: an access outside the region costs a callback and two comparisons (user emulation), whatever
 *     else there is to do is done when code is translated.
 *
 * The parts: watch.c decides what an instruction is watched for, and sees flushes, fences and
 * marks; access.c sees loads and stores, and syscalls.c what the kernel does for the program. These
 * three ask region.c where the persistent memory is, guest.c for registers and addresses, and
 * record by tracer.c, for which writer.c writes the stream.
 */
#include <stdio.h>
#include <stdlib.h>

#include "guest.h"
#include "maps.h"
#include "qemu_api.h"
#include "region.h"
#include "syscalls.h"
#include "tracer.h"
#include "watch.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API;
PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
				      char **argv);

static char *stream;	/* where the trace goes */
static char *maps_path; /* a file for what is mapped in the end, or NULL */

static void vcpu_init_cb(qemu_plugin_id_t id, unsigned vcpu)
{
	struct cpu_here *c = cpu_slot(vcpu);

	(void)id;
	guest_regs_find();
	if (pm.system) { /* now, not before, the guest's memory is mapped */
		region_mapped();
		return;
	}
	/* A thread may get the number of one that has ended: its fences are its own. */
	c->known = false;
	c->shadow = NULL;
	shadow_forget(&c->own);
}

static void atexit_cb(qemu_plugin_id_t id, void *udata)
{
	(void)id;
	(void)udata;
	if (maps_path && !pm.system)
		maps_write(maps_path, guest_zero());
	count_process(-1);
}

static bool take_arg(const char *name, const char *value)
{
	if (strcmp(name, "stream") == 0)
		stream = strdup(value);
	else if (strcmp(name, "maps") == 0)
		maps_path = strdup(value);
	else if (strcmp(name, "loads") == 0)
		pm.loads = strcmp(value, "on") == 0;
	else if (strcmp(name, "stacks") == 0)
		pm.stacks = strcmp(value, "on") == 0;
	else if (strcmp(name, "filter") == 0)
		pm.filter = strcmp(value, "off") != 0;
	else if (strcmp(name, "begin") == 0)
		pm.off = pm.marked = strcmp(value, "mark") == 0;
	else
		return strcmp(name, "region") == 0 && region_parse(value);
	return true;
}

static int refuse(const char *why)
{
	fprintf(stderr, "outage-pm: %s\n", why);
	return -1;
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	pm.system = info->system_emulation;
	pm.alone = !pm.system || info->system.max_vcpus == 1;
	for (int i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			return refuse("an argument has no value");
		*value++ = 0;
		if (!take_arg(argv[i], value))
			return refuse("an argument is unknown, or its value wrong");
	}
	if (strcmp(info->target_name, "x86_64") != 0)
		return refuse("only x86_64 can be traced");
	if (!stream || !region.path)
		return refuse("stream= and region= must be given");
	pm.w = writer_open(stream, PM_STREAM_HAS_PC | (pm.loads ? PM_STREAM_HAS_LOADS : 0) |
					   (pm.stacks ? PM_STREAM_HAS_STACKS : 0));
	if (!pm.w)
		return refuse("the stream cannot be written");
	if (!guest_regs_readable())
		return refuse("registers cannot be read in this version of QEMU");
	if (pm.system && !region_open())
		return refuse("the file behind the region cannot be mapped");
	qemu_plugin_register_vcpu_tb_trans_cb(id, watch_block);
	qemu_plugin_register_atexit_cb(id, atexit_cb, NULL);
	qemu_plugin_register_vcpu_init_cb(id, vcpu_init_cb);
	if (!pm.system) {
		qemu_plugin_register_vcpu_syscall_cb(id, syscall_cb);
		qemu_plugin_register_vcpu_syscall_ret_cb(id, syscall_ret_cb);
	}
	return 0;
}
