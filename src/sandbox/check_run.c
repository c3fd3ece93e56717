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

void check_result_add(const struct check_result *r, struct strbuf *out)
{
	struct check_result head;

	memset(&head, 0, sizeof(head)); /* with what is between its members: it may be kept */
	head.end = r->end;
	head.exit_code = r->exit_code;
	head.signal = r->signal;
	head.left_processes = r->left_processes;
	head.filled = r->filled;
	head.output_cut = r->output_cut;
	head.errors = r->errors;
	head.took_ns = r->took_ns;
	strbuf_add(out, &head, sizeof(head));
	strbuf_add(out, strbuf_str(&r->output), r->output.len);
}

bool check_result_read(const char *data, size_t len, struct check_result *out)
{
	struct check_result head;

	if (len < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	if (head.errors > len - sizeof(head))
		return false;
	check_result_release(out);
	*out = head;
	out->output = (struct strbuf)STRBUF_INIT;
	strbuf_add(&out->output, data + sizeof(head), len - sizeof(head));
	return true;
}

bool check_result_is_final(const struct check_result *r)
{
	return (r->end == CHECK_PASSED || r->end == CHECK_FAILED) && !r->filled;
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
