/* SPDX-License-Identifier: MIT */
/*
 * script.c - shell scripts for who does not have this program: one shows the disk as the crash left
 * it, the other does what the workload did.
 */
#include "report/report.h"
#include "report/shell.h"

static void put_listing(struct strbuf *out, const char *name, bool there, const struct tree *t)
{
	strbuf_addf(out, "%s() {\n\tcat <<'END_OF_LISTING'\n", name);
	if (there)
		shell_listing(t, out);
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

static void put_mount(const struct view *v, struct strbuf *out)
{
	const char *spec = v->c.target;
	size_t n = strcspn(spec, ",:");
	auto_free char *type = xmemdupz(spec, n);

	strbuf_adds(out, "recover_and_mount() {\n");
	if (streq(type, "fuse")) {
		if (v->c.recover) {
			strbuf_addch(out, '\t');
			put_server(v->c.recover, out);
			strbuf_adds(out, " || return 1\n");
		}
		strbuf_adds(out, "\t( ");
		put_server(spec + min(n + 1, strlen(spec)), out);
		strbuf_adds(out, " ) &\n\tfor _ in 1 2 3 4 5 6 7 8 9 10; do\n"
				 "\t\tmountpoint -q \"$mnt\" && return 0\n\t\tsleep 1\n\tdone\n"
				 "\treturn 1\n}\n\n");
		return;
	}
	if (streq(type, "ext2"))
		strbuf_adds(out, "\te2fsck -y \"$dev\" || [ $? -le 3 ] || return 1\n");
	strbuf_adds(out, "\tmount -t ");
	shell_quote(out, type);
	strbuf_adds(out, " -o nodev,nosuid");
	if (streq(type, "xfs"))
		strbuf_adds(out, ",nouuid");
	if (spec[n] == ',') {
		strbuf_addch(out, ',');
		shell_quote(out, spec + n + 1);
	}
	strbuf_adds(out, " \"$dev\" \"$mnt\"\n}\n\n");
}

static const char head[] =
	"# Shows what a crash left on a disk: mounts a copy of crash.img, which lies beside this\n"
	"# script. Needs root, losetup and mount. Nothing stays mounted.\n"
	"# Exit status: 1 if it is as it was found, 0 if not, 2 if it cannot be shown.\n"
	"set -u\n"
	"here=$(cd \"$(dirname \"$0\")\" && pwd) || exit 2\n"
	"if [ \"$(id -u)\" != 0 ]; then\n"
	"\techo 'this script must be run as root: it mounts' >&2\n"
	"\texit 2\n"
	"fi\n"
	"dev=\n"
	"work=$(mktemp -d) || exit 2\n"
	"mnt=$work/mnt\n"
	"disk=$work/disk.img\n"
	"clean_up() {\n"
	"\t! mountpoint -q \"$mnt\" || umount \"$mnt\" || umount -l \"$mnt\"\n"
	"\t[ -z \"$dev\" ] || losetup -d \"$dev\"\n"
	"\trm -rf \"$work\"\n"
	"}\n"
	"trap clean_up EXIT\n"
	"trap 'exit 2' INT TERM HUP\n"
	"mkdir \"$mnt\" && cp --sparse=always \"$here/crash.img\" \"$disk\" || exit 2\n\n";

static void put_body(const struct view *v, struct strbuf *out)
{
	strbuf_adds(out, "echo 'What must not be:'\ncat <<'END_OF_FINDING'\n");
	shell_finding(v, out);
	strbuf_adds(out, "END_OF_FINDING\n\n");
	if (strncmp(v->c.target, "fuse", 4) != 0)
		strbuf_adds(out, "dev=$(losetup --find --show \"$disk\") || exit 2\n");
	strbuf_adds(out, "if recover_and_mount >\"$work/said\" 2>&1; then\n"
			 "\techo 'It can be mounted; this is there:'\n\t(cd \"$mnt\" && ");
	shell_find(out);
	strbuf_adds(out, ") >\"$work/there\"\n\tcat \"$work/there\"\n"
			 "\techo 'This was expected:'\n\texpected\n"
			 "\tumount \"$mnt\"\n"
			 "\tseen >\"$work/seen\"\n");
	strbuf_adds(out, v->has_seen ? "\t! cmp -s \"$work/there\" \"$work/seen\" || exit 1\n"
				       "\techo 'It is not as it was found.'\n"
				       "\texit 0\n"
				     : "\techo 'When it was found, it could not be mounted.'\n"
				       "\texit 0\n");
	strbuf_adds(out, "fi\necho 'It cannot be mounted:'\ncat \"$work/said\"\n"
			 "echo 'This was expected:'\nexpected\n");
	strbuf_addf(out, "exit %d\n", v->has_seen ? 0 : 1);
}

void export_reproduce(const struct view *v, struct strbuf *out)
{
	strbuf_adds(out, "#!/bin/sh\n");
	shell_finding(v, out);
	strbuf_adds(out, "#\n");
	strbuf_adds(out, head);
	put_listing(out, "expected", v->has_expected, &v->expected);
	put_listing(out, "seen", v->has_seen, &v->seen);
	put_mount(v, out);
	put_body(v, out);
}

/* ---- the workload ---- */

void export_workload_sh(const struct view *v, struct strbuf *out)
{
	const struct workload *w = &v->c.workload;

	strbuf_adds(out,
		    "#!/bin/sh\n# workload.sh DIR: does what the workload did, in DIR. What it "
		    "writes differs:\n# the bytes say which operation wrote them, no more.\n#\n");
	shell_finding(v, out);
	strbuf_adds(out, "set -u\ncd \"${1:?usage: workload.sh DIR}\" || exit 2\numask 022\n\n"
			 "# content OPERATION LENGTH: bytes that say who wrote them\n"
			 "content() {\n\tyes \"operation $1\" | head -c \"$2\"\n}\n\n"
			 "# skip OPERATION: no command does this one; workload.c can\n"
			 "skip() {\n\techo \"left out: $1\" >&2\n}\n\n");
	for (size_t i = 0; i < w->ops.n; i++) {
		strbuf_addf(out, "# %zu: %s", i, w->ops.v[i].setup ? "setup " : "");
		op_print(&w->ops.v[i], out);
		strbuf_addch(out, '\n');
		shell_op(w, i, SHELL_PLAIN, out);
		if (!stored_case_live(&v->c) && i + 1 == v->c.done)
			strbuf_adds(out, "# ---- the power fails about here ----\n");
	}
}
