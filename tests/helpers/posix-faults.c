/* SPDX-License-Identifier: MIT */
/*
 * posix-faults.c - whether the faults that are suggested for a trace strike where they say: each is
 * parsed as `outage ctl` would, put into a set of its own, and asked about every call of the trace.
 *
 * usage: posix-faults FILE
 * Prints a line for each suggestion; the exit status is 1 if one does not strike, or elsewhere.
 */
#include <inttypes.h>
#include <wordexp.h>

#include "inject/inject.h"
#include "app/posix_log.h"

/* The event at which the fault strikes; UINT64_MAX: never. */
static uint64_t strikes_at(const struct posix_log *log, struct inject *set, bool before)
{
	for (size_t i = 0; i < log->calls.n; i++) {
		const struct posix_call *c = &log->calls.v[i];
		struct inject_op op = { c->op, c->path, c->path2, c->offset, c->len };
		struct inject_action act;

		inject_ask(set, &op, &act);
		if (before ? act.crash_before : act.crash_after)
			return c->event;
	}
	return UINT64_MAX;
}

static bool strikes(const struct posix_log *log, const struct posix_suggestion *s)
{
	struct inject *set = inject_new();
	struct inject_command command = { 0 };
	struct err err = ERR_INIT;
	uint64_t at = UINT64_MAX;
	wordexp_t words;
	uint64_t id;

	if (wordexp(s->command, &words, WRDE_NOCMD | WRDE_UNDEF)) {
		printf("no words: %s\n", s->command);
		inject_free(set);
		return false;
	}
	if (inject_command_parse(words.we_wordv, words.we_wordc, "/root", "/mnt", &command, &err)) {
		printf("refused: %s: %s\n", s->command, err.msg);
	} else if (command.kind != COMMAND_FAULT) {
		printf("no fault: %s\n", s->command);
	} else if (inject_add(set, command.fault, &id, &err)) {
		printf("not added: %s: %s\n", s->command, err.msg);
	} else {
		command.fault = NULL; /* the set has it */
		at = strikes_at(log, set, strstr(s->command, "timing=before"));
		printf("%s: %s strikes at event %" PRId64 "\n", at == s->event ? "right" : "wrong",
		       s->command, (int64_t)at);
	}
	inject_command_release(&command);
	wordfree(&words);
	inject_free(set);
	return at == s->event;
}

int main(int argc, char **argv)
{
	auto_call(cleanup_trace_reader) struct trace_reader *r = NULL;
	auto_posix_log log;
	struct posix_filter all = { .ops = POSIX_OPS_ALL, .to = UINT64_MAX };
	struct posix_selection sel;
	struct posix_suggestions found;
	struct err err = ERR_INIT;
	bool good = true;

	posix_log_init(&log);
	if (argc != 2 || trace_reader_open(argv[1], &r, &err) || posix_log_read(&log, r, &err)) {
		fprintf(stderr, "posix-faults: %s\n", err.msg);
		return 2;
	}
	posix_select(&log, &all, &sel);
	posix_suggest(&log, &sel, 1000, &found);
	for (size_t i = 0; i < found.list.n; i++)
		good &= strikes(&log, &found.list.v[i]);
	posix_suggestions_release(&found);
	vec_release(&sel);
	return good ? 0 : 1;
}
