/* SPDX-License-Identifier: MIT */
/* run_places.c - looks up the names of addresses, and reads and writes the table that a case keeps.
 */
#include "run/run_places.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "run/run_impl.h"

enum { NAME_MAX_BYTES = KALLSYMS_NAME_MAX + 100 };

/* A machine is asked once something of it is to be told, and once only; NULL: it has no names. */
static const struct kallsyms *names_of(struct run *r, uint64_t machine)
{
	struct machine_names made = { .machine = machine, .names = KALLSYMS_INIT };
	auto_strbuf text = STRBUF_INIT;
	struct err why = ERR_INIT;

	const struct machine_names *known =
		vec_find(i, &r->names, r->names.v[i].machine == machine);
	if (known)
		return &known->names;
	if (target_symbols(&r->target, machine, &text, &why) ||
	    kallsyms_parse(strbuf_str(&text), text.len, &made.names, &why))
		log_debug("places in the kernel have no names: %s", why.msg);
	vec_push(&r->names, made);
	return &vec_last(&r->names).names;
}

/* "pmem_do_write+0xa2 [nd_pmem]"; false if it is unknown. Programs have no names here. */
static bool add_name(struct run *r, const struct trace *t, uint64_t addr, struct strbuf *out)
{
	const char *name, *module, *kept = NULL;
	uint64_t offset;

	if (!(addr >> 63))
		return false;
	if (!t->machine) {
		kept = r->kept_places ? places_find(r->kept_places, addr) : NULL;
		strbuf_adds(out, kept ? kept : "");
		return kept;
	}
	if (!kallsyms_find(names_of(r, t->machine), addr, &name, &module, &offset))
		return false;
	strbuf_addf(out, "%s+%#" PRIx64 "%s%s%s", name, offset, *module ? " [" : "", module,
		    *module ? "]" : "");
	return true;
}

void place_words(struct run *r, const struct trace *t, uint64_t addr, struct strbuf *out)
{
	auto_strbuf name = STRBUF_INIT;

	strbuf_addf(out, "%#" PRIx64, addr);
	if (add_name(r, t, addr, &name))
		strbuf_addf(out, " (%s)", strbuf_str(&name));
}

/* ---- kept ---- */

struct addresses vec_of(uint64_t);

static void collect(const struct trace *t, struct addresses *out)
{
	uint64_t frames[EVENT_FRAMES_MAX];
	uint64_t last_pc = 0; /* a copy has many stores of one place, with one stack */
	uint32_t last = 0;

	vec_each(ev, &t->events) {
		if (ev->kind != EV_STORE || (ev->pc == last_pc && ev->stack == last))
			continue;
		vec_push(out, ev->pc);
		size_t n = ev->stack && ev->stack != last ? trace_stack(t, ev->stack, frames) : 0;
		for (size_t f = 0; f < n; f++)
			vec_push(out, frames[f]);
		last_pc = ev->pc;
		last = ev->stack;
	}
}

DEFINE_ORDER(by_address, struct place_name, order(a->addr, b->addr))

static void add_places(struct run *r, const struct trace *t, struct places *out)
{
	auto_vec struct addresses all = { 0 };

	collect(t, &all);
	vec_sort_unique(&all, by_u64);
	vec_each(addr, &all) {
		auto_strbuf name = STRBUF_INIT;

		if (add_name(r, t, *addr, &name))
			vec_push(out, (struct place_name){ *addr, strbuf_detach(&name) });
	}
}

void places_print(struct run *r, const struct trace *t, const struct trace *more,
		  struct strbuf *out)
{
	auto_call(places_release) struct places all = { 0 };

	add_places(r, t, &all);
	if (more)
		add_places(r, more, &all);
	vec_sort(&all, by_address);
	for (size_t i = 0, n; i < all.n; i += n) {
		bool same = true;

		/* Two machines may have something else there each: then it has no name. */
		for (n = 1; i + n < all.n && all.v[i + n].addr == all.v[i].addr; n++)
			same &= streq(all.v[i].name, all.v[i + n].name);
		if (same)
			strbuf_addf(out, "%#" PRIx64 " %s\n", all.v[i].addr, all.v[i].name);
	}
}

/* ---- read back ---- */

static bool is_name(const char *p, size_t n)
{
	return n > 0 && n < NAME_MAX_BYTES && !any_of(i, n, p[i] < ' ' || p[i] > '~');
}

void places_parse(const char *text, struct places *out)
{
	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n");
		char *end;
		uint64_t addr = strtoull(line, &end, 16);

		if (end > line && end < line + n && *end == ' ' &&
		    is_name(end + 1, n - (size_t)(end + 1 - line))) {
			struct place_name p = { addr,
						xmemdupz(end + 1, n - (size_t)(end + 1 - line)) };

			vec_push(out, p);
		}
		line += n + (line[n] == '\n');
	}
	vec_sort(out, by_address);
}

void places_release(struct places *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].name);
	vec_release(p);
}

const char *places_find(const struct places *p, uint64_t addr)
{
	size_t at = first_where(i, p->n, p->v[i].addr >= addr);

	return at < p->n && p->v[at].addr == addr ? p->v[at].name : NULL;
}
