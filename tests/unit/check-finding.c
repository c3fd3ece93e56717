/* SPDX-License-Identifier: MIT */
/* The words of a finding: one line, trimmed, cut between words. */
#include "check/finding.h"
#include "tap.h"

static const char *words_of(struct findings *list, const char *words)
{
	findings_add(list, FINDING_KERNEL_LOG, NULL, xstrdup(words), NULL);
	return vec_last(list).words;
}

int main(void)
{
	auto_findings list = { 0 };
	char longer[1001];

	is_s(words_of(&list, "mount: Bad message\n"), "mount: Bad message", "a line end goes");
	is_s(words_of(&list, "one\ntwo \n\nthree\n"), "one; two; three", "lines are joined");
	is_s(words_of(&list, "foo: is missing"), "foo: is missing", "one line stays");
	is_s(words_of(&list, ""), "", "nothing stays nothing");
	for (size_t i = 0; i < 1000; i++)
		longer[i] = i % 7 == 6 ? ' ' : 'x';
	longer[1000] = '\0';
	const char *cut = words_of(&list, longer);
	ok(strlen(cut) <= 304 && strlen(cut) > 250, "what is too long is cut");
	is_u((strlen(cut) - 4) % 7, 6, "between words");
	findings_add(&list, FINDING_SIZE, NULL, NULL, NULL);
	is_s(vec_last(&list).words, finding_kind_words(FINDING_SIZE), "without words: the kind's");
	ok(*finding_kind_why(FINDING_SIZE), "a size that nobody gave has a reason");
	ok(!*finding_kind_why(FINDING_UNMOUNTABLE), "what speaks for itself has none");
	return done_testing();
}
