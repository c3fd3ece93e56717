/* SPDX-License-Identifier: MIT */
/* would.c - says in words what a stranger's run or finding would do. */
#include <errno.h>
#include <stdarg.h>

#include "trust/trust.h"

enum { VALUE_SHOWN = 120, WOULD_SHOWN = 220 }; /* struct err has room for all of it */

/* The value may be a stranger's, and goes to a terminal: only one line of printable characters. */
static void add_shown(struct strbuf *out, const char *value)
{
	for (size_t i = 0; i < VALUE_SHOWN && value[i]; i++)
		strbuf_addch(out,
			     (unsigned char)value[i] < 0x20 || value[i] == 0x7f ? ' ' : value[i]);
	if (strlen(value) > VALUE_SHOWN)
		strbuf_adds(out, "...");
}

static void separate(struct strbuf *would)
{
	if (would->len)
		strbuf_adds(would, ", ");
}

void trust_would(struct trust_key key, const char *value, struct strbuf *would)
{
	static const char *const verbs[] = {
		[TRUST_UNKNOWN] = "use",
		[TRUST_COMMAND] = "run",
		[TRUST_CODE] = "load code of",
		[TRUST_FILE] = "use the path",
	};

	assert(key.leads != TRUST_TARGET && key.leads != TRUST_IMAGE);
	if (key.leads == TRUST_HARMLESS)
		return;
	separate(would);
	strbuf_addf(would, "%s '", verbs[key.leads]);
	add_shown(would, value);
	strbuf_addf(would, "' (%s)", key.name);
}

void trust_would_also(struct strbuf *would, const char *fmt, ...)
{
	char words[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	separate(would);
	for (char *c = words; *c; c++)
		strbuf_addch(would, (unsigned char)*c < 0x20 || *c == 0x7f ? ' ' : *c);
}

int trust_refuse(const char *dir, const char *file, const struct err *why,
		 const struct strbuf *would, const char *or_else, struct err *err)
{
	return err_set(err, -EPERM,
		       "%.160s %.160s, and would %.*s%s; look at it with 'outage report', and at "
		       "its file %s, then give --trust%.100s",
		       dir, why->msg, WOULD_SHOWN, strbuf_str(would),
		       would->len > WOULD_SHOWN ? "... and more" : "", file, or_else);
}
