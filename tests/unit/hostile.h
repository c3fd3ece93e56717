/* SPDX-License-Identifier: MIT */
/*
 * hostile.h - names that a tested system may have, and that mean something to whoever shows them: a
 * shell, a browser, a terminal, a program that reads JSON. None is empty, has a slash or is longer
 * than a name may be.
 */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

/* What none of the forms may let become a line, a command or a tag of its own. */
#define HOSTILE_LINE "touch ran"

static const char *const hostile_names[] = {
	"plain",
	"two words",
	"it's",
	"''",
	"\"quoted\"",
	"$HOME",
	"$(" HOSTILE_LINE ")",
	"`" HOSTILE_LINE "`",
	"a;" HOSTILE_LINE ";#",
	"a\n" HOSTILE_LINE "\nb",
	"'\n" HOSTILE_LINE "\n'",
	"END\n" HOSTILE_LINE "\nEND_OF_LISTING\n" HOSTILE_LINE,
	"back\\slash",
	"end\\",
	"\\\n" HOSTILE_LINE,
	"-rf",
	"# hash",
	"~",
	"*",
	"[a-z]?",
	"%s%n",
	"?\?=",
	"tab\there",
	"return\r" HOSTILE_LINE,
	"\001\033[2J\033]0;title\007",
	"del\177",
	"\001"
	"7", /* no octal number of three digits */
	"<script>alert(1)",
	"&lt;",
	"--><b>",
	"]]>",
	"\xff\xfe",
	"\xc3\xa9t\xc3\xa9",
	"cut \xe2\x82",
	"\xed\xa0\x80",
	"{disk} {mnt}",
};

#endif
