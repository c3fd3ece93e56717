/* SPDX-License-Identifier: MIT */
/* cmd_doctor.c - outage doctor: what works on this machine, and what mends what does not. */
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/groups.h"
#include "target/leftover.h"
#include "target/machine.h"

enum { TIME_LIMIT_S = 120 };

struct doctor {
	bool fix, json;
	struct machine machine;
	struct leftovers left;
};

static void print_checks(const struct doctor *d)
{
	for (size_t i = 0; i < d->machine.checks.n; i++) {
		const struct machine_check *c = &d->machine.checks.v[i];

		printf("%-8s %-19s %s\n", machine_status_name(c->status), c->name, c->words);
		if (c->fix)
			printf("%28s > %s\n", "", c->fix);
	}
}

static void print_leftover(const struct leftover *l)
{
	const char *kind = leftover_kind_name(l->kind);

	if (l->cleared)
		printf("%-8s %-19s cleared: %s %s\n", "ok", "leftover", kind, l->what);
	else if (l->kind == LEFTOVER_STOPPED)
		printf("%-8s %-19s process %s is stopped\n%28s > kill -CONT %u\n", "note",
		       "leftover", l->what, "", l->number);
	else if (l->problem)
		printf("%-8s %-19s %s %s: %s\n", "note", "leftover", kind, l->what, l->problem);
	else
		printf("%-8s %-19s %s %s, of a run that is gone\n%28s > outage doctor --fix\n",
		       "note", "leftover", kind, l->what, "");
}

/* All that an ordinary user can do works: nothing need be mended for it. */
static bool works_for_user(const struct machine *m)
{
	return geteuid() != 0 && m->guests;
}

static void print_verdict(const struct machine *m)
{
	if (m->usable)
		puts("File systems can be tested here: outage test -t ext4 --bounds seq-1");
	else if (works_for_user(m))
		puts("File systems of other kernels can be tested here, in a guest and without "
		     "root:\noutage test -t uml:ext4 (or vm:ext4) --bounds seq-1\n"
		     "Those of this machine's kernel need root.");
	else
		puts("File systems cannot be tested here before what is missing is mended.");
	if (!m->usable && !works_for_user(m) && m->guests)
		puts("Those of a kernel in a guest can: outage test -t uml:ext4 (or vm:ext4) "
		     "--bounds seq-1");
}

static void print_text(const struct doctor *d)
{
	print_checks(d);
	for (size_t i = 0; i < d->left.n; i++)
		print_leftover(&d->left.v[i]);
	if (!d->left.n)
		printf("%-8s %-19s none\n", "ok", "leftovers");
	putchar('\n');
	print_verdict(&d->machine);
}

static void print_json(const struct doctor *d)
{
	struct utsname u = { 0 };
	struct json j;

	uname(&u);
	cli_json_begin(&j);
	json_kvs(&j, KV("usable", d->machine.usable), KV("guests", d->machine.guests),
		 KV("kernel", u.release));
	json_kv_array(&j, "checks");
	for (size_t i = 0; i < d->machine.checks.n; i++) {
		const struct machine_check *c = &d->machine.checks.v[i];

		json_object_of(&j, KV("name", c->name),
			       KV("status", machine_status_name(c->status)), KV("words", c->words),
			       KV_SOME("fix", c->fix));
	}
	json_end(&j);
	json_kv_array(&j, "leftovers");
	for (size_t i = 0; i < d->left.n; i++) {
		const struct leftover *l = &d->left.v[i];

		json_object_of(&j, KV("kind", leftover_kind_name(l->kind)), KV("what", l->what),
			       KV("cleared", l->cleared), KV_SOME("problem", l->problem));
	}
	json_end(&j);
	cli_json_end(&j);
}

/* In a child: a machine that is sick enough to be looked at may hang the process that looks. */
static int examine(void *ctx)
{
	struct doctor *d = ctx;

	/* First the leftovers: what looks around leaves traces for a moment. */
	leftovers_find(&d->left);
	if (d->fix)
		leftovers_clear(&d->left);
	machine_look(&d->machine);
	if (d->json)
		print_json(d);
	else
		print_text(d);
	int status = d->machine.usable || works_for_user(&d->machine) ? EXIT_OK : EXIT_FAILED;
	leftovers_release(&d->left);
	machine_release(&d->machine);
	return status;
}

#define AT(member) OPT_AT(struct doctor, member)
static const struct opt options[] = {
	{ OPT_FLAG, "fix", 0, NULL, AT(fix),
	  .help = "clear away what killed runs left: processes, mounts, loop devices, files" },
	OPTION_JSON(AT(json)),
	OPT_END
};

static int run(void *doctor, struct args *args)
{
	if (args->n)
		return cli_usage(&cmd_doctor, "'%.60s' is not expected here", args->v[0]);
	return cli_watch(examine, doctor, TIME_LIMIT_S * 1000000000ULL, NULL);
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "tells what works on this machine, and mends what does not",
	.usage = "[--fix] [--json]",
	.about = "Tells what works on this machine, and the command that mends what does not.",
	.status = "0 file systems can be tested here, by an ordinary user those of other kernels, "
		  "in a guest; 2 they cannot",
	.example = "sudo outage doctor --fix",
	.options = options,
	.size = sizeof(struct doctor),
	.run = run,
};
