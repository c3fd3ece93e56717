/* SPDX-License-Identifier: MIT */
/*
 * media.h - faults of the media of persistent memory, put on top of a crash state.
 *
 * A crash state is what the rules allow. Media can do worse: a line that was being written when the
 * power failed may be unreadable afterwards (poison), or hold what it held before, although it was
 * flushed and fenced (stale). Few systems promise to survive that; so these are no states of the
 * models but a layer above them, on request: a list of faults, and the image with them.
 *
 * Poison is a pattern in the image and a line in the list; a user who mounts the image can turn the
 * list into real errors where there is a way to inject them.
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
	uint64_t line; /* its address, a multiple of PM_LINE */
};

struct media_faults vec_of(struct media_fault);
struct media_lines vec_of(uint64_t);

/* The bytes of a poisoned line, again and again. */
#define MEDIA_PATTERN "POISONED"

void media_faults_release(struct media_faults *f);
#define auto_media_faults __attribute__((cleanup(media_faults_release))) struct media_faults

/*
 * The lines that events [from, to) stored to, ascending and each once: what a power failure at `to`
 * can have hit.
 */
void media_lines(const struct trace *t, uint64_t from, uint64_t to, struct media_lines *out);

/* Puts faults on an image. `old` is where stale lines come from: what was there before. */
void media_apply(const struct media_faults *f, const struct image *old, struct image *img);

/*
 * Of a command line, "poison", "stale" or both with a comma, or "none": a bit for each kind,
 * 1 << MEDIA_POISON and so on. -EINVAL and a sentence.
 */
int media_parse_kinds(const char *text, unsigned *kinds, struct err *err) must_check;

/* "poison:4096,stale:64": the end of a crash state's id, behind a slash. */
void media_format(const struct media_faults *f, struct strbuf *out);
/* The same back, for a region of `size` bytes. `out` is written only on success. */
int media_parse(const char *text, uint64_t size, struct media_faults *out, struct err *err)
	must_check;

#endif
