/* SPDX-License-Identifier: MIT */
/*
 * dmlog.h - reads and writes logs of the kernel's dm-log-writes target: recordings of other
 * programs can be explored here, and our recordings replayed by other programs, such as replay-log
 * of xfstests. The format is described at the top of dmlog_format.h.
 */
#ifndef CORE_DMLOG_H
#define CORE_DMLOG_H

#include "core/trace.h"

/*
 * Reads a log from a file or a block device ("-" is standard input). Each entry becomes a request
 * and its completion. The size of the device is not in a log: info.size is 0, unless the log is
 * an export of ours.
 */
int dmlog_import(const char *path, struct trace *out, struct err *err) must_check;
int dmlog_import_bytes(const void *data, size_t len, struct trace *out, struct err *err) must_check;

/* Counts of exported entries, and of events that a log has no form for. */
struct dmlog_report {
	uint64_t entries;    /* written */
	uint64_t reads;	     /* EV_READ */
	uint64_t pm;	     /* events of persistent memory */
	uint64_t posix;	     /* calls of an application */
	uint64_t incomplete; /* requests that never completed */
	uint64_t failed;     /* requests that completed with an error */
};

/* Writes a valid trace as a log; the file appears when it is complete. "-" is standard output. */
int dmlog_export(const struct trace *t, const char *path, struct dmlog_report *report,
		 struct err *err) must_check;

#endif
