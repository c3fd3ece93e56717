/* SPDX-License-Identifier: MIT */
/*
 * skeleton.c - a target to copy. doc/targets.md goes through the steps.
 *
 * The skeleton works, but its writes go to a tmpfs, the disk is never used, and so every crash
 * breaks every promise. Replace each body by the code of your target. The skeleton is built and
 * tested like the others, but it is not in the list of targets.
 *
 * Rules for every target:
 * - A target lives in one worker process; nothing here is called from two threads.
 * - t->mnt is an empty directory in a mount namespace of our own. Mounts below it are gone when the
 *   worker is, also after a kill -9. Things that are no mounts (a device, a file, a process) stay:
 *   give them the name of their owner (base/owner.h), or PR_SET_PDEATHSIG.
 * - 0 is success; -errno with a sentence in `err` means that this program failed; 1 means that the
 *   file system under test failed, which is a finding, and no error.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "target/target.h"

enum { SIZE_DEFAULT = 16 << 20 };

/*
 * Opens the target. opts->spec is the whole text after -t: "skeleton,option=1". Check the user's
 * options here, before anything is made. target_close() is called after a failure.
 */
static int skeleton_open(struct target *t, const struct target_opts *opts, struct err *err)
{
	const char *comma = strchr(opts->spec, ',');

	if (comma)
		return err_set(err, -EINVAL, "target skeleton has no options, such as '%.40s'",
			       comma + 1);
	if (!t->opts.size)
		t->opts.size = SIZE_DEFAULT;
	/* The recorder to use; NULL: the best one that works here. */
	return disk_open(opts->recorder, t->opts.size, &t->disk, err);
}

/*
 * Gives an image of t->opts.size bytes with a new, empty file system, which is loaded into the disk
 * for every workload. Use scratch_file() (base/scratch.h) for a file that mkfs can work on.
 */
static int skeleton_mkfs(struct target *t, struct image *out, struct err *err)
{
	(void)err;
	image_init(out, t->opts.size);
	return 0;
}

/*
 * Recovers the file system on disk_device() or disk_file(), as a boot after a power cut does before
 * it mounts. NULL if mounting recovers. The program's output goes to `said`; returns 1 if it gave
 * up.
 */
static int skeleton_recover(struct target *t, struct strbuf *said, struct err *err)
{
	(void)t;
	(void)said;
	(void)err;
	return 0;
}

/*
 * Mounts the disk at t->mnt, and opens its root. Returns 1 if the file system refuses, with the
 * reason in `said`, for the finding; then nothing is mounted, and t->root stays -1.
 */
static int skeleton_mount(struct target *t, struct strbuf *said, struct err *err)
{
	if (mount("skeleton", t->mnt, "tmpfs", MS_NODEV | MS_NOSUID, "mode=755") < 0)
		return err_set(err, -errno, "cannot mount a tmpfs on %s: %m", t->mnt);
	t->root = open(t->mnt, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->root >= 0)
		return 0;
	strbuf_addf(said, "the root cannot be opened: %s\n", strerror(errno));
	umount2(t->mnt, MNT_DETACH);
	return 1;
}

/*
 * Closes t->root and unmounts. When it returns 0, no process has the disk open any more: its
 * content is about to be replaced. Unless `clean`, the fastest way is right.
 */
static int skeleton_umount(struct target *t, bool clean, struct err *err)
{
	(void)clean;
	util_close(steal_fd(&t->root));
	if (umount2(t->mnt, 0) < 0)
		return err_set(err, -errno, "cannot unmount %s: %m", t->mnt);
	return 0;
}

/* Runs the file system's own checker on the disk, which it must not change; NULL if it has none. */
static int skeleton_fsck(struct target *t, struct strbuf *said, struct err *err)
{
	(void)t;
	(void)said;
	(void)err;
	return 0;
}

/* Releases what open() made, also after a failure in it. The caller handles mounts and the disk. */
static void skeleton_close(struct target *t)
{
	(void)t;
}

/* Names that mkfs leaves in the root and no workload made; ext4 has "lost+found". */
static const char *const in_root[] = { NULL };

const struct target_ops target_skeleton = {
	.name = "skeleton",
	.help = "keeps nothing; a target to copy",
	.guarantee = "posix", /* the weakest documented one: see doc/guarantees.md */
	.ignore = in_root,
	.programs = NULL,   /* programs that it runs, for outage doctor */
	.in_kernel = false, /* true: its name must be in /proc/filesystems */
	.needs_root = true,
	.open = skeleton_open,
	.mkfs = skeleton_mkfs,
	.recover = skeleton_recover,
	.mount = skeleton_mount,
	.remount = NULL, /* for targets that are walked read-only after a crash */
	.umount = skeleton_umount,
	.fsck = skeleton_fsck,
	.close = skeleton_close,
};
