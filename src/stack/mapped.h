/* SPDX-License-Identifier: MIT */
/* mapped.h - programs and libraries that are mapped into processes. Not thread-safe. */
#ifndef STACK_MAPPED_H
#define STACK_MAPPED_H

#include <elfutils/libdw.h>

#include "base/vec.h"
#include "stack/table.h"

struct module {
	char *path; /* as the process saw it */
	int fd;	    /* -1: it cannot be read; only its name is known */
	uint64_t dev, ino;
	Elf *elf;
	Dwarf_CFI *cfi;
	/* The sorted table of functions in .eh_frame_hdr, or NULL. */
	const unsigned char *starts;
	size_t n_starts;
	uint64_t starts_at; /* the address to which its offsets are added */
	uint32_t used;	    /* its number in the written table + 1 */
};

struct mapping {
	uint64_t start, end, offset;
	bool exec;
	uint32_t module; /* UINT32_MAX: none */
};

/* A process with its mappings. */
struct process {
	uint32_t pid;
	uint64_t exe_dev, exe_ino;
	struct vec_of(struct mapping) maps;
};

struct modules {
	char *dir, *root;
	struct vec_of(struct module) all;
	struct vec_of(struct process) processes;
};

void modules_release(struct modules *m);

/* Returns the process of a thread; read again if `fresh`. NULL if it cannot be read. */
struct process *modules_process(struct modules *m, uint32_t pid, bool fresh);
/* Adds a mapping of another process, of a file that still exists. */
void process_add_map(struct modules *m, struct process *p, uint64_t start, uint64_t end,
		     uint64_t offset, const char *path);
const struct mapping *mapping_at(const struct process *p, uint64_t addr);
/* Converts an address to one of its file. False if the address is in no file. */
bool module_address(const struct modules *m, const struct process *p, uint64_t addr,
		    struct module **module, uint64_t *out);
/* Returns the begin of the function around an address; 0 if unknown. */
uint64_t module_function(const struct module *m, uint64_t addr);
/* Reads bytes of the file at an address. */
bool module_bytes(const struct module *m, uint64_t addr, unsigned char *out, size_t len);

#endif
