#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Sentences of comments, texts and documents have a subject, and each check of tools/english can fail.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

"$root/tools/english" >out 2>err
check "no room has more sentences without a subject than it may have" test $? -eq 0
check "they were read" grep -Eq '^core +[1-9][0-9]{2}' out
check "and the documents" grep -Eq '^doc +[1-9][0-9]{3}' out
check "and the manual pages" grep -Eq '^man +[1-9][0-9]{3}' out
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
try 1 "and one that begins with Of" '^start .*: Of a page, the number\.$' <<'END2'
/* Of a page, the number. */
END2
try 1 "and The same without a noun" '^same .*: The same for a page\.$' <<'END2'
/* The same for a page. */
END2
try 1 "and an it that stands for a noun elsewhere" '^same .*: By a link, it would' <<'END2'
/* By a link, it would show one name more. */
END2
try 1 "and a comment that begins with a verb and a pronoun" '^it .*: Removes it\.$' <<'END2'
/* Removes it. The file is closed. */
END2
try 0 "which may stand in a later sentence" <<'END2'
/* Closes the file. Removes it. The same file may be open. */
END2
try 1 "and not even" '^odd .*: Fails if not even' <<'END2'
/* Fails if not even the head is good. */
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
try 1 "nor before what is no letter" '^line .*:4: ' <<'END2'
/*
 *	{ ONE, "one"
 *}, { TWO, "two"
 *(one.h) counts
 */
END2

# try_document STATUS FILE TEXT [PATTERN]: the file from standard input is a document of the tree
try_document() {
	rm -rf tree
	mkdir -p tree/doc tree/man
	cat >"tree/$2"
	"$root/tools/english" -r tree >out 2>err
	check "$3" test $? -eq "$1"
	[ -z "${4:-}" ] || check "... and says where" grep -qE -e "$4" <("$root/tools/english" -l -r tree)
}

try_document 0 doc/one.md "a document's headings, tables and blocks are no sentences" <<'END2'
# What it counts

The program counts. A [page](one.md) of *it* says "what".

    It prints this.

```sh
It runs this.
```
| what | it |
|---|---|
| It is | one. |

- An item goes on,
    It says.
END2
try_document 1 doc/one.md "a sentence of a document that begins with It is found" '^start doc/one.md:3: It counts' <<'END2'
# One

The program counts. **It
counts** to one.
END2
try_document 1 README.md "and one in a list, in the README" '^start README.md:3: - What is counted' <<'END2'
Counts.

- What is counted is one.
    - nobody counts this.
END2
try_document 1 doc/one.md "and one that follows a block" '^who doc/one.md:5: The number that somebody ' <<'END2'
Counts:

    nobody 1

The number that somebody wrote.
END2
try_document 0 man/one.1.scd "the blocks and macros of a manual page are no sentences" <<'END2'
one(1)

# WHAT IT IS

*one* counts _what_ it is told.

```
It prints this.
```
@--it
	Counts, too.
END2
try_document 1 man/one.1.scd "a sentence of a manual page that begins with What is found" '^start man/one.1.scd:4: What is counted' <<'END2'
one(1)

*-n* _N_
	*What* is counted.
END2
done_testing
