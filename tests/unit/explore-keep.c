/* SPDX-License-Identifier: MIT */
/* What is learned of a finding later does not change what it consists of. */
#include <stdlib.h>
#include <unistd.h>

#include "base/io.h"
#include "explore/explore_keep.h"
#include "tap.h"

static char home[] = "/tmp/outage-keep.XXXXXX";

static void parse(const char *text, struct script *out)
{
	struct err err = ERR_INIT;

	script_init(out);
	ok(!script_parse(text, strlen(text), "text", out, &err), "a script: %s", err.msg);
}

static bool says(const char *line)
{
	auto_strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	return !io_slurp_file("run/findings/1-0", "case", 1 << 16, &text, &err) &&
	       strstr(strbuf_str(&text), line);
}

static void test_update(struct stepper *st)
{
	struct step_result result = { .verdict = STEP_DIFFERENT, .signature = "tree" };
	struct point elsewhere = { 0 };
	struct script kept, tried;
	struct kept_case back;
	struct err err = ERR_INIT;

	parse("mkdir A\nmkdir B\nrmdir A\n", &kept);
	parse("mkdir A\n", &tried);
	findings_add(&result.findings, FINDING_LIVE, NULL, xstrdup("words"), NULL);
	struct kept k = { .run = "run",
			  .name = "1-0",
			  .script = &kept,
			  .stepper = st,
			  .result = &result,
			  .shown = 1,
			  .tries = 1 };
	is_i(keep_case(&k, &err), 0, "a finding from new file systems is kept: %s", err.msg);
	ok(says("\ndone 3\n") && !says("\nstart "), "its case says so");

	/* The last try was a smaller script, from a state that was saved, and did not show. */
	k.script = &tried;
	k.start = &elsewhere;
	k.tries = 4;
	is_i(keep_update(&k, &err), 0, "what is known of it changes: %s", err.msg);
	ok(says("\nshown 1 of 4\n"), "which its case says");
	ok(says("\ndone 3\n"), "it has as many operations as before");
	is_i(kept_load("run/findings/1-0", &back, &err), 0, "it can be read: %s", err.msg);
	ok(!back.c.start && back.script.w.ops.n == 3, "and begins with new file systems");
	kept_release(&back);

	/* The other way round: what is kept begins with an image. */
	is_i(io_write_file("run/findings/1-0", "start.img", "", 0, 0, &err), 0, "an image");
	k.start = NULL;
	is_i(keep_update(&k, &err), 0, "what is known of it changes: %s", err.msg);
	ok(says("\nstart start.img\n"), "it still begins with the image");
	findings_release(&result.findings);
	script_release(&kept);
	script_release(&tried);
}

int main(void)
{
	const char *const specs[] = { "reffs", "reffs" };
	struct side_opts opts = { 0 };
	struct stepper st;
	struct err err = ERR_INIT;

	if (!mkdtemp(home) || chdir(home) < 0 || setenv("XDG_STATE_HOME", home, 1) < 0 ||
	    stepper_open(&st, &opts, specs, 2, &err)) {
		ok(false, "two sides in a directory: %s", err.msg);
		return done_testing();
	}
	if (stepper_show(&st, &err) || system("mkdir -p run/findings"))
		return 1;
	test_update(&st);
	stepper_close(&st);
	if (system("rm -rf run outage") || chdir("/") || rmdir(home))
		return 1;
	return done_testing();
}
