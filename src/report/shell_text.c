/* SPDX-License-Identifier: MIT */
/*
 * shell_text.c - functions of the exported scripts: these look at a file system, use it, listen to
 * the kernel, and report the result.
 *
 * A function that answers a question returns 0 for yes, 1 for no, and 2 if the answer is unknown.
 * So these functions are not negated with "!", which would make a yes of the 2.
 */
#include "check/complaint.h"
#include "report/shell.h"

const char shell_judge[] =
	"shows=0\n"
	"told=0\n"
	"untold=0\n"
	"judge() { # STATUS WORDS: 0, the problem shows; 1, it does not; more: it cannot be told\n"
	"\tcase $1 in\n"
	"\t0) echo \"shows:             $2\"; shows=1; told=1 ;;\n"
	"\t1) echo \"does not show:     $2\"; told=1 ;;\n"
	"\t*) echo \"cannot be told:    $2\"; untold=1 ;;\n"
	"\tesac\n"
	"}\n\n"
	"finish() { # with the exit status that the first lines of this file promise\n"
	"\t[ \"$shows\" = 0 ] || exit 1\n"
	"\t[ \"$told\" = 1 ] && [ \"$untold\" = 0 ] || exit 2\n"
	"\texit 0\n"
	"}\n\n";

const char shell_functions[] =
	"there() { # PATH\n"
	"\t[ -e \"./$1\" ] || [ -L \"./$1\" ]\n"
	"}\n\n"
	"times_listed() { # PATH: how often its directory has that name\n"
	"\tls -f \"$(dirname \"./$1\")\" 2>/dev/null | grep -cxF -e \"$(basename \"./$1\")\"\n"
	"}\n\n"
	"missing() { # PATH\n"
	"\t! there \"$1\" || return 1\n"
	"\t[ \"$(times_listed \"$1\")\" = 0 ] || return 2 # it has a name, and nothing else\n"
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
	"is() { # WHAT PATH VALUE: it is as it was found\n"
	"\t[ \"$1\" != xattrs ] || command -v getfattr >/dev/null || command -v python3 >/dev/null "
	"||\n"
	"\t\treturn 2\n"
	"\tthere \"$2\" || return 2\n"
	"\t[ \"$(value \"$1\" \"$2\")\" = \"$3\" ]\n"
	"}\n\n"
	"time_is() { # WHAT PATH SEEN HAD: what was seen, and not what it had; any other time may "
	"be fine\n"
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
	"\tfind . -mindepth 1 -path \"./$ignored\" -prune -o -path '*[[:cntrl:]]*' -o -printf "
	"'%P\\n' |\n"
	"\t\tLC_ALL=C sort | while IFS= read -r path; do\n"
	"\t\t\tprintf '  %s: ' \"$path\"\n"
	"\t\t\tfacts \"$path\"\n"
	"\t\tdone\n"
	"}\n\n"
	"facts_are() { # PATH FOUND EXPECTED: the first, not the second; empty: it is not there\n"
	"\tset -- \"$@\" \"$(! there \"$1\" || facts \"$1\")\"\n"
	"\t[ \"$4\" != \"$2\" ] || return 0\n"
	"\t[ \"$4\" != \"$3\" ] || return 1\n"
	"\treturn 2\n"
	"}\n\n"
	"miscounted() { # PATH: its link count is not the number of its names\n"
	"\tthere \"$1\" || return 2\n"
	"\t[ \"$(value links \"$1\")\" != \"$(find . -xdev -samefile \"./$1\" | wc -l)\" ]\n"
	"}\n\n"
	"in_itself() { # PATH: a directory that is below itself\n"
	"\t[ -n \"$1\" ] || return 1\n"
	"\tset -- \"./$1\" \"./$1\"\n"
	"\twhile [ \"$2\" != . ]; do\n"
	"\t\tset -- \"$1\" \"$(dirname \"$2\")\"\n"
	"\t\t[ ! \"$1\" -ef \"$2\" ] || return 0\n"
	"\tdone\n"
	"\treturn 1\n"
	"}\n\n"
	"readable() { # PATH: all of it, from the beginning to the end\n"
	"\tcase $(value type \"$1\") in\n"
	"\tf) [ \"$(cat \"./$1\" | wc -c)\" = \"$(value size \"$1\")\" ] || return 1 ;;\n"
	"\td) ls -f \"./$1\" && ! in_itself \"$1\" || return 1 ;;\n"
	"\tl) readlink \"./$1\" || return 1 ;;\n"
	"\t[pscb]) ;;\n"
	"\t*) return 1 ;;\n"
	"\tesac\n"
	"\tif command -v getfattr; then\n"
	"\t\tgetfattr -h -d -m - \"./$1\"\n"
	"\tfi\n"
	"} >/dev/null 2>&1\n\n"
	"unreadable() { # PATH\n"
	"\t[ \"$(times_listed \"$1\")\" != 0 ] || return 2\n"
	"\t! readable \"$1\"\n"
	"}\n\n"
	"listed_twice() { # PATH\n"
	"\t[ \"$(times_listed \"$1\")\" != 0 ] || return 2\n"
	"\t[ \"$(times_listed \"$1\")\" -gt 1 ]\n"
	"}\n\n";

const char shell_use[] =
	"new_file() { # DIRECTORY: a file is made there, written, read, and removed while it is "
	"open\n"
	"\t{\n"
	"\t\tprintf 'the power is back' >&3 &&\n"
	"\t\t\tgrep -qx 'the power is back' \"$1/outage-probe\"\n"
	"\t\ttried=$?\n"
	"\t\tunlink \"$1/outage-probe\" || tried=1\n"
	"\t} 3<>\"$1/outage-probe\" || return 1\n"
	"\treturn \"$tried\"\n"
	"}\n\n"
	"try() { # DIRECTORY: 0, it can be used; 1, it cannot; 2, there is no room\n"
	"\tnew_file \"$1\" >\"$work/tried\" 2>&1 && return 0\n"
	"\tgrep -qE 'No space left on device|Disk quota exceeded' \"$work/tried\" && return 2\n"
	"\techo \"$1 cannot be used:\"\n"
	"\tcat \"$work/tried\"\n"
	"\treturn 1\n"
	"}\n\n"
	"try_again() { # DIRECTORY: if there was no room in it before\n"
	"\tgrep -qxF -e \"$1\" \"$work/full\" || return 0\n"
	"\ttry \"$1\"\n"
	"\t[ $? != 1 ] || unusable=0\n"
	"}\n\n"
	"try_empty() { # nothing is left, so there must be room; some free it in the background\n"
	"\tgrep -qxF -e . \"$work/full\" || return 0\n"
	"\tfor _ in 1 2 3 4; do\n"
	"\t\ttry . && return 0\n"
	"\t\tsync -f .\n"
	"\t\tsleep 1\n"
	"\tdone\n"
	"\tunusable=0\n"
	"}\n\n"
	"# Makes a file in every directory, then removes all: first files, then directories, each "
	"time\n"
	"# from the last path to the first. \"unusable\" is then 0 if that failed, as judge takes "
	"it.\n"
	"use() {\n"
	"\tunusable=1\n"
	"\t: >\"$work/full\"\n"
	"\tfind . -mindepth 1 -path \"./$ignored\" -prune -o -path '*[[:cntrl:]]*' -o \\\n"
	"\t\t-printf '%P\\001%y\\n' | tr / '\\002' | LC_ALL=C sort | tr '\\002\\001' '/\\t' |\n"
	"\t\tsed 's,^,./,' >\"$work/tree\"\n"
	"\t{ printf '.\\td\\n'; cat \"$work/tree\"; } >\"$work/all\"\n"
	"\twhile IFS=$tab read -r path type; do\n"
	"\t\t[ \"$type\" = d ] || continue\n"
	"\t\ttry \"$path\"\n"
	"\t\tcase $? in\n"
	"\t\t1) unusable=0 ;;\n"
	"\t\t2) echo \"$path\" >>\"$work/full\" ;;\n"
	"\t\tesac\n"
	"\tdone <\"$work/all\"\n"
	"\tlisten\n"
	"\tfind . -depth -mindepth 1 -path '*[[:cntrl:]]*' ! -path \"./$ignored/*\" -delete || "
	"unusable=0\n"
	"\ttac \"$work/tree\" >\"$work/backwards\"\n"
	"\twhile IFS=$tab read -r path type; do\n"
	"\t\t[ \"$type\" = d ] || unlink \"$path\" || unusable=0\n"
	"\tdone <\"$work/backwards\"\n"
	"\twhile IFS=$tab read -r path type; do\n"
	"\t\t[ \"$type\" = d ] || continue\n"
	"\t\ttry_again \"$path\"\n"
	"\t\trmdir \"$path\" || unusable=0\n"
	"\tdone <\"$work/backwards\"\n"
	"\ttry_empty\n"
	"\tlisten\n"
	"}\n\n";

/* ---- the kernel's log ---- */

static void put_words(const char *command, const char *const *words, struct strbuf *out)
{
	strbuf_adds(out, command);
	for (; *words; words++) {
		strbuf_adds(out, " -e ");
		shell_quote(out, *words);
	}
}

/* Greps for the words of complaints. A word with "s=" behind it is the name of an option. */
static void put_device_words(struct strbuf *out)
{
	strbuf_adds(out, "grep -iE '(");
	for (const char *const *word = complaint_of_device; *word; word++)
		strbuf_addf(out, "%s%s", word == complaint_of_device ? "" : "|", *word);
	strbuf_adds(out, ")($|[^s]|s$|s[^=])'");
}

static bool found_bug(const struct view *v)
{
	auto_free char *log = xstrdup(strbuf_str(&v->kernel_log));
	char *rest = log;

	for (char *line; (line = strsep(&rest, "\n"));)
		if (complaint_is_bug(line))
			return true;
	return !v->kernel_log.len;
}

static const char listening[] =
	"follow_log() { # from here on, listen takes what the kernel says\n"
	"\tif ! (: </dev/kmsg) 2>/dev/null; then\n"
	"\t\techo 'the log of the kernel, /dev/kmsg, cannot be read'\n"
	"\t\treturn\n"
	"\tfi\n"
	"\texec 4</dev/kmsg\n"
	"\thas_log=1\n"
	"\tlisten\n"
	"\t: >\"$work/log\"\n"
	"\tmissed=0\n"
	"}\n\n"
	"listen() { # adds what was said since the last time; what was overwritten by then is "
	"missed\n"
	"\t[ \"$has_log\" = 1 ] || return 0\n"
	"\twhile ! LC_ALL=C dd bs=8192 iflag=nonblock <&4 2>\"$work/dd\"; do\n"
	"\t\tgrep -q 'Broken pipe' \"$work/dd\" || break\n"
	"\t\tmissed=1\n"
	"\tdone >>\"$work/log\"\n"
	"}\n\n";

static const char warned_once[] =
	"# Some warnings are given once, until the kernel is told to forget that.\n"
	"forget_warnings() {\n"
	"\tmkdir -p \"$work/debug\"\n"
	"\tmount -t debugfs debugfs \"$work/debug\" 2>/dev/null || return\n"
	"\techo 1 2>/dev/null >\"$work/debug/clear_warn_once\" && forgot=1\n"
	"\tumount \"$work/debug\"\n"
	"}\n"
	"forget_warnings\n\n";

static void put_bugs(struct strbuf *out)
{
	strbuf_adds(out, "bugs() { # lines in which the kernel tells of its own bugs\n\t");
	put_words("grep -F", complaint_bugs, out);
	strbuf_adds(out, " |\n\t\t");
	put_words("grep -vF", complaint_stalls, out);
	strbuf_adds(out, " | grep -v '^" COMPLAINT_PROGRAM "'\n}\n\n");
}

static void put_of_device(struct strbuf *out)
{
	strbuf_adds(out, "of_device() { # lines in which it complains of the device\n"
			 "\tgrep -E \"(^|[^[:alnum:]])$(basename \"$dev\")([^[:alnum:]]|\\$)\" |\n"
			 "\t\t");
	put_words("grep -vF", complaint_asked_for, out);
	strbuf_adds(out, " |\n\t\t");
	put_device_words(out);
	strbuf_adds(out, "\n}\n\n");
}

void shell_kernel_log(const struct view *v, struct strbuf *out)
{
	/* A FUSE server is not the kernel's file system on that device. */
	bool device = strncmp(v->c.target, "fuse", 4) != 0, bugs = !device || found_bug(v);

	strbuf_addf(out, "has_log=0\nmissed=0\nforgot=%d\n", !bugs);
	strbuf_adds(out, listening);
	if (bugs)
		strbuf_adds(out, warned_once);
	if (bugs)
		put_bugs(out);
	if (device)
		put_of_device(out);
	strbuf_adds(out, "kernel_complained() {\n"
			 "\t[ \"$has_log\" = 1 ] || return 2\n"
			 "\tlisten\n"
			 "\tsed -n 's/^[0-9][^;]*;//p' \"$work/log\" >\"$work/lines\"\n"
			 "\t{\n");
	strbuf_adds(out, device ? "\t\tof_device <\"$work/lines\"\n" : "");
	strbuf_adds(out, bugs ? "\t\tbugs <\"$work/lines\"\n" : "");
	strbuf_adds(out, "\t} >\"$work/complaints\"\n"
			 "\tif [ -s \"$work/complaints\" ]; then\n"
			 "\t\techo 'The kernel says:'\n"
			 "\t\tcat \"$work/complaints\"\n"
			 "\t\treturn 0\n"
			 "\tfi\n"
			 "\t# What was missed, or is said once only, may have been it.\n"
			 "\t[ \"$missed\" = 0 ] && [ \"$forgot\" = 1 ] || return 2\n"
			 "\treturn 1\n"
			 "}\n\n");
}
