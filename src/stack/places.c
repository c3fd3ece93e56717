/* SPDX-License-Identifier: MIT */
/* places.c - parses mappings, opens their files, and names addresses in them. */
#include "stack/places.h"

#include <inttypes.h>
#include <stdio.h>

#include "stack/symbols.h"

enum { MAPS_MAX = 65536, INLINED_MAX = 4 };

struct code_places {
	struct modules modules;
	struct process process;
	struct vec_of(struct symbols *) symbols; /* by module; read when first needed */
	struct vec_of(bool) known;
};

static void add_line(struct code_places *p, const char *line)
{
	uint64_t start, end, offset;
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %" SCNx64 " %n", &start, &end, &offset, &at) <
		    3 ||
	    !at || line[at] != '/' || start >= end)
		return;
	process_add_map(&p->modules, &p->process, start, end, offset, line + at);
}

struct code_places *code_places_new(const char *maps)
{
	struct code_places *p = xcalloc(1, sizeof(*p));
	auto_free char *text = xstrdup(maps);
	char *rest = text, *line;

	elf_version(EV_CURRENT);
	p->modules.dir = xstrdup("");
	p->modules.root = xstrdup("");
	for (size_t n = 0; n < MAPS_MAX && (line = strsep(&rest, "\n")); n++)
		add_line(p, line);
	for (size_t i = 0; i < p->modules.all.n; i++) {
		vec_push(&p->symbols, NULL);
		vec_push(&p->known, false);
	}
	return p;
}

void code_places_free(struct code_places *p)
{
	if (!p)
		return;
	vec_release_each(x, &p->symbols, symbols_free(*x));
	vec_release(&p->known);
	vec_release(&p->process.maps);
	modules_release(&p->modules);
	free(p);
}

bool code_places_words(struct code_places *p, uint64_t addr, struct strbuf *out)
{
	auto_vec struct stack_frames frames = { 0 };
	struct module *m;
	uint64_t at;

	if (!module_address(&p->modules, &p->process, addr, &m, &at))
		return false;
	size_t i = (size_t)(m - p->modules.all.v);
	if (!p->known.v[i]) {
		p->symbols.v[i] = symbols_new(m);
		p->known.v[i] = true;
	}
	symbols_add(p->symbols.v[i], at, &frames);
	for (size_t j = 0; j < frames.n; j++) {
		if (j < INLINED_MAX) {
			strbuf_adds(out, j ? ", " : "");
			stack_words(&frames.v[j], m->path, at, out);
		}
		free(frames.v[j].function);
		free(frames.v[j].file);
	}
	return true;
}
