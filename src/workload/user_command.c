/* SPDX-License-Identifier: MIT */
/* user_command.c - runs the command with its variables set, bounded in time and output. */
#include "workload/user_command.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/proc.h"
#include "base/util.h"

void user_end_release(struct user_end *e)
{
	strbuf_release(&e->how);
	strbuf_release(&e->out);
	strbuf_release(&e->err);
}

static const char *const variables[] = { "OUTAGE_DIR", "OUTAGE_DONE", "OUTAGE_OPERATION" };

/* setenv() is safe here: there is one thread, and no other child meanwhile. */
static void set_variables(const struct user_command *c, const char *dir)
{
	auto_free char *done = xasprintf("%zu", c->done);
	const char *const values[] = { dir, done, c->operation };

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		setenv(variables[i], values[i], 1);
}

static void unset_variables(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		unsetenv(variables[i]);
}

int user_command_run(const struct user_command *c, const char *dir, struct user_end *end,
		     struct err *err)
{
	const char *argv[] = { "/bin/sh", "-c", c->text, "sh", dir, NULL };
	struct proc_opts how = { .argv = argv,
				 .cwd = dir,
				 .input = c->input,
				 .input_len = c->input_len,
				 .timeout_ms = c->timeout_ms ? c->timeout_ms : USER_TIMEOUT_MS,
				 .output_limit = USER_OUTPUT_MAX };
	struct proc_result res;
	mode_t mask = umask(022); /* as commands expect */

	set_variables(c, dir);
	int rc = proc_run(&how, &res, err);
	unset_variables();
	umask(mask);
	if (rc)
		return rc;
	end->ok = !res.exit_code && !res.signal && !res.timed_out;
	end->cut = res.output_cut;
	proc_describe(&res, &how, &end->how);
	strbuf_add(&end->out, strbuf_str(&res.out), res.out.len);
	strbuf_add(&end->err, strbuf_str(&res.err), res.err.len);
	proc_result_release(&res);
	return 0;
}
