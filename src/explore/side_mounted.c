/* SPDX-License-Identifier: MIT */
/*
 * side_mounted.c - a FUSE server without a disk: "mounted:COMMAND {mnt}", such as
 * "mounted:outage reffs {mnt}".
 *
 * A server that knows the calls of the mounted reference file system is saved and put back by them,
 * under a number for each state, and never mounted again. Any other server can only be restarted to
 * be empty again, which is enough for walks.
 */
#include <errno.h>
#include <fcntl.h>
#include <outage/reffs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "explore/side.h"
#include "target/server.h"
#include "workload/exec.h"

enum { POLL_US = 1000, START_MS = 20000, END_MS = 5000 };

struct mounted_side {
	struct side base;
	char mnt[TARGET_PLACE_SIZE];
	char *command;
	pid_t server;
	int root;
	struct exec x;
	bool running; /* x is initialised */
	bool saves;
	uint64_t last; /* key */
};
static_assert(sizeof(struct mounted_side) <= 4096, "side_open() makes it");

/* A saved state: a key, or 0 for the empty file system of a new server. */
struct mounted_state {
	uint64_t key;
};

static struct mounted_side *own(struct side *s)
{
	return container_of(s, struct mounted_side, base);
}

/* ---- the server ---- */

static void stop(struct mounted_side *o)
{
	if (o->running)
		exec_close_all(&o->x);
	util_close(steal_fd(&o->root));
	if (!o->server)
		return;
	for (unsigned ms = 0; umount2(o->mnt, 0) < 0 && errno == EBUSY && ms < 100; ms++)
		usleep(POLL_US);
	server_reap(&o->server, END_MS);
}

static int start(struct mounted_side *o, struct err *err)
{
	auto_free char *line = server_command(o->command, NULL, o->mnt);
	struct stat before;

	if (stat(o->mnt, &before) < 0)
		return err_set(err, -errno, "cannot look at %s: %m", o->mnt);
	int rc = server_start(line, &o->server, err);
	if (rc)
		return rc;
	for (unsigned ms = 0; ms < START_MS; ms++) {
		int status;

		if (server_has_mounted(o->mnt, &before)) {
			o->root = open(o->mnt, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			o->x.root = o->root;
			o->base.counts.mounts++;
			return o->root < 0 ? err_set(err, -errno, "cannot open %s: %m", o->mnt) : 0;
		}
		if (waitpid(o->server, &status, WNOHANG) == o->server) {
			o->server = 0;
			return err_set(err, -EIO, "'%.200s' ended before anything was mounted",
				       o->command);
		}
		usleep(POLL_US);
	}
	return err_set(err, -ETIMEDOUT, "'%.200s' mounted nothing within %d s", o->command,
		       START_MS / 1000);
}

/* ---- a side ---- */

static int open_mounted(struct side *s, const struct side_opts *opts, struct err *err)
{
	struct mounted_side *o = own(s);
	const char *colon = strchr(opts->target.spec, ':');
	struct outage_reffs_key key = { .key = 1 };

	o->root = -1;
	if (!colon || !strstr(colon, "{mnt}"))
		return err_set(err, -EINVAL, "a server without a disk is 'mounted:COMMAND {mnt}'");
	if (geteuid() != 0)
		return err_set(err, -EPERM, "%.60s needs root: it is mounted; run it with sudo",
			       s->spec);
	o->command = xstrdup(colon + 1);
	s->differences = differences_of("fuse");
	int rc = target_place(o->mnt, err);
	if (!rc)
		rc = start(o, err);
	if (rc)
		return rc;
	o->saves = ioctl(o->root, OUTAGE_REFFS_SAVE, &key) == 0;
	o->last = 1;
	if (o->saves)
		ioctl(o->root, OUTAGE_REFFS_DROP, &key);
	s->saving = o->saves ? SAVING_CHEAP : SAVING_NEVER;
	if (!o->saves)
		s->note = "its states cannot be saved: it is started anew to be empty again";
	return 0;
}

static void close_mounted(struct side *s)
{
	struct mounted_side *o = own(s);

	stop(o);
	if (o->running)
		exec_release(&o->x);
	free(o->command);
}

static void begin(struct side *s, const struct workload *w)
{
	struct mounted_side *o = own(s);
	struct exec_env env = { .ctx = o, .drop_caches = exec_drop_here };

	if (o->running)
		exec_release(&o->x);
	exec_init(&o->x, o->root, w, &env);
	o->running = true;
}

static int64_t perform(struct side *s, size_t i)
{
	return own(s)->root < 0 ? -EIO : exec_op(&own(s)->x, i);
}

static int tree(struct side *s, const struct tree_opts *opts, struct tree *out, struct err *err)
{
	return tree_walk(own(s)->root, opts, out, err);
}

static int save(struct side *s, struct side_state **out, struct err *err)
{
	struct mounted_side *o = own(s);
	auto_free struct mounted_state *state = xcalloc(1, sizeof(*state));
	struct outage_reffs_key key = { .key = o->last + 1 };

	s->counts.saves++;
	if (o->saves) {
		if (ioctl(o->root, OUTAGE_REFFS_SAVE, &key) < 0)
			return err_set(err, -errno, "%.100s cannot be saved: %m", s->spec);
		state->key = ++o->last;
	} else if (s->base) {
		return err_set(err, -EOPNOTSUPP,
			       "states of %.100s cannot be saved; search it with --order walk",
			       s->spec);
	}
	*out = (struct side_state *)steal(state);
	return 0;
}

static int restore(struct side *s, struct side_state *from, struct strbuf *said, struct err *err)
{
	struct mounted_side *o = own(s);
	struct mounted_state *state = (struct mounted_state *)from;
	struct outage_reffs_key key = { .key = state->key, .flags = OUTAGE_REFFS_KEEP };

	(void)said;
	s->counts.restores++;
	if (!state->key) {
		stop(o);
		return start(o, err);
	}
	if (o->running)
		exec_close_all(&o->x);
	return ioctl(o->root, OUTAGE_REFFS_RESTORE, &key) < 0
		       ? err_set(err, -errno, "%.100s cannot be put back: %m", s->spec)
		       : 0;
}

static void drop(struct side *s, struct side_state *from)
{
	struct mounted_side *o = own(s);
	struct mounted_state *state = (struct mounted_state *)from;
	struct outage_reffs_key key = { .key = state->key };

	if (state->key && o->root >= 0)
		ioctl(o->root, OUTAGE_REFFS_DROP, &key);
	free(state);
}

const struct side_ops side_mounted = {
	.name = "mounted",
	.help = "a FUSE server without a disk",
	.open = open_mounted,
	.close = close_mounted,
	.begin = begin,
	.op = perform,
	.tree = tree,
	.save = save,
	.restore = restore,
	.drop = drop,
};
