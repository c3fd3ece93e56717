/* SPDX-License-Identifier: MIT */
/* guest_opts.c - another kernel under a finding. */
#include "run/guest_opts.h"

#include <errno.h>

#include "target/target.h"

static void replace(char **to, const char *with)
{
	free(*to);
	*to = stored_own(with);
}

int guest_opts_apply(const struct target_opts *given, struct stored_case *c, struct err *err)
{
	struct err ignored = ERR_INIT;
	const struct target_ops *target = target_find(c->target, &ignored);

	if (!given->guest_kernel && !given->guest_modules && !given->guest_memory)
		return 0;
	if (!target || !target->far)
		return err_set(err, -EINVAL,
			       "--kernel, --modules and --guest-memory are for findings of uml: "
			       "and vm: targets; this one is of %s",
			       c->target);
	if (given->guest_kernel)
		replace(&c->guest_kernel, given->guest_kernel);
	/* Another kernel's modules are not its own. */
	if (given->guest_kernel || given->guest_modules)
		replace(&c->guest_modules, given->guest_modules);
	if (given->guest_memory)
		c->guest_memory = given->guest_memory;
	return 0;
}

int guest_opts_compare(const struct stored_case *c, struct strbuf *out, struct err *err)
{
	struct target_opts opts = stored_case_target(c);
	struct err ignored = ERR_INIT;

	/* An exploration also compares what is no target: the reference, or what others mount. */
	if (c->explored && !target_find(c->target, &ignored))
		return 0;
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
