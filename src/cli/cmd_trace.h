/* SPDX-License-Identifier: MIT */
/*
 * cmd_trace.h - the part that subcommands of "outage trace" share: their options, and how they
 * begin and end what they print. A subcommand is one file.
 */
#ifndef CLI_CMD_TRACE_H
#define CLI_CMD_TRACE_H

#include "cli/cli.h"
#include "cli/groups.h"
#include "core/trace_file.h"
#include "app/posix_log.h"

extern const struct command cmd_trace_show;
extern const struct command cmd_trace_info;
extern const struct command cmd_trace_graph;
extern const struct command cmd_trace_import;
extern const struct command cmd_trace_export;

struct trace_options {
	bool json, data, runs, suggest;
	bool large_alone; /* --large without a size */
	const char *output;
	uint32_t kinds; /* a bit for each, from the first kind on; 0: all */
	uint64_t size;
	uint64_t limit;		    /* 0: as many as are good */
	struct posix_filter filter; /* `ops` 0: not said */
	const char *file;	    /* the one argument */
};

/* Which calls of an application; for a struct trace_options. */
extern const struct opt cmd_trace_filter_options[];

#define TRACE_AT(member) OPT_AT(struct trace_options, member)
#define TRACE_OPTION_FILE(words)                                                                   \
	{                                                                                          \
		OPT_ARGUMENT, .arg = "FILE", .hint = HINT_FILE, .help = words                      \
	}
#define TRACE_OPTION_OUTPUT(name, words)                                                           \
	{                                                                                          \
		OPT_TEXT, "output", 'o', name, TRACE_AT(output), .hint = HINT_FILE, .help = words  \
	}

/* The one argument, and what fits together; an exit status. An --output must be given then. */
int cmd_trace_check(const struct command *cmd, bool has_output, struct args *args,
		    struct trace_options *o);

void cmd_trace_json_info(struct json *j, const struct trace_info *info);
void cmd_trace_json_damage(struct json *j, const struct trace_damage *d);
/* Hands `out` to standard output. False if standard output is gone. */
bool cmd_trace_drain(struct strbuf *out);

/* Has `read` read the file, and tells of damage; an exit status. */
typedef int trace_read_fn(struct trace_options *o, struct trace_reader *r, struct err *err);
int cmd_trace_read(struct trace_options *o, trace_read_fn *read);
/* Reads all calls, and selects by the filter, with a warning if nothing is; fails if there is none.
 */
int cmd_trace_read_calls(const struct trace_options *o, struct trace_reader *r,
			 struct posix_log *log, struct posix_selection *sel, struct err *err)
	must_check;

/* The reader has checked the record already. */
struct posix_event cmd_trace_decoded(const struct event *ev);
/* One event; with `c` if it is a call. */
void cmd_trace_add_event(struct strbuf *sb, uint64_t n, const struct event *ev,
			 const struct posix_call *c, bool data);
void cmd_trace_json_event(struct json *j, uint64_t n, const struct event *ev,
			  const struct posix_call *c, bool data);

/* Whether an option asks for calls of an application and nothing else. */
bool cmd_trace_only_calls(const struct trace_options *o);
/* Does what "show" can do only when it knows all calls. */
int cmd_trace_show_calls(const struct trace_options *o, struct trace_reader *r, struct err *err)
	must_check;

#endif
