/* SPDX-License-Identifier: MIT */
/* earlier.c - reads the cases that an interrupted run kept; see earlier.h. */
#include "run/earlier.h"

#include "base/below.h"
#include "run/store.h"

/* Reads what a case says of itself; nothing of one that cannot be read. */
static void read_case(const char *run, const char *name, struct earlier_case *e)
{
	auto_free char *dir = xasprintf("%s/findings/%s", run, name);
	struct stored_case c;
	struct err ignored = ERR_INIT;

	if (store_load(dir, &c, &ignored))
		return;
	auto_free char *cluster = stored_case_cluster(&c);
	e->id = store_id(c.state, c.media);
	e->what = (struct progress_cluster){ .count = 1, .kept = 1 };
	snprintf(e->what.name, sizeof(e->what.name), "%s", cluster);
	snprintf(e->what.words, sizeof(e->what.words), "%s", stored_case_first(&c)->words);
	for (size_t i = 0; i < c.problems.n; i++)
		e->what.kinds |= 1U << c.problems.v[i].kind;
	stored_case_release(&c);
}

int earlier_load(const char *run, const struct progress *p, struct earlier *out, struct err *err)
{
	auto_words names = { 0 };
	int rc = below_list(run, "findings", &names, err);

	for (size_t i = 0; i < names.n && !rc; i++) {
		unsigned long long workload, number;
		char more;

		if (sscanf(names.v[i], "%llu-%llu%c", &workload, &number, &more) != 2 ||
		    progress_has(p, workload))
			continue;
		struct earlier_case e = { .workload = workload, .number = number };
		read_case(run, names.v[i], &e);
		vec_push(out, e);
	}
	return rc;
}

void earlier_release(struct earlier *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->v[i].id);
	vec_release(e);
}

static struct earlier_case *find(struct earlier *e, uint64_t workload, uint64_t number)
{
	return vec_find(i, e, e->v[i].workload == workload && e->v[i].number == number);
}

uint64_t earlier_number(struct earlier *e, uint64_t workload, const char *cluster, const char *id,
			uint64_t *next, bool *same)
{
	struct earlier_case *c = vec_find(i, e,
					  e->v[i].workload == workload && !e->v[i].again &&
						  e->v[i].id && streq(e->v[i].id, id) &&
						  streq(e->v[i].what.name, cluster));

	*same = c;
	if (c) {
		c->again = true;
		*next = max(*next, c->number + 1);
		return c->number;
	}
	while (find(e, workload, *next))
		++*next;
	return (*next)++;
}

void earlier_again(struct earlier *e, uint64_t workload, uint64_t number)
{
	struct earlier_case *c = find(e, workload, number);

	if (c)
		c->again = true;
}
