/* SPDX-License-Identifier: MIT */
/* Which modules are loaded in which order, from either list; compressed ones, and bad ones. */
#include "guest/modules.h"
#include "packed.h"
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

static char *load_order(const char *const *names)
{
	auto_words list = { 0 };
	struct err err = ERR_INIT;
	struct strbuf out = { 0 };
	int rc = modules_order(dir, names, &list, &err);

	for (size_t i = 0; i < list.n; i++)
		strbuf_addf(&out, "%s%s", i ? " " : "", list.v[i]);
	if (rc)
		strbuf_addf(&out, "%d %s", rc, err.msg);
	return strbuf_detach(&out);
}

#define ORDER(want, why, ...)                                                                      \
	do {                                                                                       \
		const char *names_[] = { __VA_ARGS__, NULL };                                      \
		auto_free char *order_ = load_order(names_);                                       \
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
	auto_free char *got = load_order(gone);
	ok(strstr(got, "kernel/gone.ko") && *got == '-', "a file that is gone is an error: %s",
	   got);
}

static void test_none(void)
{
	auto_free char *list = xasprintf("%s/modules.order", dir);
	const char *names[] = { "a", NULL };

	unlink(list);
	auto_free char *got = load_order(names);
	ok(strstr(got, "modules.dep"), "a folder without lists is an error: %s", got);
}

/* Reads a module into `out`; what is wrong with it, or "". */
static const char *read_module(const char *path, struct strbuf *out)
{
	static struct err err;

	err_clear(&err);
	strbuf_clear(out);
	int rc = modules_read(dir, path, out, &err);
	ok((rc < 0) == (*err.msg != '\0'), "%s: %d %s", path, rc, err.msg);
	return rc ? err.msg : "";
}

/*
 * Compressed, they have another name than in the list: modules.order is of before. No program is
 * needed to read them.
 */
static void test_packed(void)
{
	auto_strbuf order_text = STRBUF_INIT, out = STRBUF_INIT;
	auto_free char *path = xstrdup(getenv("PATH"));

	setenv("PATH", "/nowhere", 1);
	save_module("kernel/crc.ko", "");
	strbuf_adds(&order_text, "kernel/crc.ko\n");
	for (size_t i = 0; i < ARRAY_SIZE(packed_all); i++) {
		const struct packed *p = &packed_all[i];
		auto_free char *name = xasprintf("kernel/%s.ko", p->format);
		auto_free char *file = xasprintf("%s%s", name, p->end ? p->end : "");

		save(file, p->bytes, p->len);
		strbuf_addf(&order_text, "%s\n", name);
		ok(modules_has_file(dir, name), "%s is there", name);
		is_s(read_module(name, &out), "", "a module of %s is read", p->format);
		ok(out.len == PACKED_LEN && memcmp(out.buf, packed_text, PACKED_LEN) == 0,
		   "it is what it was");
		save(file, p->bytes, p->len / 2);
		const char *said = read_module(name, &out);
		ok(strstr(said, file) && strstr(said, "cut off"), "half of it is an error");
		save(file, p->bytes, p->len);
	}
	save_text("modules.order", strbuf_str(&order_text));
	ORDER("kernel/crc.ko kernel/xz.ko", "a compressed one tells what it needs", "xz");
	ORDER("kernel/crc.ko kernel/zstd.ko kernel/gzip.ko", "and so do others", "zstd", "gzip");
	setenv("PATH", path, 1);
}

/* A build tree lists objects, or files below a folder that is there only once they are installed.
 */
static void test_build_tree(void)
{
	auto_strbuf out = STRBUF_INIT;

	save_module("fs/tree.ko", "crc");
	save_text("modules.order", "fs/tree.o\nkernel/crc.ko\n");
	ORDER("kernel/crc.ko fs/tree.ko", "a list of objects", "tree");
	is_s(read_module("kernel/fs/tree.ko", &out), "", "a folder that is not there yet");
}

/* Blocks of zstd that repeat one byte: four bytes for 128 KiB. */
static void save_bomb(const char *name, unsigned mib)
{
	static const unsigned char head[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3 };
	enum { REPEAT = 1 << 1, BYTES = 128 << 10 };
	auto_strbuf text = STRBUF_INIT;

	strbuf_add(&text, head, sizeof(head));
	for (unsigned i = 0; i < mib * 8; i++) {
		uint32_t block = BYTES << 3 | REPEAT | (i == mib * 8 - 1);

		strbuf_add(&text, &block, 3);
		strbuf_addch(&text, 'x');
	}
	save(name, text.buf, text.len);
}

static void test_bad(void)
{
	auto_strbuf out = STRBUF_INIT;

	save_bomb("kernel/bomb.ko.zst", 800);
	ok(strstr(read_module("kernel/bomb.ko", &out),
		  "too large: unpacked, it has more than 64 MiB"),
	   "one that unpacks to very much is refused");
	is_u(out.len, 0, "nothing of it is there");
	save_bomb("kernel/no.ko.zst", 1);
	ok(strstr(read_module("kernel/no.ko", &out), "is no module"), "one that is no module");
	save_text("kernel/empty.ko.xz", "");
	ok(strstr(read_module("kernel/empty.ko", &out), "is no module"), "an empty file");
	ok(strstr(read_module("kernel/none.ko", &out), "not there, nor compressed as .xz"),
	   "one that is not there");
	ok(!modules_has_file(dir, "kernel/none.ko"), "it is known that it is not");
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
	test_build_tree();
	test_bad();
	if (!proc_run(&(struct proc_opts){ .argv = argv }, &res, &err))
		proc_result_release(&res);
	return done_testing();
}
