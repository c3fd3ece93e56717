/* SPDX-License-Identifier: MIT */
/* forget_client.c - connects to the socket of a mount, sends a command, and reads the answer. */
#include "forget/forget_client.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/words.h"

enum { HEAD_MAX = 32, CHUNK = 64 << 10, FAREWELL_S = 10 };

/* Connects to a socket given by its directory, so that no path is too long for an address. */
static int connect_in(int dir, const char *name)
{
	auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int n = snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/%s", dir, name);

	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	return steal_fd(&fd);
}

/* Gets the user id and the process of the listener. */
static int ask_peer(int fd, struct ucred *who)
{
	socklen_t len = sizeof(*who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &len) < 0 ? -errno : 0;
}

static int refused(const struct forget_place *p, struct err *err)
{
	return err_set(err, -EACCES,
		       "the mount on %s belongs to user %u; only that user and root may command it",
		       p->mnt, (unsigned)p->owner);
}

static int connect_path(const char *path, struct err *err)
{
	auto_free char *copy = xstrdup(path);
	char *slash = strrchr(copy, '/');
	const char *name = slash ? slash + 1 : copy, *dir = slash == copy ? "/"
							    : slash	  ? copy
									  : ".";

	if (slash)
		*slash = '\0';
	auto_fd fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : connect_in(fd, name);
	if (rc == -ECONNREFUSED)
		return err_set(err, rc, "no server listens on %s; it has ended", path);
	return rc < 0 ? err_set(err, rc, "cannot connect to %s: %m", path) : rc;
}

static int connect_place(const struct forget_place *p, struct err *err)
{
	char name[FORGET_SOCKET_NAME];
	bool denied = false;
	int dir;

	forget_place_name(p, name);
	for (unsigned i = 0; (dir = forget_place_dir_look(p, i, NULL)) != -ERANGE; i++) {
		auto_fd keep = dir;
		int rc = dir < 0 ? dir : connect_in(keep, name);

		if (rc >= 0)
			return rc;
		denied = denied || rc == -EACCES || rc == -EPERM;
	}
	if (p->owner != geteuid() && geteuid() != 0)
		return refused(p, err);
	return err_set(err, denied ? -EACCES : -ENOENT,
		       "the server of %s does not answer: it has no socket, or has ended; "
		       "'outage umount %s' clears the mount away",
		       p->mnt, p->mnt);
}

int forget_client_open(const struct forget_place *p, const char *path, struct forget_client *out,
		       struct err *err)
{
	auto_fd fd = path ? connect_path(path, err) : connect_place(p, err);
	struct ucred who;

	if (fd < 0)
		return fd;
	int rc = ask_peer(fd, &who);
	if (rc)
		return err_set(err, rc, "cannot tell who answers: %m");
	if (who.uid != p->owner)
		return err_set(err, -EPERM,
			       "the answering process belongs to user %u, and the mount to user %u",
			       (unsigned)who.uid, (unsigned)p->owner);
	out->server = who.pid;
	out->fd = steal_fd(&fd);
	return 0;
}

void forget_client_close(struct forget_client *c)
{
	util_close(c->fd);
	c->fd = -1;
}

/* ---- a command ---- */

static int send_command(int fd, char *const *words, size_t n, bool json)
{
	auto_strbuf line = STRBUF_INIT;
	size_t sent = 0;

	strbuf_adds(&line, json ? "--json" : "");
	for (size_t i = 0; i < n; i++) {
		strbuf_addch(&line, ' ');
		words_quote(words[i], &line);
	}
	strbuf_addch(&line, '\n');
	while (sent < line.len) {
		ssize_t k = send(fd, line.buf + sent, line.len - sent, MSG_NOSIGNAL);

		if (k < 0 && errno != EINTR)
			return -errno;
		sent += (size_t)max(k, (ssize_t)0);
	}
	return 0;
}

/* Reads "ok 12\n" or "error 40\n" byte by byte: the answer follows. */
static int read_head(int fd, bool *done, size_t *len)
{
	char head[HEAD_MAX], word[8];
	size_t n = 0;

	for (;;) {
		ssize_t k = recv(fd, head + n, 1, 0);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k < 0 ? -errno : -ECONNRESET;
		if (head[n] == '\n')
			break;
		if (++n == sizeof(head))
			return -EPROTO;
	}
	head[n] = '\0';
	if (sscanf(head, "%7s %zu", word, len) != 2)
		return -EPROTO;
	*done = streq(word, "ok");
	return *done || streq(word, "error") ? 0 : -EPROTO;
}

static int read_body(int fd, size_t len, struct strbuf *out)
{
	while (len) {
		size_t want = min(len, (size_t)CHUNK);
		ssize_t k = recv(fd, strbuf_grow(out, want), want, 0);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k < 0 ? -errno : -ECONNRESET;
		out->len += (size_t)k;
		out->buf[out->len] = '\0';
		len -= (size_t)k;
	}
	return 0;
}

int forget_client_call(const struct forget_client *c, char *const *words, size_t n, bool json,
		       unsigned timeout_s, struct strbuf *answer, bool *done, struct err *err)
{
	struct timeval tv = { .tv_sec = timeout_s };
	size_t len = 0;
	int rc;

	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	rc = send_command(c->fd, words, n, json);
	/* A server that stops reading has already sent its reason. */
	if (!rc || rc == -EPIPE || rc == -ECONNRESET)
		rc = read_head(c->fd, done, &len);
	if (!rc)
		rc = read_body(c->fd, len, answer);
	if (rc == -EAGAIN)
		return err_set(
			err, -ETIMEDOUT,
			"the server did not answer within %u s; the command may still be done",
			timeout_s);
	if (rc == -ECONNRESET)
		return err_set(err, rc, "the server ended before it answered");
	return rc ? err_set(err, rc, "cannot talk to the server: %m") : 0;
}

bool forget_client_farewell(const struct forget_client *c, struct strbuf *why)
{
	struct timeval tv = { .tv_sec = FAREWELL_S };
	bool done = true;
	size_t len = 0;

	if (c->fd < 0)
		return false;
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return read_head(c->fd, &done, &len) == 0 && !done && read_body(c->fd, len, why) == 0;
}
