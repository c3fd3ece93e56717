/* SPDX-License-Identifier: MIT */
/*
 * program.c - exports the workload as a C program with plain system calls.
 *
 * The program is made of the parts that its operations need, in the order of `parts`, and a main()
 * with one call for each, which ops.def has. In it,
 *	%FN  argument N, a file: "-1, path" or "handle, NULL"
 *	%PN  a path or a text	%nN  a number	%mN  a mode, octal	%wN  flags of a write
 *	%h   the handle the operation makes, or names	%i  the operation's number
 */
#include <sys/stat.h>

#include "report/live.h"
#include "report/report.h"
#include "report/shell.h"
#include "workload/content.h"

enum part {
	PART_FILE = 1 << 0,
	PART_CONTENT = 1 << 1,
	PART_WRITE = 1 << 2,
	PART_MMAP = 1 << 3,
	PART_ON_FILE = 1 << 4,
	PART_RENAME = 1 << 5,
	PART_READ = 1 << 6,
	PART_COPY = 1 << 7,
	PART_CLONE = 1 << 8,
	PART_REMOVE = 1 << 9,
	PART_MADE = 1 << 10,
	PART_SYNC = 1 << 11,
	PART_DROP = 1 << 12,
	PART_TIMES = 1 << 13,
	PART_MSYNC = 1 << 14,
};

static const struct {
	unsigned part;
	const char *source;
} parts[] = {
	{ PART_FILE, program_file },	   { PART_MADE, program_made },
	{ PART_CONTENT, program_content }, { PART_WRITE, program_write },
	{ PART_MMAP, program_mmap },	   { PART_MSYNC, program_msync },
	{ PART_ON_FILE, program_on_file }, { PART_RENAME, program_rename },
	{ PART_READ, program_read },	   { PART_COPY, program_copy },
	{ PART_CLONE, program_clone },	   { PART_REMOVE, program_remove },
	{ PART_SYNC, program_sync },	   { PART_DROP, program_drop },
	{ PART_TIMES, program_times },
};

#define ON_FILE_PARTS (PART_FILE | PART_ON_FILE)
#define WRITE_PARTS   (PART_FILE | PART_CONTENT | PART_WRITE)

static const struct {
	unsigned parts;
	const char *call;
} calls[OP_COUNT] = {
#define PROGRAM(parts_, call_)					   .parts = parts_, .call = call_
#define OP(name, help, args, is, weight, shell, xfstests, program) [OP_ID(name)] = { program },
#include "workload/ops.def"
};

/* ---- pieces of C ---- */

static void put_string(struct strbuf *out, const char *text)
{
	strbuf_addch(out, '"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			strbuf_addf(out, "\\%c", c);
		else if (c >= 0x20 && c < 0x7f && c != '?')
			strbuf_addch(out, (char)c);
		else
			strbuf_addf(out, "\\%03o", c); /* three digits: the rest is apart */
	}
	strbuf_addch(out, '"');
}

/* Adds text to a comment: "*" and "/" together would end, or begin, one. */
static void put_comment(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		strbuf_addch(out, c < 0x20 || c > 0x7e ? '?' : (char)c);
		if ((c == '*' && text[1] == '/') || (c == '/' && text[1] == '*'))
			strbuf_addch(out, ' ');
	}
}

static size_t handle_number(const struct workload *w, const char *name)
{
	size_t i = 0;

	while (i < w->handles.n && !streq(w->handles.v[i].name, name))
		i++;
	return i;
}

static void put_file(const struct workload *w, const struct arg *a, struct strbuf *out)
{
	if (a->is_handle) {
		strbuf_addf(out, "h%zu, NULL", handle_number(w, a->text));
		return;
	}
	strbuf_adds(out, "-1, ");
	put_string(out, a->text);
}

static void put_write_flags(const struct arg *a, bool open, struct strbuf *out)
{
	const char *kind = a->num & WRITE_SYNC ? "SYNC" : a->num & WRITE_DSYNC ? "DSYNC" : NULL;

	if (open && kind)
		strbuf_addf(out, " | O_%s", kind);
	if (!open && kind)
		strbuf_addf(out, "RWF_%s", kind);
	if (!open && !kind)
		strbuf_addch(out, '0');
}

static void put_arg(const struct workload *w, size_t i, char what, size_t n, struct strbuf *out)
{
	const struct op *op = &w->ops.v[i];
	const struct arg *a = &op->args[n];

	switch (what) {
	case 'F':
		put_file(w, a, out);
		break;
	case 'P':
		put_string(out, a->text);
		break;
	case 'n':
		strbuf_addu(out, a->num);
		break;
	case 'm':
		strbuf_addf(out, "0%o", (unsigned)a->num);
		break;
	case 'w':
	case 'o':
		put_write_flags(a, what == 'o', out);
		break;
	case 'h':
		strbuf_addf(out, "h%zu", handle_number(w, op->handle ? op->handle : a->text));
		break;
	case 'i':
		strbuf_addu(out, i);
		break;
	default:
		assert(!"a form with an unknown letter");
	}
}

static void put_call(const struct workload *w, size_t i, const char *form, struct strbuf *out)
{
	for (; *form; form++) {
		if (*form != '%') {
			strbuf_addch(out, *form);
			continue;
		}
		char what = *++form;
		size_t n = what == 'h' || what == 'i' ? 0 : (size_t)(*++form - '0');

		put_arg(w, i, what, n, out);
	}
}

/* ---- the program ---- */

static void put_status(const struct live *l, struct strbuf *out)
{
	if (l->kind == LIVE_NONE)
		strbuf_adds(out, " * Exit status: 0 if every operation returned what it returned "
				 "then, else 1. It does not\n * tell whether the problem shows: "
				 "reproduce.sh does.\n");
	else if (l->kind == LIVE_UNSEEN)
		strbuf_adds(out, " * It does the operations, and cannot tell whether the problem "
				 "shows: look for it.\n * Exit status: 2.\n");
	else
		strbuf_adds(out, " * Exit status: 1 if the problem shows, 0 if all is as it should "
				 "be, 2 if it cannot\n * be told.\n");
}

static void put_head(const struct view *v, const struct live *l, struct strbuf *out)
{
	strbuf_adds(out, "/*\n");
	shell_strange(v->c.ours, " * ", out);
	strbuf_adds(out, " * workload.c - does in a directory what a workload did before this was "
			 "found:\n *\n");
	for (size_t i = 0; i < v->c.problems.n; i++) {
		strbuf_adds(out, " *   ");
		put_comment(out, v->c.problems.v[i].words);
		const char *joint, *reason = view_problem_reason(&v->c.problems.v[i], &joint);

		if (*reason) {
			strbuf_addf(out, "\n *     %s ", joint);
			put_comment(out, reason);
		}
		strbuf_addch(out, '\n');
	}
	strbuf_adds(out, " *\n * on ");
	put_comment(out, v->c.target);
	strbuf_adds(out, ", Linux ");
	put_comment(out, v->c.kernel ? v->c.kernel : "(unknown)");
	if (v->second.has_trace)
		strbuf_adds(out, ", where the power failed a second time during recovery");
	if (stored_case_has_start(&v->c))
		strbuf_adds(out,
			    ".\n *\n * It begins with the disk start.img: DIR is where a copy of "
			    "it is mounted");
	strbuf_adds(out, ".\n *\n * gcc -Wall -o workload workload.c && ./workload DIR\n *\n");
	put_status(l, out);
	strbuf_adds(out, " */\n");
	strbuf_adds(out, program_head);
	strbuf_addf(out, "#define TAG %uULL\n\n", content_tag(&v->c.workload));
	strbuf_adds(out, program_say);
}

static void put_parts(const struct workload *w, struct strbuf *out)
{
	unsigned needed = 0;

	for (size_t i = 0; i < w->ops.n; i++)
		needed |= calls[op_id(w->ops.v[i].def)].parts;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].part & needed)
			strbuf_adds(out, parts[i].source);
}

static void put_operation(const struct view *v, size_t i, struct strbuf *out)
{
	const struct workload *w = &v->c.workload;
	auto_strbuf text = STRBUF_INIT;
	int32_t then = 0;

	op_print(&w->ops.v[i], &text);
	strbuf_adds(out, "\tgot = ");
	put_call(w, i, calls[op_id(w->ops.v[i].def)].call, out);
	strbuf_addf(out, ";\n\tsay(%zu, ", i);
	put_string(out, strbuf_str(&text));
	if (view_result(v, i, &then))
		strbuf_addf(out, ", got, %d);\n", then);
	else
		strbuf_adds(out, ", got, got);\n");
	if (!stored_case_live(&v->c) && i + 1 == v->c.done)
		strbuf_adds(out, "\t/* ---- the power fails about here ---- */\n");
}

/* ---- the final tree ---- */

static void put_bytes(struct strbuf *out, const unsigned char *data, size_t len)
{
	strbuf_addch(out, '"');
	for (size_t i = 0; i < len; i++)
		strbuf_addf(out, "\\%03o", data[i]);
	strbuf_addch(out, '"');
}

/* Adds a condition for the expected value of an attribute. */
static void put_attribute(const struct tree_difference *d, const char *path, struct strbuf *out)
{
	const struct tree_xattr *x = tree_find_xattr(d->expected, d->xattr);

	strbuf_adds(out, "has_value(");
	put_string(out, path);
	strbuf_adds(out, ", ");
	put_string(out, d->xattr);
	strbuf_adds(out, ", ");
	put_bytes(out, x ? x->value : NULL, x ? x->len : 0);
	strbuf_addf(out, ", %ld)", x ? (long)x->len : -1L);
}

/* Adds a condition that holds for the expected tree; false if there is none. */
static bool put_difference(const struct live *l, const struct tree_difference *d, const char *path,
			   const char **what, struct strbuf *out)
{
	const struct tree_entry *e = d->expected;
	auto_strbuf sum = STRBUF_INIT, quoted = STRBUF_INIT;

	put_string(&quoted, path);
	const char *p = strbuf_str(&quoted);
	*what = tree_diff_kind_name(d->kind);
	switch (d->kind) {
	case TREE_DIFF_MISSING:
	case TREE_DIFF_EXTRA:
		*what = "whether it is there";
		strbuf_addf(out, "there(%s) == %d", p, d->kind == TREE_DIFF_MISSING);
		return true;
	case TREE_DIFF_TYPE:
		strbuf_addf(out, "(look(%s)->st_mode & S_IFMT) == 0%o", p, tree_type_mode(e->type));
		return true;
	case TREE_DIFF_MODE:
		strbuf_addf(out, "(look(%s)->st_mode & 07777) == 0%o", p, e->mode);
		return true;
	case TREE_DIFF_OWNER:
		strbuf_addf(out, "look(%s)->st_uid == %u && look(%s)->st_gid == %u", p, e->uid, p,
			    e->gid);
		return true;
	case TREE_DIFF_NLINK:
		*what = "its number of links";
		strbuf_addf(out, "look(%s)->st_nlink == %llu", p, llu(e->nlink));
		return *d->path; /* only mkfs knows the number of links that the root begins with */
	case TREE_DIFF_SIZE:
		strbuf_addf(out, "look(%s)->st_size == %llu", p, llu(e->size));
		return true;
	case TREE_DIFF_CONTENT:
		if (!live_checksum(l, e, &sum))
			return false;
		strbuf_addf(out, "has_sum(%s, %.*su)", p, (int)strcspn(sum.buf, " "), sum.buf);
		return true;
	case TREE_DIFF_TARGET:
		strbuf_addf(out, "leads_to(%s, ", p);
		put_string(out, e->target ? e->target : "");
		strbuf_addch(out, ')');
		return true;
	case TREE_DIFF_RDEV:
		strbuf_addf(out, "look(%s)->st_rdev == makedev(%u, %u)", p, e->rdev_major,
			    e->rdev_minor);
		return true;
	case TREE_DIFF_XATTR_MISSING:
	case TREE_DIFF_XATTR_EXTRA:
	case TREE_DIFF_XATTR_VALUE:
		*what = d->xattr;
		put_attribute(d, path, out);
		return true;
	default:
		return false;
	}
}

static void put_untold(const char *words, struct strbuf *out)
{
	strbuf_adds(out, "\tcannot_tell(");
	put_string(out, words);
	strbuf_adds(out, ");\n");
}

static void put_state(const struct live *l, struct strbuf *out)
{
	vec_each(d, &l->diff.list) {
		const char *path = *d->path ? d->path : ".", *what;
		auto_strbuf condition = STRBUF_INIT;

		if (!put_difference(l, d, path, &what, &condition)) {
			put_untold(d->words, out);
			continue;
		}
		strbuf_adds(out, "\tjudge(");
		put_string(out, path);
		strbuf_adds(out, ", ");
		put_string(out, what);
		strbuf_addf(out, ", %s);\n", strbuf_str(&condition));
	}
}

static void put_end(const struct view *v, const struct live *l, struct strbuf *out)
{
	auto_strbuf text = STRBUF_INIT;

	if (l->kind == LIVE_RESULT) {
		op_print(&vec_last(&v->c.workload.ops), &text);
		strbuf_adds(out, "\tjudge(");
		put_string(out, strbuf_str(&text));
		strbuf_addf(out, ", \"its result\", got == %lldL);\n", (long long)l->expected);
	}
	if (l->kind == LIVE_NONE) {
		strbuf_adds(out, "\treturn differ;\n}\n");
		return;
	}
	put_state(l, out);
	for (size_t i = 0; i < v->c.problems.n; i++)
		if (live_untold(l, &v->c.problems.v[i]))
			put_untold(v->c.problems.v[i].words, out);
	strbuf_adds(out, "\treturn shows ? 1 : told && !untold ? 0 : 2;\n}\n");
}

void export_program(const struct view *v, struct strbuf *out)
{
	const struct workload *w = &v->c.workload;
	auto_live l;

	live_load(v, &l);
	put_head(v, &l, out);
	put_parts(w, out);
	if (l.kind != LIVE_NONE)
		strbuf_adds(out, program_looking);
	strbuf_adds(out, "int main(int argc, char **argv)\n{\n\tlong got;\n");
	for (size_t i = 0; i < w->handles.n; i++) {
		strbuf_addf(out, "\tint h%zu = -1; /* ", i);
		put_comment(out, w->handles.v[i].name);
		strbuf_adds(out, " */\n");
	}
	strbuf_adds(out, "\n\tif (argc != 2 || chdir(argv[1]) < 0) {\n"
			 "\t\tfprintf(stderr, \"usage: workload DIR\\n\");\n\t\treturn 2;\n\t}\n"
			 "\tumask(0);\n");
	for (size_t i = 0; i < w->handles.n; i++)
		strbuf_addf(out, "\t(void)h%zu;\n", i);
	strbuf_addch(out, '\n');
	for (size_t i = 0; i < w->ops.n; i++)
		put_operation(v, i, out);
	put_end(v, &l, out);
}
