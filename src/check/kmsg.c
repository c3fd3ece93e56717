/* SPDX-License-Identifier: MIT */
/* kmsg.c - reads /dev/kmsg, and decides to which process a complaint belongs. */
#include "check/kmsg.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/below.h"
#include "base/io.h"
#include "base/log.h"
#include "base/proc.h"
#include "check/complaint.h"

enum {
	FILE_MAX = 64 << 20, /* of the kept file */
	QUIET_MS = 100,	     /* a block ends after so long without a line */
	BLOCK_LINES = 64,    /* the longest block, if no end is found */
	HEAD_LINES = 16,     /* lines until the process is named; bugs in them are one */
};

void kmsg_block_release(struct kmsg_block *b)
{
	free(b->text);
	*b = (struct kmsg_block){ 0 };
}

int kmsg_block_append(const struct kmsg_block *b, const char *dir, const char *name,
		      struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = below_exists(dir, name) ? io_slurp_file(dir, name, FILE_MAX, &text, err) : 0;

	strbuf_adds(&text, b->text);
	return rc ? rc : io_keep_file(dir, name, text.buf, text.len, err);
}

void kmsg_open(struct kmsg *k, struct kmsg_shared *shared)
{
	*k = (struct kmsg){ .fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC),
			    .shared = shared };
	if (k->fd >= 0)
		lseek(k->fd, 0, SEEK_END);
}

void kmsg_close(struct kmsg *k)
{
	util_close(steal_fd(&k->fd));
	strbuf_release(&k->lines);
	vec_release_each(p, &k->unclaimed, kmsg_block_release(p));
}

/* ---- one line ---- */

bool kmsg_complains(const char *line, const char *device)
{
	return complaint_is_bug(line) || complaint_is_of_device(line, device);
}

/* Returns the number at the end of "NAME/7" or "NAME:7"; a name may have these characters, too. */
static pid_t number_after(const char *from, const char *to, char mark)
{
	const char *at = memrchr(from, mark, (size_t)(to - from));
	char *end;

	if (!at || !isdigit((unsigned char)at[1]))
		return 0;
	unsigned long pid = strtoul(at + 1, &end, 10);
	return end == to && pid <= INT32_MAX ? (pid_t)pid : 0;
}

pid_t kmsg_pid(const char *line)
{
	const char *p, *end = line + strlen(line);
	unsigned pid;

	/* "CPU: 1 PID: 7 Comm: NAME", and what a warning of older kernels begins with */
	if ((p = strstr(line, "PID: ")) && sscanf(p, "PID: %9u", &pid) == 1)
		return (pid_t)pid;
	/* "WARNING: FILE:LINE at FUNCTION, CPU#1: NAME/7" */
	if ((p = strstr(line, ", CPU#")) && (p = strstr(p, ": ")))
		return number_after(p, end, '/');
	/* "INFO: task NAME:7 blocked for more than" */
	if ((p = strstr(line, "task ")) && (end = strstr(p, " blocked for more than")))
		return number_after(p, end, ':');
	/* "BUG: soft lockup - CPU#0 stuck for 22s! [NAME:7]" */
	end = line + strlen(line);
	if ((p = strstr(line, "stuck for ")) && end > p && end[-1] == ']')
		return number_after(p, end - 1, ':');
	return 0;
}

/* ---- the origin of a block ---- */

enum origin { OURS, UNKNOWN, OTHERS };

/* True if process numbers in the log are ours: they are those of the first PID namespace. */
static bool knows_pids(void)
{
	enum { FIRST_NAMESPACE = 0xEFFFFFFC };
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST_NAMESPACE;
}

/* True for this process, one of its threads, or a process below it. */
static bool is_below_us(pid_t pid)
{
	struct proc_stat p;
	char task[64];

	for (int depth = 0; pid > 1 && depth < 64; depth++) {
		snprintf(task, sizeof(task), "/proc/self/task/%d", (int)pid);
		if (access(task, F_OK) == 0)
			return true;
		if (!proc_stat(pid, &p))
			return false;
		pid = p.parent;
	}
	return false;
}

/* True if a text names the device: by name, or by number, as in kernel threads that write back. */
static bool names_device(const char *text, const char *device)
{
	auto_free char *path = xasprintf("/dev/%s", device);
	struct stat st;

	if (complaint_has_word(text, device))
		return true;
	if (stat(path, &st) < 0 || !S_ISBLK(st.st_mode))
		return false;
	auto_free char *flush = xasprintf("flush-%u:%u", major(st.st_rdev), minor(st.st_rdev));
	return complaint_has_word(text, flush);
}

/* True if the block, by its first line, is only about a process that waits for long. */
static bool is_slow(const char *text)
{
	const char *words = strstr(text, "blocked for more than");

	return words && words < text + strcspn(text, "\n");
}

static enum origin judge(const struct kmsg_block *b, const char *text, const char *device)
{
	struct proc_stat p;

	if (device && names_device(text, device))
		return OURS;
	if (!b->pid || !knows_pids())
		return UNKNOWN;
	if (is_below_us(b->pid))
		return OURS;
	if (!proc_stat(b->pid, &p) || p.state == 'Z')
		return UNKNOWN;
	/* A kernel thread waits for a slow disk, but not for ours, which it would name. */
	return !p.kernel || is_slow(text) ? OTHERS : UNKNOWN;
}

/* ---- claims ---- */

static void claim(struct kmsg *k, uint64_t seq)
{
	if (k->shared)
		atomic_store(
			&k->shared->claims[atomic_fetch_add(&k->shared->claimed, 1) % KMSG_CLAIMS],
			seq + 1);
}

static bool is_claimed(const struct kmsg *k, uint64_t seq)
{
	return k->shared && any_of(i, KMSG_CLAIMS, atomic_load(&k->shared->claims[i]) == seq + 1);
}

/* ---- reading ---- */

/* The purpose of reading the log. */
struct reading {
	const char *device;
	bool of_device, parent;
	struct strbuf *out;
};

static const char *first_line(struct kmsg *k)
{
	char *text = k->lines.buf;

	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* Blocks that a reader has claimed by now need not be kept. */
static void forget_claimed(struct kmsg *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->unclaimed.n; i++)
		if (is_claimed(k, k->unclaimed.v[i].seq))
			kmsg_block_release(&k->unclaimed.v[i]);
		else
			k->unclaimed.v[n++] = k->unclaimed.v[i];
	k->unclaimed.n = n;
}

static void keep_block(struct kmsg *k)
{
	struct kmsg_block b = k->block;

	forget_claimed(k);
	if (k->unclaimed.n >= KMSG_KEPT) {
		if (!k->told_full)
			log_warn("the kernel complains again and again; only the first %d "
				 "complaints are kept (see dmesg): %s",
				 KMSG_KEPT, first_line(k));
		k->told_full = true;
		return;
	}
	b.text = strbuf_detach(&k->lines);
	vec_push(&k->unclaimed, b);
}

static void end_block(struct kmsg *k, const struct reading *r)
{
	if (!k->block.lines)
		return;
	enum origin origin = judge(&k->block, k->lines.buf, r->device);
	if (origin == OTHERS) {
		if (r->parent || !k->shared)
			log_warn("the kernel complains of what is not of this run: %s",
				 first_line(k));
	} else if (r->parent) {
		keep_block(k);
	} else if (origin == OURS || !k->shared) {
		claim(k, k->block.seq);
		strbuf_add(r->out, k->lines.buf, k->lines.len);
	}
	strbuf_clear(&k->lines);
	k->block = (struct kmsg_block){ 0 };
}

static void take_line(struct kmsg *k, const struct reading *r, uint64_t seq, const char *text)
{
	bool bug = complaint_is_bug(text);

	if (bug && k->block.lines && (k->block.pid || k->block.lines >= HEAD_LINES))
		end_block(k, r);
	if (!bug && r->of_device && complaint_is_of_device(text, r->device))
		strbuf_addf(r->out, "%s\n", text);
	if (!bug && !k->block.lines)
		return;
	if (!k->block.lines++)
		k->block.seq = seq;
	if (!k->block.pid)
		k->block.pid = kmsg_pid(text);
	strbuf_addf(&k->lines, "%s\n", text);
	if (strstr(text, "---[ end trace") || k->block.lines == BLOCK_LINES)
		end_block(k, r);
}

/* Takes records, "PRIORITY,SEQUENCE,TIME,FLAGS;TEXT"; further lines, with a blank in front, are
 * keys.
 */
static void take_records(struct kmsg *k, const struct reading *r, char *rest)
{
	for (char *line; (line = strsep(&rest, "\n"));) {
		char *text = strchr(line, ';');
		unsigned long long seq;

		if (text && *line != ' ' && sscanf(line, "%*u,%llu,", &seq) == 1)
			take_line(k, r, seq, text + 1);
	}
}

static void note_lost(struct kmsg *k)
{
	if (k->shared)
		atomic_store(&k->shared->lost, true);
	else
		k->lost = true;
}

/* Warns once in a run, in a process without a parent. */
static void tell_lost(struct kmsg *k)
{
	if (k->told_lost || !(k->lost || (k->shared && atomic_load(&k->shared->lost))))
		return;
	log_warn("the kernel said more than could be read: complaints may have been lost (see "
		 "dmesg)");
	k->told_lost = true;
}

static void read_all(struct kmsg *k, const struct reading *r)
{
	char records[8192];

	while (k->fd >= 0) {
		ssize_t n = read(k->fd, records, sizeof(records) - 1);

		/* Records were overwritten; reading goes on with the oldest one. */
		if (n < 0 && errno == EPIPE)
			note_lost(k);
		else if (n <= 0)
			break;
		records[max(n, (ssize_t)0)] = '\0';
		take_records(k, r, records);
	}
	if (r->parent || !k->shared)
		tell_lost(k);
}

bool kmsg_read(struct kmsg *k, const char *device, bool of_device, struct strbuf *out)
{
	struct reading r = { .device = device, .of_device = of_device, .out = out };
	size_t before = out->len;

	read_all(k, &r);
	/* A block that this process caused is complete before this call. */
	end_block(k, &r);
	return out->len > before;
}

void kmsg_watch(struct kmsg *k)
{
	struct reading r = { .parent = true };
	unsigned before = k->block.lines;

	read_all(k, &r);
	if (k->block.lines != before)
		k->grew_ns = util_now_ns();
	else if (before && util_now_ns() - k->grew_ns > QUIET_MS * 1000000ULL)
		end_block(k, &r);
}

bool kmsg_next_unclaimed(struct kmsg *k, struct kmsg_block *out)
{
	end_block(k, &(struct reading){ .parent = true });
	forget_claimed(k);
	if (!k->unclaimed.n)
		return false;
	*out = k->unclaimed.v[0];
	vec_remove(&k->unclaimed, 0, 1);
	return true;
}

void kmsg_finish(struct kmsg *k, void (*take)(void *ctx, const struct kmsg_block *b), void *ctx)
{
	struct kmsg_block b;

	kmsg_watch(k);
	while (kmsg_next_unclaimed(k, &b)) {
		take(ctx, &b);
		kmsg_block_release(&b);
	}
	kmsg_close(k);
}
