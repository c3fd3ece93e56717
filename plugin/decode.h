/* SPDX-License-Identifier: MIT */
/*
 * decode.h - the x86-64 instructions that matter to persistent memory, known by their bytes.
 *
 * Everything else is INSN_OTHER: the stores of an ordinary instruction are seen by its memory
 * access. Only 64-bit code is decoded.
 */
#ifndef PLUGIN_DECODE_H
#define PLUGIN_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_kind {
	INSN_OTHER,
	INSN_FLUSH,   /* clwb, clflushopt */
	INSN_CLFLUSH, /* clflush */
	INSN_FENCE,   /* sfence, mfence */
	INSN_LOCKED,  /* a lock prefix, or xchg with memory: acts as a fence */
	INSN_NTSTORE, /* movnti, movntq, movntps, movntdq, vmovnt..., maskmov... */
	INSN_MARK,    /* outage/mark.h */
};

/* The effect on the stack of calls. */
enum insn_flow {
	FLOW_ON, /* nothing */
	FLOW_CALL,
	FLOW_RETURN,
	FLOW_LEAVE, /* to code that has another stack, most likely: iret, sysret, a far return */
};

enum { INSN_NO_REG = 16, INSN_RIP = 17 }; /* for base and index */

struct insn {
	enum insn_kind kind;
	enum insn_flow flow;
	/*
	 * The emulator may do what it stores in a function of its own, instead of as part of the
	 * translated code: then it is not seen in the usual way.
	 */
	bool by_helper;
	/* Its only access to memory is by the stack pointer, and it is no fence. */
	bool on_stack;
	/*
	 * The instruction gives the stack pointer another value, and not that of a frame of the
	 * same stack.
	 */
	bool moves_stack;
	/* INSN_FLUSH, INSN_CLFLUSH: base + index * scale + disp; for INSN_RIP the end of the
	 * instruction is the base. Registers by number: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8.
	 */
	uint8_t base, index, scale;
	bool segment; /* fs or gs is to be added */
	bool addr32;  /* cut to 32 bits */
	int32_t disp;
	uint32_t mark; /* INSN_MARK: its kind */
};

/* `len` bytes that are one instruction. */
void insn_decode(const unsigned char *code, size_t len, struct insn *out);

#endif
