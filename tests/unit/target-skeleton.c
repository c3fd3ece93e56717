/* SPDX-License-Identifier: MIT */
/* The target to copy does what target.h says of each operation. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/owner.h"
#include "base/scratch.h"
#include "target/target.h"
#include "tap.h"

static bool there(const struct target *t, const char *name)
{
	return faccessat(t->root, name, F_OK, 0) == 0;
}

static void go_through(struct target *t)
{
	struct err err = ERR_INIT;
	auto_strbuf said = STRBUF_INIT;
	struct image img;
	struct stat above, root;

	is_i(target_mkfs(t, &img, &err), 0, "mkfs");
	is_u(img.size, t->opts.size, "of the size of the disk");
	is_i(disk_load(t->disk, &img, &err), 0, "which takes it");
	image_release(&img);
	for (int round = 1; round <= 2; round++) {
		is_i(target_recover(t, &said, &err), 0, "round %d: recovery", round);
		is_i(target_mount(t, &said, &err), 0, "round %d: mount", round);
		ok(stat(scratch_path(), &above) == 0 && fstat(t->root, &root) == 0 &&
			   above.st_dev != root.st_dev,
		   "round %d: something is mounted", round);
		ok(!there(t, "file"), "round %d: it is empty", round);
		util_close(openat(t->root, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
		ok(there(t, "file"), "round %d: and can be written to", round);
		is_i(target_umount(t, round == 1, &err), 0, "round %d: unmount", round);
		is_i(t->root, -1, "round %d: the root is closed", round);
		ok(stat(t->mnt, &root) == 0 && above.st_dev == root.st_dev,
		   "round %d: nothing is mounted", round);
		is_i(target_fsck(t, &said, &err), 0, "round %d: fsck", round);
	}
	is_s(strbuf_str(&said), "", "it had nothing to say");
	is_s(err.msg, "", "and nothing failed");
	ok(!target_kernel_log(t, &said), "nor did the kernel");
}

/* What scratch_enter() promises to whoever works inside. */
static void look_around(void)
{
	struct err err = ERR_INIT;
	struct stat st;
	auto_free char *path = NULL;
	const char *owner = getenv(SCRATCH_OWNER);
	auto_fd fd = scratch_file(1 << 20, &path, &err);

	ok(fd >= 0 && fstat(fd, &st) == 0 && st.st_size == 1 << 20, "a file in the place");
	ok(path && strncmp(path, scratch_path(), strlen(scratch_path())) == 0, "and its path");
	ok(owner && owner_state(owner, NULL) == OWNER_ALIVE, "programs are told whose they are");
	is_i(scratch_enter(&err), 0, "entering again does nothing");
}

int main(void)
{
	struct err err = ERR_INIT;
	struct target t;
	struct target_opts opts = { .spec = "skeleton,size=3" };

	if (geteuid()) {
		skip("mounting needs root");
		return done_testing();
	}
	ok(!target_find("skeleton", &err), "it is not in the list");
	err_clear(&err);
	is_i(target_open_as(&target_skeleton, &opts, &t, &err), -EINVAL, "an option it has not");
	ok(strstr(err.msg, "size=3"), "is named: %s", err.msg);
	err_clear(&err);
	opts.spec = "skeleton";
	if (target_open_as(&target_skeleton, &opts, &t, &err)) {
		skip(err.msg);
		return done_testing();
	}
	look_around();
	go_through(&t);
	is_i(target_mount(&t, &(struct strbuf){ 0 }, &err), 0, "mounted once more");
	target_close(&t);
	ok(t.root < 0 && !t.disk, "closing unmounts");
	return done_testing();
}
