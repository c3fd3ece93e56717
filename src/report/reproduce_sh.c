/* SPDX-License-Identifier: MIT */
/*
 * reproduce_sh.c - makes a shell script for people without this program: the script shows the disk
 * after the crash, and does the same as run/attempt.c when the problem was found, in the same
 * order.
 *
 * The tests and doc/ rely on the exit status of the script: 1 if the problem shows, 0 if it does
 * not, and 2 if that is unknown, such as for want of a program, a device or a log.
 */
#include "report/report.h"
#include "report/reproduce_sh.h"
#include "report/shell.h"
#include "run/attempt.h"

/* Returns the first problem of that kind, or NULL. */
static const struct stored_problem *script_first(const struct view *v, enum finding_kind kind)
{
	return vec_find(i, &v->c.problems, v->c.problems.v[i].kind == kind);
}

bool script_has(const struct view *v, enum finding_kind kind)
{
	return script_first(v, kind) != NULL;
}

static void put_expected(const struct view *v, struct strbuf *out)
{
	strbuf_adds(out, "expected() {\n\tcat <<'END_OF_LISTING'\n");
	if (v->has_expected)
		shell_listing(v, &v->expected, out);
	strbuf_adds(out, "END_OF_LISTING\n}\n\n");
}

/* ---- the user's commands ---- */

/* Puts a function that runs a command of the user with the variables it had. */
static void put_command(const struct view *v, const char *name, const char *command,
			const char *streams, struct strbuf *out)
{
	auto_strbuf under_way = STRBUF_INIT;
	size_t op = view_under_way(v);

	if (!command)
		return;
	if (op < v->c.workload.ops.n)
		op_print(&v->c.workload.ops.v[op], &under_way);
	strbuf_addf(out, "%s() {\n\tenv ", name);
	if (v->c.guest_files)
		strbuf_adds(
			out,
			"PATH=\"$guest/usr/sbin:$guest/usr/bin:$guest/sbin:$guest/bin:$PATH\" ");
	shell_addf(out, "OUTAGE_DIR=\"$mnt\" OUTAGE_DONE=%llu OUTAGE_OPERATION=%s sh -c %s",
		   llu(v->c.done), strbuf_str(&under_way), command);
	strbuf_addf(out, " sh \"$mnt\" %s 2>>\"$work/said\"\n}\n\n", streams);
}

static void put_commands(const struct view *v, struct strbuf *out)
{
	put_command(v, "dump", v->c.dump, "</dev/null >\"$work/dump\"", out);
	/* The check reads the output of the dump. */
	put_command(v, "check", v->c.check,
		    v->c.dump ? "<\"$work/dump\" >>\"$work/said\"" : "</dev/null >>\"$work/said\"",
		    out);
}

/* Judges all problems of a kind with one status. */
static void put_judges(const struct view *v, enum finding_kind kind, const char *indent,
		       const char *status, struct strbuf *out)
{
	for (size_t i = 0; i < v->c.problems.n; i++) {
		if (v->c.problems.v[i].kind != kind)
			continue;
		strbuf_adds(out, indent);
		shell_put_judge(out, status, v->c.problems.v[i].words);
	}
}

/* True for kinds that show in the mounted tree after recovery. */
static bool is_seen(enum finding_kind kind)
{
	switch (kind) {
	case FINDING_UNMOUNTABLE:
	case FINDING_KERNEL_LOG:
	case FINDING_UNUSABLE:
	case FINDING_FSCK:
	case FINDING_DUMP:
	case FINDING_CHECK:
		return false;
	default:
		return true;
	}
}

static void put_seen(const struct view *v, struct strbuf *out)
{
	vec_each(p, &v->c.problems) {
		if (!is_seen(p->kind))
			continue;
		script_condition(v, p, out);
		strbuf_addch(out, '\n');
		shell_put_judge(out, "$?", p->words);
	}
}

/* Shows the first bytes that are not as expected. */
static void put_bytes(const struct view *v, struct strbuf *out)
{
	vec_each(d, &v->diff.list) {
		if (d->kind != TREE_DIFF_CONTENT || !view_about(v, d->path))
			continue;
		shell_addf(out, "echo 'From byte %llu on:'\nod -A d -t x1z -j %llu -N 64 ./%s\n",
			   llu(d->offset), llu(d->offset), d->path);
	}
}

/* ---- the kind of mount ---- */

/* Returns the problem that begins with `how`: the disk could be mounted, but read-only, or once. */
static const struct stored_problem *unmountable(const struct view *v, const char *how)
{
	return vec_find(i, &v->c.problems,
			v->c.problems.v[i].kind == FINDING_UNMOUNTABLE &&
				!strncmp(v->c.problems.v[i].words, how, strlen(how)));
}

/* Returns the problem of a disk that could not be mounted at all. */
static const struct stored_problem *refused(const struct view *v)
{
	const struct stored_problem *p = script_first(v, FINDING_UNMOUNTABLE);

	return unmountable(v, ATTEMPT_NOT_WRITABLE) || unmountable(v, ATTEMPT_NOT_AGAIN) ? NULL : p;
}

static bool read_only_first(const struct view *v)
{
	return unmountable(v, ATTEMPT_NOT_WRITABLE) ||
	       (v->c.mounted && streq(v->c.mounted, STORE_READ_ONLY));
}

/* ---- the steps of run/attempt.c ---- */

/* True if the script uses the file system: a bug may show only then, or in the user's command. */
static bool is_used(const struct view *v)
{
	return script_has(v, FINDING_KERNEL_LOG) || script_has(v, FINDING_UNUSABLE);
}

static bool is_checked_by_fsck(const struct view *v)
{
	return script_has(v, FINDING_FSCK) || unmountable(v, ATTEMPT_NOT_AGAIN) ||
	       (v->c.with_fsck && is_used(v));
}

static bool is_checked(const struct view *v)
{
	return v->c.check && (script_has(v, FINDING_CHECK) || is_used(v));
}

static bool is_dumped(const struct view *v)
{
	return v->c.dump && (script_has(v, FINDING_DUMP) || is_checked(v) || is_used(v));
}

static void put_mount(const struct view *v, struct strbuf *out)
{
	const char *how = read_only_first(v) ? "ro" : "rw";

	strbuf_adds(out, ": >\"$work/said\"\nnew_disk || exit 2\n");
	if (script_has(v, FINDING_KERNEL_LOG))
		strbuf_adds(out, "follow_log\n");
	if (v->c.mounted && streq(v->c.mounted, STORE_REFUSED))
		strbuf_adds(out, "# It refused to be mounted read-only; what the kernel said of "
				 "that counts, too.\n"
				 "recover >/dev/null 2>&1\n"
				 "! mount_as ro >/dev/null 2>&1 || unmount\n"
				 "listen\n"
				 "new_disk || exit 2\n");
	strbuf_addf(
		out,
		"if ! recover >\"$work/said\" 2>&1 || ! mount_as %s >>\"$work/said\" 2>&1; then\n"
		"\techo 'It cannot be mounted:'\n"
		"\tcat \"$work/said\"\n"
		"\techo 'Expected (the latest state):'\n"
		"\texpected\n"
		"\t[ \"$no_program\" = 0 ] || exit 2\n",
		how);
	if (refused(v)) {
		put_judges(v, FINDING_UNMOUNTABLE, "\t", "0", out);
		strbuf_adds(out, "\tfinish\n");
	} else {
		strbuf_adds(out, "\techo 'When it was found, it could be mounted.'\n\texit 2\n");
	}
	strbuf_adds(
		out,
		"fi\n"
		"echo 'It can be mounted; this is there:'\n"
		"listing >\"$work/listing\"\n"
		"cat \"$work/listing\"\n"
		"echo 'Expected (the latest state; a star: what this is about; the rest may '\\\n"
		"'differ):'\n"
		"expected\n");
	if (refused(v)) {
		strbuf_adds(out, "echo 'When it was found, it could not be mounted.'\n");
		put_judges(v, FINDING_UNMOUNTABLE, "", "1", out);
	}
}

static void put_look(const struct view *v, struct strbuf *out)
{
	put_bytes(v, out);
	put_seen(v, out);
	if (!is_dumped(v))
		put_judges(v, FINDING_DUMP, "", "2", out);
	else
		strbuf_adds(out, "dump\ndumped=$?\n");
	if (is_dumped(v) && script_has(v, FINDING_DUMP)) {
		strbuf_adds(out, "fails \"$dumped\"\ndumped_badly=$?\n");
		put_judges(v, FINDING_DUMP, "", "\"$dumped_badly\"", out);
	}
	strbuf_adds(out, "listen\n");
}

/* Makes the mount writable, with all options again: mount(2) may drop those that are missing. */
static void put_make_writable(const struct view *v, struct strbuf *out)
{
	const struct stored_problem *not_writable = unmountable(v, ATTEMPT_NOT_WRITABLE);

	strbuf_adds(out, "writable=1\n");
	if (!read_only_first(v))
		return;
	strbuf_adds(out, "if ! mount -o \"remount,rw,$options\" \"$dev\" \"$mnt\" >\"$work/said\" "
			 "2>&1; then\n"
			 "\techo 'It cannot be made writable:'\n"
			 "\tcat \"$work/said\"\n"
			 "\twritable=0\n");
	if (not_writable) {
		strbuf_adds(out, "\t");
		shell_put_judge(out, "0", not_writable->words);
		strbuf_adds(out, "else\n"
				 "\techo 'When it was found, it could not be made writable.'\n\t");
		shell_put_judge(out, "1", not_writable->words);
	} else {
		strbuf_adds(out, "\tuntold=1\n");
	}
	strbuf_adds(out, "fi\nlisten\n");
}

static void put_check(const struct view *v, struct strbuf *out)
{
	if (!is_checked(v)) {
		put_judges(v, FINDING_CHECK, "", "2", out);
		return;
	}
	strbuf_adds(out, "checked_badly=2\n");
	strbuf_addf(out,
		    "if [ \"$writable\" = 1 ]%s; then\n\tcheck\n\tfails $?\n"
		    "\tchecked_badly=$?\n\tlisten\nfi\n",
		    v->c.dump ? " && [ \"$dumped\" = 0 ]" : "");
	put_judges(v, FINDING_CHECK, "", "\"$checked_badly\"", out);
}

/* Checks the file system as a user would: unmounts, checks, and mounts again. */
static void put_fsck(const struct view *v, struct strbuf *out)
{
	const struct stored_problem *again = unmountable(v, ATTEMPT_NOT_AGAIN);

	strbuf_adds(out, "complains=2\n"
			 "if [ \"$writable\" = 1 ] && unmount; then\n"
			 "\tfsck_complains\n"
			 "\tcomplains=$?\n"
			 "\t[ \"$complains\" != 0 ] || cat \"$work/said\"\n"
			 "\tif ! mount_as rw >\"$work/said\" 2>&1; then\n"
			 "\t\techo 'It cannot be mounted again:'\n"
			 "\t\tcat \"$work/said\"\n"
			 "\t\twritable=0\n");
	if (again) {
		strbuf_adds(out, "\t\t");
		shell_put_judge(out, "0", again->words);
		strbuf_adds(out, "\telse\n\t\t");
		shell_put_judge(out, "1", again->words);
	} else {
		strbuf_adds(out, "\t\tuntold=1\n");
	}
	strbuf_adds(out, "\tfi\n\tlisten\nelse\n\tuntold=1\nfi\n");
	put_judges(v, FINDING_FSCK, "", "\"$complains\"", out);
}

static void put_use(const struct view *v, struct strbuf *out)
{
	strbuf_adds(out, "unusable=2\n"
			 "[ \"$writable\" = 0 ] || use >\"$work/said\" 2>&1\n"
			 "[ \"$unusable\" != 0 ] || cat \"$work/said\"\n");
	put_judges(v, FINDING_UNUSABLE, "", "\"$unusable\"", out);
}

static void put_body(const struct view *v, struct strbuf *out)
{
	strbuf_adds(out, "echo 'What must not be:'\ncat <<'END_OF_FINDING'\n");
	shell_finding(v, out);
	strbuf_adds(out, "END_OF_FINDING\n\n");
	put_mount(v, out);
	put_look(v, out);
	put_make_writable(v, out);
	put_check(v, out);
	if (is_checked_by_fsck(v))
		put_fsck(v, out);
	if (is_used(v))
		put_use(v, out);
	if (script_has(v, FINDING_KERNEL_LOG)) {
		strbuf_adds(out, "unmount || untold=1\nkernel_complained\ncomplained=$?\n");
		put_judges(v, FINDING_KERNEL_LOG, "", "\"$complained\"", out);
	}
	strbuf_adds(out, "finish\n");
}

/* Refuses if programs are missing: a command that fails for that would look like the finding. */
static void put_files(const struct view *v, struct strbuf *out)
{
	strbuf_adds(out, "# Programs that commands had in the guest. What they had elsewhere there "
			 "is below\n# this folder, too: put it into its place if they name it.\n"
			 "guest=$here/guest\n");
	if (script_has(v, FINDING_CHECK) || script_has(v, FINDING_DUMP)) {
		auto_free char *list = xstrdup(v->c.guest_files);
		char *rest = list;

		strbuf_adds(out, "for file in");
		for (char *line; (line = strsep(&rest, "\n"));) {
			const char *colon = strrchr(line, ':');

			shell_addf(out, " %s", colon ? colon + 1 : line);
		}
		strbuf_adds(out, "; do\n"
				 "\t[ -e \"$guest$file\" ] && continue\n"
				 "\techo \"commands need what the guest had as $file: put it there "
				 "as $guest$file\" >&2\n"
				 "\texit 2\n"
				 "done\n");
	}
	strbuf_addch(out, '\n');
}

void export_reproduce(const struct view *v, struct strbuf *out)
{
	strbuf_adds(out, "#!/bin/sh\n");
	shell_strange(v->c.ours, "# ", out);
	shell_finding(v, out);
	strbuf_adds(out, "#\n");
	strbuf_adds(out, reproduce_head);
	if (v->c.guest_files)
		put_files(v, out);
	strbuf_adds(out, shell_judge);
	put_expected(v, out);
	strbuf_adds(out, shell_functions);
	if (script_has(v, FINDING_HALF_DONE) || script_has(v, FINDING_UNSETTLED))
		strbuf_adds(out, script_whole_tree);
	script_fs(v, out);
	strbuf_adds(out, reproduce_unmount);
	strbuf_adds(out, reproduce_fails);
	put_commands(v, out);
	if (is_checked_by_fsck(v))
		script_fsck(v, out);
	if (script_has(v, FINDING_KERNEL_LOG))
		shell_kernel_log(v, out);
	else
		strbuf_adds(out, "listen() { # the kernel's log is not needed\n\t:\n}\n\n");
	if (is_used(v))
		strbuf_adds(out, shell_use);
	put_body(v, out);
}
