/* SPDX-License-Identifier: MIT */
/*
 * Persistent memory as a recording disk, with a tracer of our own: what was marked here is put
 * where the guest's marks are; a store that is not in the stream, and a mark that nobody made, are
 * told.
 */
#include "tap.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rng.h"
#include "core/patch.h"
#include "record/pm_disk.h"
#include "record/pm_stream.h"

enum { SIZE = 1 << 20 };

/* A guest: its memory, and what its tracer writes. */
struct fake {
	struct disk *disk;
	unsigned char *memory, *stream;
	size_t at;
	uint64_t count, sum;
	unsigned started;
	bool loads, no_end;
};

static void add(struct fake *f, struct pm_stream_record r, const void *data)
{
	size_t size = pm_stream_record_size(r.kind, r.len);

	memset(f->stream + f->at, 0, size);
	memcpy(f->stream + f->at, &r, sizeof(r));
	if (data)
		memcpy(f->stream + f->at + sizeof(r), data, r.len);
	f->sum = pm_stream_sum(f->sum, f->stream + f->at, size);
	f->at += size;
	f->count++;
}

static void store(struct fake *f, uint64_t addr, const char *text)
{
	memcpy(f->memory + addr, text, strlen(text));
	add(f,
	    (struct pm_stream_record){
		    .kind = PM_STREAM_STORE, .addr = addr, .len = (uint32_t)strlen(text) },
	    text);
}

static void mark(struct fake *f, unsigned kind, uint64_t op)
{
	add(f, (struct pm_stream_record){ .kind = (uint8_t)kind, .addr = op, .pc = 0x400 }, NULL);
}

static int fake_start(void *ctx, bool loads, struct err *err)
{
	struct fake *f = ctx;
	struct pm_stream_header h = { .magic = PM_STREAM_MAGIC,
				      .version = PM_STREAM_VERSION,
				      .header_size = sizeof(h),
				      .region_size = SIZE,
				      .flags = PM_STREAM_HAS_PC,
				      .cpus = 1 };

	(void)err;
	memcpy(f->stream, &h, sizeof(h));
	f->at = sizeof(h);
	f->count = 0;
	f->sum = PM_STREAM_SUM_INIT;
	f->started++;
	f->loads = loads;
	return 0;
}

static int fake_text(void *ctx, const char *text, struct err *err)
{
	(void)err;
	add(ctx, (struct pm_stream_record){ .kind = PM_STREAM_TEXT, .len = (uint32_t)strlen(text) },
	    text);
	return 0;
}

static int fake_stop(void *ctx, struct err *err)
{
	struct fake *f = ctx;

	(void)err;
	if (!f->no_end)
		add(f,
		    (struct pm_stream_record){
			    .kind = PM_STREAM_END, .addr = f->count, .pc = f->sum },
		    NULL);
	else
		memset(f->stream + f->at, 0, 64);
	return 0;
}

/* Each recording is of another machine here. */
static uint64_t fake_machine(void *ctx)
{
	return 100 + ((struct fake *)ctx)->started;
}

static void begin(struct fake *f)
{
	struct err err = ERR_INIT;

	*f = (struct fake){ 0 };
	ok(pm_disk_open(SIZE, &f->disk, &err) == 0, "memory is made %s", err.msg);
	pm_disk_drive(f->disk, &(struct pm_disk_driver){ f, fake_start, fake_text, fake_stop,
							 fake_machine });
	f->memory =
		mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, pm_disk_memory(f->disk), 0);
	f->stream = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			 pm_disk_stream(f->disk, &err), 0);
	ok(f->memory != MAP_FAILED && f->stream != MAP_FAILED, "a guest has it");
}

static void finish(struct fake *f)
{
	munmap(f->memory, SIZE);
	munmap(f->stream, SIZE);
	disk_close(f->disk);
}

static int tell(struct fake *f, enum event_kind kind, uint64_t op, int result, const char *text)
{
	struct err err = ERR_INIT;

	return disk_mark(f->disk,
			 &(struct event){ .kind = kind,
					  .ref = op,
					  .result = result,
					  .data = (const unsigned char *)text,
					  .len = text ? strlen(text) : 0 },
			 &err);
}

/* An operation as it comes: marked here, done and marked there, its end marked here. */
static void operation(struct fake *f, uint64_t op, uint64_t addr, const char *text)
{
	int rc = tell(f, EV_OP_BEGIN, op, 0, "write foo");

	mark(f, PM_STREAM_MARK_BEGIN, op);
	store(f, addr, text);
	add(f, (struct pm_stream_record){ .kind = PM_STREAM_FLUSH, .addr = addr / 64 * 64 }, NULL);
	add(f, (struct pm_stream_record){ .kind = PM_STREAM_FENCE }, NULL);
	mark(f, PM_STREAM_MARK_END, op);
	store(f, addr + 4096, "later"); /* before anybody here knows that it has ended */
	rc |= tell(f, EV_OP_END, op, 7, NULL);
	rc |= tell(f, EV_PERSIST, op, 0, NULL);
	rc |= tell(f, EV_TEXT, 0, 0, "blocks 8");
	ok(rc == 0, "marks are taken");
}

static void test_good(void)
{
	static const enum event_kind kinds[] = { EV_OP_BEGIN, EV_STORE,	  EV_LINEFLUSH, EV_FENCE,
						 EV_OP_END,   EV_PERSIST, EV_STORE,	EV_TEXT };
	struct err err = ERR_INIT;
	auto_trace t;
	struct fake f;

	trace_init(&t);
	begin(&f);
	ok(disk_kind(f.disk) == DISK_PM, "it is persistent memory");
	ok(disk_start(f.disk, &t, &err) == 0, "recording begins %s", err.msg);
	operation(&f, 0, 128, "one");
	operation(&f, 1, 20000, "two");
	ok(disk_stop(f.disk, &err) == 0, "and ends %s", err.msg);
	is_u(t.machine, 100 + f.started, "the trace knows which machine it is of");
	is_u(t.events.n, 2 * ARRAY_SIZE(kinds), "all is there");
	for (size_t i = 0; i < t.events.n; i++)
		is_u(t.events.v[i].kind, kinds[i % ARRAY_SIZE(kinds)], "event %zu is at its place",
		     i);
	ok(t.events.v[8].ref == 1 && t.events.v[8].pc == 0x400 && t.events.v[8].len == 9 &&
		   memcmp(t.events.v[8].data, "write foo", 9) == 0,
	   "a begin has its words, and its place");
	is_u(t.events.v[12].result, 7, "an end has its result");
	ok(t.info.size == SIZE && t.info.sector_size == 8 && !t.info.completions, "what it is of");
	unsigned char now[3];
	image_read(disk_image(f.disk), 20000, now, 3);
	ok(memcmp(now, "two", 3) == 0, "the image is what is there");
	is_u(f.loads, 0, "loads were not wanted");
	disk_want_loads(f.disk, true);
	t.machine = 7;
	trace_clear(&t);
	is_u(t.machine, 0, "an empty trace is of none");
	ok(disk_start(f.disk, &t, &err) == 0 && disk_stop(f.disk, &err) == 0 && !t.events.n,
	   "one with nothing in it");
	ok(f.loads && f.started == 2, "with loads");
	finish(&f);
}

static void test_bad(void)
{
	struct err err = ERR_INIT;
	auto_trace t;
	struct fake f;

	trace_init(&t);
	begin(&f);
	ok(disk_start(f.disk, &t, &err) == 0, "recording begins");
	store(&f, 0, "seen");
	f.memory[70000] = 'x';
	ok(disk_stop(f.disk, &err) == -EIO && strstr(err.msg, "does not replay: byte 70000"),
	   "a store that was missed: %s", err.msg);
	is_u(t.events.n, 0, "gives no trace");
	err_clear(&err);
	ok(disk_start(f.disk, &t, &err) == 0, "the next recording begins");
	ok(tell(&f, EV_OP_BEGIN, 0, 0, "creat foo") == 0, "an operation");
	ok(disk_stop(f.disk, &err) == -EPROTO && strstr(err.msg, "did not mark operation 0"),
	   "that the guest does not mark: %s", err.msg);
	err_clear(&err);
	ok(disk_start(f.disk, &t, &err) == 0, "the next recording begins");
	mark(&f, PM_STREAM_MARK_BEGIN, 5);
	ok(disk_stop(f.disk, &err) == -EPROTO && strstr(err.msg, "operation 5"),
	   "a mark of what it was not asked for: %s", err.msg);
	err_clear(&err);
	f.no_end = true;
	ok(disk_start(f.disk, &t, &err) == 0, "the next recording begins");
	store(&f, 0, "more");
	ok(disk_stop(f.disk, &err) == -EPIPE, "a tracer that died: %s", err.msg);
	err_clear(&err);
	finish(&f);
}

/* Without a tracer what has changed is found; while it is mounted nobody may change it. */
static void test_plain(void)
{
	auto_image img = IMAGE_INIT;
	struct err err = ERR_INIT;
	struct fake f;

	begin(&f);
	image_init(&img, SIZE);
	image_write(&img, 5000, "base", 4);
	ok(disk_load(f.disk, &img, &err) == 0 && memcmp(f.memory + 5000, "base", 4) == 0,
	   "what is loaded the guest has");
	disk_set_in_use(f.disk, true);
	memcpy(f.memory + 300000, "recovered", 9);
	ok(disk_load(f.disk, &img, &err) == -EBUSY, "mounted: %s", err.msg);
	err_clear(&err);
	disk_set_in_use(f.disk, false);
	unsigned char now[9];
	image_read(disk_image(f.disk), 300000, now, 9);
	ok(memcmp(now, "recovered", 9) == 0, "what it did is seen");
	ok(disk_load(f.disk, &img, &err) == 0 && f.memory[300000] == 0 && f.memory[5000] == 'b' &&
		   disk_verify(f.disk, &img, &err) == 0,
	   "and undone");
	is_u(f.started, 0, "no tracer was asked");
	finish(&f);
}

/* Many small writes through a patch are the same as each by itself. */
static void test_patch(void)
{
	enum { BYTES = 3 * IMAGE_PAGE + 1000 };
	auto_image a = IMAGE_INIT, b = IMAGE_INIT;
	struct patch patch;
	struct rng rng;

	image_init(&a, BYTES);
	image_init(&b, BYTES);
	patch_init(&patch, &b);
	rng_init(&rng, 1);
	for (int i = 0; i < 2000; i++) {
		unsigned char data[300];
		size_t len = 1 + rng_below(&rng, sizeof(data));
		uint64_t at = rng_below(&rng, BYTES - len + 1);

		memset(data, i, len);
		image_write(&a, at, data, len);
		patch_write(&patch, at, data, len);
	}
	patch_finish(&patch);
	ok(image_equal(&a, &b), "gathered writes are the same writes");
}

int main(void)
{
	test_good();
	test_bad();
	test_plain();
	test_patch();
	return done_testing();
}
