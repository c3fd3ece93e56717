/* SPDX-License-Identifier: MIT */
/*
 * forget_nested.c - compares a new ROOT with those of all other mounts. Only the server of a mount
 * knows its ROOT, and is asked.
 */
#include "forget/forget_nested.h"

#include <errno.h>

#include "base/vec.h"
#include "forget/forget_client.h"
#include "forget/forget_place.h"

enum { ASK_S = 2 };

bool forget_path_is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	if (streq(dir, "/"))
		return true;
	return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/* Returns ROOT from the first line of the status, "ROOT on MNT, profile ...", as MNT is known. */
static char *root_in(const char *status, const char *mnt)
{
	auto_free char *rest = xasprintf(" on %s, profile ", mnt);
	const char *at = strstr(status, rest);

	return at ? xmemdupz(status, (size_t)(at - status)) : NULL;
}

/* Returns the ROOT of a mount; NULL if its server does not answer us. */
static char *root_of(const struct forget_place *p)
{
	struct forget_client c = { .fd = -1 };
	auto_strbuf answer = STRBUF_INIT;
	char word[] = "status", *words[] = { word };
	struct err err = ERR_INIT;
	bool done = false;
	char *root = NULL;

	if (!forget_client_open(p, NULL, &c, &err) &&
	    !forget_client_call(&c, words, 1, false, ASK_S, &answer, &done, &err) && done)
		root = root_in(strbuf_str(&answer), p->mnt);
	forget_client_close(&c);
	return root;
}

static int check_one(const char *root, const struct forget_place *p, struct err *err)
{
	auto_free char *other = root_of(p);

	if (!other || streq(other, root)) /* for the same ROOT there is its lock */
		return 0;
	if (forget_path_is_below(root, other))
		return err_set(err, -EBUSY,
			       "ROOT %s is inside of %s, which is the ROOT of the mount on %s; "
			       "unmount that first, or take another directory",
			       root, other, p->mnt);
	if (forget_path_is_below(other, root))
		return err_set(err, -EBUSY,
			       "ROOT %s cannot be used: %s, the ROOT of the mount on %s, is inside "
			       "of it; unmount that first, or take another directory",
			       root, other, p->mnt);
	return 0;
}

int forget_nested_check(const char *root, struct err *err)
{
	auto_vec struct forget_places all = { 0 };
	int rc = forget_place_all(&all, err);

	for (size_t i = 0; !rc && i < all.n; i++)
		rc = check_one(root, &all.v[i], err);
	for (size_t i = 0; i < all.n; i++)
		forget_place_release(&all.v[i]);
	return rc;
}
