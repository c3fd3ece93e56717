/* SPDX-License-Identifier: MIT */
/*
 * guest_root.c - makes the archive that the kernel unpacks into its first root: "newc", described
 * in its documentation as the initramfs buffer format. Each entry is a head of thirteen numbers in
 * eight hexadecimal digits, a name, and the bytes, both padded to four.
 */
#include "guest/guest_root.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/blob.h"
#include "base/io.h"
#include "base/proc.h"
#include "record/pm_blob.h"
#include "guest/guest_files.h"
#include "guest/modules.h"

enum { FILE_MAX = 64 << 20, LDD_MS = 20000 };

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

/* Adds the arguments of a module as a file beside it. */
static void add_arguments(struct archive *a, const char *file, const char *path,
			  const struct guest_root *r)
{
	auto_free char *name = xasprintf("%s.args", file);
	auto_strbuf text = STRBUF_INIT;

	for (const struct guest_module_args *args = r->args; args && args->module; args++)
		if (modules_is(path, strlen(path), args->module))
			strbuf_adds(&text, args->text);
	if (r->words)
		guest_args_of_module(r->words, path, &text);
	if (text.len)
		add(a, name, S_IFREG | 0644, strbuf_str(&text), text.len);
}

/* Checks the room: while a guest boots, its root is there twice, as archive and as files. */
static int check_room(uint64_t used, uint64_t memory, struct err *err)
{
	if (used <= memory / 2)
		return 0;
	return err_set(err, -EFBIG,
		       "the modules that a guest needs take more than half of its memory, which is "
		       "%llu MiB: give it more with --guest-memory, or strip the modules (make "
		       "INSTALL_MOD_STRIP=1 modules_install)",
		       (unsigned long long)memory >> 20);
}

static int add_modules(struct archive *a, const struct guest_root *r, struct err *err)
{
	auto_words list = { 0 };
	int rc = modules_order(r->dir, r->names, &list, err);
	uint64_t used = 0;

	for (size_t i = 0; !rc && i < list.n; i++) {
		auto_strbuf text = STRBUF_INIT;
		char name[32];

		snprintf(name, sizeof(name), "modules/%02zu", i);
		add_arguments(a, name, list.v[i], r);
		rc = modules_read(r->dir, list.v[i], &text, err);
		used += text.len;
		if (!rc)
			rc = check_room(used, r->memory, err);
		if (!rc)
			add(a, name, S_IFREG | 0644, strbuf_str(&text), text.len);
	}
	return rc;
}

/* Adds all folders on a path. */
static void add_folders(struct archive *a, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		auto_free char *dir = xmemdupz(path, (size_t)(slash - path));

		/* A duplicate does no harm: the kernel ignores a folder that exists. */
		add(a, dir, S_IFDIR | 0755, "", 0);
	}
}

static int add_file(struct archive *a, const char *file, struct err *err)
{
	auto_free char *name = xasprintf("host%s", file);
	auto_strbuf text = STRBUF_INIT;
	int rc = io_slurp(file, FILE_MAX, &text, err);

	if (rc)
		return rc;
	add_folders(a, name);
	add(a, name, S_IFREG | 0755, strbuf_str(&text), text.len);
	return 0;
}

/* Adds a program, and the libraries that ldd lists: words that begin with a slash. */
static int add_program(struct archive *a, const char *program, struct err *err)
{
	auto_free char *file = proc_find(program);
	const char *argv[] = { "ldd", file, NULL };
	struct proc_opts how = { .argv = argv, .timeout_ms = LDD_MS };
	struct proc_result res;

	if (!file)
		return err_set(err, -ENOENT, "there is no %s", program);
	int rc = add_file(a, file, err);
	if (!rc)
		rc = proc_run(&how, &res, err);
	if (rc)
		return rc;
	const char *at = strbuf_str(&res.out);
	while (!rc && !res.exit_code && (at = strchr(at, '/'))) {
		auto_free char *library = xmemdupz(at, strcspn(at, " \n"));

		rc = add_file(a, library, err);
		at += strlen(library);
	}
	proc_result_release(&res);
	return rc;
}

/* ---- a shell ---- */

/* Reads busybox; false if there is none that a guest can run. */
static bool read_shell(struct strbuf *out)
{
	auto_free char *file = proc_find("busybox");
	struct err err = ERR_INIT;

	return file && !io_slurp(file, FILE_MAX, out, &err) && guest_program(out) == GUEST_STATIC;
}

bool guest_root_has_shell(void)
{
	auto_strbuf program = STRBUF_INIT;

	return read_shell(&program);
}

static void add_symlink(struct archive *a, const char *name, const char *to)
{
	add(a, name, S_IFLNK | 0777, to, strlen(to));
}

/* Adds the names of its applets: "bin/ls", "sbin/mkfs.ext2", "usr/bin/env", one per line. */
static int add_applets(struct archive *a, struct err *err)
{
	const char *argv[] = { "busybox", "--list-full", NULL };
	struct proc_opts how = { .argv = argv, .timeout_ms = LDD_MS };
	struct proc_result res;
	int rc = proc_run(&how, &res, err);

	if (rc)
		return rc;
	for (const char *at = strbuf_str(&res.out); !res.exit_code && *at;) {
		size_t n = strcspn(at, "\n");
		auto_free char *name = xmemdupz(at, n);

		if (n && *name != '/' && !streq(name, "bin/busybox")) {
			add_folders(a, name);
			add_symlink(a, name, "/bin/busybox");
		}
		at += n + (at[n] == '\n');
	}
	proc_result_release(&res);
	return 0;
}

/* Adds a shell, which workloads with commands need; to them, the agent is `outage`. */
static int add_shell(struct archive *a, struct err *err)
{
	auto_strbuf program = STRBUF_INIT;

	if (!read_shell(&program))
		return 0;
	add(a, "bin", S_IFDIR | 0755, "", 0);
	add(a, "bin/busybox", S_IFREG | 0755, strbuf_str(&program), program.len);
	add_symlink(a, "bin/outage", "/init");
	return add_applets(a, err);
}

/* Adds the user's files, which come after applets of the same name, and so replace them. */
static int add_own_files(struct archive *a, const char *list, uint64_t memory, char **hash,
			 struct err *err)
{
	struct guest_files files = { 0 };
	int rc = guest_files_read(list, memory, &files, err);

	for (size_t i = 0; !rc && i < files.n; i++) {
		const struct guest_file *f = &files.v[i];

		add_folders(a, f->guest + 1);
		add(a, f->guest + 1, S_IFREG | f->mode, strbuf_str(&f->text), f->text.len);
	}
	*hash = !rc && files.n ? guest_files_hash(&files) : NULL;
	guest_files_release(&files);
	return rc;
}

int guest_root(const struct guest_root *r, char **hash, struct err *err)
{
	struct archive a = { 0 };
	auto_fd fd = memfd_create("outage-root", MFD_CLOEXEC);
	int rc = fd < 0 ? err_set(err, -errno, "no memory for a guest's root: %m") : 0;

	*hash = NULL;
	add(&a, "modules", S_IFDIR | 0755, "", 0);
	add(&a, "init", S_IFREG | 0755, agent_program, (size_t)agent_program_size);
	if (r->selftest)
		add(&a, "selftest", S_IFREG | 0755, pm_selftest_program,
		    (size_t)pm_selftest_program_size);
	if (!rc && r->dir)
		rc = add_modules(&a, r, err);
	if (!rc)
		rc = add_shell(&a, err);
	if (!rc)
		rc = add_own_files(&a, r->files, r->memory, hash, err);
	if (r->programs)
		add_folders(&a, "host/dev/");
	for (size_t i = 0; r->programs && r->programs[i] && !rc; i++)
		rc = add_program(&a, r->programs[i], err);
	add(&a, "TRAILER!!!", 0, "", 0);
	if (!rc && io_write_full(fd, a.text.buf, a.text.len))
		rc = err_set(err, -ENOMEM, "no memory for a guest's root");
	strbuf_release(&a.text);
	return rc ? rc : steal_fd(&fd);
}
