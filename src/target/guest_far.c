/* SPDX-License-Identifier: MIT */
/* guest_far.c - makes the requests to a file system mounted in a guest: struct target_far. */
#include <errno.h>
#include <sys/stat.h>

#include "base/patience.h"
#include "guest/guest_root.h"
#include "target/guest_target.h"

static struct guest_target *own(struct target *t)
{
	return t->own;
}

static int check_shell(const char *what, struct err *err)
{
	return guest_root_has_shell()
		       ? 0
		       : err_set(err, -ENOENT,
				 "%s needs busybox in a guest; install it with: apt-get install "
				 "busybox-static",
				 what);
}

/* Notes the workload, which the agent gets with the first operation, and again after each mount. */
static int far_begin(struct target *t, const struct workload *w, struct err *err)
{
	int rc = workload_command(w) ? check_shell("'shell'", err) : 0;

	if (rc)
		return rc;
	own(t)->workload = w;
	own(t)->begun = false;
	return 0;
}

static void put_workload(struct target *t)
{
	struct guest *g = own(t)->guest;
	auto_strbuf text = STRBUF_INIT;

	workload_print(own(t)->workload, &text);
	wire_part(&g->out, AGENT_BEGIN, 0);
	wire_put_text(&g->out.text, strbuf_str(&text));
}

static int far_op(struct target *t, size_t i, int64_t *result, struct err *err)
{
	struct guest_target *g = own(t);
	struct wire_in answer, part;
	bool begin = !g->begun;

	assert(g->workload);
	guest_begin(g->guest);
	guest_target_set_clock(t, i + 1);
	if (begin)
		put_workload(t);
	wire_part(&g->guest->out, AGENT_OP, 0);
	wire_put_u32(&g->guest->out.text, (uint32_t)i);
	int rc = guest_target_ask_all(t, &answer, err);
	if (!rc)
		rc = guest_target_clock_set(t, &answer, err);
	if (!rc && begin)
		rc = guest_part(&answer, AGENT_BEGIN, &part, err);
	if (!rc)
		rc = guest_part(&answer, AGENT_OP, &part, err);
	if (rc)
		return rc;
	g->begun = true;
	*result = (int64_t)wire_u64(&part);
	if (!wire_u32(&part)) {
		t->mounted = false;
		disk_set_in_use(t->disk, false);
	}
	rc = guest_part_ok(&part, err);
	if (!rc && *result < -4095)
		rc = err_set(err, -EPROTO, "the guest's answer makes no sense");
	/* The agent, or its kernel, lacked memory, which we give. */
	if (!rc && *result == -ENOMEM)
		rc = err_set(err, -ENOMEM,
			     "the guest ran out of memory: it has %lluM; give it more with "
			     "--guest-memory SIZE",
			     (unsigned long long)(g->memory >> 20));
	return rc;
}

static int far_end(struct target *t, struct err *err)
{
	struct wire_in part;
	bool begun = own(t)->begun;

	own(t)->begun = false;
	own(t)->workload = NULL;
	guest_target_begin(t, AGENT_END);
	return begun ? guest_target_ask(t, AGENT_END, &part, err) : 0;
}

/* Asks for a piece of a file: 0, 1 if the guest died, or -errno. `error`: it cannot be read. */
static int read_piece(struct target *t, const char *path, uint64_t at, size_t len, void *to,
		      int *error, struct err *err)
{
	struct strbuf *out = guest_target_begin(t, AGENT_READ);
	struct wire_in part;
	size_t got;

	wire_put_text(out, path);
	wire_put_u64(out, at);
	wire_put_u32(out, (uint32_t)len);
	int rc = guest_target_ask(t, AGENT_READ, &part, err);
	if (rc)
		return rc;
	*error = (int)wire_u32(&part);
	const unsigned char *bytes = wire_bytes(&part, &got);
	rc = guest_part_ok(&part, err);
	if (!rc && !*error && got < len)
		*error = ENODATA; /* as in a walk */
	if (!rc && got > len)
		rc = err_set(err, -EPROTO, "the guest's answer makes no sense");
	if (!rc)
		memcpy(to, bytes, got);
	return rc;
}

/* Fetches the bytes of a file that were not sent with the tree. */
static int fetch_content(struct target *t, struct tree *seen, struct tree_entry *e, struct err *err)
{
	unsigned char *data = arena_alloc(&seen->arena, e->size);
	int rc = 0, error = 0;

	for (uint64_t at = 0; !rc && !error && at < e->size; at += WIRE_READ_MAX)
		rc = read_piece(t, e->path, at, (size_t)min(e->size - at, (uint64_t)WIRE_READ_MAX),
				data + at, &error, err);
	if (rc || error == ENAMETOOLONG) /* only its hash is known */
		return rc;
	if (error) {
		e->error = error;
		e->step = TREE_STEP_READ;
		return 0;
	}
	if (!hash_eq(tree_content_hash(data, e->size), e->hash))
		return err_set(err, -EIO, "%s in the guest is another file when it is read again",
			       e->path);
	e->content = data;
	seen->kept += e->size;
	return 0;
}

static int fetch_contents(struct target *t, uint64_t limit, struct tree *seen, struct err *err)
{
	int rc = 0;

	limit = limit ? limit : TREE_CONTENT_LIMIT;
	for (size_t i = 0; !rc && i < seen->entries.n; i++) {
		struct tree_entry *e = &seen->entries.v[i];

		if (e->type == TREE_FILE && !e->error && e->size && !e->content &&
		    e->size <= limit && e->size <= TREE_CONTENT_TOTAL - seen->kept)
			rc = fetch_content(t, seen, e, err);
	}
	return rc;
}

static int far_walk(struct target *t, const struct tree_opts *opts, struct tree *seen,
		    struct err *err)
{
	struct strbuf *out = guest_target_begin(t, AGENT_WALK);
	struct wire_in part;
	uint32_t n = 0;

	wire_put_u32(out, (opts->blocks ? TREE_FIELD_BLOCKS : 0U) |
				  (opts->times ? TREE_FIELD_TIMES : 0U) |
				  (opts->dir_size ? TREE_FIELD_DIR_SIZE : 0U) |
				  (opts->dir_nlink ? TREE_FIELD_DIR_NLINK : 0U));
	wire_put_u64(out, opts->content_limit);
	while (opts->ignore && opts->ignore[n])
		n++;
	wire_put_u32(out, n);
	for (uint32_t i = 0; i < n; i++)
		wire_put_text(out, opts->ignore[i]);
	int rc = guest_target_ask(t, AGENT_WALK, &part, err);
	if (rc)
		return rc;
	const char *text = wire_text(&part);
	rc = guest_part_ok(&part, err);
	if (!rc)
		rc = tree_parse(text, strlen(text), seen, err);
	if (rc)
		err_context(err, "the tree that the guest sent");
	if (!rc)
		rc = fetch_contents(t, opts->content_limit, seen, err);
	own(t)->walked = rc ? NULL : seen;
	return rc;
}

/* If time is counted in instructions, this much of it takes seconds of real time. */
enum { STEADY_PATIENCE_MS = 64 };

static int far_usable(struct target *t, const struct tree *seen, struct findings *list,
		      struct err *err)
{
	struct strbuf *out = guest_target_begin(t, AGENT_USABLE);
	auto_strbuf text = STRBUF_INIT;
	struct wire_in part;

	/* The agent still has the tree of its walk, unless it was restarted since. */
	if (own(t)->walked != seen)
		tree_print(seen, &(struct tree_opts){ 0 }, 0, &text);
	wire_put_text(out, strbuf_str(&text));
	wire_put_u32(out, own(t)->guest->steady ? STEADY_PATIENCE_MS : TARGET_PATIENCE_MS);
	int rc = guest_target_ask(t, AGENT_USABLE, &part, err);
	if (rc)
		return rc;
	uint32_t n = wire_u32(&part);
	for (uint32_t i = 0; i < n && !part.bad; i++) {
		uint32_t kind = wire_u32(&part);
		const char *path = wire_text(&part), *words = wire_text(&part),
			   *promise = wire_text(&part);

		if (!part.bad && kind < FINDING_KIND_END)
			findings_add(list, kind, xstrdup(path), xstrdup(words), xstrdup(promise));
	}
	return guest_part_ok(&part, err);
}

static int far_stat(struct target *t, const char *path, struct target_stat *st, struct err *err)
{
	struct wire_in part;

	wire_put_text(guest_target_begin(t, AGENT_STAT), path);
	int rc = guest_target_ask(t, AGENT_STAT, &part, err);
	if (rc)
		return rc;
	int error = (int)wire_u32(&part);
	uint32_t mode = wire_u32(&part);
	st->is_file = !error && S_ISREG(mode);
	st->size = wire_u64(&part);
	st->blocks = wire_u64(&part);
	return guest_part_ok(&part, err);
}

/* Sends a command whose answer is an errno, and perhaps a number. */
static int far_call(struct target *t, enum agent_command command, const char *what,
		    uint64_t *number, struct err *err)
{
	struct wire_in part;
	int rc = guest_target_ask(t, command, &part, err);

	if (rc)
		return rc;
	int error = (int)wire_u32(&part);
	if (number)
		*number = wire_u64(&part);
	rc = guest_part_ok(&part, err);
	if (!rc && error)
		rc = err_set(err, -error, "%s in the guest: %s", what, strerror(error));
	return rc;
}

static int far_sync(struct target *t, struct err *err)
{
	guest_target_begin(t, AGENT_SYNC);
	return far_call(t, AGENT_SYNC, "it cannot be synced", NULL, err);
}

static int far_room(struct target *t, uint64_t *bytes, struct err *err)
{
	guest_target_begin(t, AGENT_ROOM);
	return far_call(t, AGENT_ROOM, "it does not say how much room it has", bytes, err);
}

static int far_fill(struct target *t, const char *name, uint64_t bytes, struct err *err)
{
	struct strbuf *out = guest_target_begin(t, AGENT_FILL);

	wire_put_text(out, name);
	wire_put_u64(out, bytes);
	int rc = far_call(t, AGENT_FILL, "room cannot be taken away", NULL, err);
	if (rc == -ENOSPC) {
		err_clear(err);
		rc = 0;
	}
	return rc;
}

/*
 * Finds a guest that runs and comes from that boot. Traced guests are tried first: a command of the
 * workload may have loaded a module there.
 */
static struct guest *find_boot(struct guest_target *g, uint64_t boot)
{
	for (size_t n = ARRAY_SIZE(g->guests), i = 1; i <= n; i++)
		if (boot && g->boots[i % n] == boot && guest_runs(&g->guests[i % n]))
			return &g->guests[i % n];
	return NULL;
}

static int far_symbols(struct target *t, uint64_t machine, struct strbuf *out, struct err *err)
{
	struct guest *at_hand = own(t)->guest, *asked = find_boot(own(t), machine);
	struct wire_in part;
	int rc = 0;

	/* The current guest may have ended; a restarted one may come from the same boot. */
	if (!asked && !guest_runs(at_hand)) {
		rc = own(t)->start(t, err);
		asked = find_boot(own(t), machine);
	}
	if (rc)
		return rc;
	if (!asked)
		return err_set(err, -ESTALE, "the machine that was traced is gone");
	own(t)->guest = asked;
	guest_target_begin(t, AGENT_SYMBOLS);
	rc = guest_target_ask(t, AGENT_SYMBOLS, &part, err);
	own(t)->guest = at_hand;
	if (rc)
		return rc;
	strbuf_adds(out, wire_text(&part));
	return guest_part_ok(&part, err);
}

static int far_command(struct target *t, const struct user_command *c, struct user_end *end,
		       struct err *err)
{
	struct wire_in part;
	size_t len;
	int rc = own(t)->shell ? 0 : check_shell("a command of --dump or --check", err);

	if (rc)
		return rc;
	own(t)->shell = true;
	struct strbuf *out = guest_target_begin(t, AGENT_USER);
	wire_put_text(out, c->text);
	wire_put_u32(out, (uint32_t)c->done);
	wire_put_text(out, c->operation);
	wire_put_bytes(out, c->input ? c->input : "", c->input_len);
	/* The guest's clock goes on while it waits for a processor of this machine. */
	uint64_t ms = (uint64_t)USER_TIMEOUT_MS * patience_factor(own(t)->guest->pid);
	wire_put_u64(out, ms);
	own(t)->guest->busy_ms = ms;
	rc = guest_target_ask(t, AGENT_USER, &part, err);
	own(t)->guest->busy_ms = 0;
	if (rc)
		return rc;
	end->ok = wire_u32(&part) == 1;
	end->cut = wire_u32(&part) != 0;
	strbuf_adds(&end->how, wire_text(&part));
	const unsigned char *bytes = wire_bytes(&part, &len);
	strbuf_add(&end->out, bytes, len);
	bytes = wire_bytes(&part, &len);
	strbuf_add(&end->err, bytes, len);
	return guest_part_ok(&part, err);
}

static struct tree_time get_time(struct wire_in *part)
{
	int64_t sec = (int64_t)wire_u64(part);

	return (struct tree_time){ sec, wire_u32(part) };
}

static int far_times(struct target *t, const char *const *paths, size_t n, struct check_stamp *to,
		     struct err *err)
{
	struct strbuf *out = guest_target_begin(t, AGENT_TIMES);
	struct wire_in part;

	wire_put_u32(out, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		wire_put_text(out, paths[i]);
	int rc = guest_target_ask(t, AGENT_TIMES, &part, err);
	for (size_t i = 0; !rc && i < n; i++) {
		to[i].known = !wire_u32(&part);
		to[i].mtime = get_time(&part);
		to[i].ctime = get_time(&part);
	}
	return rc ? rc : guest_part_ok(&part, err);
}

int guest_target_freeze(struct target *t, struct err *err)
{
	guest_target_begin(t, AGENT_FREEZE);
	return far_call(t, AGENT_FREEZE, "it cannot be frozen", NULL, err);
}

int guest_target_thaw(struct target *t, struct err *err)
{
	guest_target_begin(t, AGENT_THAW);
	return far_call(t, AGENT_THAW, "it cannot be thawed", NULL, err);
}

const struct target_far guest_far = {
	.begin = far_begin,
	.op = far_op,
	.end = far_end,
	.walk = far_walk,
	.usable = far_usable,
	.stat = far_stat,
	.sync = far_sync,
	.room = far_room,
	.fill = far_fill,
	.symbols = far_symbols,
	.command = far_command,
	.times = far_times,
};
