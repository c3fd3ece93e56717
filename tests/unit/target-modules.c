/* SPDX-License-Identifier: MIT */
/* Which modules are loaded in which order, from either list, and compressed ones. */
#include "target/modules.h"
#include "tap.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/proc.h"

static char dir[] = "/tmp/outage-modules-XXXXXX";

static void save(const char *name, const void *text, size_t len)
{
	auto_free char *path = xasprintf("%s/%s", dir, name);
	struct err err = ERR_INIT;

	for (char *slash = strchr(path + sizeof(dir), '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	if (io_write_file(NULL, path, text, len, 0, &err))
		printf("# %s\n", err.msg);
}

static void save_text(const char *name, const char *text)
{
	save(name, text, strlen(text));
}

/* What a module holds is nobody's business but for its own words. */
static void save_module(const char *name, const char *depends)
{
	auto_strbuf text = STRBUF_INIT;

	strbuf_adds(&text, "\177ELF");
	strbuf_add(&text, "\0license=GPL\0depends=", 21);
	strbuf_add(&text, depends, strlen(depends) + 1);
	save(name, text.buf, text.len);
}

static char *order(const char *const *names)
{
	struct module_list list = { 0 };
	struct err err = ERR_INIT;
	struct strbuf out = { 0 };
	int rc = modules_order(dir, names, &list, &err);

	for (size_t i = 0; i < list.n; i++)
		strbuf_addf(&out, "%s%s", i ? " " : "", list.v[i]);
	if (rc)
		strbuf_addf(&out, "%d %s", rc, err.msg);
	module_list_release(&list);
	return strbuf_detach(&out);
}

#define ORDER(want, why, ...)                                                                      \
	do {                                                                                       \
		const char *names_[] = { __VA_ARGS__, NULL };                                      \
		auto_free char *order_ = order(names_);                                            \
		is_s(order_, want, why);                                                           \
	} while (0)

static void test_dep(void)
{
	save_text("modules.dep",
		  "kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko kernel/lib/crc.ko\n"
		  "kernel/fs/jbd2/jbd2.ko: kernel/lib/crc.ko\n"
		  "kernel/lib/crc.ko:\n"
		  "kernel/fs/my-fs.ko.xz: kernel/lib/crc.ko\n"
		  "kernel/fs/ext4x/ext4x.ko:\n");
	ORDER("kernel/lib/crc.ko kernel/fs/jbd2/jbd2.ko kernel/fs/ext4/ext4.ko",
	      "what is needed comes first", "ext4");
	ORDER("kernel/lib/crc.ko kernel/fs/jbd2/jbd2.ko kernel/fs/ext4/ext4.ko", "and once", "crc",
	      "jbd2", "ext4", "ext4");
	ORDER("kernel/lib/crc.ko kernel/fs/my-fs.ko.xz", "- and _ are the same, and .xz no name",
	      "my_fs");
	ORDER("", "what is not there is built in", "ext", "ko", "fs", "");
	ok(modules_have(dir, "my_fs") && !modules_have(dir, "btrfs"), "what is there is known");
	save_text("modules.builtin", "kernel/fs/btrfs/btrfs.ko\n");
	ok(modules_have(dir, "btrfs"), "and what is built in");
}

static void test_themselves(void)
{
	auto_free char *list = xasprintf("%s/modules.dep", dir);

	unlink(list);
	save_text("modules.order", "kernel/a.ko\nkernel/b.ko\nkernel/c.ko\nkernel/loop.ko\n");
	save_module("kernel/a.ko", "b,c");
	save_module("kernel/b.ko", "c");
	save_module("kernel/c.ko", "");
	save_module("kernel/loop.ko", "loop");
	ORDER("kernel/c.ko kernel/b.ko kernel/a.ko", "without modules.dep, modules tell", "a");
	ORDER("kernel/c.ko", "one that needs nothing", "c", "built_in");
	ORDER("-40 module loop needs itself", "a circle ends", "loop");
	save_text("modules.order", "kernel/gone.ko\n");
	const char *gone[] = { "gone", NULL };
	auto_free char *got = order(gone);
	ok(strstr(got, "kernel/gone.ko") && *got == '-', "a file that is gone is an error: %s",
	   got);
}

static void test_none(void)
{
	auto_free char *list = xasprintf("%s/modules.order", dir);
	const char *names[] = { "a", NULL };

	unlink(list);
	auto_free char *got = order(names);
	ok(strstr(got, "modules.dep"), "a folder without lists is an error: %s", got);
}

static void test_packed(void)
{
	static const char *const programs[][4] = {
		{ "gzip", "-c" }, { "xz", "-c" }, { "zstd", "-c" }, { "lz4", "-l", "-c" }
	};
	static const char text[] = "some bytes, some bytes, some bytes";
	auto_strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;

	is_i(modules_unpack(text, sizeof(text), &out, &err), 1, "what is not compressed");
	is_i(modules_unpack("", 0, &out, &err), 1, "and nothing");
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		auto_free char *there = proc_find(programs[i][0]);
		struct proc_opts how = { .argv = programs[i],
					 .input = text,
					 .input_len = sizeof(text) };
		struct proc_result res;

		if (!there || proc_run(&how, &res, &err)) {
			ok(true, "%s # SKIP it is not there", programs[i][0]);
			continue;
		}
		save("kernel/packed.ko.x", res.out.buf, res.out.len);
		strbuf_clear(&out);
		is_i(modules_read(dir, "kernel/packed.ko.x", &out, &err), 0, "%s %s",
		     programs[i][0], err.msg);
		ok(out.len == sizeof(text) && memcmp(out.buf, text, sizeof(text)) == 0,
		   "is what it was");
		is_i(modules_unpack(res.out.buf, res.out.len / 2, &out, &err), -EBADMSG,
		     "half of it is none: %s", err.msg);
		ok(strstr(err.msg, programs[i][0]) && strstr(err.msg, "no memory"),
		   "which it says itself, and we do not know why");
		err_clear(&err);
		proc_result_release(&res);
	}
}

/* A warning is no failure, and what a user sets for other files is not for ours. */
static void test_warning(void)
{
	static const char text[] = "some bytes, some bytes, some bytes";
	static const struct {
		const char *argv[4];
		const char *behind;
	} programs[] = { { { "gzip", "-c" }, "garbage" }, { { "xz", "-9", "-c" }, "" } };
	struct err err = ERR_INIT;

	setenv("XZ_DEFAULTS", "--memlimit-decompress=1", 1);
	setenv("XZ_OPT", "--memlimit-decompress=1", 1);
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		auto_free char *there = proc_find(programs[i].argv[0]);
		auto_strbuf out = STRBUF_INIT;
		struct proc_opts how = { .argv = programs[i].argv,
					 .input = text,
					 .input_len = sizeof(text) };
		struct proc_result res;

		if (!there || proc_run(&how, &res, &err)) {
			ok(true, "%s # SKIP it is not there", programs[i].argv[0]);
			continue;
		}
		strbuf_adds(&res.out, programs[i].behind);
		is_i(modules_unpack(res.out.buf, res.out.len, &out, &err), 0, "%s: %s",
		     programs[i].argv[0], err.msg);
		ok(out.len == sizeof(text) && memcmp(out.buf, text, sizeof(text)) == 0,
		   "is what it was");
		proc_result_release(&res);
	}
	ok(getenv("XZ_OPT") != NULL, "what is set stays");
	unsetenv("XZ_DEFAULTS");
	unsetenv("XZ_OPT");
}

int main(void)
{
	const char *argv[] = { "rm", "-rf", dir, NULL };
	struct proc_result res;
	struct err err = ERR_INIT;

	if (!mkdtemp(dir))
		return 1;
	test_dep();
	test_themselves();
	test_none();
	test_packed();
	test_warning();
	if (!proc_run(&(struct proc_opts){ .argv = argv }, &res, &err))
		proc_result_release(&res);
	return done_testing();
}
