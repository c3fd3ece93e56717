/* SPDX-License-Identifier: MIT */
/* crashes.c - which crashes are tried, as options set it and records have it. */
#include "run/crashes.h"

#include <errno.h>

static const struct record_field modes_field = { .key = { "crash", TRUST_HARMLESS },
						 .kind = RECORD_SET,
						 .words = RUN_MODE_WORDS };

void crashes_print_modes(uint64_t modes, struct strbuf *out)
{
	record_put(&modes_field, &modes, out);
}

int crashes_set_modes(void *member, const char *value, struct err *err)
{
	uint64_t more = 0, *to = member;
	int rc = record_set(&modes_field, &more, value, err);

	*to |= more;
	return rc || more ? rc : err_set(err, -EINVAL, "crash is one of " RUN_MODE_WORDS);
}

int crashes_set_model(void *member, const char *value, struct err *err)
{
	char **to = member;

	free(*to);
	*to = xstrdup(value);
	return model_known(value, err) ? 0 : -EINVAL;
}

/* Refuses the options for persistent memory that the target cannot have. */
static int complete_pm(const struct crashes *c, const struct target_ops *target, struct err *err)
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
			       llu(c->granularity));
	if (c->prune == CRASH_PRUNE_READS && !target->pm_loads)
		return err_set(err, -EINVAL,
			       "--prune reads is not available for %s: what it reads of its "
			       "memory is not seen; leave it out",
			       target->name);
	return 0;
}

/* The bytes that a disk writes as a whole are a sector of 512, or up to eight of them. */
static int check_sector(uint64_t bytes, const struct target_ops *target, struct err *err)
{
	if (bytes && target->pm)
		return err_set(err, -EINVAL,
			       "--sector is for disks; %s is persistent memory, where a "
			       "processor writes 8 bytes as a whole",
			       target->name);
	if (bytes && (bytes < CRASH_SECTOR_MIN || bytes > CRASH_SECTOR || (bytes & (bytes - 1))))
		return err_set(err, -EINVAL, "--sector is 512, 1024, 2048 or 4096, not %llu",
			       llu(bytes));
	return 0;
}

int crashes_complete(struct crashes *c, const struct target_ops *target, struct err *err)
{
	int rc = complete_pm(c, target, err);

	if (rc)
		return rc;
	if (c->lose_flush && !(c->modes & (RUN_REORDER | RUN_TORN)))
		return err_set(err, -EINVAL,
			       "--lose-flush needs --crash reorder: where all completed writes "
			       "survive, no flush is missed");
	rc = check_sector(c->sector, target, err);
	if (rc)
		return rc;
	if (c->sector && !(c->modes & RUN_TORN))
		return err_set(err, -EINVAL,
			       "--sector needs --crash torn: without it, no write is torn");
	if (target->coarse && c->modes & RUN_TORN)
		return err_set(err, -EINVAL,
			       "the writes of %s are seen only between operations, so none of them "
			       "can be torn; give --crash without torn",
			       target->name);
	/* In persistent memory, seeing what is read takes longer than trying a few states more. */
	if (c->prune == CRASH_PRUNE_UNSAID)
		c->prune = target->pm ? CRASH_PRUNE_NONE : CRASH_PRUNE_READS;
	return 0;
}

void crashes_opts(const struct crashes *c, struct run_opts *out)
{
	struct err ignored = ERR_INIT; /* checked when the plan was completed */

	out->modes = (unsigned)c->modes;
	out->max_subset = (uint32_t)min(c->max_subset, (uint64_t)UINT32_MAX);
	out->budget = c->budget;
	out->vary_all = c->prune == CRASH_PRUNE_NONE;
	out->lose_flush = c->lose_flush;
	out->sector = (uint32_t)c->sector;
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
