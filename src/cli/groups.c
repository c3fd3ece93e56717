/* SPDX-License-Identifier: MIT */
/* groups.c - tables of options that several commands have. */
#include "cli/groups.h"

#include <errno.h>

#include "check/guarantee.h"
#include "fs/profile.h"
#include "target/guest_files.h"
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
	{ OPT_TEXT, "modules", 0, "DIR", .rare = true, AT(modules), .hint = HINT_DIR,
	  .normal = opt_existing_path, .help = "the folder of its modules" },
	{ OPT_SIZE, "guest-memory", 0, "SIZE", .rare = true, AT(guest_memory),
	  .help = "what it has; default: 160M for uml:, 256M for vm:" },
	OPT_END
};
#undef AT

#define AT(member) OPT_AT(struct target_line, member)

const struct opt target_options[] = {
	{ OPT_TEXT, "mkfs", 0, "ARGS", AT(o.mkfs_args),
	  .help = "more arguments for mkfs; for fuse: and vm:pm the command, with {disk}; for "
		  "vm:pm "
		  "also mount:OPTIONS of a mount that makes it" },
	{ OPT_TEXT, "recover", 0, "CMD", .rare = true, AT(o.recover),
	  .help = "fuse: the command that recovers {disk} before it is mounted" },
	{ OPT_SIZE, "size", 0, "BYTES", .rare = true, AT(o.size), .help = "of the disk" },
	{ OPT_TEXT, "recorder", 0, "NAME", AT(o.recorder), .words = "bpf fuse", .rare = true,
	  .help = "bpf or fuse; default: the best that works here" },
	{ OPT_TEXT, "mount-options", 0, "OPTIONS", .rare = true, AT(mount_options),
	  .help = "as after the comma of the target" },
	{ OPT_TEXT, "fstype", 0, "NAME", AT(fstype), .rare = true,
	  .help = "of any file system on persistent memory (-t vm:pm)" },
	{ OPT_LINES, "guest-file", 0, "HOST[:GUEST]", AT(o.guest_files), .hint = HINT_FILE,
	  .normal = guest_file_name, .rare = true,
	  .help = "uml:, vm: a file for the guest, such as a program for its commands, linked "
		  "statically; default place: /bin/NAME" },
	{ OPT_TEXT, "guest-cpu", 0, "N,FLUSH", AT(o.guest_cpu), .rare = true,
	  .help = "vm: how many processors, and what they flush their caches with: clwb, "
		  "clflushopt or clflush; default: 1,clwb" },
	{ OPT_TEXT, "guest-pm", 0, "HOW", AT(o.guest_pm), .words = "e820 nvdimm", .rare = true,
	  .help = "vm: persistent memory is e820, a range that the kernel is told of, or nvdimm, a "
		  "device; default: e820" },
	{ OPT_FLAG, "deterministic", 0, NULL, AT(o.deterministic), .rare = true,
	  .help = "vm: count time in instructions, so that runs are alike" },
	OPT_END
};

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
