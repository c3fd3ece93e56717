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

/* Frees the vector, of whatever type, when its scope ends: auto_vec struct ages all = { 0 }; */
#define auto_vec auto_free

/* Takes `count` elements out, from index `at` on. */
#define vec_remove(vec, at, count)                                                                 \
	do {                                                                                       \
		memmove((vec)->v + (at), (vec)->v + (at) + (count),                                \
			((vec)->n - (at) - (count)) * sizeof(*(vec)->v));                          \
		(vec)->n -= (count);                                                               \
	} while (0)

/* Calls qsort(3), which needs a non-NULL array, unless the vector is empty. */
#define vec_sort(vec, by)                                                                          \
	do {                                                                                       \
		if ((vec)->n)                                                                      \
			qsort((vec)->v, (vec)->n, sizeof(*(vec)->v), (by));                        \
	} while (0)

/* Sorts a vector of numbers, and removes duplicates. */
#define vec_sort_unique(vec, by)                                                                   \
	do {                                                                                       \
		size_t kept_ = 0;                                                                  \
		vec_sort((vec), (by));                                                             \
		for (size_t i_ = 0; i_ < (vec)->n; i_++)                                           \
			if (!kept_ || (vec)->v[kept_ - 1] != (vec)->v[i_])                         \
				(vec)->v[kept_++] = (vec)->v[i_];                                  \
		(vec)->n = kept_;                                                                  \
	} while (0)

/*
 * Defines a function for vec_sort() by the value that it returns for the elements *a and *b:
 *
 *	DEFINE_ORDER(by_age, struct person, order(b->age, a->age) ?: strcmp(a->name, b->name))
 */
#define DEFINE_ORDER(by, type, ...)                                                                \
	static int by(const void *a_, const void *b_)                                              \
	{                                                                                          \
		const __typeof__(type) *a = a_, *b = b_;                                           \
		return __VA_ARGS__;                                                                \
	}
#define order(x, y) (((x) > (y)) - ((x) < (y)))
int by_u64(const void *a, const void *b); /* for a vector of uint64_t */

/* For each element `p` of a vector, by pointer: vec_each(p, &ages) *p += 1; */
#define vec_each(p, vec) for (__typeof__(*(vec)->v) *p = (vec)->v; p < (vec)->v + (vec)->n; p++)

/*
 * Releases a vector whose elements hold something: the calls, separated by commas, are done for
 * each element `p`, and then the vector is empty: vec_release_each(p, &people, free(p->name));
 */
#define vec_release_each(p, vec, ...)                                                              \
	do {                                                                                       \
		vec_each(p, vec)                                                                   \
			__VA_ARGS__;                                                               \
		vec_release(vec);                                                                  \
	} while (0)

/*
 * any_of() is true if `holds` is for any index `i` below `n`, all_of() if it is for each one.
 * vec_find() gives the first element of a vector for which it is, or NULL, vec_find_last() gives
 * the last one, and array_find() the first one of an array:
 *
 *	if (any_of(i, ages.n, ages.v[i] >= 18)) ...
 *	int *adult = vec_find(i, &ages, ages.v[i] >= 18);
 */
#define any_of(i, n, holds)                                                                        \
	({                                                                                         \
		bool any_ = false;                                                                 \
		for (size_t i = 0, n_ = (n); !any_ && i < n_; i++)                                 \
			any_ = (holds);                                                            \
		any_;                                                                              \
	})
#define all_of(i, n, holds)	    (!any_of(i, n, !(holds)))
#define vec_find(i, vec, holds)	    find_in_(i, (vec)->v, (vec)->n, holds)
#define array_find(i, array, holds) find_in_(i, array, ARRAY_SIZE(array), holds)
#define find_in_(i, array, n, holds)                                                               \
	({                                                                                         \
		size_t all_ = (n), at_ = all_;                                                     \
		for (size_t i = 0; i < at_; i++)                                                   \
			if (holds)                                                                 \
				at_ = i;                                                           \
		at_ < all_ ? &(array)[at_] : NULL;                                                 \
	})
#define vec_find_last(i, vec, holds)                                                               \
	({                                                                                         \
		size_t left_ = (vec)->n;                                                           \
		bool found_ = false;                                                               \
		while (!found_ && left_) {                                                         \
			size_t i = --left_;                                                        \
			found_ = (holds);                                                          \
		}                                                                                  \
		found_ ? &(vec)->v[left_] : NULL;                                                  \
	})

/*
 * The first index `i` below `n` for which `holds` is true, or n, by binary search: the array is
 * sorted such that `holds` is true for all higher indices, too.
 *
 *	size_t adult = first_where(i, ages.n, ages.v[i] >= 18);
 */
#define first_where(i, n, holds)                                                                   \
	({                                                                                         \
		size_t from_ = 0, to_ = (n);                                                       \
		while (from_ < to_) {                                                              \
			size_t i = from_ + (to_ - from_) / 2;                                      \
			if (holds)                                                                 \
				to_ = i;                                                           \
			else                                                                       \
				from_ = i + 1;                                                     \
		}                                                                                  \
		from_;                                                                             \
	})

void vec_reserve_(void **v, size_t n, size_t *cap, size_t extra, size_t elem_size);

#endif
