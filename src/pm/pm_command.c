/* SPDX-License-Identifier: MIT */
/* pm_command.c - decides whether a command needs a shell, and makes the words to run it. */
#include "pm/pm_command.h"

#include <errno.h>

static int not_plain(const char *command, struct err *err)
{
	return err_set(err, -EINVAL,
		       "'%.100s' cannot be traced in an emulator, which follows one program and no "
		       "shell: give a program with its arguments, where \"$1\" is the file, or use "
		       "--tracer preload",
		       command);
}

/* True if a shell would do more with the command than split it into words. */
static bool wants_shell(const char *command)
{
	char quote = 0;

	for (const char *s = command; *s; s++) {
		if (quote) {
			quote = *s == quote ? 0 : quote;
			if (quote != '\'' && *s == '`')
				return true;
		} else if (*s == '\'' || *s == '"') {
			quote = *s;
		} else if (*s == '\\' && s[1]) {
			s++;
		} else if (strchr("|&;<>()`*?[]{}~#\n", *s)) {
			return true;
		}
	}
	return false;
}

int pm_command_plain(const char *command, const char *file, struct words *out, struct err *err)
{
	struct err why = ERR_INIT;
	auto_words w = { 0 };

	if (wants_shell(command) || words_split(command, strlen(command), &w, &why) || !w.n ||
	    strchr(w.v[0], '='))
		return not_plain(command, err);
	for (size_t i = 0; i < w.n; i++) {
		if (streq(w.v[i], "$1") || streq(w.v[i], "$OUTAGE_FILE")) {
			free(w.v[i]);
			w.v[i] = xstrdup(file);
		} else if (strchr(w.v[i], '$')) {
			return not_plain(command, err);
		}
	}
	*out = w;
	w = (struct words){ 0 };
	return 0;
}

int pm_command_traced(const struct tracer *t, const char *command, const char *file,
		      struct words *out, struct err *err)
{
	const char *const shell[] = { "/bin/sh", "-c", command, "sh", file };
	int rc = t->preload ? 0 : pm_command_plain(command, file, out, err);

	for (size_t i = 0; t->preload && i < ARRAY_SIZE(shell); i++)
		vec_push(out, xstrdup(shell[i]));
	if (!rc)
		vec_push(out, NULL);
	return rc;
}
