/* SPDX-License-Identifier: MIT */
/* pm_export.c - exports a crash state of a program's persistent memory as a script. */
#include <errno.h>

#include "report/pm_report.h"
#include "report/shell.h"

enum { CONTENT_MAX = 64 << 20 };

static void add_head(const struct pm_run *r, const struct pm_case *c, struct strbuf *out)
{
	shell_head(out, r->plan.ours, c->title, "persistent memory", r->plan.program);
	shell_notef(out,
		    "# usage: reproduce.sh FILE         builds it as FILE, which must not "
		    "be there\n#        reproduce.sh FILE check   and then runs the %s: status 0 "
		    "if it does not show\n"
		    "# The file was %s, and commands were run in %s\n",
		    r->plan.check ? "check" : "dump", r->plan.file, r->plan.dir);
	strbuf_adds(out, pm_export_head);
}

static int add_content(const struct image *img, struct strbuf *out, struct err *err)
{
	unsigned char page[IMAGE_PAGE];
	uint64_t bytes = 0;

	strbuf_addf(out, "truncate -s %llu -- \"$file\" || exit 2\n", llu(img->size));
	for (uint64_t at = 0; at < img->size; at += IMAGE_PAGE) {
		size_t n = (size_t)min(img->size - at, (uint64_t)IMAGE_PAGE);

		image_read(img, at, page, n);
		if (all_zero(page, n))
			continue;
		bytes += n;
		if (bytes > CONTENT_MAX)
			return err_set(err, -EFBIG,
				       "the file has more than %d MiB that are not zeros: too much "
				       "for a script",
				       CONTENT_MAX >> 20);
		shell_page(out, "", at / IMAGE_PAGE, page, n);
	}
	return 0;
}

static void add_command(const struct pm_run *r, const char *command, const char *more,
			struct strbuf *out)
{
	shell_command(out, r->plan.timeout_ms, command, "OUTAGE_FILE");
	strbuf_addf(out, "%s\nstatus=$?\n", more);
}

static void add_marks(const struct pm_state *s, struct strbuf *out)
{
	auto_strbuf marks = STRBUF_INIT;

	pm_marks(&s->run->trace, s->s.point, &marks);
	if (!marks.len)
		return;
	shell_addf(out, "printf '%%s' %s >\"$OUTAGE_MARKS\"\n", strbuf_str(&marks));
}

/* Adds the commands. A dump shows the problem by its output. */
static void add_tail(const struct pm_run *r, const struct pm_case *c, const struct pm_state *s,
		     struct strbuf *out)
{
	strbuf_adds(out, "[ \"${2:-}\" = check ] || exit 0\n"
			 "OUTAGE_FILE=$(realpath -- \"$file\") OUTAGE_MARKS=$(mktemp)\n");
	strbuf_addf(out, "OUTAGE_CRASH_POINT=%llu\n", llu(s->s.point));
	if (*s->fault)
		shell_addf(out, "export OUTAGE_MEDIA=%s\n", s->fault);
	strbuf_adds(out, "export OUTAGE_FILE OUTAGE_MARKS OUTAGE_CRASH_POINT\n");
	add_marks(s, out);
	if (r->plan.recover) {
		add_command(r, r->plan.recover, "", out);
		strbuf_adds(out, "[ $status = 0 ] || { echo \"recovery ended with status "
				 "$status\"; exit $status; }\n");
	}
	if (r->plan.check) {
		add_command(r, r->plan.check, "", out);
	} else {
		shell_addf(out, "then=$(mktemp) now=$(mktemp)\nprintf '%%s' %s >\"$then\"\n",
			   strbuf_str(&c->said));
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
