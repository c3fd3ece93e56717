/* SPDX-License-Identifier: MIT */
/*
 * posix.c - reads and writes the calls of an application as records; the format is in posix.h.
 *
 * X1: posix_encode() restores byte for byte each record that posix_decode() accepts.
 */
#include "core/posix.h"

#include <errno.h>
#include <inttypes.h>

enum { VERSION = 1, VARINT_MAX = 10 };

enum what { NONE, CHANGES, PERSISTS };

static const struct {
	const char *name;
	enum what what;
	const char *arg;
} ops[POSIX_OP_END] = {
	[POSIX_LOOKUP] = { "lookup", NONE, NULL },
	[POSIX_GETATTR] = { "getattr", NONE, NULL },
	[POSIX_OPEN] = { "open", NONE, "open_flags" },
	[POSIX_OPENDIR] = { "opendir", NONE, NULL },
	[POSIX_READ] = { "read", NONE, NULL },
	[POSIX_READDIR] = { "readdir", NONE, NULL },
	[POSIX_READLINK] = { "readlink", NONE, NULL },
	[POSIX_GETXATTR] = { "getxattr", NONE, NULL },
	[POSIX_ACCESS] = { "access", NONE, "mask" },
	[POSIX_RELEASE] = { "release", NONE, NULL },
	[POSIX_FLUSH] = { "flush", NONE, NULL },
	[POSIX_CREATE] = { "create", CHANGES, "mode" },
	[POSIX_MKNOD] = { "mknod", CHANGES, "mode" },
	[POSIX_MKDIR] = { "mkdir", CHANGES, "mode" },
	[POSIX_SYMLINK] = { "symlink", CHANGES, NULL },
	[POSIX_LINK] = { "link", CHANGES, NULL },
	[POSIX_UNLINK] = { "unlink", CHANGES, NULL },
	[POSIX_RMDIR] = { "rmdir", CHANGES, NULL },
	[POSIX_RENAME] = { "rename", CHANGES, "rename_flags" },
	[POSIX_TMPFILE] = { "tmpfile", CHANGES, "mode" },
	[POSIX_WRITE] = { "write", CHANGES, NULL },
	[POSIX_TRUNCATE] = { "truncate", CHANGES, NULL },
	[POSIX_FALLOCATE] = { "fallocate", CHANGES, "falloc_mode" },
	[POSIX_COPY] = { "copy_file_range", CHANGES, NULL },
	[POSIX_CHMOD] = { "chmod", CHANGES, "mode" },
	[POSIX_CHOWN] = { "chown", CHANGES, NULL },
	[POSIX_UTIMENS] = { "utimens", CHANGES, NULL },
	[POSIX_SETXATTR] = { "setxattr", CHANGES, "xattr_flags" },
	[POSIX_REMOVEXATTR] = { "removexattr", CHANGES, NULL },
	[POSIX_FSYNC] = { "fsync", PERSISTS, NULL },
	[POSIX_FDATASYNC] = { "fdatasync", PERSISTS, NULL },
	[POSIX_FSYNCDIR] = { "fsyncdir", PERSISTS, NULL },
	[POSIX_SYNCFS] = { "syncfs", PERSISTS, NULL },
	[POSIX_MSYNC] = { "msync", PERSISTS, NULL },
};

const char *posix_op_name(enum posix_op op)
{
	return (unsigned)op < POSIX_OP_END ? ops[op].name : NULL;
}

enum posix_op posix_op_find(const char *name)
{
	int op = 0;

	while (op < POSIX_OP_END && !streq(ops[op].name, name))
		op++;
	return (enum posix_op)op;
}

bool posix_op_changes(enum posix_op op)
{
	return (unsigned)op < POSIX_OP_END && ops[op].what == CHANGES;
}

bool posix_op_persists(enum posix_op op)
{
	return (unsigned)op < POSIX_OP_END && ops[op].what == PERSISTS;
}

const char *posix_arg_name(enum posix_op op)
{
	return (unsigned)op < POSIX_OP_END ? ops[op].arg : NULL;
}

const char *posix_flag_name(uint32_t flag)
{
	switch (flag) {
	case POSIX_DIRECT:
		return "direct";
	case POSIX_SYNC:
		return "sync";
	case POSIX_DSYNC:
		return "dsync";
	case POSIX_APPEND:
		return "append";
	case POSIX_PAGE:
		return "page";
	default:
		return NULL;
	}
}

/* The numbers of a record in their order, and the largest that each may be. */
/* clang-format off */
#define EACH_NUMBER(one) \
	one(flags, POSIX_FLAGS_ALL) one(pid, UINT32_MAX) one(tid, UINT32_MAX) \
	one(uid, UINT32_MAX) one(gid, UINT32_MAX) one(ino, UINT64_MAX) \
	one(dir, UINT64_MAX) one(dir2, UINT64_MAX) one(ino2, UINT64_MAX) \
	one(offset, INT64_MAX) one(len, INT64_MAX) one(arg, UINT32_MAX) \
	one(number, UINT64_MAX) one(duration_ns, UINT64_MAX)
/* clang-format on */

/* ---- writing ---- */

static void add_varint(struct strbuf *out, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		strbuf_addch(out, (char)(0x80 | (v & 0x7f)));
	strbuf_addch(out, (char)v);
}

static void add_name(struct strbuf *out, const char *name)
{
	size_t size = name ? strlen(name) + 1 : 0;

	assert(size <= POSIX_NAME_MAX);
	add_varint(out, size);
	strbuf_add(out, name, size);
}

void posix_encode(const struct posix_event *p, struct strbuf *out)
{
	assert((unsigned)p->op < POSIX_OP_END && !(p->flags & ~(uint32_t)POSIX_FLAGS_ALL));
	strbuf_addch(out, VERSION);
	strbuf_addch(out, (char)p->op);
#define ADD(member, most) add_varint(out, p->member);
	EACH_NUMBER(ADD)
	add_name(out, p->name);
	add_name(out, p->name2);
	add_varint(out, p->payload_len);
	strbuf_add(out, p->payload, p->payload_len);
}

void posix_to_event(const struct posix_event *p, uint64_t time_ns, struct strbuf *buf,
		    struct event *out)
{
	int64_t result = min(p->result, (int64_t)INT32_MAX);

	strbuf_clear(buf);
	posix_encode(p, buf);
	assert(buf->len <= EVENT_DATA_MAX);
	*out = (struct event){ .kind = EV_POSIX,
			       .result = (int32_t)result,
			       .len = buf->len,
			       .time_ns = time_ns,
			       .data = (const unsigned char *)buf->buf };
}

/* ---- reading ---- */

struct input {
	const unsigned char *at, *end;
	const char *wrong; /* the first wrong thing */
};

static void fail(struct input *in, const char *why)
{
	if (!in->wrong)
		in->wrong = why;
	in->at = in->end;
}

static uint64_t get_varint(struct input *in, uint64_t most)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < VARINT_MAX; i++) {
		if (in->at == in->end)
			break;
		unsigned char c = *in->at++;

		if (i == VARINT_MAX - 1 && c > 1)
			break;
		v |= (uint64_t)(c & 0x7f) << (7 * i);
		if (c & 0x80)
			continue;
		if (!c && i)
			fail(in, "a number is longer than it needs to be");
		else if (v > most)
			fail(in, "a number is too large");
		return in->wrong ? 0 : v;
	}
	fail(in, "a number has no end");
	return 0;
}

static const unsigned char *get_bytes(struct input *in, uint64_t len)
{
	const unsigned char *p = in->at;

	if (len > (uint64_t)(in->end - in->at)) {
		fail(in, "it is too short");
		return NULL;
	}
	in->at += len;
	return p;
}

static const char *get_name(struct input *in)
{
	uint64_t size = get_varint(in, POSIX_NAME_MAX);
	const unsigned char *p = get_bytes(in, size);

	if (!size || !p)
		return NULL;
	if (memchr(p, '\0', size) != p + size - 1) {
		fail(in, "a name does not end with its only NUL");
		return NULL;
	}
	return (const char *)p;
}

int posix_decode(const struct event *ev, struct posix_event *out, struct err *err)
{
	struct input in = { .at = ev->data };
	struct posix_event p = { .result = ev->result };

	if (ev->kind != EV_POSIX || ev->len < 2 || !ev->data)
		return err_set(err, -EINVAL, "it holds no call of an application");
	if (in.at[0] != VERSION)
		return err_set(err, -EINVAL,
			       "a call in version %u of its record, of which only %d is known",
			       (unsigned)in.at[0], VERSION);
	if (in.at[1] >= POSIX_OP_END)
		return err_set(err, -EINVAL, "a call of a kind that is not known, %u",
			       (unsigned)in.at[1]);
	in.end = ev->data + ev->len;
	p.op = (enum posix_op)in.at[1];
	in.at += 2;
#define GET(member, most) p.member = (__typeof__(p.member))get_varint(&in, most);
	EACH_NUMBER(GET)
	p.name = get_name(&in);
	p.name2 = get_name(&in);
	p.payload_len = (size_t)get_varint(&in, EVENT_DATA_MAX);
	p.payload = get_bytes(&in, p.payload_len);
	if (!p.payload_len)
		p.payload = NULL;
	if (in.at != in.end)
		fail(&in, "something follows it");
	if (ev->result < -4095)
		fail(&in, "its result is neither a number nor an error");
	if (in.wrong)
		return err_set(err, -EINVAL, "the record of a call (%s) is damaged: %s",
			       posix_op_name(p.op), in.wrong);
	*out = p;
	return 0;
}
