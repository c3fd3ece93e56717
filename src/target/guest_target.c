/* SPDX-License-Identifier: MIT */
/*
 * guest_target.c - the part that all targets in a guest share, whatever runs the kernel.
 *
 * The guest is started at the first mount, and kept: crash states are put on its disk while it is
 * not mounted. The guest is restarted after a panic, or when it cannot unmount. mkfs and fsck run
 * here, as this user, on the memory that is the disk; recovery, whose writes are recorded, runs in
 * the guest.
 */
#include "target/guest_target.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/log.h"
#include "record/pm_disk.h"
#include "record/vhost_disk.h"
#include "guest/cache.h"

static struct guest_target *own(struct target *t)
{
	return t->own;
}

/* ---- its life ---- */

static int choose_memory(struct guest_target *g, uint64_t asked, uint64_t otherwise,
			 struct err *err)
{
	if (asked && (asked < TARGET_MEMORY_MIN || asked > TARGET_MEMORY_MAX))
		return err_set(err, -EINVAL, "--guest-memory is between %lluM and %lluG",
			       (unsigned long long)TARGET_MEMORY_MIN >> 20,
			       TARGET_MEMORY_MAX >> 30);
	g->memory = (asked ? asked : otherwise) >> 20 << 20;
	return 0;
}

static int find_fs(struct target *t, struct guest_target *g, const struct target_opts *opts,
		   struct err *err)
{
	g->fs = guest_fs_find(target_fs_name(t));
	if (g->fs)
		return 0;
	assert(streq(t->ops->name, GUEST_ANY_PM));
	g->fs = &g->named.fs;
	return guest_fs_named(opts->spec, opts->mkfs, &g->named, err);
}

int guest_target_init(struct target *t, struct guest_target *g, const struct target_opts *opts,
		      uint64_t memory, struct err *err)
{
	t->own = g;
	g->root = -1;
	g->guest = &g->guests[0];
	int rc = find_fs(t, g, opts, err);
	if (rc)
		return rc;
	g->flash = guest_fs_flash(g->fs->name);
	if (opts->recorder && !streq(opts->recorder, t->ops->pm ? PM_RECORDER : VHOST_RECORDER))
		return err_set(err, -EINVAL,
			       "recorder %s cannot see what a guest writes; leave --recorder out",
			       opts->recorder);
	t->mount_opts = host_mount_options(g->fs, opts->spec);
	if (!t->opts.size)
		t->opts.size = g->fs->size;
	rc = guest_args_split(opts->kernel_args, "--kernel-args", &g->args, err);
	return rc ? rc : choose_memory(g, opts->guest_memory, memory, err);
}

/* Loads the head of the disk, which a kernel reads when it boots, before there is a file system. */
static int load_head(struct target *t, struct err *err)
{
	struct image head;

	image_init(&head, t->opts.size);
	own(t)->put_head(&head);
	int rc = disk_load(t->disk, &head, err);
	image_release(&head);
	return rc;
}

int guest_target_ready(struct target *t, struct err *err)
{
	struct guest_target *g = own(t);
	int rc = t->ops->pm ? pm_disk_open(t->opts.size, &t->disk, err)
			    : vhost_disk_open(t->opts.size, &t->disk, err);

	for (size_t i = 0; !rc && i < ARRAY_SIZE(g->guests); i++) {
		guest_init(&g->guests[i], t->disk, &t->complaints);
		g->guests[i].starting = t->opts.starting;
		g->guests[i].starting_ctx = t->opts.starting_ctx;
	}
	g->ready = !rc;
	return rc || !g->put_head ? rc : load_head(t, err);
}

void guest_target_close(struct target *t)
{
	struct guest_target *g = own(t);

	if (!g)
		return;
	for (size_t i = 0; g->ready && i < ARRAY_SIZE(g->guests); i++)
		guest_release(&g->guests[i]);
	util_close(g->root);
	free(g->kernel);
	free(g->modules);
	guest_args_release(&g->args);
	free(g->files_hash);
	t->opts.files_hash = NULL;
	guest_named_fs_release(&g->named);
	free(g);
	t->own = NULL;
}

/* ---- questions ---- */

/* Asks the collected questions. Returns 0 and the answer, or 1 if the guest died of them. */
int guest_target_ask_all(struct target *t, struct wire_in *answer, struct err *err)
{
	int rc = guest_ask(own(t)->guest, 0, answer, err);

	if (!guest_runs(own(t)->guest)) {
		disk_set_in_use(t->disk, false);
		own(t)->begun = false;
		own(t)->walked = NULL;
		t->mounted = false;
	}
	return rc;
}

/* Asks the question, and reads the answer to its one command. */
int guest_target_ask(struct target *t, enum agent_command command, struct wire_in *part,
		     struct err *err)
{
	struct wire_in answer;
	int rc = guest_target_ask_all(t, &answer, err);

	return rc ? rc : guest_part(&answer, command, part, err);
}

struct strbuf *guest_target_begin(struct target *t, enum agent_command command)
{
	struct guest *g = own(t)->guest;

	guest_begin(g);
	wire_part(&g->out, command, 0);
	return &g->out.text;
}

/* Sets the clock of the guest, so that times do not depend on the duration of earlier steps. */
void guest_target_set_clock(struct target *t, uint64_t seconds)
{
	struct guest *g = own(t)->guest;

	if (!own(t)->clock)
		return;
	wire_part(&g->out, AGENT_CLOCK, 0);
	wire_put_u64(&g->out.text, own(t)->clock + seconds);
}

int guest_target_clock_set(struct target *t, struct wire_in *answer, struct err *err)
{
	struct wire_in part;
	int rc = own(t)->clock ? guest_part(answer, AGENT_CLOCK, &part, err) : 0;
	uint32_t error = own(t)->clock && !rc ? wire_u32(&part) : 0;

	return error ? err_set(err, -(int)error, "the guest cannot set its clock: %s",
			       strerror((int)error))
		     : rc;
}

/* ---- the operations of a target ---- */

static int first_line(const struct strbuf *said)
{
	return (int)strcspn(strbuf_str(said), "\n");
}

/* The size of the file system, without the head of the disk. */
static uint64_t fs_size(struct target *t)
{
	return t->opts.size - own(t)->head;
}

static int make_fs(struct target *t, struct image *out, struct err *err)
{
	auto_fd fd = memfd_create("outage-mkfs", MFD_CLOEXEC);
	auto_free char *path = xasprintf("/proc/%d/fd/%d", (int)getpid(), fd);

	if (fd < 0 || ftruncate(fd, (off_t)fs_size(t)) < 0)
		return err_set(err, -errno, "cannot make a file of %llu bytes in memory: %m",
			       (unsigned long long)fs_size(t));
	return host_make_fs(t, own(t)->fs, fd, path, out, err);
}

/* Makes a file system by mounting empty memory with the options for the first mount. */
static int first_mount(struct target *t, struct err *err)
{
	const char *made_by = own(t)->fs->made_by;
	char *usual = t->mount_opts;
	auto_free char *first = xasprintf("%s%s%s", usual ? usual : "", usual ? "," : "", made_by);
	auto_strbuf said = STRBUF_INIT;

	t->mount_opts = first;
	int rc = target_mount(t, &said, err);
	t->mount_opts = usual;
	if (rc > 0)
		return err_set(err, -EIO, "no %s can be made by mounting it with '%s': %.*s%s%s",
			       own(t)->fs->name, first, first_line(&said), strbuf_str(&said),
			       *t->console ? "; the guest's kernel said: " : "", t->console);
	return rc ? rc : target_umount(t, true, err);
}

static int make_by_mount(struct target *t, struct image *out, struct err *err)
{
	struct image empty;
	struct err later = ERR_INIT;

	image_init(&empty, t->opts.size);
	if (own(t)->put_head)
		own(t)->put_head(&empty);
	int rc = disk_load(t->disk, &empty, err);
	image_release(&empty);
	if (!rc)
		rc = disk_start(t->disk, NULL, err);
	if (rc)
		return rc;
	rc = first_mount(t, err);
	int stopped = disk_stop(t->disk, &later);
	if (!rc && stopped) {
		*err = later;
		rc = stopped;
	}
	if (!rc)
		image_snapshot(disk_image(t->disk), out);
	return rc;
}

/*
 * Makes a file system by the user's command; its dependencies are not known, so the result is not
 * cached.
 */
static int make_named(struct target *t, struct image *out, struct err *err)
{
	const char *command = t->opts.mkfs;

	t->opts.mkfs = NULL; /* the user's command takes no arguments for mkfs */
	int rc = make_fs(t, out, err);
	t->opts.mkfs = command;
	return rc;
}

/* Copies the pages of `from` that are not zero to `to`, `at` bytes further on. */
static void copy_shifted(const struct image *from, uint64_t at, struct image *to)
{
	unsigned char page[IMAGE_PAGE];

	for (uint64_t off = 0; off < from->size; off += IMAGE_PAGE) {
		size_t n = (size_t)min(from->size - off, (uint64_t)IMAGE_PAGE);

		image_read(from, off, page, n);
		if (!all_zero(page, n))
			image_write(to, at + off, page, n);
	}
}

/* Puts the image of a new file system behind the head, into an image of the whole disk. */
static void put_behind_head(struct target *t, struct image *img)
{
	struct image whole;

	if (!own(t)->put_head)
		return;
	image_init(&whole, t->opts.size);
	own(t)->put_head(&whole);
	copy_shifted(img, own(t)->head, &whole);
	image_release(img);
	*img = whole;
}

static int make_or_find(struct target *t, struct image *out, struct err *err)
{
	const struct host_fs *fs = own(t)->fs;
	struct cache_key key;

	if (fs == &own(t)->named.fs)
		return make_named(t, out, err);

	cache_key(&key, fs->mkfs, t->opts.mkfs ? t->opts.mkfs : "", fs_size(t));
	bool kept = cache_find(&key, fs_size(t), out);
	int rc = kept ? 0 : make_fs(t, out, err);
	if (!rc && host_check_new(t, fs, out, err)) {
		image_release(out);
		rc = err->code;
	}
	if (!rc && !kept)
		cache_keep(&key, out);
	return rc;
}

int guest_target_mkfs(struct target *t, struct image *out, struct err *err)
{
	if (own(t)->fs->made_by)
		return make_by_mount(t, out, err);
	int rc = make_or_find(t, out, err);
	if (!rc)
		put_behind_head(t, out);
	return rc;
}

/* Reports that the guest died during a step. */
static int told_death(struct target *t, struct strbuf *said)
{
	t->died = true;
	strbuf_addf(said, "the kernel died: %.*s\n", (int)strcspn(strbuf_str(&t->complaints), "\n"),
		    strbuf_str(&t->complaints));
	return 1;
}

static int run_in_guest(struct target *t, const char *const *argv, int *status, struct strbuf *said,
			struct err *err)
{
	struct strbuf *out = guest_target_begin(t, AGENT_RUN);
	struct wire_in part;
	uint32_t n = 0;

	while (argv[n])
		n++;
	wire_put_u32(out, n + 1);
	for (uint32_t i = 0; i < n; i++)
		wire_put_text(out, argv[i]);
	wire_put_text(out, "{disk}");
	int rc = guest_target_ask(t, AGENT_RUN, &part, err);
	if (rc)
		return rc;
	*status = (int)wire_u32(&part);
	strbuf_adds(said, wire_text(&part));
	rc = guest_part_ok(&part, err);
	if (!rc && (*status == 126 || *status == 127))
		rc = err_set(err, -ENOEXEC, "%s cannot be run in the guest (%d)", argv[0], *status);
	return rc;
}

int guest_target_recover(struct target *t, struct strbuf *said, struct err *err)
{
	const struct host_fs *fs = own(t)->fs;
	int status;
	int rc = !fs->recover || guest_runs(own(t)->guest) ? 0 : own(t)->start(t, err);

	if (rc || !fs->recover)
		return rc;
	rc = run_in_guest(t, fs->recover, &status, said, err);
	if (!rc && (status < 0 || status > 3) && fs->repair)
		rc = run_in_guest(t, fs->repair, &status, said, err);
	if (rc == 1)
		return told_death(t, said);
	return rc ? rc : status < 0 || status > 3;
}

/* The flags among the options; the other options go to the file system, as `data`. */
static uint32_t mount_flags(const struct target *t, struct strbuf *data)
{
	unsigned long flags = MS_NODEV | MS_NOSUID;

	host_split_options(t->mount_opts, &flags, data);
	return (uint32_t)flags;
}

/* Adds the reason why a step was refused. */
static int told_refusal(struct target *t, const char *step, int error, struct strbuf *said)
{
	strbuf_addf(said, "%s: %s\n", step, strerror(error));
	snprintf(t->console, sizeof(t->console), "%s", guest_last_words(own(t)->guest));
	return 1;
}

int guest_target_mount(struct target *t, struct strbuf *said, struct err *err)
{
	auto_strbuf data = STRBUF_INIT;
	uint32_t flags = mount_flags(t, &data) | (t->read_only ? MS_RDONLY : 0);
	struct wire_in answer, part;
	int rc = guest_runs(own(t)->guest) ? 0 : own(t)->start(t, err);

	if (!rc && own(t)->flash)
		rc = vhost_disk_lay_out(t->disk, err);
	if (rc)
		return rc;
	t->clock = (int64_t)own(t)->clock;
	guest_begin(own(t)->guest);
	guest_target_set_clock(t, 0);
	wire_part(&own(t)->guest->out, AGENT_MOUNT, 0);
	struct strbuf *out = &own(t)->guest->out.text;
	wire_put_text(out, own(t)->fs->name);
	wire_put_text(out, own(t)->flash ? own(t)->flash->source : "");
	wire_put_u32(out, flags);
	wire_put_text(out, strbuf_str(&data));
	disk_set_in_use(t->disk, true);
	own(t)->begun = false;
	guest_hush(own(t)->guest);
	rc = guest_target_ask_all(t, &answer, err);
	if (rc == 1)
		return told_death(t, said);
	if (!rc)
		rc = guest_target_clock_set(t, &answer, err);
	if (!rc)
		rc = guest_part(&answer, AGENT_MOUNT, &part, err);
	if (rc)
		return rc;
	int error = (int)wire_u32(&part);
	const char *step = wire_text(&part);
	rc = guest_part_ok(&part, err);
	if (rc || !error)
		return rc;
	disk_set_in_use(t->disk, false);
	if (error == ENODEV)
		return err_set(err, -error,
			       "the kernel %s has no %s, and there is no module (see "
			       "--modules)",
			       own(t)->kernel, own(t)->fs->name);
	return told_refusal(t, step, error, said);
}

int guest_target_remount(struct target *t, struct strbuf *said, struct err *err)
{
	auto_strbuf data = STRBUF_INIT;
	struct wire_in part;

	wire_put_u32(guest_target_begin(t, AGENT_REMOUNT), mount_flags(t, &data));
	guest_hush(own(t)->guest);
	int rc = guest_target_ask(t, AGENT_REMOUNT, &part, err);
	if (rc == 1)
		return told_death(t, said);
	if (rc)
		return rc;
	int error = (int)wire_u32(&part);
	rc = guest_part_ok(&part, err);
	return rc || !error ? rc : told_refusal(t, "remount", error, said);
}

/* Gives up a guest that cannot unmount: only its disk matters, and that is here. */
static int give_up(struct target *t, bool clean, int error, struct err *err)
{
	log_info("the guest cannot unmount %s (%s), and is started anew", own(t)->fs->name,
		 strerror(error));
	guest_stop(own(t)->guest);
	disk_set_in_use(t->disk, false);
	own(t)->walked = NULL;
	t->mounted = false;
	if (!clean)
		return 0;
	return err_set(err, -error, "cannot unmount %s in the guest: %s", own(t)->fs->name,
		       strerror(error));
}

int guest_target_umount(struct target *t, bool clean, struct err *err)
{
	struct guest *g = own(t)->guest;
	struct strbuf *out = guest_target_begin(t, AGENT_UMOUNT);
	bool cut_off = !clean && own(t)->fs->shutdown;
	struct wire_in part;

	guest_listen(g);
	wire_put_u32(out, cut_off);
	/* A file system that is cut off before it is unmounted complains, which we have caused. */
	g->quiet_of_device = cut_off;
	int rc = guest_target_ask(t, AGENT_UMOUNT, &part, err);
	g->quiet_of_device = false;
	if (rc)
		return min(rc, 0); /* a guest that died has nothing mounted, and that is reported */
	int error = (int)wire_u32(&part);
	wire_u32(&part);
	rc = guest_part_ok(&part, err);
	if (error || rc)
		return give_up(t, clean, rc ? -rc : error, err);
	disk_set_in_use(t->disk, false);
	return 0;
}

/* Programs expect a file system at the start of a file. */
static int copy_without_head(struct target *t, struct err *err)
{
	auto_fd fd = memfd_create("outage-fsck", MFD_CLOEXEC);
	const struct image *whole = disk_image(t->disk);
	unsigned char page[IMAGE_PAGE];

	if (fd < 0 || ftruncate(fd, (off_t)fs_size(t)) < 0)
		return err_set(err, -errno, "cannot make a file in memory: %m");
	for (uint64_t off = 0; off < fs_size(t); off += IMAGE_PAGE) {
		image_read(whole, own(t)->head + off, page, sizeof(page));
		if (pwrite(fd, page, sizeof(page), (off_t)off) != (ssize_t)sizeof(page))
			return err_set(err, -EIO, "cannot write a file in memory: %m");
	}
	return steal_fd(&fd);
}

int guest_target_fsck(struct target *t, struct strbuf *said, struct err *err)
{
	const struct host_fs *fs = own(t)->fs;
	auto_fd copy = fs->fsck && own(t)->head ? copy_without_head(t, err) : -1;
	auto_free char *path = copy >= 0 ? xasprintf("/proc/%d/fd/%d", (int)getpid(), copy)
					 : disk_path(t->disk);
	int status;

	if (!fs->fsck || t->opts.strange)
		return 0;
	if (own(t)->head && copy < 0)
		return copy;
	int rc = host_run_tool(t, fs->fsck, NULL, path, &status, said, err);
	return rc ? rc : status != 0;
}
