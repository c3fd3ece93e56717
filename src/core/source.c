/* SPDX-License-Identifier: MIT */
/* source.c - reads the next bytes of a source, from a descriptor or from memory. */
#include "core/source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/fault.h"
#include "base/io.h"

enum { READ_AHEAD = 64 * 1024 };

int source_open(const char *path, struct source *out, struct err *err)
{
	bool std_in = streq(path, "-");
	int fault = fault_point("source.open");
	struct stat st;

	if (fault)
		return err_set(err, fault, "cannot open %s: %m", path);
	auto_fd opened = std_in ? -1 : below_open_named(path, err);
	if (!std_in && opened < 0)
		return opened;
	if (!std_in && fstat(opened, &st) == 0 && S_ISDIR(st.st_mode))
		return err_set(err, -EISDIR, "%s is a directory, not a file", path);
	*out = (struct source){
		.fd = std_in ? STDIN_FILENO : steal_fd(&opened),
		.close_fd = !std_in,
		.name = xstrdup(std_in ? "standard input" : path),
		.buf = xmalloc(READ_AHEAD),
	};
	return 0;
}

int source_open_below(const char *dir, const char *name, struct source *out, struct err *err)
{
	int fd = below_open(dir, name, O_RDONLY, err);

	if (fd < 0)
		return fd;
	*out = (struct source){ .fd = fd,
				.close_fd = true,
				.name = below_shown(dir, name),
				.buf = xmalloc(READ_AHEAD) };
	return 0;
}

void source_open_bytes(const void *data, size_t len, struct source *out)
{
	*out = (struct source){ .fd = -1, .name = xstrdup("memory"), .mem = data, .mem_len = len };
}

void source_release(struct source *s)
{
	if (s->close_fd)
		util_close(s->fd);
	free(s->name);
	free(s->buf);
	*s = (struct source){ .fd = -1 };
}

static size_t take(struct source *s, void *data, size_t len)
{
	size_t n = min(len, s->mem_len);

	if (n) {
		memcpy(data, s->mem, n);
		s->mem += n;
		s->mem_len -= n;
	}
	return n;
}

ssize_t source_read(struct source *s, void *data, size_t len, struct err *err)
{
	unsigned char *to = data;
	size_t done = take(s, to, len);

	if (done < len && s->fd >= 0) {
		size_t left = len - done;
		bool large = left >= READ_AHEAD; /* a large read is not copied twice */
		ssize_t n =
			io_read_full(s->fd, large ? to + done : s->buf, large ? left : READ_AHEAD);

		if (n < 0)
			return err_set(err, (int)n, "cannot read %s: %m", s->name);
		if (large) {
			done += (size_t)n;
		} else {
			s->mem = s->buf;
			s->mem_len = (size_t)n;
			done += take(s, to + done, left);
		}
	}
	s->pos += done;
	return (ssize_t)done;
}
