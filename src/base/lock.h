/* SPDX-License-Identifier: MIT */
/*
 * lock.h - a mutex that is held until the scope ends: auto_lock(&f->table); and a mutex that knows
 * who holds it, so that a function can assert what its callers have to do:
 *
 *	auto_owned(&t->lock);
 *	...
 *	assert_owned(&t->lock);
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/util.h"

static inline pthread_mutex_t *lock_enter_(pthread_mutex_t *m)
{
	pthread_mutex_lock(m);
	return m;
}

static inline void lock_leave_(pthread_mutex_t *const *m)
{
	pthread_mutex_unlock(*m);
}

#define auto_lock(m) auto_lock_(m, __COUNTER__)
#define auto_lock_(m, n)                                                                           \
	pthread_mutex_t *const unique_(held_, n)                                                   \
		__attribute__((cleanup(lock_leave_), unused)) = lock_enter_(m)

struct owned_lock {
	pthread_mutex_t mutex;
	_Atomic(pthread_t) owner; /* 0: the lock is free; no thread of glibc has this number */
};

static inline void owned_init(struct owned_lock *l)
{
	pthread_mutex_init(&l->mutex, NULL);
	atomic_store(&l->owner, 0);
}

static inline void owned_release(struct owned_lock *l)
{
	pthread_mutex_destroy(&l->mutex);
}

static inline bool owned_is_mine(struct owned_lock *l)
{
	return atomic_load_explicit(&l->owner, memory_order_relaxed) == pthread_self();
}

static inline struct owned_lock *owned_take(struct owned_lock *l)
{
	assert(!owned_is_mine(l));
	pthread_mutex_lock(&l->mutex);
	atomic_store_explicit(&l->owner, pthread_self(), memory_order_relaxed);
	return l;
}

static inline bool owned_try(struct owned_lock *l)
{
	if (pthread_mutex_trylock(&l->mutex))
		return false;
	atomic_store_explicit(&l->owner, pthread_self(), memory_order_relaxed);
	return true;
}

#define assert_owned(l)	    assert(owned_is_mine(l))
#define assert_not_owned(l) assert(!owned_is_mine(l))

static inline void owned_give(struct owned_lock *l)
{
	assert_owned(l);
	atomic_store_explicit(&l->owner, 0, memory_order_relaxed);
	pthread_mutex_unlock(&l->mutex);
}

static inline void owned_leave_(struct owned_lock *const *l)
{
	owned_give(*l);
}

#define auto_owned(l) auto_owned_(l, __COUNTER__)
#define auto_owned_(l, n)                                                                          \
	struct owned_lock *const unique_(owned_, n)                                                \
		__attribute__((cleanup(owned_leave_), unused)) = owned_take(l)

#endif
