/* SPDX-License-Identifier: MIT */
/*
 * syscalls.c - looks at each system call before and after it, and records what the kernel did to
 * the region.
 */
#include "syscalls.h"

#include <unistd.h>

#include "access.h"
#include "guest.h"
#include "region.h"
#include "tracer.h"

enum { /* numbers of an x86-64 guest */
       NR_READ = 0,
       NR_MMAP = 9,
       NR_MUNMAP = 11,
       NR_PREAD64 = 17,
       NR_READV = 19,
       NR_MREMAP = 25,
       NR_MSYNC = 26,
       NR_RECVFROM = 45,
       NR_RECVMSG = 47,
       NR_CLONE = 56,
       NR_FORK = 57,
       NR_VFORK = 58,
       NR_EXECVE = 59,
       NR_FSYNC = 74,
       NR_FDATASYNC = 75,
       NR_PREADV = 295,
       NR_RECVMMSG = 299,
       NR_PROCESS_VM_READV = 310,
       NR_EXECVEAT = 322,
       NR_PREADV2 = 327,
       NR_CLONE3 = 435,
       CLONE_VM_ = 0x100,
       CLONE_VFORK_ = 0x4000,
       MS_SYNC_ = 4,
};

static __thread struct {
	uint64_t a[6];
	pid_t pid; /* the caller; a child answers, too */
} call;

/*
 * Finds what the kernel stores into the region for the program. Of the calls that read as much as
 * is asked for it is known where and how much; any other that is given a place in the region may
 * have filled in what is there: it is compared with what was there before.
 */
enum { ARGS = 6, ANSWER_MAX = 4096, IOVECS_MAX = 1024 };

static __thread struct {
	uint64_t len[ARGS]; /* 0: not in the region, or not looked at */
	unsigned char data[ARGS][ANSWER_MAX];
} before;

/* Reports stores of one call, so that nothing before or behind it is taken for part of it. */
static void kernel_stored(unsigned vcpu, uint64_t addr, uint64_t len)
{
	struct cpu_here *c = cpu_slot(vcpu);

	c->flow++;
	for (uint64_t n; len; addr += n, len -= n) {
		n = len < PM_STREAM_STORE_MAX ? len : PM_STREAM_STORE_MAX;
		access_range(vcpu, PM_STREAM_STORE, addr, n, 0);
	}
	c->flow++;
}

static void kernel_filled(unsigned vcpu, uint64_t iov, uint64_t n, uint64_t left)
{
	struct {
		uint64_t base, len;
	} v;

	for (uint64_t i = 0; i < n && i < IOVECS_MAX && left; i++) {
		if (guest_read(vcpu, iov + i * sizeof(v), &v, sizeof(v)) != sizeof(v))
			return;
		v.len = v.len < left ? v.len : left;
		kernel_stored(vcpu, v.base, v.len);
		left -= v.len;
	}
}

/* struct msghdr has the list at 16 and its length at 24. */
static void kernel_received(unsigned vcpu, uint64_t msg, uint64_t len)
{
	uint64_t iov[2];

	if (guest_read(vcpu, msg + 16, iov, sizeof(iov)) == sizeof(iov))
		kernel_filled(vcpu, iov[0], iov[1], len);
}

/* struct mmsghdr: a msghdr of 56 bytes, how long the message is, and 4 bytes more. */
static void kernel_received_many(unsigned vcpu, uint64_t list, uint64_t n)
{
	uint32_t len;

	for (uint64_t i = 0; i < n && i < IOVECS_MAX; i++)
		if (guest_read(vcpu, list + i * 64 + 56, &len, 4) == 4)
			kernel_received(vcpu, list + i * 64, len);
}

static bool reads_much(int64_t num)
{
	return num == NR_READ || num == NR_PREAD64 || num == NR_READV || num == NR_RECVFROM ||
	       num == NR_RECVMSG || num == NR_PREADV || num == NR_RECVMMSG ||
	       num == NR_PROCESS_VM_READV || num == NR_PREADV2;
}

/* Looks at the region before the call; most calls are given nothing of it. */
static void before_call(int64_t num)
{
	const struct maps *maps = region_maps();

	for (unsigned i = 0; i < ARGS; i++) {
		const struct map *m = maps->n ? map_find(maps, call.a[i], 1) : NULL;

		before.len[i] = 0;
		if (!m || reads_much(num) || num == NR_MMAP || num == NR_MUNMAP || num == NR_MREMAP)
			continue;
		uint64_t left = m->end - call.a[i];

		before.len[i] = left < ANSWER_MAX ? left : ANSWER_MAX;
		memcpy(before.data[i], region.view + map_offset(m, call.a[i]), before.len[i]);
	}
}

/* The bytes that changed, and what is between them. */
static void after_call(unsigned vcpu)
{
	const struct maps *maps = region_maps();

	for (unsigned i = 0; i < ARGS; i++) {
		const struct map *m = before.len[i] ? map_find(maps, call.a[i], 1) : NULL;
		uint64_t from = 0, to = before.len[i];

		if (!m)
			continue;
		const unsigned char *now = region.view + map_offset(m, call.a[i]);
		while (from < to && now[from] == before.data[i][from])
			from++;
		while (to > from && now[to - 1] == before.data[i][to - 1])
			to--;
		kernel_stored(vcpu, call.a[i] + from, to - from);
		before.len[i] = 0;
	}
}

static void after_read(unsigned vcpu, int64_t num, uint64_t n)
{
	switch (num) {
	case NR_READ:
	case NR_PREAD64:
	case NR_RECVFROM:
		kernel_stored(vcpu, call.a[1], n);
		break;
	case NR_RECVMSG:
		kernel_received(vcpu, call.a[1], n);
		break;
	case NR_RECVMMSG:
		kernel_received_many(vcpu, call.a[1], n);
		break;
	default: /* readv and its like */
		kernel_filled(vcpu, call.a[1], call.a[2], n);
		break;
	}
}

static bool is_fork(int64_t num, uint64_t flags)
{
	return num == NR_FORK || num == NR_VFORK ||
	       (num == NR_CLONE && (!(flags & CLONE_VM_) || (flags & CLONE_VFORK_)));
}

void syscall_cb(qemu_plugin_id_t id, unsigned vcpu, int64_t num, uint64_t a1, uint64_t a2,
		uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
	(void)id;
	(void)vcpu;
	(void)a7;
	(void)a8;
	uint64_t a[6] = { a1, a2, a3, a4, a5, a6 };

	memcpy(call.a, a, sizeof(a));
	before_call(num);
	if (num == NR_CLONE || num == NR_CLONE3 || is_fork(num, a1))
		pm.alone = false;
	if (is_fork(num, a1)) {
		call.pid = getpid();
		count_process(1);
	} else if (num == NR_EXECVE || num == NR_EXECVEAT) {
		/*
		 * The program that is run is not emulated: nothing more will come from this
		 * process. Another one may be left, and the count is put right if it does not
		 * happen.
		 */
		count_process(-1);
	}
}

/* A child has what its parent had, but is a CPU of its own. */
static void after_fork(int64_t ret)
{
	if (getpid() != call.pid) {
		writer_forked();
		for (size_t i = 0; i < CPUS_HERE; i++)
			pm.cpu[i].known = pm.cpu[i].since_fence = false;
	} else if (ret < 0) {
		count_process(-1);
	}
}

/* The kernel wrote back what was stored to part of the region: as if flushed and fenced. */
static void wrote_back(unsigned vcpu, uint64_t from, uint64_t to)
{
	if (to > region.view_size)
		to = region.view_size;
	for (uint64_t off = from / PM_STREAM_LINE * PM_STREAM_LINE; off < to; off += PM_STREAM_LINE)
		if (region_is_dirty(off))
			region_flush_line(vcpu, PM_STREAM_FLUSH, off, 0);
	record_small(vcpu, PM_STREAM_FENCE, 0, 0, 0, NULL);
}

static void after_sync(unsigned vcpu, int64_t num)
{
	lock();
	if (num != NR_MSYNC && region.view && region_is_file(call.a[0]))
		wrote_back(vcpu, 0, region.view_size);
	for (size_t i = 0; num == NR_MSYNC && (call.a[2] & MS_SYNC_) && i < region.maps->n; i++) {
		const struct map *m = &region.maps->v[i];
		uint64_t from = call.a[0] > m->start ? call.a[0] : m->start;
		uint64_t end = call.a[0] + call.a[1];
		uint64_t to = end < m->end ? end : m->end;

		if (from < to)
			wrote_back(vcpu, map_offset(m, from), map_offset(m, to));
	}
	unlock();
}

void syscall_ret_cb(qemu_plugin_id_t id, unsigned vcpu, int64_t num, int64_t ret)
{
	bool good = ret >= 0 || ret < -4095;

	(void)id;
	switch (num) {
	case NR_MMAP:
		if (good && ((!(call.a[3] & 0x20) && region_is_file(call.a[4])) ||
			     map_find(region.maps, call.a[0], call.a[1])))
			region_mapped();
		break;
	case NR_MUNMAP:
	case NR_MREMAP:
		if (good && map_find(region.maps, call.a[0], call.a[1] ? call.a[1] : 1))
			region_mapped();
		break;
	case NR_CLONE:
	case NR_FORK:
	case NR_VFORK:
		if (is_fork(num, call.a[0]))
			after_fork(ret);
		break;
	case NR_EXECVE:
	case NR_EXECVEAT:
		count_process(1);
		break;
	case NR_MSYNC:
	case NR_FSYNC:
	case NR_FDATASYNC:
		if (!ret)
			after_sync(vcpu, num);
		break;
	default:
		if (!reads_much(num))
			after_call(vcpu);
		else if (ret > 0)
			after_read(vcpu, num, (uint64_t)ret);
		break;
	}
}
