/* SPDX-License-Identifier: MIT */
/*
 * dmlog_format.h - the format of logs of the kernel's dm-log-writes target, and the texts of our
 * marks. Private to dmlog_*.c; other rooms include dmlog.h.
 *
 * The format (drivers/md/dm-log-writes.c in the kernel), all numbers little-endian, everything in
 * units of the log's sector size s, which is the logical block size of the logged device:
 *
 *	sector 0: superblock
 *	  0   8  magic			0x6a736677736872
 *	  8   8  version		1
 *	 16   8  number of entries
 *	 24   4  sector size s
 *
 *	then for each entry one sector
 *	  0   8  sector			where on the device
 *	  8   8  number of sectors
 *	 16   8  flags			1 flush, 2 FUA, 4 discard, 8 mark, 16 metadata
 *	 24   8  data length		of a mark's text; of no interest otherwise
 *	 32   n  text			of a mark; a NUL follows within the sector
 *	and after it, unless it is a discard, its data: number of sectors times s bytes.
 *
 * Marks. A text that we did not write ourselves is EV_TEXT, and the other way round. All else is a
 * mark that begins with "outage:", one word, a space and its arguments:
 *
 *	outage:device SIZE SECTOR TARGET	first entry: struct trace_info
 *	outage:begin OP TEXT			EV_OP_BEGIN
 *	outage:end OP RESULT			EV_OP_END
 *	outage:persist OP			EV_PERSIST
 *	outage:text TEXT			EV_TEXT, where TEXT itself begins with "outage:"
 *	outage:zero				the discard that follows is EV_ZERO
 *	outage:part TEXT			a mark too long for a sector: the first parts of it,
 *	outage:last TEXT			and its last; all TEXTs joined are the mark
 *
 * An "outage:" mark of any other form is EV_TEXT, too.
 */
#ifndef CORE_DMLOG_FORMAT_H
#define CORE_DMLOG_FORMAT_H

#include <stdint.h>

#define LOG_MAGIC UINT64_C(0x6a736677736872)

enum {
	LOG_VERSION = 1,
	LOG_SUPER = 28, /* bytes of the superblock that are used */
	LOG_ENTRY = 32, /* bytes of an entry that are used */
	LOG_SECTOR_MIN = 512,
	LOG_SECTOR_MAX = 65536,
	LOG_SECTOR_PAGE = 4096, /* the kernel makes no larger one */

	LOG_FLUSH = 1 << 0,
	LOG_FUA = 1 << 1,
	LOG_DISCARD = 1 << 2,
	LOG_MARK = 1 << 3,
	LOG_METADATA = 1 << 4,
	LOG_FLAGS_ALL = (1 << 5) - 1,
};

#define LOG_MARK_PREFIX "outage:"

#endif
