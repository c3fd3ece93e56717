/* SPDX-License-Identifier: MIT */
/* unpack.c - decodes each format in which a kernel's build compresses files. */
#include "guest/unpack.h"

#include <errno.h>

#include <lz4.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "base/vec.h"

enum {
	PIECE = 256 << 10,	 /* bytes that are decoded at a time */
	LZ4_BLOCK_MAX = 8 << 20, /* uncompressed bytes of a block of the legacy format */
};

/* A decoder of xz takes as much memory as the file demands: 65 MiB after xz -9. */
#define LZMA_MEMORY_MAX (256ULL << 20)

struct job {
	const char *format;
	const unsigned char *in;
	size_t len;
	struct strbuf *out;
	size_t begin, limit; /* offset and limit in `out` */
};

static int damaged(const struct job *j, const char *why, struct err *err)
{
	return err_set(err, -EBADMSG, "it is damaged: its %s data cannot be unpacked (%s)",
		       j->format, why);
}

static int cut_off(const struct job *j, struct err *err)
{
	return err_set(err, -EBADMSG, "it is cut off: its %s data has no end", j->format);
}

static int no_memory(const struct job *j, struct err *err)
{
	return err_set(err, -ENOMEM, "there is no memory to unpack its %s data", j->format);
}

static int too_large(const struct job *j, struct err *err)
{
	bool small = j->limit < 1 << 20;

	return err_set(err, -EFBIG, "it is too large: unpacked, it has more than %zu %s",
		       small ? j->limit : j->limit >> 20, small ? "bytes" : "MiB");
}

/* Returns room for `*n` or fewer bytes; one more than the limit fits, to notice an excess. */
static void *next_piece(struct job *j, size_t *n)
{
	*n = min((size_t)PIECE, j->limit - (j->out->len - j->begin) + 1);
	return strbuf_grow(j->out, *n);
}

/* Adds the `n` bytes that were written there. */
static int add_piece(struct job *j, size_t n, struct err *err)
{
	j->out->len += n;
	j->out->buf[j->out->len] = '\0';
	return j->out->len - j->begin > j->limit ? too_large(j, err) : 0;
}

/* ---- gzip ---- */

static int inflate_all(struct job *j, z_stream *z, struct err *err)
{
	int said = Z_OK, rc = 0;

	while (!rc && said != Z_STREAM_END) {
		size_t n;

		z->next_out = next_piece(j, &n);
		z->avail_out = (uInt)n;
		said = inflate(z, Z_NO_FLUSH);
		if (said == Z_BUF_ERROR || (said == Z_OK && !z->avail_in && z->avail_out))
			return cut_off(j, err);
		if (said == Z_MEM_ERROR)
			return no_memory(j, err);
		if (said != Z_OK && said != Z_STREAM_END)
			return damaged(j, z->msg ? z->msg : zError(said), err);
		rc = add_piece(j, n - z->avail_out, err);
	}
	return rc;
}

static int unpack_gzip(struct job *j, struct err *err)
{
	enum { GZIP_HEADER = 16 };
	z_stream z = { .next_in = (Bytef *)(uintptr_t)j->in, .avail_in = (uInt)j->len };

	if (inflateInit2(&z, GZIP_HEADER + MAX_WBITS) != Z_OK)
		return no_memory(j, err);
	int rc = inflate_all(j, &z, err);
	inflateEnd(&z);
	return rc;
}

/* ---- xz and lzma ---- */

static int lzma_failed(const struct job *j, lzma_ret said, struct err *err)
{
	switch (said) {
	case LZMA_BUF_ERROR:
		return cut_off(j, err);
	case LZMA_MEM_ERROR:
		return no_memory(j, err);
	case LZMA_MEMLIMIT_ERROR:
		return err_set(err, -ENOMEM, "to unpack its %s data takes more than %llu MiB",
			       j->format, LZMA_MEMORY_MAX >> 20);
	case LZMA_OPTIONS_ERROR:
		return damaged(j, "options that liblzma does not know", err);
	default:
		return damaged(j, "its bytes contradict each other", err);
	}
}

static int lzma_all(struct job *j, lzma_stream *s, struct err *err)
{
	lzma_ret said = LZMA_OK;
	int rc = 0;

	s->next_in = j->in;
	s->avail_in = j->len;
	while (!rc && said != LZMA_STREAM_END) {
		size_t n;

		s->next_out = next_piece(j, &n);
		s->avail_out = n;
		said = lzma_code(s, LZMA_FINISH);
		if (said != LZMA_OK && said != LZMA_STREAM_END)
			return lzma_failed(j, said, err);
		rc = add_piece(j, n - s->avail_out, err);
	}
	return rc;
}

static int unpack_xz(struct job *j, struct err *err)
{
	lzma_stream s = LZMA_STREAM_INIT;
	lzma_ret said = lzma_stream_decoder(&s, LZMA_MEMORY_MAX, 0);
	int rc = said == LZMA_OK ? lzma_all(j, &s, err) : lzma_failed(j, said, err);

	lzma_end(&s);
	return rc;
}

static int unpack_lzma(struct job *j, struct err *err)
{
	lzma_stream s = LZMA_STREAM_INIT;
	lzma_ret said = lzma_alone_decoder(&s, LZMA_MEMORY_MAX);
	int rc = said == LZMA_OK ? lzma_all(j, &s, err) : lzma_failed(j, said, err);

	lzma_end(&s);
	return rc;
}

/* ---- zstd ---- */

static int zstd_all(struct job *j, ZSTD_DStream *d, struct err *err)
{
	ZSTD_inBuffer in = { .src = j->in, .size = j->len };
	size_t more = 1;
	int rc = 0;

	while (!rc && more) {
		ZSTD_outBuffer out = { 0 };

		out.dst = next_piece(j, &out.size);
		more = ZSTD_decompressStream(d, &out, &in);
		if (ZSTD_isError(more))
			return damaged(j, ZSTD_getErrorName(more), err);
		if (more && in.pos == in.size && out.pos < out.size)
			return cut_off(j, err);
		rc = add_piece(j, out.pos, err);
	}
	return rc;
}

static int unpack_zstd(struct job *j, struct err *err)
{
	ZSTD_DStream *d = ZSTD_createDStream();
	int rc = d ? zstd_all(j, d, err) : no_memory(j, err);

	ZSTD_freeDStream(d);
	return rc;
}

/* ---- lz4 ---- */

/*
 * Unpacks the legacy format, which the kernel's build uses: a magic number, then blocks, each after
 * the number of its compressed bytes. The format has no end mark and no checksum.
 */
static int unpack_lz4(struct job *j, struct err *err)
{
	auto_free char *block = xmalloc(LZ4_BLOCK_MAX);
	size_t at = 4;
	int rc = 0;

	while (!rc && at < j->len) {
		uint32_t packed;

		if (j->len - at < sizeof(packed))
			return cut_off(j, err);
		memcpy(&packed, j->in + at, sizeof(packed));
		at += sizeof(packed);
		if (packed > (uint32_t)LZ4_compressBound(LZ4_BLOCK_MAX))
			return damaged(j, "a block is too long", err);
		if (packed > j->len - at)
			return cut_off(j, err);
		int n = LZ4_decompress_safe((const char *)j->in + at, block, (int)packed,
					    LZ4_BLOCK_MAX);
		if (n < 0)
			return damaged(j, "a block contradicts itself", err);
		at += packed;
		if ((size_t)n > j->limit - (j->out->len - j->begin))
			return too_large(j, err);
		strbuf_add(j->out, block, (size_t)n);
	}
	return rc;
}

/* ---- the formats ---- */

struct format {
	const char *name, *magic;
	size_t n;
	int (*unpack)(struct job *j, struct err *err); /* NULL: not supported */
};

static const struct format *find_format(const void *data, size_t len)
{
	/* clang-format off */
	static const struct format all[] = {
		{ "gzip", "\x1f\x8b", 2, unpack_gzip },
		{ "xz", "\xfd" "7zXZ\0", 6, unpack_xz },
		{ "lzma", "\x5d\0\0", 3, unpack_lzma },
		{ "zstd", "\x28\xb5\x2f\xfd", 4, unpack_zstd },
		{ "lz4", "\x02\x21\x4c\x18", 4, unpack_lz4 },
		{ "bzip2", "BZh", 3, NULL },
		{ "lzo", "\x89" "LZO", 4, NULL },
	};
	/* clang-format on */

	return array_find(i, all, len >= all[i].n && memcmp(data, all[i].magic, all[i].n) == 0);
}

const char *unpack_format(const void *data, size_t len)
{
	const struct format *f = find_format(data, len);

	return f ? f->name : NULL;
}

int unpack(const void *data, size_t len, size_t limit, struct strbuf *out, struct err *err)
{
	const struct format *f = find_format(data, len);
	struct job j = { .in = data, .len = len, .out = out, .begin = out->len, .limit = limit };

	assert(len <= UINT32_MAX && limit < SIZE_MAX);
	if (!f || !f->unpack)
		return 1;
	j.format = f->name;
	int rc = f->unpack(&j, err);
	if (rc)
		strbuf_cut(out, j.begin);
	return rc;
}
