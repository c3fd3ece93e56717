/* SPDX-License-Identifier: MIT */
/* explore_pickle.c - writes a search to a file and reads it back, with a check of every number. */
#include "explore/explore_pickle.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/below.h"
#include "base/io.h"
#include "core/bytes.h"

static const char magic[16] = "outage-explore 4";
enum { HEAD = 32, STEPS_MAX = 1 << 20, FRAMES_MAX = 1 << 24 };
#define FILE_MAX ((size_t)8 << 30)

void pickle_release(struct pickle *p)
{
	for (size_t i = 0; i < p->frames.n; i++) {
		vec_release(&p->frames.v[i].path);
		vec_release(&p->frames.v[i].todo);
	}
	vec_release(&p->frames);
}

/* ---- writing ---- */

static void put_steps(struct strbuf *out, const struct script_path *s)
{
	strbuf_add_le64(out, s->n);
	for (size_t i = 0; i < s->n; i++)
		strbuf_add_le64(out, s->v[i]);
}

static void put_visited(struct strbuf *out, const struct pickle_states *st, uint64_t round)
{
	const struct visited *v = st->visited;
	size_t at = out->len;
	uint64_t n = 0, bytes;
	const void *bits = visited_field(v, &bytes);

	strbuf_add_le64(out, 0);
	for (uint64_t i = 0; i < v->places; i++) {
		struct hash128 h = { v->slots[i].lo, v->slots[i].hi };

		if (!h.lo)
			continue;
		uint32_t depth = visited_claimed(st->claims, h, st->task, round);
		strbuf_add_le64(out, h.lo);
		strbuf_add_le64(out, h.hi);
		strbuf_add_le64(out, (uint64_t)visited_owner(v, i) << 16 |
					     (depth == UINT32_MAX ? 0 : depth + 1));
		n++;
	}
	put_le64((unsigned char *)out->buf + at, n);
	strbuf_add_le64(out, v->hashed);
	strbuf_add_le64(out, v->marked);
	strbuf_add_le64(out, v->hashed ? bytes : 0);
	if (v->hashed)
		strbuf_add(out, bits, bytes);
}

int pickle_save(const struct pickle *p, const struct pickle_states *states, const char *path,
		struct err *err)
{
	auto_strbuf body = STRBUF_INIT, head = STRBUF_INIT;
	auto_free char *dir = NULL, *name = NULL;
	struct io_output out;

	strbuf_add_le64(&body, p->walk);
	strbuf_add_le64(&body, p->left_out);
	strbuf_add_le64(&body, p->frames.n);
	for (size_t i = 0; i < p->frames.n; i++) {
		put_steps(&body, &p->frames.v[i].path);
		put_steps(&body, &p->frames.v[i].todo);
	}
	put_visited(&body, states, p->walk);
	struct hash128 sum = hash_bytes(body.buf, body.len);
	strbuf_add(&head, magic, sizeof(magic));
	strbuf_add_le64(&head, sum.lo);
	strbuf_add_le64(&head, sum.hi);
	below_parent(path, &dir, &name);
	int rc = io_output_open_below(dir, name, true, &out, err);
	if (rc)
		return rc;
	rc = fchmod(out.fd, 0600) < 0 ? -errno : io_write_full(out.fd, head.buf, head.len);
	if (!rc)
		rc = io_write_full(out.fd, body.buf, body.len);
	if (rc) {
		io_output_release(&out);
		return err_set(err, rc, "cannot write %s: %m", path);
	}
	return io_output_commit(&out, err);
}

/* ---- reading ---- */

struct pickle_reader {
	const unsigned char *at, *end;
	bool bad;
};

static uint64_t get(struct pickle_reader *r)
{
	if (r->end - r->at < 8) {
		r->bad = true;
		return 0;
	}
	r->at += 8;
	return get_le64(r->at - 8);
}

static struct script_path get_steps(struct pickle_reader *r)
{
	uint64_t n = get(r);
	struct script_path s = { 0 };

	r->bad |= n > STEPS_MAX || n > (uint64_t)(r->end - r->at) / 8;
	while (!r->bad && s.n < n)
		vec_push(&s, (uint32_t)get(r));
	return s;
}

static void raise_to(_Atomic uint64_t *to, uint64_t n)
{
	uint64_t old = atomic_load(to);

	while (old < n && !atomic_compare_exchange_weak(to, &old, n))
		;
}

/* Others may have put theirs into the same field. */
static void get_field(struct pickle_reader *r, struct visited *v)
{
	uint64_t have, hashed = get(r), marked = get(r), bytes = get(r);
	_Atomic uint64_t *bits = visited_field(v, &have);

	/* --memory is as it was, and so is the field. */
	if (r->bad || (bytes && bytes != have) || bytes > (uint64_t)(r->end - r->at)) {
		r->bad = true;
		return;
	}
	for (uint64_t i = 0; i < bytes / 8; i++) {
		uint64_t word;

		memcpy(&word, r->at + 8 * i, sizeof(word));
		if (word)
			atomic_fetch_or(&bits[i], word);
	}
	raise_to(&v->hashed, hashed);
	raise_to(&v->marked, marked);
}

static struct hash128 get_state(struct pickle_reader *r, uint8_t *owner, uint32_t *depth)
{
	struct hash128 h = { .lo = get(r) };

	h.hi = get(r);
	uint64_t rest = get(r);
	*owner = (uint8_t)(rest >> 16);
	*depth = (rest & 0xffff) ? (uint32_t)(rest & 0xffff) - 1 : UINT32_MAX;
	return h;
}

static void get_visited(struct pickle_reader *r, const struct pickle_states *st, uint64_t round)
{
	for (uint64_t n = get(r); n && !r->bad; n--) {
		uint8_t owner;
		uint32_t depth;
		bool ignored;
		struct hash128 h = get_state(r, &owner, &depth);

		if (r->bad)
			break;
		visited_put(st->visited, h, owner);
		if (depth != UINT32_MAX)
			visited_claim(st->claims, h,
				      (struct visited_claim){ st->task, round, depth }, 0, NULL,
				      &ignored);
	}
	get_field(r, st->visited);
}

/* Reads the file into `file`, and sees that it is whole. */
static int open_file(const char *path, struct strbuf *file, struct pickle_reader *r,
		     struct err *err)
{
	auto_free char *dir = NULL, *name = NULL;

	below_parent(path, &dir, &name);
	if (!below_exists(dir, name))
		return err_set(
			err, -ENOENT,
			"cannot open %s: No such file or directory: the run was killed before it "
			"first wrote where it was, which it does each minute; begin a new run",
			path);
	int rc = io_slurp_file(dir, name, FILE_MAX, file, err);
	if (rc)
		return rc;
	if (file->len < HEAD || memcmp(file->buf, magic, 15) != 0)
		return err_set(err, -EINVAL, "%s is no state of outage explore", path);
	if (memcmp(file->buf, magic, sizeof(magic)) != 0)
		return err_set(err, -EINVAL,
			       "%s was written by another version of outage: begin a new run",
			       path);
	*r = (struct pickle_reader){ (unsigned char *)file->buf + sizeof(magic),
				     (unsigned char *)file->buf + file->len, false };
	struct hash128 sum = { .lo = get(r) };
	sum.hi = get(r);
	if (!hash_eq(sum, hash_bytes(r->at, (size_t)(r->end - r->at))))
		return err_set(err, -EINVAL, "%s was changed or cut short: begin a new run", path);
	return 0;
}

static int does_not_hold(const char *path, struct err *err)
{
	return err_set(err, -EINVAL, "%s does not hold what it says: begin a new run", path);
}

/* Reads all that comes before the states. */
static void get_frames(struct pickle_reader *r, struct pickle *out)
{
	out->walk = get(r);
	out->left_out = get(r);
	uint64_t n = get(r);
	for (uint64_t i = 0; i < n && i < FRAMES_MAX && !r->bad; i++) {
		struct pickle_frame f = { .path = get_steps(r) };

		f.todo = get_steps(r);
		vec_push(&out->frames, f);
	}
}

int pickle_load(const char *path, struct pickle *out, const struct pickle_states *states,
		struct err *err)
{
	auto_strbuf file = STRBUF_INIT;
	struct pickle_reader r = { 0 };

	*out = (struct pickle){ 0 };
	int rc = open_file(path, &file, &r, err);
	if (rc)
		return rc;
	get_frames(&r, out);
	if (!r.bad)
		get_visited(&r, states, out->walk);
	if (!r.bad)
		return 0;
	pickle_release(out);
	return does_not_hold(path, err);
}

int pickle_each_state(const char *path, void (*take)(void *ctx, struct hash128 state), void *ctx,
		      uint64_t *by_bits, struct err *err)
{
	auto_strbuf file = STRBUF_INIT;
	struct pickle p = { 0 };
	struct pickle_reader r = { 0 };
	int rc = open_file(path, &file, &r, err);

	if (rc)
		return rc;
	get_frames(&r, &p);
	pickle_release(&p);
	for (uint64_t n = get(&r); n && !r.bad; n--) {
		uint8_t owner;
		uint32_t depth;
		struct hash128 h = get_state(&r, &owner, &depth);

		if (!r.bad)
			take(ctx, h);
	}
	*by_bits = get(&r);
	return r.bad ? does_not_hold(path, err) : 0;
}
