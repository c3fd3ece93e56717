/* SPDX-License-Identifier: MIT */
/*
 * cli.h - the part that all commands share. A command is one file, one entry in commands.def, one
 * manual page. Only this room prints and exits.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/err.h"
#include "base/json.h"
#include "cli/options.h"

/* Scripts may rely on these. */
enum exit_status {
	EXIT_OK = 0,	   /* ran to its end and found nothing */
	EXIT_FINDINGS = 1, /* found something */
	EXIT_FAILED = 2,   /* could not run; one sentence on standard error says why */
};

struct command {
	const char *name;
	const char *summary; /* half a line, for the list of commands; NULL: it is in none */
	/* For --help. Prose is wrapped there, but for lines that begin with a blank. */
	const char *usage;   /* a line for each form, as it goes on after the name */
	const char *about;   /* prose, or NULL */
	const char *status;  /* the meaning of its exit statuses, or NULL */
	const char *example; /* lines, or NULL */
	const struct opt *options;
	enum opt_order order;
	size_t size;	       /* of the struct that the options go to, which is zeroed first */
	void (*init)(void *o); /* before the options are read; or NULL */
	int (*run)(void *o, struct args *args); /* an exit status */
	void (*release)(void *o);		/* in any case; or NULL */
	const struct command *const
		*sub; /* subcommands, which it has instead of all these; or NULL */
	bool alone;   /* a program of that name */
};

/* "show" of "trace show" */
static inline const char *command_short_name(const struct command *cmd)
{
	const char *blank = strrchr(cmd->name, ' ');

	return blank ? blank + 1 : cmd->name;
}

#define COMMAND(name_) extern const struct command cmd_##name_;
#include "cli/commands.def"
#undef COMMAND

/* The program itself; lazyfs is in mounting.h. */
extern const struct command cmd_outage;

/* Prints "outage: <message>" and returns EXIT_FAILED. */
int cli_fail(const struct err *err);
int cli_failf(const char *fmt, ...) printf_like(1, 2);
/* Why a search checked no crash state, and what to do; `time_ns` is its limit, or 0. */
const char *cli_why_untried(bool signalled, uint64_t time_ns);
/* Reports a wrong command line, with a hint at --help. */
int cli_usage(const struct command *cmd, const char *fmt, ...) printf_like(2, 3);

/* An object of JSON on standard output: it is open in between, and printed at the end. */
void cli_json_begin(struct json *j);
void cli_json_end(struct json *j);
/* One that is nothing but KV()s. */
#define cli_json(...)                                                                              \
	do {                                                                                       \
		struct json cli_json_;                                                             \
                                                                                                   \
		cli_json_begin(&cli_json_);                                                        \
		json_kvs(&cli_json_, __VA_ARGS__);                                                 \
		cli_json_end(&cli_json_);                                                          \
	} while (0)

/*
 * For a command that keeps what it makes: makes the key of this user (trust.h). If there can be
 * none, `why` is set, and the command goes on.
 */
void cli_ready_to_mark(struct err *why);
/* When it is done: says that what it kept will need --trust, if `why` was set. */
void cli_tell_unmarked(const struct err *why);
/* For a command that runs nothing of a finding: says that it is not this user's own. */
void cli_tell_strange(const char *dir);

/*
 * Runs `fn` in a child process, and gives its exit status. A file system under test may hang: when
 * the time is up, or we are told to stop, the child is killed with all it mounted, and the status
 * is EXIT_FAILED. With `hung` not NULL, that the time is up is no failure: it is set, nothing is
 * printed, and the status is EXIT_FINDINGS.
 */
int cli_watch(int (*fn)(void *ctx), void *ctx, uint64_t time_ns, bool *hung);

/*
 * Flushes standard output and tells whether all of it got there: EXIT_OK, or EXIT_FAILED after a
 * sentence. A reader that went away counts as a failure: what was asked for did not arrive.
 */
int cli_flush(void);

#endif
