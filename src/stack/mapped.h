/* SPDX-License-Identifier: MIT */
/* mapped.h - programs and libraries that are mapped into processes. Not for several threads. */
#ifndef STACK_MAPPED_H
#define STACK_MAPPED_H

#include <elfutils/libdw.h>

#include "base/vec.h"
#include "stack/table.h"

struct module {
	char *path; /* as the process saw it */
	int fd;	    /* -1: it cannot be read; then there is nothing but its name */
	uint64_t dev, ino;
	Elf *elf;
	Dwarf_CFI *cfi;
	/* The sorted table of where functions begin, of .eh_frame_hdr; or NULL. */
	const unsigned char *starts;
	size_t n_starts;
	uint64_t starts_at; /* the address that it counts from */
	uint32_t used;	    /* its number in the table that is written, and one */
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

/* Of the process that a thread belongs to; read again if `fresh`. NULL: it cannot be read. */
struct process *modules_process(struct modules *m, uint32_t pid, bool fresh);
/* Adds a mapping that another process saw, of a file that is still there. */
void process_add_map(struct modules *m, struct process *p, uint64_t start, uint64_t end,
		     uint64_t offset, const char *path);
const struct mapping *mapping_at(const struct process *p, uint64_t addr);
/* An address as the file has it. False if the address is in no file. */
bool module_address(const struct modules *m, const struct process *p, uint64_t addr,
		    struct module **module, uint64_t *out);
/* Where the function around an address begins; 0 if that is not known. */
uint64_t module_function(const struct module *m, uint64_t addr);
/* Bytes of the file at an address. */
bool module_bytes(const struct module *m, uint64_t addr, unsigned char *out, size_t len);

#endif
