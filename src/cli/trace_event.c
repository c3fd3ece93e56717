/* SPDX-License-Identifier: MIT */
/* trace_event.c - one event of a trace, as a line and as JSON. */
#include <inttypes.h>

#include "core/bytes.h"
#include "cli/cmd_trace.h"

static const struct {
	uint32_t flag;
	const char *name;
} flag_names[] = {
	{ EV_PREFLUSH, "preflush" }, { EV_FUA, "fua" },		{ EV_META, "meta" },
	{ EV_NONTEMPORAL, "nt" },    { EV_CLFLUSH, "clflush" }, { EV_NEW_CALL, "newcall" },
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
	       ev->flags || ev->cpu || ev->time_ns || ev->pc || ev->stack || ev->kind == EV_STACK;
}

struct posix_event cmd_trace_decoded(const struct event *ev)
{
	struct err err = ERR_INIT;
	struct posix_event p;
	int rc = posix_decode(ev, &p, &err);

	assert(!rc);
	return p;
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
	if (ev->kind == EV_OP_END || (ev->kind == EV_COMPLETE && ev->result))
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
	if (ev->kind == EV_STACK)
		strbuf_addf(sb, " %" PRIu64 ", %" PRIu64 " frame%s", ev->ref, ev->len / 8,
			    ev->len == 8 ? "" : "s");
	for (uint64_t i = 0; ev->kind == EV_STACK && ev->data && i < ev->len / 8; i++)
		strbuf_addf(sb, "%s 0x%" PRIx64, i ? "," : ":", get_le64(ev->data + 8 * i));
	if (ev->pc)
		strbuf_addf(sb, " from 0x%" PRIx64, ev->pc);
	if (ev->stack)
		strbuf_addf(sb, " stack %" PRIu32, ev->stack);
	if (ev->time_ns)
		strbuf_addf(sb, " at %" PRIu64 ".%06" PRIu64 " ms", ev->time_ns / 1000000,
			    ev->time_ns % 1000000);
	if (is_text(ev->kind)) {
		strbuf_adds(sb, ev->kind == EV_OP_BEGIN ? ": " : " ");
		posix_add_safe(sb, (const char *)ev->data, ev->len);
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

static void json_stack(struct json *j, const struct event *ev)
{
	json_kvs(j, KV("number", ev->ref));
	json_kv_array(j, "frames");
	for (uint64_t i = 0; ev->data && i < ev->len / 8; i++)
		json_uint(j, get_le64(ev->data + 8 * i));
	json_end(j);
}

static void json_call(struct json *j, const struct event *ev, const struct posix_call *c, bool data)
{
	struct posix_event p = cmd_trace_decoded(ev);

	posix_json_call(j, c, &p);
	if (data && p.payload_len) {
		json_key(j, "data");
		json_hex(j, p.payload, p.payload_len);
	}
}

void cmd_trace_json_event(struct json *j, uint64_t n, const struct event *ev,
			  const struct posix_call *c, bool data)
{
	json_object(j);
	json_kvs(j, KV("event", n), KV("kind", event_kind_name(ev->kind)));
	if (has_range(ev->kind))
		json_kvs(j, KV("addr", ev->addr), KV("len", ev->len));
	if (has_ref(ev->kind))
		json_kvs(j, KV(ev->kind == EV_COMPLETE ? "completes" : "operation", ev->ref));
	if (has_result(ev->kind)) {
		json_key(j, "result");
		json_int(j, ev->result);
	}
	if (ev->flags) {
		json_kv_array(j, "flags");
		for (size_t i = 0; i < ARRAY_SIZE(flag_names); i++)
			if (ev->flags & flag_names[i].flag)
				json_string(j, flag_names[i].name);
		json_end(j);
	}
	if (is_pm(ev->kind) || ev->cpu)
		json_kvs(j, KV("cpu", ev->cpu));
	json_kvs(j, KV_SOME("time_ns", ev->time_ns));
	if (ev->kind == EV_STACK)
		json_stack(j, ev);
	json_kvs(j, KV_SOME("pc", ev->pc), KV_SOME("stack", ev->stack));
	if (is_text(ev->kind)) {
		json_key(j, "text");
		json_string_len(j, (const char *)ev->data, ev->len);
	} else if (c) {
		json_call(j, ev, c, data);
	} else if (data && event_has_data(ev->kind)) {
		json_key(j, "data");
		json_hex(j, ev->data, ev->len);
	}
	json_end(j);
}

void cmd_trace_add_event(struct strbuf *sb, uint64_t n, const struct event *ev,
			 const struct posix_call *c, bool data)
{
	if (c) {
		struct posix_event p = cmd_trace_decoded(ev);

		posix_add_line(sb, c, &p);
		if (data)
			add_dump(sb, p.payload, p.payload_len);
		return;
	}
	add_line(sb, n, ev);
	if (data && event_has_data(ev->kind) && !is_text(ev->kind))
		add_dump(sb, ev->data, ev->len);
}
