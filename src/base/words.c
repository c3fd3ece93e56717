/* SPDX-License-Identifier: MIT */
/*
 * words.c - splits a line into words as a shell would, and quotes a word so that words_split()
 * gives it back.
 */
#include "base/words.h"

#include <errno.h>

void words_release(struct words *w)
{
	vec_release_each(p, w, free(*p));
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/*
 * The meaning of a backslash and `c`. In double quotes, \n is a line end, so that every word fits
 * on one line.
 */
static char escaped(char c, char quote)
{
	return quote == '"' && c == 'n' ? '\n' : c;
}

/* Reads one word from `*at` on. */
static int read_word(const char *line, size_t len, size_t *at, struct strbuf *word, struct err *err)
{
	char quote = '\0';

	for (; *at < len; (*at)++) {
		char c = line[*at];

		if (!quote && is_blank(c))
			return 0;
		if (c == '\\' && quote != '\'') {
			if (++*at == len)
				return err_set(err, -EINVAL,
					       "nothing follows the backslash at the end");
			strbuf_addch(word, escaped(line[*at], quote));
		} else if (quote ? c == quote : c == '"' || c == '\'') {
			quote = quote ? '\0' : c;
		} else {
			strbuf_addch(word, c);
		}
	}
	return quote ? err_set(err, -EINVAL, "the quote %c is not closed", quote) : 0;
}

int words_split(const char *line, size_t len, struct words *out, struct err *err)
{
	if (memchr(line, '\0', len))
		return err_set(err, -EINVAL, "there is a NUL byte in it");
	for (size_t at = 0; at < len; at++) {
		auto_strbuf word = STRBUF_INIT;

		if (is_blank(line[at]))
			continue;
		int rc = read_word(line, len, &at, &word, err);
		if (rc)
			return rc;
		vec_push(out, xstrdup(strbuf_str(&word)));
	}
	return 0;
}

void words_quote(const char *word, struct strbuf *out)
{
	strbuf_addch(out, '"');
	for (; *word; word++) {
		if (*word == '\n') {
			strbuf_adds(out, "\\n");
			continue;
		}
		if (*word == '"' || *word == '\\')
			strbuf_addch(out, '\\');
		strbuf_addch(out, *word);
	}
	strbuf_addch(out, '"');
}
