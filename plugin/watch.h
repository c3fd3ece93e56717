/* SPDX-License-Identifier: MIT */
/*
 * watch.h - instructions: what each is watched for is decided when it is translated; and flushes,
 * fences, marks, calls and returns, which touch no memory that QEMU knows of.
 */
#ifndef PLUGIN_WATCH_H
#define PLUGIN_WATCH_H

#include "qemu_api.h"

/* For QEMU: a block of code is translated. */
qemu_tb_cb watch_block;

#endif
