/* SPDX-License-Identifier: MIT */
/* pm_export.c - a crash state of a program's persistent memory as a script. */
#include <errno.h>
#include <inttypes.h>

#include "report/pm_report.h"
#include "report/shell.h"

enum { CONTENT_MAX = 64 << 20 };

static void add_head(const struct pm_run *r, const struct pm_case *c, struct strbuf *out)
{
	strbuf_adds(out, "#!/bin/sh\n");
	shell_strange(r->plan.ours, "# ", out);
	strbuf_adds(out, "# ");
	shell_clean(out, c->title);
	strbuf_adds(out,
		    "\n#\n# What a power cut can leave of the persistent memory that this wrote:\n"
		    "#   ");
	shell_clean(out, r->plan.program);
	strbuf_adds(out, "\n# usage: reproduce.sh FILE         builds it as FILE, which must not "
			 "be there\n#        reproduce.sh FILE check   and then runs the ");
	strbuf_adds(out, r->plan.check ? "check: status 0 if it does not show\n"
				       : "dump: status 0 if it does not show\n");
	strbuf_adds(out, "# The file was ");
	shell_clean(out, r->plan.file);
	strbuf_adds(out, ", and commands were run in ");
	shell_clean(out, r->plan.dir);
	strbuf_adds(out, "\nset -u\n[ $# -gt 0 ] || { echo \"usage: $0 FILE [check]\" >&2; exit 2; "
			 "}\n[ ! -e \"$1\" ] || { echo \"$1 is there already\" >&2; exit 2; }\n"
			 "# page N: page N of the file, from standard input\n"
			 "page() { base64 -d | dd of=\"$file\" bs=4096 seek=\"$1\" conv=notrunc "
			 "status=none; }\n"
			 "file=$1\n");
}

static int add_content(const struct image *img, struct strbuf *out, struct err *err)
{
	static const unsigned char zeros[IMAGE_PAGE];
	unsigned char page[IMAGE_PAGE];
	uint64_t bytes = 0;

	strbuf_addf(out, "truncate -s %" PRIu64 " -- \"$file\" || exit 2\n", img->size);
	for (uint64_t at = 0; at < img->size; at += IMAGE_PAGE) {
		size_t n = (size_t)min(img->size - at, (uint64_t)IMAGE_PAGE);

		image_read(img, at, page, n);
		if (memcmp(page, zeros, n) == 0)
			continue;
		bytes += n;
		if (bytes > CONTENT_MAX)
			return err_set(err, -EFBIG,
				       "the file has more than %d MiB that are not zeros: too much "
				       "for a script",
				       CONTENT_MAX >> 20);
		strbuf_addf(out, "page %" PRIu64 " <<'END'\n", at / IMAGE_PAGE);
		shell_base64(out, page, n);
		strbuf_adds(out, "END\n");
	}
	return 0;
}

static void add_command(const struct pm_run *r, const char *command, const char *more,
			struct strbuf *out)
{
	strbuf_addf(out, "timeout -s KILL %" PRIu64 " sh -c ",
		    max(r->plan.timeout_ms / 1000, (uint64_t)1));
	shell_quote(out, command);
	strbuf_addf(out, " sh \"$OUTAGE_FILE\"%s\nstatus=$?\n", more);
}

static void add_marks(const struct pm_state *s, struct strbuf *out)
{
	auto_strbuf marks = STRBUF_INIT;

	pm_marks(&s->run->trace, s->s.point, &marks);
	if (!marks.len)
		return;
	strbuf_adds(out, "printf '%s' ");
	shell_quote(out, strbuf_str(&marks));
	strbuf_adds(out, " >\"$OUTAGE_MARKS\"\n");
}

/* Of a dump, what is wrong is what it prints. */
static void add_tail(const struct pm_run *r, const struct pm_case *c, const struct pm_state *s,
		     struct strbuf *out)
{
	strbuf_adds(out, "[ \"${2:-}\" = check ] || exit 0\n"
			 "OUTAGE_FILE=$(realpath -- \"$file\") OUTAGE_MARKS=$(mktemp)\n");
	strbuf_addf(out, "OUTAGE_CRASH_POINT=%" PRIu64 "\n", s->s.point);
	if (*s->fault) {
		strbuf_adds(out, "export OUTAGE_MEDIA=");
		shell_quote(out, s->fault);
		strbuf_addch(out, '\n');
	}
	strbuf_adds(out, "export OUTAGE_FILE OUTAGE_MARKS OUTAGE_CRASH_POINT\n");
	add_marks(s, out);
	if (r->plan.recover) {
		add_command(r, r->plan.recover, "", out);
		strbuf_adds(out,
			    "[ $status = 0 ] || { echo \"recovery ended with status $status\"; "
			    "exit $status; }\n");
	}
	if (r->plan.check) {
		add_command(r, r->plan.check, "", out);
	} else {
		strbuf_adds(out, "then=$(mktemp) now=$(mktemp)\nprintf '%s' ");
		shell_quote(out, strbuf_str(&c->said));
		strbuf_adds(out, " >\"$then\"\n");
		add_command(r, r->plan.dump, " >\"$now\" 2>&1", out);
		strbuf_adds(out, "cat \"$now\"\n[ $status != 0 ] || ! cmp -s \"$then\" \"$now\" || "
				 "status=1\nrm -f \"$then\" \"$now\"\n");
	}
	strbuf_adds(out, "rm -f \"$OUTAGE_MARKS\"\n"
			 "[ $status = 0 ] && echo \"it does not show\" || echo \"it shows: status "
			 "$status\"\nexit $status\n");
}

int pm_export_script(const struct pm_run *r, const struct pm_case *c, struct strbuf *out,
		     struct err *err)
{
	struct pm_state s;
	int rc = pm_state_load(r, c->state, &s, err);

	if (rc)
		return rc;
	add_head(r, c, out);
	rc = add_content(&s.s.image, out, err);
	if (!rc)
		add_tail(r, c, &s, out);
	pm_state_release(&s);
	return rc;
}
