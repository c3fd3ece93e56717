/* SPDX-License-Identifier: MIT */
/*
 * uml_root.c - an archive as the kernel unpacks it into its first root: "newc", described in its
 * documentation as the initramfs buffer format. Each entry is a head of thirteen numbers in eight
 * hexadecimal digits, a name, and the bytes, both padded to four.
 */
#include "target/uml_root.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/blob.h"
#include "base/io.h"
#include "base/vec.h"

enum { MODULE_MAX = 64 << 20, LIST_MAX = 16 << 20 };

struct archive {
	struct strbuf text;
	unsigned entries;
};

static void pad(struct archive *a)
{
	while (a->text.len % 4)
		strbuf_addch(&a->text, '\0');
}

static void add(struct archive *a, const char *name, mode_t mode, const void *data, size_t len)
{
	strbuf_addf(&a->text, "070701%08x%08x%08x%08x%08x%08x%08zx%08x%08x%08x%08x%08zx%08x",
		    ++a->entries, mode, 0, 0, 1, 0, len, 0, 0, 0, 0, strlen(name) + 1, 0);
	strbuf_add(&a->text, name, strlen(name) + 1);
	pad(a);
	strbuf_add(&a->text, data, len);
	pad(a);
}

struct paths vec_of(char *);

static void add_path(struct paths *list, const char *path, size_t len)
{
	for (size_t i = 0; i < list->n; i++)
		if (strlen(list->v[i]) == len && memcmp(list->v[i], path, len) == 0)
			return;
	vec_push(list, xmemdupz(path, len));
}

/*
 * A line of modules.dep is "kernel/fs/x/x.ko: kernel/lib/y.ko kernel/lib/z.ko"; what a module needs
 * stands behind it, what is needed first comes last.
 */
static bool add_module(struct paths *list, const char *deps, const char *name)
{
	auto_free char *suffix = xasprintf("/%s.ko:", name);
	const char *at = strstr(deps, suffix);
	const char *line = at;

	if (!at)
		return false;
	while (line > deps && line[-1] != '\n')
		line--;
	const char *colon = at + strlen(suffix) - 1, *end = colon + strcspn(colon, "\n");
	for (const char *p = end; p > colon;) {
		while (p > colon && p[-1] == ' ')
			p--;
		const char *word = p;
		while (word > colon + 1 && word[-1] != ' ')
			word--;
		if (word < p)
			add_path(list, word, (size_t)(p - word));
		p = word > colon + 1 ? word : colon;
	}
	add_path(list, line, (size_t)(colon - line));
	return true;
}

static int add_modules(struct archive *a, const char *dir, const char *const *names,
		       struct err *err)
{
	auto_free char *list_path = xasprintf("%s/modules.dep", dir);
	auto_strbuf deps = STRBUF_INIT;
	struct paths paths = { 0 };
	int rc = io_slurp(list_path, LIST_MAX, &deps, err);

	for (size_t i = 0; !rc && names[i]; i++)
		add_module(&paths, strbuf_str(&deps), names[i]); /* else it is built in */
	for (size_t i = 0; !rc && i < paths.n; i++) {
		auto_free char *path = xasprintf("%s/%s", dir, paths.v[i]);
		auto_strbuf text = STRBUF_INIT;
		char name[32];

		snprintf(name, sizeof(name), "modules/%02zu", i);
		rc = io_slurp(path, MODULE_MAX, &text, err);
		if (!rc)
			add(a, name, S_IFREG | 0644, strbuf_str(&text), text.len);
	}
	for (size_t i = 0; i < paths.n; i++)
		free(paths.v[i]);
	vec_release(&paths);
	return rc;
}

int uml_root(const char *dir, const char *const *names, struct err *err)
{
	struct archive a = { 0 };
	auto_fd fd = memfd_create("outage-root", MFD_CLOEXEC);
	int rc = fd < 0 ? err_set(err, -errno, "no memory for a guest's root: %m") : 0;

	add(&a, "modules", S_IFDIR | 0755, "", 0);
	add(&a, "init", S_IFREG | 0755, agent_program, (size_t)agent_program_size);
	if (!rc && dir)
		rc = add_modules(&a, dir, names, err);
	add(&a, "TRAILER!!!", 0, "", 0);
	if (!rc && io_write_full(fd, a.text.buf, a.text.len))
		rc = err_set(err, -ENOMEM, "no memory for a guest's root");
	strbuf_release(&a.text);
	return rc ? rc : steal_fd(&fd);
}
