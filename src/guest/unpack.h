/* SPDX-License-Identifier: MIT */
/*
 * unpack.h - uncompresses the files of a kernel, its image and its modules. Only unpack.c sees the
 * libraries for that.
 */
#ifndef GUEST_UNPACK_H
#define GUEST_UNPACK_H

#include "base/err.h"
#include "base/strbuf.h"

/*
 * Returns the format of compressed bytes, by the first of them: "gzip", "xz", "lzma", "zstd",
 * "lz4", and two that unpack() does not know, "bzip2" and "lzo". NULL: no format of a kernel's
 * build.
 */
const char *unpack_format(const void *data, size_t len);

/*
 * Appends the uncompressed bytes to `out`. Bytes behind the end of the compressed stream are
 * ignored, as a kernel does. Returns 1 if unpack() does not know the format; -EBADMSG if the bytes
 * are damaged or cut off; -EFBIG if there are more than `limit`; -ENOMEM. `out` is then unchanged.
 */
int unpack(const void *data, size_t len, size_t limit, struct strbuf *out, struct err *err)
	must_check;

#endif
