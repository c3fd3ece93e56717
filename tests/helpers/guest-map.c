/* SPDX-License-Identifier: MIT */
/*
 * guest-map.c - a program for a guest: maps a file on persistent memory, writes a text there, and
 * then says that it is valid. "right" sees to it that the text is durable first, "wrong" does not;
 * "check" fails if what is valid is not whole, and "hello" only says so.
 */
#include <emmintrin.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static const char text[] = "all of it";

struct pool {
	char text[64];
	char valid[64];
};

static void put(struct pool *p, int flush)
{
	memcpy(p->text, text, sizeof(text));
	if (flush) {
		_mm_clflush(p->text);
		_mm_sfence();
	}
	p->valid[0] = 1;
	_mm_clflush(p->valid);
	_mm_sfence();
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "hello") == 0)
		return puts("hello from the guest") < 0;
	int fd = argc > 2 ? open(argv[2], O_RDWR) : -1;
	struct pool *p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return 2;
	if (strcmp(argv[1], "check") == 0)
		return p->valid[0] && memcmp(p->text, text, sizeof(text)) != 0;
	put(p, strcmp(argv[1], "right") == 0);
	return 0;
}
