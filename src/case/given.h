/* SPDX-License-Identifier: MIT */
/*
 * given.h - the record of a run, as options of a command set it; and what may be said of it once
 * more when the run goes on.
 *
 * A field is set by the option of its name, or by the one that its `option` names.
 */
#ifndef CASE_GIVEN_H
#define CASE_GIVEN_H

#include "case/record.h"

/* Sets what an option without its dashes is about. `given` gets a bit for the field; or is NULL. */
int given_set(const struct record_type *t, void *s, uint64_t *given, const char *option,
	      const char *value, struct err *err) must_check;
/* Whether the field of an option has its bit. */
bool given_has(const struct record_type *t, uint64_t given, const char *option);
/* The name of the option that sets a field, without its dashes; "": none does. */
const char *given_option(const struct record_field *f);
/* The value of a field as an option has it; nothing if it is at its default. */
void given_put(const struct record_field *f, const void *s, struct strbuf *out);
/*
 * Of the fields that have a bit in `given`, all must be in `now` what they are in `saved`. Fields
 * of parts that no option sets do not count.
 */
int given_agree(const struct record_type *t, const void *saved, const void *now, uint64_t given,
		struct err *err) must_check;

#endif
