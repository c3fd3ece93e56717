/* SPDX-License-Identifier: MIT */
/*
 * trace_format.h - the format of a trace file. Private to trace_reader.c and trace_writer.c; others
 * include trace_file.h, where the sizes are.
 *
 * All numbers are little-endian. A checksum is XXH3-64 of all bytes before it in the same header or
 * frame.
 *
 *	header				104 bytes, once
 *	  0   8  magic			8a 4f 55 54 41 47 45 0a ("\x8aOUTAGE\n")
 *	  8   4  version		1
 *	 12   4  flags			bit 0: completions are real; bit 1: events have places;
 *					others 0
 *	 16   8  size			of the device in bytes, 0 if unknown
 *	 24   4  sector size
 *	 28   4  reserved		0
 *	 32  64  target			text, filled up with NULs, at least one
 *	 96   8  checksum
 *
 *	frame				as many as it takes
 *	  0   4  magic			"EVTS"
 *	  4   4  raw length		of the payload once unpacked
 *	  8   4  packed length		of the payload in the file; equal to the raw length if
 *					the payload is stored as it is, else it is zstd
 *	 12   4  count			of events, at least 1
 *	 16   8  first			number of the first event
 *	 24   n  payload
 *	24+n  8  checksum
 *
 *	end frame			32 bytes, the last of a complete trace
 *	  0   4  magic			"TEND"
 *	  4  12  zeros
 *	 16   8  total			number of events in the trace
 *	 24   8  checksum
 *
 *	event, in the payload		48 bytes, with places 64, and its data
 *	  0   4  kind			enum event_kind
 *	  4   4  flags			enum event_flags
 *	  8   4  cpu
 *	 12   4  result			two's complement
 *	 16   8  addr
 *	 24   8  len
 *	 32   8  ref
 *	 40   8  time in nanoseconds
 *	with places:
 *	 48   8  program counter	0: unknown
 *	 56   4  stack			the number of a stack that came before; 0: none
 *	 60   4  reserved		0
 *	then:
 *	    len  data			only for kinds that carry data
 */
#ifndef CORE_TRACE_FORMAT_H
#define CORE_TRACE_FORMAT_H

static const unsigned char file_magic[8] = "\x8aOUTAGE\n";
static const unsigned char frame_magic[4] = { 'E', 'V', 'T', 'S' };
static const unsigned char end_magic[4] = { 'T', 'E', 'N', 'D' };

/* Flags of the header. A program that does not know a flag refuses the file. */
enum {
	HEADER_COMPLETIONS = 1 << 0,
	HEADER_PLACES = 1 << 1,
	HEADER_FLAGS_ALL = HEADER_COMPLETIONS | HEADER_PLACES,
};

#endif
