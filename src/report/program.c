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
	{ PART_FILE, "/* A path is opened for one call; a handle stays open. */\n"
		     "static int get(int fd, const char *path, int flags)\n{\n"
		     "\treturn path ? open(path, flags | O_NONBLOCK | O_NOCTTY, 0644) : fd;\n}\n\n"
		     "static long done(int fd, const char *path, long rc)\n{\n"
		     "\tif (path)\n\t\tclose(fd);\n\treturn rc;\n}\n\n" },
	{ PART_MADE, "static long made(int fd)\n{\n\tint error = errno;\n\n\tif (fd < 0)\n"
		     "\t\treturn -error;\n\tclose(fd);\n\treturn 0;\n}\n\n" },
	{ PART_CONTENT,
	  "/* Every 8 bytes of a file say which operation wrote them, and where. */\n"
	  "static void fill(unsigned long long op, unsigned long long offset, char *to, size_t "
	  "len)\n{\n"
	  "\tstatic const char digits[] =\n"
	  "\t\t\"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-\";\n"
	  "\tconst unsigned long long mask = (1ULL << 48) - 1, mix = 0x9e3779b97f4bULL;\n\n"
	  "\tfor (; len; len--, offset++) {\n"
	  "\t\tunsigned long long v = (op << 32 | TAG << 22 | (offset / 8 & 0x3fffff)) & mask;\n\n"
	  "\t\tv = v * mix & mask;\n\t\tv ^= v >> 24;\n"
	  "\t\tv = v * mix & mask;\n\t\tv ^= v >> 24;\n"
	  "\t\t*to++ = digits[v >> (42 - 6 * (offset % 8)) & 63];\n\t}\n}\n\n" },
	{ PART_WRITE,
	  "enum how { AT_POSITION, AT_OFFSET, AT_END };\n\n"
	  "static long put_data(int op, int fd, const char *path, int flags, enum how how, long "
	  "long offset,\n\t\t     size_t len, int sync_flags)\n{\n"
	  "\tint f = get(fd, path, flags);\n\tstruct stat st;\n\tvoid *data = NULL;\n\tlong rc;\n\n"
	  "\tif (f < 0)\n\t\treturn path ? -errno : -EBADF;\n"
	  "\tif (fstat(f, &st) < 0 || posix_memalign(&data, 4096, len ? len : 1))\n"
	  "\t\treturn done(f, path, -ENOMEM);\n"
	  "\tif (how == AT_END)\n\t\tlseek(f, 0, SEEK_END);\n"
	  "\tif (how == AT_POSITION)\n\t\tlseek(f, offset, SEEK_SET);\n"
	  "\tint at_end = how == AT_END || (!path && fcntl(f, F_GETFL) & O_APPEND);\n"
	  "\tfill(op, at_end ? st.st_size : offset, data, len);\n"
	  "\tstruct iovec iov = { data, len };\n"
	  "\trc = result(pwritev2(f, &iov, 1, how == AT_OFFSET ? offset : -1, path ? 0 : "
	  "sync_flags));\n"
	  "\tfree(data);\n\treturn done(f, path, rc);\n}\n\n" },
	{ PART_MMAP,
	  "static long map_data(int op, int fd, const char *path, long long offset, size_t len, "
	  "int sync)\n{\n"
	  "\tint f = get(fd, path, O_RDWR | O_CREAT);\n\tlong long start = offset / 4096 * "
	  "4096;\n\tsize_t size = offset - start + len;\n\tstruct stat st;\n\tlong rc = 0;\n\n"
	  "\tif (f < 0)\n\t\treturn path ? -errno : -EBADF;\n"
	  "\tif (fstat(f, &st) < 0 || (st.st_size < offset + (long long)len &&\n"
	  "\t\t\t\t     fallocate(f, 0, offset, len) < 0))\n"
	  "\t\treturn done(f, path, -errno);\n"
	  "\tchar *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, f, start);\n"
	  "\tif (map == MAP_FAILED)\n\t\treturn done(f, path, -errno);\n"
	  "\tfill(op, offset, map + (offset - start), len);\n"
	  "\tif (sync)\n\t\trc = result(msync(map, size, MS_SYNC));\n"
	  "\tmunmap(map, size);\n\treturn done(f, path, rc < 0 ? rc : (long)len);\n}\n\n" },
	{ PART_MSYNC,
	  "static long sync_map(int fd, const char *path, long long offset, size_t len)\n{\n"
	  "\tint f = get(fd, path, O_RDWR);\n\tlong long start = offset / 4096 * 4096;\n"
	  "\tsize_t size = offset - start + len;\n\n\tif (f < 0)\n"
	  "\t\treturn path ? -errno : -EBADF;\n"
	  "\tchar *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, f, start);\n"
	  "\tif (map == MAP_FAILED)\n\t\treturn done(f, path, -errno);\n"
	  "\tlong rc = result(msync(map, size, MS_SYNC));\n"
	  "\tmunmap(map, size);\n\treturn done(f, path, rc);\n}\n\n" },
	{ PART_ON_FILE, "/* One call on a descriptor. */\n"
			"#define ON_FILE(fd, path, flags, call)                              \\\n"
			"\t({                                                           \\\n"
			"\t\tint f = get(fd, path, flags);                        \\\n"
			"\t\tf < 0 ? (long)-errno : done(f, path, result(call));  \\\n"
			"\t})\n\n" },
	{ PART_RENAME, "static long rename_with(const char *from, const char *to, unsigned flags)\n"
		       "{\n\treturn result(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, "
		       "flags));\n}\n\n" },
	{ PART_READ,
	  "static long read_at(int fd, const char *path, long long offset, size_t len)\n{\n"
	  "\tint f = get(fd, path, O_RDONLY);\n\tchar *data = malloc(len ? len : 1);\n\n"
	  "\tlong rc = f < 0 ? -errno : data ? result(pread(f, data, len, offset)) : -ENOMEM;\n"
	  "\tfree(data);\n\treturn f < 0 ? rc : done(f, path, rc);\n}\n\n" },
	{ PART_COPY,
	  "static long copy_range(int fd, const char *path, off_t offset, int to_fd, const char "
	  "*to_path,\n\t\t       off_t to_offset, size_t len)\n{\n"
	  "\tint from = get(fd, path, O_RDONLY);\n\n\tif (from < 0)\n\t\treturn -errno;\n"
	  "\tint to = get(to_fd, to_path, O_WRONLY | O_CREAT);\n\n"
	  "\tlong rc = to < 0 ? -errno : result(copy_file_range(from, &offset, to, &to_offset, "
	  "len, 0));\n\tif (to >= 0)\n\t\tdone(to, to_path, 0);\n"
	  "\treturn done(from, path, rc);\n}\n\n" },
	{ PART_CLONE,
	  "static long clone_file(int fd, const char *path, int to_fd, const char *to_path)\n{\n"
	  "\tint from = get(fd, path, O_RDONLY);\n\n\tif (from < 0)\n\t\treturn -errno;\n"
	  "\tint to = get(to_fd, to_path, O_WRONLY | O_CREAT);\n\n"
	  "\tlong rc = to < 0 ? -errno : result(ioctl(to, FICLONE, from));\n"
	  "\tif (to >= 0)\n\t\tdone(to, to_path, 0);\n\treturn done(from, path, rc);\n}\n\n" },
	{ PART_REMOVE, "static long remove_any(const char *path)\n{\n"
		       "\tlong rc = result(unlink(path));\n\n"
		       "\treturn rc == -EISDIR ? result(rmdir(path)) : rc;\n}\n\n" },
	{ PART_SYNC, "static long sync_here(void)\n{\n\tint fd = open(\".\", O_RDONLY);\n"
		     "\tlong rc = result(fd < 0 ? fd : syncfs(fd));\n\n\tif (fd >= 0)\n"
		     "\t\tclose(fd);\n\treturn rc;\n}\n\n" },
	{ PART_DROP, "static long drop_caches(void)\n{\n"
		     "\tint fd = open(\"/proc/sys/vm/drop_caches\", O_WRONLY);\n"
		     "\tlong rc = result(fd < 0 ? fd : write(fd, \"3\", 1));\n\n\tif (fd >= 0)\n"
		     "\t\tclose(fd);\n\treturn rc < 0 ? rc : 0;\n}\n\n" },
	{ PART_TIMES, "static long set_times(int fd, const char *path, long long atime, long long "
		      "mtime)\n{\n\tstruct timespec times[2] = { { atime, 0 }, { mtime, 0 } };\n\n"
		      "\treturn ON_FILE(fd, path, O_RDONLY, futimens(f, times));\n}\n\n" },
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
	strbuf_adds(out, " */\n#define _GNU_SOURCE\n#include <errno.h>\n#include <fcntl.h>\n"
			 "#include <linux/fs.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
			 "#include <string.h>\n#include <sys/ioctl.h>\n#include <sys/mman.h>\n"
			 "#include <sys/stat.h>\n#include <sys/syscall.h>\n"
			 "#include <sys/sysmacros.h>\n#include <sys/uio.h>\n"
			 "#include <sys/xattr.h>\n#include <unistd.h>\n\n");
	strbuf_addf(out, "#define TAG %uULL\n\n", content_tag(&v->c.workload));
	strbuf_adds(out,
		    "static int differ;\n\n"
		    "__attribute__((unused)) static long result(long rc)\n{\n"
		    "\treturn rc < 0 ? -errno : rc;\n}\n\n"
		    "static void say(int op, const char *text, long got, long then)\n{\n"
		    "\tprintf(\"%3d  %s: %ld%s%s\\n\", op, text, got, got < 0 ? \", \" : \"\",\n"
		    "\t       got < 0 ? strerror((int)-got) : \"\");\n"
		    "\tif (got == then)\n\t\treturn;\n"
		    "\tprintf(\"     when it was found: %ld\\n\", then);\n\tdiffer = 1;\n}\n\n");
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

static const char looking[] =
	"#define MAYBE __attribute__((unused)) static\n\n"
	"static int told, shows, untold;\n\n"
	"MAYBE void judge(const char *path, const char *what, int as_expected)\n{\n"
	"\tprintf(\"%s: %s is %sas expected\\n\", path, what, as_expected ? \"\" : \"NOT \");\n"
	"\ttold = 1;\n\tshows |= !as_expected;\n}\n\n"
	"MAYBE void cannot_tell(const char *what)\n{\n"
	"\tprintf(\"cannot be told: %s\\n\", what);\n\tuntold = 1;\n}\n\n"
	"MAYBE struct stat *look(const char *path)\n{\n\tstatic struct stat st;\n\n"
	"\tif (lstat(path, &st) < 0)\n\t\tmemset(&st, 0xff, sizeof(st));\n\treturn &st;\n}\n\n"
	"MAYBE int there(const char *path)\n{\n\tstruct stat st;\n\n"
	"\treturn lstat(path, &st) == 0;\n}\n\n"
	"MAYBE int leads_to(const char *path, const char *target)\n{\n\tchar text[4097];\n"
	"\tssize_t n = readlink(path, text, sizeof(text));\n\n"
	"\treturn n == (ssize_t)strlen(target) && memcmp(text, target, n) == 0;\n}\n\n"
	"/* A length of -1: it has no such attribute. */\n"
	"MAYBE int has_value(const char *path, const char *name, const char *value, long len)\n{\n"
	"\tstatic char text[65536];\n"
	"\tlong n = lgetxattr(path, name, text, sizeof(text));\n\n"
	"\treturn n == len && (n < 0 || memcmp(text, value, n) == 0);\n}\n\n"
	"/* As cksum(1). */\n"
	"MAYBE unsigned add_byte(unsigned crc, unsigned byte)\n{\n\tcrc ^= byte << 24;\n"
	"\tfor (int bit = 0; bit < 8; bit++)\n"
	"\t\tcrc = crc & 0x80000000 ? crc << 1 ^ 0x04c11db7 : crc << 1;\n\treturn crc;\n}\n\n"
	"MAYBE int has_sum(const char *path, unsigned sum)\n{\n"
	"\tFILE *file = fopen(path, \"r\");\n\tunsigned crc = 0;\n\tunsigned long long n = 0;\n"
	"\tint c;\n\n\tif (!file)\n\t\treturn 0;\n"
	"\tfor (; (c = getc(file)) != EOF; n++)\n\t\tcrc = add_byte(crc, c);\n"
	"\tfor (; n; n >>= 8)\n\t\tcrc = add_byte(crc, n & 0xff);\n"
	"\tfclose(file);\n\treturn ~crc == sum;\n}\n\n";

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
	const struct tree_xattr *x = NULL;

	for (size_t i = 0; i < d->expected->n_xattrs; i++)
		if (streq(d->expected->xattrs[i].name, d->xattr))
			x = &d->expected->xattrs[i];
	strbuf_adds(out, "has_value(");
	put_string(out, path);
	strbuf_adds(out, ", ");
	put_string(out, d->xattr);
	strbuf_adds(out, ", ");
	put_bytes(out, x ? x->value : NULL, x ? x->len : 0);
	strbuf_addf(out, ", %ld)", x ? (long)x->len : -1L);
}

static unsigned type_bits(enum tree_type type)
{
	static const unsigned bits[TREE_TYPE_END] = { 0,       S_IFREG, S_IFDIR, S_IFLNK,
						      S_IFIFO, S_IFCHR, S_IFBLK, S_IFSOCK };

	return bits[type];
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
		strbuf_addf(out, "(look(%s)->st_mode & S_IFMT) == 0%o", p, type_bits(e->type));
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
		strbuf_adds(out, looking);
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
