#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0848-pm-pruned.sh - varying only what recovery reads finds what varying everything finds: with each
# bug of pmfs, and on ext4 in a virtual machine, held to more than it promises so that there is
# something to find.
# takes 45 s
# shellcheck disable=SC2016,SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"
pm=$seeded/outage-pmfs

# found RUN PROGRAM: what is wrong after which operation, a line each, whichever crash showed it
found() {
	timeout 900 "$2" report --json "$1" | python3 -c '
import json, sys
for line in sorted({json.dumps([f["workload"], f["operations_done"], f["kind"], sorted(p["words"] for p in f["problems"])])
                    for f in json.load(sys.stdin)["findings"]}):
    print(line)'
}
# value KEY: of the last --json
value() { python3 -c 'import json, sys; print(int(json.load(open("out"))[sys.argv[1]]))' "$1"; }

# both PROGRAM ARGUMENTS: the same run, with everything varied and with what is read; states in $states,
# what is found in found-all and found-read. Neither is cut by a budget.
both() {
	local program=$1 prune want="" got
	shift
	states=
	for prune in none reads; do
		rm -rf "run-$prune"
		timeout 900 "$program" test --prune "$prune" --budget 1000000 --keep all --json -o "run-$prune" "$@" >out 2>err
		got=$?
		[ "${want:-$got}" = "$got" ] || return 1
		want=$got
		[ "$(value errors) $(value left_out)" = '0 0' ] || return 1
		states="$states $(value unique_states)"
		found "run-$prune" "$program" >"found-$prune"
	done
}
same_found() { same found-none found-reads; }

if [ -x "$pm" ]; then
	"$seeded/pmfs-states" --table >table
	all=0 read=0
	while IFS='|' read -r bug workload; do
		printf '%s\n' "$workload" | sed 's/; /\n/g' >workload
		crash=reorder
		case $bug in recovery-*) crash=reorder,recovery ;; esac
		check "pmfs with $bug: both ways" both "$pm" -t "pmfs:$bug" --crash $crash -j 1 workload
		check "find something, and the same" eval '[ -s found-none ] && same_found'
		# shellcheck disable=SC2086 # two numbers
		set -- $states
		all=$((all + ${1:-0})) read=$((read + ${2:-0}))
		[ "$bug" != entry-noflush ] || cp found-none of-entry-noflush
	done < <(sed -n 's/^| `\([a-z-]*\)` | \([^|]*\) |.*/\1|\2/p' table | sed 's/ $//')
	check "with all bugs, $read states of $all are enough" [ "$read" -le "$all" ]
	check 'what is compared can differ: one bug is not another' eval '! cmp -s of-entry-noflush found-none'
	check 'without a bug there is nothing, in either' eval \
		'printf "creat foo\nlink foo bar\n" >workload && both "$pm" -t pmfs -j 1 workload && [ ! -s found-none ] && same_found'
else
	skip 'pmfs is for x86-64'
fi

export OUTAGE_CACHE=$kernels
sample=${OUTAGE_TEST_LONG:+20}
ext4() {
	both "$OUTAGE" -t vm:ext4-dax,commit=600 --bounds seq-1 --sample "${sample:-3}" --seed 3 --guarantee atomic -j 2 &&
		cmp -s found-none found-reads
}
if ! command -v qemu-system-x86_64 >/dev/null; then
	skip 'qemu-system-x86_64 is not there'
# On a slow machine the journal would be committed by the clock, and not in both at the same place. Interrupts
# still come when they come, and each has its own in the two runs: a crash that only one of them has may show
# something else. What pruning misses is missed each time.
elif ext4 || ! grep -qE 'apt-get|apt-cache' err && { ext4 || ext4; }; then
	check 'vm:ext4-dax: both ways find something' test -s found-none
	check 'and the same' same_found
	check "and some states are left out: $(value pruned)" [ "$(value pruned)" -gt 0 ]
elif grep -qE 'apt-get|apt-cache' err; then
	skip 'no kernel can be fetched'
else
	check 'vm:ext4-dax: both ways end, and find the same' eval 'same_found && false'
fi
done_testing
