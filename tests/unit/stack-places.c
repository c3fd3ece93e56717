/* SPDX-License-Identifier: MIT */
/* Addresses of code get names by what was mapped; what makes no sense is passed over. */
#include "tap.h"

#include <inttypes.h>
#include <stdio.h>

#include "stack/places.h"

static __attribute__((noinline)) int a_function_of_ours(int x)
{
	return x * 3 + 1;
}

static void own_maps(struct strbuf *out)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096];

	while (f && fgets(line, sizeof(line), f)) {
		uint64_t start, end, offset;
		const char *path = strchr(line, '/');

		if (path && sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end,
				   &offset) == 3)
			strbuf_addf(out, "%" PRIx64 "-%" PRIx64 " %" PRIx64 " %s", start, end,
				    offset, path);
	}
	if (f)
		fclose(f);
}

static void test_own(void)
{
	uint64_t at = (uint64_t)(uintptr_t)a_function_of_ours;
	auto_strbuf maps = STRBUF_INIT, words = STRBUF_INIT;

	own_maps(&maps);
	struct code_places *p = code_places_new(strbuf_str(&maps));
	ok(code_places_words(p, at, &words), "a function of ours is in a file");
	ok(strstr(strbuf_str(&words), "a_function_of_ours"), "and has its name");
	ok(strstr(strbuf_str(&words), "stack-places.c:"), "and its line");
	strbuf_clear(&words);
	ok(!code_places_words(p, 16, &words) && !words.len,
	   "an address that nothing is at has none");
	code_places_free(p);
}

static void test_hostile(void)
{
	static const char *const maps[] = {
		"",
		"\n\n\n",
		"1-2",
		"1-2 3",
		"1-2 3 relative",
		"2-1 0 /bin/sh",
		"zz-yy 0 /bin/sh",
		"0-ffffffffffffffff ffffffffffffffff /bin/sh",
		"0-ffffffffffffffff 0 /dev/null",
		"0-ffffffffffffffff 0 /proc/self/mem",
		"0-ffffffffffffffff 0 /nowhere/at/all",
		"0-ffffffffffffffff 0 /etc/passwd\n0-10 0 /etc",
	};

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		auto_strbuf words = STRBUF_INIT;
		struct code_places *p = code_places_new(maps[i]);

		(void)code_places_words(p, 0, &words);
		(void)code_places_words(p, UINT64_MAX, &words);
		(void)code_places_words(p, 0x1234, &words);
		ok(true, "map %zu does no harm", i);
		code_places_free(p);
	}
}

int main(void)
{
	ok(a_function_of_ours(1) == 4, "it is called");
	test_own();
	test_hostile();
	return done_testing();
}
