#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# No two places of the source share more than 12 lines, and the check that says so can fail.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

"$root/tools/alike" "$root/src" >out 2>err
check "no two places share more than 12 lines" test $? -eq 0

# lines FROM TO: statements, each with its number
lines() { seq "$1" "$2" | sed 's/.*/\tstep(&);/'; }
# file NAME: its text comes from standard input
file() { mkdir -p "src/$(dirname "$1")" && cat >"src/$1"; }
# try STATUS TEXT [PATTERN]: what is in src has that status, and the tool says PATTERN
try() {
	"$root/tools/alike" src >out 2>err
	check "$2" test $? -eq "$1"
	[ -z "${3:-}" ] || check "... and says where" grep -qxF -e "$3" out
	rm -rf src
}

{ echo 'void a(void) {'; lines 1 13; echo '}'; } | file low/a.c
{ echo 'void b(void)'; echo '{'; lines 1 13; echo 'c();'; } | file high/b.c
try 1 "13 lines in two rooms are found" 'src/high/b.c:3-15 src/low/a.c:2-14 share 13 lines'

{ echo 'void a(void) {'; lines 1 12; echo '}'; } | file low/a.c
{ echo 'void b(void)'; echo '{'; lines 1 12; echo 'c();'; } | file high/b.c
try 0 "12 lines may be the same"

lines 1 20 | file low/a.c
lines 1 20 | sed 's/^\t/    /; s/step(/step( /; 5s/$/ \/* five *\//; 8s/^/\/*\n * eight\n *\/\n\n/' | file low/b.c
try 1 "white space, comments and blank lines make no difference" 'src/low/a.c:1-20 src/low/b.c:1-24 share 20 lines'

{ lines 1 15; echo '}'; lines 1 15; } | file low/a.c
try 1 "two places of one file are found" 'src/low/a.c:1-15 src/low/a.c:17-31 share 15 lines'

lines 1 20 | file low/a.c
lines 1 20 | sed '10s/10/ten/' | file low/b.c
try 0 "another line in between makes two that are short"

{ echo 'glob("/*");'; lines 1 6; } | file low/a.c
{ echo 'glob("/*");'; lines 1 6; echo 'glob("*/");'; } | file low/b.c
lines 1 14 | sed 's/^/#include <x>/' | file low/c.c
lines 1 14 | sed 's/^/#include <x>/' | file low/d.c
try 0 "includes are no code"
{ echo 'glob("/*");'; lines 1 14; } | file low/a.c
{ echo 'glob("*");'; lines 1 14; } | file low/b.c
try 1 "what looks like a comment in a string is none" 'src/low/a.c:2-15 src/low/b.c:2-15 share 14 lines'

for f in a b c; do lines 1 13 | file low/$f.c; done
"$root/tools/alike" --most 2 src >out 2>err
check "as many pairs as are allowed pass" test $? -eq 0
"$root/tools/alike" --most 1 src >out 2>err
check "one more does not" test $? -eq 1
done_testing
