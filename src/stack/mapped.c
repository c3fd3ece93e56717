/* SPDX-License-Identifier: MIT */
/* mapped.c - reads the maps of processes, and opens the ELF files in them. */
#include "stack/mapped.h"

#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

enum { MAPS_MAX = 16 << 20, PROCESSES_MAX = 256 };

static void process_release(struct process *p)
{
	vec_release(&p->maps);
}

void modules_release(struct modules *m)
{
	vec_each(x, &m->all) {
		if (x->cfi)
			dwarf_cfi_end(x->cfi);
		if (x->elf)
			elf_end(x->elf);
		util_close(x->fd);
		free(x->path);
	}
	vec_release(&m->all);
	vec_release_each(p, &m->processes, process_release(p));
	free(m->dir);
	free(m->root);
}

/* ---- files ---- */

static uint32_t read_u32(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * Finds the table of .eh_frame_hdr: a version, three encodings, the address of .eh_frame, the
 * number of functions, and for each its address and that of its description; as all linkers write
 * it.
 */
static void find_starts(struct module *m)
{
	size_t n = 0;

	if (elf_getphdrnum(m->elf, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr h;

		if (!gelf_getphdr(m->elf, (int)i, &h) || h.p_type != PT_GNU_EH_FRAME)
			continue;
		Elf_Data *d =
			elf_getdata_rawchunk(m->elf, (int64_t)h.p_offset, h.p_filesz, ELF_T_BYTE);
		const unsigned char *b = d ? d->d_buf : NULL;

		if (!b || d->d_size < 12 || b[0] != 1 || b[1] != 0x1b || b[2] != 3 || b[3] != 0x3b)
			return;
		m->n_starts = min((size_t)read_u32(b + 8), (d->d_size - 12) / 8);
		m->starts = b + 12;
		m->starts_at = h.p_vaddr;
		return;
	}
}

static void open_module(struct modules *all, struct module *m, uint32_t pid)
{
	auto_free char *path = NULL;
	size_t n = strlen(all->dir);
	struct stat st;

	/* Files below the mount are read below its root: the mount is served by this process. */
	if (strncmp(m->path, all->dir, n) == 0 && m->path[n] == '/')
		path = xasprintf("%s%s", all->root, m->path + n);
	else
		path = xasprintf("/proc/%" PRIu32 "/root%s", pid, m->path);
	m->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (m->fd < 0 || fstat(m->fd, &st) || !S_ISREG(st.st_mode))
		return;
	m->elf = elf_begin(m->fd, ELF_C_READ_MMAP, NULL);
	if (!m->elf || elf_kind(m->elf) != ELF_K_ELF)
		return;
	m->cfi = dwarf_getcfi_elf(m->elf);
	find_starts(m);
}

static uint32_t module_of(struct modules *all, uint32_t pid, const char *path, uint64_t dev,
			  uint64_t ino)
{
	for (uint32_t i = 0; i < all->all.n; i++)
		if (all->all.v[i].ino == ino && all->all.v[i].dev == dev &&
		    streq(all->all.v[i].path, path))
			return i;
	struct module m = { .path = xstrdup(path), .fd = -1, .dev = dev, .ino = ino };
	open_module(all, &m, pid);
	vec_push(&all->all, m);
	return (uint32_t)(all->all.n - 1);
}

/* ---- processes ---- */

/* "START-END PERM OFFSET MAJOR:MINOR INODE   PATH" */
static void add_map(struct modules *m, struct process *p, const char *line)
{
	struct mapping map = { .module = UINT32_MAX };
	unsigned major, minor;
	uint64_t ino;
	char perm[8];
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &map.start,
		   &map.end, perm, &map.offset, &major, &minor, &ino, &at) < 7)
		return;
	map.exec = perm[2] == 'x';
	if (map.exec && at && line[at] == '/')
		map.module = module_of(m, p->pid, line + at, (uint64_t)major << 32 | minor, ino);
	vec_push(&p->maps, map);
}

void process_add_map(struct modules *m, struct process *p, uint64_t start, uint64_t end,
		     uint64_t offset, const char *path)
{
	struct mapping map = { start, end, offset, true, module_of(m, p->pid, path, 0, 0) };

	vec_push(&p->maps, map);
}

static bool read_maps(struct modules *m, struct process *p)
{
	char path[64];
	auto_strbuf text = STRBUF_INIT;
	struct err none = ERR_INIT;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", p->pid);
	vec_clear(&p->maps);
	if (io_slurp(path, MAPS_MAX, &text, &none) || !text.len)
		return false;
	char *rest = text.buf, *line;
	while ((line = strsep(&rest, "\n")))
		add_map(m, p, line);
	return p->maps.n > 0;
}

static struct process *process_of(struct modules *m, uint32_t pid, bool *known)
{
	for (size_t i = 0; i < m->processes.n; i++)
		if (m->processes.v[i].pid == pid)
			return &m->processes.v[i];
	*known = false;
	if (m->processes.n == PROCESSES_MAX) { /* too many short-lived ones: drop all */
		for (size_t i = 0; i < m->processes.n; i++)
			process_release(&m->processes.v[i]);
		vec_clear(&m->processes);
	}
	vec_push(&m->processes, (struct process){ .pid = pid });
	return &vec_last(&m->processes);
}

struct process *modules_process(struct modules *m, uint32_t pid, bool fresh)
{
	bool known = true;
	struct process *p = process_of(m, pid, &known);
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/exe", pid);
	if (stat(path, &st))
		return NULL;
	/* A process keeps its number when it executes another program. */
	if (known && !fresh && p->exe_dev == st.st_dev && p->exe_ino == st.st_ino)
		return p->maps.n ? p : NULL;
	p->exe_dev = st.st_dev;
	p->exe_ino = st.st_ino;
	return read_maps(m, p) ? p : NULL;
}

const struct mapping *mapping_at(const struct process *p, uint64_t addr)
{
	return vec_find(i, &p->maps, addr >= p->maps.v[i].start && addr < p->maps.v[i].end);
}

/* ---- addresses ---- */

/* Finds the segment with an offset of the file, or with an address. */
static bool segment_at(const struct module *m, uint64_t at, bool by_address, GElf_Phdr *out)
{
	size_t n = 0;

	if (!m->elf || elf_getphdrnum(m->elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(m->elf, (int)i, out) || out->p_type != PT_LOAD)
			continue;
		uint64_t from = by_address ? out->p_vaddr : out->p_offset;

		if (at >= from && at - from < out->p_filesz)
			return true;
	}
	return false;
}

bool module_address(const struct modules *m, const struct process *p, uint64_t addr,
		    struct module **module, uint64_t *out)
{
	const struct mapping *map = mapping_at(p, addr);
	GElf_Phdr h;

	if (!map || map->module == UINT32_MAX)
		return false;
	uint64_t at = addr - map->start + map->offset;
	*module = &m->all.v[map->module];
	*out = segment_at(*module, at, false, &h) ? at - h.p_offset + h.p_vaddr : at;
	return true;
}

static uint64_t start_of(const struct module *m, size_t i)
{
	return m->starts_at + (uint64_t)(int64_t)(int32_t)read_u32(m->starts + i * 8);
}

uint64_t module_function(const struct module *m, uint64_t addr)
{
	size_t behind = first_where(i, m->n_starts, start_of(m, i) > addr);

	return behind ? start_of(m, behind - 1) : 0;
}

bool module_bytes(const struct module *m, uint64_t addr, unsigned char *out, size_t len)
{
	GElf_Phdr h;
	size_t size = 0;
	const char *file = m->elf ? elf_rawfile(m->elf, &size) : NULL;

	if (!file || !segment_at(m, addr, true, &h) || addr - h.p_vaddr + len > h.p_filesz)
		return false;
	uint64_t at = addr - h.p_vaddr + h.p_offset;
	if (at > size || size - at < len)
		return false;
	memcpy(out, file + at, len);
	return true;
}
