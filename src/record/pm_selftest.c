/* SPDX-License-Identifier: MIT */
/*
 * pm_selftest.c - runs the known program, and compares the stream with a table. The table follows
 * plugin/selftest.S line by line.
 */
#include "record/pm_selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "record/pm_blob.h"
#include "record/pm_tracer.h"

enum { REGION = SELFTEST_REGION, TIMEOUT_MS = 60000, TEXT_LEN = 8, PAGE = 4096 };

struct expected {
	uint8_t kind;
	uint32_t len;
	uint64_t addr;
	uint64_t value; /* the first 8 bytes of the data, or all if there are fewer */
	uint32_t times; /* so many equal ones in a row; 0: one */
	bool locked;	/* a fence by another instruction: see is_needless() */
};

#define FOURS  0x4444444444444444
#define FIVES  0x5555555555555555
#define SIXES  0x6666666666666666
#define SELF_A 0x1122334455667788
enum { SELF_B = 42, SELF_CLFLUSH = 43 }; /* the second, if there is only clflush */

/* clang-format off */
static const struct expected expected[] = {
	{ .kind = PM_STREAM_SELF, .addr = SELF_A, .value = SELF_B },
	{ .kind = PM_STREAM_MARK_BEGIN, .addr = 1 },
	{ PM_STREAM_STORE, 1, 0, 0x11, 0, false },
	{ PM_STREAM_STORE, 2, 2, 0x2222, 0, false },
	{ PM_STREAM_STORE, 4, 4, 0x33333333, 0, false },
	{ PM_STREAM_STORE, 8, 8, FOURS, 0, false },
	{ PM_STREAM_STORE, 8, 0x10, FOURS, 2, false },
	{ .kind = PM_STREAM_FLUSH, .addr = 0 },
	{ .kind = PM_STREAM_FLUSH, .addr = 0x40 },
	{ .kind = PM_STREAM_CLFLUSH, .addr = 0x80 },
	{ .kind = PM_STREAM_FLUSH, .addr = 0xc0 },
	{ .kind = PM_STREAM_FENCE },
	{ .kind = PM_STREAM_FENCE },
	{ .kind = PM_STREAM_MARK_END, .addr = 1 },
	{ .kind = PM_STREAM_MARK_BEGIN, .addr = 2 },
	{ PM_STREAM_NTSTORE, 8, 0x100, FIVES, 0, false },
	{ PM_STREAM_NTSTORE, 4, 0x108, 0x55555555, 0, false },
	{ PM_STREAM_NTSTORE, 8, 0x110, FIVES, 0, false },
	{ PM_STREAM_NTSTORE, 8, 0x120, FOURS, 4, false },
	{ PM_STREAM_NTSTORE, 1, 0x140, 0x44, 16, false },
	{ .kind = PM_STREAM_FENCE },
	{ PM_STREAM_STORE, 8, 0x200, 7, 0, false },
	{ .kind = PM_STREAM_FENCE, .locked = true },
	{ PM_STREAM_STORE, 8, 0x200, 8, 0, false },
	{ .kind = PM_STREAM_FENCE, .locked = true },
	{ PM_STREAM_STORE, 8, 0x208, 9, 0, false },
	{ PM_STREAM_STORE, 8, 0x210, 0x3333333322220011, 0, false },
	{ PM_STREAM_STORE, 8, 0x218, FOURS, 0, false },
	{ .kind = PM_STREAM_FENCE, .locked = true },
	{ PM_STREAM_STORE, 16, 0x220, 3, 0, false },
	{ PM_STREAM_STORE, 8, 0x230, 0x8000000000000000, 0, false },
	{ PM_STREAM_STORE, 2, 0x238, 0x3fff, 0, false },
	{ PM_STREAM_STORE, 8, 0x240, 0x3ff0000000000000, 0, false },
	{ PM_STREAM_STORE, 8, 0xffc, SIXES, 0, false },
	{ PM_STREAM_TEXT, TEXT_LEN, 0, 0x74736574666c6573, 0, false },
	{ .kind = PM_STREAM_MARK_END, .addr = 2 },
};
/* clang-format on */

static uint64_t value_of(const struct pm_record *rec)
{
	uint64_t v = 0;

	if (rec->r.kind == PM_STREAM_SELF)
		return rec->r.pc;
	if (rec->data)
		memcpy(&v, rec->data, min(rec->r.len, 8u));
	return v;
}

/* The progress of a comparison. */
struct selftest_seen {
	uint32_t done;	   /* bytes of the next expected record */
	bool only_clflush; /* the processor has no other flush instruction */
	bool fenced;	   /* other code has fenced since the program's last record */
};

static bool is_kind(const struct expected *e, const struct pm_record *rec,
		    const struct selftest_seen *s)
{
	return rec->r.kind ==
	       (e->kind == PM_STREAM_FLUSH && s->only_clflush ? PM_STREAM_CLFLUSH : e->kind);
}

/* True for a part of an expected store: in a machine, a store across a page's end is two stores. */
static bool is_part(const struct expected *e, uint32_t done, const struct pm_record *rec)
{
	uint64_t end = rec->r.addr + rec->r.len;

	return e->len == 8 && !e->times &&
	       (done ? rec->r.addr % PAGE == 0 && done + rec->r.len == e->len : end % PAGE == 0);
}

/* Newer emulators may make fewer, larger accesses for one instruction: neighbours are joined. */
static bool covers(const struct expected *e, struct selftest_seen *s, const struct pm_record *rec)
{
	uint32_t total = e->len * max(e->times, 1u), *done = &s->done;
	uint64_t v = value_of(rec), want = e->value;

	if (!is_kind(e, rec, s) || rec->r.addr != e->addr + *done)
		return false;
	if (e->kind == PM_STREAM_SELF && v == SELF_CLFLUSH) {
		s->only_clflush = true;
		want = SELF_CLFLUSH;
	}
	if (rec->r.len > e->len && e->len < 8)
		want = e->value * (e->len == 1 ? 0x0101010101010101 : 1);
	if (rec->r.len < 8 && rec->r.len < e->len) {
		if (!is_part(e, *done, rec))
			return false;
		want = (e->value >> 8 * *done) & (((uint64_t)1 << 8 * rec->r.len) - 1);
	}
	if (e->len == 16 && *done) /* the second half of a store that became two */
		want = 0;
	if (v != want || rec->r.len > total - *done)
		return false;
	*done += rec->r.len;
	return true;
}

/*
 * True for a record that is not in the table: a load, a stack, or a fence of a kernel.
 */
static bool is_extra(const struct pm_record *rec)
{
	return rec->r.kind == PM_STREAM_LOAD || rec->r.kind == PM_STREAM_STACK ||
	       (rec->r.kind == PM_STREAM_FENCE && rec->r.pc >> 63);
}

/* True for a fence of another program that ran meanwhile: locked instructions are fences, too. */
static bool is_strange_fence(const struct pm_record *rec, const struct expected *e,
			     const struct expected *end)
{
	return rec->r.kind == PM_STREAM_FENCE && (e == end || e->kind != PM_STREAM_FENCE);
}

/*
 * True if an expected fence may be missing. The tracer reports a locked instruction only if a store
 * waits for a fence. If an interrupt between a store of the program and its locked instruction has
 * one, too, that is the fence that is reported.
 */
static bool is_needless(const struct expected *e, const struct pm_record *rec,
			const struct selftest_seen *s)
{
	return e->locked && s->fenced && rec->r.kind != PM_STREAM_FENCE;
}

static void note_wrong(struct selftest_wrong *w, uint64_t number, const struct pm_record *rec,
		       const struct expected *e)
{
	size_t n;

	w->number = number;
	if (rec)
		snprintf(w->what, sizeof(w->what), "kind %u, %u bytes at %#" PRIx64 ", cpu %u",
			 rec->r.kind, rec->r.len, rec->r.addr, rec->r.cpu);
	else
		snprintf(w->what, sizeof(w->what), "the end");
	n = strlen(w->what);
	if (e)
		snprintf(w->what + n, sizeof(w->what) - n,
			 ", and should be kind %u, %u bytes at %#" PRIx64, e->kind, e->len,
			 e->addr);
}

int pm_selftest_compare(const void *stream, size_t len, bool in_machine,
			struct selftest_wrong *wrong, struct err *err)
{
	const struct expected *e = expected, *end = expected + ARRAY_SIZE(expected);
	struct selftest_seen seen = { 0 };
	struct pm_reader p;
	struct pm_record rec;
	int rc = pm_reader_init(&p, stream, len, err);

	wrong->number = 0;
	while (!rc && (rc = pm_reader_next(&p, &rec, err)) > 0) {
		rc = 0;
		if (is_extra(&rec) || (in_machine && is_strange_fence(&rec, e, end))) {
			seen.fenced |= in_machine && rec.r.kind == PM_STREAM_FENCE;
			continue;
		}
		if (e < end && is_needless(e, &rec, &seen))
			e++;
		if (e == end || (!in_machine && rec.r.cpu != 0) || !covers(e, &seen, &rec)) {
			note_wrong(wrong, p.count, &rec, e == end ? NULL : e);
			return 0;
		}
		seen.fenced = false;
		if (seen.done == e->len * max(e->times, 1u)) {
			seen.done = 0;
			e++;
		}
	}
	if (!rc && e < end)
		note_wrong(wrong, p.count + 1, NULL, e);
	return rc;
}

struct files {
	int program, region;
};

static int make_files(struct files *f, struct err *err)
{
	f->program = memfd_create("outage-pm-selftest", 0);
	f->region = memfd_create("outage-pm-region", 0);
	if (f->program < 0 || f->region < 0 || fchmod(f->program, 0700) ||
	    ftruncate(f->region, REGION))
		return err_set(err, -errno, "cannot make a file in memory: %m");
	int rc = io_write_full(f->program, pm_selftest_program, pm_selftest_program_size);
	return rc ? err_set(err, rc, "cannot write a file in memory: %s", strerror(-rc)) : 0;
}

static int ended_badly(const struct tracer *t, const struct traced *x, struct err *err)
{
	struct proc_opts opts = { .timeout_ms = TIMEOUT_MS };
	auto_strbuf said = STRBUF_INIT;

	/* If the program was killed, or took too long on a busy machine, its end is the message. */
	proc_describe(&x->end, &opts, &said);
	if (x->end.out.len)
		strbuf_adds(&said, ": ");
	strbuf_add_flat(&said, strbuf_str(&x->end.out));
	if (strstr(strbuf_str(&said), "plugin"))
		return err_set(err, -ENOTSUP,
			       "%s cannot load the tracer: it must be QEMU's user emulation, built "
			       "with plugins, 7.2 or later; one that is linked statically, as that "
			       "of Debian 13, has none. Give another with --qemu, or take --tracer "
			       "preload for a program that uses libpmem (%.200s)",
			       t->qemu, strbuf_str(&said));
	return err_set(err, -ENOTSUP, "%s cannot run the tracer's test (%.200s)", t->qemu,
		       strbuf_str(&said));
}

static int once(const struct tracer *t, const struct files *f, struct selftest_wrong *wrong,
		struct err *err)
{
	char program[64], region[64];
	const char *const argv[] = { program, region, NULL };
	auto_call(traced_release) struct traced x = { 0 };

	/* Paths through this process: the same files for emulator, guest and plugin. */
	snprintf(program, sizeof(program), "/proc/%d/fd/%d", getpid(), f->program);
	snprintf(region, sizeof(region), "/proc/%d/fd/%d", getpid(), f->region);
	int rc = tracer_run(t, region, argv, TIMEOUT_MS, &x, err);
	if (!rc && (x.end.exit_code || x.end.timed_out))
		rc = ended_badly(t, &x, err);
	if (!rc)
		rc = pm_selftest_compare(x.stream, x.len, false, wrong, err);
	return rc;
}

int pm_selftest_run(struct tracer *t, struct err *err)
{
	struct files f = { -1, -1 };
	struct selftest_wrong wrong = { 0 };
	int rc = make_files(&f, err);

	t->filter = true;
	if (!rc)
		rc = once(t, &f, &wrong, err);
	if (!rc && wrong.number) {
		t->filter = false;
		rc = ftruncate(f.region, 0) || ftruncate(f.region, REGION) ? -errno : 0;
		if (!rc)
			rc = once(t, &f, &wrong, err);
	}
	util_close(f.program);
	util_close(f.region);
	if (rc || !wrong.number)
		return rc;
	return err_set(err, -ENOTSUP,
		       "the tracer's test failed: record %" PRIu64 " of %s %s is not what it must "
		       "be (%s), so nothing that it traces can be believed; use another QEMU "
		       "(--qemu)",
		       wrong.number, t->qemu, t->version, wrong.what);
}
