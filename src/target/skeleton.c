/* SPDX-License-Identifier: MIT */
/*
 * skeleton.c - a target to copy. doc/targets.md goes through the steps.
 *
 * The skeleton works, and is no file system worth testing: its writes go to a tmpfs, the disk is
 * never used, and so every promise is broken by every crash. Replace each body by what yours does.
 * The skeleton is built and tested like the others, so that it cannot rot, but it is not in the
 * list of targets.
 *
 * Rules for every target:
 * - A target lives in one worker process; nothing here is called from two threads.
 * - t->mnt is an empty directory in a mount namespace of our own. Mounts below it are gone when the
 *   worker is, so a kill -9 needs no thought. Things that are no mounts (a device, a file, a
 *   process) do: give them the name of their owner (base/owner.h), or PR_SET_PDEATHSIG.
 * - 0 is success, -errno with a sentence in `err` means that we could not do our work, and 1 that
 *   the file system under test could not do its: that is a finding, and no error.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "target/target.h"

enum { SIZE_DEFAULT = 16 << 20 };

/*
 * Makes ready. opts->spec is the whole text after -t: "skeleton,option=1". Check here what a person
 * may have got wrong, before anything is made. target_close() is called if it fails.
 */
static int skeleton_open(struct target *t, const struct target_opts *opts, struct err *err)
{
	const char *comma = strchr(opts->spec, ',');

	if (comma)
		return err_set(err, -EINVAL, "target skeleton has no options, such as '%.40s'",
			       comma + 1);
	if (!t->opts.size)
		t->opts.size = SIZE_DEFAULT;
	/* The recorder that suits; NULL lets the best that works here be taken. */
	return disk_open(opts->recorder, t->opts.size, &t->disk, err);
}

/*
 * An image of t->opts.size bytes with a new, empty file system. The image is loaded into the disk
 * for every workload. Use scratch_file() (base/scratch.h) for a file that mkfs can work on.
 */
static int skeleton_mkfs(struct target *t, struct image *out, struct err *err)
{
	(void)err;
	image_init(out, t->opts.size);
	return 0;
}

/*
 * Does what a boot after a power cut does before it mounts, on disk_device() or disk_file(). Leave
 * it out (NULL) if mounting recovers. The program's output goes to `said`; 1 if it gave up.
 */
static int skeleton_recover(struct target *t, struct strbuf *said, struct err *err)
{
	(void)t;
	(void)said;
	(void)err;
	return 0;
}

/*
 * Mounts what is on the disk at t->mnt, and opens its root. 1 if it refuses: say why in `said`, for
 * the finding; then nothing is mounted, and t->root stays -1.
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
 * Closes t->root and unmounts. When it returns 0, nothing has the disk open any more: its content
 * is about to be exchanged. Unless `clean`, whatever makes it quick is right.
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

/* Ends what open() began, however far it came. Mounts and the disk are the caller's business. */
static void skeleton_close(struct target *t)
{
	(void)t;
}

/* Names that mkfs leaves in the root and no workload made; ext4 has "lost+found". */
static const char *const in_root[] = { NULL };

const struct target_ops target_skeleton = {
	.name = "skeleton",
	.help = "keeps nothing; a target to copy",
	.guarantee = "posix", /* the weakest that is documented: see doc/guarantees.md */
	.ignore = in_root,
	.programs = NULL,   /* programs that it runs, for outage doctor */
	.in_kernel = false, /* true: its name must be in /proc/filesystems */
	.needs_root = true,
	.open = skeleton_open,
	.mkfs = skeleton_mkfs,
	.recover = skeleton_recover,
	.mount = skeleton_mount,
	.remount = NULL, /* for those that are walked read-only after a crash */
	.umount = skeleton_umount,
	.fsck = skeleton_fsck,
	.close = skeleton_close,
};
