/* SPDX-License-Identifier: MIT */
/*
 * media.h - media faults of persistent memory, which are added to a crash state.
 *
 * The rules of a model allow a crash state. Media can do worse: a line that was being written when
 * the power failed may be unreadable afterwards (poison), or have its old content, although it was
 * flushed and fenced (stale). Few systems promise to survive that; so these are no states of the
 * models but, on request, a layer above them: a list of faults, and the image with them.
 *
 * Poison is a pattern in the image and a line in the list; a user who mounts the image can turn the
 * list into real errors if there is a way to inject them.
 */
#ifndef CORE_MEDIA_H
#define CORE_MEDIA_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "core/image.h"
#include "core/trace.h"

enum media_kind { MEDIA_POISON, MEDIA_STALE };

struct media_fault {
	enum media_kind kind;
	uint64_t line; /* the line's address, a multiple of PM_LINE */
};

struct media_faults vec_of(struct media_fault);
struct media_lines vec_of(uint64_t);

/* The bytes of a poisoned line, repeated. */
#define MEDIA_PATTERN "POISONED"

void media_faults_release(struct media_faults *f);
#define auto_media_faults __attribute__((cleanup(media_faults_release))) struct media_faults

/*
 * Lists the lines that events [from, to) stored to, ascending, each once: a power failure at `to`
 * can have hit these.
 */
void media_lines(const struct trace *t, uint64_t from, uint64_t to, struct media_lines *out);

/* Puts faults on an image. Stale lines are copied from `old`, the content before. */
void media_apply(const struct media_faults *f, const struct image *old, struct image *img);

/*
 * Parses "poison", "stale" or both with a comma, or "none": sets the bit 1 << MEDIA_POISON and so
 * on for each kind. Returns -EINVAL and a sentence for anything else.
 */
int media_parse_kinds(const char *text, unsigned *kinds, struct err *err) must_check;

/* Adds "poison:4096,stale:64", as it stands after a slash at the end of a crash state's id. */
void media_format(const struct media_faults *f, struct strbuf *out);
/* Parses that form, for a region of `size` bytes. `out` is written only on success. */
int media_parse(const char *text, uint64_t size, struct media_faults *out, struct err *err)
	must_check;

#endif
