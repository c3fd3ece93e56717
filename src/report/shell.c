/* SPDX-License-Identifier: MIT */
/*
 * shell.c - fills in the shell forms of operations, and quotes words for a shell.
 *
 * ops.def has the command for most operations. In it,
 *	%pN  argument N, a path (of a handle: the one it was opened with)
 *	%nN  a number		%mN  a mode, octal	%dN  a device number: major, minor
 *	%tN  a text		%xN  a text, as setfattr takes it
 *	%sN  flags of a write	%i   the operation's number	%b  a byte that stands for it
 */
#include "report/shell.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* ---- words ---- */

void shell_quote(struct strbuf *out, const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+@:,=";

	if (*text && strspn(text, plain) == strlen(text)) {
		strbuf_adds(out, text);
		return;
	}
	strbuf_addch(out, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			strbuf_adds(out, "'\\''");
		else
			strbuf_addch(out, *text);
	}
	strbuf_addch(out, '\'');
}

void shell_clean(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\n' || c == '\t')
			strbuf_addch(out, ' ');
		else if (c < 0x20 || c == 0x7f)
			strbuf_addf(out, "\\x%02x", c);
		else
			strbuf_addch(out, (char)c);
	}
}

void shell_addf(struct strbuf *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf_by(out, shell_quote, fmt, ap);
	va_end(ap);
}

void shell_notef(struct strbuf *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf_by(out, shell_clean, fmt, ap);
	va_end(ap);
}

void shell_put_judge(struct strbuf *out, const char *status, const char *words)
{
	auto_strbuf clean = STRBUF_INIT;

	shell_clean(&clean, words);
	strbuf_addf(out, "judge %s ", status);
	shell_addf(out, "%s\n", strbuf_str(&clean));
}

void shell_comment(const struct op *op, struct strbuf *out)
{
	strbuf_adds(out, "# ");
	op_print(op, out);
	strbuf_addch(out, '\n');
}

void shell_command(struct strbuf *out, uint64_t timeout_ms, const char *command, const char *name)
{
	shell_addf(out, "timeout -s KILL %llu sh -c %s", llu(max(timeout_ms / 1000, (uint64_t)1)),
		   command);
	strbuf_addf(out, " sh \"$%s\"", name);
}

void shell_head(struct strbuf *out, bool ours, const char *title, const char *what,
		const char *command)
{
	strbuf_adds(out, "#!/bin/sh\n");
	shell_strange(ours, "# ", out);
	shell_notef(out,
		    "# %s\n#\n# What a power cut can leave of the %s that this wrote:\n#   %s\n",
		    title, what, command);
}

/* Returns the path with which a handle was opened, before operation `i`. */
static const char *handle_path(const struct workload *w, size_t i, const char *name)
{
	while (i-- > 0)
		if (w->ops.v[i].handle && streq(w->ops.v[i].handle, name))
			return w->ops.v[i].args[0].text;
	return name;
}

static void put_path(const struct workload *w, size_t i, size_t arg, enum shell_dialect d,
		     struct strbuf *out)
{
	const struct arg *a = &w->ops.v[i].args[arg];
	const char *path = a->is_handle ? handle_path(w, i, a->text) : a->text;

	if (d == SHELL_XFSTESTS)
		strbuf_adds(out, "$SCRATCH_MNT/");
	else if (*path == '-')
		strbuf_adds(out, "./");
	shell_quote(out, path);
}

/* Puts a value: a plain word as it is, any other in hexadecimal, which setfattr decodes. */
static void put_value(struct strbuf *out, const char *text)
{
	size_t len = strlen(text);
	bool plain = len && isalpha((unsigned char)*text);

	for (size_t i = 0; i < len; i++)
		plain &= isalnum((unsigned char)text[i]) != 0;
	if (plain) {
		strbuf_adds(out, text);
		return;
	}
	strbuf_adds(out, "0x");
	for (size_t i = 0; i < len; i++)
		strbuf_addf(out, "%02x", (unsigned char)text[i]);
}

static void put_write_flags(const struct arg *a, enum shell_dialect d, struct strbuf *out)
{
	if (d == SHELL_PLAIN)
		strbuf_adds(out, a->num & WRITE_SYNC	? ",sync"
				 : a->num & WRITE_DSYNC ? ",dsync"
							: "");
	else if (a->num & (WRITE_SYNC | WRITE_DSYNC))
		strbuf_adds(out, " -s");
}

/* ---- commands ---- */

static void fill_in(const char *form, const struct workload *w, size_t i, enum shell_dialect d,
		    struct strbuf *out)
{
	const struct op *op = &w->ops.v[i];

	for (; *form; form++) {
		if (*form != '%') {
			strbuf_addch(out, *form);
			continue;
		}
		char what = *++form;
		size_t n = what == 'i' || what == 'b' ? 0 : (size_t)(*++form - '0');

		assert(n < OP_ARGS_MAX);
		if (what == 'p')
			put_path(w, i, n, d, out);
		else if (what == 'n')
			strbuf_addu(out, op->args[n].num);
		else if (what == 'm')
			strbuf_addf(out, "%04o", (unsigned)op->args[n].num);
		else if (what == 'd')
			strbuf_addf(out, "%u %u", major((dev_t)op->args[n].num),
				    minor((dev_t)op->args[n].num));
		else if (what == 't')
			shell_quote(out, op->args[n].text);
		else if (what == 'x')
			put_value(out, op->args[n].text);
		else if (what == 's')
			put_write_flags(&op->args[n], d, out);
		else if (what == 'i')
			strbuf_addu(out, i);
		else
			strbuf_addf(out, "0x%02x", (unsigned)(0x61 + i % 26));
	}
}

static void put_skip(const struct workload *w, size_t i, struct strbuf *out)
{
	auto_strbuf text = STRBUF_INIT;

	op_print(&w->ops.v[i], &text);
	shell_addf(out, "skip %s", strbuf_str(&text));
}

static const char *open_form(const struct op *op)
{
	unsigned flags = (unsigned)op->args[1].num;

	if ((flags & O_TMPFILE) == O_TMPFILE)
		return NULL;
	if (flags & O_TRUNC)
		return ": >%p0";
	return flags & O_CREAT ? ": >>%p0" : "test -e %p0";
}

static const char *rename_form(const struct op *op)
{
	switch (op_words(op, rename_words)) {
	case 0:
		return "mv -f -T %p0 %p1";
	case RENAME_W_NOREPLACE:
		return "mv -n -T %p0 %p1";
	}
	return NULL;
}

static const char *rename_xfstests(const struct op *op)
{
	switch (op_words(op, rename_words)) {
	case 0:
		return "mv -f -T %p0 %p1";
	case RENAME_W_NOREPLACE:
		return "$here/src/renameat2 -n %p0 %p1";
	case RENAME_W_EXCHANGE:
		return "$here/src/renameat2 -x %p0 %p1";
	case RENAME_W_WHITEOUT:
		return "$here/src/renameat2 -w %p0 %p1";
	}
	return NULL;
}

static const char *mknod_form(const struct op *op)
{
	switch (op->args[1].num) {
	case S_IFIFO:
		return "mkfifo -m 0644 %p0";
	case S_IFREG:
		return ": >%p0";
	case S_IFCHR:
		return "mknod -m 0644 %p0 c %d2";
	case S_IFBLK:
		return "mknod -m 0644 %p0 b %d2";
	}
	return NULL;
}

static const char *mmap_xfstests(const struct op *op)
{
	if (op->args[3].num & MMAP_NOSYNC)
		return "$XFS_IO_PROG -f -c \"falloc %n1 %n2\" -c \"mmap -rw %n1 %n2\" -c \"mwrite "
		       "-S %b %n1 %n2\" %p0";
	return "$XFS_IO_PROG -f -c \"falloc %n1 %n2\" -c \"mmap -rw %n1 %n2\" -c \"mwrite -S %b "
	       "%n1 %n2\" -c \"msync -s %n1 %n2\" %p0";
}

#define FALLOCATE(options) "fallocate" options " -o %n2 -l %n3 %p0"
#define XFS_IO(command)	   "$XFS_IO_PROG -c \"" command " %n2 %n3\" %p0"

static const struct falloc_forms {
	unsigned mode;
	const char *plain, *xfstests;
} falloc_forms[] = {
	{ 0, FALLOCATE(""), XFS_IO("falloc") },
	{ FALLOC_FL_KEEP_SIZE, FALLOCATE(" -n"), XFS_IO("falloc -k") },
	{ FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOCATE(" -p"), XFS_IO("fpunch") },
	{ FALLOC_FL_ZERO_RANGE, FALLOCATE(" -z"), XFS_IO("fzero") },
	{ FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, FALLOCATE(" -z -n"), XFS_IO("fzero -k") },
	{ FALLOC_FL_COLLAPSE_RANGE, FALLOCATE(" -c"), XFS_IO("fcollapse") },
	{ FALLOC_FL_INSERT_RANGE, FALLOCATE(" -i"), XFS_IO("finsert") },
	{ FALLOC_FL_UNSHARE_RANGE, NULL, XFS_IO("funshare") },
	{ UINT_MAX, NULL, NULL }, /* any other mode */
};

static const struct falloc_forms *falloc_forms_of(const struct op *op)
{
	const struct falloc_forms *f = falloc_forms;

	while (f->mode != UINT_MAX && f->mode != op_words(op, op_falloc_words))
		f++;
	return f;
}

static const char *falloc_form(const struct op *op)
{
	return falloc_forms_of(op)->plain;
}

static const char *falloc_xfstests(const struct op *op)
{
	return falloc_forms_of(op)->xfstests;
}

/* A form without any member: no command does the same. */
struct form {
	const char *text;
	const char *(*by)(const struct op *op); /* NULL from it: these arguments have none */
	bool one_call;
};

static const struct {
	struct form plain, xfstests;
} forms[OP_COUNT] = {
#define SHELL(text_)					       .plain = { .text = text_ }
#define SHELL_CALL(text_)				       .plain = { .text = text_, .one_call = true }
#define SHELL_BY(function)				       .plain = { .by = function }
#define SHELL_NONE					       .plain = { .text = NULL }
#define XFSTESTS(text_, ...)				       .xfstests = { .text = text_ }
#define XFSTESTS_BY(function, ...)			       .xfstests = { .by = function }
#define XFSTESTS_NONE					       .xfstests = { .text = NULL }
#define OP(name, help, args, is, weight, shell, xfstests, ...) [OP_ID(name)] = { shell, xfstests },
#include "workload/ops.def"
};

bool shell_is_one_call(const struct op *op)
{
	return forms[op_id(op->def)].plain.one_call;
}

void shell_op(const struct workload *w, size_t i, enum shell_dialect d, struct strbuf *out)
{
	const struct op *op = &w->ops.v[i];
	const struct form *f = d == SHELL_PLAIN ? &forms[op_id(op->def)].plain
						: &forms[op_id(op->def)].xfstests;
	const char *form = f->by ? f->by(op) : f->text;

	if (form)
		fill_in(form, w, i, d, out);
	else
		put_skip(w, i, out);
	strbuf_addch(out, '\n');
}

/* ---- the finding ---- */

static void put_flight(const struct view_crash *c, const char *where, struct strbuf *out)
{
	const struct crash_state *s = &c->state;
	size_t n = s->lost.n + s->torn.n + s->survived.n;

	strbuf_addf(out, "# Of %llu %s in flight%s, %llu %s lost and %zu torn%s.\n",
		    COUNT_S(n, "write"), where, COUNT(s->lost.n, "was", "were"), s->torn.n,
		    view_torn_into(s).text);
}

void shell_strange(bool ours, const char *begin, struct strbuf *out)
{
	if (!ours)
		strbuf_addf(out,
			    "%sNOT VERIFIED: this comes from a finding that was not made by the "
			    "user who\n%sexported it, on his machine. Its commands, and its disk, "
			    "may be hostile: read it\n%sbefore it is run.\n%.*s\n",
			    begin, begin, begin, (int)(strlen(begin) - 1), begin);
}

void shell_finding(const struct view *v, struct strbuf *out)
{
	vec_each(p, &v->c.problems) {
		const char *joint, *reason = view_problem_reason(p, &joint);

		shell_notef(out, "# %s\n", p->words);
		if (*reason)
			shell_notef(out, "#   %s %s\n", joint, reason);
	}
	shell_notef(out, "# Found on %s, Linux %s.\n", v->c.target,
		    v->c.kernel ? v->c.kernel : "(unknown)");
	if (stored_case_has_start(&v->c))
		strbuf_adds(out, "# It begins with the disk start.img: DIR is where a copy of it "
				 "is mounted.\n");
	if (v->crash.has_state)
		put_flight(&v->crash, "", out);
	if (!v->second.has_state)
		return;
	strbuf_adds(out, "# Then the power failed a second time, while the file system recovered "
			 "from the\n# first.\n");
	put_flight(&v->second, " of that recovery", out);
}

/* ---- facts of an entry ---- */

bool shell_has_control(const char *path)
{
	for (; *path; path++)
		if ((unsigned char)*path < 0x20 || *path == 0x7f)
			return true;
	return false;
}

/* Returns the POSIX checksum: every system has cksum(1). */
static uint32_t checksum(const unsigned char *data, size_t len)
{
	uint32_t crc = 0;
	size_t rest = len;

	for (size_t i = 0; i < len || rest; i++) {
		uint32_t byte = i < len ? data[i] : rest & 0xff;

		if (i >= len)
			rest >>= 8;
		crc ^= byte << 24;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 0x80000000 ? crc << 1 ^ 0x04c11db7 : crc << 1;
	}
	return ~crc;
}

bool shell_cksum(const struct tree_entry *e, struct strbuf *out)
{
	if (e->error || (e->size && !e->content))
		return false;
	strbuf_addf(out, "%u %llu", checksum(e->content, e->size), llu(e->size));
	return true;
}

/* Adds the attributes that workloads set, as the function `xattrs` prints them. */
void shell_xattrs(const struct tree_entry *e, struct strbuf *out)
{
	for (size_t i = 0; i < e->n_xattrs; i++) {
		const struct tree_xattr *x = &e->xattrs[i];
		const unsigned char *value = x->value;

		if (strncmp(x->name, "user.", 5) != 0 && strncmp(x->name, "trusted.", 8) != 0)
			continue;
		strbuf_addf(out, "%s%s=0x", out->len ? "\n" : "", x->name);
		for (size_t k = 0; k < x->len; k++)
			strbuf_addf(out, "%02x", value[k]);
	}
}

/* The letters that find(1) prints. */
static const char type_letters[TREE_TYPE_END] = { '?', 'f', 'd', 'l', 'p', 'c', 'b', 's' };

void shell_facts(const struct tree_entry *e, struct strbuf *out)
{
	auto_strbuf sum = STRBUF_INIT, xattrs = STRBUF_INIT;

	strbuf_addf(out, "%c %o %u:%u", type_letters[e->type], e->mode, e->uid, e->gid);
	if (e->type == TREE_FILE)
		strbuf_addf(out, " %llu bytes", llu(e->size));
	if (e->type != TREE_DIR)
		strbuf_addf(out, " links=%llu", llu(e->nlink));
	if (e->type == TREE_SYMLINK)
		strbuf_addf(out, " -> %s", e->target ? e->target : "");
	if (e->type == TREE_FILE && shell_cksum(e, &sum))
		strbuf_addf(out, " cksum=%.*s", (int)strcspn(sum.buf, " "), sum.buf);
	shell_xattrs(e, &xattrs);
	for (const char *c = strbuf_str(&xattrs); *c; c++)
		strbuf_addf(out, "%s%c", c == xattrs.buf ? " " : "", *c == '\n' ? ' ' : *c);
}

bool shell_value(enum finding_kind kind, const struct tree_entry *e, const char **what,
		 struct strbuf *value)
{
	switch (kind) {
	case FINDING_TYPE:
		*what = "type";
		strbuf_addch(value, type_letters[e->type]);
		return true;
	case FINDING_SIZE:
		*what = "size";
		strbuf_addu(value, e->size);
		return true;
	case FINDING_CONTENT:
		*what = "content";
		return shell_cksum(e, value);
	case FINDING_MODE:
		*what = "mode";
		strbuf_addf(value, "%o", e->mode);
		return true;
	case FINDING_OWNER:
		*what = "owner";
		strbuf_addf(value, "%u:%u", e->uid, e->gid);
		return true;
	case FINDING_XATTR:
		*what = "xattrs";
		shell_xattrs(e, value);
		return true;
	case FINDING_TARGET:
		*what = "target";
		strbuf_adds(value, e->target ? e->target : "");
		return true;
	case FINDING_RDEV:
		*what = "device";
		strbuf_addf(value, "%x:%x", e->rdev_major, e->rdev_minor);
		return true;
	case FINDING_BLOCKS:
		*what = "blocks";
		strbuf_addu(value, e->blocks);
		return true;
	default:
		return false;
	}
}

DEFINE_ORDER(by_path, struct tree_entry *, strcmp((*a)->path, (*b)->path))

void shell_listing(const struct view *v, const struct tree *t, struct strbuf *out)
{
	auto_vec struct vec_of(const struct tree_entry *) list = { 0 };

	vec_each(e, &t->entries) {
		if (*e->path && !shell_has_control(e->path))
			vec_push(&list, e);
	}
	vec_sort(&list, by_path);
	for (size_t i = 0; i < list.n; i++) {
		auto_strbuf facts = STRBUF_INIT;

		shell_facts(list.v[i], &facts);
		strbuf_addf(out, "%c %s", view_about(v, list.v[i]->path) ? '*' : ' ',
			    list.v[i]->path);
		/* The target of a link may have any byte, even a newline. */
		shell_notef(out, ": %s\n", strbuf_str(&facts));
	}
}

void shell_base64(struct strbuf *out, const unsigned char *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)data[i] << 16 |
			     (i + 1 < len ? (uint32_t)data[i + 1] << 8 : 0) |
			     (i + 2 < len ? data[i + 2] : 0);

		strbuf_addch(out, digits[v >> 18]);
		strbuf_addch(out, digits[v >> 12 & 63]);
		strbuf_addch(out, i + 1 < len ? digits[v >> 6 & 63] : '=');
		strbuf_addch(out, i + 2 < len ? digits[v & 63] : '=');
		if (i % 57 == 54)
			strbuf_addch(out, '\n');
	}
	strbuf_addch(out, '\n');
}

void shell_page(struct strbuf *out, const char *arg, uint64_t n, const unsigned char *data,
		size_t len)
{
	strbuf_addf(out, "page %s%llu <<'END'\n", arg, llu(n));
	shell_base64(out, data, len);
	strbuf_adds(out, "END\n");
}
