/* SPDX-License-Identifier: MIT */
/* groups.c - tables of options that several commands have. */
#include "cli/groups.h"

#include "check/guarantee.h"
#include "fs/profile.h"
#include "target/target.h"
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

#define AT(member) OPT_AT(struct target_opts, member)

const struct opt guest_options[] = {
	{ OPT_SECTION, .help = "The guest, of uml: and vm: targets" },
	{ OPT_TEXT, "kernel", 0, "FILE", AT(kernel), .hint = HINT_FILE, .normal = opt_existing_path,
	  .help = "its kernel; default: linux.uml, for vm: Debian's, fetched with apt-get" },
	{ OPT_TEXT, "modules", 0, "DIR", AT(modules), .hint = HINT_DIR, .normal = opt_existing_path,
	  .help = "the folder of its modules" },
	{ OPT_SIZE, "guest-memory", 0, "SIZE", AT(guest_memory),
	  .help = "what it has; default: 160M for uml:, 256M for vm:" },
	OPT_END
};
