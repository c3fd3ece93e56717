/* SPDX-License-Identifier: MIT */
#include "explore/pickle.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/io.h"

static const char magic[16] = "outage-explore 1";
enum { HEAD = 32, STEPS_MAX = 1 << 20, FRAMES_MAX = 1 << 24 };
#define FILE_MAX ((size_t)8 << 30)

void pickle_release(struct pickle *p)
{
	for (size_t i = 0; i < p->frames.n; i++) {
		free(p->frames.v[i].path.v);
		free(p->frames.v[i].todo.v);
	}
	vec_release(&p->frames);
}

static struct pickle_steps copy_steps(const uint32_t *v, size_t n)
{
	struct pickle_steps s = { xmalloc(n * sizeof(*v) + 1), n };

	if (n)
		memcpy(s.v, v, n * sizeof(*v));
	return s;
}

void pickle_add(struct pickle *p, const uint32_t *path, size_t n_path, const uint32_t *todo,
		size_t n_todo)
{
	vec_push(&p->frames,
		 (struct pickle_frame){ copy_steps(path, n_path), copy_steps(todo, n_todo) });
}

/* ---- writing ---- */

static void put(struct strbuf *out, uint64_t n)
{
	unsigned char bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(n >> 8 * i);
	strbuf_add(out, bytes, sizeof(bytes));
}

static void put_steps(struct strbuf *out, const struct pickle_steps *s)
{
	put(out, s->n);
	for (size_t i = 0; i < s->n; i++)
		put(out, s->v[i]);
}

static void put_visited(struct strbuf *out, const struct visited *v)
{
	size_t at = out->len;
	uint64_t n = 0, bytes;
	const void *bits = visited_field(v, &bytes);

	put(out, 0);
	for (uint64_t i = 0; i < v->places; i++) {
		if (!v->slots[i].lo)
			continue;
		put(out, v->slots[i].lo);
		put(out, v->slots[i].hi);
		n++;
	}
	for (unsigned i = 0; i < 8; i++)
		out->buf[at + i] = (char)(n >> 8 * i);
	put(out, v->hashed);
	put(out, v->hashed ? bytes : 0);
	if (v->hashed)
		strbuf_add(out, bits, bytes);
}

int pickle_save(const struct pickle *p, const struct visited *v, const char *path, struct err *err)
{
	auto_strbuf body = STRBUF_INIT, head = STRBUF_INIT;
	struct io_output out;

	put(&body, p->inputs.lo);
	put(&body, p->inputs.hi);
	put(&body, p->walk);
	put(&body, p->frames.n);
	for (size_t i = 0; i < p->frames.n; i++) {
		put_steps(&body, &p->frames.v[i].path);
		put_steps(&body, &p->frames.v[i].todo);
	}
	put_visited(&body, v);
	struct hash128 sum = hash_bytes(body.buf, body.len);
	strbuf_add(&head, magic, sizeof(magic));
	put(&head, sum.lo);
	put(&head, sum.hi);
	int rc = io_output_open(path, &out, err);
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

struct reader {
	const unsigned char *at, *end;
	bool bad;
};

static uint64_t get(struct reader *r)
{
	uint64_t n = 0;

	if (r->end - r->at < 8) {
		r->bad = true;
		return 0;
	}
	for (unsigned i = 0; i < 8; i++)
		n |= (uint64_t)*r->at++ << 8 * i;
	return n;
}

static struct pickle_steps get_steps(struct reader *r)
{
	uint64_t n = get(r);
	struct pickle_steps s = { 0 };

	if (r->bad || n > STEPS_MAX || n > (uint64_t)(r->end - r->at) / 8) {
		r->bad = true;
		return s;
	}
	s.v = xmalloc(n * sizeof(*s.v) + 1);
	for (; s.n < n; s.n++)
		s.v[s.n] = (uint32_t)get(r);
	return s;
}

static void get_visited(struct reader *r, struct visited *v, unsigned task)
{
	uint64_t bytes, have;
	void *bits = visited_field(v, &have);

	for (uint64_t n = get(r); n && !r->bad; n--) {
		struct hash128 h = { .lo = get(r) };

		h.hi = get(r);
		if (!r->bad)
			visited_add(v, h, task);
	}
	v->hashed += get(r);
	bytes = get(r);
	if (r->bad || bytes > (uint64_t)(r->end - r->at) || (bytes && bytes != have))
		r->bad = true;
	else if (bytes)
		memcpy(bits, r->at, bytes);
}

/* Reads the file into `file`, and sees that it is whole. */
static int open_file(const char *path, struct strbuf *file, struct reader *r, struct err *err)
{
	int rc = io_slurp(path, FILE_MAX, file, err);

	if (rc)
		return rc;
	if (file->len < HEAD || memcmp(file->buf, magic, 15) != 0)
		return err_set(err, -EINVAL, "%s is no state of outage explore", path);
	if (memcmp(file->buf, magic, sizeof(magic)) != 0)
		return err_set(err, -EINVAL,
			       "%s was written by another version of outage: begin a new run",
			       path);
	*r = (struct reader){ (unsigned char *)file->buf + sizeof(magic),
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

/* What comes before the states. */
static void get_frames(struct reader *r, struct pickle *out)
{
	out->walk = get(r);
	uint64_t n = get(r);
	for (uint64_t i = 0; i < n && i < FRAMES_MAX && !r->bad; i++) {
		struct pickle_frame f = { .path = get_steps(r) };

		f.todo = get_steps(r);
		vec_push(&out->frames, f);
	}
}

int pickle_load(const char *path, struct hash128 inputs, struct pickle *out, struct visited *v,
		unsigned task, struct err *err)
{
	auto_strbuf file = STRBUF_INIT;
	struct reader r;

	*out = (struct pickle){ 0 };
	int rc = open_file(path, &file, &r, err);
	if (rc)
		return rc;
	out->inputs.lo = get(&r);
	out->inputs.hi = get(&r);
	if (!hash_eq(out->inputs, inputs))
		return err_set(err, -EINVAL,
			       "%s is of a run with other inputs, seed, order or depth: give the "
			       "same options again",
			       path);
	get_frames(&r, out);
	if (!r.bad)
		get_visited(&r, v, task);
	if (r.bad) {
		pickle_release(out);
		return does_not_hold(path, err);
	}
	return 0;
}

int pickle_each_state(const char *path, void (*take)(void *ctx, struct hash128 state), void *ctx,
		      uint64_t *by_bits, struct err *err)
{
	auto_strbuf file = STRBUF_INIT;
	struct pickle p = { 0 };
	struct reader r;
	int rc = open_file(path, &file, &r, err);

	if (rc)
		return rc;
	get(&r); /* its inputs may be any */
	get(&r);
	get_frames(&r, &p);
	pickle_release(&p);
	for (uint64_t n = get(&r); n && !r.bad; n--) {
		struct hash128 h = { .lo = get(&r) };

		h.hi = get(&r);
		if (!r.bad)
			take(ctx, h);
	}
	*by_bits = get(&r);
	return r.bad ? does_not_hold(path, err) : 0;
}
