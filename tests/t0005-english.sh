#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Sentences of comments and texts have a subject, and each check of tools/english can fail.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

"$root/tools/english" >out 2>err
check "no room has more sentences without a subject than it may have" test $? -eq 0
check "they were read" grep -Eq '^core +[1-9][0-9]{2}' out
check "there is nothing to complain of" test ! -s err

# try STATUS TEXT [PATTERN]: the file from standard input, in a room of its own, has that status; -l says PATTERN
try() {
	rm -rf tree
	mkdir -p tree/src/low
	cat >tree/src/low/one.c
	"$root/tools/english" -r tree low >out 2>err
	check "$2" test $? -eq "$1"
	[ -z "${3:-}" ] || check "... and says where" grep -qE -e "$3" <("$root/tools/english" -l -r tree low)
}

try 0 "plain sentences pass" <<'END2'
/* SPDX-License-Identifier: MIT */
/*
 * one.c - counts to one.
 *
 * These two lines, and this function, are named by a noun. The call says what it did.
 * Of these, one is enough. That room is nobody_knows().
 *
 * O1: the number is one; whatever it is told.
 *
 *	NAME	the function NAME() performs
 *		it in this room
 */
/* ---- what is counted ---- */
int one(void); /* what for? */
char *text = "it says " "what is there, in two parts"; /* e.g. that of a test */
char quote = '"', word[] = "what";
END2

try 1 "a sentence that begins with What is found" '^start src/low/one.c:1: What it counts' <<'END2'
/* Counts. What it counts is one. */
END2
try 1 "and one with It, behind another" '^start .*:2: It is one\.$' <<'END2'
/*
 * Counts. It
 * is one.
 */
END2
try 1 "and a list's item" '^start .*: O2: whoever counts' <<'END2'
/*
 * O1: one.
 * O2: whoever counts
 */
END2
try 1 "and a pronoun without a noun" '^start .*: Those that are counted' <<'END2'
int n; /* Those that are counted */
END2
try 1 "and one that somebody wrote" '^who .*: The number that somebody wrote\.$' <<'END2'
/* The number that somebody wrote. */
END2
try 1 "and a head that says what" '^head .*: one\.c - what the others count\.$' <<'END2'
/* one.c - what the others count. */
END2
try 1 "and a text" '^text .*:2: nobody counts here$' <<'END2'
char quote = '"';
char *text = "nobody counts here";
END2
try 1 "and a line without a blank" '^line .*:3: ' <<'END2'
/*
 * Counts to one, then
 *ends.
 */
END2
done_testing
