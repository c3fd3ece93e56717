/* SPDX-License-Identifier: MIT */
/* pm_blob.h - the bytes of the plugin, for two versions of QEMU's interface, its test, and the
 * library. */
#ifndef RECORD_PM_BLOB_H
#define RECORD_PM_BLOB_H

#include <stdint.h>

extern const unsigned char pm_plugin_1[], pm_plugin_4[], pm_selftest_program[];
extern const unsigned char pm_preload[]; /* the library for LD_PRELOAD */
extern const uint64_t pm_plugin_1_size, pm_plugin_4_size, pm_selftest_program_size;
extern const uint64_t pm_preload_size; /* 0: there is none */

#endif
