/* SPDX-License-Identifier: MIT */
/*
 * A file system in a guest can be frozen and thawed: what is on the disk tells whether it is. It
 * can be mounted read-only and made writable: what can be done to it tells.
 */
#include <errno.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/proc.h"
#include "record/vhost_disk.h"
#include "target/guest_target.h"
#include "tap.h"

/* Of ext4: the journal must be replayed, or, if it is not set, need not be. */
enum { AT_INCOMPAT = 1024 + 0x60, NEEDS_RECOVERY = 4 };

static bool is_dirty(struct target *t)
{
	auto_free char *path = disk_path(t->disk);
	FILE *f = fopen(path, "re");
	uint32_t word = 0;

	if (!f || fseek(f, AT_INCOMPAT, SEEK_SET) || fread(&word, sizeof(word), 1, f) != 1)
		ok(false, "%s cannot be read", path);
	if (f)
		fclose(f);
	return word & NEEDS_RECOVERY;
}

static int64_t perform(struct target *t, size_t i)
{
	struct err err = ERR_INIT;
	int64_t result = -EINVAL;

	is_i(target_op(t, i, &result, &err), 0, "operation %zu", i);
	return result;
}

static void go_through(struct target *t)
{
	static const char text[] = "creat foo\nwrite foo 0 4096\nwrite foo 4096 4096\n";
	struct err err = ERR_INIT;
	auto_strbuf said = STRBUF_INIT;
	auto_workload w;
	struct image img;

	workload_init(&w);
	is_i(workload_parse(text, strlen(text), "test", &w, &err), 0, "a workload");
	is_i(target_mkfs(t, &img, &err), 0, "mkfs");
	is_i(disk_load(t->disk, &img, &err), 0, "is loaded");
	image_release(&img);
	is_i(guest_target_freeze(t, &err), -EIO, "nothing can be frozen before it runs");
	err_clear(&err);
	is_i(target_mount(t, &said, &err), 0, "mount");
	is_i(guest_target_thaw(t, &err), -EINVAL, "what is not frozen cannot be thawed");
	ok(strstr(err.msg, "cannot be thawed in the guest"), "which is said: %s", err.msg);
	err_clear(&err);
	is_i(target_begin(t, &w, NULL, &err), 0, "it begins");
	is_i(perform(t, 0), 0, "a file is made");
	is_i(perform(t, 1), 4096, "and written");
	ok(is_dirty(t), "mounted, the journal would have to be replayed");
	is_i(guest_target_freeze(t, &err), 0, "freeze");
	ok(!is_dirty(t), "frozen, it would not");
	is_i(guest_target_freeze(t, &err), -EBUSY, "twice is too much");
	err_clear(&err);
	is_i(guest_target_thaw(t, &err), 0, "thaw");
	ok(is_dirty(t), "thawed, it would have to be again");
	is_i(perform(t, 2), 4096, "and it can be written to");
	is_i(target_end(t, &err), 0, "it ends");
	is_i(target_umount(t, true, &err), 0, "unmount");
	is_i(guest_target_freeze(t, &err), -EBADF, "what is not mounted cannot be frozen");
	err_clear(&err);
	is_s(strbuf_str(&said), "", "it had nothing to say");
	ok(!target_kernel_log(t, &said), "nor had the kernel");
}

/* The agent changes nothing but what it is for, whatever it is asked. */
static int ask_for_flags(struct target *t, uint32_t flags)
{
	struct err err = ERR_INIT;
	struct wire_in part;

	wire_put_u32(guest_target_begin(t, AGENT_REMOUNT), flags);
	return guest_target_ask(t, AGENT_REMOUNT, &part, &err);
}

static void go_read_only(struct target *t)
{
	static const char text[] = "creat foo\ncreat bar\n";
	struct err err = ERR_INIT;
	auto_strbuf said = STRBUF_INIT;
	auto_workload w;
	struct image img;

	workload_init(&w);
	is_i(workload_parse(text, strlen(text), "test", &w, &err), 0, "a workload");
	is_i(target_mkfs(t, &img, &err), 0, "mkfs");
	is_i(disk_load(t->disk, &img, &err), 0, "is loaded");
	image_release(&img);
	ok(ask_for_flags(t, MS_NODEV | MS_NOSUID) < 0, "what is not mounted cannot be remounted");
	is_i(target_mount_read_only(t, &said, &err), 0, "mounted read-only");
	ok(t->read_only && target_is_mounted(t), "it is known to be");
	is_i(target_begin(t, &w, NULL, &err), 0, "it begins");
	is_i(perform(t, 0), -EROFS, "no file can be made");
	ok(ask_for_flags(t, MS_NODEV) < 0, "devices and set-id programs stay forbidden");
	is_i(perform(t, 0), -EROFS, "and it stays read-only");
	is_i(target_remount(t, &said, &err), 0, "made writable");
	ok(!t->read_only, "it is known to be");
	is_i(perform(t, 1), 0, "a file can be made");
	is_i(target_end(t, &err), 0, "it ends");
	is_i(target_umount(t, true, &err), 0, "unmount");
	is_i(target_mount(t, &said, &err), 0, "the next mount");
	ok(!t->read_only, "is a usual one");
	is_i(target_begin(t, &w, NULL, &err), 0, "it begins");
	is_i(perform(t, 0), 0, "writable at once");
	is_i(target_end(t, &err), 0, "it ends");
	is_i(target_umount(t, true, &err), 0, "unmount");
	is_s(strbuf_str(&said), "", "it had nothing to say");
	ok(!target_kernel_log(t, &said), "nor had the kernel");
}

/* Whoever watches for hangs is told while it starts, and not while it is asked for something. */
static void count(void *ctx)
{
	++*(unsigned *)ctx;
}

static void count_starts(struct target *t, const unsigned *starts)
{
	struct err err = ERR_INIT;
	auto_strbuf said = STRBUF_INIT;
	struct image img;

	is_u(*starts, 0, "nothing has started yet");
	is_i(target_mkfs(t, &img, &err), 0, "mkfs");
	is_i(disk_load(t->disk, &img, &err), 0, "is loaded");
	image_release(&img);
	is_i(target_mount(t, &said, &err), 0, "mount");
	unsigned n = *starts;
	ok(n > 0, "the start of the guest is told");
	is_i(target_umount(t, true, &err), 0, "unmount");
	is_u(*starts, n, "what it is asked for then is not");
}

int main(void)
{
	auto_free char *kernel = proc_find("linux.uml"), *mkfs = proc_find("mke2fs");
	struct err err = ERR_INIT;
	unsigned starts = 0;
	struct target_opts opts = { .spec = "uml:ext4",
				    .starting = count,
				    .starting_ctx = &starts };
	struct target t;

	if (!kernel || !mkfs) {
		skip("linux.uml or mke2fs is not there");
		return done_testing();
	}
	/* As those on persistent memory have it. */
	struct target_ops ops = target_uml_ext4;
	ops.remount = guest_target_remount;
	if (target_open_as(&ops, &opts, &t, &err)) {
		ok(false, "%s", err.msg);
		return done_testing();
	}
	go_through(&t);
	go_read_only(&t);
	target_close(&t);
	starts = 0;
	if (target_open_as(&ops, &opts, &t, &err)) {
		ok(false, "%s", err.msg);
		return done_testing();
	}
	count_starts(&t, &starts);
	target_close(&t);
	return done_testing();
}
