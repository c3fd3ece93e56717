/* SPDX-License-Identifier: MIT */
/* region.c - opens and maps the region's file, and finds out where the guest has mapped it. */
#include "region.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest.h"
#include "tracer.h"

static const struct maps no_maps;
struct region region = { .fd = -1, .maps = (struct maps *)(uintptr_t)&no_maps };

static bool parse_phys(const char *text)
{
	char *rest, *comma;

	region.phys = strtoull(text, &rest, 0);
	if (*rest != ',')
		return false;
	region.size = strtoull(rest + 1, &rest, 0);
	if (*rest != ',' || !region.size)
		return false;
	region.path = strdup(rest + 1);
	region.offset = region.phys;
	comma = region.path ? strrchr(region.path, ',') : NULL;
	if (comma) {
		*comma = 0;
		region.offset = strtoull(comma + 1, &rest, 0);
	}
	return true;
}

bool region_parse(const char *text)
{
	const char *kind = pm.system ? "phys:" : "user:";

	if (strncmp(text, kind, 5) != 0)
		return false;
	if (!pm.system)
		region.path = strdup(text + 5);
	else if (!parse_phys(text + 5))
		return false;
	return region.path && region.path[0] == '/';
}

/* ---- the file ---- */

bool region_open(void)
{
	struct stat st;

	if (region.fd < 0) {
		region.fd = open(region.path, O_RDONLY | O_CLOEXEC);
		/* Far from what the program under test expects its own numbers to be. */
		int high = region.fd < 0 ? -1 : fcntl(region.fd, F_DUPFD_CLOEXEC, 900);
		if (high >= 0) {
			close(region.fd);
			region.fd = high;
		}
	}
	if (region.fd < 0 || fstat(region.fd, &st))
		return false;
	uint64_t size = pm.system ? region.size : (uint64_t)st.st_size;
	if (size <= region.view_size)
		return true;
	void *view = mmap(NULL, size, PROT_READ, MAP_SHARED, region.fd, (off_t)region.offset);
	void *dirty = mmap(NULL, size / PM_STREAM_LINE / 8 + 1, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (view == MAP_FAILED || dirty == MAP_FAILED)
		return false;
	if (region.view) {
		memcpy(dirty, region.dirty, region.view_size / PM_STREAM_LINE / 8 + 1);
		munmap((void *)(uintptr_t)region.view, region.view_size);
		munmap(region.dirty, region.view_size / PM_STREAM_LINE / 8 + 1);
	}
	region.view = view;
	region.dirty = dirty;
	region.view_size = size;
	writer_set_region(pm.w, size);
	return true;
}

bool region_is_file(uint64_t fd)
{
	struct stat st, named;

	if (fstat((int)fd, &st) || stat(region.path, &named))
		return false;
	return st.st_dev == named.st_dev && st.st_ino == named.st_ino;
}

/* ---- where it is mapped ---- */

static void add_map(struct maps *m, uint64_t start, uint64_t end, uint64_t offset)
{
	uint64_t base = region.guest_base;

	if (start == (uint64_t)(uintptr_t)region.view || m->n == MAPS_MAX ||
	    offset >= region.view_size)
		return;
	if (end - start > region.view_size - offset) /* the rest of the last page, or more */
		end = start + (region.view_size - offset);
	m->v[m->n++] = (struct map){ start - base, end - base, offset };
	m->low = m->n == 1 || start - base < m->low ? start - base : m->low;
	m->high = end - base > m->high ? end - base : m->high;
}

/* A line of /proc/self/maps. */
struct mapping {
	uint64_t start, end, offset, ino;
	unsigned major, minor;
	bool shared;
};

static bool next_mapping(FILE *f, struct mapping *m)
{
	char line[512], mode[8];

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64,
			   &m->start, &m->end, mode, &m->offset, &m->major, &m->minor,
			   &m->ino) == 7) {
			m->shared = mode[3] == 's';
			return true;
		}
	return false;
}

/*
 * Our own mapping of the file shows what the others of it are called there. stat() does not: on
 * some file systems it tells another device than this list.
 */
static bool find_view(FILE *f, struct mapping *view)
{
	uint64_t at = (uint64_t)(uintptr_t)region.view;

	while (next_mapping(f, view))
		if (at >= view->start && at < view->end)
			return true;
	return false;
}

/* Reads the kernel's list of shared mappings of our file. The lock is held. */
static void look_at_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct maps *m = calloc(1, sizeof(*m));
	struct mapping view, l;
	bool known = f && m && find_view(f, &view);

	if (f)
		rewind(f);
	while (known && next_mapping(f, &l)) {
		if (l.ino != view.ino || l.major != view.major || l.minor != view.minor ||
		    !l.shared)
			continue;
		if (pm.system && l.offset < region.offset) {
			l.start += region.offset - l.offset;
			l.offset = region.offset;
		}
		if (l.start < l.end)
			add_map(m, l.start, l.end, l.offset - region.offset);
	}
	if (f)
		fclose(f);
	if (!known)
		writer_trouble(pm.w, "the list of what is mapped (/proc/self/maps) cannot be read");
	if (m && m->n == MAPS_MAX)
		writer_trouble(pm.w, "the region is mapped more than %d times", MAPS_MAX);
	if (m) /* the old one may be in use: it stays */
		__atomic_store_n(&region.maps, m, __ATOMIC_RELEASE);
}

void region_mapped(void)
{
	lock();
	if (!pm.system)
		region.guest_base = guest_zero();
	if (region_open())
		look_at_maps();
	unlock();
}
