/* SPDX-License-Identifier: MIT */
/* stepper_impl.h - shared by the files of the stepper. */
#ifndef EXPLORE_STEPPER_IMPL_H
#define EXPLORE_STEPPER_IMPL_H

#include "explore/stepper.h"

/* Refuses sides that cannot be compared with each other, in one sentence. */
int stepper_check_comparable(struct stepper *st, struct err *err) must_check;

#endif
