/* SPDX-License-Identifier: MIT */
/*
 * vm_template.c - keeps the memory and state of a booted machine in the cache, under a lock, and
 * finds them again.
 */
#include "guest/vm_template.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/names_in.h"
#include "guest/cache.h"

enum {
	CHUNK = 64 << 10,
	KEEP_MAX = 6,	  /* templates: each takes about 80 MB */
	WAIT_MS = 300000, /* longer than a boot may take */
	NAP_MS = 50,
};

void vm_template_init(struct vm_template *t, const struct strbuf *depends_on)
{
	struct hash128 h = hash_bytes(depends_on->buf, depends_on->len);

	*t = (struct vm_template){ .ram = -1, .state = -1, .lock = -1 };
	snprintf(t->name, sizeof(t->name), "vm-%016llx%016llx", (unsigned long long)h.hi,
		 (unsigned long long)h.lo);
}

void vm_template_release(struct vm_template *t)
{
	util_close(steal_fd(&t->ram));
	util_close(steal_fd(&t->state));
	t->boot = 0;
	vm_template_unlock(t);
}

static bool vm_template_ready(const struct vm_template *t)
{
	return t->ram >= 0 && t->state >= 0;
}

void vm_template_unlock(struct vm_template *t)
{
	util_close(steal_fd(&t->lock));
}

/* ---- copies ---- */

/* Copies all that is not zero, so that the copy has the same holes, and more. */
static int copy_to(int from, int to, uint64_t size)
{
	unsigned char *chunk = xmalloc(CHUNK);
	int rc = 0;

	for (off_t at = 0; !rc && (at = lseek(from, at, SEEK_DATA)) >= 0 && (uint64_t)at < size;
	     at += CHUNK) {
		ssize_t n = io_pread_full(from, chunk, CHUNK, at);

		rc = n < 0 ? (int)n : 0;
		if (n > 0 && !all_zero(chunk, (size_t)n))
			rc = io_pwrite_full(to, chunk, (size_t)n, at);
	}
	free(chunk);
	return rc;
}

int vm_memory(uint64_t size, int from, struct err *err)
{
	auto_fd fd = memfd_create("outage-guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	/* The size of a file that two processes map is sealed. */
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return err_set(err, -errno, "no memory for a guest: %m");
	int rc = from < 0 ? 0 : copy_to(from, fd, size);
	return rc ? err_set(err, rc, "no memory for a guest: %s", strerror(-rc)) : steal_fd(&fd);
}

/* ---- the cache ---- */

static char *file_of(const char *dir, const char *name, const char *what)
{
	return xasprintf("%s/%s.%s", dir, name, what);
}

/*
 * Locks the cache: both files are opened, written and removed under a lock, so that they always
 * belong to one machine. The lock is held only for a moment, unlike the one for making a template.
 */
static int lock_files(const char *dir, int how)
{
	auto_free char *path = file_of(dir, "vm", "files");
	auto_fd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	return fd < 0 || flock(fd, how) < 0 ? -1 : steal_fd(&fd);
}

static void open_both(struct vm_template *t, const char *dir)
{
	auto_fd lock = lock_files(dir, LOCK_SH);
	auto_free char *ram = file_of(dir, t->name, "ram"), *state = file_of(dir, t->name, "state");

	(void)lock; /* held until the return; without a lock the files are opened all the same */
	/* The state is written last. */
	t->state = open(state, O_RDONLY | O_CLOEXEC);
	t->ram = t->state < 0 ? -1 : open(ram, O_RDONLY | O_CLOEXEC);
	if (t->ram < 0)
		util_close(steal_fd(&t->state));
	else
		utimensat(AT_FDCWD, state, NULL, 0); /* marks the template as used */
}

/*
 * Waits for the lock for a bounded time, as a stopped process may hold it for ever: two processes
 * that make the same template do no harm.
 */
static bool take_turn(const struct vm_template *t)
{
	uint64_t began = util_now_ns();

	while (flock(t->lock, LOCK_EX | LOCK_NB) < 0) {
		if ((errno != EWOULDBLOCK && errno != EINTR) ||
		    util_now_ns() - began > WAIT_MS * 1000000ULL)
			return false;
		if (t->waiting)
			t->waiting(t->waiting_ctx);
		util_sleep_ms(NAP_MS);
	}
	return true;
}

bool vm_template_find(struct vm_template *t)
{
	auto_free char *dir = cache_dir();

	if (vm_template_ready(t) || !dir)
		return vm_template_ready(t);
	open_both(t, dir);
	if (vm_template_ready(t))
		return true;
	auto_free char *lock = file_of(dir, "vm", "lock");
	t->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (t->lock < 0 || !take_turn(t))
		return false;
	/* The former holder of the lock may have made the template. */
	open_both(t, dir);
	if (vm_template_ready(t))
		vm_template_unlock(t);
	return vm_template_ready(t);
}

static int keep_file(const char *dir, const char *name, const char *what, int from, struct err *err)
{
	auto_free char *path = file_of(dir, name, what);
	struct io_output out;
	struct stat st;
	int rc = io_output_open(path, &out, err);

	if (rc)
		return rc;
	rc = fstat(from, &st) < 0 || ftruncate(out.fd, st.st_size) < 0
		     ? -errno
		     : copy_to(from, out.fd, (uint64_t)st.st_size);
	if (rc)
		err_set(err, rc, "cannot write %s: %s", path, strerror(-rc));
	else
		rc = io_output_commit(&out, err);
	io_output_release(&out);
	return rc;
}

static void remove_both(const char *dir, const char *name)
{
	auto_free char *ram = file_of(dir, name, "ram"), *state = file_of(dir, name, "state");

	unlink(state);
	unlink(ram);
}

/* Finds the least recently used template; returns the number of templates. */
static unsigned find_oldest(const char *dir, char *oldest, size_t size)
{
	auto_names_in d = names_in(AT_FDCWD, dir);
	struct timespec since = { 0 };
	unsigned n = 0;

	for (struct dirent *e; (e = names_next(d));) {
		char *dot = strrchr(e->d_name, '.');
		struct stat st;

		if (strncmp(e->d_name, "vm-", 3) != 0 || !dot || !streq(dot, ".state") ||
		    fstatat(dirfd(d), e->d_name, &st, 0) < 0)
			continue;
		if (!n++ || st.st_mtim.tv_sec < since.tv_sec) {
			since = st.st_mtim;
			snprintf(oldest, size, "%.*s", (int)(dot - e->d_name), e->d_name);
		}
	}
	return n;
}

static void make_room(const char *dir)
{
	char oldest[64];

	for (int tries = 0; tries < KEEP_MAX; tries++)
		if (find_oldest(dir, oldest, sizeof(oldest)) >= KEEP_MAX)
			remove_both(dir, oldest);
}

int vm_template_keep(struct vm_template *t, int ram, int state, struct err *err)
{
	auto_free char *dir = cache_dir();
	int rc = 0;

	util_close(t->ram);
	util_close(t->state);
	t->boot = 0; /* another boot than before */
	t->ram = ram;
	t->state = state;
	if (dir) {
		auto_fd lock = lock_files(dir, LOCK_EX);

		(void)lock;
		make_room(dir);
		rc = keep_file(dir, t->name, "ram", ram, err);
		if (!rc)
			rc = keep_file(dir, t->name, "state", state, err);
		if (rc)
			remove_both(dir, t->name);
	}
	vm_template_unlock(t);
	return rc;
}

void vm_template_drop(struct vm_template *t)
{
	auto_free char *dir = cache_dir();

	if (dir) {
		auto_fd lock = lock_files(dir, LOCK_EX);

		(void)lock;
		remove_both(dir, t->name);
	}
	vm_template_release(t);
}
