/* SPDX-License-Identifier: MIT */
/*
 * vec.h - a typed growing array.
 *
 *	struct vec_of(int) ages = { 0 };
 *	vec_push(&ages, 42);
 *	for (size_t i = 0; i < ages.n; i++) ... ages.v[i] ...
 *	vec_release(&ages);
 *
 * Pointers into the array are valid until the next push.
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "base/util.h"

#define vec_of(type)                                                                               \
	{                                                                                          \
		type *v;                                                                           \
		size_t n;                                                                          \
		size_t cap;                                                                        \
	}

/* Makes room for `extra` more elements. */
#define vec_reserve(vec, extra)                                                                    \
	vec_reserve_((void **)&(vec)->v, (vec)->n, &(vec)->cap, (extra), sizeof(*(vec)->v))

#define vec_push(vec, ...)                                                                         \
	do {                                                                                       \
		vec_reserve((vec), 1);                                                             \
		(vec)->v[(vec)->n++] = (__VA_ARGS__);                                              \
	} while (0)

/* The last element; the vector must not be empty. */
#define vec_last(vec) ((vec)->v[assert_index_((vec)->n)])

#define vec_clear(vec) ((vec)->n = 0)

#define vec_release(vec)                                                                           \
	do {                                                                                       \
		free((vec)->v);                                                                    \
		(vec)->v = NULL;                                                                   \
		(vec)->n = (vec)->cap = 0;                                                         \
	} while (0)

static inline size_t assert_index_(size_t n)
{
	assert(n > 0);
	return n - 1;
}

void vec_reserve_(void **v, size_t n, size_t *cap, size_t extra, size_t elem_size);

#endif
