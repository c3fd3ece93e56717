/* SPDX-License-Identifier: MIT */
/*
 * cmd_generate.c - outage generate: what the build makes from the tables of options. The command is
 * in no list.
 */
#include "base/io.h"
#include "cli/mounting.h"
#include "cli/options_complete.h"
#include "cli/options_man.h"

enum { PAGE_MAX = 1 << 20 };

static const struct command *const programs[] = { &cmd_outage, &cmd_lazyfs, NULL };

static int complete(const char *shell, struct strbuf *out)
{
	static const struct {
		const char *name;
		void (*complete)(const struct command *const *all, struct strbuf *out);
	} shells[] = { { "bash", complete_bash },
		       { "zsh", complete_zsh },
		       { "fish", complete_fish } };

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (streq(shell, shells[i].name))
			shells[i].complete(programs, out);
	return out->len ? EXIT_OK
			: cli_usage(&cmd_generate, "%.40s is no shell that is known", shell);
}

static int tell_page(const char *page, const char *shared, struct strbuf *out)
{
	auto_strbuf text = STRBUF_INIT, more = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (io_slurp(page, PAGE_MAX, &text, &err) || io_slurp(shared, PAGE_MAX, &more, &err))
		return cli_fail(&err);
	if (man_page(programs, text.buf, more.buf, out, &err))
		return cli_failf("%s: %s", page, err.msg);
	return EXIT_OK;
}

static const struct opt options[] = {
	{ OPT_ARGUMENT, .arg = "bash | zsh | fish", .help = "completion for this shell" },
	{ OPT_ARGUMENT, .arg = "man PAGE SHARED", .help = "PAGE with its options, in scdoc" },
	OPT_END
};

static int run(void *unused, struct args *args)
{
	auto_strbuf text = STRBUF_INIT;
	int status = EXIT_OK;

	(void)unused;
	if (args->n == 3 && streq(args->v[0], "man"))
		status = tell_page(args->v[1], args->v[2], &text);
	else if (args->n == 1)
		status = complete(args->v[0], &text);
	else
		status = cli_usage(&cmd_generate, "say bash, zsh, fish, or man PAGE SHARED");
	if (status == EXIT_OK)
		fputs(strbuf_str(&text), stdout);
	return status;
}

const struct command cmd_generate = {
	.name = "generate",
	.usage = "bash | zsh | fish | man PAGE SHARED",
	.about = "Prints what is made from the tables of options.",
	.options = options,
	.run = run,
};
