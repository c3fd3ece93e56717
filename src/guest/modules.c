/* SPDX-License-Identifier: MIT */
/*
 * modules.c - reads modules.dep or modules.order, puts modules in the order in which they load, and
 * unpacks them.
 */
#include "guest/modules.h"

#include <errno.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "guest/unpack.h"

/* MODULE_MAX limits the bytes of a module, both in the file and unpacked. */
enum { MODULE_MAX = 64 << 20, LIST_MAX = 16 << 20, DEPTH_MAX = 16 };

#define ELF "\177ELF"

static bool has_path(const struct words *list, const char *path, size_t len)
{
	return any_of(i, list->n, strlen(list->v[i]) == len && memcmp(list->v[i], path, len) == 0);
}

static void add_path(struct words *list, const char *path, size_t len)
{
	if (!has_path(list, path, len))
		vec_push(list, xmemdupz(path, len));
}

/* ---- files ---- */

/*
 * Returns the file of a module in a list, to be freed; NULL if there is none. Lists may name a
 * folder that exists only after installation, and often do not tell that modules are compressed.
 */
static char *find_file(const char *dir, const char *path)
{
	static const char top[] = "kernel/";
	static const char *const ends[] = { "", ".xz", ".zst", ".gz" };
	bool below = strncmp(path, top, strlen(top)) == 0;

	for (size_t i = 0; i < (below ? 2 : 1) * ARRAY_SIZE(ends); i++) {
		char *file = xasprintf("%s/%s%s", dir,
				       i < ARRAY_SIZE(ends) ? path : path + strlen(top),
				       ends[i % ARRAY_SIZE(ends)]);

		if (access(file, F_OK) == 0)
			return file;
		free(file);
	}
	return NULL;
}

bool modules_has_file(const char *dir, const char *path)
{
	auto_free char *file = find_file(dir, path);

	return file != NULL;
}

int modules_read(const char *dir, const char *path, struct strbuf *out, struct err *err)
{
	auto_free char *file = find_file(dir, path);
	auto_strbuf text = STRBUF_INIT;
	size_t begin = out->len;

	if (!file)
		return err_set(err, -ENOENT,
			       "the module %s/%s is not there, nor compressed as .xz, .zst or .gz",
			       dir, path);
	int rc = io_slurp(file, MODULE_MAX, &text, err);
	if (rc)
		return rc;
	rc = unpack(strbuf_str(&text), text.len, MODULE_MAX, out, err);
	if (rc < 0)
		return err_context(err, "the module %s cannot be used", file);
	if (rc == 1)
		strbuf_add(out, strbuf_str(&text), text.len);
	if (out->len - begin < strlen(ELF) || memcmp(out->buf + begin, ELF, strlen(ELF)) != 0)
		return err_set(err, -EINVAL, "%s is no module of a kernel: it is no ELF file",
			       file);
	return 0;
}

/* ---- lists ---- */

bool modules_is(const char *path, size_t len, const char *name)
{
	size_t n = strlen(name), at = len;

	while (at && path[at - 1] != '/')
		at--;
	if (len - at < n + 3 || memcmp(path + at + n, ".ko", 3) != 0 ||
	    (len - at > n + 3 && path[at + n + 3] != '.'))
		return false;
	for (size_t i = 0; i < n; i++) {
		char a = path[at + i] == '-' ? '_' : path[at + i],
		     b = name[i] == '-' ? '_' : name[i];

		if (a != b)
			return false;
	}
	return true;
}

/* Returns the line of a list whose first word is the module's file; NULL if there is none. */
static const char *find_line(const char *list, const char *name)
{
	for (const char *line = list; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (modules_is(line, strcspn(line, ":\n"), name))
			return line;
	return NULL;
}

/*
 * Adds a line of modules.dep, such as "kernel/fs/x/x.ko: kernel/lib/y.ko kernel/lib/z.ko": the
 * needs of a module stand behind it; the one to load first comes last.
 */
static void add_line(struct words *list, const char *line)
{
	size_t n = strcspn(line, ":\n");
	const char *colon = line + n, *end = colon + strcspn(colon, "\n");

	for (const char *p = end; p > colon;) {
		while (p > colon && p[-1] == ' ')
			p--;
		const char *word = p;
		while (word > colon + 1 && word[-1] != ' ')
			word--;
		if (word < p && word > colon)
			add_path(list, word, (size_t)(p - word));
		p = word > colon + 1 ? word : colon;
	}
	add_path(list, line, n);
}

/*
 * Adds a module and its needs without modules.dep: a module has the names of its needs in a text
 * "depends=x,y" between two zero bytes.
 */
static int add_by_itself(struct words *list, const char *dir, const char *all, const char *name,
			 unsigned depth, struct err *err)
{
	const char *line = find_line(all, name);
	auto_strbuf text = STRBUF_INIT;

	if (!line)
		return 0;
	if (depth > DEPTH_MAX)
		return err_set(err, -ELOOP, "module %s needs itself", name);
	auto_free char *path = xmemdupz(line, strcspn(line, "\n"));
	if (has_path(list, path, strlen(path)))
		return 0;
	int rc = modules_read(dir, path, &text, err);
	if (rc)
		return rc;
	static const char key[] = "\0depends=";
	const char *at = memmem(text.buf, text.len, key, sizeof(key) - 1);
	for (at = at ? at + sizeof(key) - 1 : ""; *at && !rc;) {
		size_t n = strcspn(at, ",");
		auto_free char *other = xmemdupz(at, n);

		rc = add_by_itself(list, dir, all, other, depth + 1, err);
		at += n;
		at += *at == ',';
	}
	if (!rc)
		add_path(list, path, strlen(path));
	return rc;
}

/* Reads a list with one module per line; the list of a build tree has names of objects. */
static int read_order(const char *file, struct strbuf *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = io_slurp(file, LIST_MAX, &text, err);

	if (rc)
		return rc;
	for (const char *line = strbuf_str(&text); *line;) {
		size_t n = strcspn(line, "\n");
		bool object = n > 2 && memcmp(line + n - 2, ".o", 2) == 0;

		if (n)
			strbuf_addf(out, "%.*s%s\n", (int)(object ? n - 2 : n), line,
				    object ? ".ko" : "");
		line += n + (line[n] == '\n');
	}
	return 0;
}

static int read_lists(const char *dir, struct strbuf *deps, struct strbuf *all, struct err *err)
{
	auto_free char *dep = xasprintf("%s/modules.dep", dir);
	auto_free char *order = xasprintf("%s/modules.order", dir);

	if (access(dep, F_OK) == 0)
		return io_slurp(dep, LIST_MAX, deps, err);
	if (access(order, F_OK) == 0)
		return read_order(order, all, err);
	return err_set(
		err, -ENOENT,
		"%s has neither modules.dep nor modules.order: --modules names a folder "
		"such as /lib/modules/VERSION, or a kernel's build tree after 'make modules'",
		dir);
}

int modules_order(const char *dir, const char *const *names, struct words *out, struct err *err)
{
	auto_strbuf deps = STRBUF_INIT, all = STRBUF_INIT;
	int rc = read_lists(dir, &deps, &all, err);

	for (size_t i = 0; !rc && names[i]; i++) {
		const char *line = find_line(strbuf_str(&deps), names[i]);

		if (line)
			add_line(out, line);
		else
			rc = add_by_itself(out, dir, strbuf_str(&all), names[i], 0, err);
	}
	return rc;
}

bool modules_have(const char *dir, const char *name)
{
	static const char *const lists[] = { "modules.dep", "modules.order", "modules.builtin" };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		auto_free char *path = xasprintf("%s/%s", dir, lists[i]);
		auto_strbuf text = STRBUF_INIT;
		struct err ignored = ERR_INIT;

		/* The list of built-in modules has the same form; its files do not exist. */
		if (access(path, F_OK) == 0 && !read_order(path, &text, &ignored) &&
		    find_line(strbuf_str(&text), name))
			return true;
	}
	return false;
}

int modules_need(const char *dir, const char *name, struct err *err)
{
	auto_free char *builtin = xasprintf("%s/modules.builtin", dir);

	if (access(builtin, F_OK) < 0 || modules_have(dir, name))
		return 0;
	return err_set(err, -ENODEV,
		       "%s is missing, without which a guest has no disk: it is neither built in "
		       "nor a module in %s",
		       name, dir);
}
