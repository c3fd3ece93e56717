/* SPDX-License-Identifier: MIT */
/* groups.c - tables of options that several commands have. */
#include "cli/groups.h"

#include <errno.h>

#include "check/guarantee.h"
#include "core/model.h"
#include "fs/profile.h"
#include "guest/guest_files.h"
#include "workload/bounds.h"

static void add_word(struct strbuf *out, const char *word)
{
	strbuf_addf(out, "%s%s", out->len ? " " : "", word);
}

void list_bounds(struct strbuf *out)
{
	for (const struct bounds_set *set = bounds_sets; set->name; set++)
		add_word(out, set->name);
}

void list_profiles(struct strbuf *out)
{
	for (size_t i = 0; profile_at(i); i++)
		add_word(out, profile_at(i)->name);
}

void list_guarantees(struct strbuf *out)
{
	for (const struct guarantee *g = guarantees; g->name; g++)
		add_word(out, g->name);
}

void list_targets(struct strbuf *out)
{
	for (size_t i = 0; targets[i]; i++)
		add_word(out, targets[i]->name);
}

void list_models(struct strbuf *out)
{
	for (size_t i = 0; model_at(i); i++)
		add_word(out, model_at(i)->name);
}

void list_pm_models(struct strbuf *out)
{
	for (size_t i = 0; model_at(i); i++)
		if (model_at(i)->pm)
			add_word(out, model_at(i)->name);
}

/* An entry of options.def, for a member of that struct. */
#define ENTRY(type, member, kind, name, arg, words, ...)                                           \
	{ OPT_##kind, name, 0, arg, OPT_AT(type, member), .help = words, ##__VA_ARGS__ },

const struct opt guest_options[] = { { OPT_SECTION, .help = "The guest, of uml: and vm: targets" },
#define TARGET_OPTION(...)
#define GUEST_OPTION(member, kind, leads, key, name, arg, ...)                                     \
	ENTRY(struct target_opts, member, kind, name, arg, __VA_ARGS__)
#include "target/options.def"
				     OPT_END };

const struct opt target_options[] = {
#define TARGET_OPTION(member, kind, leads, key, name, arg, ...)                                    \
	ENTRY(struct target_line, o.member, kind, name, arg, __VA_ARGS__)
#define GUEST_OPTION(...)
#include "target/options.def"
	{ OPT_TEXT, "recorder", 0, "NAME", OPT_AT(struct target_line, o.recorder),
	  .words = "bpf fuse", .rare = true,
	  .help = "bpf or fuse; default: the best that works here" },
	{ OPT_TEXT, "mount-options", 0, "OPTIONS", OPT_AT(struct target_line, mount_options),
	  .rare = true, .help = "as after the comma of the target" },
	{ OPT_TEXT, "fstype", 0, "NAME", OPT_AT(struct target_line, fstype), .rare = true,
	  .help = "of any file system on persistent memory (-t vm:pm)" },
	OPT_END
};

bool target_line_take(struct target_line *t, const struct opt *o, const char *arg)
{
	const char **to = streq(o->name, "fstype")	    ? &t->fstype
			  : streq(o->name, "mount-options") ? &t->mount_options
							    : NULL;

	if (to)
		*to = arg;
	return to;
}

int target_line_name(const struct target_line *t, const char *spec, char **out, struct err *err)
{
	const char *target = spec ? spec : t->fstype ? "vm:pm" : NULL;

	*out = NULL;
	if (!t->fstype && !t->mount_options)
		return 0;
	if (t->fstype && (!streq(target, "vm:pm") || !*t->fstype || strpbrk(t->fstype, ",:")))
		return err_set(err, -EINVAL,
			       "--fstype is one name of a file system, for -t vm:pm; not '%.40s' "
			       "with -t %.40s",
			       t->fstype, target);
	if (!target)
		return err_set(err, -EINVAL, "--mount-options is for a target: name it with -t");
	*out = xasprintf("%s%s%s%s%s", target, t->fstype ? ":" : "", t->fstype ? t->fstype : "",
			 t->mount_options ? "," : "", t->mount_options ? t->mount_options : "");
	return 0;
}
