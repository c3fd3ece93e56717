/* SPDX-License-Identifier: MIT */
/*
 * script.c - shell scripts for who does not have this program: one shows the disk as the crash left
 * it, the other does what the workload did.
 */
#include "report/live.h"
#include "report/report.h"
#include "report/shell.h"
#include "run/attempt.h"

static void put_expected(const struct view *v, struct strbuf *out)
{
	strbuf_adds(out, "expected() {\n\tcat <<'END_OF_LISTING'\n");
	if (v->has_expected)
		shell_listing(v, &v->expected, out);
	strbuf_adds(out, "END_OF_LISTING\n}\n\n");
}

/* The spec of a FUSE server, with the places filled in by the script. */
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

/* What was found in a guest is shown on whatever kernel the script is run on. */
static const char *spec_of(const struct view *v)
{
	static const char *const kinds[] = { "uml:", "vm:pm:", "vm:" };
	const char *spec = v->c.target;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strncmp(spec, kinds[i], strlen(kinds[i])) == 0)
			return spec + strlen(kinds[i]);
	return spec;
}

/* "ext4" of "ext4-dax": what was in persistent memory is the same on a disk. */
static char *type_of(const char *spec, size_t n)
{
	static const char dax[] = "-dax";
	size_t skip = strlen(dax);
	bool cut = n > skip && memcmp(spec + n - skip, dax, skip) == 0;

	if (n == 4 && memcmp(spec, "nova", n) == 0)
		return xstrdup("NOVA"); /* so its kernel calls it */
	return xmemdupz(spec, cut ? n - skip : n);
}

/* That it could be mounted, but read-only, is known by its words alone. */
static bool not_writable(const struct view *v)
{
	for (size_t i = 0; i < v->c.problems.n; i++)
		if (!strncmp(v->c.problems.v[i].words, ATTEMPT_NOT_WRITABLE,
			     strlen(ATTEMPT_NOT_WRITABLE)))
			return true;
	return false;
}

static void put_mount(const struct view *v, struct strbuf *out)
{
	const char *spec = spec_of(v);
	size_t n = strcspn(spec, ",:");
	auto_free char *type = type_of(spec, n);

	strbuf_adds(out, "recover_and_mount() {\n");
	if (streq(type, "fuse")) {
		if (v->c.recover) {
			strbuf_adds(out, "\t( ");
			put_server(v->c.recover, out);
			strbuf_adds(out, " )\n\t[ $? -le 3 ] || return 1 # 1 to 3: repaired\n");
		}
		strbuf_adds(out, "\t( ");
		put_server(spec + min(n + 1, strlen(spec)), out);
		strbuf_adds(out, " ) &\n\tserver=$!\n\tfor _ in $(seq 100); do\n"
				 "\t\tmountpoint -q \"$mnt\" && return 0\n"
				 "\t\tkill -0 \"$server\" 2>/dev/null || return 1\n"
				 "\t\tsleep 0.1\n\tdone\n\treturn 1\n}\n\n");
		return;
	}
	if (streq(type, "ext2"))
		strbuf_adds(out, "\te2fsck -y \"$dev\" || [ $? -le 3 ] || return 1\n");
	strbuf_adds(out, "\tmount -t ");
	shell_quote(out, type);
	strbuf_adds(out, not_writable(v) ? " -o ro,nodev,nosuid" : " -o nodev,nosuid");
	if (streq(type, "xfs"))
		strbuf_adds(out, ",nouuid");
	if (spec[n] == ',') {
		strbuf_addch(out, ',');
		shell_quote(out, spec + n + 1);
	}
	strbuf_adds(out, " \"$dev\" \"$mnt\"\n}\n\n");
}

/* For both scripts: what is told of one thing that must not be. */
#define JUDGE                                                                                      \
	"shows=0\n"                                                                                \
	"told=0\n"                                                                                 \
	"judge() { # STATUS WORDS: 0, the problem shows; 1, it does not; more: nobody can tell\n"  \
	"\tcase $1 in\n"                                                                           \
	"\t0) echo \"shows:             $2\"; shows=1; told=1 ;;\n"                                \
	"\t1) echo \"does not show:     $2\"; told=1 ;;\n"                                         \
	"\t*) echo \"cannot be told:    $2\" ;;\n"                                                 \
	"\tesac\n"                                                                                 \
	"}\n\n"

static const char head[] =
	"# Shows what a crash left on a disk: mounts a copy of crash.img, which lies beside this\n"
	"# script, and looks for what was found. Needs root, losetup, mount and GNU find; for\n"
	"# extended attributes getfattr or python3. Nothing stays mounted.\n"
	"# OUTAGE_PMEM=DEVICE puts the copy there, over what it has, instead of behind a loop\n"
	"# device: some file systems are for persistent memory only.\n"
	"# Exit status: 1 if the problem shows, 0 if it does not, 2 if it cannot be told.\n"
	"set -u\n"
	"here=$(cd \"$(dirname \"$0\")\" && pwd) || exit 2\n"
	"if [ \"$(id -u)\" != 0 ]; then\n"
	"\techo 'this script must be run as root: it mounts' >&2\n"
	"\texit 2\n"
	"fi\n"
	"dev=\n"
	"server=\n"
	"work=$(mktemp -d) || exit 2\n"
	"mnt=$work/mnt\n"
	"disk=$work/disk.img\n"
	"clean_up() {\n"
	"\tcd /\n"
	"\t! mountpoint -q \"$mnt\" || umount \"$mnt\" || umount -l \"$mnt\"\n"
	"\t[ -z \"$dev\" ] || [ \"$dev\" = \"${OUTAGE_PMEM:-}\" ] || losetup -d \"$dev\"\n"
	"\t[ -z \"$server\" ] || kill \"$server\" 2>/dev/null\n"
	"\trm -rf \"$work\"\n"
	"}\n"
	"trap clean_up EXIT\n"
	"trap 'exit 2' INT TERM HUP\n"
	"mkdir \"$mnt\" && cp --sparse=always \"$here/crash.img\" \"$disk\" || exit 2\n\n" JUDGE;

/* ---- is it there? ---- */

/* Every path that is in one tree and not in the other: a condition for each. */
static void put_others(const struct tree *in, const struct tree *not_in, const char *condition,
		       struct strbuf *out)
{
	for (size_t i = 0; i < in->entries.n; i++) {
		const char *path = in->entries.v[i].path;

		if (!*path || tree_find(not_in, path))
			continue;
		strbuf_addf(out, " && %s ", condition);
		shell_quote(out, path);
	}
}

static void put_is(const char *what, const char *path, const char *value, struct strbuf *out)
{
	strbuf_addf(out, "is %s ", what);
	shell_quote(out, path);
	strbuf_addch(out, ' ');
	shell_quote(out, value);
}

/* The value of what the problem is about, as it was seen; false if that is not known. */
static bool seen_value(enum finding_kind kind, const struct tree_entry *e, const char **what,
		       struct strbuf *value)
{
	static const char letters[TREE_TYPE_END] = { '?', 'f', 'd', 'l', 'p', 'c', 'b', 's' };

	switch (kind) {
	case FINDING_TYPE:
		*what = "type";
		strbuf_addch(value, letters[e->type]);
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
		return e->blocks != 0;
	default:
		return false;
	}
}

/* Recovering again gave another state: if that is the expected one, nothing is to be seen. */
static void put_recovered(const struct view *v, const char *path, struct strbuf *out)
{
	const struct tree_entry *e = tree_find(&v->seen, path), *x = tree_find(&v->expected, path);
	auto_strbuf is = STRBUF_INIT, was = STRBUF_INIT;

	if (e)
		shell_facts(e, &is);
	if (x)
		shell_facts(x, &was);
	if (streq(strbuf_str(&is), strbuf_str(&was))) {
		strbuf_adds(out, "(exit 2)");
		return;
	}
	if (!e) {
		strbuf_adds(out, "! there ");
		shell_quote(out, path);
		return;
	}
	strbuf_adds(out, "[ \"$(facts ");
	shell_quote(out, path);
	strbuf_adds(out, ")\" = ");
	shell_quote(out, is.buf);
	strbuf_adds(out, " ]");
}

/* A command of the user's, told what it was told. */
static void put_command(const struct view *v, const char *command, struct strbuf *out)
{
	auto_strbuf under_way = STRBUF_INIT;
	size_t op = view_under_way(v);

	if (op < v->c.workload.ops.n)
		op_print(&v->c.workload.ops.v[op], &under_way);
	strbuf_adds(out, "env ");
	if (v->c.guest_files)
		strbuf_adds(
			out,
			"PATH=\"$guest/usr/sbin:$guest/usr/bin:$guest/sbin:$guest/bin:$PATH\" ");
	strbuf_addf(out, "OUTAGE_DIR=\"$mnt\" OUTAGE_DONE=%llu OUTAGE_OPERATION=",
		    (unsigned long long)v->c.done);
	shell_quote(out, strbuf_str(&under_way));
	strbuf_adds(out, " sh -c ");
	shell_quote(out, command);
	strbuf_adds(out, " sh \"$mnt\"");
}

/* Whether one of the user's commands fails; the check reads what the dump prints. */
static void put_commands(const struct view *v, enum finding_kind kind, struct strbuf *out)
{
	const char *last = kind == FINDING_DUMP ? v->c.dump : v->c.check;

	if (!last) {
		strbuf_adds(out, "(exit 2)");
		return;
	}
	strbuf_adds(out, "! (");
	if (kind == FINDING_CHECK && v->c.dump) {
		put_command(v, v->c.dump, out);
		strbuf_adds(out, " </dev/null | ");
		put_command(v, last, out);
	} else {
		put_command(v, last, out);
		strbuf_adds(out, " </dev/null");
	}
	strbuf_adds(out, ") >>\"$work/said\" 2>&1");
}

/* Where the last ": WHAT is " of the words ends; NULL: it is nowhere. A path may have it, too. */
static const char *after_last(const char *words, const char *what)
{
	const char *last = NULL;

	for (const char *p = words; (p = strstr(p, what)); p++)
		last = p + strlen(what);
	return last;
}

static void put_number(const char *p, struct strbuf *out)
{
	size_t n = strspn(p, "-.0123456789");
	auto_free char *number = xmemdupz(p, n);

	strbuf_addch(out, ' ');
	shell_quote(out, number);
}

/* "foo: mtime is 1704067201.000000000, was 1100000000.000000000". */
static void put_time(const struct stored_problem *p, struct strbuf *out)
{
	const char *m = after_last(p->words, ": mtime is "),
		   *c = after_last(p->words, ": ctime is ");
	const char *seen = m > c ? m : c, *had = seen ? strstr(seen, ", was ") : NULL;

	if (!seen || !had) {
		strbuf_adds(out, "(exit 2)");
		return;
	}
	strbuf_adds(out, seen == m ? "time_is mtime " : "time_is ctime ");
	shell_quote(out, p->path);
	put_number(seen, out);
	put_number(had + strlen(", was "), out);
}

/* A command that succeeds if the problem shows, fails with 1 if not, and with 2 if nobody knows. */
static void put_condition(const struct view *v, const struct stored_problem *p, struct strbuf *out)
{
	const struct tree_entry *e = v->has_seen ? tree_find(&v->seen, p->path) : NULL;
	auto_strbuf value = STRBUF_INIT;
	const char *what = "", *word = NULL;

	switch (p->kind) {
	case FINDING_MISSING:
	case FINDING_LOST:
		word = "! there";
		break;
	case FINDING_BOTH:
	case FINDING_BACK:
	case FINDING_NEVER:
		word = "there";
		break;
	case FINDING_NLINK:
		word = "! all_names_counted";
		break;
	case FINDING_UNREADABLE:
		word = "! readable";
		break;
	case FINDING_DOUBLED:
		word = "listed_twice";
		break;
	case FINDING_RECOVERY:
		if (v->has_seen && v->has_expected)
			put_recovered(v, p->path, out);
		else
			strbuf_adds(out, "(exit 2)");
		return;
	case FINDING_DUMP:
	case FINDING_CHECK:
		put_commands(v, p->kind, out);
		return;
	case FINDING_TIME:
		put_time(p, out);
		return;
	case FINDING_UNUSABLE:
		strbuf_adds(out, "! usable >>\"$work/said\" 2>&1");
		return;
	default:
		if (e && seen_value(p->kind, e, &what, &value))
			put_is(what, p->path, strbuf_str(&value), out);
		else
			strbuf_adds(out, "(exit 2)");
		return;
	}
	strbuf_addf(out, "%s ", word);
	shell_quote(out, p->path);
	if (!v->has_seen || !v->has_expected)
		return;
	if (p->kind == FINDING_LOST)
		put_others(&v->expected, &v->seen, "! there", out);
	if (p->kind == FINDING_BOTH)
		put_others(&v->seen, &v->expected, "there", out);
}

static void put_judge(const struct stored_problem *p, struct strbuf *out)
{
	auto_strbuf words = STRBUF_INIT;

	strbuf_adds(out, "\n\tjudge $? ");
	shell_clean(&words, p->words);
	shell_quote(out, strbuf_str(&words));
	strbuf_addch(out, '\n');
}

static const char *fsck_of(const struct view *v)
{
	static const struct {
		const char *type, *command;
	} checkers[] = {
		{ "ext", "e2fsck -f -n \"$dev\"" },
		{ "xfs", "xfs_repair -n \"$dev\"" },
		{ "btrfs", "btrfs check --readonly \"$dev\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(checkers); i++)
		if (!strncmp(spec_of(v), checkers[i].type, strlen(checkers[i].type)))
			return checkers[i].command;
	return v->c.fsck ? v->c.fsck : "(exit 2)";
}

/* What the mounted tree cannot tell. */
static void put_condition_after(const struct view *v, const struct stored_problem *p,
				struct strbuf *out)
{
	if (p->kind == FINDING_FSCK) {
		strbuf_adds(out, "\t! ");
		put_server(fsck_of(v), out);
		strbuf_adds(out, " >>\"$work/said\" 2>&1");
	} else {
		strbuf_adds(out, "\tkernel_complained");
	}
	put_judge(p, out);
}

static bool comes_after(enum finding_kind kind)
{
	return kind == FINDING_FSCK || kind == FINDING_KERNEL_LOG;
}

static const struct stored_problem *first_of(const struct view *v, enum finding_kind kind)
{
	for (size_t i = 0; i < v->c.problems.n; i++)
		if (v->c.problems.v[i].kind == kind)
			return &v->c.problems.v[i];
	return NULL;
}

static bool has_kind(const struct view *v, enum finding_kind kind)
{
	return first_of(v, kind) != NULL;
}

/* Those that are seen without a change to what is there. */
static void put_seen(const struct view *v, struct strbuf *out)
{
	for (size_t i = 0; i < v->c.problems.n; i++) {
		const struct stored_problem *p = &v->c.problems.v[i];

		if (p->kind == FINDING_UNMOUNTABLE || p->kind == FINDING_UNUSABLE ||
		    comes_after(p->kind))
			continue;
		strbuf_addch(out, '\t');
		put_condition(v, p, out);
		put_judge(p, out);
	}
}

/* Using what is there removes it, so it comes last. */
static void put_problems(const struct view *v, struct strbuf *out)
{
	const struct stored_problem *unusable = first_of(v, FINDING_UNUSABLE);

	put_seen(v, out);
	if (unusable) {
		strbuf_addch(out, '\t');
		put_condition(v, unusable, out);
		put_judge(unusable, out);
	} else if (has_kind(v, FINDING_KERNEL_LOG)) {
		strbuf_adds(out, "\tusable >>\"$work/said\" 2>&1 # it may complain only then\n");
	}
	strbuf_adds(out, "\tcd / && umount \"$mnt\"\n");
	for (size_t i = 0; i < v->c.problems.n; i++)
		if (comes_after(v->c.problems.v[i].kind))
			put_condition_after(v, &v->c.problems.v[i], out);
}

/* The first bytes that are not as expected, for the eye. */
static void put_bytes(const struct view *v, struct strbuf *out)
{
	for (size_t i = 0; i < v->diff.list.n; i++) {
		const struct tree_difference *d = &v->diff.list.v[i];

		if (d->kind != TREE_DIFF_CONTENT || !view_about(v, d->path))
			continue;
		strbuf_addf(out, "\techo 'From byte %llu on:'\n\tod -A d -t x1z -j %llu -N 64 ",
			    (unsigned long long)d->offset, (unsigned long long)d->offset);
		strbuf_adds(out, "./");
		shell_quote(out, d->path);
		strbuf_adds(out, "\n");
	}
}

static const char kernel_functions[] =
	"lines=$(dmesg | wc -l)\n"
	"kernel_complained() {\n"
	"\tdmesg | tail -n +$((lines + 1)) >\"$work/log\"\n"
	"\tcat \"$work/log\"\n"
	"\tgrep -qE 'BUG:|WARNING:|Oops:|Kernel panic' \"$work/log\" ||\n"
	"\t\tgrep -w \"$(basename \"${dev:-none}\")\" \"$work/log\" | grep -v 'errors=' |\n"
	"\t\tgrep -qiE 'error|corrupt|critical|failed|inconsistent|aborting|read-?only'\n"
	"}\n\n";

static const char make_writable[] = "\tif mount -o remount,rw \"$mnt\" >\"$work/said\" 2>&1; then\n"
				    "\t\techo 'When it was found, it could not be made writable.'\n"
				    "\t\texit \"$shows\"\n"
				    "\tfi\n"
				    "\techo 'It cannot be made writable:'\n"
				    "\tcat \"$work/said\"\n"
				    "\texit 1\n";

static void put_body(const struct view *v, struct strbuf *out)
{
	bool unmountable = has_kind(v, FINDING_UNMOUNTABLE) && !not_writable(v);

	strbuf_adds(out, "echo 'What must not be:'\ncat <<'END_OF_FINDING'\n");
	shell_finding(v, out);
	strbuf_adds(out, "END_OF_FINDING\n\n");
	if (strncmp(v->c.target, "fuse", 4) != 0)
		strbuf_adds(out,
			    "if [ -n \"${OUTAGE_PMEM:-}\" ]; then\n"
			    "\tdd if=\"$disk\" of=\"$OUTAGE_PMEM\" bs=1M 2>/dev/null || exit 2\n"
			    "\tdev=$OUTAGE_PMEM\n"
			    "else\n"
			    "\tdev=$(losetup --find --show \"$disk\") || exit 2\n"
			    "fi\n");
	strbuf_adds(out, has_kind(v, FINDING_KERNEL_LOG) ? kernel_functions : "");
	strbuf_adds(
		out,
		"if recover_and_mount >\"$work/said\" 2>&1 && cd \"$mnt\"; then\n"
		"\techo 'It can be mounted; this is there:'\n\tlisting\n"
		"\techo 'Expected (the latest state; a star: what this is about; the rest may '\\\n"
		"'differ):'\n\texpected\n");
	if (unmountable) {
		strbuf_adds(out, "\techo 'When it was found, it could not be mounted.'\n"
				 "\texit 0\n");
	} else if (not_writable(v)) {
		/* Before that is tried, for a kernel may die of it. */
		put_bytes(v, out);
		put_seen(v, out);
		strbuf_adds(out, make_writable);
	} else {
		put_bytes(v, out);
		put_problems(v, out);
		strbuf_adds(out, "\t[ \"$told\" = 1 ] || exit 2\n\texit \"$shows\"\n");
	}
	strbuf_adds(out, "fi\necho 'It cannot be mounted:'\ncat \"$work/said\"\n"
			 "echo 'Expected (the latest state):'\nexpected\n");
	strbuf_adds(out, unmountable ? "exit 1\n"
				     : "echo 'When it was found, it could be mounted.'\nexit 2\n");
}

/* A command that fails for lack of its program would look like the finding. */
static void put_files(const struct view *v, struct strbuf *out)
{
	strbuf_adds(out, "# Programs that commands had in the guest. What they had elsewhere there "
			 "is below\n# this folder, too: put it into its place if they name it.\n"
			 "guest=$here/guest\n");
	if (has_kind(v, FINDING_CHECK) || has_kind(v, FINDING_DUMP)) {
		auto_free char *list = xstrdup(v->c.guest_files);
		char *rest = list;

		strbuf_adds(out, "for file in");
		for (char *line; (line = strsep(&rest, "\n"));) {
			const char *colon = strrchr(line, ':');

			strbuf_addch(out, ' ');
			shell_quote(out, colon ? colon + 1 : line);
		}
		strbuf_adds(out,
			    "; do\n"
			    "\t[ -e \"$guest$file\" ] && continue\n"
			    "\techo \"commands need what the guest had as $file: put it there as "
			    "$guest$file\" >&2\n"
			    "\texit 2\n"
			    "done\n");
	}
	strbuf_addch(out, '\n');
}

void export_reproduce(const struct view *v, struct strbuf *out)
{
	strbuf_adds(out, "#!/bin/sh\n");
	shell_finding(v, out);
	strbuf_adds(out, "#\n");
	strbuf_adds(out, head);
	if (v->c.guest_files)
		put_files(v, out);
	put_expected(v, out);
	strbuf_adds(out, shell_functions);
	put_mount(v, out);
	put_body(v, out);
}

/* ---- the workload ---- */

static const char live_functions[] = JUDGE "differs() { # WHAT PATH VALUE: it is not as expected\n"
					   "\tis \"$@\"\n"
					   "\tcase $? in\n"
					   "\t0) return 1 ;;\n"
					   "\t1) return 0 ;;\n"
					   "\tesac\n"
					   "\treturn 2\n"
					   "}\n\n";

/* How `value` of shell_functions calls what a difference is about; NULL if it does not know. */
static bool expected_value(const struct tree_difference *d, const char **what, struct strbuf *value)
{
	static const enum finding_kind kinds[TREE_DIFF_KIND_END] = {
		[TREE_DIFF_TYPE] = FINDING_TYPE,	   [TREE_DIFF_MODE] = FINDING_MODE,
		[TREE_DIFF_OWNER] = FINDING_OWNER,	   [TREE_DIFF_SIZE] = FINDING_SIZE,
		[TREE_DIFF_TARGET] = FINDING_TARGET,	   [TREE_DIFF_RDEV] = FINDING_RDEV,
		[TREE_DIFF_XATTR_MISSING] = FINDING_XATTR, [TREE_DIFF_XATTR_EXTRA] = FINDING_XATTR,
		[TREE_DIFF_XATTR_VALUE] = FINDING_XATTR,
	};

	if (d->kind == TREE_DIFF_NLINK) {
		*what = "links";
		strbuf_addu(value, d->expected->nlink);
		return *d->path; /* how many the root has to begin with, mkfs knows */
	}
	/* What the script writes is not what the workload wrote: content tells nothing. */
	return d->expected && kinds[d->kind] &&
	       seen_value(kinds[d->kind], d->expected, what, value);
}

static void put_live_difference(const struct tree_difference *d, struct strbuf *out)
{
	auto_strbuf value = STRBUF_INIT, words = STRBUF_INIT;
	const char *what = "";

	if (d->kind == TREE_DIFF_MISSING || d->kind == TREE_DIFF_EXTRA) {
		strbuf_adds(out, d->kind == TREE_DIFF_MISSING ? "! there " : "there ");
		shell_quote(out, d->path);
	} else if (expected_value(d, &what, &value)) {
		strbuf_addf(out, "differs %s ", what);
		shell_quote(out, d->path);
		strbuf_addch(out, ' ');
		shell_quote(out, strbuf_str(&value));
	} else {
		strbuf_adds(out, "(exit 2) # workload.c may tell");
	}
	strbuf_adds(out, "\njudge $? ");
	shell_clean(&words, d->words);
	shell_quote(out, strbuf_str(&words));
	strbuf_addch(out, '\n');
}

/* A command tells only whether it succeeded, and many do more than the call in question. */
static bool is_one_call(const struct op *op)
{
	static const char *const names[] = { "mkdir",	"rmdir",  "unlink",   "link",
					     "symlink", "mkfifo", "setxattr", "removexattr" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(op->def->name, names[i]))
			return true;
	return false;
}

static void put_live_result(const struct view *v, const struct live *l, struct strbuf *out)
{
	if ((l->seen < 0) == (l->expected < 0) || !is_one_call(&vec_last(&v->c.workload.ops)))
		strbuf_adds(out, "(exit 2) # workload.c can tell\n");
	else
		strbuf_addf(out, "[ \"$last\" %s 0 ]\n", l->expected < 0 ? "=" : "!=");
	strbuf_adds(out, "judge $? 'the last operation'\n");
}

static void put_live_end(const struct view *v, const struct live *l, struct strbuf *out)
{
	strbuf_adds(out, "last=$?\n\n");
	if (l->kind == LIVE_RESULT)
		put_live_result(v, l, out);
	for (size_t i = 0; i < l->diff.list.n; i++)
		put_live_difference(&l->diff.list.v[i], out);
	strbuf_adds(out, "[ \"$told\" = 1 ] && [ \"$left_out\" = 0 ] || exit 2\nexit \"$shows\"\n");
}

void export_workload_sh(const struct view *v, struct strbuf *out)
{
	const struct workload *w = &v->c.workload;
	auto_live l;

	live_load(v, &l);
	strbuf_adds(out,
		    "#!/bin/sh\n# workload.sh DIR: does what the workload did, in DIR. What it "
		    "writes differs:\n# the bytes say which operation wrote them, no more.\n#\n");
	shell_finding(v, out);
	if (l.kind != LIVE_NONE)
		strbuf_adds(out, "# Exit status: 1 if the problem shows, 0 if all is as it should "
				 "be, 2 if it\n# cannot be told.\n");
	strbuf_adds(out, "set -u\ncd \"${1:?usage: workload.sh DIR}\" || exit 2\numask 022\n"
			 "left_out=0\n\n"
			 "# content OPERATION LENGTH: bytes that say who wrote them\n"
			 "content() {\n\tyes \"operation $1\" | head -c \"$2\"\n}\n\n"
			 "# skip OPERATION: no command does this one; workload.c can\n"
			 "skip() {\n\techo \"left out: $1\" >&2\n\tleft_out=1\n}\n\n");
	if (l.kind != LIVE_NONE) {
		strbuf_adds(out, shell_functions);
		strbuf_adds(out, live_functions);
	}
	for (size_t i = 0; i < w->ops.n; i++) {
		strbuf_addf(out, "# %zu: %s", i, w->ops.v[i].setup ? "setup " : "");
		op_print(&w->ops.v[i], out);
		strbuf_addch(out, '\n');
		shell_op(w, i, SHELL_PLAIN, out);
		if (!stored_case_live(&v->c) && i + 1 == v->c.done)
			strbuf_adds(out, "# ---- the power fails about here ----\n");
	}
	if (l.kind != LIVE_NONE)
		put_live_end(v, &l, out);
}
