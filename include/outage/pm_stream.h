/* SPDX-License-Identifier: MIT */
/*
 * outage/pm_stream.h - the format that a tracer of persistent memory writes: a stream of stores,
 * flushes, fences and marks, in the order in which they took effect.
 *
 * Everything is little-endian and a multiple of 8 bytes long.
 *
 *	header	struct pm_stream_header; what a newer version adds lies between it and
 *		`header_size`, and is skipped
 *	records	struct pm_stream_record, then `len` bytes of data, padded with zeros to 8, for the
 *		kinds that carry data
 *	end	a record of kind PM_STREAM_END. Its `addr` is the number of records before it,
 *		its `pc` the checksum (pm_stream_sum()) of them, without the header
 *
 * Most records are small and much like those before them. A record of kind PM_STREAM_BATCH holds
 * several, of its CPU and its stack, as its data; it does not count as a record, each of those
 * does:
 *
 *	word	bits 0-2: the kind, from PM_STREAM_STORE to PM_STREAM_LOAD
 *		bits 3-4: 1, 2, 4 or 8 bytes, as a power of two; 0 for the kinds without a length
 *		bits 5-31: the address less the `addr` of the batch; of a fence, nothing
 *		bits 32-63: the pc less the `pc` of the batch; below zero as two's complement
 *	data	of stores only: 8 bytes, zeros behind the length
 *
 * Stores that go on where the one before ended, and are of its kind and length, may follow it
 * there:
 *
 *	word	bits 0-2: PM_STREAM_MORE; bits 3-5: how many, from 1 to 7; bits 6-7: 0
 *		bits 8-15: the pc of the first of them less that of the store before, from -128 to
 *		127; bits 16-23: that of the second less that of the first; and so on
 *	data	8 bytes of each
 *
 * or, if their pc is the same as well:
 *
 *	word	bits 0-7: PM_STREAM_MORE and bit 6; bits 8-31: how many
 *	data	of all of them, padded with zeros to 8
 *
 * A tracer may write into a mapped file that is longer than the stream: bytes behind the end are
 * ignored, and a record of kind 0 is where a tracer was that did not come to its end.
 *
 * S1: addresses are offsets in the region, and a store lies wholly inside it.
 * S2: a store's data is what the region held right after it. Applying all stores, in order, to
 *     what the region held when the tracer began gives what it holds at the end.
 * S3: a record's place is no earlier than what it tells, and no later than the next thing that the
 *     same CPU does.
 *
 * So, with several CPUs: what one does after another has told it to (by whatever it did after its
 * store: gave back a lock, set a flag) is behind it in the stream. Only a thread that waits for
 * that very store to persistent memory may be recorded before it; and of two that store to the same
 * bytes at the same time, both records may have the data of the second. A fence is that of its CPU
 * alone.
 */
#ifndef OUTAGE_PM_STREAM_H
#define OUTAGE_PM_STREAM_H

#include <stddef.h>
#include <stdint.h>

#define PM_STREAM_MAGIC	  "OUTPMS1" /* with its NUL: 8 bytes */
#define PM_STREAM_VERSION 3	    /* 1 had no batches, 2 no PM_STREAM_NEW_CALL */

struct pm_stream_header {
	char magic[8];
	uint32_t version;     /* readers refuse what they do not know */
	uint32_t header_size; /* bytes; at least sizeof(struct pm_stream_header), at most 4096 */
	uint64_t region_size; /* bytes; addresses are below it */
	uint32_t flags;	      /* PM_STREAM_HAS_... */
	uint32_t cpus;	      /* `cpu` of each record is below it */
};

enum {
	PM_STREAM_HAS_LOADS = 1 << 0,	/* loads were traced */
	PM_STREAM_HAS_PC = 1 << 1,	/* `pc` means something */
	PM_STREAM_HAS_STACKS = 1 << 2,	/* `stack` does, too */
	PM_STREAM_BY_FUNCTION = 1 << 3, /* calls were seen, not instructions */
	PM_STREAM_HEADER_FLAGS = (1 << 4) - 1,
};

struct pm_stream_record {
	uint8_t kind;  /* PM_STREAM_... */
	uint8_t flags; /* PM_STREAM_NEW_CALL, or 0 */
	uint16_t cpu;  /* or thread: what a fence waits for */
	uint32_t len;  /* see there */
	uint64_t addr;
	uint64_t pc;	/* where the program was; 0: unknown */
	uint64_t stack; /* the number of a PM_STREAM_STACK record that came before; 0: none */
};

enum {
	PM_STREAM_NONE,	      /* the tracer did not come further */
	PM_STREAM_STORE,      /* addr, len, data */
	PM_STREAM_NTSTORE,    /* addr, len, data: past the cache, drained by a fence */
	PM_STREAM_FLUSH,      /* addr: a line, clwb or clflushopt; len 0 */
	PM_STREAM_CLFLUSH,    /* addr: a line, clflush; len 0 */
	PM_STREAM_FENCE,      /* sfence, mfence, or what acts like one; addr and len 0 */
	PM_STREAM_LOAD,	      /* addr, len; no data */
	PM_STREAM_MARK_BEGIN, /* addr: the number of an operation; len 0 */
	PM_STREAM_MARK_END,   /* the same */
	PM_STREAM_TEXT,	      /* len, data: not more than OUTAGE_MARK_TEXT_MAX; addr 0 */
	PM_STREAM_STACK,   /* addr: its number, from 1 on; data: `len / 8` return addresses, inner
			      first */
	PM_STREAM_SELF,	   /* the tracer's test: two numbers, in addr and pc; len 0 */
	PM_STREAM_TROUBLE, /* data: a sentence about what could not be traced: all is in doubt */
	PM_STREAM_END,	   /* see above */
	PM_STREAM_BATCH,   /* addr, pc, len; data: several records, see above */
	PM_STREAM_KINDS
};

enum {
	PM_STREAM_LINE = 64,
	PM_STREAM_STORE_MAX = 1 << 20, /* bytes of one store; a tracer cuts longer ones */
	PM_STREAM_FRAMES_MAX = 256,    /* frames of a stack */
	PM_STREAM_MORE = 7,	       /* in a batch, see above */
	PM_STREAM_MORE_SAME = PM_STREAM_MORE | 1 << 6,
	/*
	 * Flag of a store, or of a batch for its first record: it goes on where the store before
	 * it ended, but the program has called or returned between them.
	 */
	PM_STREAM_NEW_CALL = 1,
	PM_STREAM_BATCH_MAX = 4096, /* bytes of one batch */
	PM_STREAM_WINDOW = 1 << 27, /* bytes that a batch can speak of */
	PM_STREAM_CPUS_MAX = 1 << 16,
};

static inline int pm_stream_has_data(unsigned kind)
{
	return kind == PM_STREAM_STORE || kind == PM_STREAM_NTSTORE || kind == PM_STREAM_TEXT ||
	       kind == PM_STREAM_STACK || kind == PM_STREAM_TROUBLE || kind == PM_STREAM_BATCH;
}

/* Bytes of a record with its data. */
static inline size_t pm_stream_record_size(unsigned kind, uint32_t len)
{
	return sizeof(struct pm_stream_record) +
	       (pm_stream_has_data(kind) ? ((size_t)len + 7) / 8 * 8 : 0);
}

/* The first word of what a batch holds. */
static inline uint64_t pm_stream_small(unsigned kind, unsigned shift, uint64_t addr, uint64_t pc)
{
	return kind | shift << 3 | addr << 5 | pc << 32;
}

#define PM_STREAM_SUM_INIT 0x9e3779b97f4a7c15u

/*
 * The checksum goes over 8-byte words; `len` is a multiple of 8. The checksum tells a stream that
 * was cut or mixed up, and is no defence against an attacker.
 */
static inline uint64_t pm_stream_sum(uint64_t sum, const void *data, size_t len)
{
	const unsigned char *p = (const unsigned char *)data;
	uint64_t word;

	for (size_t i = 0; i + 8 <= len; i += 8) {
		__builtin_memcpy(&word, p + i, 8);
		sum = (sum << 7 | sum >> 57) + word;
	}
	return sum;
}

#endif
