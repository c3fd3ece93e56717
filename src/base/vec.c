/* SPDX-License-Identifier: MIT */
/* vec.c - makes room in a growing array. */
#include "base/vec.h"

void vec_reserve_(void **v, size_t n, size_t *cap, size_t extra, size_t elem_size)
{
	size_t want = n + extra;

	assert(want >= n);
	if (want <= *cap)
		return;
	*cap = max(want, max(*cap * 2, (size_t)8));
	assert(*cap <= SIZE_MAX / elem_size);
	*v = xrealloc(*v, *cap * elem_size);
}

int by_u64(const void *a, const void *b)
{
	return order(*(const uint64_t *)a, *(const uint64_t *)b);
}
