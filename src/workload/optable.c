/* SPDX-License-Identifier: MIT */
/* optable.c - the table itself. See op.h for what the members mean. */
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

static const struct word write_words[] = {
	{ "sync", WRITE_SYNC },
	{ "dsync", WRITE_DSYNC },
	{ NULL, 0 },
};

static const struct word mmap_words[] = {
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

const struct word falloc_words[] = {
	{ "plain", 0 },
	{ "keep", FALLOC_FL_KEEP_SIZE },
	{ "punch", FALLOC_FL_PUNCH_HOLE },
	{ "zero", FALLOC_FL_ZERO_RANGE },
	{ "collapse", FALLOC_FL_COLLAPSE_RANGE },
	{ "insert", FALLOC_FL_INSERT_RANGE },
	{ "unshare", FALLOC_FL_UNSHARE_RANGE },
	{ NULL, 0 },
};

#define PATH(name_, role_)                                                                         \
	{                                                                                          \
		.kind = ARG_PATH, .name = name_, .role = role_                                     \
	}
#define FILE_(name_, role_)                                                                        \
	{                                                                                          \
		.kind = ARG_FILE, .name = name_, .role = role_                                     \
	}
#define OFFSET(name_)                                                                              \
	{                                                                                          \
		.kind = ARG_OFFSET, .name = name_                                                  \
	}
#define LENGTH(name_)                                                                              \
	{                                                                                          \
		.kind = ARG_LENGTH, .name = name_                                                  \
	}
#define MODE(default_)                                                                             \
	{                                                                                          \
		.kind = ARG_MODE, .name = "MODE", .optional = true, .fallback = default_           \
	}
#define FLAGS(words_)                                                                              \
	{                                                                                          \
		.kind = ARG_FLAGS, .name = "FLAGS", .words = words_, .optional = true              \
	}

const struct op_def op_table[] = {
	{
		.name = "creat",
		.help = "Makes an empty regular file, or truncates the one that is there.",
		.args = { PATH("FILE", ROLE_NEW_FILE), MODE(0644) },
		.exec = exec_creat,
	},
	{
		.name = "open",
		.help = "Opens a file or directory and gives the handle a name: f1 = open A/foo "
			"rdwr,creat.",
		.args = { PATH("PATH", ROLE_OBJECT),
			  { .kind = ARG_FLAGS, .name = "FLAGS", .words = open_words },
			  MODE(0644) },
		.flags = OP_MAKES_HANDLE,
		.exec = exec_open,
	},
	{
		.name = "close",
		.help = "Closes a handle.",
		.args = { { .kind = ARG_HANDLE, .name = "HANDLE" } },
		.exec = exec_close,
	},
	{
		.name = "mkdir",
		.help = "Makes a directory.",
		.args = { PATH("DIR", ROLE_NEW_DIR), MODE(0755) },
		.exec = exec_mkdir,
	},
	{
		.name = "rmdir",
		.help = "Removes an empty directory.",
		.args = { PATH("DIR", ROLE_GONE_DIR) },
		.exec = exec_rmdir,
	},
	{
		.name = "mknod",
		.help = "Makes a special file; DEVICE is its device number.",
		.args = { PATH("PATH", ROLE_NEW_OTHER),
			  { .kind = ARG_CHOICE, .name = "KIND", .words = node_words },
			  { .kind = ARG_NUMBER, .name = "DEVICE", .optional = true } },
		.exec = exec_mknod,
	},
	{
		.name = "mkfifo",
		.help = "Makes a named pipe.",
		.args = { PATH("PATH", ROLE_NEW_OTHER), MODE(0644) },
		.exec = exec_mkfifo,
	},
	{
		.name = "link",
		.help = "Gives a file a second name.",
		.args = { PATH("OLD", ROLE_LINK_OLD), PATH("NEW", ROLE_LINK_NEW) },
		.exec = exec_link,
	},
	{
		.name = "symlink",
		.help = "Makes a symbolic link NEW that holds the text TARGET.",
		.args = { { .kind = ARG_TEXT, .name = "TARGET" }, PATH("NEW", ROLE_NEW_OTHER) },
		.exec = exec_symlink,
	},
	{
		.name = "unlink",
		.help = "Removes a name of a file.",
		.args = { PATH("FILE", ROLE_GONE_FILE) },
		.exec = exec_unlink,
	},
	{
		.name = "remove",
		.help = "Removes a file or an empty directory, as remove(3) does.",
		.args = { PATH("PATH", ROLE_GONE_FILE) },
		.exec = exec_remove,
	},
	{
		.name = "rename",
		.help = "Renames OLD to NEW.",
		.args = { PATH("OLD", ROLE_FROM), PATH("NEW", ROLE_TO), FLAGS(rename_words) },
		.exec = exec_rename,
	},
	{
		.name = "write",
		.help = "Writes LENGTH bytes at OFFSET, making the file if it is not there. On a "
			"handle, moves its position there first.",
		.args = { FILE_("FILE", ROLE_MAKE), OFFSET("OFFSET"), LENGTH("LENGTH"),
			  FLAGS(write_words) },
		.flags = OP_WRITES | OP_DATA,
		.exec = exec_write,
	},
	{
		.name = "append",
		.help = "Writes LENGTH bytes at the end of the file (O_APPEND), making it if it is "
			"not there.",
		.args = { FILE_("FILE", ROLE_MAKE), LENGTH("LENGTH"), FLAGS(write_words) },
		.flags = OP_WRITES | OP_DATA,
		.exec = exec_append,
	},
	{
		.name = "pwrite",
		.help = "Writes LENGTH bytes at OFFSET with pwrite(2) into a file that exists.",
		.args = { FILE_("FILE", ROLE_FILE), OFFSET("OFFSET"), LENGTH("LENGTH"),
			  FLAGS(write_words) },
		.flags = OP_WRITES | OP_DATA,
		.exec = exec_pwrite,
	},
	{
		.name = "dwrite",
		.help = "Writes with O_DIRECT, past the page cache; OFFSET and LENGTH are "
			"multiples "
			"of the block size.",
		.args = { FILE_("FILE", ROLE_MAKE), OFFSET("OFFSET"), LENGTH("LENGTH"),
			  FLAGS(write_words) },
		.flags = OP_WRITES | OP_DATA,
		.exec = exec_dwrite,
	},
	{
		.name = "mmapwrite",
		.help = "Extends the file to OFFSET plus LENGTH if it is shorter, writes through a "
			"shared mapping, and calls msync, or not with nosync.",
		.args = { FILE_("FILE", ROLE_MAKE), OFFSET("OFFSET"), LENGTH("LENGTH"),
			  FLAGS(mmap_words) },
		.flags = OP_WRITES | OP_DATA | OP_PERSIST,
		.exec = exec_mmapwrite,
	},
	{
		.name = "read",
		.help = "Reads LENGTH bytes at OFFSET (which may change the access time).",
		.args = { FILE_("FILE", ROLE_DATA), OFFSET("OFFSET"), LENGTH("LENGTH") },
		.exec = exec_read,
	},
	{
		.name = "truncate",
		.help = "Sets the size of a file.",
		.args = { FILE_("FILE", ROLE_DATA), { .kind = ARG_SIZE, .name = "SIZE" } },
		.flags = OP_DATA,
		.exec = exec_truncate,
	},
	{
		.name = "falloc",
		.help = "Allocates, zeroes, punches, collapses or inserts a range, as fallocate(2) "
			"does with these modes.",
		.args = { FILE_("FILE", ROLE_DATA),
			  { .kind = ARG_FLAGS, .name = "MODES", .words = falloc_words },
			  OFFSET("OFFSET"),
			  { .kind = ARG_SIZE, .name = "LENGTH" } },
		.flags = OP_DATA,
		.exec = exec_falloc,
	},
	{
		.name = "copy_file_range",
		.help = "Copies LENGTH bytes from one file to another, which is made if it is not "
			"there.",
		.args = { FILE_("FROM", ROLE_DATA), OFFSET("FROM-OFFSET"), FILE_("TO", ROLE_MAKE),
			  OFFSET("TO-OFFSET"), LENGTH("LENGTH") },
		.flags = OP_DATA,
		.exec = exec_copy_file_range,
	},
	{
		.name = "reflink",
		.help = "Makes TO share the data of FROM (FICLONE).",
		.args = { FILE_("FROM", ROLE_DATA), FILE_("TO", ROLE_MAKE) },
		.flags = OP_DATA,
		.exec = exec_reflink,
	},
	{
		.name = "setxattr",
		.help = "Sets an extended attribute.",
		.args = { FILE_("PATH", ROLE_FILE),
			  { .kind = ARG_XATTR, .name = "NAME" },
			  { .kind = ARG_TEXT, .name = "VALUE" },
			  FLAGS(xattr_words) },
		.exec = exec_setxattr,
	},
	{
		.name = "removexattr",
		.help = "Removes an extended attribute.",
		.args = { FILE_("PATH", ROLE_FILE), { .kind = ARG_XATTR, .name = "NAME" } },
		.exec = exec_removexattr,
	},
	{
		.name = "chmod",
		.help = "Sets the permission bits.",
		.args = { FILE_("PATH", ROLE_OBJECT), { .kind = ARG_MODE, .name = "MODE" } },
		.exec = exec_chmod,
	},
	{
		.name = "chown",
		.help = "Sets owner and group.",
		.args = { FILE_("PATH", ROLE_OBJECT),
			  { .kind = ARG_NUMBER, .name = "UID" },
			  { .kind = ARG_NUMBER, .name = "GID" } },
		.exec = exec_chown,
	},
	{
		.name = "utimens",
		.help = "Sets access and modification time, in seconds since 1970.",
		.args = { FILE_("PATH", ROLE_OBJECT),
			  { .kind = ARG_NUMBER, .name = "ATIME" },
			  { .kind = ARG_NUMBER, .name = "MTIME" } },
		.exec = exec_utimens,
	},
	{
		.name = "fsync",
		.help = "Makes a file or directory durable.",
		.args = { FILE_("PATH", ROLE_OBJECT) },
		.flags = OP_PERSIST,
		.exec = exec_fsync,
	},
	{
		.name = "fdatasync",
		.help = "Makes a file's data durable, and the metadata needed to read it.",
		.args = { FILE_("PATH", ROLE_OBJECT) },
		.flags = OP_PERSIST,
		.exec = exec_fdatasync,
	},
	{
		.name = "sync",
		.help = "Makes everything durable with sync(2).",
		.flags = OP_PERSIST | OP_WHOLE_FS,
		.exec = exec_sync,
	},
	{
		.name = "syncfs",
		.help = "Makes this file system durable with syncfs(2).",
		.flags = OP_PERSIST | OP_WHOLE_FS,
		.exec = exec_syncfs,
	},
	{
		.name = "sync_file_range",
		.help = "Writes out a range of a file's pages; promises nothing after a crash.",
		.args = { FILE_("FILE", ROLE_DATA),
			  OFFSET("OFFSET"),
			  { .kind = ARG_SIZE, .name = "LENGTH" } },
		.exec = exec_sync_file_range,
	},
	{
		.name = "remount",
		.help = "Unmounts the file system and mounts it again; handles are closed.",
		.flags = OP_PERSIST | OP_WHOLE_FS,
		.exec = exec_remount,
	},
	{
		.name = "drop_caches",
		.help = "Makes the kernel forget clean pages, names and inodes.",
		.flags = OP_WHOLE_FS,
		.exec = exec_drop_caches,
	},
	{
		.name = "shell",
		.help = "Runs COMMAND with /bin/sh -c in the root of the file system. What it did "
			"is "
			"looked up there. With atomic, it is to be done as a whole or not at all, "
			"as "
			"a command can that makes one system call.",
		.args = { { .kind = ARG_TEXT, .name = "COMMAND" }, FLAGS(shell_words) },
		.flags = OP_COMMAND,
		.exec = exec_shell,
	},
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

/* A write of nothing reaches no disk, whatever its flags. */
static bool writes_nothing(const struct op *op)
{
	for (size_t i = 0; op->def->flags & OP_WRITES && op->def->args[i].kind != ARG_END; i++)
		if (op->def->args[i].kind == ARG_LENGTH)
			return !op->args[i].num;
	return false;
}

bool op_persists(const struct op *op)
{
	const struct op_def *def = op->def;

	if (writes_nothing(op))
		return false;
	for (size_t i = 0; def->args[i].kind != ARG_END; i++) {
		if (def->args[i].words == write_words && op->args[i].num)
			return true;
		if (def->args[i].words == mmap_words && op->args[i].num & MMAP_NOSYNC)
			return false;
	}
	return def->flags & OP_PERSIST;
}

bool op_has_parts(const struct op *op)
{
	return op->def->flags & OP_COMMAND && !(op->args[1].num & SHELL_ATOMIC);
}
