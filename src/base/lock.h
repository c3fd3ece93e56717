/* SPDX-License-Identifier: MIT */
/* lock.h - a mutex that is held until the scope ends: auto_lock(&f->table); */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <pthread.h>

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

#endif
