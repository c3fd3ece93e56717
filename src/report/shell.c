/* SPDX-License-Identifier: MIT */
/*
 * shell.c
 *
 * Most operations are a line of a table, in which
 *	%pN  argument N, a path (of a handle: the one it was opened with)
 *	%nN  a number		%mN  a mode, octal
 *	%tN  a text		%xN  a text, as setfattr takes it
 *	%sN  flags of a write	%i   the operation's number	%b  a byte that stands for it
 */
#include "report/shell.h"

#include <ctype.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static const struct {
	const char *name, *plain, *xfstests; /* NULL: cannot be said */
} commands[] = {
	{ "creat", ": >%p0 && chmod %m1 %p0", ": >%p0 && chmod %m1 %p0" },
	{ "close", ": # %t0 is closed", ": # %t0 is closed" },
	{ "mkdir", "mkdir -m %m1 %p0", "mkdir -m %m1 %p0" },
	{ "rmdir", "rmdir %p0", "rmdir %p0" },
	{ "mkfifo", "mkfifo -m %m1 %p0", "mkfifo -m %m1 %p0" },
	{ "link", "ln -P -T %p0 %p1", "ln -P -T %p0 %p1" },
	{ "symlink", "ln -s -T %t0 %p1", "ln -s -T %t0 %p1" },
	{ "unlink", "unlink %p0", "unlink %p0" },
	{ "remove", "rm -d %p0", "rm -d %p0" },
	{ "write",
	  "content %i %n2 | dd of=%p0 oflag=seek_bytes%s3 seek=%n1 conv=notrunc "
	  "iflag=fullblock bs=1M status=none",
	  "$XFS_IO_PROG -f%s3 -c \"pwrite -S %b %n1 %n2\" %p0 >>$seqres.full" },
	{ "pwrite",
	  "content %i %n2 | dd of=%p0 oflag=seek_bytes%s3 seek=%n1 conv=notrunc,nocreat "
	  "iflag=fullblock bs=1M status=none",
	  "$XFS_IO_PROG%s3 -c \"pwrite -S %b %n1 %n2\" %p0 >>$seqres.full" },
	{ "append",
	  "content %i %n1 | dd of=%p0 oflag=append%s2 conv=notrunc iflag=fullblock bs=1M "
	  "status=none",
	  "$XFS_IO_PROG -f -a%s2 -c \"pwrite -S %b 0 %n1\" %p0 >>$seqres.full" },
	{ "dwrite",
	  "content %i %n2 | dd of=%p0 oflag=direct,seek_bytes%s3 seek=%n1 conv=notrunc "
	  "iflag=fullblock bs=%n2 status=none",
	  "$XFS_IO_PROG -f -d%s3 -c \"pwrite -S %b -b %n2 %n1 %n2\" %p0 >>$seqres.full" },
	{ "read",
	  "dd if=%p0 of=/dev/null iflag=skip_bytes,count_bytes skip=%n1 count=%n2 status=none",
	  "$XFS_IO_PROG -r -c \"pread %n1 %n2\" %p0 >>$seqres.full" },
	{ "truncate", "truncate -c -s %n1 %p0", "$XFS_IO_PROG -c \"truncate %n1\" %p0" },
	{ "copy_file_range",
	  "dd if=%p0 of=%p2 iflag=skip_bytes,count_bytes skip=%n1 count=%n4 oflag=seek_bytes "
	  "seek=%n3 conv=notrunc status=none",
	  "$XFS_IO_PROG -f -c \"copy_range -s %n1 -d %n3 -l %n4 \"%p0 %p2" },
	{ "reflink", "cp --reflink=always -T %p0 %p1", "cp --reflink=always -T %p0 %p1" },
	{ "setxattr", "setfattr -n %t1 -v %x2 %p0", "$SETFATTR_PROG -n %t1 -v %x2 %p0" },
	{ "removexattr", "setfattr -x %t1 %p0", "$SETFATTR_PROG -x %t1 %p0" },
	{ "chmod", "chmod %m1 %p0", "chmod %m1 %p0" },
	{ "chown", "chown -h %n1:%n2 %p0", "chown -h %n1:%n2 %p0" },
	{ "utimens", "touch -c -a -d @%n1 %p0 && touch -c -m -d @%n2 %p0",
	  "touch -c -a -d @%n1 %p0 && touch -c -m -d @%n2 %p0" },
	{ "fsync", "sync %p0", "$XFS_IO_PROG -c fsync %p0" },
	{ "fdatasync", "sync -d %p0", "$XFS_IO_PROG -c fdatasync %p0" },
	{ "sync", "sync -f .", "sync" },
	{ "syncfs", "sync -f .", "$XFS_IO_PROG -c syncfs $SCRATCH_MNT" },
	{ "sync_file_range", NULL, "$XFS_IO_PROG -c \"sync_range -b %n1 %n2\" %p0" },
	{ "remount", NULL, "_unmount_flakey && _mount_flakey" },
	{ "drop_caches", "echo 3 >/proc/sys/vm/drop_caches", "echo 3 >/proc/sys/vm/drop_caches" },
};

/* ---- words ---- */

void shell_quote(struct strbuf *out, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_./+@:,=";

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

/* The path a handle was opened with, before operation `i`. */
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

/* setfattr decodes what begins with 0x, 0s or a quote: plain words only as they are. */
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
	strbuf_adds(out, "skip ");
	shell_quote(out, strbuf_str(&text));
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

static const char *rename_form(const struct op *op, enum shell_dialect d)
{
	switch (op->args[2].num) {
	case 0:
		return "mv -f -T %p0 %p1";
	case RENAME_W_NOREPLACE:
		return d == SHELL_PLAIN ? "mv -n -T %p0 %p1" : "$here/src/renameat2 -n %p0 %p1";
	case RENAME_W_EXCHANGE:
		return d == SHELL_PLAIN ? NULL : "$here/src/renameat2 -x %p0 %p1";
	case RENAME_W_WHITEOUT:
		return d == SHELL_PLAIN ? NULL : "$here/src/renameat2 -w %p0 %p1";
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
	case S_IFBLK:
		return "mknod -m 0644 %p0 ";
	}
	return NULL;
}

static const char *mmap_form(const struct op *op, enum shell_dialect d)
{
	if (d == SHELL_PLAIN)
		return NULL;
	if (op->args[3].num & MMAP_NOSYNC)
		return "$XFS_IO_PROG -f -c \"falloc %n1 %n2\" -c \"mmap -rw %n1 %n2\" "
		       "-c \"mwrite -S %b %n1 %n2\" %p0";
	return "$XFS_IO_PROG -f -c \"falloc %n1 %n2\" -c \"mmap -rw %n1 %n2\" "
	       "-c \"mwrite -S %b %n1 %n2\" -c \"msync -s %n1 %n2\" %p0";
}

static const char *falloc_form(const struct op *op, enum shell_dialect d)
{
	static const struct {
		unsigned mode;
		const char *plain, *xfstests;
	} modes[] = {
		{ 0, "fallocate -o %n2 -l %n3 %p0", "falloc" },
		{ FALLOC_FL_KEEP_SIZE, "fallocate -n -o %n2 -l %n3 %p0", "falloc -k" },
		{ FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, "fallocate -p -o %n2 -l %n3 %p0",
		  "fpunch" },
		{ FALLOC_FL_ZERO_RANGE, "fallocate -z -o %n2 -l %n3 %p0", "fzero" },
		{ FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, "fallocate -z -n -o %n2 -l %n3 %p0",
		  "fzero -k" },
		{ FALLOC_FL_COLLAPSE_RANGE, "fallocate -c -o %n2 -l %n3 %p0", "fcollapse" },
		{ FALLOC_FL_INSERT_RANGE, "fallocate -i -o %n2 -l %n3 %p0", "finsert" },
		{ FALLOC_FL_UNSHARE_RANGE, NULL, "funshare" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (modes[i].mode == op->args[1].num)
			return d == SHELL_PLAIN ? modes[i].plain : modes[i].xfstests;
	return NULL;
}

static const char *form_of(const struct op *op, enum shell_dialect d)
{
	const char *name = op->def->name;

	if (streq(name, "open"))
		return open_form(op);
	if (streq(name, "rename"))
		return rename_form(op, d);
	if (streq(name, "mknod"))
		return mknod_form(op);
	if (streq(name, "mmapwrite"))
		return mmap_form(op, d);
	if (streq(name, "falloc"))
		return falloc_form(op, d);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (streq(commands[i].name, name))
			return d == SHELL_PLAIN ? commands[i].plain : commands[i].xfstests;
	return NULL;
}

void shell_op(const struct workload *w, size_t i, enum shell_dialect d, struct strbuf *out)
{
	const struct op *op = &w->ops.v[i];
	const char *form = form_of(op, d);

	if (!form) {
		put_skip(w, i, out);
	} else if (streq(op->def->name, "falloc") && d == SHELL_XFSTESTS) {
		strbuf_addf(out, "$XFS_IO_PROG -c \"%s ", form);
		fill_in("%n2 %n3\" %p0", w, i, d, out);
	} else {
		fill_in(form, w, i, d, out);
	}
	if (form && streq(op->def->name, "mknod") && !strncmp(form, "mknod", 5))
		strbuf_addf(out, "%c %u %u", op->args[1].num == S_IFCHR ? 'c' : 'b',
			    major((dev_t)op->args[2].num), minor((dev_t)op->args[2].num));
	strbuf_addch(out, '\n');
}

/* ---- the finding, and listings ---- */

void shell_finding(const struct view *v, struct strbuf *out)
{
	for (size_t i = 0; i < v->c.problems.n; i++) {
		const struct stored_problem *p = &v->c.problems.v[i];

		strbuf_adds(out, "# ");
		shell_clean(out, p->words);
		if (*p->promise) {
			strbuf_adds(out, "\n#   although ");
			shell_clean(out, p->promise);
		}
		strbuf_addch(out, '\n');
	}
	strbuf_adds(out, "# Found on ");
	shell_clean(out, v->c.target);
	strbuf_adds(out, ", Linux ");
	shell_clean(out, v->c.kernel ? v->c.kernel : "(unknown)");
	if (v->crash.has_state)
		strbuf_addf(out, ".\n# Of %zu writes in flight, %zu were lost and %zu torn.\n",
			    v->crash.state.lost.n + v->crash.state.torn.n +
				    v->crash.state.survived.n,
			    v->crash.state.lost.n, v->crash.state.torn.n);
	else
		strbuf_adds(out, ".\n");
}

bool shell_has_control(const char *path)
{
	for (; *path; path++)
		if ((unsigned char)*path < 0x20 || *path == 0x7f)
			return true;
	return false;
}

void shell_entry(const struct tree_entry *e, struct strbuf *out)
{
	static const char letters[TREE_TYPE_END] = { '?', 'f', 'd', 'l', 'p', 'c', 'b', 's' };

	strbuf_addf(out, "%c %o %u:%u ", letters[e->type], e->mode, e->uid, e->gid);
	if (e->type != TREE_DIR)
		strbuf_addf(out, "%llu bytes, %llu links ", (unsigned long long)e->size,
			    (unsigned long long)e->nlink);
	strbuf_addf(out, "%s\n", e->path);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void shell_listing(const struct tree *t, struct strbuf *out)
{
	struct vec_of(char *) lines = { 0 };

	for (size_t i = 0; i < t->entries.n; i++) {
		const struct tree_entry *e = &t->entries.v[i];

		if (!*e->path || shell_has_control(e->path))
			continue;
		struct strbuf line = STRBUF_INIT;
		shell_entry(e, &line);
		vec_push(&lines, strbuf_detach(&line));
	}
	if (lines.n)
		qsort(lines.v, lines.n, sizeof(*lines.v), by_text);
	for (size_t i = 0; i < lines.n; i++) {
		strbuf_adds(out, lines.v[i]);
		free(lines.v[i]);
	}
	vec_release(&lines);
}

void shell_find(struct strbuf *out)
{
	strbuf_adds(out, "find . -mindepth 1 -path ./lost+found -prune -o -path '*[[:cntrl:]]*' -o "
			 "\\\n\t\t-type d -printf 'd %m %U:%G %P\\n' -o "
			 "-printf '%y %m %U:%G %s bytes, %n links %P\\n' |\n"
			 "\t\tLC_ALL=C sort");
}
