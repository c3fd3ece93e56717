/* SPDX-License-Identifier: MIT */
/* trace-build.h - appends the usual events to a trace, for tests that make one by hand. */
#ifndef TESTS_TRACE_BUILD_H
#define TESTS_TRACE_BUILD_H

#include "core/trace.h"

static inline uint64_t trace_write(struct trace *t, uint64_t addr, const void *data, size_t len,
				   uint32_t flags)
{
	return trace_append(
		t,
		&(struct event){
			.kind = EV_WRITE, .addr = addr, .len = len, .flags = flags, .data = data });
}

static inline uint64_t trace_flush(struct trace *t)
{
	return trace_append(t, &(struct event){ .kind = EV_FLUSH });
}

static inline void trace_text(struct trace *t, const char *text)
{
	trace_append(t, &(struct event){ .kind = EV_TEXT,
					 .len = strlen(text),
					 .data = (const unsigned char *)text });
}

static inline void trace_op_begin(struct trace *t, uint64_t op, const char *text)
{
	trace_append(t, &(struct event){ .kind = EV_OP_BEGIN,
					 .ref = op,
					 .len = strlen(text),
					 .data = (const unsigned char *)text });
}

#endif
