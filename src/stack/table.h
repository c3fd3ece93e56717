/* SPDX-License-Identifier: MIT */
/*
 * table.h - the file of the call stacks of a recorded run: lines whose fields are separated by
 * tabs.
 *
 *	stacks	1			the first line; the version
 *	module	PATH BUILD-ID		a program or library; numbered from 0, as all of these are
 *	frame	MODULE OFFSET FUNCTION FILE LINE
 *					OFFSET is the address in the module, in hexadecimal; unknown
 *					fields are empty, or line 0
 *	stack	FRAME...		the innermost first
 *	call	NUMBER STACK		the operation of this number had this stack
 *	missing	COUNT REASON		so many operations have no stack
 *
 * Operations are those of posix_event.number. A line refers only to lines above it. Unknown kinds
 * of lines are ignored: a newer version may have more.
 */
#ifndef STACK_TABLE_H
#define STACK_TABLE_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

enum { STACK_DEPTH_MAX = 256 };

struct stack_frame {
	uint32_t module;
	uint64_t offset;
	char *function, *file; /* NULL: not known */
	uint32_t line;	       /* 0: not known */
};

struct stack_table {
	struct vec_of(struct stack_module {
		char *path;
		char *build_id;
	}) modules;
	struct vec_of(struct stack_frame) frames;
	struct vec_of(struct stack_list {
		uint32_t *frames;
		uint32_t n;
	}) stacks;
	struct vec_of(struct stack_call {
		uint64_t number;
		uint32_t stack;
	}) calls; /* by number, ascending, after sorting */
	struct vec_of(struct stack_missing {
		uint64_t count;
		char *reason;
	}) missing;
};

void stack_table_release(struct stack_table *t);

void stack_table_print(const struct stack_table *t, struct strbuf *out);
/* Parses a text that need not be trusted. */
int stack_table_parse(const char *text, size_t len, struct stack_table *out, struct err *err)
	must_check;

/* The stack of an operation, or NULL. The calls must be sorted, as they are when parsed. */
const struct stack_list *stack_table_find(const struct stack_table *t, uint64_t number);

/*
 * Returns the place in the program: the innermost frame with a source line that is not of the C
 * library, else the innermost such frame. NULL if there is none.
 */
const struct stack_frame *stack_place(const struct stack_table *t, const struct stack_list *s);
/* "wal.c:212 in append_record"; without lines, "append_record (libwal.so+0x1234)". */
void stack_frame_words(const struct stack_table *t, const struct stack_frame *f,
		       struct strbuf *out);
/* Describes a frame that is in no table. */
void stack_words(const struct stack_frame *f, const char *module, uint64_t offset,
		 struct strbuf *out);

#endif
