/* SPDX-License-Identifier: MIT */
/* crashes.c - which crashes are tried, as options set it and records have it. */
#include "run/crashes.h"

#include <errno.h>

static const struct {
	const char *name;
	unsigned mode;
} mode_names[] = {
	{ "persist", RUN_PERSIST }, { "last", RUN_LAST }, { "prefix", RUN_PREFIX },
	{ "reorder", RUN_REORDER }, { "torn", RUN_TORN }, { "recovery", RUN_RECOVERY },
};

void crashes_put_modes(const void *member, struct strbuf *out)
{
	uint64_t modes = *(const uint64_t *)member;
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(mode_names); i++)
		if (modes & mode_names[i].mode) {
			strbuf_addf(out, "%s%s", any ? "," : "", mode_names[i].name);
			any = true;
		}
}

int crashes_set_modes(void *member, const char *value, struct err *err)
{
	auto_free char *copy = xstrdup(value);
	uint64_t *out = member;
	char *rest = copy;

	for (char *one; (one = strsep(&rest, ","));) {
		size_t i = 0;

		while (i < ARRAY_SIZE(mode_names) && !streq(mode_names[i].name, one))
			i++;
		if (i == ARRAY_SIZE(mode_names))
			return err_set(
				err, -EINVAL,
				"'%.40s' is none of persist, last, prefix, reorder, torn, recovery",
				one);
		*out |= mode_names[i].mode;
	}
	return 0;
}

int crashes_set_prune(void *member, const char *value, struct err *err)
{
	*(bool *)member = streq(value, "none");
	return streq(value, "none") || streq(value, "reads")
		       ? 0
		       : err_set(err, -EINVAL, "--prune is reads or none, not '%.40s'", value);
}

void crashes_put_prune(const void *member, struct strbuf *out)
{
	strbuf_adds(out, *(const bool *)member ? "none" : "reads");
}

int crashes_set_model(void *member, const char *value, struct err *err)
{
	char **to = member;

	free(*to);
	*to = xstrdup(value);
	return model_known(value, err) ? 0 : -EINVAL;
}

/* Completes the options for persistent memory; refuses those that the target cannot have. */
static int complete_pm(struct crashes *c, const struct target_ops *target, bool pruned,
		       struct err *err)
{
	if (c->model && model_find(c->model)->pm != target->pm)
		return err_set(err, -EINVAL, "--model %s is for %s; %s has %s", c->model,
			       target->pm ? "a disk" : "persistent memory", target->name,
			       target->pm ? "persistent memory" : "a disk");
	if (c->model && c->eadr)
		return err_set(err, -EINVAL, "--eadr is a model: give it or --model, not both");
	if (!target->pm) {
		if (c->dump)
			return err_set(err, -EINVAL,
				       "--dump is for persistent memory, where the states of an "
				       "operation are compared; %s has a disk: use --check",
				       target->name);
		if (c->eadr || c->split || c->granularity || c->media)
			return err_set(err, -EINVAL, "--%s is for persistent memory; %s has a disk",
				       c->eadr	  ? "eadr"
				       : c->split ? "split"
				       : c->media ? "media"
						  : "granularity",
				       target->name);
		return 0;
	}
	unsigned kinds;
	int rc = c->media ? media_parse_kinds(c->media, &kinds, err) : 0;
	if (rc)
		return rc;
	if (c->granularity && c->granularity != PM_ATOMIC && c->granularity != PM_LINE)
		return err_set(err, -EINVAL, "--granularity is 8 or 64, not %llu",
			       (unsigned long long)c->granularity);
	if (pruned && !c->vary_all && !target->pm_loads)
		return err_set(err, -EINVAL,
			       "--prune reads is not available for %s: what it reads of its "
			       "memory is not seen; leave it out",
			       target->name);
	/* Seeing what is read takes longer than trying a few states more. */
	if (!pruned)
		c->vary_all = true;
	return 0;
}

int crashes_complete(struct crashes *c, const struct target_ops *target, bool pruned,
		     struct err *err)
{
	if (c->lose_flush && !(c->modes & (RUN_REORDER | RUN_TORN)))
		return err_set(err, -EINVAL,
			       "--lose-flush needs --crash reorder: where all completed writes "
			       "survive, no flush is missed");
	if (target->coarse && c->modes & RUN_TORN)
		return err_set(err, -EINVAL,
			       "the writes of %s are seen only between operations, so none of them "
			       "can be torn; give --crash without torn",
			       target->name);
	return complete_pm(c, target, pruned, err);
}

void crashes_opts(const struct crashes *c, struct run_opts *out)
{
	struct err ignored = ERR_INIT; /* checked when the plan was completed */

	out->modes = (unsigned)c->modes;
	out->max_subset = (uint32_t)min(c->max_subset, (uint64_t)UINT32_MAX);
	out->budget = c->budget;
	out->vary_all = c->vary_all;
	out->lose_flush = c->lose_flush;
	out->pm = (struct pm_choice){ .model = c->model ? model_find(c->model) : NULL,
				      .eadr = c->eadr,
				      .split = c->split,
				      .granularity = c->granularity };
	if (!c->media || media_parse_kinds(c->media, &out->media, &ignored))
		out->media = 0;
	out->media_max = c->media_max;
	out->fsck = c->fsck;
	out->dump = c->dump;
	out->check = c->check;
	out->paranoid = c->paranoid;
}
