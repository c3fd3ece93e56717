/* SPDX-License-Identifier: MIT */
/* times.c - compares the times of files with those that the history allows. */
#include "check/times.h"

#include <inttypes.h>

enum { SLACK = 600 }; /* seconds that an operation may take */

static bool same_time(struct tree_time a, struct tree_time b)
{
	return a.sec == b.sec && a.nsec == b.nsec;
}

static void print_time(struct tree_time t, struct strbuf *out)
{
	strbuf_addf(out, "%" PRId64 ".%09" PRIu32, t.sec, t.nsec);
}

/* Returns the only inode that a path has ever had; 0: none, or several. */
static uint64_t only_inode(struct op_history *h, size_t last, const char *path)
{
	const struct op_name *name = op_names_find(op_history_names(h), path);
	uint64_t ino = *path ? 0 : REFFS_ROOT_INO;

	for (size_t i = 0; name && i < op_name_span(name, last) + 1; i++) {
		uint64_t there = name->spans.v[i].ino;

		if (there && ino && there != ino)
			return 0;
		ino = there ? there : ino;
	}
	return ino;
}

struct context {
	const struct promises *p;
	const struct check_times_list *had;
	int64_t clock;
	struct findings *out;
};

static struct tree_time pick(const struct check_times *x, bool ctime)
{
	return ctime ? x->ctime : x->mtime;
}

/* True if T1 or T2 allows a time. An inode that was not seen on the live target is not judged. */
static bool is_allowed(const struct context *c, uint64_t ino, size_t from, bool ctime,
		       struct tree_time t)
{
	bool known = false;

	vec_each(x, c->had) {
		if (x->ino != ino || x->state < from || x->state > c->p->last)
			continue;
		known |= x->state == from;
		if (same_time(pick(x, ctime), t))
			return true;
	}
	if (!known)
		return true;
	if (c->p->last == from)
		return false;
	return t.sec == c->clock || (t.sec > c->clock + (int64_t)from &&
				     t.sec <= c->clock + (int64_t)c->p->last + SLACK);
}

static void tell(const struct context *c, const char *path, uint64_t ino, bool ctime,
		 struct tree_time t, const struct promise *why)
{
	struct strbuf words = { 0 };

	strbuf_addf(&words, "%s: %s is ", *path ? path : ".", ctime ? "ctime" : "mtime");
	print_time(t, &words);
	for (size_t i = 0; i < c->had->n; i++)
		if (c->had->v[i].ino == ino && c->had->v[i].state == why->state) {
			strbuf_adds(&words, ", was ");
			print_time(pick(&c->had->v[i], ctime), &words);
		}
	findings_add(c->out, FINDING_TIME, xstrdup(path), strbuf_detach(&words),
		     promise_words(c->p, why));
}

void check_times(const struct promises *p, const struct tree *seen,
		 const struct check_stamp *stamps, const struct check_times_list *had,
		 int64_t clock, struct findings *out)
{
	struct context c = { p, had, clock, out };

	for (size_t i = 0; i < seen->entries.n; i++) {
		const struct tree_entry *e = &seen->entries.v[i];
		uint64_t ino = e->error ? 0 : only_inode(p->h, p->last, e->path);
		const struct promise *why = ino ? promise_for_attributes(p, ino) : NULL;

		for (int k = 0; why && stamps[i].known && k < 2; k++) {
			struct tree_time t = k ? stamps[i].ctime : stamps[i].mtime;

			if (!is_allowed(&c, ino, why->state, k, t))
				tell(&c, e->path, ino, k, t, why);
		}
	}
}

struct hash128 check_times_hash(struct hash128 state, const struct tree *seen,
				const struct check_stamp *stamps, int64_t clock)
{
	auto_strbuf text = STRBUF_INIT;

	strbuf_add(&text, &state, sizeof(state));
	for (size_t i = 0; i < seen->entries.n; i++) {
		struct tree_time both[] = { stamps[i].mtime, stamps[i].ctime };

		for (size_t k = 0; k < ARRAY_SIZE(both); k++)
			strbuf_addf(&text, "%" PRId64 ".%" PRIu32 " ", both[k].sec,
				    both[k].sec == clock ? 0 : both[k].nsec);
	}
	return hash_bytes(strbuf_str(&text), text.len);
}

void check_times_difference(struct op_history *h, size_t state, const struct tree *seen,
			    const struct check_stamp *stamps, const struct check_times_list *had,
			    const char *word, struct strbuf *out)
{
	for (size_t i = 0; i < seen->entries.n; i++) {
		const char *path = seen->entries.v[i].path;
		uint64_t ino = op_history_ino(h, state, path);

		for (size_t k = 0; stamps[i].known && k < had->n; k++) {
			const struct check_times *x = &had->v[k];
			bool ctime = same_time(x->mtime, stamps[i].mtime);

			if (x->state != state || x->ino != ino ||
			    (ctime && same_time(x->ctime, stamps[i].ctime)))
				continue;
			strbuf_addf(out, "; unlike %s: %s: %s is ", word, *path ? path : ".",
				    ctime ? "ctime" : "mtime");
			print_time(ctime ? stamps[i].ctime : stamps[i].mtime, out);
			strbuf_adds(out, ", was ");
			print_time(pick(x, ctime), out);
			return;
		}
	}
}
