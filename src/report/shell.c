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
	{ "shell", "sh -c %t0", "(cd $SCRATCH_MNT && sh -c %t0)" },
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

/* ---- the finding ---- */

static void put_flight(const struct view_crash *c, const char *where, struct strbuf *out)
{
	const struct crash_state *s = &c->state;
	size_t n = s->lost.n + s->torn.n + s->survived.n;

	strbuf_addf(out, "# Of %zu %s in flight%s, %zu %s lost and %zu torn.\n", n,
		    plural(n, "write", "writes"), where, s->lost.n,
		    plural(s->lost.n, "was", "were"), s->torn.n);
}

void shell_finding(const struct view *v, struct strbuf *out)
{
	for (size_t i = 0; i < v->c.problems.n; i++) {
		const struct stored_problem *p = &v->c.problems.v[i];
		const char *joint, *reason = problem_reason(p, &joint);

		strbuf_adds(out, "# ");
		shell_clean(out, p->words);
		if (*reason) {
			strbuf_addf(out, "\n#   %s ", joint);
			shell_clean(out, reason);
		}
		strbuf_addch(out, '\n');
	}
	strbuf_adds(out, "# Found on ");
	shell_clean(out, v->c.target);
	strbuf_adds(out, ", Linux ");
	shell_clean(out, v->c.kernel ? v->c.kernel : "(unknown)");
	strbuf_adds(out, ".\n");
	auto_free char *start = stored_case_start(&v->c);
	if (start)
		strbuf_adds(out,
			    "# It begins with the disk start.img: DIR is where a copy of it is "
			    "mounted.\n");
	if (v->crash.has_state)
		put_flight(&v->crash, "", out);
	if (!v->second.has_state)
		return;
	strbuf_adds(out, "# Then the power failed a second time, while the file system recovered "
			 "from the\n# first.\n");
	put_flight(&v->second, " of that recovery", out);
}

/* ---- what can be seen ---- */

bool shell_has_control(const char *path)
{
	for (; *path; path++)
		if ((unsigned char)*path < 0x20 || *path == 0x7f)
			return true;
	return false;
}

/* The checksum of POSIX cksum: what every system has a command for. */
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
	strbuf_addf(out, "%u %llu", checksum(e->content, e->size), (unsigned long long)e->size);
	return true;
}

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

void shell_facts(const struct tree_entry *e, struct strbuf *out)
{
	static const char letters[TREE_TYPE_END] = { '?', 'f', 'd', 'l', 'p', 'c', 'b', 's' };
	auto_strbuf sum = STRBUF_INIT, xattrs = STRBUF_INIT;

	strbuf_addf(out, "%c %o %u:%u", letters[e->type], e->mode, e->uid, e->gid);
	if (e->type == TREE_FILE)
		strbuf_addf(out, " %llu bytes", (unsigned long long)e->size);
	if (e->type != TREE_DIR)
		strbuf_addf(out, " links=%llu", (unsigned long long)e->nlink);
	if (e->type == TREE_SYMLINK)
		strbuf_addf(out, " -> %s", e->target ? e->target : "");
	if (e->type == TREE_FILE && shell_cksum(e, &sum))
		strbuf_addf(out, " cksum=%.*s", (int)strcspn(sum.buf, " "), sum.buf);
	shell_xattrs(e, &xattrs);
	for (const char *c = strbuf_str(&xattrs); *c; c++)
		strbuf_addf(out, "%s%c", c == xattrs.buf ? " " : "", *c == '\n' ? ' ' : *c);
}

static int by_path(const void *a, const void *b)
{
	const struct tree_entry *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

void shell_listing(const struct view *v, const struct tree *t, struct strbuf *out)
{
	struct vec_of(const struct tree_entry *) list = { 0 };

	for (size_t i = 0; i < t->entries.n; i++) {
		const struct tree_entry *e = &t->entries.v[i];

		if (*e->path && !shell_has_control(e->path))
			vec_push(&list, e);
	}
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), by_path);
	for (size_t i = 0; i < list.n; i++) {
		strbuf_adds(out, view_about(v, list.v[i]->path) ? "* " : "  ");
		strbuf_addf(out, "%s: ", list.v[i]->path);
		shell_facts(list.v[i], out);
		strbuf_addch(out, '\n');
	}
	vec_release(&list);
}

const char shell_functions[] =
	"there() { # PATH\n"
	"\t[ -e \"./$1\" ] || [ -L \"./$1\" ]\n"
	"}\n\n"
	"xattrs() { # PATH\n"
	"\tif command -v getfattr >/dev/null; then\n"
	"\t\tgetfattr -h -d -m '^(user|trusted)\\.' -e hex --absolute-names \"./$1\" |\n"
	"\t\t\tsed -e '/^# file/d' -e '/^$/d' -e '/=/!s/$/=0x/' | LC_ALL=C sort\n"
	"\telse\n"
	"\t\tpython3 -c 'import os, sys\n"
	"p = sys.argv[1]\n"
	"for n in sorted(os.listxattr(p, follow_symlinks=False)):\n"
	"    if n.startswith((\"user.\", \"trusted.\")):\n"
	"        print(n + \"=0x\" + os.getxattr(p, n, follow_symlinks=False).hex())' \"./$1\"\n"
	"\tfi\n"
	"}\n\n"
	"value() { # WHAT PATH\n"
	"\tcase $1 in\n"
	"\ttype) find \"./$2\" -maxdepth 0 -printf %y ;;\n"
	"\tmode) find \"./$2\" -maxdepth 0 -printf %m ;;\n"
	"\towner) find \"./$2\" -maxdepth 0 -printf %U:%G ;;\n"
	"\tsize) find \"./$2\" -maxdepth 0 -printf %s ;;\n"
	"\tlinks) find \"./$2\" -maxdepth 0 -printf %n ;;\n"
	"\tblocks) find \"./$2\" -maxdepth 0 -printf %b ;;\n"
	"\ttarget) find \"./$2\" -maxdepth 0 -printf %l ;;\n"
	"\tdevice) stat -c %t:%T \"./$2\" ;;\n"
	"\tcontent) cksum <\"./$2\" ;;\n"
	"\txattrs) xattrs \"$2\" ;;\n"
	"\tmtime) stat -c %.9Y \"./$2\" ;;\n"
	"\tctime) stat -c %.9Z \"./$2\" ;;\n"
	"\tesac 2>/dev/null\n"
	"}\n\n"
	"is() { # WHAT PATH VALUE: the path is there, and as it was found\n"
	"\t[ \"$1\" != xattrs ] || command -v getfattr >/dev/null || command -v python3 >/dev/null "
	"||\n"
	"\t\treturn 2\n"
	"\tthere \"$2\" && [ \"$(value \"$1\" \"$2\")\" = \"$3\" ]\n"
	"}\n\n"
	"time_is() { # WHAT PATH SEEN HAD: what was seen, and not what it had; any other time may "
	"be "
	"fine\n"
	"\tthere \"$2\" || return 2\n"
	"\tset -- \"$@\" \"$(value \"$1\" \"$2\")\"\n"
	"\t[ \"$5\" != \"$3\" ] || return 0\n"
	"\t[ \"$5\" != \"$4\" ] || return 1\n"
	"\techo \"look at the $1 of $2 (stat): it is $5, was found as $3 and had been $4; of an\"\n"
	"\techo \"operation since then, or of recovery, it is fine\"\n"
	"\treturn 2\n"
	"}\n\n"
	"facts() { # PATH: all that can be seen of it, in a line\n"
	"\tset -- \"$1\" \"$(value type \"$1\")\"\n"
	"\tprintf '%s %s %s' \"$2\" \"$(value mode \"$1\")\" \"$(value owner \"$1\")\"\n"
	"\t[ \"$2\" != f ] || printf ' %s bytes' \"$(value size \"$1\")\"\n"
	"\t[ \"$2\" = d ] || printf ' links=%s' \"$(value links \"$1\")\"\n"
	"\t[ \"$2\" != l ] || printf ' -> %s' \"$(value target \"$1\")\"\n"
	"\t[ \"$2\" != f ] || printf ' cksum=%s' \"$(value content \"$1\" | cut -d ' ' -f 1)\"\n"
	"\tset -- \"$(value xattrs \"$1\" | tr '\\n' ' ')\"\n"
	"\t[ -z \"$1\" ] || printf ' %s' \"${1% }\"\n"
	"\techo\n"
	"}\n\n"
	"listing() {\n"
	"\tfind . -mindepth 1 -path ./lost+found -prune -o -path '*[[:cntrl:]]*' -o -printf "
	"'%P\\n' |\n"
	"\t\tLC_ALL=C sort | while IFS= read -r path; do\n"
	"\t\t\tprintf '  %s: ' \"$path\"\n"
	"\t\t\tfacts \"$path\"\n"
	"\t\tdone\n"
	"}\n\n"
	"all_names_counted() { # PATH: its link count is the number of its names\n"
	"\t[ \"$(value links \"$1\")\" = \"$(find . -xdev -samefile \"./$1\" | wc -l)\" ]\n"
	"}\n\n"
	"readable() { # PATH\n"
	"\tif [ -L \"./$1\" ]; then\n"
	"\t\treadlink \"./$1\"\n"
	"\telif [ -d \"./$1\" ]; then\n"
	"\t\tls -a \"./$1\"\n"
	"\telse\n"
	"\t\tcat \"./$1\"\n"
	"\tfi >/dev/null 2>&1\n"
	"}\n\n"
	"listed_twice() { # PATH\n"
	"\t[ \"$(ls -f \"$(dirname \"./$1\")\" | grep -cxF -e \"$(basename \"./$1\")\")\" -gt 1 ]\n"
	"}\n\n"
	"usable() { # files can be made in every directory, and all can be removed\n"
	"\tfind . -path ./lost+found -prune -o -type d -print >\"$work/dirs\" || return 1\n"
	"\twhile IFS= read -r path; do\n"
	"\t\techo 'the power is back' >\"$path/outage-probe\" &&\n"
	"\t\t\tgrep -qx 'the power is back' \"$path/outage-probe\" &&\n"
	"\t\t\trm \"$path/outage-probe\" || return 1\n"
	"\tdone <\"$work/dirs\"\n"
	"\tfind . -mindepth 1 -maxdepth 1 ! -name lost+found -exec rm -rf -- {} +\n"
	"}\n\n";

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
