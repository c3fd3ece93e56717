/* SPDX-License-Identifier: MIT */
/* finding.c - the names of kinds of findings, and lists of findings. */
#include "check/finding.h"

#include <ctype.h>

#include "base/strbuf.h"

enum { WORDS_LEN = 300 };

static const struct {
	const char *name, *words, *why;
} kinds[] = {
#define FINDING(kind_, ...) { __VA_ARGS__ },
#include "check/finding.def"
#undef FINDING
};

const char *finding_kind_name(enum finding_kind kind)
{
	assert((unsigned)kind < FINDING_KIND_END);
	return kinds[kind].name;
}

const char *finding_kind_words(enum finding_kind kind)
{
	assert((unsigned)kind < FINDING_KIND_END);
	return kinds[kind].words;
}

const char *finding_kind_why(enum finding_kind kind)
{
	assert((unsigned)kind < FINDING_KIND_END);
	return kinds[kind].why;
}

enum finding_kind finding_kind_find(const char *name)
{
	int k = 0;

	while (k < FINDING_KIND_END && !streq(kinds[k].name, name))
		k++;
	return (enum finding_kind)k;
}

bool finding_kind_known(const char *name)
{
	return finding_kind_find(name) != FINDING_KIND_END;
}

/*
 * Makes one line of a text, as output of programs and of the kernel has several. Cuts long text
 * between words. Takes ownership of the text.
 */
static char *one_line(char *text)
{
	struct strbuf out = { 0 };

	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		size_t len = strlen(line);

		while (len && isspace((unsigned char)line[len - 1]))
			len--;
		if (len && out.len)
			strbuf_adds(&out, "; ");
		strbuf_add(&out, line, len);
	}
	free(text);
	if (out.len > WORDS_LEN) {
		size_t cut = WORDS_LEN;

		while (cut > WORDS_LEN / 2 && out.buf[cut] != ' ')
			cut--;
		strbuf_cut(&out, cut);
		strbuf_adds(&out, " ...");
	}
	return out.buf ? strbuf_detach(&out) : xstrdup("");
}

void findings_add(struct findings *list, enum finding_kind kind, char *path, char *words,
		  char *promise)
{
	vec_push(list, (struct finding){
			       .kind = kind,
			       .path = path ? path : xstrdup(""),
			       .words = words ? one_line(words) : xstrdup(finding_kind_words(kind)),
			       .promise = promise ? promise : xstrdup(""),
		       });
}

void findings_clear(struct findings *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->v[i].path);
		free(list->v[i].words);
		free(list->v[i].promise);
	}
	vec_clear(list);
}

void findings_release(struct findings *list)
{
	findings_clear(list);
	vec_release(list);
}
