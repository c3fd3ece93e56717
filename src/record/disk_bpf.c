/* SPDX-License-Identifier: MIT */
/*
 * disk_bpf.c - the recorder that watches the block layer's tracepoints.
 *
 * One BPF object, attached once, serves all disks of the process: bpf/record.bpf.c puts its records
 * into one ring buffer, and draining that gives each disk its records. The hub, which owns the
 * object, lives from the first disk to the last.
 *
 * H1: a record belongs to the disk of its slot; a slot gets a new disk only when the ring has no
 *     record of the old one.
 * H2: an event is appended when its REC_QUEUE is drained; the data, which may come later, is put
 *     into memory that the trace already owns. So after the ring was drained, all requests
 *     submitted before stand in front of the next event.
 * H3: a bio in flight has an entry in `flights`; the parts of a split bio have entries with the
 *     same serial number. The request is complete when all its parts are.
 * H4: recording begins only after the hub has read back its own pattern byte for byte.
 *
 * A write with PREFLUSH (or FUA, if the device has none) becomes flush, write and flush below the
 * bio: the block layer reports the end of the middle step, with the bytes it wrote, and then the
 * end of the whole, with none. Only the second one counts.
 *
 * A kernel may keep programs from running in certain contexts (a completion that happens to
 * interrupt a protected process), so a completion can be missed silently. By H3 its entry then
 * stays. When the bio is queued again, or when no record has come for a while and the device has no
 * user or, by the kernel's count, nothing in flight, the bio counts as ended. For a read that is
 * enough; after a write or flush it would be unknown what a later flush covered, so the trace is
 * not whole. A missed beginning shows by its end, or, if the end was missed as well, by the
 * kernel's count of programs that it did not run.
 *
 * One mutex guards the hub and the disks' recording state, as draining for one disk may append to
 * the trace of another one.
 */
#include "record/disk_bpf.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/fault.h"
#include "base/io.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/rng.h"
#include "record/bpf/record_bpf.h"
#include "record/disk_impl.h"

enum {
	STOP_TIMEOUT_MS = 30000, /* for requests that take so long */
	QUIET_MS = 100,		 /* without a record: then ask whether the device is idle */
	IDLE_TIMES = 2,		 /* so many answers in a row count as idle */
	PAUSE_US = 200,
};
enum { CALIBRATE_BYTES = 3 * 4096, PAGE_BYTES = 4096 };

extern const unsigned char record_bpf_object[];
extern const size_t record_bpf_object_size;

struct flight {
	uint64_t bio;
	uint64_t serial;
	enum event_kind kind;
	uint64_t event;	     /* its number in the trace, if any */
	unsigned char *data; /* memory for its bytes; NULL: none */
	uint64_t len, got;
	bool two_ends; /* only the end without bytes counts */
	int result;
};

struct bpf_disk {
	struct disk base;
	unsigned slot;
	bool has_slot;
	uint64_t serial;
	uint64_t lost; /* the slot's counter, as last reported */
	uint64_t full;
	uint64_t not_run; /* the kernel's count when recording began */
	struct vec_of(struct flight) flights;
};

/* The ring is mapped twice, and counts twice in the memory of a process. */
enum { RING_BYTES = 16 << 20, RING_BYTES_MAX = 256 << 20 };

static struct hub {
	pthread_mutex_t lock;
	pid_t pid; /* its maker: a child must not drain its parent's ring */
	unsigned users;
	uint32_t ring_bytes;
	struct bpf_object *object;
	struct bpf_link *links[8];
	struct ring_buffer *ring;
	int devices; /* map: device number to slot */
	struct rec_slot *slots;
	struct bpf_disk *disks[RECORD_SLOTS];
	bool calibrated;
	bool full;     /* a record did not fit into the ring */
	unsigned miss; /* for tests: so many ends of writes are not seen */
	uint64_t scale, shift;
} hub = { .lock = PTHREAD_MUTEX_INITIALIZER };

void disk_bpf_set_ring(uint32_t bytes)
{
	hub.ring_bytes = bytes;
}

void disk_bpf_miss_ends(unsigned n)
{
	hub.miss = n;
}

bool disk_bpf_grow_ring(void)
{
	uint32_t now = hub.ring_bytes ? hub.ring_bytes : RING_BYTES;

	if (!hub.full || now >= RING_BYTES_MAX)
		return false;
	hub.full = false;
	hub.ring_bytes = 2 * now;
	return true;
}

/* ---- from records to events ---- */

static struct flight *find_flight(struct bpf_disk *d, uint64_t bio)
{
	/* The newest comes first: data follows its request closely. */
	return vec_find_last(i, &d->flights, d->flights.v[i].bio == bio);
}

static enum event_kind kind_of(const struct rec *r)
{
	switch (r->op) {
	case BIO_OP_READ:
		return EV_READ;
	case BIO_OP_WRITE:
		return r->len ? EV_WRITE : EV_FLUSH;
	case BIO_OP_FLUSH:
		return EV_FLUSH;
	case BIO_OP_DISCARD:
	case BIO_OP_SECURE_ERASE:
		return EV_DISCARD;
	case BIO_OP_WRITE_ZEROES:
		return EV_ZERO;
	default:
		return EV_KIND_END;
	}
}

static void count_lost(struct bpf_disk *d)
{
	__atomic_add_fetch(&hub.slots[d->slot].lost, 1, __ATOMIC_RELAXED);
}

/* Ends the flight at `i` and, if it was the last of its request, the request. */
static void end_flight(struct bpf_disk *d, size_t i)
{
	struct flight done = d->flights.v[i];
	bool last = true;

	assert(done.serial < d->serial); /* H3 */
	d->flights.v[i] = vec_last(&d->flights);
	d->flights.n--;
	for (i = 0; i < d->flights.n; i++) {
		if (d->flights.v[i].serial != done.serial)
			continue;
		last = false;
		if (done.result)
			d->flights.v[i].result = done.result;
	}
	if (last && d->base.trace && done.event != UINT64_MAX)
		trace_complete(d->base.trace, done.event, done.result);
}

/* Ends a flight whose end was not seen, but which must be over. */
static void end_unseen(struct bpf_disk *d, size_t i)
{
	if (d->flights.v[i].kind != EV_READ)
		count_lost(d);
	end_flight(d, i);
}

static void on_queue(struct bpf_disk *d, const struct rec *r)
{
	enum event_kind kind = kind_of(r);
	struct flight *old = find_flight(d, r->bio);
	struct flight f = {
		.bio = r->bio, .serial = d->serial++, .kind = kind, .event = UINT64_MAX
	};
	struct trace *t = d->base.trace;
	struct event ev = { .kind = kind };

	if (old)
		end_unseen(d, (size_t)(old - d->flights.v));
	f.two_ends = kind == EV_WRITE && ((r->flags & REC_FLAG_PREFLUSH) ||
					  ((r->flags & REC_FLAG_FUA) && !d->base.loop.fua));
	if (kind != EV_FLUSH) {
		ev.addr = r->addr;
		ev.len = r->len;
	}
	if (event_modifies(kind) && !t)
		disk_changed(&d->base, ev.addr, ev.len);
	if (t && (kind == EV_KIND_END || !image_range_ok(&d->base.image, ev.addr, ev.len) ||
		  (event_has_data(kind) && ev.len > EVENT_DATA_MAX))) {
		/* The trace cannot hold the request, which counts as lost. */
		disk_unknown(&d->base);
		count_lost(d);
	} else if (t) {
		if (r->flags & REC_FLAG_META)
			ev.flags |= EV_META;
		if (kind != EV_READ && (r->flags & REC_FLAG_PREFLUSH))
			ev.flags |= EV_PREFLUSH;
		if (kind != EV_READ && (r->flags & REC_FLAG_FUA))
			ev.flags |= EV_FUA;
		if (kind == EV_WRITE) {
			f.len = ev.len;
			ev.data = f.data = arena_alloc(&t->data, ev.len);
		}
		f.event = t->events.n;
		vec_push(&t->events, ev);
	}
	vec_push(&d->flights, f);
}

static void on_data(struct bpf_disk *d, const struct rec *r, size_t room)
{
	struct flight *f = find_flight(d, r->bio);

	if (!f || !f->data)
		return;
	assert(r->len <= room && r->addr <= f->len && r->len <= f->len - r->addr); /* H2 */
	assert(d->base.trace && f->event < d->base.trace->events.n);		   /* H2 */
	memcpy(f->data + r->addr, r + 1, r->len);
	f->got += r->len;
}

static void on_split(struct bpf_disk *d, const struct rec *r)
{
	struct flight *whole = find_flight(d, r->addr);

	if (!whole)
		return;

	/* The whole bio has all the data, since it was queued. */
	struct flight part = *whole;

	part.bio = r->bio;
	part.data = NULL;
	part.len = part.got = 0;
	vec_push(&d->flights, part);
}

static void on_done(struct bpf_disk *d, const struct rec *r)
{
	struct flight *f = find_flight(d, r->bio);

	if (hub.miss && f && f->kind == EV_WRITE) {
		hub.miss--;
		return;
	}
	if (!f) {
		/* Reads are not watched all the time; for others, the beginning was missed. */
		if (d->base.trace && r->op != BIO_OP_READ)
			count_lost(d);
		return;
	}
	if (f->two_ends && r->len && !r->result)
		return;
	if (r->result)
		f->result = -EIO;
	if (f->got != f->len)
		count_lost(d);
	end_flight(d, (size_t)(f - d->flights.v));
}

static int on_record(void *ctx, void *data, size_t size)
{
	const struct rec *r = data;
	struct bpf_disk *d;

	(void)ctx;
	assert(size >= sizeof(*r) && r->slot < RECORD_SLOTS);
	d = hub.disks[r->slot];
	if (!d)
		return 0;
	assert(d->has_slot && d->slot == r->slot); /* H1 */
	if (r->kind == REC_QUEUE)
		on_queue(d, r);
	else if (r->kind == REC_DATA)
		on_data(d, r, size - sizeof(*r));
	else if (r->kind == REC_SPLIT)
		on_split(d, r);
	else if (r->kind == REC_DONE)
		on_done(d, r);
	return 0;
}

/* Drains the ring until it is empty. The lock is held. */
static int hub_drain(struct err *err)
{
	int n;

	do
		n = ring_buffer__consume(hub.ring);
	while (n > 0);
	return n < 0 ? err_set(err, n, "cannot read the ring buffer of the recorder: %m") : 0;
}

/* ---- the hub ---- */

static int log_libbpf(enum libbpf_print_level level, const char *fmt, va_list args)
{
	char text[512];

	if (level == LIBBPF_DEBUG || log_get_level() < LOG_DEBUG)
		return 0;
	vsnprintf(text, sizeof(text), fmt, args);
	text[strcspn(text, "\n")] = '\0';
	log_debug("%s", text);
	return 0;
}

static size_t slots_bytes(void)
{
	return (RECORD_SLOTS * sizeof(struct rec_slot) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static void hub_unload(void)
{
	/* In a child of the owner the object is only a copy: closing it does not affect the
	 * owner's.
	 */
	ring_buffer__free(hub.ring);
	for (size_t i = 0; i < ARRAY_SIZE(hub.links); i++)
		bpf_link__destroy(hub.links[i]);
	if (hub.slots)
		munmap(hub.slots, slots_bytes());
	bpf_object__close(hub.object);
	hub.ring = NULL;
	hub.object = NULL;
	hub.slots = NULL;
	hub.calibrated = false;
	memset(hub.links, 0, sizeof(hub.links));
	memset(hub.disks, 0, sizeof(hub.disks));
}

static int map_fd(const char *name)
{
	return bpf_object__find_map_fd_by_name(hub.object, name);
}

static int hub_load_object(struct err *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "outage_record");
	struct bpf_program *program;
	unsigned n = 0;
	int r = fault_point("bpf.load");

	libbpf_set_print(log_libbpf);
	hub.object = bpf_object__open_mem(record_bpf_object, record_bpf_object_size, &opts);
	if (!hub.object)
		return err_set(err, -errno, "the recorder's BPF program is damaged: %m");
	if (!r)
		r = bpf_map__set_max_entries(bpf_object__find_map_by_name(hub.object, "ring"),
					     hub.ring_bytes ? hub.ring_bytes : RING_BYTES);
	if (!r)
		r = bpf_object__load(hub.object);
	if (r)
		return err_set(err, r,
			       "the kernel refused the recorder's BPF program (%m); it needs root "
			       "and a kernel from 5.17 on with CONFIG_DEBUG_INFO_BTF");
	bpf_object__for_each_program(program, hub.object)
	{
		assert(n < ARRAY_SIZE(hub.links));
		hub.links[n] = bpf_program__attach(program);
		if (!hub.links[n])
			return err_set(err, -errno, "cannot attach to the tracepoint of %s: %m",
				       bpf_program__name(program));
		n++;
	}
	return 0;
}

static int hub_load(struct err *err)
{
	int r = hub_load_object(err);

	if (r)
		return r;
	hub.devices = map_fd("devices");
	hub.ring = ring_buffer__new(map_fd("ring"), on_record, NULL, NULL);
	if (!hub.ring)
		return err_set(err, -errno, "cannot map the recorder's ring buffer: %m");
	void *slots =
		mmap(NULL, slots_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, map_fd("slots"), 0);
	if (slots == MAP_FAILED)
		return err_set(err, -errno, "cannot map the recorder's state: %m");
	hub.slots = slots;
	return 0;
}

static int hub_get(struct err *err)
{
	int r;

	if (hub.users && hub.pid != getpid())
		hub.users = 0;
	if (hub.users++)
		return 0;
	if (hub.object)
		hub_unload();
	hub.pid = getpid();
	r = hub_load(err);
	if (r) {
		hub.users = 0;
		hub_unload();
	}
	return r;
}

static void hub_put(void)
{
	assert(hub.users > 0);
	if (--hub.users == 0)
		hub_unload();
}

static void watch(struct bpf_disk *d, uint32_t what)
{
	__atomic_store_n(&hub.slots[d->slot].watch, what, __ATOMIC_SEQ_CST);
}

static int take_slot(struct bpf_disk *d, struct err *err)
{
	/* The kernel's internal encoding of a device number, not that of stat(2). */
	uint32_t key = (major(d->base.loop.dev) << 20) | minor(d->base.loop.dev), value;
	unsigned i = 0;

	while (i < RECORD_SLOTS && hub.disks[i])
		i++;
	if (i == RECORD_SLOTS)
		return err_set(err, -EMFILE, "a process can record %d disks at most", RECORD_SLOTS);
	hub.slots[i] = (struct rec_slot){ .scale = hub.scale, .shift = hub.shift };
	value = i;
	if (bpf_map_update_elem(hub.devices, &key, &value, BPF_ANY))
		return err_set(err, -errno, "cannot watch %s: %m", d->base.loop.path);
	hub.disks[i] = d;
	d->slot = i;
	d->has_slot = true;
	return 0;
}

static void give_slot(struct bpf_disk *d)
{
	uint32_t key = (major(d->base.loop.dev) << 20) | minor(d->base.loop.dev);

	if (!d->has_slot)
		return;
	watch(d, WATCH_OFF);
	bpf_map_delete_elem(hub.devices, &key);
	hub_drain(NULL);
	assert(hub.disks[d->slot] == d); /* H1 */
	hub.disks[d->slot] = NULL;
	d->has_slot = false;
}

/* ---- calibration ---- */

/* Writes the pattern through the device's cache: its pages are ordinary memory of the kernel. */
static int write_pattern(struct bpf_disk *d, const unsigned char *data, size_t len, struct err *err)
{
	auto_fd dev = open(d->base.loop.path, O_WRONLY | O_CLOEXEC);
	int r = dev < 0 ? -errno : io_pwrite_full(dev, data, len, 0);

	if (!r && fsync(dev) < 0)
		r = -errno;
	return r ? err_set(err, r, "cannot write to %s: %m", d->base.loop.path) : 0;
}

static int sample(struct bpf_disk *d, const unsigned char *data, size_t len, struct err *err)
{
	volatile struct rec_slot *s = &hub.slots[d->slot];
	int r;

	s->calibrate = 1;
	r = write_pattern(d, data, len, err);
	if (r)
		return r;
	if (s->calibrate != 2 || !s->page_size || 4096 % s->page_size || (s->page_addr & 4095))
		return err_set(err, -EOPNOTSUPP,
			       "this kernel does not show where a page's memory is; use the other "
			       "recorder");
	hub.scale = 4096 / s->page_size;
	hub.shift = s->page_addr - s->page * hub.scale;
	s->scale = hub.scale;
	s->shift = hub.shift;
	return 0;
}

static bool has_pattern(const struct trace *t, const unsigned char *data, size_t len)
{
	auto_image seen;
	unsigned char got[CALIBRATE_BYTES];

	assert(len <= sizeof(got));
	image_init(&seen, sizeof(got));
	vec_each(ev, &t->events) {
		if (ev->kind == EV_WRITE && image_range_ok(&seen, ev->addr, ev->len))
			image_write(&seen, ev->addr, ev->data, ev->len);
	}
	image_read(&seen, 0, got, len);
	return memcmp(got, data, len) == 0;
}

/* Finds the constants and proves them on a pattern (H4). */
static int calibrate(struct bpf_disk *d, struct err *err)
{
	unsigned char pattern[CALIBRATE_BYTES];
	size_t len = min((uint64_t)sizeof(pattern), d->base.size / 4096 * 4096);
	struct trace t;
	struct rng rng;
	int r;

	rng_init(&rng, 1);
	for (size_t i = 0; i < sizeof(pattern); i += 8) {
		uint64_t x = rng_next(&rng);

		memcpy(pattern + i, &x, 8);
	}
	trace_init(&t);
	r = sample(d, pattern, len, err);
	if (!r) {
		/* Other bytes than those of the first try, which may still be in memory. */
		for (size_t i = 0; i < len; i++)
			pattern[i] = (unsigned char)~pattern[i];
		d->base.trace = &t;
		watch(d, WATCH_REQUESTS);
		r = write_pattern(d, pattern, len, err);
		watch(d, WATCH_OFF);
		if (!r)
			r = hub_drain(err);
		d->base.trace = NULL;
		vec_clear(&d->flights);
	}
	if (!r && !has_pattern(&t, pattern, len))
		r = err_set(err, -EOPNOTSUPP,
			    "the recorder did not see on %s what was written to it; use the other "
			    "recorder",
			    d->base.loop.path);
	trace_release(&t);
	memset(d->base.map, 0, len);
	hub.calibrated = !r;
	return r;
}

/* ---- the recorder ---- */

static void bpf_close(struct disk *base)
{
	struct bpf_disk *d = container_of(base, struct bpf_disk, base);

	pthread_mutex_lock(&hub.lock);
	if (hub.pid == getpid() && hub.users) {
		give_slot(d);
		hub_put();
	}
	pthread_mutex_unlock(&hub.lock);
	disk_release(base);
	vec_release(&d->flights);
	free(d);
}

static int bpf_begin(struct bpf_disk *d, struct err *err)
{
	int r = take_slot(d, err);

	if (!r && !hub.calibrated)
		r = calibrate(d, err);
	if (!r) {
		d->lost = hub.slots[d->slot].lost;
		d->full = hub.slots[d->slot].full;
		watch(d, WATCH_CHANGES);
	}
	return r;
}

static int bpf_open(uint64_t size, struct disk **out, struct err *err)
{
	struct bpf_disk *d;
	char name[DISK_NAME_SIZE];
	int r;

	pthread_mutex_lock(&hub.lock);
	r = hub_get(err);
	pthread_mutex_unlock(&hub.lock);
	if (r)
		return r;
	d = xcalloc(1, sizeof(*d));
	r = disk_init(&d->base, &disk_bpf, size, err);
	if (!r)
		r = loop_attach(d->base.memfd, disk_owner_name(name), &d->base.loop, err);
	if (!r) {
		pthread_mutex_lock(&hub.lock);
		r = bpf_begin(d, err);
		pthread_mutex_unlock(&hub.lock);
	}
	if (r) {
		bpf_close(&d->base);
		return r;
	}
	*out = &d->base;
	return 0;
}

static int bpf_probe(struct err *err)
{
	struct disk *d;
	int r;

	if (geteuid())
		return err_set(err, -EPERM, "the bpf recorder needs root");
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return err_set(err, -ENOENT,
			       "the bpf recorder needs a kernel with CONFIG_DEBUG_INFO_BTF");
	r = bpf_open(1 << 20, &d, err);
	if (!r)
		bpf_close(d);
	return r;
}

/* True once after records were lost. */
static bool was_lost(struct bpf_disk *d)
{
	uint64_t lost = __atomic_load_n(&hub.slots[d->slot].lost, __ATOMIC_RELAXED);
	bool news = lost != d->lost;

	hub.full |= d->full != hub.slots[d->slot].full;
	d->full = hub.slots[d->slot].full;
	d->lost = lost;
	return news;
}

static int bpf_settle(struct disk *base, struct err *err)
{
	struct bpf_disk *d = container_of(base, struct bpf_disk, base);
	int r;

	auto_lock(&hub.lock);
	r = hub_drain(err);
	if (was_lost(d)) {
		vec_clear(&d->flights);
		disk_unknown(base);
	}
	return r;
}

/* The number of times that the kernel did not run a program, as it ran already on that CPU. */
static uint64_t times_not_run(void)
{
	struct bpf_program *program;
	uint64_t sum = 0;

	bpf_object__for_each_program(program, hub.object)
	{
		struct bpf_prog_info info = { 0 };
		uint32_t len = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len) == 0)
			sum += info.recursion_misses;
	}
	return sum;
}

static int bpf_start(struct disk *base, struct err *err)
{
	struct bpf_disk *d = container_of(base, struct bpf_disk, base);

	(void)err;
	d->not_run = base->trace ? times_not_run() : 0;
	watch(d, base->trace ? WATCH_REQUESTS : WATCH_CHANGES);
	return 0;
}

static int bpf_drain(struct disk *base, struct err *err)
{
	(void)base;
	auto_lock(&hub.lock);
	return hub_drain(err);
}

/* True if another user, such as a mounted file system, has the device exclusively. */
static bool in_use(const struct bpf_disk *d)
{
	auto_fd dev = open(d->base.loop.path, O_RDONLY | O_EXCL | O_CLOEXEC);

	return dev < 0;
}

/*
 * True if the kernel counts no request in flight to the device. Requests that are queued but not
 * issued do not count, so one answer alone is not enough.
 */
static bool is_idle(const struct bpf_disk *d)
{
	auto_free char *path =
		xasprintf("/sys/block/%s/inflight", strrchr(d->base.loop.path, '/') + 1);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[64] = "";
	unsigned reads, writes;

	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 &&
	       sscanf(text, "%u %u", &reads, &writes) == 2 && !reads && !writes;
}

/* Drains until nothing is in flight. The lock is held. */
static int wait_for_flights(struct bpf_disk *d, struct err *err)
{
	struct timespec pause = { .tv_nsec = PAUSE_US * 1000 };
	uint64_t serial = d->serial;
	size_t left = d->flights.n;
	unsigned quiet_us = 0, us = 0, idle = 0;
	int r = hub_drain(err);

	while (!r && d->flights.n && d->lost == hub.slots[d->slot].lost) {
		if (us / 1000 > STOP_TIMEOUT_MS)
			return err_set(err, -ETIMEDOUT, "requests to %s do not end",
				       d->base.loop.path);
		if (quiet_us / 1000 >= QUIET_MS) {
			quiet_us = 0;
			idle = is_idle(d) ? idle + 1 : 0;
			while ((idle >= IDLE_TIMES || !in_use(d)) && d->flights.n)
				end_unseen(d, 0);
		}
		pthread_mutex_unlock(&hub.lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&hub.lock);
		us += PAUSE_US;
		quiet_us += PAUSE_US;
		r = hub_drain(err);
		if (serial != d->serial || left != d->flights.n)
			quiet_us = idle = 0;
		serial = d->serial;
		left = d->flights.n;
	}
	return r;
}

static int bpf_stop(struct disk *base, struct err *err)
{
	struct bpf_disk *d = container_of(base, struct bpf_disk, base);
	int r;

	auto_lock(&hub.lock);
	r = wait_for_flights(d, err);
	watch(d, WATCH_CHANGES);
	if (!r)
		r = wait_for_flights(d, err); /* requests queued in between */
	if (base->trace && times_not_run() != d->not_run)
		count_lost(d);
	/* A request that is still in flight would write into a trace that goes. */
	if (was_lost(d) || r) {
		vec_clear(&d->flights);
		disk_unknown(base);
		if (!r && base->trace)
			r = err_set(err, -EOVERFLOW,
				    "the record of %s is not whole: events were lost, or more was "
				    "written between two marks than the ring buffer holds",
				    base->loop.path);
	}
	return r;
}

const struct disk_ops disk_bpf = {
	.name = "bpf",
	.help = "watches the block layer with a BPF program; needs root and a kernel with BTF; "
		"sees "
		"every request with its flags",
	.info = "block device, watched by BPF",
	.probe = bpf_probe,
	.open = bpf_open,
	.close = bpf_close,
	.settle = bpf_settle,
	.start = bpf_start,
	.drain = bpf_drain,
	.stop = bpf_stop,
};
