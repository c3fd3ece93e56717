/* SPDX-License-Identifier: MIT */
/* workload.c - a workload in memory, and its text. */
#include "workload/workload.h"

#include <fcntl.h>

void workload_init(struct workload *w)
{
	*w = (struct workload){ .name = "" };
}

void workload_release(struct workload *w)
{
	vec_release(&w->ops);
	vec_release(&w->handles);
	arena_release(&w->arena);
}

void workload_clear(struct workload *w)
{
	vec_clear(&w->ops);
	vec_clear(&w->handles);
	arena_clear(&w->arena);
	w->name = "";
	w->named = false;
	w->before = w->after = NULL;
}

static const char *copy_text(struct workload *w, const char *text)
{
	return text ? arena_strdup(&w->arena, text) : NULL;
}

const struct op *workload_command(const struct workload *w)
{
	return vec_find(i, &w->ops, w->ops.v[i].def->flags & OP_COMMAND);
}

const struct workload_handle *workload_handle(const struct workload *w, const char *name)
{
	return vec_find(i, &w->handles, streq(w->handles.v[i].name, name));
}

bool workload_persists(const struct workload *w, size_t i)
{
	const struct op *op = &w->ops.v[i];

	if (op_persists(op) || !(op->def->flags & OP_WRITES) || op->def->promise ||
	    !op->args[0].is_handle)
		return op_persists(op);
	for (size_t k = 0; op->def->args[k].kind != ARG_END; k++)
		if (op->def->args[k].kind == ARG_LENGTH && !op->args[k].num)
			return false; /* nothing is written */
	while (i-- > 0) {
		const struct op *o = &w->ops.v[i];

		if (o->handle && streq(o->handle, op->args[0].text))
			return o->args[1].num & O_DSYNC; /* a bit that O_SYNC has, too */
	}
	return false;
}

void workload_push(struct workload *w, const struct op *op)
{
	if (op->handle && !workload_handle(w, op->handle))
		vec_push(&w->handles, (struct workload_handle){ op->handle, w->ops.n });
	vec_push(&w->ops, *op);
}

void workload_add(struct workload *w, const struct op *op)
{
	struct op copy = *op;

	copy.handle = copy_text(w, op->handle);
	copy.before = copy_text(w, op->before);
	copy.comment = copy_text(w, op->comment);
	for (size_t i = 0; i < OP_ARGS_MAX; i++)
		copy.args[i].text = copy_text(w, op->args[i].text);
	workload_push(w, &copy);
}

/* Prints a word as the parser reads it. */
static void print_word(const char *text, struct strbuf *out)
{
	if (!*text) {
		strbuf_adds(out, "\"\"");
		return;
	}
	if (streq(text, "=")) { /* a bare "=" would make the word before it a handle */
		strbuf_adds(out, "\\x3d");
		return;
	}
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		bool hash = *p == '#' && p == (const unsigned char *)text;

		if (*p <= ' ' || *p == 0x7f || *p == '\\' || *p == '"' || hash)
			strbuf_addf(out, "\\x%02x", *p);
		else
			strbuf_addch(out, (char)*p);
	}
}

/* Prints a command in quotes: with escapes for all its blanks it would not be readable. */
static void print_quoted(const char *text, struct strbuf *out)
{
	strbuf_addch(out, '"');
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if ((*p < ' ' && *p != '\t') || *p == 0x7f)
			strbuf_addf(out, "\\x%02x", *p);
		else if (*p == '"' || *p == '\\')
			strbuf_addf(out, "\\%c", *p);
		else
			strbuf_addch(out, (char)*p);
	}
	strbuf_addch(out, '"');
}

static void print_flags(const struct arg_def *def, uint64_t value, struct strbuf *out)
{
	size_t start = out->len;
	uint64_t left = value;

	/* Words of several bits (O_SYNC) come before words of one of these bits. */
	while (left) {
		const struct word *best = NULL;

		for (const struct word *w = def->words; w->name; w++)
			if (w->value && (left & w->value) == w->value &&
			    (!best ||
			     __builtin_popcount(w->value) > __builtin_popcount(best->value)))
				best = w;
		assert(best);
		strbuf_addf(out, "%s%s", out->len > start ? "," : "", best->name);
		left &= ~(uint64_t)best->value;
	}
	if (out->len == start)
		for (const struct word *w = def->words; w->name; w++)
			if (!w->value)
				strbuf_adds(out, w->name);
}

static void print_arg(const struct arg_def *def, const struct arg *arg, struct strbuf *out)
{
	switch (def->kind) {
	case ARG_FILE:
	case ARG_PATH:
	case ARG_HANDLE:
	case ARG_TEXT:
	case ARG_XATTR:
		print_word(arg->text, out);
		break;
	case ARG_FLAGS:
	case ARG_CHOICE:
		if (arg->text)
			strbuf_adds(out, arg->text);
		else
			print_flags(def, arg->num, out);
		break;
	case ARG_MODE:
		strbuf_addf(out, "%04o", (unsigned)arg->num);
		break;
	default:
		strbuf_addu(out, arg->num);
	}
}

void op_print(const struct op *op, struct strbuf *out)
{
	if (op->handle) {
		strbuf_adds(out, op->handle);
		strbuf_adds(out, " = ");
	}
	strbuf_adds(out, op->def->name);
	for (size_t i = 0; op->def->args[i].kind != ARG_END; i++) {
		const struct arg_def *def = &op->def->args[i];

		if (def->optional && !op->args[i].given)
			break;
		strbuf_addch(out, ' ');
		if (op->def->flags & OP_COMMAND && def->kind == ARG_TEXT)
			print_quoted(op->args[i].text, out);
		else
			print_arg(def, &op->args[i], out);
	}
}

/* True if a path is spelled like an earlier handle, for which it would be taken. */
static bool shadowed(const struct workload *w, size_t op, const char *path)
{
	const struct workload_handle *handle = workload_handle(w, path);

	return handle && handle->op < op;
}

static void print_op_line(const struct workload *w, size_t i, struct strbuf *out)
{
	struct op op = w->ops.v[i];
	char *spelled[OP_ARGS_MAX] = { NULL };

	for (size_t a = 0; op.def->args[a].kind != ARG_END; a++)
		if (op.def->args[a].kind == ARG_FILE && !op.args[a].is_handle &&
		    shadowed(w, i, op.args[a].text))
			op.args[a].text = spelled[a] = xasprintf("./%s", op.args[a].text);
	if (op.before)
		strbuf_adds(out, op.before);
	if (op.setup)
		strbuf_adds(out, "setup ");
	op_print(&op, out);
	if (op.comment) {
		strbuf_addch(out, ' ');
		strbuf_adds(out, op.comment);
	}
	strbuf_addch(out, '\n');
	for (size_t a = 0; a < OP_ARGS_MAX; a++)
		free(spelled[a]);
}

void workload_print(const struct workload *w, struct strbuf *out)
{
	if (w->before)
		strbuf_adds(out, w->before);
	if (w->named) {
		strbuf_adds(out, "workload ");
		print_word(w->name, out);
		strbuf_addch(out, '\n');
	}
	for (size_t i = 0; i < w->ops.n; i++)
		print_op_line(w, i, out);
	if (w->after)
		strbuf_adds(out, w->after);
}
