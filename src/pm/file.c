/* SPDX-License-Identifier: MIT */
/* file.c - mounts a copy over the user's file, and writes the pages that differ. */
#include "pm/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

#define AT(name) SPACE_DIR "/" name

enum { ROOM = 64 << 20 }; /* in addition to the file, for what commands write there */

struct pm_file {
	int fd;
	uint64_t size;
};

static int make_file(struct pm_file *f, const char *path, struct err *err)
{
	char options[96];
	struct stat st;

	if (stat(path, &st))
		return err_set(err, -errno, "cannot use %s: %m", path);
	snprintf(options, sizeof(options), "mode=755,size=%llu", llu(f->size + ROOM));
	if (mount("outage-pm", SPACE_DIR, "tmpfs", MS_NOSUID | MS_NODEV, options))
		return err_set(err, -errno, "cannot mount a tmpfs for crash states: %m");
	if (mkdir(PM_FILE_NOTES, 0755))
		return err_set(err, -errno, "cannot make a directory: %m");
	f->fd = open(AT("file"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (f->fd < 0 || fchmod(f->fd, st.st_mode & 07777) || ftruncate(f->fd, (off_t)f->size))
		return err_set(err, -errno, "cannot make a file of %llu bytes in memory: %m",
			       llu(f->size));
	if ((st.st_uid != geteuid() || st.st_gid != getegid()) &&
	    fchown(f->fd, st.st_uid, st.st_gid) && errno != EPERM && errno != EINVAL)
		return err_set(err, -errno, "cannot change the owner of a file: %m");
	if (mount(AT("file"), path, NULL, MS_BIND, NULL))
		return err_set(err, -errno, "cannot mount a copy over %s: %m", path);
	return 0;
}

int pm_file_place(const char *path, bool *made, struct err *err)
{
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	*made = fd >= 0;
	if (fd < 0 && errno != EEXIST)
		return err_set(err, -errno,
			       "the state is shown at %s, and no file can be there: %m", path);
	return 0;
}

int pm_file_new(const char *path, uint64_t size, struct pm_file **out, struct err *err)
{
	struct pm_file *f = xcalloc(1, sizeof(*f));

	f->fd = -1;
	f->size = size;
	int rc = space_enter_as_user(err);
	if (!rc)
		rc = make_file(f, path, err);
	if (rc) {
		util_close(f->fd);
		free(f);
	} else {
		*out = f;
	}
	return rc;
}

static bool is_zero(const unsigned char *p, size_t len)
{
	return !p[0] && memcmp(p, p + 1, len - 1) == 0;
}

/* Writes the pages of [from, to), which have data in the file. */
static int put_range(struct pm_file *f, const struct image *img, uint64_t from, uint64_t to)
{
	unsigned char want[IMAGE_PAGE], is[IMAGE_PAGE];

	for (uint64_t at = from / IMAGE_PAGE * IMAGE_PAGE; at < to; at += IMAGE_PAGE) {
		size_t n = (size_t)min((uint64_t)IMAGE_PAGE, img->size - at);
		ssize_t got = io_pread_full(f->fd, is, n, (off_t)at);

		if (got != (ssize_t)n)
			return got < 0 ? (int)got : -EIO;
		image_read(img, at, want, n);
		int rc = memcmp(is, want, n) ? io_pwrite_full(f->fd, want, n, (off_t)at) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

static int fill_page(void *ctx, uint64_t page, const unsigned char *a, const unsigned char *b)
{
	const struct pm_file *f = ctx;
	size_t n = (size_t)min((uint64_t)IMAGE_PAGE, f->size - page * IMAGE_PAGE);

	(void)a;
	return is_zero(b, n) ? 0 : io_pwrite_full(f->fd, b, n, (off_t)(page * IMAGE_PAGE));
}

/* Writes pages that are a hole in the file, and not zero in the image. */
static int put_holes(struct pm_file *f, const struct image *img)
{
	auto_image is = IMAGE_INIT;
	int rc = image_load_fd(f->fd, "a crash state", &is, NULL);

	return rc ? rc : image_diff(&is, img, fill_page, f);
}

int pm_file_put(struct pm_file *f, const struct image *img, struct err *err)
{
	struct stat st;
	int rc = 0;

	assert(img->size == f->size);
	if (fstat(f->fd, &st) ||
	    ((uint64_t)st.st_size != f->size && ftruncate(f->fd, (off_t)f->size)))
		return err_set(err, -errno, "cannot put a crash state in place: %m");
	bool holes = false;
	for (off_t at = 0, data; !rc && at < (off_t)f->size;) {
		data = lseek(f->fd, at, SEEK_DATA);
		off_t end = data < 0 ? -1 : lseek(f->fd, data, SEEK_HOLE);

		holes |= data != at;
		if (data < 0)
			break;
		rc = put_range(f, img, (uint64_t)data, (uint64_t)end);
		at = end;
	}
	if (!rc && holes)
		rc = put_holes(f, img);
	return rc ? err_set(err, rc, "cannot write a crash state: %s", strerror(-rc)) : 0;
}
