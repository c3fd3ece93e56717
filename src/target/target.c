/* SPDX-License-Identifier: MIT */
/* target.c - finds a target, gives it a place of its own to mount, and guards the calls. */
#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/kmsg.h"
#include "target/place.h"

const struct target_ops *const targets[] = {
	&target_ext4, &target_xfs, &target_btrfs, &target_ext3, &target_ext2, &target_fuse, NULL,
};

const struct target_ops *target_find(const char *spec, struct err *err)
{
	size_t n = strcspn(spec, ",:");
	auto_strbuf list = STRBUF_INIT;

	for (size_t i = 0; targets[i]; i++) {
		if (strlen(targets[i]->name) == n && memcmp(targets[i]->name, spec, n) == 0)
			return targets[i];
		strbuf_addf(&list, "%s%s", i ? ", " : "", targets[i]->name);
	}
	err_set(err, -EINVAL, "there is no target '%.*s'; there are %s", (int)min(n, (size_t)40),
		spec, strbuf_str(&list));
	return NULL;
}

int target_place(char mnt[TARGET_PLACE_SIZE], struct err *err)
{
	static unsigned opened; /* two targets of one process do not share a place */
	int rc = place_enter(err);

	if (rc)
		return rc;
	snprintf(mnt, TARGET_PLACE_SIZE, "%s/fs", place_path());
	if (opened++)
		snprintf(mnt, TARGET_PLACE_SIZE, "%s/fs%u", place_path(), opened);
	if (mkdir(mnt, 0700) < 0 && errno != EEXIST)
		return err_set(err, -errno, "cannot make %s: %m", mnt);
	return 0;
}

int target_open(const struct target_opts *opts, struct target *t, struct err *err)
{
	const struct target_ops *ops = target_find(opts->spec, err);

	*t = (struct target){ .root = -1, .kmsg = { .fd = -1 } };
	return ops ? target_open_as(ops, opts, t, err) : -EINVAL;
}

int target_open_as(const struct target_ops *ops, const struct target_opts *opts, struct target *t,
		   struct err *err)
{
	*t = (struct target){ .ops = ops, .opts = *opts, .root = -1, .kmsg = { .fd = -1 } };
	if (ops->needs_root && geteuid() != 0)
		return err_set(err, -EPERM,
			       "target %s needs root: it mounts on this machine's kernel; "
			       "run it with sudo (outage gen and outage trace need no root)",
			       ops->name);
	if (!t->opts.timeout_ms)
		t->opts.timeout_ms = 60000;
	int rc = target_place(t->mnt, err);
	if (!rc)
		rc = ops->open(t, &t->opts, err);
	/* From here on: what was said before was of whoever had the device then. */
	if (!rc)
		kmsg_open(&t->kmsg, opts->kmsg);
	if (rc)
		target_close(t);
	return rc;
}

void target_close(struct target *t)
{
	if (t->mounted) {
		struct err ignored = ERR_INIT;
		int rc = target_umount(t, false, &ignored);
		(void)rc;
	}
	if (t->ops)
		t->ops->close(t);
	disk_close(t->disk);
	t->disk = NULL;
	kmsg_close(&t->kmsg);
	strbuf_release(&t->complaints);
	free(t->mount_opts);
	free(t->command);
	t->mount_opts = t->command = NULL;
	t->ops = NULL;
}

int target_mkfs(struct target *t, struct image *out, struct err *err)
{
	assert(t->root < 0);
	return t->ops->mkfs(t, out, err);
}

int target_recover(struct target *t, struct strbuf *said, struct err *err)
{
	assert(t->root < 0);
	return t->ops->recover ? t->ops->recover(t, said, err) : 0;
}

int target_mount(struct target *t, struct strbuf *said, struct err *err)
{
	assert(t->root < 0);
	int rc = t->ops->mount(t, said, err);

	assert((rc == 0) == (t->root >= 0));
	t->mounted = rc == 0;
	return rc;
}

/* Takes what the kernel has said of this target; without `of_device` only its bugs and warnings. */
static void listen(struct target *t, bool of_device)
{
	/* A FUSE server is not the kernel's file system on that device; what is said is another's.
	 */
	const char *path = t->disk && !t->command ? disk_device(t->disk) : NULL;
	const char *slash = path ? strrchr(path, '/') : NULL;

	kmsg_read(&t->kmsg, slash ? slash + 1 : NULL, of_device, &t->complaints);
}

int target_umount(struct target *t, bool clean, struct err *err)
{
	/* Cut off before it is unmounted, a file system complains; that is our doing. */
	listen(t, true);
	int rc = t->ops->umount(t, clean, err);

	listen(t, clean || !t->cut_off);
	t->cut_off = false;
	if (!rc) {
		util_close(steal_fd(&t->root));
		t->mounted = false;
	}
	return rc;
}

int target_fsck(struct target *t, struct strbuf *said, struct err *err)
{
	assert(t->root < 0);
	return t->ops->fsck ? t->ops->fsck(t, said, err) : 0;
}

bool target_kernel_log(struct target *t, struct strbuf *out)
{
	listen(t, true);
	bool any = t->complaints.len > 0;
	if (any)
		strbuf_add(out, t->complaints.buf, t->complaints.len);
	strbuf_clear(&t->complaints);
	return any;
}
