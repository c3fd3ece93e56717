/* SPDX-License-Identifier: MIT */
#include "target/modules.h"

#include <errno.h>
#include <unistd.h>

#include "base/io.h"
#include "base/proc.h"
#include "base/util.h"

enum { MODULE_MAX = 64 << 20, LIST_MAX = 16 << 20, UNPACK_MS = 60000, DEPTH_MAX = 16 };

void module_list_release(struct module_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i]);
	vec_release(list);
}

static void add_path(struct module_list *list, const char *path, size_t len)
{
	for (size_t i = 0; i < list->n; i++)
		if (strlen(list->v[i]) == len && memcmp(list->v[i], path, len) == 0)
			return;
	vec_push(list, xmemdupz(path, len));
}

/* ---- compressed files ---- */

struct unpacker {
	const char *magic;
	size_t n;
	const char *argv[4];
	int warns; /* the exit status of one that has unpacked all, and wonders; 0: it has none */
};

static const struct unpacker *find_unpacker(const void *text, size_t len)
{
	static const struct unpacker all[] = {
		{ "\x1f\x8b", 2, { "gzip", "-dc" }, 2 },
		{ "\xfd"
		  "7zXZ",
		  5,
		  { "xz", "-dc", "--single-stream" },
		  0 },
		{ "\x28\xb5\x2f\xfd", 4, { "zstd", "-dc" }, 0 },
		{ "\x02\x21\x4c\x18", 4, { "lz4", "-dc" }, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (len >= all[i].n && memcmp(text, all[i].magic, all[i].n) == 0)
			return &all[i];
	return NULL;
}

/* Its first line, with its name, which not all of them tell; or how it ended, if it said nothing.
 */
static void add_reason(const struct proc_result *res, const struct proc_opts *how,
		       struct strbuf *out)
{
	const char *why = strbuf_str(&res->err) + strspn(strbuf_str(&res->err), "\n");
	size_t n = strcspn(why, "\n");

	while (n && (why[n - 1] == ' ' || why[n - 1] == '!'))
		n--;
	bool named = strncmp(why, how->argv[0], strlen(how->argv[0])) == 0;
	strbuf_addf(out, "%s%s", named ? "" : how->argv[0], named ? "" : n ? ": " : " ");
	if (n)
		strbuf_add(out, why, n);
	else
		proc_describe(res, how, out);
}

int modules_unpack(const void *text, size_t len, struct strbuf *out, struct err *err)
{
	/* What a user sets for other files: limits of memory, above all. */
	static const char *const unset[] = { "GZIP",	    "XZ_OPT",	      "XZ_DEFAULTS",
					     "ZSTD_CLEVEL", "ZSTD_NBTHREADS", NULL };
	const struct unpacker *u = find_unpacker(text, len);

	if (!u)
		return 1;
	struct proc_opts how = { .argv = u->argv,
				 .unset = unset,
				 .input = text,
				 .input_len = len,
				 .timeout_ms = UNPACK_MS,
				 .output_limit = 512 << 20 };
	struct proc_result res;
	int rc = proc_run(&how, &res, err);

	if (rc)
		return rc;
	if (!res.exit_code || (u->warns && res.exit_code == u->warns)) {
		strbuf_add(out, res.out.buf, res.out.len);
	} else {
		auto_strbuf why = STRBUF_INIT;

		add_reason(&res, &how, &why);
		rc = err_set(err, res.exit_code > 0 ? -EBADMSG : -EINVAL,
			     "it cannot be unpacked: %s; it is damaged, or there is no memory for "
			     "it",
			     strbuf_str(&why));
	}
	proc_result_release(&res);
	return rc;
}

int modules_read(const char *dir, const char *path, struct strbuf *out, struct err *err)
{
	auto_free char *file = xasprintf("%s/%s", dir, path);
	auto_strbuf text = STRBUF_INIT;
	int rc = io_slurp(file, MODULE_MAX, &text, err);

	if (rc)
		return rc;
	rc = modules_unpack(strbuf_str(&text), text.len, out, err);
	if (rc == 1)
		strbuf_add(out, strbuf_str(&text), text.len);
	else if (rc)
		err_context(err, "%s", file);
	return min(rc, 0);
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

/* The line of a list whose first word is the module's file; NULL if there is none. */
static const char *find_line(const char *list, const char *name)
{
	for (const char *line = list; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (modules_is(line, strcspn(line, ":\n"), name))
			return line;
	return NULL;
}

/*
 * A line of modules.dep is "kernel/fs/x/x.ko: kernel/lib/y.ko kernel/lib/z.ko"; what a module needs
 * stands behind it, what is needed first comes last.
 */
static void add_line(struct module_list *list, const char *line)
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
 * Without that file: a module tells itself, in a text "depends=x,y" between two zero bytes, the
 * names of those that it needs.
 */
static int add_by_itself(struct module_list *list, const char *dir, const char *all,
			 const char *name, unsigned depth, struct err *err)
{
	const char *line = find_line(all, name);
	auto_strbuf text = STRBUF_INIT;

	if (!line)
		return 0;
	if (depth > DEPTH_MAX)
		return err_set(err, -ELOOP, "module %s needs itself", name);
	auto_free char *path = xmemdupz(line, strcspn(line, "\n"));
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

/*
 * The list of a build tree has names of objects, and paths from the top of the tree; that of an
 * older one begins with a folder that is there only once the modules are installed.
 */
static void add_normal(struct strbuf *out, const char *dir, const char *line, size_t n)
{
	static const char top[] = "kernel/";
	auto_free char *name = n > 2 && memcmp(line + n - 2, ".o", 2) == 0
				       ? xasprintf("%.*s.ko", (int)(n - 2), line)
				       : xmemdupz(line, n);
	auto_free char *file = xasprintf("%s/%s", dir, name);
	bool strip = strncmp(name, top, strlen(top)) == 0 && access(file, F_OK) < 0;
	auto_free char *below = xasprintf("%s/%s", dir, strip ? name + strlen(top) : name);

	strbuf_addf(out, "%s\n", strip && access(below, F_OK) == 0 ? name + strlen(top) : name);
}

static int read_order(const char *dir, const char *file, struct strbuf *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = io_slurp(file, LIST_MAX, &text, err);

	if (rc)
		return rc;
	for (const char *line = strbuf_str(&text); *line;) {
		size_t n = strcspn(line, "\n");

		if (n)
			add_normal(out, dir, line, n);
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
		return read_order(dir, order, all, err);
	return err_set(
		err, -ENOENT,
		"%s has neither modules.dep nor modules.order: --modules names a folder "
		"such as /lib/modules/VERSION, or a kernel's build tree after 'make modules'",
		dir);
}

int modules_order(const char *dir, const char *const *names, struct module_list *out,
		  struct err *err)
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

		/* The list of what is built in names files that are nowhere, in the same form. */
		if (access(path, F_OK) == 0 && !read_order(dir, path, &text, &ignored) &&
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
