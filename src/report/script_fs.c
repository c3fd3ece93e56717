/* SPDX-License-Identifier: MIT */
/* script_fs.c - the part of reproduce.sh that recovers, mounts and checks a file system. */
#include "report/reproduce_sh.h"
#include "report/shell.h"

/* A file system that is mounted from a disk. The commands get the device as argument. */
struct script_fs {
	const char *type;
	const char *options;
	const char *recover, *repair; /* `repair` runs if `recover` fails */
	const char *fsck;
	const char *ignored; /* a name in its root that the file system makes itself */
};

static const struct script_fs file_systems[] = {
	{ "ext2", NULL, "e2fsck -p", "e2fsck -y", "e2fsck -f -n", "lost+found" },
	{ "ext3", NULL, NULL, NULL, "e2fsck -f -n", "lost+found" },
	{ "ext4", NULL, NULL, NULL, "e2fsck -f -n", "lost+found" },
	{ "xfs", "nouuid", NULL, NULL, "xfs_repair -n", NULL },
	{ "btrfs", NULL, NULL, NULL, "btrfs check --readonly", NULL },
	{ "jfs", NULL, "fsck.jfs -a", NULL, "fsck.jfs -n -f", NULL },
	{ "reiserfs", "user_xattr", NULL, NULL, "reiserfsck --check -y -q", NULL },
	{ "f2fs", NULL, NULL, NULL, "fsck.f2fs --dry-run", NULL },
	{ "nilfs2", NULL, NULL, NULL, NULL, ".nilfs" },
	{ "bcachefs", NULL, NULL, NULL, NULL, NULL },
};

static const struct script_fs *fs_of(const char *type)
{
	return array_find(i, file_systems, streq(file_systems[i].type, type));
}

static bool script_is_fuse(const struct view *v)
{
	return strncmp(v->c.target, "fuse", 4) == 0;
}

/* Puts the command of a FUSE server, with the places that the script fills in. */
static void put_server(const char *command, struct strbuf *out)
{
	while (*command) {
		if (!strncmp(command, "{disk}", 6) || !strncmp(command, "{mnt}", 5)) {
			strbuf_adds(out, command[1] == 'd' ? "\"$disk\"" : "\"$mnt\"");
			command += command[1] == 'd' ? 6 : 5;
		} else {
			strbuf_addch(out, *command++);
		}
	}
}

/* Returns the target without its guest: any kernel that runs the script shows the finding. */
static const char *spec_of(const struct view *v)
{
	static const char *const kinds[] = { "uml:", "vm:pm:", "vm:" };
	const char *spec = v->c.target;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strncmp(spec, kinds[i], strlen(kinds[i])) == 0)
			return spec + strlen(kinds[i]);
	return spec;
}

/* Returns "ext4" for "ext4-dax": the content of persistent memory is the same on a disk. */
static char *type_of(const char *spec, bool *dax)
{
	static const char suffix[] = "-dax";
	size_t n = strcspn(spec, ",:"), skip = strlen(suffix);

	*dax = n > skip && memcmp(spec + n - skip, suffix, skip) == 0;
	if (n == 4 && memcmp(spec, "nova", n) == 0)
		return xstrdup("NOVA"); /* the name in its kernel */
	return xmemdupz(spec, *dax ? n - skip : n);
}

static void add_option(struct strbuf *list, const char *option)
{
	strbuf_addf(list, "%s%s", list->len ? "," : "", option);
}

/* Puts the mount options; those for DAX only for persistent memory: on a disk they fail. */
static void put_options(const char *spec, const struct script_fs *fs, bool dax, struct strbuf *out)
{
	auto_strbuf plain = STRBUF_INIT, pm = STRBUF_INIT;
	const char *comma = strchr(spec, ',');
	auto_free char *copy = xstrdup(comma ? comma + 1 : "");
	char *rest = copy;

	strbuf_adds(&plain, "nodev,nosuid");
	if (fs && fs->options)
		add_option(&plain, fs->options);
	if (dax)
		add_option(&pm, "dax");
	for (char *word; (word = strsep(&rest, ","));)
		if (*word)
			add_option(streq(word, "dax") || streq(word, "dax=always") ? &pm : &plain,
				   word);
	shell_addf(out, "options=%s\n", strbuf_str(&plain));
	if (pm.len)
		shell_addf(out, "[ -z \"${OUTAGE_PMEM:-}\" ] || options=$options,%s\n",
			   strbuf_str(&pm));
}

static void put_refusal(const char *condition, const char *words, struct strbuf *out)
{
	strbuf_addf(out, "if %s; then\n\techo 'cannot be told: %s' >&2\n\texit 2\nfi\n", condition,
		    words);
}

static void put_needs_program(const char *command, struct strbuf *out)
{
	auto_free char *name = xmemdupz(command, strcspn(command, " "));
	auto_free char *condition = xasprintf("! command -v %s >/dev/null", name);
	auto_free char *words = xasprintf("%s is not there", name);

	put_refusal(condition, words, out);
}

/* Refuses if a mount would fail without a fault of the file system. */
static void put_needs(const struct script_fs *fs, const char *type, struct strbuf *out)
{
	auto_strbuf known = STRBUF_INIT, quoted = STRBUF_INIT;

	shell_quote(&quoted, type);
	if (streq(type, "jffs2") || streq(type, "ubifs"))
		put_refusal("true",
			    "it is mounted from flash, and crash.img is behind a loop device", out);
	else if (!fs)
		put_refusal(
			"[ -z \"${OUTAGE_PMEM:-}\" ]",
			"this file system is for persistent memory: OUTAGE_PMEM must name a device",
			out);
	strbuf_addf(&known,
		    "! awk '{ print $NF }' /proc/filesystems | grep -qxF -e %s &&\n"
		    "\t! modprobe -q fs-%s 2>/dev/null && ! modprobe -q %s 2>/dev/null",
		    quoted.buf, quoted.buf, quoted.buf);
	put_refusal(strbuf_str(&known), "this kernel has no such file system", out);
	if (fs && fs->recover)
		put_needs_program(fs->recover, out);
	strbuf_addch(out, '\n');
}

static void put_recover(const struct script_fs *fs, struct strbuf *out)
{
	strbuf_adds(out, "recover() { # a status of 1 to 3: it was repaired\n");
	if (fs && fs->repair)
		strbuf_addf(out, "\t%s \"$dev\" || [ $? -le 3 ] || %s \"$dev\" || [ $? -le 3 ]\n",
			    fs->recover, fs->repair);
	else if (fs && fs->recover)
		strbuf_addf(out, "\t%s \"$dev\" || [ $? -le 3 ]\n", fs->recover);
	else
		strbuf_adds(out, "\t: # by the mount\n");
	strbuf_adds(out, "}\n\n");
}

static void put_kernel_fs(const struct view *v, struct strbuf *out)
{
	bool dax;
	const char *spec = spec_of(v);
	auto_free char *type = type_of(spec, &dax);
	const struct script_fs *fs = fs_of(type);

	strbuf_addf(out, "ignored=%s\n", fs && fs->ignored ? fs->ignored : "lost+found");
	put_options(spec, fs, dax, out);
	put_needs(fs, type, out);
	strbuf_adds(out, script_new_disk);
	put_recover(fs, out);
	shell_addf(out,
		   "mount_as() { # rw or ro\n\tmount -t %s -o \"$1,$options\" \"$dev\" \"$mnt\" && "
		   "cd \"$mnt\"\n}\n\n",
		   type);
}

static void put_fuse(const struct view *v, struct strbuf *out)
{
	const char *spec = spec_of(v), *colon = strchr(spec, ':');

	strbuf_adds(out, "ignored=lost+found\n\n"
			 "new_disk() { # as the crash left it\n"
			 "\tcp --sparse=always \"$here/crash.img\" \"$disk\"\n"
			 "}\n\n"
			 "recover() { # a status of 1 to 3: it was repaired\n");
	if (v->c.recover) {
		strbuf_adds(out, "\t( ");
		put_server(v->c.recover, out);
		strbuf_adds(out, " )\n\tset -- $?\n\t[ \"$1\" != 127 ] || no_program=1\n"
				 "\t[ \"$1\" -le 3 ]\n");
	} else {
		strbuf_adds(out, "\t: # by the server\n");
	}
	strbuf_adds(out, "}\n\nmount_as() {\n\t( ");
	put_server(colon ? colon + 1 : "", out);
	strbuf_adds(out, " ) &\n");
	strbuf_adds(out, script_await_server);
}

void script_fs(const struct view *v, struct strbuf *out)
{
	if (script_is_fuse(v))
		put_fuse(v, out);
	else
		put_kernel_fs(v, out);
}

void script_fsck(const struct view *v, struct strbuf *out)
{
	bool dax;
	auto_free char *type = type_of(spec_of(v), &dax);
	const struct script_fs *fs = fs_of(type);

	strbuf_adds(out, "fsck_complains() {\n");
	if (script_is_fuse(v) && v->c.fsck) {
		strbuf_adds(out, "\t( ");
		put_server(v->c.fsck, out);
		strbuf_adds(out, " ) >>\"$work/said\" 2>&1\n\tfails $?\n");
	} else if (!script_is_fuse(v) && fs && fs->fsck) {
		strbuf_addf(out, "\t%s \"$dev\" >>\"$work/said\" 2>&1\n\tfails $?\n", fs->fsck);
	} else {
		strbuf_adds(out, "\treturn 2 # it has no such program\n");
	}
	strbuf_adds(out, "}\n\n");
}
