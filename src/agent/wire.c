/* SPDX-License-Identifier: MIT */
/*
 * wire.c - packs and unpacks the numbers, texts and parts of a message to or from the agent.
 *
 * W1: the length in a message, a part or a text is the length of the bytes that follow.
 */
#include "agent/wire.h"

#include <errno.h>

void wire_put_u32(struct strbuf *out, uint32_t value)
{
	strbuf_add(out, &value, sizeof(value));
}

void wire_put_u64(struct strbuf *out, uint64_t value)
{
	strbuf_add(out, &value, sizeof(value));
}

void wire_put_bytes(struct strbuf *out, const void *data, size_t len)
{
	assert(len <= UINT32_MAX); /* W1 */
	wire_put_u32(out, (uint32_t)len);
	strbuf_add(out, data, len);
}

/* Adds a text with its NUL, so that the other side can use it in place. */
void wire_put_text(struct strbuf *out, const char *text)
{
	wire_put_bytes(out, text, strlen(text) + 1);
}

static void set_u32(struct strbuf *out, size_t at, size_t value)
{
	uint32_t word = (uint32_t)value;

	assert(value <= UINT32_MAX && at + sizeof(word) <= out->len); /* W1 */
	memcpy(out->buf + at, &word, sizeof(word));
}

void wire_start(struct wire_out *w, uint32_t serial)
{
	strbuf_clear(&w->text);
	w->count = 0;
	w->part = 0;
	wire_put_u32(&w->text, WIRE_MAGIC);
	wire_put_u32(&w->text, WIRE_VERSION);
	wire_put_u32(&w->text, 0);
	wire_put_u32(&w->text, 0);
	wire_put_u32(&w->text, serial);
	assert(w->text.len == WIRE_HEAD);
}

static void end_part(struct wire_out *w)
{
	assert(!w->part || (w->part >= WIRE_HEAD && w->part + WIRE_PART <= w->text.len)); /* W1 */
	if (w->part)
		set_u32(&w->text, w->part + 8, w->text.len - w->part - WIRE_PART);
}

void wire_part(struct wire_out *w, enum agent_command command, int32_t status)
{
	end_part(w);
	w->part = w->text.len;
	w->count++;
	wire_put_u32(&w->text, command);
	wire_put_u32(&w->text, (uint32_t)status);
	wire_put_u32(&w->text, 0);
}

void wire_fail(struct wire_out *w, int32_t status)
{
	assert(w->part);
	strbuf_cut(&w->text, w->part + WIRE_PART);
	set_u32(&w->text, w->part + 4, (uint32_t)status);
}

void wire_finish(struct wire_out *w)
{
	end_part(w);
	w->part = 0;
	assert(w->text.len >= WIRE_HEAD + (size_t)w->count * WIRE_PART); /* W1 */
	set_u32(&w->text, 8, w->count);
	set_u32(&w->text, 12, w->text.len - WIRE_HEAD);
}

void wire_release(struct wire_out *w)
{
	strbuf_release(&w->text);
}

static const void *take(struct wire_in *in, size_t len)
{
	const unsigned char *p = in->p;

	if (in->bad || len > in->left) {
		in->bad = true;
		return NULL;
	}
	in->p += len;
	in->left -= len;
	return p;
}

uint32_t wire_u32(struct wire_in *in)
{
	const void *p = take(in, sizeof(uint32_t));
	uint32_t value = 0;

	if (p)
		memcpy(&value, p, sizeof(value));
	return value;
}

uint64_t wire_u64(struct wire_in *in)
{
	const void *p = take(in, sizeof(uint64_t));
	uint64_t value = 0;

	if (p)
		memcpy(&value, p, sizeof(value));
	return value;
}

const unsigned char *wire_bytes(struct wire_in *in, size_t *len)
{
	size_t n = wire_u32(in);
	const unsigned char *p = take(in, n);

	*len = p ? n : 0;
	return p ? p : (const unsigned char *)"";
}

const char *wire_text(struct wire_in *in)
{
	size_t n;
	const unsigned char *p = wire_bytes(in, &n);

	if (in->bad || !n || strnlen((const char *)p, n) != n - 1) {
		in->bad = true;
		return "";
	}
	return (const char *)p;
}

int wire_head(const unsigned char *text, struct wire_head *out, struct err *err)
{
	struct wire_in in = { text, WIRE_HEAD, false };
	uint32_t magic = wire_u32(&in), version = wire_u32(&in);

	*out = (struct wire_head){ .count = wire_u32(&in) };
	out->len = wire_u32(&in);
	out->serial = wire_u32(&in);
	if (magic != WIRE_MAGIC)
		return err_set(err, -EPROTO, "the bytes from the guest are no message");
	if (version != WIRE_VERSION)
		return err_set(err, -EPROTO,
			       "the guest's agent speaks version %u, and this program version %d",
			       version, WIRE_VERSION);
	if (out->len > WIRE_MAX - WIRE_HEAD)
		return err_set(err, -EMSGSIZE, "the guest's message of %u bytes is too long",
			       out->len);
	return 0;
}

bool wire_next(struct wire_in *in, uint32_t *command, int32_t *status, struct wire_in *part)
{
	size_t len;

	if (in->bad || !in->left)
		return false;
	*command = wire_u32(in);
	*status = (int32_t)wire_u32(in);
	const unsigned char *p = wire_bytes(in, &len);
	*part = (struct wire_in){ p, len, false };
	return !in->bad;
}
