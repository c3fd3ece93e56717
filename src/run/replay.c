/* SPDX-License-Identifier: MIT */
/* replay.c - rebuilds a stored case, and looks whether its problem shows again. */
#include "run/replay.h"

#include <errno.h>
#include <unistd.h>

#include "core/trace_file.h"
#include "run/bad_media.h"
#include "run/run_places.h"
#include "run/plan.h"

/* ---- what is stored ---- */

int replay_opts(const struct stored_case *c, struct run_opts *out, struct err *err)
{
	const struct guarantee *g = guarantee_find(c->guarantee);

	/* From an empty file system it would not show, and look as if it had been mended. */
	if (stored_case_has_start(c))
		return err_set(err, -EINVAL,
			       "%s begins with a disk that is not empty: see it with 'outage "
			       "replay'",
			       c->dir);
	if (!g)
		return err_set(err, -EINVAL, "%s: there is no guarantee '%.40s'", c->dir,
			       c->guarantee);
	if (c->model && !model_known(c->model, err))
		return err_context(err, "%s/case", c->dir);
	uint64_t modes = 0;
	if (c->crash && crashes_set_modes(&modes, c->crash, err))
		return err_context(err, "%s/case", c->dir);
	/* The kind is what is before the colon: the one that the run tried. */
	auto_free char *kind = c->media ? xmemdupz(c->media, strcspn(c->media, ":")) : NULL;
	unsigned media = 0;
	if (kind && media_parse_kinds(kind, &media, err))
		return err_context(err, "%s/case", c->dir);
	*out = (struct run_opts){
		.target = stored_case_target(c),
		.guarantee = g,
		.modes = c->crash ? (unsigned)modes : RUN_LAST, /* an exploration has none */
		.max_subset = (uint32_t)min(c->max_subset, (uint64_t)UINT32_MAX),
		.budget = c->crash ? c->budget : REPLAY_BUDGET,
		.seed = c->seed,
		.vary_all = c->prune && streq(c->prune, "none"),
		.lose_flush = c->lose_flush,
		.sector = (uint32_t)c->sector,
		.pm = stored_case_pm(c),
		.media = media,
		.media_max = c->media_max,
		.fault = c->media,
		.fsck = stored_case_uses_fsck(c),
		.dump = c->dump,
		.check = c->check,
		.ours = c->ours,
	};
	return 0;
}

int replay_trace(const struct stored_case *c, struct trace *out, struct err *err)
{
	return trace_load_below(c->at, "trace", out, err);
}

int replay_recovery(const struct stored_case *c, struct trace *out, struct err *err)
{
	return strchr(c->state, '/') ? trace_load_below(c->at, "recovery", out, err) : 0;
}

int replay_state(const struct stored_case *c, struct crash_state *out, struct err *err)
{
	auto_trace trace, recovery;
	auto_image base = IMAGE_INIT;
	auto_crash_state first = CRASH_STATE_INIT;
	struct pm_choice pm = stored_case_pm(c);
	bool second = strchr(c->state, '/');

	trace_init(&trace);
	trace_init(&recovery);
	if (stored_case_live(c))
		return err_set(err, -EINVAL, "%s was found before any crash: there is no state",
			       c->dir);
	if (c->model && !model_known(c->model, err))
		return err_context(err, "%s/case", c->dir);
	int rc = replay_trace(c, &trace, err);
	if (!rc)
		rc = stored_case_base(c, &base, err);
	if (!rc)
		rc = replay_recovery(c, &recovery, err);
	if (!rc)
		rc = run_rebuild(&pm, &trace, second ? &recovery : NULL, &base, c->state,
				 second ? &first : out, out, err);
	return rc || second || !c->media ? rc : bad_media_put(&trace, &base, c->media, out, err);
}

static void copy_without_head(const struct image *img, struct image *fs)
{
	static const unsigned char zeros[IMAGE_PAGE];
	unsigned char page[IMAGE_PAGE];

	image_init(fs, img->size - TARGET_NVDIMM_HEAD);
	for (uint64_t at = 0; at < fs->size; at += IMAGE_PAGE) {
		size_t n = (size_t)min(fs->size - at, (uint64_t)IMAGE_PAGE);

		image_read(img, TARGET_NVDIMM_HEAD + at, page, n);
		if (memcmp(page, zeros, n) != 0)
			image_write(fs, at, page, n);
	}
}

int replay_save_image(const struct stored_case *c, const char *dir, const char *name,
		      struct err *err)
{
	auto_crash_state state = CRASH_STATE_INIT;
	auto_image fs = IMAGE_INIT;
	int rc = replay_state(c, &state, err);

	if (rc)
		return rc;
	if (!c->guest_pm || !streq(c->guest_pm, "nvdimm") || state.image.size <= TARGET_NVDIMM_HEAD)
		return image_save_below(&state.image, dir, name, false, err);
	copy_without_head(&state.image, &fs);
	return image_save_below(&fs, dir, name, false, err);
}

/* False for a problem that was seen without a crash, or a hang: the trace does not show it. */
bool replay_from_trace(const struct stored_case *c)
{
	return !stored_case_live(c);
}

/* ---- trying it ---- */

void replay_add_findings(const struct findings *from, struct findings *to)
{
	vec_each(f, from)
		findings_add(to, f->kind, xstrdup(f->path), xstrdup(f->words), xstrdup(f->promise));
}

bool replay_has_kind(const struct findings *list, enum finding_kind kind)
{
	return any_of(i, list->n, list->v[i].kind == kind);
}

void replay_result_release(struct replay_result *r)
{
	findings_release(&r->problems);
	strbuf_release(&r->state);
}

struct watcher {
	enum finding_kind kind;
	struct replay_result *result;
};

/* Once it shows, there is no more to do: -ECANCELED ends the run. */
static int on_found(void *ctx, const struct run_case *c, struct err *err)
{
	struct watcher *w = ctx;

	(void)err;
	findings_clear(&w->result->problems);
	replay_add_findings(c->findings, &w->result->problems);
	strbuf_clear(&w->result->state);
	strbuf_adds(&w->result->state, c->state ? strbuf_str(&c->state->id) : "live");
	if (c->second)
		strbuf_addf(&w->result->state, "/%s", strbuf_str(&c->second->id));
	w->result->shown = replay_has_kind(c->findings, w->kind);
	return w->result->shown ? -ECANCELED : 0;
}

static int try_stored(struct run *run, const struct stored_case *c,
		      const struct run_reporter *reporter, struct run_totals *totals,
		      struct err *err)
{
	auto_trace trace, recovery;
	auto_image base = IMAGE_INIT;
	auto_strbuf names = STRBUF_INIT;
	auto_call(places_release) struct places places = { 0 };

	trace_init(&trace);
	trace_init(&recovery);
	int rc = replay_trace(c, &trace, err);
	if (!rc)
		rc = replay_recovery(c, &recovery, err);
	if (!rc)
		rc = stored_case_base(c, &base, err);
	if (!rc && base.size != c->size)
		rc = err_set(err, -EINVAL, "%s/%s has %llu bytes; the disk had %llu", c->dir,
			     c->base, llu(base.size), llu(c->size));
	if (!rc)
		rc = store_text(c, "places", &names, err);
	places_parse(strbuf_str(&names), &places);
	return rc ? rc
		  : run_replay(run, &c->workload, &trace, strchr(c->state, '/') ? &recovery : NULL,
			       &places, &base, c->state, reporter, totals, err);
}

int replay_case(const struct stored_case *c, bool rerun, struct replay_result *out, struct err *err)
{
	struct replay_result made = { 0 };
	struct watcher watcher = { stored_case_first(c)->kind, &made };
	struct run_reporter reporter = { .found = on_found, .ctx = &watcher };
	struct run_opts opts;
	struct run *run = NULL;
	int rc = replay_opts(c, &opts, err);

	if (!rc)
		rc = run_open(&opts, &run, err);
	if (!rc)
		rc = rerun ? run_workload(run, &c->workload, &reporter, &made.totals, err)
			   : try_stored(run, c, &reporter, &made.totals, err);
	run_close(run);
	if (rc == -ECANCELED && made.shown)
		rc = 0;
	if (rc)
		replay_result_release(&made);
	else
		*out = made;
	return rc;
}
