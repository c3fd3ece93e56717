/* SPDX-License-Identifier: MIT */
/* Names of a kernel's functions: found by address, and nothing believed of the text. */
#include "tap.h"

#include <errno.h>

#include "stack/kallsyms.h"

static int parse(const char *text, struct kallsyms *k, struct err *err)
{
	err_clear(err);
	kallsyms_release(k);
	return kallsyms_parse(text, strlen(text), k, err);
}

static void says(const struct kallsyms *k, uint64_t addr, const char *want)
{
	const char *name, *module;
	auto_strbuf sb = STRBUF_INIT;
	uint64_t offset;

	if (kallsyms_find(k, addr, &name, &module, &offset))
		strbuf_addf(&sb, *module ? "%s+0x%" PRIx64 " [%s]" : "%s+0x%" PRIx64, name, offset,
			    module);
	else
		strbuf_addf(&sb, "0x%" PRIx64, addr);
	is_s(strbuf_str(&sb), want, "%#" PRIx64 " is %s", addr, want);
}

static const char map[] = "ffffffff81000000 T _text\n"
			  "ffffffff81000000 t startup_64\n"
			  "                 U nothing\n"
			  "0000000000000000 A fixed_percpu_data\n"
			  "ffffffff81002000 T do_fsync\n"
			  "ffffffff81001000 t helper\n"
			  "ffffffff81001800 d not_code\n"
			  "ffffffff81001f00 W weak_one\n"
			  "\n"
			  "ffffffffc0201000 t ext4_sync_file\t[ext4]\n"
			  "ffffffffc0202000 t last\t[ext4]";

static void test_good(struct kallsyms *k)
{
	struct err err = ERR_INIT;

	is_i(parse(map, k, &err), 0, "symbols are read %s", err.msg);
	says(k, 0xffffffff81000000, "_text+0x0");
	says(k, 0xffffffff81000fff, "_text+0xfff");
	says(k, 0xffffffff81001810, "helper+0x810");
	says(k, 0xffffffff81001f01, "weak_one+0x1");
	says(k, 0xffffffff81002010, "do_fsync+0x10");
	says(k, 0xffffffffc0201004, "ext4_sync_file+0x4 [ext4]");
	says(k, 0xffffffffc0202000, "last+0x0 [ext4]");
	says(k, 0xffffffff80ffffff, "0xffffffff80ffffff");
	says(k, 0xffffffffc0202000 + KALLSYMS_REACH, "0xffffffffc0242000");
	says(k, 0xffffffff81002000 + KALLSYMS_REACH, "0xffffffff81042000");
	says(k, 0, "0x0");
	says(k, UINT64_MAX, "0xffffffffffffffff");
}

static void test_bad(struct kallsyms *k)
{
	static const struct {
		const char *text, *says;
		int code;
	} t[] = {
		{ "", "name no function", -ENOENT },
		{ "ffffffff81000000 D data\n", "name no function", -ENOENT },
		{ "0000000000000000 T a\n0000000000000000 t b\n", "as root", -EACCES },
		{ "ffffffff81000000 T ok\nhello world\n", "line 2 .*address", -EINVAL },
		{ "ffffffff8100000000 T x\n", "line 1 .*address", -EINVAL },
		{ "-1 T x\n", "line 1 .*address", -EINVAL },
		{ "ffffffff81000000\n", "kind", -EINVAL },
		{ "ffffffff81000000 TT x\n", "kind", -EINVAL },
		{ "ffffffff81000000 1 x\n", "kind", -EINVAL },
		{ "ffffffff81000000 T\n", "no name", -EINVAL },
		{ "ffffffff81000000 T a\033[2J\n", "no name", -EINVAL },
		{ "ffffffff81000000 T a ext4\n", "no module", -EINVAL },
		{ "ffffffff81000000 T a [ext4\n", "no module", -EINVAL },
		{ "ffffffff81000000 T a []\n", "no module", -EINVAL },
		{ "ffffffff81000000 T a [b] c\n", "no module", -EINVAL },
	};
	struct err err = ERR_INIT;
	char longer[700];

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		const char *word = strrchr(t[i].says, '*');

		is_i(parse(t[i].text, k, &err), t[i].code, "refused: %s", err.msg);
		ok(strstr(err.msg, word ? word + 1 : t[i].says), "and told why");
		ok(!k->text && !k->all.n, "nothing is left");
	}
	snprintf(longer, sizeof(longer), "ffffffff81000000 T %0*d\n", KALLSYMS_NAME_MAX + 1, 0);
	is_i(parse(longer, k, &err), -EINVAL, "a name that is too long: %s", err.msg);
	snprintf(longer, sizeof(longer), "ffffffff81000000 T %0*d\n", KALLSYMS_NAME_MAX, 0);
	is_i(parse(longer, k, &err), 0, "one that is just not");
	err_clear(&err);
	kallsyms_release(k);
	is_i(kallsyms_parse("1 T a\0 b\n", 9, k, &err), -EINVAL, "a byte 0: %s", err.msg);
	err_clear(&err);
	is_i(kallsyms_load("/nothing/here", k, &err), -ENOENT, "no file: %s", err.msg);
}

/* Any bytes, and a good text with bytes changed or cut: an error or symbols, never more. */
static void test_any(struct kallsyms *k)
{
	struct err err = ERR_INIT;
	uint64_t seed = 3;
	unsigned good = 0, bad = 0;
	bool sorted = true;

	for (int i = 0; i < 20000; i++) {
		auto_free char *copy = xmemdupz(map, sizeof(map) - 1);
		size_t len = sizeof(map) - 1;

		for (int j = 0; j < 1 + i % 3; j++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			copy[(seed >> 33) % len] = (char)(seed >> 25);
		}
		err_clear(&err);
		kallsyms_release(k);
		if (kallsyms_parse(copy, i % 5 ? len : (seed >> 40) % len, k, &err))
			bad++;
		else
			good++;
		for (size_t j = 1; j < k->all.n; j++)
			sorted &= k->all.v[j - 1].addr < k->all.v[j].addr;
	}
	ok(good && bad, "changed texts: %u are read, %u refused", good, bad);
	ok(sorted, "what is read is in order");
}

int main(void)
{
	struct kallsyms k = KALLSYMS_INIT;

	test_good(&k);
	test_bad(&k);
	test_any(&k);
	kallsyms_release(&k);
	return done_testing();
}
