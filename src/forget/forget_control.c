/* SPDX-License-Identifier: MIT */
/*
 * forget_control.c - the socket for commands.
 *
 * One thread accepts, and each connection has a thread: a command may take long (a snapshot of much
 * data), and meanwhile other clients want answers. The thread that accepts also watches the
 * directory of the usual socket, and makes the socket again if another program removes it.
 */
#include "forget/forget_control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/vec.h"
#include "base/words.h"

enum {
	CLIENTS_MAX = 256,
	CHUNK = 64 << 10,
	LINE_MAX_BYTES = 256 << 20, /* a longer line is no command, but an accident */
	SEND_TIMEOUT_S = 30,	    /* for a client that does not read */
	STOP_MS = 2000,
	LOGGED_MAX = 4000,
	BACKLOG = 64,
	SOCKET_GOES = IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF,
};

struct client {
	struct forget_control *control;
	int fd;
	pthread_t thread;
	bool done; /* under the lock; then the thread is joined */
};

/* A bound socket, in a directory that is the same even if its name changes. */
struct listener {
	int fd;
	int dir; /* O_PATH */
	char *name, *dir_path;
	dev_t dev;
	ino_t ino;
};

struct forget_control {
	struct forget_control_opts o;
	struct listener usual, extra;
	int wake, watch;
	bool running; /* the thread runs */
	pthread_t thread;
	pthread_mutex_t lock;
	struct vec_of(struct client *) clients;
	struct forget_fifo *fifo;
	const char *farewell; /* set before clients are shut; NULL: the mount ended well */
};

void forget_control_logf(const struct forget_control_opts *o, const char *fmt, ...)
{
	va_list ap;

	if (!o->log)
		return;
	va_start(ap, fmt);
	auto_free char *line = xvasprintf(fmt, ap);
	va_end(ap);
	o->log(o->log_ctx, line);
}

/* ---- sockets in directories ---- */

#define LISTENER_INIT                                                                              \
	{                                                                                          \
		.fd = -1, .dir = -1                                                                \
	}

static void listener_close(struct listener *l)
{
	struct stat st;

	/* If the socket is now another server's, it stays. */
	if (l->fd >= 0 && fstatat(l->dir, l->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == l->dev && st.st_ino == l->ino)
		unlinkat(l->dir, l->name, 0);
	util_close(l->fd);
	util_close(l->dir);
	free(l->name);
	free(l->dir_path);
	*l = (struct listener)LISTENER_INIT;
}

/* Makes the address of DIR/NAME, which is short even if the directory's path is long. */
static int address(int dir, const char *name, struct sockaddr_un *sa)
{
	int n = snprintf(sa->sun_path, sizeof(sa->sun_path), "/proc/self/fd/%d/%s", dir, name);

	sa->sun_family = AF_UNIX;
	return n < 0 || (size_t)n >= sizeof(sa->sun_path) ? -ENAMETOOLONG : 0;
}

/* Removes a socket without a listener; returns 0 if the name is free now. */
static int clear_stale(const struct listener *l, const struct sockaddr_un *sa, struct err *err)
{
	struct stat st;

	if (fstatat(l->dir, l->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, -EEXIST, "%s/%s is there, and no socket; remove it",
			       l->dir_path, l->name);
	auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 &&
	    (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 || errno == EAGAIN))
		return err_set(err, -EADDRINUSE, "another server listens on %s/%s already",
			       l->dir_path, l->name);
	if (unlinkat(l->dir, l->name, 0) < 0)
		return err_set(err, -errno, "cannot remove the old socket %s/%s: %m", l->dir_path,
			       l->name);
	return 0;
}

/* Binds the free name `name` in l->dir. */
static int bind_name(struct listener *l, const char *name, const struct sockaddr_un *sa,
		     struct err *err)
{
	auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	/* The mode of the unbound socket becomes that of the file that bind() makes. */
	if (fd < 0 || fchmod(fd, 0600) < 0 ||
	    bind(fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0 ||
	    fstatat(l->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || listen(fd, BACKLOG) < 0)
		return err_set(err, -errno, "cannot listen on the socket %s/%s: %m", l->dir_path,
			       name);
	util_close(l->fd);
	l->fd = steal_fd(&fd);
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	return 0;
}

/* Binds l->name in l->dir, if no other server listens there. */
static int bind_there(struct listener *l, struct err *err)
{
	struct sockaddr_un sa = { 0 };
	int rc = address(l->dir, l->name, &sa);

	if (rc)
		return err_set(err, rc, "the name of the socket %s is too long", l->name);
	rc = clear_stale(l, &sa, err);
	return rc ? rc : bind_name(l, l->name, &sa, err);
}

/*
 * Binds l->name in l->dir, even if another server listens there. The usual name is the number of
 * this mount's device, which no other mount has: a server that still has this socket has lost its
 * mount, and is about to end. The name always has a socket.
 */
static int bind_ours(struct listener *l, struct err *err)
{
	auto_free char *new_name = xasprintf("%s.%d", l->name, (int)getpid());
	struct sockaddr_un sa = { 0 };
	int rc = address(l->dir, new_name, &sa);

	if (rc)
		return err_set(err, rc, "the name of the socket %s is too long", new_name);
	unlinkat(l->dir, new_name, 0); /* left by a killed process with the same number */
	rc = bind_name(l, new_name, &sa, err);
	if (!rc && renameat(l->dir, new_name, l->dir, l->name)) {
		rc = err_set(err, -errno, "cannot make the socket %s/%s: %m", l->dir_path, l->name);
		unlinkat(l->dir, new_name, 0);
	}
	return rc;
}

static int open_extra(struct listener *l, const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');

	l->dir_path = slash == path ? xstrdup("/") : xmemdupz(path, (size_t)(slash - path));
	l->name = xstrdup(slash + 1);
	l->dir = open(l->dir_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (l->dir < 0)
		return err_set(err, -errno, "cannot make the socket %s: %m", path);
	return bind_there(l, err);
}

static int open_usual(struct listener *l, const struct forget_place *place, struct err *err)
{
	char name[FORGET_SOCKET_NAME];
	struct err last = ERR_INIT;

	forget_place_name(place, name);
	l->name = xstrdup(name);
	/* Another server that ends removes the empty directory: then try again. */
	for (int tries = 0; tries < 5; tries++) {
		err_clear(&last);
		l->dir = forget_place_dir_make(&l->dir_path, &last);
		if (l->dir < 0 || bind_ours(l, &last) == 0 || last.code != -ENOENT)
			break;
		util_close(steal_fd(&l->dir));
		free(steal(l->dir_path));
	}
	return last.code ? err_set(err, last.code, "%s", last.msg) : 0;
}

/* ---- one connection ---- */

/* Lets only this user and root send commands (S1). */
static bool may_speak(int fd, struct ucred *who)
{
	socklen_t len = sizeof(*who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &len) == 0 &&
	       (who->uid == geteuid() || who->uid == 0);
}

static int send_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int answer(int fd, bool done, const struct strbuf *text)
{
	auto_strbuf all = STRBUF_INIT;

	strbuf_addf(&all, "%s %zu\n", done ? "ok" : "error", text->len);
	strbuf_add(&all, strbuf_str(text), text->len);
	return send_all(fd, all.buf, all.len);
}

static int answer_error(int fd, bool json, const char *why)
{
	auto_strbuf text = STRBUF_INIT;
	struct json j;

	if (!json) {
		strbuf_addf(&text, "%s\n", why);
		return answer(fd, false, &text);
	}
	json_init(&j, &text, false);
	json_object_of(&j, KV("error", why));
	strbuf_addch(&text, '\n');
	return answer(fd, false, &text);
}

/* Ends an answer with a newline, in both forms, so that any reader can print it. */
static void end_line(struct strbuf *text)
{
	if (text->len && text->buf[text->len - 1] != '\n')
		strbuf_addch(text, '\n');
}

/* True if a command changes anything: such commands are logged. */
static bool does_something(enum command_kind kind)
{
	switch (kind) {
	case COMMAND_USAGE:
	case COMMAND_REPORT:
	case COMMAND_FAULTS:
	case COMMAND_SNAPSHOTS:
	case COMMAND_STATUS:
	case COMMAND_HELP:
		return false;
	default:
		return true;
	}
}

static void log_command(struct forget_control *c, const struct words *w, size_t first)
{
	auto_strbuf line = STRBUF_INIT;

	for (size_t i = first; i < w->n && line.len < LOGGED_MAX; i++) {
		strbuf_adds(&line, i > first ? " " : "");
		if (!*w->v[i] || strpbrk(w->v[i], " \t\r\n'\"\\"))
			words_quote(w->v[i], &line);
		else
			strbuf_adds(&line, w->v[i]);
	}
	forget_control_logf(&c->o, "control: received '%.*s'", LOGGED_MAX, strbuf_str(&line));
}

static int do_words(struct forget_control *c, const struct words *w, bool json, struct strbuf *said,
		    struct err *err)
{
	struct inject_command command = { 0 };
	size_t first = json ? 1 : 0;
	int rc;

	if (w->n == first)
		return err_set(err, -EINVAL, "a command is missing; 'help' lists them");
	rc = inject_command_parse(w->v + first, w->n - first, c->o.root, c->o.mnt, &command, err);
	if (rc)
		return rc;
	bool logged = does_something(command.kind);
	if (logged)
		log_command(c, w, first);
	rc = c->o.command(c->o.command_ctx, &command, json ? NULL : said, json ? said : NULL, err);
	if (rc && logged)
		forget_control_logf(&c->o, "control: not done: %s", err->msg);
	inject_command_release(&command);
	end_line(said);
	return rc;
}

static int do_line(struct forget_control *c, int fd, const char *line, size_t len)
{
	auto_words w = { 0 };
	auto_strbuf said = STRBUF_INIT;
	struct err err = ERR_INIT;
	bool json;
	int rc = words_split(line, len, &w, &err);

	json = w.n > 0 && streq(w.v[0], "--json");
	if (!rc && w.n == 0)
		return 0; /* an empty line is no command */
	if (!rc)
		rc = do_words(c, &w, json, &said, &err);
	return rc ? answer_error(fd, json, err.msg) : answer(fd, true, &said);
}

/* Executes the complete lines, and keeps the rest. */
static int do_lines(struct forget_control *c, int fd, struct strbuf *in, size_t *looked)
{
	size_t begin = 0;
	char *end;

	while ((end = memchr(in->buf + *looked, '\n', in->len - *looked))) {
		size_t at = (size_t)(end - in->buf);
		int rc = do_line(c, fd, in->buf + begin, at - begin);

		if (rc)
			return rc;
		begin = *looked = at + 1;
	}
	strbuf_drop(in, begin);
	*looked = in->len;
	return 0;
}

static void converse(struct forget_control *c, int fd)
{
	auto_strbuf in = STRBUF_INIT;
	size_t looked = 0;

	for (;;) {
		ssize_t n = recv(fd, strbuf_grow(&in, CHUNK), CHUNK, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		if (n == 0) {
			if (c->farewell)
				answer_error(fd, false, c->farewell);
			/* An incomplete line may have been meant as another command. */
			else if (in.len)
				answer_error(fd, false,
					     "the last line has no end; nothing is done");
			return;
		}
		in.len += (size_t)n;
		in.buf[in.len] = '\0';
		if (do_lines(c, fd, &in, &looked))
			return;
		if (in.len > LINE_MAX_BYTES) {
			answer_error(fd, false, "this is too long for a command");
			return;
		}
	}
}

static void *client_thread(void *arg)
{
	struct client *me = arg;
	struct forget_control *c = me->control;
	struct ucred who = { .uid = (uid_t)-1 };

	if (may_speak(me->fd, &who)) {
		converse(c, me->fd);
	} else {
		forget_control_logf(&c->o, "control: user %u was refused", (unsigned)who.uid);
		answer_error(me->fd, false, "only the user who mounted it, and root, may do this");
	}
	/*
	 * The client sees the end now; the descriptor is closed when no other client can have its
	 * number.
	 */
	shutdown(me->fd, SHUT_RDWR);
	auto_lock(&c->lock);
	me->done = true;
	return NULL;
}

static void client_free(struct client *k)
{
	pthread_join(k->thread, NULL);
	util_close(k->fd);
	free(k);
}

/* ---- accepting ---- */

static void join_done(struct forget_control *c)
{
	auto_vec struct vec_of(struct client *) done = { 0 };

	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->clients.n;) {
		struct client *k = c->clients.v[i];

		if (!k->done) {
			i++;
			continue;
		}
		vec_push(&done, k);
		c->clients.v[i] = c->clients.v[--c->clients.n];
	}
	pthread_mutex_unlock(&c->lock);
	for (size_t i = 0; i < done.n; i++)
		client_free(done.v[i]);
}

static void take_client(struct forget_control *c, int fd)
{
	struct timeval tv = { .tv_sec = SEND_TIMEOUT_S };
	struct client *k;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	pthread_mutex_lock(&c->lock);
	if (c->clients.n >= CLIENTS_MAX) {
		pthread_mutex_unlock(&c->lock);
		answer_error(fd, false, "too many are connected; try again when some have left");
		util_close(fd);
		return;
	}
	k = xcalloc(1, sizeof(*k));
	k->control = c;
	k->fd = fd;
	if (pthread_create(&k->thread, NULL, client_thread, k)) {
		util_close(fd);
		free(k);
	} else {
		vec_push(&c->clients, k);
	}
	pthread_mutex_unlock(&c->lock);
}

static void accept_all(struct forget_control *c, const struct listener *l)
{
	int fd;

	join_done(c);
	while ((fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		take_client(c, fd);
	/* Without free descriptors the connection stays in the queue: wait a little. */
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
		util_sleep_ms(100);
}

/* Makes the usual socket again, in its directory or a new one, if another program removed it. */
static void restore_usual(struct forget_control *c)
{
	struct listener again = LISTENER_INIT;
	struct err err = ERR_INIT;
	struct stat st;

	/* Ours, or that of a later mount, which got our number when we were unmounted. */
	if (!fstatat(c->usual.dir, c->usual.name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	if (open_usual(&again, c->o.place, &err)) {
		forget_control_logf(&c->o,
				    "control: the socket is gone, and cannot be made again: %s",
				    err.msg);
		listener_close(&again);
		return;
	}
	listener_close(&c->usual);
	c->usual = again;
	inotify_add_watch(c->watch, c->usual.dir_path, SOCKET_GOES);
	forget_control_logf(&c->o, "control: the socket was removed, and is made again");
}

void forget_control_drain(int fd)
{
	char events[4096];

	while (read(fd, events, sizeof(events)) > 0)
		;
}

static void *accept_thread(void *arg)
{
	struct forget_control *c = arg;

	for (;;) {
		struct pollfd p[] = { { .fd = c->wake, .events = POLLIN },
				      { .fd = c->watch, .events = POLLIN },
				      { .fd = c->usual.fd, .events = POLLIN },
				      { .fd = c->extra.fd, .events = POLLIN } };

		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			break;
		if (p[0].revents)
			break;
		if (p[2].revents)
			accept_all(c, &c->usual);
		if (p[3].revents)
			accept_all(c, &c->extra);
		if (p[1].revents) {
			forget_control_drain(c->watch);
			restore_usual(c);
		}
	}
	return NULL;
}

/* ---- beginning and end ---- */

static int open_listeners(struct forget_control *c, struct err *err)
{
	struct err usual = ERR_INIT;
	int rc = 0;

	if (c->o.socket)
		rc = open_extra(&c->extra, c->o.socket, err);
	if (rc || !c->o.place)
		return rc;
	rc = open_usual(&c->usual, c->o.place, &usual);
	if (rc && (c->o.socket || c->o.socket_optional)) {
		forget_control_logf(&c->o, "control: %s", usual.msg);
		listener_close(&c->usual);
		return 0;
	}
	if (rc)
		return err_set(err, rc, "%s", usual.msg);
	c->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (c->watch >= 0)
		inotify_add_watch(c->watch, c->usual.dir_path, SOCKET_GOES);
	return 0;
}

int forget_control_start(const struct forget_control_opts *opts, struct forget_control **out,
			 struct err *err)
{
	struct forget_control *c = xcalloc(1, sizeof(*c));
	int rc;

	*c = (struct forget_control){
		.o = *opts,
		.usual = LISTENER_INIT,
		.extra = LISTENER_INIT,
		.wake = eventfd(0, EFD_CLOEXEC),
		.watch = -1,
	};
	pthread_mutex_init(&c->lock, NULL);
	rc = open_listeners(c, err);
	if (!rc && opts->fifo)
		rc = forget_fifo_start(&c->o, &c->fifo, err);
	if (!rc && (c->usual.fd >= 0 || c->extra.fd >= 0)) {
		rc = -pthread_create(&c->thread, NULL, accept_thread, c);
		c->running = rc == 0;
		if (rc)
			err_set(err, rc, "cannot start the thread that listens: %m");
	}
	if (rc)
		forget_control_stop(c);
	else
		*out = c;
	return rc;
}

static void shut_clients(struct forget_control *c, int how)
{
	for (size_t i = 0; i < c->clients.n; i++)
		shutdown(c->clients.v[i]->fd, how);
}

static bool all_done(struct forget_control *c)
{
	bool done = true;

	auto_lock(&c->lock);
	for (size_t i = 0; i < c->clients.n; i++)
		done = done && c->clients.v[i]->done;
	return done;
}

/* Answers current requests, if the client reads the answer at once; reads nothing more. */
static void stop_clients(struct forget_control *c)
{
	shut_clients(c, SHUT_RD);
	for (unsigned waited = 0; !all_done(c) && waited < STOP_MS; waited += 5)
		util_sleep_ms(5);
	shut_clients(c, SHUT_RDWR);
	for (size_t i = 0; i < c->clients.n; i++)
		client_free(c->clients.v[i]);
	vec_release(&c->clients);
}

void forget_control_farewell(struct forget_control *c, const char *why)
{
	auto_lock(&c->lock);
	c->farewell = why;
}

void forget_control_stop(struct forget_control *c)
{
	uint64_t one = 1;

	if (!c)
		return;
	if (c->running) {
		(void)!write(c->wake, &one, sizeof(one));
		pthread_join(c->thread, NULL);
	}
	forget_fifo_stop(c->fifo);
	stop_clients(c);
	listener_close(&c->extra);
	if (c->usual.dir_path) {
		auto_free char *dir = steal(c->usual.dir_path);

		listener_close(&c->usual);
		rmdir(dir); /* the last server removes it; otherwise it is not empty */
	}
	util_close(c->watch);
	util_close(c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
