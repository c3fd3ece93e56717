/* SPDX-License-Identifier: MIT */
/*
 * outage/mark.h - tells a tracer of outage-pm(1), or of a virtual machine, where a program is.
 *
 *	outage_mark_begin(3);		operation 3 begins
 *	...
 *	outage_mark_end(3);		it has returned: what it promised must hold from here on
 *	outage_mark_text("grow", 4);	anything a person should read at this place
 *
 * A mark is one instruction, a long NOP with an address that it never uses: MARK_MAGIC + kind. The
 * arguments are in %rdi and %rsi. The mark needs no privilege, works in a kernel as well, and does
 * nothing at all without a tracer. On other processors than x86-64 there are no marks.
 *
 * Without tracing emulation, the preloaded library sees calls, not instructions: it looks for the
 * function outage_mark_hook, which a program may define, or leave to the library.
 */
#ifndef OUTAGE_MARK_H
#define OUTAGE_MARK_H

#ifdef __cplusplus
extern "C" {
#endif

#define OUTAGE_MARK_MAGIC 0x6f757467 /* "outg" */

enum {
	OUTAGE_MARK_BEGIN = 1, /* the number of an operation */
	OUTAGE_MARK_END = 2,   /* the number of an operation */
	OUTAGE_MARK_TEXT = 3,  /* address and length */
	OUTAGE_MARK_SELF = 4,  /* the tracer's own test: any two numbers */
	OUTAGE_MARK_START = 5, /* a tracer that waits for it begins a new trace */
	OUTAGE_MARK_STOP = 6,  /* and ends it */
	OUTAGE_MARK_LAST = OUTAGE_MARK_STOP,
};

enum { OUTAGE_MARK_TEXT_MAX = 4096 }; /* bytes; more is cut off */

/* Defined by the preloaded library; absent, and never called, otherwise. */
extern void outage_mark_hook(int kind, unsigned long a, unsigned long b) __attribute__((weak));

#if defined(__x86_64__)
#define OUTAGE_MARK_(kind, a, b)                                                                   \
	__asm__ volatile("nopl %c0(%%rax,%%rax,8)"                                                 \
			 :                                                                         \
			 : "i"(OUTAGE_MARK_MAGIC + (kind)), "D"(a), "S"(b)                         \
			 : "memory")
#else
#define OUTAGE_MARK_(kind, a, b) ((void)(a), (void)(b))
#endif

/* The hook is for the preloaded library: an instruction is of no use to it. */
#define OUTAGE_MARK_BOTH_(kind, a, b)                                                              \
	do {                                                                                       \
		OUTAGE_MARK_(kind, a, b);                                                          \
		if (outage_mark_hook)                                                              \
			outage_mark_hook(kind, a, b);                                              \
	} while (0)

static inline void outage_mark_begin(unsigned long operation)
{
	OUTAGE_MARK_BOTH_(OUTAGE_MARK_BEGIN, operation, 0UL);
}

static inline void outage_mark_end(unsigned long operation)
{
	OUTAGE_MARK_BOTH_(OUTAGE_MARK_END, operation, 0UL);
}

/* For the driver of a virtual machine's tracer; others are traced from the first to the last. */
static inline void outage_mark_start(void)
{
	OUTAGE_MARK_BOTH_(OUTAGE_MARK_START, 0UL, 0UL);
}

static inline void outage_mark_stop(void)
{
	OUTAGE_MARK_BOTH_(OUTAGE_MARK_STOP, 0UL, 0UL);
}

static inline void outage_mark_text(const char *text, unsigned long len)
{
	OUTAGE_MARK_BOTH_(OUTAGE_MARK_TEXT, (unsigned long)text, len);
}

#ifdef __cplusplus
}
#endif

#endif
