/* SPDX-License-Identifier: MIT */
#include "cli/explore_kept.h"

#include <stdio.h>

#include "base/json.h"
#include "cli/cli.h"
#include "explore/keep.h"
#include "explore/overlap.h"

/* ---- a finding ---- */

/* `references` has SIDES_MAX places. */
static void sides_of_case(const struct stored_case *c, struct target_opts *references,
			  struct explore_opts *o)
{
	o->specs[0] = c->target;
	o->n_specs = 1;
	for (size_t i = 0; i < c->references.n && o->n_specs < SIDES_MAX; i++) {
		const struct stored_reference *r = &c->references.v[i];

		references[o->n_specs] = (struct target_opts){
#define TARGET_OPTION(member, ...) .member = r->member,
#define GUEST_OPTION		   TARGET_OPTION
#include "target/options.def"
		};
		o->specs[o->n_specs++] = r->spec;
	}
	o->sides.references = references;
#define TARGET_OPTION(member, ...) o->sides.target.member = c->member;
#define GUEST_OPTION		   TARGET_OPTION
#include "target/options.def"
}

int explore_again(void *ctx)
{
	struct explore_again *a = ctx;
	struct target_opts references[SIDES_MAX] = { 0 };
	struct kept_case c;
	struct step_result result = { 0 };
	auto_strbuf log = STRBUF_INIT;
	struct err err = ERR_INIT;
	const struct image *start[SIDES_MAX] = { NULL };
	unsigned shown = 0;
	int rc = kept_load(a->dir, &c, &err);

	if (rc)
		return cli_fail(&err);
	sides_of_case(&c.c, references, a->opts);
	for (unsigned i = 0; i < SIDES_MAX; i++)
		start[i] = c.starts[i] ? &c.start[i] : NULL;
	rc = store_trust(&c.c, &c.script.w, a->trust, &err);
	if (!rc)
		rc = explore_replay(a->opts, &c.script, start, c.c.signature, 3, &shown, &result,
				    &log, &err);
	if (!rc) {
		fputs(strbuf_str(&log), stdout);
		for (size_t i = 0; i < result.findings.n; i++)
			printf("found  %s\n", result.findings.v[i].words);
		printf("shown %u of 3 times\n", shown);
	}
	step_result_release(&result);
	kept_release(&c);
	return rc ? cli_fail(&err) : shown ? EXIT_FINDINGS : EXIT_OK;
}

/* ---- runs ---- */

static void show_overlap(char *const *runs, size_t n, const uint64_t *states,
			 const struct overlap *o)
{
	for (size_t i = 0; i < n; i++)
		printf("%s: %llu states\n", runs[i], (unsigned long long)states[i]);
	printf("%llu distinct states, %llu of them (%.1f %%) visited by more than one run\n",
	       (unsigned long long)o->distinct, (unsigned long long)o->overlapped,
	       o->distinct ? 100.0 * (double)o->overlapped / (double)o->distinct : 0);
	if (o->by_bits)
		printf("%llu more are known by bits only, and not compared; see --memory\n",
		       (unsigned long long)o->by_bits);
}

static void show_overlap_json(char *const *runs, size_t n, const uint64_t *states,
			      const struct overlap *o)
{
	auto_strbuf text = STRBUF_INIT;
	struct json j;

	json_init(&j, &text, true);
	json_object(&j);
	json_key(&j, "runs");
	json_array(&j);
	for (size_t i = 0; i < n; i++) {
		json_object(&j);
		json_kv_string(&j, "run", runs[i]);
		json_kv_uint(&j, "states", states[i]);
		json_end(&j);
	}
	json_end(&j);
	json_kv_uint(&j, "distinct_states", o->distinct);
	json_kv_uint(&j, "overlap_states", o->overlapped);
	json_kv_double(&j, "overlap",
		       o->distinct ? (double)o->overlapped / (double)o->distinct : 0);
	json_kv_uint(&j, "not_compared", o->by_bits);
	json_end(&j);
	puts(strbuf_str(&text));
}

int explore_overlap(char *const *runs, bool json)
{
	struct err err = ERR_INIT;
	struct overlap o;
	size_t n = 0;

	while (runs[n])
		n++;
	auto_free uint64_t *states = xcalloc(n, sizeof(*states));
	if (overlap_of_runs(runs, n, states, &o, &err))
		return cli_fail(&err);
	if (json)
		show_overlap_json(runs, n, states, &o);
	else
		show_overlap(runs, n, states, &o);
	return EXIT_OK;
}
