/* SPDX-License-Identifier: MIT */
/* A file system in a guest can be frozen and thawed: what is on the disk tells whether it is. */
#include <errno.h>
#include <unistd.h>

#include "base/proc.h"
#include "record/vhost_disk.h"
#include "target/guest_target.h"
#include "tap.h"

/* Of ext4: the journal must be replayed, or, if it is not set, need not be. */
enum { AT_INCOMPAT = 1024 + 0x60, NEEDS_RECOVERY = 4 };

static bool is_dirty(struct target *t)
{
	auto_free char *path = vhost_disk_path(t->disk);
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

int main(void)
{
	auto_free char *kernel = proc_find("linux.uml"), *mkfs = proc_find("mke2fs");
	struct err err = ERR_INIT;
	struct target_opts opts = { .spec = "uml:ext4" };
	struct target t;

	if (!kernel || !mkfs) {
		skip("linux.uml or mke2fs is not there");
		return done_testing();
	}
	if (target_open(&opts, &t, &err)) {
		ok(false, "%s", err.msg);
		return done_testing();
	}
	go_through(&t);
	target_close(&t);
	return done_testing();
}
