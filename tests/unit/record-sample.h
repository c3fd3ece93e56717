/* SPDX-License-Identifier: MIT */
/* record-sample.h - a record with a field of every kind, for the unit test and the fuzz target. */
#ifndef TESTS_RECORD_SAMPLE_H
#define TESTS_RECORD_SAMPLE_H

#include <errno.h>

#include "case/record.h"

struct sample_part {
	char *spec, *mkfs;
	uint64_t size;
};

struct sample {
	char *dir, *state; /* of a finding, as CASE_FINDING has them */
	struct strbuf said;
	char *target, *check, *notes, *bounds;
	struct words files;
	uint64_t seed, limit, size, order, modes, jobs;
	double elapsed;
	struct vec_of(struct sample_part) parts;
	unsigned colour;
	bool fsck;
};

static int set_colour(void *member, const char *value, struct err *err)
{
	*(unsigned *)member = streq(value, "green");
	return streq(value, "red") || streq(value, "green")
		       ? 0
		       : err_set(err, -EINVAL, "there is no colour '%.40s'", value);
}

static void put_colour(const void *member, struct strbuf *out)
{
	strbuf_adds(out, *(const unsigned *)member ? "green" : "red");
}

static bool is_known(const char *value)
{
	return streq(value, "seq-1");
}

#define PART(...) RECORD_FIELD(struct sample_part, __VA_ARGS__)
static const struct record_field sample_part_fields[] = {
	PART("reference", TRUST_TARGET, TEXT, spec),
	PART("reference-mkfs", TRUST_COMMAND, TEXT, mkfs),
	PART("reference-size", TRUST_HARMLESS, SIZE, size),
};

static const struct record_type sample_part_type =
	RECORD_TYPE("part", sample_part_fields, struct sample_part);

#define FIELD(...) RECORD_FIELD(struct sample, __VA_ARGS__)
static const struct record_field sample_fields[] = {
	FIELD("target", TRUST_TARGET, TEXT, target, .required = true),
	FIELD("bounds", TRUST_FILE, TEXT, bounds, .harmless = is_known),
	FIELD("check", TRUST_COMMAND, PROSE, check),
	FIELD("note", TRUST_HARMLESS, LINES, notes),
	FIELD("file", TRUST_FILE, LIST, files),
	FIELD("seed", TRUST_HARMLESS, NUMBER, seed),
	FIELD("limit", TRUST_HARMLESS, COUNT, limit, .otherwise = UINT64_MAX),
	FIELD("size", TRUST_HARMLESS, SIZE, size),
	FIELD("order", TRUST_HARMLESS, CHOICE, order, .words = "walk depth breadth",
	      .otherwise = 1),
	FIELD("crash", TRUST_HARMLESS, SET, modes, .words = "persist last prefix"),
	FIELD("jobs", TRUST_HARMLESS, COUNT, jobs, .least = 1, .most = 64),
	FIELD("elapsed", TRUST_HARMLESS, REAL, elapsed),
	FIELD("colour", TRUST_HARMLESS, OTHER, colour, .set = set_colour, .put = put_colour),
	FIELD("fsck", TRUST_HARMLESS, FLAG, fsck),
	FIELD("reference", TRUST_TARGET, PARTS, parts, .part = &sample_part_type),
};

static const struct record_type sample_type = RECORD_TYPE("sample", sample_fields, struct sample);

#endif
