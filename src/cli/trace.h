/* SPDX-License-Identifier: MIT */
/*
 * trace.h - what the subcommands of "outage trace" share: their options, and how they begin and end
 * what they print. A subcommand is one file.
 */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include <getopt.h>

#include "base/json.h"
#include "cli/cli.h"
#include "core/trace_file.h"
#include "report/posix_log.h"

extern const struct command trace_cmd_show;
extern const struct command trace_cmd_info;
extern const struct command trace_cmd_graph;
extern const struct command trace_cmd_import;
extern const struct command trace_cmd_export;

enum {
	TRACE_OPT_HELP = 'h',
	TRACE_OPT_OUTPUT = 'o',
	TRACE_OPT_JSON = 256,
	TRACE_OPT_DATA,
	TRACE_OPT_KIND,
	TRACE_OPT_FROM,
	TRACE_OPT_TO,
	TRACE_OPT_SIZE,
	TRACE_OPT_FILE,
	TRACE_OPT_OP,
	TRACE_OPT_PID,
	TRACE_OPT_LARGE,
	TRACE_OPT_RUNS,
	TRACE_OPT_SUGGEST,
	TRACE_OPT_LIMIT,
};

struct trace_options {
	bool help, json, data, runs, suggest;
	bool large_alone; /* --large without a size */
	const char *output;
	const char *kinds;
	uint64_t size;
	uint64_t limit;		    /* 0: as many as are good */
	struct posix_filter filter; /* `ops` 0: not said */
	const char *file;	    /* the one argument */
};

/*
 * Fills `o`; an exit status. With --help nothing else is asked for. A subcommand that has --output
 * needs it.
 */
int trace_parse(const struct command *cmd, const struct option *longs, int argc, char **argv,
		struct trace_options *o);
int trace_print_usage(const struct command *cmd);

void trace_json_info(struct json *j, const struct trace_info *info);
void trace_json_damage(struct json *j, const struct trace_damage *d);
/* Hands `out` to standard output. False if nobody takes it any more. */
bool trace_drain(struct strbuf *out);
/* What everything that reads a trace ends with. */
/* A warning that the filter leaves nothing, which is easily a typing error. */
void trace_warn_empty(const struct trace_options *o, const struct posix_selection *sel);
int trace_finish(const struct trace_options *o, const struct trace_damage *d);

/* The reader has checked the record already. */
struct posix_event trace_decoded(const struct event *ev);
/* One event; with `c` if it is a call. */
void trace_add_event(struct strbuf *sb, uint64_t n, const struct event *ev,
		     const struct posix_call *c, bool data);
void trace_json_event(struct json *j, uint64_t n, const struct event *ev,
		      const struct posix_call *c, bool data);

/* Whether an option asks for calls of an application and nothing else. */
bool trace_only_calls(const struct trace_options *o);
/* What "show" can do only when it knows all calls. */
int trace_show_calls(const struct trace_options *o, struct trace_reader *r, struct err *err)
	must_check;
/* All calls of the trace that `r` reads; fails if there is none. */
int trace_read_calls(const struct trace_options *o, struct trace_reader *r, struct posix_log *log,
		     struct err *err) must_check;

#endif
