/* SPDX-License-Identifier: MIT */
/* pm_blob.c - holds the files of the plugin, so that they need not be installed. */
#include "record/pm_blob.h"

#include <pm_path.h>

/* clang-format off */
#define BLOB(name, path)                                                                           \
	__asm__(".pushsection .rodata\n"                                                           \
		".balign 16\n"                                                                     \
		".globl " #name ", " #name "_size\n"                                               \
		#name ":\n"                                                                        \
		".incbin \"" path "\"\n"                                                           \
		"1:\n"                                                                             \
		".balign 8\n"                                                                      \
		#name "_size:\n"                                                                   \
		".quad 1b - " #name "\n"                                                           \
		".popsection\n")
/* clang-format on */

BLOB(pm_plugin_1, PM_PLUGIN_1);
BLOB(pm_plugin_4, PM_PLUGIN_4);
BLOB(pm_selftest_program, PM_SELFTEST);

/* The library is missing if libpmem was missing when this program was built. */
#ifdef PM_PRELOAD
BLOB(pm_preload, PM_PRELOAD);
#else
const unsigned char pm_preload[1];
const uint64_t pm_preload_size;
#endif
