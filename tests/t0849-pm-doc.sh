#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0849-pm-doc.sh - the program of doc/pm.md, as it stands there: its commands say what is told.
# shellcheck disable=SC2016,SC2317 # $1 is for the check; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_namespaces
requires_tools qemu-x86_64:qemu-user cc

# shown FILE: what `cat FILE` prints there
shown() { awk -v f="    \$ cat $1" '$0 == f { on = 1; next } /^    \$/ { on = 0 } on { sub(/^    /, ""); print }' "$root/doc/pm.md"; }
# told PATTERN: the line is in the document as well as in what was printed
told() { grep -q -e "^    $1" "$root/doc/pm.md" && grep -q -e "^$1" out; }
# as_told STATUS NAME ARGUMENTS: the command of the document
as_told() {
	grep -qF "    \$ outage pm --file pool --size 4K --check 'sh ./check.sh \"\$1\"' -o $2 -- ./put ${*:3}" \
		"$root/doc/pm.md" || return 1
	status "$1" pm --file pool --size 4K --check 'sh ./check.sh "$1"' -o "$2" -- ./put "${@:3}"
}

# shellcheck disable=SC2094 # the names are of files in the document
shown put.c >put.c
# shellcheck disable=SC2094 # the same
shown check.sh >check.sh
check 'the program builds' cc -g -o put put.c
check 'the wrong one is found' as_told 1 wrong pool
check 'as it is told' told 'found  fails if 1 store is lost'
check 'with the line' grep -q 'store of 2 bytes at 0x8, made at 0x.*(put.c:16 in main)' out
check 'and the number of states' told '3 stores, 1 flush, 1 fence; 6 different crash states of 8 tried; 6 checked'
timeout 900 "$OUTAGE" report wrong >out
check 'and why' grep -q 'its line is never flushed afterwards' out
check 'a page' timeout 900 "$OUTAGE" report wrong --html page.html
check 'shrink' timeout 900 "$OUTAGE" shrink wrong/findings/0
check 'export' timeout 900 "$OUTAGE" export wrong/findings/0 -o script
sh script/reproduce.sh crashed check >out 2>err
check 'which shows it' eval "test $? -eq 1 && grep -q '^it shows' out"
check 'the right one is right' as_told 0 right pool flush
check 'in as many states as told' told '3 stores, 2 flushes, 2 fences; 4 different crash states of 6 tried; 4 checked'
check 'and nothing is found' told 'nothing found'
done_testing
