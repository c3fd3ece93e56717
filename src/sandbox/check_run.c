/* SPDX-License-Identifier: MIT */
/* check_run.c - writes the file for a check, runs the check, and describes its end. */
#include "sandbox/check_run.h"

#include <inttypes.h>

#include "base/io.h"

void check_describe(const struct check_result *r, struct strbuf *out)
{
	static const char *const fixed[] = { [CHECK_PASSED] = "passed",
					     [CHECK_HUNG] = "did not end in its time",
					     [CHECK_ERROR] = "could not be run" };

	if (r->end == CHECK_FAILED)
		strbuf_addf(out, "exited with status %d", r->exit_code);
	else if (r->end == CHECK_KILLED)
		strbuf_addf(out, "was killed by signal %d (%s)", r->signal, strsignal(r->signal));
	else
		strbuf_adds(out, fixed[r->end]);
	if (r->filled)
		strbuf_adds(out, ", and filled the disk");
	if (r->left_processes)
		strbuf_adds(out, ", and left processes behind");
}

int check_run(const struct sandbox_opts *opts, uint64_t point, const char *acked, size_t acked_len,
	      struct check_result *r, struct err *err)
{
	auto_strbuf variables = STRBUF_INIT;
	struct sandbox_opts o = *opts;
	int rc = io_write_file(o.notes, "acked", acked, acked_len, 0644, err);

	strbuf_addf(&variables, "OUTAGE_DIR=%s%c", o.dir, 0);
	strbuf_addf(&variables, "OUTAGE_ACKED=%s/acked%c", o.notes, 0);
	strbuf_addf(&variables, "OUTAGE_CRASH_POINT=%" PRIu64 "%c", point, 0);
	if (o.argument) {
		strbuf_addf(&variables, "OUTAGE_FILE=%s%c", o.argument, 0);
		strbuf_addf(&variables, "OUTAGE_MARKS=%s/acked%c", o.notes, 0);
	}
	o.variables = &variables;
	return rc ? rc : sandbox_run(&o, r, err);
}
