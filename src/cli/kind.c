/* SPDX-License-Identifier: MIT */
/* kind.c - finds the kind of a run or a finding, and the finding that a command is about. */
#include "cli/kind.h"

#include <errno.h>

#include "case/given.h"

static const struct case_ops *const kinds[] = {
#define KIND(name_) &kind_##name_,
#include "cli/kinds.def"
#undef KIND
};

int kind_find(const char *dir, const struct case_ops **out, struct err *err)
{
	auto_free char *name = NULL;
	int rc = case_hold(dir, err);

	if (!rc)
		rc = case_kind_of(dir, &name, err);

	for (size_t i = 0; !rc && i < ARRAY_SIZE(kinds); i++)
		if (streq(kinds[i]->name, name)) {
			*out = kinds[i];
			return 0;
		}
	return rc ? rc : err_set(err, -EINVAL, "%s: there is no such kind as '%.40s'", dir, name);
}

uint64_t kind_given(const struct record_type *plan, const struct args *args)
{
	uint64_t given = 0;

	for (size_t i = 0; i < plan->n; i++)
		if (args_given(args, given_option(&plan->fields[i])))
			given |= 1ULL << i;
	return given;
}

/* EXIT_OK, if the kind has what is asked for. */
static int check_guest(const struct case_ops *ops, const struct target_opts *guest)
{
	if (ops->on_target ||
	    (!guest->guest_kernel && !guest->guest_modules && !guest->guest_memory))
		return EXIT_OK;
	return cli_failf("--kernel, --modules and --guest-memory are for findings of uml: and vm: "
			 "targets; this one is of outage %s",
			 ops->name);
}

int kind_replay(const struct case_ops *ops, const struct replay_request *r)
{
	auto_free char *was = NULL;
	struct err err = ERR_INIT, ignored = ERR_INIT;

	if (r->rerun && !ops->on_target)
		return cli_failf("--rerun is for findings of a target: run 'outage %s' again "
				 "instead",
				 ops->name);
	int status = check_guest(ops, &r->guest);
	if (!status && case_hold(r->dir, &err))
		return cli_fail(&err);
	if (!status)
		status = ops->replay(r);

	if (status != EXIT_FAILED && !r->json && !case_version_of(r->dir, &was, &ignored) &&
	    !streq(was, OUTAGE_VERSION))
		printf("it was found by outage %s, and this is %s\n", was, OUTAGE_VERSION);
	return status;
}

int kind_shrink(const struct case_ops *ops, const struct shrink_request *r)
{
	int status = check_guest(ops, &r->guest);

	return status ? status : ops->shrink(r);
}

void kind_print_shrunk(const struct shrink_request *r, const struct case_shrunk *small,
		       const char *one, const char *more)
{
	if (r->json)
		cli_json(KV("case", r->dir), KV("output", r->output),
			 KV("lost_before", small->lost_before), KV("lost", small->lost_after),
			 KV("states", small->tried));
	else
		printf("%s: %llu of %llu lost %s, after %llu %s%s\n", r->output,
		       llu(small->lost_after), COUNT(small->lost_before, one, more),
		       COUNT_S(small->tried, "state"),
		       small->lost_after < small->lost_before
			       ? ""
			       : "; nothing smaller was found");
}

/* A directory that cannot be read is listed, too: then its line says why. */
static void list_one(const struct command *cmd, const char *dir)
{
	const struct case_ops *ops;
	auto_strbuf title = STRBUF_INIT, line = STRBUF_INIT;
	struct err err = ERR_INIT;
	int rc = kind_find(dir, &ops, &err);

	if (!rc)
		rc = ops->title(dir, &title, &err);
	for (const char *c = rc ? err.msg : strbuf_str(&title); *c; c++)
		strbuf_addch(&line, (unsigned char)*c < 0x20 || *c == 0x7f ? ' ' : *c);
	printf("outage %s %s\n    %s\n", cmd->name, dir, strbuf_str(&line));
}

/* The only finding of a run; several are listed. */
static int choose_of_run(const struct command *cmd, const char *run, char **dir)
{
	auto_words list = { 0 };
	struct err err = ERR_INIT;

	if (case_list(run, &list, &err))
		return cli_fail(&err);
	if (list.n == 1) {
		*dir = steal(list.v[0]);
		list.n = 0;
		return EXIT_OK;
	}
	if (!list.n)
		return cli_failf("%s has no findings", run);
	for (size_t i = 0; i < list.n; i++)
		list_one(cmd, list.v[i]);
	fflush(stdout);
	return cli_failf("%s has %zu findings: give the directory of one of them", run, list.n);
}

int kind_choose(const struct command *cmd, const struct args *args, char **dir,
		const struct case_ops **out)
{
	const char *given = args->v[0];
	struct err err = ERR_INIT;
	int status = EXIT_OK;

	if (args->n != 1)
		return cli_usage(cmd, "give the directory of one finding");
	if (kind_find(given, out, &err))
		return cli_fail(&err);
	if (case_is_one(given))
		*dir = xstrdup(given);
	else
		status = choose_of_run(cmd, given, dir);
	if (status || !kind_find(*dir, out, &err))
		return status;
	return cli_fail(&err);
}
