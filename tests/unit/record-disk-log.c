/* SPDX-License-Identifier: MIT */
/* The log between a disk file's server and its owner: order, wrapping, overflow, two processes. */
#include "tap.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "record/disk_log.h"

static unsigned char data[1 << 20];

static void put(struct disk_log *l, uint32_t kind, uint64_t addr, uint64_t len)
{
	disk_log_put(l, &(struct disk_log_record){ .kind = kind, .addr = addr, .data_len = len },
		     data);
}

static void test_order(void)
{
	struct disk_log *l = disk_log_new();
	const struct disk_log_record *r;

	ok(l && !disk_log_peek(l), "a new log is empty");
	put(l, 1, 10, 0);
	put(l, 2, 20, 5);
	r = disk_log_peek(l);
	ok(r && r->kind == 1 && r->addr == 10, "the first comes first");
	ok(disk_log_peek(l) == r, "and stays until it is taken");
	disk_log_next(l);
	r = disk_log_peek(l);
	ok(r && r->addr == 20 && r->data_len == 5 && !memcmp(r + 1, data, 5), "then the second");
	disk_log_next(l);
	ok(!disk_log_peek(l), "then none");
	disk_log_free(l);
}

static void test_overflow(void)
{
	struct disk_log *l = disk_log_new();
	uint64_t n = 0, seen = 0;

	while (!atomic_load(&l->lost) && n < 1000)
		put(l, 1, n++, sizeof(data));
	is_u(n, DISK_LOG_BYTES / sizeof(data), "it holds what its size says, less the heads");
	for (const struct disk_log_record *r; (r = disk_log_peek(l)); disk_log_next(l))
		seen += r->addr == seen;
	is_u(seen, n - 1, "what was there when it overflowed is whole");
	put(l, 1, 7, 100);
	ok(disk_log_peek(l) && disk_log_peek(l)->addr == 7, "and it goes on");
	disk_log_free(l);
}

/* A writer that never waits and a reader that checks: sizes that hit the end everywhere. */
static void test_two_processes(void)
{
	enum { N = 20000 };
	struct disk_log *l = disk_log_new();
	pid_t writer = fork();
	uint64_t next = 0, wrong = 0;
	int status = 1;

	if (writer == 0) {
		struct rng rng;

		rng_init(&rng, 3);
		for (uint64_t i = 0; i < N; i++) {
			uint64_t len = rng_below(&rng, 20000);

			/* Waiting is the test's, so that nothing is lost. */
			while (atomic_load(&l->head) - atomic_load(&l->tail) > DISK_LOG_BYTES / 2)
				usleep(100);
			memcpy(data, &i, sizeof(i));
			put(l, 1, i, max(len, (uint64_t)8));
		}
		_exit(0);
	}
	while (next < N) {
		const struct disk_log_record *r = disk_log_peek(l);
		uint64_t inside;

		if (!r) {
			if (status && waitpid(writer, &status, WNOHANG) == writer &&
			    !disk_log_peek(l))
				break;
			continue;
		}
		memcpy(&inside, r + 1, sizeof(inside));
		wrong += r->addr != next || inside != next;
		next++;
		disk_log_next(l);
	}
	if (status)
		waitpid(writer, &status, 0);
	is_u(next, N, "everything arrives");
	is_u(wrong, 0, "in order, and unharmed");
	is_u(atomic_load(&l->lost), 0, "nothing is lost");
	disk_log_free(l);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)i;
	test_order();
	test_overflow();
	test_two_processes();
	return done_testing();
}
