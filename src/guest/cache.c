/* SPDX-License-Identifier: MIT */
/* cache.c - computes the keys of new file systems, and loads and saves their images. */
#include "guest/cache.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/proc.h"
#include "base/strbuf.h"
#include "base/util.h"

void cache_key(struct cache_key *key, const char *const *argv, const char *extra, uint64_t size)
{
	auto_strbuf text = STRBUF_INIT;
	struct stat st;

	key->name[0] = '\0';
	auto_free char *program = proc_find(argv[0]);
	/* Size and time of the program distinguish its versions. */
	if (!program || stat(program, &st) < 0)
		return;
	for (; *argv; argv++)
		strbuf_addf(&text, "%s%c", *argv, 0);
	strbuf_addf(&text, "%s%c%llu %llu %lld.%ld", extra, 0, (unsigned long long)size,
		    (unsigned long long)st.st_size, (long long)st.st_mtim.tv_sec,
		    st.st_mtim.tv_nsec);
	struct hash128 h = hash_bytes(text.buf, text.len);
	snprintf(key->name, sizeof(key->name), "mkfs-%016llx%016llx.img", (unsigned long long)h.hi,
		 (unsigned long long)h.lo);
}

char *cache_dir(void)
{
	const char *own = getenv("OUTAGE_CACHE"), *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	auto_free char *above = NULL, *dir = NULL;

	if (own && !*own)
		return NULL;
	if (own) {
		dir = xstrdup(own);
	} else if ((xdg && *xdg == '/') || (home && *home == '/')) {
		above = xdg && *xdg == '/' ? xstrdup(xdg) : xasprintf("%s/.cache", home);
		dir = xasprintf("%s/outage", above);
		if (mkdir(above, 0700) < 0 && errno != EEXIST)
			return NULL;
	}
	if (!dir || (mkdir(dir, 0700) < 0 && errno != EEXIST))
		return NULL;
	return steal(dir);
}

bool cache_find(const struct cache_key *key, uint64_t size, struct image *out)
{
	auto_free char *dir = *key->name ? cache_dir() : NULL;
	struct err ignored = ERR_INIT;
	struct image img;

	if (!dir)
		return false;
	auto_free char *path = xasprintf("%s/%s", dir, key->name);
	if (image_load_file(path, &img, &ignored))
		return false;
	if (img.size != size) {
		image_release(&img);
		return false;
	}
	*out = img;
	return true;
}

void cache_keep(const struct cache_key *key, const struct image *img)
{
	auto_free char *dir = *key->name ? cache_dir() : NULL;
	struct err ignored = ERR_INIT;

	if (!dir)
		return;
	auto_free char *path = xasprintf("%s/%s", dir, key->name);
	int rc = image_save_file(img, path, &ignored);
	(void)rc; /* the next run makes the image again */
}
