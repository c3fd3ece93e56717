/* SPDX-License-Identifier: MIT */
/*
 * pm-preload.c - every function of libpmem once, for the library that stands in front of it:
 * pm-preload FILE all|twice|moved|cold|synced|fork|exit|killed|threads
 */
#include <fcntl.h>
#include <libpmem.h>
#include <outage/mark.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned char *memory;

static void all(void)
{
	static const unsigned char data[512] = { 1, 2, 3 };
	volatile uint64_t *word = (void *)memory;

	word[0] = 1; /* found at the next call, and never flushed */
	outage_mark_text("flush", 5);
	word[8] = 2;
	pmem_flush((void *)&word[8], 8);
	pmem_drain();
	outage_mark_text("deep", 4);
	word[16] = 3;
	pmem_deep_flush((void *)&word[16], 8);
	pmem_deep_drain((void *)&word[16], 8);
	word[24] = 4;
	pmem_deep_persist((void *)&word[24], 8);
	outage_mark_text("msync", 5);
	word[32] = 5;
	pmem_msync((void *)&word[32], 8);
	outage_mark_text("copy", 4);
	pmem_memcpy_persist(memory + 4096, data, 64);
	pmem_memmove_persist(memory + 4096, data, 512); /* past the cache */
	pmem_memset_persist(memory + 8192, 7, 64);
	outage_mark_text("nodrain", 7);
	pmem_memcpy_nodrain(memory + 4096, data, 64);
	pmem_memmove_nodrain(memory + 4096, data, 64);
	pmem_memset_nodrain(memory + 8192, 8, 64);
	pmem_drain();
	outage_mark_text("flags", 5);
	pmem_memcpy(memory + 4096, data, 512, PMEM_F_MEM_TEMPORAL | PMEM_F_MEM_NODRAIN);
	pmem_memmove(memory + 4096, data, 64, PMEM_F_MEM_NONTEMPORAL | PMEM_F_MEM_NODRAIN);
	pmem_memset(memory + 8192, 9, 64, PMEM_F_MEM_NOFLUSH);
	outage_mark_text("end", 3);
}

static void *one_thread(void *arg)
{
	uint64_t *word = arg;

	for (uint64_t i = 1; i <= 50; i++) {
		*word = i;
		pmem_persist(word, sizeof(*word));
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, one_thread, memory + i * 64L))
			_exit(3);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

/* What a child stores is in the same memory, what it calls is not seen. */
static void forked(void)
{
	pid_t pid = fork();

	if (!pid) {
		memory[0] = 1;
		pmem_persist(memory, 1);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* A second mapping is the same memory: a flush there is one here. */
static void twice(const char *path)
{
	size_t size;
	int is_pmem;
	unsigned char *second = pmem_map_file(path, 0, 0, 0, &size, &is_pmem);

	if (!second)
		_exit(3);
	memory[0] = 1;
	pmem_persist(second, 1);
	second[64] = 2;
	pmem_persist(memory + 64, 1);
	pmem_unmap(second, size);
	memory[128] = 3;
	pmem_persist(memory + 128, 1);
}

/* Cut, and moved: what is left of the mapping is somewhere else. */
static int moved(size_t size)
{
	unsigned char *to;

	munmap(memory, size / 2);
	to = mremap(memory + size / 2, size / 2, size / 2, MREMAP_MAYMOVE);
	if (to == MAP_FAILED)
		return 3;
	to[0] = 1;
	pmem_persist(to, 1);
	return munmap(to, size / 2);
}

/* Of a large file, a page that nobody ever flushed is found as well, if late. */
static void cold(size_t size)
{
	for (size_t i = 0; i < 3; i++) {
		memory[0] = (unsigned char)(i + 1);
		pmem_persist(memory, 1);
		memory[size / 2 + 4096 * i] ^= 0x55;
	}
}

/* More than a short trace can hold. */
static void long_one(void)
{
	static const unsigned char block[1024] = { 1 };

	for (size_t i = 0; i < 200; i++)
		pmem_memcpy_persist(memory + i % 8 * sizeof(block), block, sizeof(block));
}

static void synced(const char *path)
{
	int fd = open(path, O_RDWR);

	memory[0] = 1;
	memory[4096] = 1;
	if (fd < 0 || fsync(fd) || close(fd))
		_exit(3);
	memory[8192] = 1;
	if (msync(memory + 8192, 4096, MS_SYNC))
		_exit(3);
}

int main(int argc, char **argv)
{
	size_t size;
	int is_pmem;

	if (argc != 3)
		return 2;
	memory = pmem_map_file(argv[1], 0, 0, 0, &size, &is_pmem);
	if (!memory)
		return 1;
	if (!strcmp(argv[2], "all"))
		all();
	else if (!strcmp(argv[2], "threads"))
		threads();
	else if (!strcmp(argv[2], "fork"))
		forked();
	else if (!strcmp(argv[2], "twice"))
		twice(argv[1]);
	else if (!strcmp(argv[2], "moved"))
		return moved(size);
	else if (!strcmp(argv[2], "cold"))
		cold(size);
	else if (!strcmp(argv[2], "long"))
		long_one();
	else if (!strcmp(argv[2], "synced"))
		synced(argv[1]);
	else if (!strcmp(argv[2], "exit"))
		_exit(0);
	else if (!strcmp(argv[2], "killed"))
		raise(SIGKILL); /* without the end of the trace */
	return pmem_unmap(memory, size);
}
