/* SPDX-License-Identifier: MIT */
/*
 * syscalls.h - system calls of user emulation: what the kernel stores into the region, writes back
 * of it, or maps elsewhere; and calls that make several processes of one.
 */
#ifndef PLUGIN_SYSCALLS_H
#define PLUGIN_SYSCALLS_H

#include "qemu_api.h"

/* For QEMU: before and after each call. */
qemu_syscall_cb syscall_cb;
qemu_syscall_ret_cb syscall_ret_cb;

#endif
