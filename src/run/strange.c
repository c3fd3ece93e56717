/* SPDX-License-Identifier: MIT */
/* strange.c - tells what a stranger's target would do on this machine, and refuses it. */
#include "run/strange.h"

#include "target/target.h"

enum { SHOWN = 80 };

/* The target, if this machine's kernel mounts it; NULL: a guest's, a server, or none. */
static const struct target_ops *host_target(const char *spec)
{
	struct err ignored = ERR_INIT;
	const struct target_ops *t = target_find(spec, &ignored);

	return t && !t->far && t != &target_fuse ? t : NULL;
}

void strange_target(const char *spec, bool disk, struct strbuf *would)
{
	static const char own[] = "reffs"; /* the reference file system, in this process */
	static const char again[] = "and so those of references";
	const struct target_ops *host = host_target(spec);
	const char *command = strchr(spec, ':'), *options = strchr(spec, ',');
	struct err ignored = ERR_INIT;
	const struct target_ops *t = target_find(spec, &ignored);
	size_t n = strcspn(spec, ",:");

	if ((t && t->far) || (!t && n == strlen(own) && strncmp(spec, own, n) == 0))
		return;
	if (!host) {
		/* A server, or an unknown target: then all of it is told. */
		trust_would((struct trust_key){ "target", TRUST_COMMAND },
			    command ? command + 1 : spec, would);
		return;
	}
	auto_free char *mounts = xasprintf("have %s mounted by this machine's kernel%s%.*s%s",
					   disk ? "its disk" : "disks",
					   options ? " with the options '" : "", SHOWN,
					   options ? options + 1 : "", options ? "'" : "");
	if (!strstr(strbuf_str(would), mounts))
		trust_would_also(would, "%s", mounts);
	else if (!strstr(strbuf_str(would), again))
		trust_would_also(would, "%s", again);
}

/* Whether that the kernel mounts something is all that it would do. */
static bool only_mounts(const char *spec, const struct strbuf *would)
{
	for (int disk = 0; disk < 2; disk++) {
		auto_strbuf alone = STRBUF_INIT;

		strange_target(spec, disk, &alone);
		if (streq(strbuf_str(&alone), strbuf_str(would)))
			return true;
	}
	return false;
}

int strange_refuse(const char *dir, const char *file, const char *spec, const struct err *why,
		   const struct strbuf *would, struct err *err)
{
	const struct target_ops *host = host_target(spec);
	auto_free char *guest = host ? xasprintf("vm:%s", host->name) : NULL;
	struct err ignored = ERR_INIT;
	bool helps = guest && only_mounts(spec, would) && target_find(guest, &ignored);
	auto_free char *or_else =
		helps ? xasprintf(", or make its target %s, which is a guest's", guest) : NULL;

	return trust_refuse(dir, file, why, would, helps ? or_else : "", err);
}
