/* SPDX-License-Identifier: MIT */
#include "cli/guest_opts.h"

#include <errno.h>

#include "base/number.h"
#include "target/target.h"

static int take_path(char **to, const char *arg, struct err *err)
{
	char *path = realpath(arg, NULL);

	if (!path)
		return err_set(err, -errno, "cannot find %s: %m", arg);
	free(*to);
	*to = path;
	return 0;
}

int guest_opts_take(struct guest_opts *g, int opt, const char *arg, struct err *err)
{
	switch (opt) {
	case OPT_GUEST_KERNEL:
		return take_path(&g->kernel, arg, err);
	case OPT_GUEST_MODULES:
		return take_path(&g->modules, arg, err);
	case OPT_GUEST_MEMORY:
		return number_parse_size(arg, &g->memory, err);
	}
	return 1;
}

int guest_opts_apply(struct guest_opts *g, struct stored_case *c, struct err *err)
{
	struct err ignored = ERR_INIT;
	const struct target_ops *target = target_find(c->target, &ignored);

	if (!g->kernel && !g->modules && !g->memory)
		return 0;
	if (!target || !target->far)
		return err_set(err, -EINVAL,
			       "--kernel, --modules and --guest-memory are for findings of uml: "
			       "and vm: targets; this one is of %s",
			       c->target);
	if (g->kernel) {
		free(c->guest_kernel);
		c->guest_kernel = steal(g->kernel);
		/* Another kernel's modules are not its own. */
		free(c->guest_modules);
		c->guest_modules = NULL;
	}
	if (g->modules) {
		free(c->guest_modules);
		c->guest_modules = steal(g->modules);
	}
	if (g->memory)
		c->guest_memory = g->memory;
	return 0;
}

void guest_opts_release(struct guest_opts *g)
{
	free(g->kernel);
	free(g->modules);
	*g = (struct guest_opts){ 0 };
}

int guest_opts_compare(const struct stored_case *c, struct strbuf *out, struct err *err)
{
	struct target_opts opts = { .spec = c->target,
				    .mkfs_args = c->mkfs,
				    .kernel = c->guest_kernel,
				    .guest_files = c->guest_files,
				    .guest_memory = c->guest_memory };
	int rc = target_check(&opts, err);

	if (rc)
		return rc;
	auto_free char *now = target_kernel(&opts), *file = target_kernel_hash(&opts);
	auto_free char *files = target_files_hash(&opts);

	if (c->kernel && !streq(c->kernel, now))
		strbuf_addf(out, "it was found on Linux %s, and this is %s", c->kernel, now);
	else if (c->guest_kernel_hash && file && !streq(c->guest_kernel_hash, file))
		strbuf_addf(out, "it was found on another kernel of the same release, %s", now);
	else if (c->guest_files_hash && files && !streq(c->guest_files_hash, files))
		strbuf_adds(out, "it was found with other files in the guest (--guest-file): what "
				 "they hold has changed");
	return 0;
}
