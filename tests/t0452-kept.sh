#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0452-kept.sh - what is kept of a run, and what is suppressed.
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/life-lib.sh
. "$root/tests/life-lib.sh"

whole_run

# ---- what is kept ----

most() { cut -f1 "$1"/findings/*/problems >/dev/null && timeout 900 "$OUTAGE" report "$1" --json >out; }
check 'one of each cluster' sick 1 "${bounds[@]}" --keep 1 -o one --json
check 'is kept' json "d['clusters'] == $(kept one) and d['not_kept'] == d['findings'] - d['clusters']"
check 'all are counted' test "$(totals | cut -d, -f5,6)" = "$(echo "$whole" | cut -d, -f5,6)"
check 'the report counts them, too' most one
check 'kept or not' json "sum(c['count'] for c in d['clusters']) == d['totals']['findings'] > d['totals']['kept'] == len(d['findings']) == $(kept one)"
check 'none' sick 1 "${bounds[@]}" --keep none -o none
check 'is kept, and it says so' grep -q 'of them not kept' out
check 'no directory' test "$(kept none)" -eq 0
check 'the report still has the clusters' status 0 report none
check 'with what was wrong' grep -q '^problem .*is missing' out
check 'as a page' status 0 report none --html page.html
check 'which has them as well' grep -q 'no case of it was kept' page.html
check 'a number that is none' sick 2 -b seq-1 --keep few -o no
check 'is told' grep -q 'keep is all, findings, none' err

# ---- suppressions ----

check 'rules for all that was found' status 0 report one --suppressions
cp out rules
check 'name each cluster' test "$(cut -d@ -f1 rules | sort -u | wc -l)" -ge 2
check 'and hide it all' sick 0 "${bounds[@]}" --suppress rules -o hidden --json
check 'which is counted apart' json 'd["findings"] == 0 and d["suppressed"] > 3'
check 'and not kept' test "$(kept hidden)" -eq 0
sed 1d rules >less
check 'without one of the rules' sick 1 "${bounds[@]}" --suppress less -o less.run --json
check 'only that one shows' json 'd["clusters"] == 1 and d["suppressed"] > 0'
check 'which is the one' grep -qF "$(head -n 1 rules | sed 's/ @.*//')" less.run/progress
check 'rules for another target' sick 1 "${bounds[@]}" --suppress <(sed 's/@ fuse/@ ext4/' rules) -o for-ext4 --json
check 'hide nothing' json 'd["suppressed"] == 0'
check 'two files' sick 0 "${bounds[@]}" --suppress less --suppress <(head -n 1 rules) -o two
check 'they hold when the run is resumed' status 0 test --resume hidden --json
check 'as before' json 'd["suppressed"] > 3'
check 'also if they are given once more' status 0 test --resume hidden --suppress rules --json
check 'others are refused' eval 'status 2 test --resume hidden --suppress less && complains "began with another --suppress"'
printf '# fine\nmissing: *\nmising: *\n' >bad
check 'a rule that is wrong' sick 2 -b seq-1 --suppress bad -o no
check 'is named' grep -q "bad:3: 'mising' is no kind" err
known=$root/share/known-btrfs.suppress
printf '%s\n' 'creat foo' 'fsync foo' 'setup mkdir A' 'setup creat A/foo' 'rename A/foo foo' \
	'setup creat A/bar' 'fsync A/bar' >replaced
if status 1 test -t btrfs -j 1 -o btrfs replaced; then
	check 'what is known of btrfs is hidden' status 0 test -t btrfs -j 1 --suppress "$known" -o btrfs2 replaced
	check 'and counted' grep -q '1 findings are suppressed' out
	sed 's/^setup //' replaced >longer
	check 'what is not known is told' status 1 test -t btrfs -j 1 --suppress "$known" -o btrfs3 longer
else
	skip 'this btrfs does not lose a replaced file'
fi
done_testing
