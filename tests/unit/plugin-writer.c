/* SPDX-License-Identifier: MIT */
/* What the plugin's writer packs, the reader of the stream unpacks: the same records. */
#include "tap.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "record/pm_stream.h"
#include "writer.h"

enum { REGION = 1 << 29, RECORDS = 60000, CPUS = 3, SIZE = 8 << 20 };

struct one {
	struct pm_stream_record r;
	unsigned char data[32];
};

struct world {
	struct writer *w;
	void *file;
	struct vec_of(struct one) all;
	uint64_t seed;
};

static uint64_t below(struct world *x, uint64_t n)
{
	x->seed = x->seed * 6364136223846793005u + 1442695040888963407u;
	return (x->seed >> 33) % n;
}

static void start(struct world *x, off_t size)
{
	char path[64];
	int fd = memfd_create("stream", 0);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert(fd >= 0 && !ftruncate(fd, size));
	x->w = writer_open(path, PM_STREAM_HAS_PC);
	x->file = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	assert(x->w && x->file != MAP_FAILED);
	writer_set_region(x->w, REGION);
	for (int i = 0; i < CPUS; i++)
		(void)writer_new_cpu(x->w);
	x->all.n = 0;
}

static void add(struct world *x, const struct one *o)
{
	const struct pm_stream_record *r = &o->r;
	bool small = r->kind <= PM_STREAM_LOAD && r->len <= 8 && !(r->len & (r->len - 1));

	if (small)
		writer_add_small(x->w, r->kind, r->cpu, (uint32_t)r->stack,
				 r->len ? (unsigned)__builtin_ctz(r->len) : 0, r->addr, r->pc,
				 o->data);
	else
		writer_add(x->w, r, o->data);
	vec_push(&x->all, *o);
}

static struct one any(struct world *x, const struct one *last)
{
	static const uint8_t kinds[] = { PM_STREAM_STORE, PM_STREAM_STORE,    PM_STREAM_NTSTORE,
					 PM_STREAM_FLUSH, PM_STREAM_CLFLUSH,  PM_STREAM_FENCE,
					 PM_STREAM_LOAD,  PM_STREAM_MARK_END, PM_STREAM_STORE };
	struct one o = { .r.kind = kinds[below(x, ARRAY_SIZE(kinds))] };

	o.r.cpu = (uint16_t)(below(x, 4) ? last->r.cpu : below(x, CPUS));
	o.r.stack = below(x, 8) ? 0 : below(x, 3);
	o.r.pc = below(x, 9) ? last->r.pc + below(x, 400) - 200
			     : below(x, 2) * 0xffffffff81000000 + below(x, 1 << 30);
	switch (o.r.kind) {
	case PM_STREAM_FENCE:
		break;
	case PM_STREAM_MARK_END:
		o.r.addr = below(x, 9);
		o.r.stack = 0;
		break;
	case PM_STREAM_FLUSH:
	case PM_STREAM_CLFLUSH:
		o.r.addr = below(x, REGION / 64) * 64;
		break;
	default:
		o.r.len = below(x, 9) ? 1u << below(x, 4) : 1 + (uint32_t)below(x, 32);
		o.r.addr = below(x, REGION - 64);
	}
	for (size_t i = 0; i < o.r.len && o.r.kind != PM_STREAM_LOAD; i++)
		o.data[i] = (unsigned char)below(x, 256);
	return o;
}

/* A copy: each goes on where the last one ended. */
static void copy(struct world *x, struct one *o)
{
	uint64_t n = below(x, 3) ? below(x, 20) : below(x, 1500);
	bool same = below(x, 2);

	if (o->r.kind != PM_STREAM_STORE && o->r.kind != PM_STREAM_NTSTORE)
		return;
	for (uint64_t i = 0; i < n && o->r.addr + 2 * o->r.len < REGION; i++) {
		o->r.addr += o->r.len;
		o->r.pc += same && below(x, 100) ? 0 : below(x, 300) - 150;
		for (size_t j = 0; j < o->r.len; j++)
			o->data[j] = (unsigned char)below(x, 256);
		add(x, o);
	}
}

static bool equal(const struct pm_record *rec, const struct one *o)
{
	bool data = pm_stream_has_data(rec->r.kind);

	return rec->r.kind == o->r.kind && rec->r.cpu == o->r.cpu && rec->r.len == o->r.len &&
	       rec->r.addr == o->r.addr && rec->r.pc == o->r.pc && rec->r.stack == o->r.stack &&
	       !rec->r.flags && data == !!rec->data &&
	       (!data || memcmp(rec->data, o->data, o->r.len) == 0);
}

/* How many records are as they were written; *rc is how the stream ends. */
static size_t same(struct world *x, size_t size, int *rc)
{
	struct err err = ERR_INIT;
	struct pm_reader p;
	struct pm_record rec;
	size_t n = 0;

	*rc = pm_reader_init(&p, x->file, size, &err);
	while (!*rc && (*rc = pm_reader_next(&p, &rec, &err)) > 0) {
		*rc = 0;
		if (n == x->all.n || !equal(&rec, &x->all.v[n]))
			break;
		n++;
	}
	return n;
}

static void test_round_trip(struct world *x)
{
	struct one last = { 0 };
	int rc;

	start(x, SIZE);
	while (x->all.n < RECORDS) {
		last = any(x, &last);
		add(x, &last);
		copy(x, &last);
	}
	is_u(same(x, SIZE, &rc), x->all.n, "each record comes back, also while a batch is open");
	is_i(rc, -EPIPE, "and no end");
	writer_count(x->w, -1);
	is_u(same(x, SIZE, &rc), x->all.n, "then the end is written");
	is_i(rc, 0, "and seen");
	writer_count(x->w, 1);
	add(x, &last);
	writer_count(x->w, -1);
	is_u(same(x, SIZE, &rc), x->all.n, "an end that was too early is taken back");
	is_i(rc, 0, "and written again");
	writer_restart(x->w);
	x->all.n = 0;
	add(x, &last);
	add(x, &last);
	writer_count(x->w, -1);
	is_u(same(x, SIZE, &rc), 2, "a stream that is begun anew has nothing of the old one");
	is_i(rc, 0, "and an end");
}

static uint64_t bytes_of(struct world *x, unsigned len, uint64_t step, int n)
{
	struct one o = { .r = { .kind = PM_STREAM_STORE, .len = len, .pc = 0x1000 } };

	start(x, SIZE);
	for (int i = 0; i < n; i++, o.r.addr += len, o.r.pc += step)
		add(x, &o);
	return x->w->at;
}

static void test_size(struct world *x)
{
	enum { N = 10000 };

	uint64_t words = bytes_of(x, 8, 4, N), bytes = bytes_of(x, 1, 0, N);

	ok(words < N * 95 / 10, "a copy of words needs %.1f bytes for each", (double)words / N);
	ok(bytes < N * 12 / 10, "one of bytes, by one instruction, %.1f", (double)bytes / N);
}

static void test_full(struct world *x)
{
	struct one o = { .r = { .kind = PM_STREAM_STORE, .len = 8, .pc = 0x1000 } };
	struct err err = ERR_INIT;
	struct pm_reader p;
	struct pm_record rec;
	int rc;

	start(x, 16384);
	for (int i = 0; i < 5000; i++, o.r.addr += 24)
		add(x, &o);
	writer_count(x->w, -1);
	rc = pm_reader_init(&p, x->file, 16384, &err);
	while (!rc && (rc = pm_reader_next(&p, &rec, &err)) > 0)
		rc = 0;
	is_i(rc, -EIO, "a stream that is full says so: %s", err.msg);
	ok(x->w->at <= 16384, "and stays in its file");
}

/* Which of the records is the first of a new call; SIZE_MAX if not exactly one is. */
static size_t new_call_at(struct world *x)
{
	struct err err = ERR_INIT;
	struct pm_reader p;
	struct pm_record rec;
	size_t n = 0, at = SIZE_MAX, times = 0;

	if (pm_reader_init(&p, x->file, SIZE, &err))
		return SIZE_MAX;
	for (; pm_reader_next(&p, &rec, &err) > 0; n++)
		if (rec.r.flags == PM_STREAM_NEW_CALL) {
			at = n;
			times++;
		}
	return times == 1 ? at : SIZE_MAX;
}

static void test_new_call(struct world *x)
{
	struct one o = { .r = { .kind = PM_STREAM_STORE, .len = 8, .pc = 0x1000 } };

	start(x, SIZE);
	for (int i = 0; i < 100; i++, o.r.addr += 8) {
		if (i == 40)
			writer_new_call(x->w);
		add(x, &o);
	}
	is_u(new_call_at(x), 40, "a copy in which a new call begins is told as two");
}

/* A process that dies with the lock, in the middle of a record or not; it stays a zombie. */
static pid_t die_with_lock(struct world *x, bool busy)
{
	siginfo_t info;
	pid_t pid = fork();

	assert(pid >= 0);
	if (!pid) {
		writer_forked();
		writer_lock(x->w);
		writer_busy(x->w, busy);
		_exit(0);
	}
	assert(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	return pid;
}

static int read_all(struct world *x, struct err *err)
{
	struct pm_reader p;
	struct pm_record rec;
	int rc = pm_reader_init(&p, x->file, SIZE, err);

	while (!rc && (rc = pm_reader_next(&p, &rec, err)) > 0)
		rc = 0;
	return rc;
}

static void test_deaths(struct world *x)
{
	struct one o = { .r = { .kind = PM_STREAM_STORE, .len = 8, .pc = 0x1000 } };

	alarm(600); /* who waits for a dead one waits for ever */
	for (int i = 0; i < 3; i++) {
		struct err err = ERR_INIT;
		bool busy = i == 2, reaped = i == 1;

		start(x, SIZE);
		add(x, &o);
		pid_t pid = die_with_lock(x, busy);
		if (reaped)
			waitpid(pid, NULL, 0);
		writer_lock(x->w);
		add(x, &o);
		writer_unlock(x->w);
		writer_count(x->w, -1);
		is_i(read_all(x, &err), busy ? -EIO : 0, "%s%s%s",
		     busy     ? "one that dies while it writes is told of"
		     : reaped ? "the lock of one that is gone is taken"
			      : "so is that of one that nobody has waited for",
		     busy ? ": " : "", busy ? err.msg : "");
		waitpid(pid, NULL, 0);
	}
	alarm(0);
}

int main(void)
{
	struct world x = { .seed = 7 };

	test_round_trip(&x);
	test_size(&x);
	test_full(&x);
	test_new_call(&x);
	test_deaths(&x);
	vec_release(&x.all);
	return done_testing();
}
