/* SPDX-License-Identifier: MIT */
/* optable.c - the table of operations, made from ops.def; op.h explains the members. */
#include "workload/op.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include "workload/exec_ops.h"

static const struct word open_words[] = {
	{ "rdonly", O_RDONLY },	  { "wronly", O_WRONLY },	{ "rdwr", O_RDWR },
	{ "creat", O_CREAT },	  { "excl", O_EXCL },		{ "trunc", O_TRUNC },
	{ "append", O_APPEND },	  { "direct", O_DIRECT },	{ "sync", O_SYNC },
	{ "dsync", O_DSYNC },	  { "directory", O_DIRECTORY }, { "nofollow", O_NOFOLLOW },
	{ "tmpfile", O_TMPFILE }, { "noatime", O_NOATIME },	{ NULL, 0 },
};

static const struct word node_words[] = {
	{ "char", S_IFCHR },	{ "block", S_IFBLK },	{ "fifo", S_IFIFO },
	{ "socket", S_IFSOCK }, { "regular", S_IFREG }, { NULL, 0 },
};

const struct word op_write_words[] = {
	{ "sync", WRITE_SYNC },
	{ "dsync", WRITE_DSYNC },
	{ NULL, 0 },
};

const struct word op_mmap_words[] = {
	{ "nosync", MMAP_NOSYNC },
	{ NULL, 0 },
};

static const struct word shell_words[] = {
	{ "atomic", SHELL_ATOMIC },
	{ NULL, 0 },
};

static const struct word xattr_words[] = {
	{ "create", 1 },
	{ "replace", 2 },
	{ NULL, 0 },
};

const struct word rename_words[] = {
	{ "noreplace", RENAME_W_NOREPLACE },
	{ "exchange", RENAME_W_EXCHANGE },
	{ "whiteout", RENAME_W_WHITEOUT },
	{ NULL, 0 },
};

const struct word op_falloc_words[] = {
	{ "plain", 0 },
	{ "keep", FALLOC_FL_KEEP_SIZE },
	{ "punch", FALLOC_FL_PUNCH_HOLE },
	{ "zero", FALLOC_FL_ZERO_RANGE },
	{ "collapse", FALLOC_FL_COLLAPSE_RANGE },
	{ "insert", FALLOC_FL_INSERT_RANGE },
	{ "unshare", FALLOC_FL_UNSHARE_RANGE },
	{ NULL, 0 },
};

/* The macros by which ops.def lists arguments. More members of struct arg_def may follow. */
/* clang-format off */
#define ARG(kind_, name_, ...) { .kind = kind_, .name = name_, __VA_ARGS__ }
/* clang-format on */
#define PATH(name_, role_, ...)	   ARG(ARG_PATH, name_, .role = role_, __VA_ARGS__)
#define FILE(name_, role_, ...)	   ARG(ARG_FILE, name_, .role = role_, __VA_ARGS__)
#define HANDLE(name_, ...)	   ARG(ARG_HANDLE, name_, __VA_ARGS__)
#define TEXT(name_, ...)	   ARG(ARG_TEXT, name_, __VA_ARGS__)
#define XATTR(name_, ...)	   ARG(ARG_XATTR, name_, __VA_ARGS__)
#define OFFSET(name_, ...)	   ARG(ARG_OFFSET, name_, __VA_ARGS__)
#define LENGTH(name_, ...)	   ARG(ARG_LENGTH, name_, __VA_ARGS__)
#define SIZE(name_, ...)	   ARG(ARG_SIZE, name_, __VA_ARGS__)
#define MODE(name_, ...)	   ARG(ARG_MODE, name_, __VA_ARGS__)
#define NUMBER(name_, ...)	   ARG(ARG_NUMBER, name_, __VA_ARGS__)
#define FLAGS(name_, words_, ...)  ARG(ARG_FLAGS, name_, .words = words_, __VA_ARGS__)
#define CHOICE(name_, words_, ...) ARG(ARG_CHOICE, name_, .words = words_, __VA_ARGS__)
/* Arguments that may be left out; a mode then has its own default. */
#define MODE_OR(fallback_)	    MODE("MODE", .optional = true, .fallback = fallback_)
#define OPTIONAL_FLAGS(words_, ...) FLAGS("FLAGS", words_, .optional = true, __VA_ARGS__)

#define HELP(...) .help = __VA_ARGS__
#define ARGS(...) .args = { __VA_ARGS__ }
#define IS(...)	  .flags = __VA_ARGS__

const struct op_def op_table[OP_COUNT + 1] = {
#define OP(name_, help, args, is, weight, shell, xfstests, program)                                \
	[OP_ID(name_)] = { .name = #name_, .exec = exec_##name_, help, args, is },
#include "workload/ops.def"
	{ .name = NULL },
};

const struct op_def *op_find(const char *name, size_t len)
{
	for (const struct op_def *def = op_table; def->name; def++)
		if (strlen(def->name) == len && memcmp(def->name, name, len) == 0)
			return def;
	return NULL;
}

size_t op_count_args(const struct op_def *def)
{
	size_t n = 0;

	while (def->args[n].kind != ARG_END)
		n++;
	return n;
}

uint64_t op_words(const struct op *op, const struct word *words)
{
	for (size_t i = 0; op->def->args[i].kind != ARG_END; i++)
		if (op->def->args[i].words == words)
			return op->args[i].num;
	return 0;
}

bool op_range(const struct op *op, uint64_t *from, uint64_t *to)
{
	for (size_t i = 0; op->def->args[i].kind != ARG_END; i++) {
		enum arg_kind next = op->def->args[i + 1].kind;

		if (op->def->args[i].kind != ARG_OFFSET)
			continue;
		*from = op->args[i].num;
		*to = *from + (next == ARG_LENGTH || next == ARG_SIZE ? op->args[i + 1].num : 0);
		return true;
	}
	return false;
}

/* A write of no bytes reaches no disk, whatever its flags. */
static bool writes_nothing(const struct op *op)
{
	for (size_t i = 0; op->def->flags & OP_WRITES && op->def->args[i].kind != ARG_END; i++)
		if (op->def->args[i].kind == ARG_LENGTH)
			return !op->args[i].num;
	return false;
}

bool op_persists(const struct op *op)
{
	if (writes_nothing(op))
		return false;
	if (op_words(op, op_write_words))
		return true;
	return op->def->promise && !(op_words(op, op_mmap_words) & MMAP_NOSYNC);
}

bool op_has_parts(const struct op *op)
{
	return op->def->flags & OP_COMMAND && !(op_words(op, shell_words) & SHELL_ATOMIC);
}
