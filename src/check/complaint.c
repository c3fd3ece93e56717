/* SPDX-License-Identifier: MIT */
/* complaint.c - recognises complaints of a kernel. */
#include "check/complaint.h"

#include <ctype.h>
#include <string.h>

const char *const complaint_bugs[] = {
	"BUG:",	  "WARNING:", "Oops:",	      "general protection",    "kernel BUG at",
	"UBSAN:", "KASAN:",   "Kernel panic", "blocked for more than", NULL,
};

const char *const complaint_stalls[] = {
	"BUG: soft lockup",
	"BUG: workqueue lockup",
	"hard LOCKUP",
	NULL,
};

/* These words cannot occur in a hexadecimal id, as "bad" could. */
const char *const complaint_of_device[] = {
	"error",
	"corrupt",
	"critical",
	"failed",
	"shutting down",
	"inconsistent",
	"aborting journal",
	"forced readonly",
	"remounting filesystem read-only",
	NULL,
};

const char *const complaint_asked_for[] = {
	"shut down requested",
	"User initiated shutdown",
	"goingdown",
	"Please unmount the filesystem",
	NULL,
};

static bool has_any(const char *line, const char *const *table)
{
	for (; *table; table++)
		if (strstr(line, *table))
			return true;
	return false;
}

bool complaint_has_word(const char *line, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = line; (p = strstr(p, word)); p += n)
		if ((p == line || !isalnum((unsigned char)p[-1])) && !isalnum((unsigned char)p[n]))
			return true;
	return false;
}

/* True if the line has the word, other than in the name of an option. */
static bool mentions(const char *line, const char *what)
{
	size_t n = strlen(what);

	for (const char *p = line; (p = strcasestr(p, what)); p += n)
		if (strncmp(p + n, "s=", 2) != 0)
			return true;
	return false;
}

/* True for "divide error: 0000 [#1] SMP": the kernel numbers its oopses, whatever their names. */
static bool is_oops(const char *line)
{
	const char *p = strstr(line, " [#");
	size_t digits = p ? strspn(p + 3, "0123456789") : 0;

	return digits && p[3 + digits] == ']';
}

bool complaint_is_bug(const char *line)
{
	return strncmp(line, COMPLAINT_PROGRAM, strlen(COMPLAINT_PROGRAM)) != 0 &&
	       !has_any(line, complaint_stalls) && (has_any(line, complaint_bugs) || is_oops(line));
}

bool complaint_is_of_device(const char *line, const char *device)
{
	if (!device || !complaint_has_word(line, device) || has_any(line, complaint_asked_for))
		return false;
	for (const char *const *word = complaint_of_device; *word; word++)
		if (mentions(line, *word))
			return true;
	return false;
}
