/* SPDX-License-Identifier: MIT */
/*
 * fuzz_command.c - whatever the bytes, a configuration, a line or words of a command are read or
 * refused with a sentence; a fault that was read can be set, asked, and said again in its own
 * words.
 *
 * The first byte says what the rest is taken for.
 */
#include "inject/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *ctx, uint64_t offset, uint64_t len)
{
	uint64_t most = *(uint64_t *)ctx;

	assert(offset <= most && len && len <= most - offset);
}

static void ask(struct inject *s)
{
	static const char *const paths[] = { "a", "output.txt", "wal/0-1.log", "" };

	for (unsigned i = 0; i < 4 * POSIX_OP_END; i++) {
		uint64_t len = 1 + i % 7 * 1000;
		struct inject_op op = { .op = (enum posix_op)(i % POSIX_OP_END),
					.from = paths[i % ARRAY_SIZE(paths)],
					.to = paths[i / 5 % ARRAY_SIZE(paths)],
					.len = len };
		struct inject_action a;

		inject_ask(s, &op, &a);
		if (a.tear)
			assert(fault_tear(a.tear, len, ignore, &len) && a.crash_after);
		if (a.sync)
			fault_wants_page(a.sync, i, 2 * i + 1);
	}
}

static void set_and_ask(struct fault **faults, size_t n)
{
	struct inject *s = inject_new();

	for (size_t i = 0; i < n; i++) {
		struct err err = ERR_INIT;

		assert(strbuf_str(&faults[i]->text)[0]);
		if (inject_add(s, faults[i], NULL, &err) == 0)
			faults[i] = NULL; /* the set's */
		else
			assert(err.msg[0]);
	}
	ask(s);
	inject_free(s);
}

static void check_command(int rc, struct inject_command *c, const struct err *err)
{
	if (rc) {
		assert(rc < 0 && err->msg[0]);
		return;
	}
	assert(c->kind != COMMAND_FAULT || c->fault);
	assert(c->kind != COMMAND_SYNC || c->fault);
	if (c->kind == COMMAND_FAULT)
		set_and_ask(&c->fault, 1);
	inject_command_release(c);
}

static void words(char *text)
{
	struct vec_of(char *) list = { 0 };
	struct inject_command c;
	struct err err = ERR_INIT;
	char *word;

	while ((word = strsep(&text, " ")))
		vec_push(&list, word);
	int rc = inject_command_parse(list.v, list.n, "/root", NULL, &c, &err);

	check_command(rc, &c, &err);
	vec_release(&list);
}

static void file(const char *text, size_t len)
{
	struct inject_config c;
	struct err err = ERR_INIT;

	if (inject_config_parse(text, len, "f", "/root", "/mnt", &c, &err)) {
		assert(strncmp(err.msg, "f:", 2) == 0);
		return;
	}
	set_and_ask(c.faults.v, c.faults.n);
	inject_config_release(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	auto_free char *text = xmemdupz(data + 1, size - 1);
	struct inject_command c;
	struct err err = ERR_INIT;

	switch (data[0] % 3) {
	case 0:
		check_command(inject_command_parse_lazyfs(text, "/root", "/mnt", &c, &err), &c,
			      &err);
		break;
	case 1:
		words(text);
		break;
	default:
		file(text, size - 1);
	}
	return 0;
}
