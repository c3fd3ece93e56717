/* SPDX-License-Identifier: MIT */
/* main.c - seedfs mkfs, mount, fsck, sync, bugs. */
#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/number.h"
#include "base/strbuf.h"

#define DEFAULT_SIZE (4U << 20)

enum { FSCK_CLEAN = 0, FSCK_RECOVERED = 1, FSCK_DAMAGED = 4, FSCK_ERROR = 8 };

static int usage(void)
{
	fputs("usage: seedfs mkfs DISK [--size BYTES]\n"
	      "       seedfs mount DISK MNT [-o bug=NAME[,NAME...]] [-o clock=fixed]\n"
	      "             [-o hang=fsync|recovery] [-f]\n"
	      "       seedfs fsck DISK [-o bug=NAME[,NAME...]]\n"
	      "       seedfs sync MNT\n"
	      "       seedfs bugs\n",
	      stderr);
	return 2;
}

struct options {
	bool fixed_clock;
	bool hang_recovery; /* a disk that is not clean is never mounted */
	struct strbuf rest; /* for the kernel */
};

/* Names after bug= go on until something that is no bug's name. */
static bool parse_options(const char *s, struct options *o)
{
	bool bugs = false;

	while (*s) {
		size_t len = strcspn(s, ",");
		const char *name = s;
		size_t n = len;
		int id;

		if (strncmp(s, "bug=", 4) == 0) {
			bugs = true;
			name += 4;
			n -= 4;
		}
		id = bugs ? bug_find(name, n) : -1;
		if (id >= 0) {
			bugs_on |= 1ULL << id;
		} else if (name != s) {
			fprintf(stderr, "seedfs: no bug is named %.*s; see seedfs bugs\n", (int)n,
				name);
			return false;
		} else if (len == strlen("clock=fixed") && strncmp(s, "clock=fixed", len) == 0) {
			o->fixed_clock = true;
		} else if (len == strlen("hang=fsync") && strncmp(s, "hang=fsync", len) == 0) {
			ops_hang = true;
		} else if (len == strlen("hang=recovery") &&
			   strncmp(s, "hang=recovery", len) == 0) {
			o->hang_recovery = true;
		} else if (len > 0) {
			if (o->rest.len)
				strbuf_addch(&o->rest, ',');
			strbuf_add(&o->rest, s, len);
		}
		s += len + (s[len] == ',');
	}
	return true;
}

static int fail(const char *what, const char *path, int r)
{
	fprintf(stderr, "seedfs: %s %s: %s\n", what, path, strerror(-r));
	return 2;
}

/* The size given, that of the file if there is one, or the usual one. */
static int cmd_mkfs(int argc, char **argv)
{
	uint64_t size = 0;
	struct err err = ERR_INIT;
	struct stat st;
	struct disk d;
	auto_fd fd = -1;
	int r;

	if (argc != 1 && !(argc == 3 && streq(argv[1], "--size")))
		return usage();
	if (argc == 3 && number_parse_size(argv[2], &size, &err) < 0) {
		fprintf(stderr, "seedfs: %s\n", err.msg);
		return 2;
	}
	fd = open(argv[0], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail("cannot open", argv[0], -errno);
	if (size == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		size = DEFAULT_SIZE;
	if (size && S_ISREG(st.st_mode) && ftruncate(fd, (off_t)size) < 0)
		return fail("cannot set the size of", argv[0], -errno);
	r = disk_open(argv[0], &d);
	if (r < 0)
		return fail("cannot open", argv[0], r);
	r = fs_mkfs(&d,
		    size ? (uint32_t)min(size / BLOCK_BYTES, (uint64_t)UINT32_MAX) : d.n_blocks);
	disk_close(&d);
	return r < 0 ? fail("cannot make a file system of 1 MiB to 1 GiB on", argv[0], r) : 0;
}

static void say_recovered(const struct recovered *rec, FILE *out)
{
	if (rec->was_dirty)
		fprintf(out, "recovered: %u transactions, %u fsync records, %u orphans\n",
			rec->transactions, rec->batches, rec->orphans);
}

static int cmd_mount(int argc, char **argv)
{
	const char *paths[2];
	struct options o = { 0 };
	struct recovered rec;
	bool foreground = false;
	char why[256];
	struct disk d;
	struct fs *fs;
	int n = 0, r;

	for (int i = 0; i < argc; i++) {
		if (streq(argv[i], "-f"))
			foreground = true;
		else if (streq(argv[i], "-o") && i + 1 < argc) {
			if (!parse_options(argv[++i], &o))
				return 2;
		} else if (n < 2 && argv[i][0] != '-')
			paths[n++] = argv[i];
		else
			return usage();
	}
	if (n != 2)
		return usage();
	r = disk_open(paths[0], &d);
	if (r < 0)
		return fail("cannot open", paths[0], r);
	r = fs_open(&d, o.fixed_clock, &rec, why, sizeof(why), &fs);
	if (r < 0) {
		fprintf(stderr, "seedfs: cannot mount %s: %s\n", paths[0], why);
		disk_close(&d);
		return 2;
	}
	say_recovered(&rec, stderr);
	while (o.hang_recovery && rec.was_dirty)
		pause();
	r = ops_serve(fs, paths[1], strbuf_str(&o.rest), foreground);
	disk_close(&d);
	strbuf_release(&o.rest);
	return r < 0 ? fail("serving failed on", paths[1], r) : 0;
}

static int check_disk(struct disk *d)
{
	struct recovered rec;
	struct fs *fs;
	char why[256];
	unsigned bad;
	int r = fs_open(d, false, &rec, why, sizeof(why), &fs);

	if (r < 0) {
		printf("damaged: %s\n", why);
		return r == -EUCLEAN ? FSCK_DAMAGED : FSCK_ERROR;
	}
	say_recovered(&rec, stdout);
	bad = check_all(fs, stdout);
	if (bad) {
		printf("damaged: %u things are wrong\n", bad);
		fs_free(fs);
		return FSCK_DAMAGED;
	}
	r = fs_close(fs);
	if (r < 0)
		return FSCK_ERROR;
	if (!rec.was_dirty)
		puts("clean");
	return rec.was_dirty ? FSCK_RECOVERED : FSCK_CLEAN;
}

static int cmd_fsck(int argc, char **argv)
{
	struct options o = { 0 };
	struct disk d;
	int r;

	if (argc != 1 && !(argc == 3 && streq(argv[1], "-o")))
		return usage();
	if (argc == 3 && !parse_options(argv[2], &o))
		return 2;
	strbuf_release(&o.rest);
	r = disk_open(argv[0], &d);
	if (r < 0) {
		(void)fail("cannot open", argv[0], r);
		return FSCK_ERROR;
	}
	r = check_disk(&d);
	disk_close(&d);
	return r;
}

/* sync(2) does not reach a server like this one. */
static int cmd_sync(const char *mountpoint)
{
	if (setxattr(mountpoint, SYNC_XATTR, "1", 1, 0) < 0)
		return fail("cannot sync", mountpoint, -errno);
	return 0;
}

static int cmd_bugs(void)
{
	for (int i = 0; i < BUG_COUNT; i++)
		printf("%-17s %s\n%-17s   seen: %s\n%-17s   crash: %s\n", bug_table[i].name,
		       bug_table[i].what, "", bug_table[i].consequence, "", bug_table[i].crash);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 3 && streq(argv[1], "mkfs"))
		return cmd_mkfs(argc - 2, argv + 2);
	if (argc >= 4 && streq(argv[1], "mount"))
		return cmd_mount(argc - 2, argv + 2);
	if (argc >= 3 && streq(argv[1], "fsck"))
		return cmd_fsck(argc - 2, argv + 2);
	if (argc == 3 && streq(argv[1], "sync"))
		return cmd_sync(argv[2]);
	if (argc == 2 && streq(argv[1], "bugs"))
		return cmd_bugs();
	return usage();
}
