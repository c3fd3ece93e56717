/* SPDX-License-Identifier: MIT */
/* finding_dir.c - keeps a finding whole: written beside its name, then exchanged for it. */
#include "explore/finding_dir.h"

#include "base/below.h"
#include "base/io.h"

static char *found(const char *name)
{
	return xasprintf("findings/%s", name);
}

static char *whole(const char *name)
{
	return xasprintf("whole/%s", name);
}

char *finding_dir_name(uint64_t number, unsigned worker)
{
	return xasprintf("%llu-%u", llu(number), worker);
}

uint64_t finding_dir_free(const char *run, uint64_t number, unsigned worker)
{
	for (;; number++) {
		auto_free char *name = finding_dir_name(number, worker);
		auto_free char *a = found(name), *b = whole(name);

		if (!below_exists(run, a) && !below_exists(run, b))
			return number;
	}
}

int finding_dir_next(const char *run, const char *name, char **next, struct err *err)
{
	auto_free char *now = found(name), *as_found = whole(name);
	bool second = below_exists(run, now) && !below_exists(run, as_found);
	int rc = second ? below_make_dir(run, "whole", err) : 0;

	if (!rc)
		*next = second ? steal(as_found) : steal(now);
	return rc;
}

int finding_dir_take(const char *run, const char *name, const char *next, struct err *err)
{
	auto_free char *now = found(name);

	return streq(next, now) ? 0 : io_exchange_below(run, now, next, err);
}

int finding_dir_remove(const char *run, const char *name, struct err *err)
{
	auto_free char *now = found(name), *as_found = whole(name);
	int rc = below_remove(run, now, err);

	return rc || !below_exists(run, as_found) ? rc : below_remove(run, as_found, err);
}
