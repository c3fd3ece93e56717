/* SPDX-License-Identifier: MIT */
/* shell_log.c - functions of the exported scripts that listen to the kernel. */
#include "check/complaint.h"
#include "report/shell.h"

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
	strbuf_adds(out, shell_listening);
	if (bugs)
		strbuf_adds(out, shell_warned_once);
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
