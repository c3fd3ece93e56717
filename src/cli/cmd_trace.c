/* SPDX-License-Identifier: MIT */
/*
 * cmd_trace.c - "outage trace": look into traces, and exchange them with dm-log-writes.
 *
 * Everything here but import and export reads one event at a time, so that a trace of any size can
 * be looked at.
 */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>

#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "core/dmlog.h"
#include "core/posix.h"
#include "core/trace_file.h"

static const struct command cmd_show, cmd_info, cmd_import, cmd_export;
static const struct command *const subcommands[] = { &cmd_show, &cmd_info, &cmd_import,
						     &cmd_export };

static int print_usage(const struct command *cmd)
{
	fputs(cmd->usage, stdout);
	return cli_flush();
}

/* ---- options that the subcommands share ---- */

struct options {
	bool help, json, data;
	const char *output;
	const char *kinds;
	uint64_t from, to;
	uint64_t size;
	const char *file; /* the one argument */
};

enum {
	OPT_HELP = 'h',
	OPT_OUTPUT = 'o',
	OPT_JSON = 256,
	OPT_DATA,
	OPT_KIND,
	OPT_FROM,
	OPT_TO,
	OPT_SIZE
};

static const struct option show_options[] = {
	{ "help", no_argument, NULL, OPT_HELP },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "data", no_argument, NULL, OPT_DATA },
	{ "kind", required_argument, NULL, OPT_KIND },
	{ "from", required_argument, NULL, OPT_FROM },
	{ "to", required_argument, NULL, OPT_TO },
	{ 0 },
};

static const struct option info_options[] = {
	{ "help", no_argument, NULL, OPT_HELP },
	{ "json", no_argument, NULL, OPT_JSON },
	{ 0 },
};

static const struct option import_options[] = {
	{ "help", no_argument, NULL, OPT_HELP },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ 0 },
};

static const struct option export_options[] = {
	{ "help", no_argument, NULL, OPT_HELP },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ 0 },
};

/* One option; an exit status. */
static int take_option(const struct command *cmd, int opt, char **argv, struct options *o)
{
	struct err err = ERR_INIT;

	switch (opt) {
	case OPT_HELP:
		o->help = true;
		return EXIT_OK;
	case OPT_JSON:
		o->json = true;
		return EXIT_OK;
	case OPT_DATA:
		o->data = true;
		return EXIT_OK;
	case OPT_KIND:
		o->kinds = optarg;
		return EXIT_OK;
	case OPT_OUTPUT:
		o->output = optarg;
		return EXIT_OK;
	case OPT_FROM:
	case OPT_TO:
		if (number_parse(optarg, opt == OPT_FROM ? &o->from : &o->to))
			return cli_usage(cmd, "'%s' is not the number of an event", optarg);
		return EXIT_OK;
	case OPT_SIZE:
		if (number_parse_size(optarg, &o->size, &err))
			return cli_usage(cmd, "%s", err.msg);
		return EXIT_OK;
	case ':':
		return cli_usage(cmd, "%s needs a value", argv[optind - 1]);
	default:
		if (optopt > 0 && optopt < 128) /* perhaps one of several in a word */
			return cli_usage(cmd, "unknown option -%c", optopt);
		return cli_usage(cmd, "unknown option %s", argv[optind - 1]);
	}
}

/* Fills `o`; an exit status. With --help nothing else is asked for. */
static int parse_options(const struct command *cmd, const struct option *longs, int argc,
			 char **argv, struct options *o)
{
	bool has_output = longs == import_options || longs == export_options;
	int opt, status;

	*o = (struct options){ .to = UINT64_MAX };
	optind = 0; /* start over, whoever parsed before */
	opterr = 0;
	while ((opt = getopt_long(argc, argv, has_output ? ":ho:" : ":h", longs, NULL)) != -1) {
		status = take_option(cmd, opt, argv, o);
		if (status)
			return status;
		if (o->help)
			return EXIT_OK;
	}
	if (optind >= argc)
		return cli_usage(cmd, "which file?");
	if (optind + 1 < argc)
		return cli_usage(cmd, "one file at a time; what is '%s'?", argv[optind + 1]);
	o->file = argv[optind];
	if (has_output && !o->output)
		return cli_usage(cmd, "where to? Say -o FILE");
	if (has_output && o->json && streq(o->output, "-"))
		return cli_usage(cmd, "--json and -o - both want standard output");
	return EXIT_OK;
}

/* ---- words for events ---- */

static const struct {
	uint32_t flag;
	const char *name;
} flag_names[] = {
	{ EV_PREFLUSH, "preflush" }, { EV_FUA, "fua" },		{ EV_META, "meta" },
	{ EV_NONTEMPORAL, "nt" },    { EV_CLFLUSH, "clflush" },
};

static bool is_text(enum event_kind kind)
{
	return kind == EV_OP_BEGIN || kind == EV_TEXT;
}

static bool is_pm(enum event_kind kind)
{
	return kind == EV_STORE || kind == EV_LINEFLUSH || kind == EV_FENCE || kind == EV_LOAD;
}

static bool has_range(enum event_kind kind)
{
	return event_modifies(kind) || kind == EV_READ || kind == EV_LOAD || kind == EV_LINEFLUSH;
}

static bool has_ref(enum event_kind kind)
{
	return kind == EV_COMPLETE || kind == EV_OP_BEGIN || kind == EV_OP_END ||
	       kind == EV_PERSIST;
}

static bool has_result(enum event_kind kind)
{
	return kind == EV_COMPLETE || kind == EV_OP_END || kind == EV_POSIX;
}

/* A text from a file may hold anything; a terminal should see none of it. */
static void add_safe(struct strbuf *sb, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\\')
			strbuf_adds(sb, "\\\\");
		else if (c == '\n')
			strbuf_adds(sb, "\\n");
		else if (c < 0x20 || c >= 0x7f)
			strbuf_addf(sb, "\\x%02x", c);
		else
			strbuf_addch(sb, (char)c);
	}
}

static void add_dump(struct strbuf *sb, const unsigned char *data, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += 16) {
		strbuf_addf(sb, "          %08" PRIx64 " ", at);
		for (uint64_t i = at; i < at + 16; i++) {
			if (i < len)
				strbuf_addf(sb, " %02x", data[i]);
			else
				strbuf_adds(sb, "   ");
		}
		strbuf_adds(sb, "  |");
		for (uint64_t i = at; i < min(at + 16, len); i++)
			strbuf_addch(sb, data[i] >= 0x20 && data[i] < 0x7f ? (char)data[i] : '.');
		strbuf_adds(sb, "|\n");
	}
}

/* Whether anything follows the kind in its line. */
static bool has_words(const struct event *ev)
{
	return has_range(ev->kind) || has_ref(ev->kind) || is_text(ev->kind) || is_pm(ev->kind) ||
	       ev->kind == EV_POSIX || ev->flags || ev->cpu || ev->time_ns;
}

/* The reader has checked the record already. */
static struct posix_event decoded(const struct event *ev)
{
	struct err err = ERR_INIT;
	struct posix_event p;
	int rc = posix_decode(ev, &p, &err);

	assert(!rc);
	return p;
}

/* " directory 1 'foo'", whatever of it there is. */
static void add_name(struct strbuf *sb, const char *what, uint64_t dir, const char *name)
{
	if (!dir && !name)
		return;
	strbuf_addf(sb, " %s", what);
	if (dir)
		strbuf_addf(sb, " %" PRIu64, dir);
	if (name) {
		strbuf_adds(sb, " '");
		add_safe(sb, name, strlen(name));
		strbuf_addch(sb, '\'');
	}
}

/* " write ino 12 0+4096 in 1 'foo' sync pid 7" */
static void add_posix(struct strbuf *sb, const struct event *ev)
{
	struct posix_event p = decoded(ev);
	const char *arg = posix_arg_name(p.op);

	strbuf_addf(sb, " %s", posix_op_name(p.op));
	if (p.ino)
		strbuf_addf(sb, " ino %" PRIu64, p.ino);
	if (p.offset || p.len)
		strbuf_addf(sb, " %" PRIu64 "+%" PRIu64, p.offset, p.len);
	add_name(sb, "in", p.dir, p.name);
	add_name(sb, p.dir2 ? "to" : "with", p.dir2, p.name2);
	if (p.ino2)
		strbuf_addf(sb, " other %" PRIu64, p.ino2);
	if (arg && p.arg)
		strbuf_addf(sb, " %s 0%" PRIo32, arg, p.arg);
	for (uint32_t flag = 1; flag & POSIX_FLAGS_ALL; flag <<= 1)
		if (p.flags & flag)
			strbuf_addf(sb, " %s", posix_flag_name(flag));
	if (p.pid)
		strbuf_addf(sb, " pid %" PRIu32, p.pid);
}

/* "    17 write     0x1000+4096 fua,meta" */
static void add_line(struct strbuf *sb, uint64_t n, const struct event *ev)
{
	const char *sep = " ";

	strbuf_addf(sb, "%8" PRIu64 " %-*s", n, has_words(ev) ? 9 : 0, event_kind_name(ev->kind));
	if (has_range(ev->kind))
		strbuf_addf(sb, " 0x%" PRIx64, ev->addr);
	if (has_range(ev->kind) && ev->len)
		strbuf_addf(sb, "+%" PRIu64, ev->len);
	if (has_ref(ev->kind))
		strbuf_addf(sb, " %s%" PRIu64, ev->kind == EV_COMPLETE ? "" : "op ", ev->ref);
	if (ev->kind == EV_POSIX)
		add_posix(sb, ev);
	if (ev->kind == EV_OP_END || ev->kind == EV_POSIX ||
	    (ev->kind == EV_COMPLETE && ev->result))
		strbuf_addf(sb, " = %" PRId32, ev->result);
	if (has_result(ev->kind) && ev->result < 0 && ev->result > -4096) {
		const char *name = strerrorname_np(-ev->result);

		strbuf_addf(sb, " (%s)", name ? name : "unknown error");
	}
	for (size_t i = 0; i < ARRAY_SIZE(flag_names); i++) {
		if (ev->flags & flag_names[i].flag) {
			strbuf_addf(sb, "%s%s", sep, flag_names[i].name);
			sep = ",";
		}
	}
	if (is_pm(ev->kind) || ev->cpu)
		strbuf_addf(sb, " cpu %" PRIu32, ev->cpu);
	if (ev->time_ns)
		strbuf_addf(sb, " at %" PRIu64 ".%06" PRIu64 " ms", ev->time_ns / 1000000,
			    ev->time_ns % 1000000);
	if (is_text(ev->kind)) {
		strbuf_adds(sb, ev->kind == EV_OP_BEGIN ? ": " : " ");
		add_safe(sb, (const char *)ev->data, ev->len);
	}
	strbuf_addch(sb, '\n');
}

static void json_hex(struct json *j, const unsigned char *data, uint64_t len)
{
	static const char digits[] = "0123456789abcdef";
	auto_strbuf hex = STRBUF_INIT;
	char *to = strbuf_grow(&hex, 2 * len);

	for (uint64_t i = 0; i < len; i++) {
		to[2 * i] = digits[data[i] >> 4];
		to[2 * i + 1] = digits[data[i] & 15];
	}
	json_string_len(j, to, 2 * len);
}

static void json_some(struct json *j, const char *key, uint64_t value)
{
	if (value)
		json_kv_uint(j, key, value);
}

static void json_posix(struct json *j, const struct event *ev, bool data)
{
	struct posix_event p = decoded(ev);
	const char *arg = posix_arg_name(p.op);

	json_kv_string(j, "call", posix_op_name(p.op));
	json_some(j, "number", p.number);
	json_some(j, "ino", p.ino);
	json_some(j, "ino2", p.ino2);
	json_some(j, "dir", p.dir);
	json_some(j, "dir2", p.dir2);
	if (p.name)
		json_kv_string(j, "name", p.name);
	if (p.name2)
		json_kv_string(j, "name2", p.name2);
	json_kv_uint(j, "offset", p.offset);
	json_kv_uint(j, "len", p.len);
	if (arg)
		json_kv_uint(j, arg, p.arg);
	json_some(j, "pid", p.pid);
	json_some(j, "tid", p.tid);
	json_kv_uint(j, "uid", p.uid);
	json_kv_uint(j, "gid", p.gid);
	json_some(j, "duration_ns", p.duration_ns);
	if (p.flags) {
		json_key(j, "flags");
		json_array(j);
		for (uint32_t flag = 1; flag & POSIX_FLAGS_ALL; flag <<= 1)
			if (p.flags & flag)
				json_string(j, posix_flag_name(flag));
		json_end(j);
	}
	if (data && p.payload_len) {
		json_key(j, "data");
		json_hex(j, p.payload, p.payload_len);
	}
}

static void json_event(struct json *j, uint64_t n, const struct event *ev, bool data)
{
	json_object(j);
	json_kv_uint(j, "event", n);
	json_kv_string(j, "kind", event_kind_name(ev->kind));
	if (has_range(ev->kind)) {
		json_kv_uint(j, "addr", ev->addr);
		json_kv_uint(j, "len", ev->len);
	}
	if (has_ref(ev->kind))
		json_kv_uint(j, ev->kind == EV_COMPLETE ? "completes" : "operation", ev->ref);
	if (has_result(ev->kind)) {
		json_key(j, "result");
		json_int(j, ev->result);
	}
	if (ev->flags) {
		json_key(j, "flags");
		json_array(j);
		for (size_t i = 0; i < ARRAY_SIZE(flag_names); i++)
			if (ev->flags & flag_names[i].flag)
				json_string(j, flag_names[i].name);
		json_end(j);
	}
	if (is_pm(ev->kind) || ev->cpu)
		json_kv_uint(j, "cpu", ev->cpu);
	if (ev->time_ns)
		json_kv_uint(j, "time_ns", ev->time_ns);
	if (is_text(ev->kind)) {
		json_key(j, "text");
		json_string_len(j, (const char *)ev->data, ev->len);
	} else if (ev->kind == EV_POSIX) {
		json_posix(j, ev, data);
	} else if (data && event_has_data(ev->kind)) {
		json_key(j, "data");
		json_hex(j, ev->data, ev->len);
	}
	json_end(j);
}

static void json_info(struct json *j, const struct trace_info *info)
{
	json_key(j, "info");
	json_object(j);
	json_kv_string(j, "target", info->target);
	json_kv_uint(j, "size", info->size);
	json_kv_uint(j, "sector_size", info->sector_size);
	json_kv_bool(j, "completions", info->completions);
	json_end(j);
}

static void json_damage(struct json *j, const struct trace_damage *d)
{
	json_kv_bool(j, "complete", !d->found);
	json_key(j, "damage");
	if (!d->found) {
		json_null(j);
		return;
	}
	json_object(j);
	json_kv_string(j, "text", d->text);
	json_kv_bool(j, "cut_off", d->cut_off);
	json_kv_uint(j, "frame", d->frame);
	json_kv_uint(j, "offset", d->offset);
	json_kv_uint(j, "readable_events", d->events);
	json_end(j);
}

/* Hands `out` to standard output. False if nobody takes it any more. */
static bool drain(struct strbuf *out)
{
	if (out->len)
		fwrite(out->buf, 1, out->len, stdout);
	strbuf_clear(out);
	return !ferror(stdout);
}

/* What everything that reads a trace ends with. */
static int finish(const struct options *o, const struct trace_damage *d)
{
	int status = cli_flush();

	if (status || !d->found)
		return status;
	return cli_failf("%s is %s: %s", o->file, d->cut_off ? "cut off" : "damaged", d->text);
}

/* ---- show ---- */

/* A bit for each kind named in "write,flush"; 0 after a usage error. */
static unsigned parse_kinds(const char *list)
{
	unsigned kinds = 0;

	for (const char *s = list; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
		size_t len = strcspn(s, ",");
		int k = 1;

		while (k < EV_KIND_END &&
		       (strlen(event_kind_name((enum event_kind)k)) != len ||
			memcmp(event_kind_name((enum event_kind)k), s, len) != 0))
			k++;
		if (k == EV_KIND_END) {
			auto_strbuf all = STRBUF_INIT;

			for (k = 1; k < EV_KIND_END; k++)
				strbuf_addf(&all, "%s%s", k > 1 ? ", " : "",
					    event_kind_name((enum event_kind)k));
			cli_usage(&cmd_show, "there is no kind '%.*s'; there are %s", (int)len, s,
				  strbuf_str(&all));
			return 0;
		}
		kinds |= 1u << k;
	}
	return kinds;
}

static void show_header(struct strbuf *out, const struct trace_info *info)
{
	strbuf_adds(out, "# ");
	add_safe(out, info->target, strlen(info->target));
	if (info->size)
		strbuf_addf(out, "%s%" PRIu64 " bytes", info->target[0] ? ", " : "", info->size);
	else
		strbuf_addf(out, "%sof unknown size", info->target[0] ? ", " : "");
	strbuf_addf(out, ", sectors of %" PRIu32 "%s\n", info->sector_size,
		    info->completions ? "" : ", completions not recorded");
}

/* The bytes that were written, if any. */
static void add_data(struct strbuf *out, const struct event *ev)
{
	if (ev->kind == EV_POSIX) {
		struct posix_event p = decoded(ev);

		add_dump(out, p.payload, p.payload_len);
	} else if (event_has_data(ev->kind) && !is_text(ev->kind)) {
		add_dump(out, ev->data, ev->len);
	}
}

static int show_events(const struct options *o, unsigned kinds, struct trace_reader *r,
		       struct err *err)
{
	auto_strbuf out = STRBUF_INIT;
	struct json j;
	struct event ev;
	int rc;

	json_init(&j, &out, false);
	if (o->json) {
		json_object(&j);
		json_info(&j, trace_reader_info(r));
		json_key(&j, "events");
		json_array(&j);
	} else {
		show_header(&out, trace_reader_info(r));
	}
	for (uint64_t n = 0; (rc = trace_reader_next(r, &ev, err)) > 0; n++) {
		if (n < o->from || n > o->to || !(kinds >> ev.kind & 1))
			continue;
		if (o->json) {
			json_event(&j, n, &ev, o->data);
		} else {
			add_line(&out, n, &ev);
			if (o->data)
				add_data(&out, &ev);
		}
		if (out.len >= 65536 && !drain(&out))
			return 0; /* cli_flush() will say it */
	}
	if (o->json && rc == 0) {
		json_end(&j);
		json_damage(&j, trace_reader_damage(r));
		json_end(&j);
		strbuf_addch(&out, '\n');
	}
	drain(&out);
	return rc;
}

static int run_show(int argc, char **argv)
{
	auto_call(cleanup_trace_reader) struct trace_reader *r = NULL;
	struct options o;
	struct err err = ERR_INIT;
	unsigned kinds = UINT32_MAX;
	int status = parse_options(&cmd_show, show_options, argc, argv, &o);

	if (status)
		return status;
	if (o.help)
		return print_usage(&cmd_show);
	if (o.from > o.to)
		return cli_usage(&cmd_show, "--from %" PRIu64 " is after --to %" PRIu64, o.from,
				 o.to);
	if (o.kinds && !(kinds = parse_kinds(o.kinds)))
		return EXIT_FAILED;
	if (trace_reader_open(o.file, &r, &err) || show_events(&o, kinds, r, &err)) {
		cli_flush();
		return cli_fail(&err);
	}
	return finish(&o, trace_reader_damage(r));
}

static const struct command cmd_show = {
	.name = "trace show",
	.summary = "print the events of a trace",
	.usage = "usage: outage trace show [--kind K,...] [--from N] [--to N] [--data] [--json] "
		 "FILE\n"
		 "\n"
		 "Prints the events of a trace, one a line: number, kind, address and length, "
		 "flags,\n"
		 "what it completes, text. FILE - is standard input.\n"
		 "\n"
		 "  --kind K,...  only these kinds: write, flush, discard, zero, read, complete,\n"
		 "                store, lineflush, fence, load, begin, end, persist, text,\n"
		 "                posix\n"
		 "  --from N      from event N on\n"
		 "  --to N        up to event N, which is included\n"
		 "  --data        the written bytes as well\n"
		 "  --json        one JSON object\n",
	.run = run_show,
};

/* ---- info ---- */

struct counts {
	uint64_t events;
	uint64_t by_kind[EV_KIND_END];
	uint64_t bytes_written; /* the data of writes and stores */
	uint64_t unfinished;	/* requests without a completion */
};

static int count(struct trace_reader *r, struct counts *c, struct err *err)
{
	struct event ev;
	int rc;

	while ((rc = trace_reader_next(r, &ev, err)) > 0) {
		c->events++;
		c->by_kind[ev.kind]++;
		if (ev.kind == EV_WRITE || ev.kind == EV_STORE)
			c->bytes_written += ev.len;
		c->unfinished += event_is_request(ev.kind);
		c->unfinished -= ev.kind == EV_COMPLETE;
	}
	return rc;
}

static void info_text(struct strbuf *out, const struct trace_info *info, const struct counts *c,
		      const struct trace_damage *d)
{
	strbuf_adds(out, "target       ");
	if (info->target[0])
		add_safe(out, info->target, strlen(info->target));
	else
		strbuf_adds(out, "unknown");
	strbuf_addch(out, '\n');
	if (info->size)
		strbuf_addf(out, "size         %" PRIu64 " bytes\n", info->size);
	else
		strbuf_adds(out, "size         unknown\n");
	strbuf_addf(out, "sector size  %" PRIu32 " bytes\n", info->sector_size);
	strbuf_addf(out, "completions  %s\n", info->completions ? "recorded" : "not recorded");
	strbuf_addf(out, "complete     %s\n",
		    !d->found	 ? "yes"
		    : d->cut_off ? "no, cut off"
				 : "no, damaged");
	strbuf_addf(out, "events       %" PRIu64 "\n", c->events);
	for (int k = 1; k < EV_KIND_END; k++)
		if (c->by_kind[k])
			strbuf_addf(out, "  %-10s %" PRIu64 "\n",
				    event_kind_name((enum event_kind)k), c->by_kind[k]);
	strbuf_addf(out, "written      %" PRIu64 " bytes\n", c->bytes_written);
	strbuf_addf(out, "in flight    %" PRIu64 " requests never completed\n", c->unfinished);
}

static void info_json(struct strbuf *out, const struct trace_info *info, const struct counts *c,
		      const struct trace_damage *d)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j);
	json_info(&j, info);
	json_kv_uint(&j, "events", c->events);
	json_key(&j, "kinds");
	json_object(&j);
	for (int k = 1; k < EV_KIND_END; k++)
		json_kv_uint(&j, event_kind_name((enum event_kind)k), c->by_kind[k]);
	json_end(&j);
	json_kv_uint(&j, "bytes_written", c->bytes_written);
	json_kv_uint(&j, "unfinished", c->unfinished);
	json_damage(&j, d);
	json_end(&j);
}

static int run_info(int argc, char **argv)
{
	auto_call(cleanup_trace_reader) struct trace_reader *r = NULL;
	auto_strbuf out = STRBUF_INIT;
	struct options o;
	struct counts c = { 0 };
	struct err err = ERR_INIT;
	int status = parse_options(&cmd_info, info_options, argc, argv, &o);

	if (status)
		return status;
	if (o.help)
		return print_usage(&cmd_info);
	if (trace_reader_open(o.file, &r, &err) || count(r, &c, &err))
		return cli_fail(&err);
	(o.json ? info_json : info_text)(&out, trace_reader_info(r), &c, trace_reader_damage(r));
	drain(&out);
	return finish(&o, trace_reader_damage(r));
}

static const struct command cmd_info = {
	.name = "trace info",
	.summary = "count the events of a trace",
	.usage = "usage: outage trace info [--json] FILE\n"
		 "\n"
		 "Prints what was recorded, how many events of each kind there are, and whether "
		 "the\n"
		 "trace is complete. FILE - is standard input.\n"
		 "\n"
		 "  --json        one JSON object\n",
	.run = run_info,
};

/* ---- import and export ---- */

static int run_import(int argc, char **argv)
{
	auto_trace t = { 0 };
	auto_strbuf out = STRBUF_INIT;
	struct options o;
	struct err err = ERR_INIT;
	struct json j;
	int status = parse_options(&cmd_import, import_options, argc, argv, &o);

	if (status)
		return status;
	if (o.help)
		return print_usage(&cmd_import);
	if (dmlog_import(o.file, &t, &err))
		return cli_fail(&err);
	if (o.size)
		t.info.size = o.size;
	if (trace_validate(&t, &err)) {
		err_context(&err, "%s", o.file);
		return cli_fail(&err);
	}
	if (trace_save(o.output, &t, &err))
		return cli_fail(&err);
	if (!o.json)
		return EXIT_OK;
	json_init(&j, &out, true);
	json_object(&j);
	json_kv_string(&j, "trace", o.output);
	json_kv_uint(&j, "events", t.events.n);
	json_info(&j, &t.info);
	json_end(&j);
	drain(&out);
	return cli_flush();
}

static const struct command cmd_import = {
	.name = "trace import",
	.summary = "turn a dm-log-writes log into a trace",
	.usage =
		"usage: outage trace import [--size BYTES] [--json] LOG -o FILE\n"
		"\n"
		"Turns a log of the kernel's dm-log-writes target (a file, a device, or - for\n"
		"standard input) into a trace.\n"
		"\n"
		"  -o, --output FILE  where the trace goes; - is standard output\n"
		"  --size BYTES       size of the logged device, which a log does not tell; units\n"
		"                     as in 64M\n"
		"  --json             one JSON object about the result\n",
	.run = run_import,
};

static void warn_left_out(const struct dmlog_report *rep)
{
	auto_strbuf what = STRBUF_INIT;
	const struct {
		uint64_t n;
		const char *text;
	} parts[] = {
		{ rep->reads, "reads" },
		{ rep->pm, "persistent-memory events" },
		{ rep->posix, "calls of an application" },
		{ rep->incomplete, "requests that never completed" },
		{ rep->failed, "requests that failed" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].n)
			strbuf_addf(&what, "%s%s: %" PRIu64, what.len ? ", " : "", parts[i].text,
				    parts[i].n);
	if (what.len)
		log_warn("left out, as a dm-log-writes log cannot hold them; %s",
			 strbuf_str(&what));
}

static void export_json(struct strbuf *out, const char *log, const struct dmlog_report *rep)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j);
	json_kv_string(&j, "log", log);
	json_kv_uint(&j, "entries", rep->entries);
	json_key(&j, "left_out");
	json_object(&j);
	json_kv_uint(&j, "reads", rep->reads);
	json_kv_uint(&j, "pm", rep->pm);
	json_kv_uint(&j, "posix", rep->posix);
	json_kv_uint(&j, "incomplete", rep->incomplete);
	json_kv_uint(&j, "failed", rep->failed);
	json_end(&j);
	json_end(&j);
}

static int run_export(int argc, char **argv)
{
	auto_trace t = { 0 };
	auto_strbuf out = STRBUF_INIT;
	struct options o;
	struct dmlog_report rep;
	struct err err = ERR_INIT;
	int status = parse_options(&cmd_export, export_options, argc, argv, &o);

	if (status)
		return status;
	if (o.help)
		return print_usage(&cmd_export);
	if (trace_load(o.file, &t, NULL, &err))
		return cli_fail(&err);
	if (dmlog_export(&t, o.output, &rep, &err)) {
		if (err.code == -EINVAL) /* the trace's fault, not the log's */
			err_context(&err, "%s", o.file);
		return cli_fail(&err);
	}
	warn_left_out(&rep);
	if (!o.json)
		return EXIT_OK;
	export_json(&out, o.output, &rep);
	drain(&out);
	return cli_flush();
}

static const struct command cmd_export = {
	.name = "trace export",
	.summary = "turn a trace into a dm-log-writes log",
	.usage = "usage: outage trace export [--json] FILE -o LOG\n"
		 "\n"
		 "Turns a trace into a log of the kernel's dm-log-writes target, for other tools.\n"
		 "Reads, persistent-memory events, calls of an application and requests that did\n"
		 "not complete are left out, with a warning.\n"
		 "\n"
		 "  -o, --output LOG   where the log goes; - is standard output\n"
		 "  --json             one JSON object about the result\n",
	.run = run_export,
};

/* ---- the command ---- */

static int run_trace(int argc, char **argv)
{
	if (argc < 2)
		return cli_usage(&cmd_trace, "show, info, import or export?");
	if (streq(argv[1], "--help") || streq(argv[1], "-h"))
		return print_usage(&cmd_trace);
	for (size_t i = 0; i < ARRAY_SIZE(subcommands); i++)
		if (streq(argv[1], strchr(subcommands[i]->name, ' ') + 1))
			return subcommands[i]->run(argc - 1, argv + 1);
	return cli_usage(&cmd_trace, "there is no '%s'; there are show, info, import and export",
			 argv[1]);
}

const struct command cmd_trace = {
	.name = "trace",
	.summary = "show, import and export traces",
	.usage = "usage: outage trace show   [--kind K,...] [--from N] [--to N] [--data] [--json] "
		 "FILE\n"
		 "       outage trace info   [--json] FILE\n"
		 "       outage trace import [--size BYTES] [--json] LOG -o FILE\n"
		 "       outage trace export [--json] FILE -o LOG\n"
		 "\n"
		 "A trace is what a target sent to its storage. show prints its events, info "
		 "counts\n"
		 "them; import and export exchange it with the kernel's dm-log-writes target.\n"
		 "Each has its own --help.\n",
	.run = run_trace,
};
