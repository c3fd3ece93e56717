/* SPDX-License-Identifier: MIT */
/* app_export.c - exports a crash state of an application for people without this program. */
#include <errno.h>

#include "report/app_report.h"
#include "app/app_words.h"
#include "report/shell.h"

enum { CONTENT_MAX = 64 << 20 };

struct exporting {
	const struct reffs_state *s;
	struct strbuf *out;
	struct strbuf path;
	uint64_t bytes;
	struct vec_of(struct first_name {
		uint64_t ino;
		char *path;
	}) linked; /* files with several names, by their first name */
};

/* ---- content ---- */

/* Adds the pages of a file except those of zeros; truncate makes the file long enough. */
static void add_content(struct exporting *x, const struct reffs_inode *inode, uint64_t size)
{
	auto_strbuf file = STRBUF_INIT;

	shell_addf(&file, "%s ", strbuf_str(&x->path));
	for (uint64_t n = 0; n * REFFS_PAGE < size; n++) {
		const unsigned char *page = reffs_page(inode, n);
		size_t len = (size_t)min(size - n * REFFS_PAGE, (uint64_t)REFFS_PAGE);

		if (!page)
			continue;
		x->bytes += len;
		shell_page(x->out, strbuf_str(&file), n, page, len);
	}
	shell_addf(x->out, "truncate -s %llu -- %s\n", llu(size), strbuf_str(&x->path));
}

/* ---- names ---- */

static void command(struct exporting *x, const char *words, const char *argument)
{
	strbuf_adds(x->out, words);
	if (argument)
		shell_addf(x->out, "%s ", argument);
	shell_addf(x->out, "%s\n", strbuf_str(&x->path));
}

static const char *linked_to(const struct exporting *x, uint64_t ino)
{
	for (size_t i = 0; i < x->linked.n; i++)
		if (x->linked.v[i].ino == ino)
			return x->linked.v[i].path;
	return NULL;
}

static int add_entry(void *ctx, const char *name, uint64_t ino);

static int add_made(struct exporting *x, const struct reffs_inode *inode,
		    const struct reffs_attr *a)
{
	char words[64];
	int rc = 0;

	switch (a->type) {
	case TREE_DIR:
		command(x, "mkdir -p -- ", NULL);
		rc = reffs_entries(inode, add_entry, x);
		break;
	case TREE_FILE:
		add_content(x, inode, a->size);
		break;
	case TREE_SYMLINK:
		command(x, "ln -s -- ", a->target);
		return 0;
	case TREE_FIFO:
		command(x, "mkfifo -- ", NULL);
		break;
	default:
		strbuf_adds(x->out, "# a device or a socket is left out\n");
		return 0;
	}
	snprintf(words, sizeof(words), "chown %u:%u -- ", a->uid, a->gid);
	command(x, words, NULL);
	snprintf(words, sizeof(words), "chmod %04o -- ", a->mode);
	command(x, words, NULL);
	return rc ? rc : x->bytes > CONTENT_MAX ? -EFBIG : 0;
}

static int add_entry(void *ctx, const char *name, uint64_t ino)
{
	struct exporting *x = ctx;
	const struct reffs_inode *inode = reffs_inode(x->s, ino);
	size_t len = x->path.len;
	struct reffs_attr a;
	int rc = 0;

	reffs_attr(inode, &a);
	strbuf_addf(&x->path, "/%s", name);
	const char *known = linked_to(x, ino);
	if (known) {
		command(x, "ln -- ", known);
	} else {
		if (a.type != TREE_DIR && a.nlink > 1)
			vec_push(&x->linked,
				 (struct first_name){ ino, xstrdup(strbuf_str(&x->path)) });
		rc = add_made(x, inode, &a);
	}
	strbuf_cut(&x->path, len);
	return rc;
}

static void add_head(const struct app_view *v, const struct app_case *c, struct strbuf *out)
{
	shell_head(out, v->plan->ours, c->title, "directory", v->plan->run);
	if (v->outer)
		shell_notef(out,
			    "# and what came after a first power cut had begun to bring up "
			    "again:\n#   %s\n",
			    app_plan_restarts(v->plan));
	strbuf_adds(out, app_export_head);
}

static void add_lines(struct strbuf *out, const struct words *lines, uint64_t n, const char *file)
{
	for (uint64_t i = 0; lines && i < n && i < lines->n; i++)
		shell_addf(out, "printf '%%s\\n' %s >>\"$%s\"\n", lines->v[i], file);
}

/* Compares the lines of a query as judge.c does. */
static void add_compare(const struct app_view *v, struct strbuf *out)
{
	strbuf_adds(out, app_export_acked);
	if (!v->shown)
		return;
	strbuf_adds(out, "# And none that the run never showed.\nknown=$(mktemp)\n");
	add_lines(out, v->shown, UINT64_MAX, "known");
	add_lines(out, v->acks, UINT64_MAX, "known");
	strbuf_adds(out, app_export_shown);
}

static void add_tail(const struct app_view *v, const struct app_case *c, struct strbuf *out)
{
	const struct app_plan *p = v->plan;
	const char *how = app_plan_command(p);
	const char *asks = app_plan_asks(p);

	strbuf_adds(out, "[ \"${2:-}\" = check ] || exit 0\n"
			 "OUTAGE_DIR=$PWD OUTAGE_ACKED=$(mktemp)\n");
	strbuf_addf(out, "OUTAGE_CRASH_POINT=%llu\n", llu(c->point));
	strbuf_adds(out, "export OUTAGE_DIR OUTAGE_ACKED OUTAGE_CRASH_POINT\n");
	add_lines(out, v->acks, c->acks, "OUTAGE_ACKED");
	if (p->restart && how != p->restart) {
		shell_command(out, p->timeout_ms, p->restart, "OUTAGE_DIR");
		strbuf_adds(out,
			    "\nstatus=$?\n[ $status = 0 ] || "
			    "{ echo \"the restart ended with status $status\"; exit $status; }\n");
	}
	if (p->query)
		strbuf_adds(out, "out=$(mktemp)\n");
	shell_command(out, p->timeout_ms, how, "OUTAGE_DIR");
	strbuf_adds(out, p->query ? " >\"$out\"\n" : "\n");
	strbuf_adds(out, "status=$?\n");
	strbuf_addf(out, "echo \"the %s ended with status $status\"\n", asks);
	if (p->query) {
		strbuf_adds(out, "cat \"$out\"\n");
		add_compare(v, out);
		strbuf_adds(out, "rm -f \"$out\"\n");
	}
	strbuf_addf(out,
		    "rm -f \"$OUTAGE_ACKED\"\n"
		    "[ $status = 0 ] && echo \"it does not show: the %s is content\"\n"
		    "exit $status\n",
		    asks);
}

int app_export_script(const struct app_view *v, const struct app_case *c, struct strbuf *out,
		      struct err *err)
{
	struct app_state s = { 0 };
	int rc = states_replay(v->h, case_state_within(c->state), &s, err);

	if (rc)
		return rc;
	struct exporting x = { .s = s.tree, .out = out };
	strbuf_adds(&x.path, ".");
	add_head(v, c, out);
	rc = reffs_entries(reffs_inode(s.tree, REFFS_ROOT_INO), add_entry, &x);
	if (rc)
		err_set(err, rc, "the crash directory has more than %d MiB: too much for a script",
			CONTENT_MAX >> 20);
	add_tail(v, c, out);
	vec_release_each(p, &x.linked, free(p->path));
	strbuf_release(&x.path);
	app_state_release(&s);
	return rc;
}

/* ---- LazyFS ---- */

static const struct posix_call *call_at(const struct posix_log *log, const char *event)
{
	uint64_t n = strtoull(event, NULL, 10);

	return vec_find(i, &log->calls, log->calls.v[i].event == n);
}

static void add_toml(struct strbuf *out, const char *key, const char *value)
{
	strbuf_addf(out, "%s = \"", key);
	for (; *value; value++) {
		if ((unsigned char)*value < 0x20 || *value == 0x7f) {
			strbuf_addf(out, "\\u%04x", (unsigned char)*value);
			continue;
		}
		if (*value == '"' || *value == '\\')
			strbuf_addch(out, '\\');
		strbuf_addch(out, *value);
	}
	strbuf_adds(out, "\"\n");
}

/* True if only writes are lost: LazyFS loses all unsynced data, but never names. */
static bool only_data(const struct app_view *v, const struct app_case *c)
{
	for (size_t i = 0; i < c->lost.n; i++) {
		const struct posix_call *call = call_at(v->log, c->lost.v[i]);

		if (!call || call->op != POSIX_WRITE || strchr(c->lost.v[i], ' '))
			return false;
	}
	return c->lost.n > 0;
}

/* Returns the sync after a write, with which the write survives; NULL if there is none. */
static const struct posix_call *sync_of(const struct app_view *v, const struct posix_call *write)
{
	const struct posix_call *end = v->log->calls.v + v->log->calls.n;

	for (const struct posix_call *c = write + 1; c < end; c++)
		if (c->file == write->file && posix_op_syncs_file(c->op) && c->result >= 0)
			return c;
	return NULL;
}

/* Returns a call's occurrence as faults count it: every sync of a file counts as an fsync. */
static uint64_t occurrence_of(const struct app_view *v, const struct posix_call *call)
{
	uint64_t n = 1;

	if (!posix_op_syncs_file(call->op))
		return max(call->occurrence, (uint64_t)1);
	for (const struct posix_call *c = v->log->calls.v; c < call; c++)
		n += posix_op_syncs_file(c->op) && c->path && streq(c->path, call->path);
	return n;
}

bool app_export_lazyfs(const struct app_view *v, const struct app_case *c, struct strbuf *out)
{
	const struct posix_call *b = c->after.n ? call_at(v->log, c->after.v[0]) : NULL;

	if (v->outer) /* a fault cannot act in a restart */
		return false;
	if (b && posix_op_is_data(b->op))
		b = sync_of(v, b);
	if (!only_data(v, c) || !b || !b->path)
		return false;
	shell_notef(out, "# %s", c->title);
	strbuf_adds(out,
		    "\n# For LazyFS, or outage mount --config: at this operation the power goes "
		    "out, and what was\n# written and not synced is lost.\n[[injection]]\n"
		    "type = \"clear-cache\"\ntiming = \"after\"\ncrash = true\n");
	add_toml(out, "op", posix_op_syncs_file(b->op) ? "fsync" : posix_op_name(b->op));
	add_toml(out, "from", b->path);
	if (b->path2)
		add_toml(out, "to", b->path2);
	strbuf_addf(out, "occurrence = %llu\n", llu(occurrence_of(v, b)));
	return true;
}
