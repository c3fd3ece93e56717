/* SPDX-License-Identifier: MIT */
/* inject_fault.c - checks a fault, matches operations, and computes the parts that survive. */
#include <errno.h>
#include <inttypes.h>

#include "base/hash.h"
#include "inject/internal.h"

const char *fault_type_name(enum fault_type type)
{
	static const char *const names[] = {
		[FAULT_CRASH] = "crash",     [FAULT_CLEAR] = "clear-cache",
		[FAULT_TORN_OP] = "torn-op", [FAULT_TORN_SEQ] = "torn-seq",
		[FAULT_SYNC] = "sync-pages", [FAULT_ERROR] = "error",
		[FAULT_SHORT] = "short",     [FAULT_DELAY] = "delay",
	};

	return names[type];
}

struct fault *fault_new(enum fault_type type)
{
	struct fault *f = xcalloc(1, sizeof(*f));

	f->type = type;
	f->op = POSIX_OP_END;
	f->after = true;
	f->occurrence = 1;
	return f;
}

void fault_free(struct fault *f)
{
	if (!f)
		return;
	match_release(&f->from);
	match_release(&f->to);
	match_release(&f->file);
	match_release(&f->survivors);
	vec_release(&f->persist);
	vec_release(&f->parts_bytes);
	vec_release(&f->page_list);
	strbuf_release(&f->text);
	free(f);
}

static bool has_two_paths(enum posix_op op)
{
	return op == POSIX_RENAME || op == POSIX_LINK || op == POSIX_SYMLINK;
}

static int check_persist(const struct fault *f, uint64_t most, const char *of, struct err *err)
{
	for (size_t i = 0; i < f->persist.n; i++) {
		if (!f->persist.v[i])
			return err_set(err, -EINVAL,
				       "persist names part 0; parts and writes count from 1");
		if (f->persist.v[i] > most)
			return err_set(err, -EINVAL,
				       "persist names part %" PRIu64 ", but %s only %" PRIu64,
				       f->persist.v[i], of, most);
	}
	return 0;
}

static int check_torn_op(const struct fault *f, struct err *err)
{
	uint64_t sum = 0;

	if (f->op != POSIX_WRITE)
		return err_set(err, -EINVAL, "torn-op tears a write, so op must be write");
	if (f->parts && f->parts_bytes.n)
		return err_set(err, -EINVAL,
			       "torn-op takes either parts or parts_bytes, not both of them");
	if (!f->parts && !f->parts_bytes.n)
		return err_set(err, -EINVAL,
			       "torn-op needs parts, a number, or parts_bytes, a list of lengths");
	for (size_t i = 0; i < f->parts_bytes.n; i++) {
		if (!f->parts_bytes.v[i])
			return err_set(err, -EINVAL, "parts_bytes has a part of 0 bytes");
		if (__builtin_add_overflow(sum, f->parts_bytes.v[i], &sum) || sum > INT64_MAX)
			return err_set(err, -EINVAL, "parts_bytes is more than a file can hold");
	}
	if (f->parts)
		return check_persist(f, f->parts, "parts is", err);
	return check_persist(f, f->parts_bytes.n, "parts_bytes has", err);
}

static int check_torn_seq(const struct fault *f, struct err *err)
{
	if (f->op != POSIX_WRITE)
		return err_set(err, -EINVAL, "torn-seq is about writes, so op must be write");
	if (!f->persist.n)
		return err_set(err, -EINVAL,
			       "torn-seq needs persist, the writes of a run that are kept; nothing "
			       "would ever end the run without it");
	return check_persist(f, UINT64_MAX, "", err);
}

static int check_error(const struct fault *f, struct err *err)
{
	if (f->error <= 0 || f->error > 4095)
		return err_set(err, -EINVAL, "error needs the error, as in error=EIO");
	if (f->keep_dirty && !posix_op_persists(f->op))
		return err_set(err, -EINVAL,
			       "keep_dirty is for a sync that fails, so op must be one, as in "
			       "op=fsync");
	return 0;
}

static int check_type(const struct fault *f, struct err *err)
{
	switch (f->type) {
	case FAULT_TORN_OP:
		return check_torn_op(f, err);
	case FAULT_TORN_SEQ:
		return check_torn_seq(f, err);
	case FAULT_ERROR:
		return check_error(f, err);
	case FAULT_SHORT:
		if (f->op != POSIX_WRITE && f->op != POSIX_READ)
			return err_set(err, -EINVAL, "short is about op=write or op=read");
		return 0;
	case FAULT_DELAY:
		if (!f->delay_ms)
			return err_set(err, -EINVAL, "delay needs how long, as in delay=100ms");
		return 0;
	case FAULT_SYNC:
		for (size_t i = 0; i < f->page_list.n; i++)
			if (!f->page_list.v[i])
				return err_set(err, -EINVAL, "pages count from 1, not from 0");
		return 0;
	default:
		if (f->survive == FAULT_SURVIVE_LISTED && f->survivors.kind == PATH_ANY)
			return err_set(err, -EINVAL,
				       "survive=listed needs survivors, a path or a pattern");
		return 0;
	}
}

/* Refuses operations that a FUSE server never sees, as the kernel does them by itself. */
static int check_op(const struct fault *f, struct err *err)
{
	static const struct {
		enum posix_op op;
		const char *why;
	} never[] = {
		{ POSIX_ACCESS, "the kernel itself looks who may do what; op=open sees who does" },
		{ POSIX_TMPFILE, "a mount has no files without a name; op=create has those that "
				 "have one" },
		{ POSIX_COPY, "the kernel copies by reading and writing; op=read and op=write see "
			      "that" },
		{ POSIX_SYNCFS, "the kernel tells no mount of FUSE about sync and syncfs; op=fsync "
				"and op=fsyncdir are for syncs that come" },
		{ POSIX_MSYNC, "it comes as a sync of the file; op=fsync sees it" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		if (f->op == never[i].op)
			return err_set(err, -EINVAL, "op=%s would never happen: %s",
				       posix_op_name(f->op), never[i].why);
	return 0;
}

int fault_check(const struct fault *f, struct err *err)
{
	int rc = check_op(f, err);

	if (rc)
		return rc;
	if (!f->occurrence)
		return err_set(err, -EINVAL, "occurrence counts from 1, not from 0");
	if (f->until && f->until < f->occurrence)
		return err_set(err, -EINVAL,
			       "until is %" PRIu64 ", which is before occurrence, %" PRIu64,
			       f->until, f->occurrence);
	if (f->to.kind != PATH_ANY && f->op != POSIX_OP_END && !has_two_paths(f->op))
		return err_set(err, -EINVAL,
			       "to is for rename, link and symlink; %s has one path, which is from",
			       posix_op_name(f->op));
	return check_type(f, err);
}

bool fault_conflicts(const struct fault *a, const struct fault *b)
{
	if (a->type != b->type || (a->type != FAULT_TORN_OP && a->type != FAULT_TORN_SEQ))
		return false;
	return match_same(&a->from, &b->from);
}

/* True if a fault matches; fsync stands for all syncs of a file's data, as for LazyFS. */
static bool op_matches(enum posix_op want, enum posix_op op)
{
	return want == POSIX_OP_END || want == op ||
	       (want == POSIX_FSYNC && (op == POSIX_FDATASYNC || op == POSIX_MSYNC));
}

bool fault_wants(const struct fault *f, const struct inject_op *op)
{
	return op_matches(f->op, op->op) && inject_path_matches(&f->from, op->from) &&
	       inject_path_matches(&f->to, op->to);
}

static uint64_t sum_of(const struct fault_numbers *n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n->n; i++)
		sum += n->v[i];
	return sum;
}

bool fault_tear(const struct fault *f, uint64_t len,
		void (*durable)(void *ctx, uint64_t offset, uint64_t len), void *ctx)
{
	size_t next = 0;
	uint64_t at = 0, part = f->parts ? len / f->parts : 0;
	uint64_t n = f->parts ? f->parts : f->parts_bytes.n;

	if (!f->parts && sum_of(&f->parts_bytes) != len)
		return false;
	if (f->parts) { /* there may be more parts than bytes: no loop over all of them */
		for (; next < f->persist.n; next++) {
			uint64_t i = f->persist.v[next];
			uint64_t size = i == n ? len - (n - 1) * part : part;

			if (size)
				durable(ctx, (i - 1) * part, size);
		}
		return true;
	}
	for (uint64_t i = 0; i < n && next < f->persist.n; i++) {
		if (f->persist.v[next] == i + 1) {
			durable(ctx, at, f->parts_bytes.v[i]);
			next++;
		}
		at += f->parts_bytes.v[i];
	}
	return true;
}

bool fault_wants_page(const struct fault *f, uint64_t i, uint64_t n)
{
	uint64_t key[2] = { f->seed, i };

	switch (f->pages) {
	case FAULT_PAGES_ALL:
		return true;
	case FAULT_PAGES_FIRST:
		return i == 0;
	case FAULT_PAGES_LAST:
		return i + 1 == n;
	case FAULT_PAGES_FIRST_HALF:
		return i < n / 2;
	case FAULT_PAGES_LAST_HALF:
		return i >= n / 2;
	case FAULT_PAGES_FIRST_AND_LAST:
		return i == 0 || i + 1 == n;
	case FAULT_PAGES_INTERLEAVED:
		return i % 2 == 0;
	case FAULT_PAGES_RANDOM:
		return hash64(key, sizeof(key)) & 1;
	case FAULT_PAGES_LISTED:
		return any_of(k, f->page_list.n, f->page_list.v[k] == i + 1);
	}
	return false;
}
