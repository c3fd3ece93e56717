/* SPDX-License-Identifier: MIT */
/* no_shell.c - splits a command into words, if it needs no shell. */
#include "sandbox/no_shell.h"

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_./:@%+,-= ", c));
}

char **no_shell_words(const char *command)
{
	size_t len = strlen(command), n = 0;

	for (size_t i = 0; i < len; i++)
		if (!is_plain(command[i]))
			return NULL;
	command += strspn(command, " ");
	size_t first = strcspn(command, " ");
	/* A first word with "=" sets a variable. */
	if (!memchr(command, '/', first) || memchr(command, '=', first))
		return NULL;
	/* Each word takes at least two bytes; the text follows the pointers. */
	size_t most = len / 2 + 2;
	char **words = xmalloc(most * sizeof(*words) + len + 1);
	char *text = (char *)(words + most);
	memcpy(text, command, strlen(command) + 1);
	for (char *rest = text, *word; (word = strsep(&rest, " "));)
		if (*word)
			words[n++] = word;
	words[n] = NULL;
	return words;
}
