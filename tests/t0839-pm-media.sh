#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0839-pm-media.sh - bad lines of persistent memory on top of crashes: only for who asks; a file system
# that does not promise to survive them is found out, and what nobody was promised may be bad.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_qemu

own_machines
mkdir -p "$kernels" cache

printf 'setup creat foo\nsetup sync\nwrite foo 0 4096 dsync\n' >synced
cp synced short
printf 'setup creat foo\nsetup sync\nwrite foo 0 4096\n' >loose
dax=(-t vm:ext4-dax --crash prefix -j 1)

OUTAGE_CACHE=$kernels outage test "${dax[@]}" -o plain synced
plain=$?
requires_kernel $plain
check "with good media nothing is found" [ $plain = 0 ]
export OUTAGE_CACHE=$dir/cache
ln -s "$kernels/kernels" cache/kernels

check "poison in what was synced is found" status 1 test "${dax[@]}" --media poison --media-max 200 --keep all \
	--json -o poison synced
check "in more than one line" json "d['findings'] > 1 and d['errors'] == 0"
grep -lx 'content.*' poison/findings/*/problems >cases
check "in the data, too" test -s cases
case=$(dirname "$(head -1 cases)")
check "the finding says which line" grep -qE '^media poison:[0-9]+$' "$case/case"
check "and that it is the media's fault" grep -qE '^media fault: .* the line at [0-9]+ is poisoned' "$case/diagnosis"
check "so does the report" status 0 report "$case"
check "in words" says 'media fault'
check "it is shown again" status 1 replay "$case"
check "by another run, too" status 1 replay --rerun "$case"
line=$(sed -n 's/^media poison://p' "$case/case")
check "its disk can be had" status 0 export "$case" -o bad
check "with the bad line" [ "$(dd if=bad/crash.img bs=1 skip="$line" count=8 2>/dev/null)" = POISONED ]
check "it is not shrunk" status 2 shrink "$case"
check "which is said" complains 'media fault.*cannot be shrunk'

check "data that goes back to what it was is found" status 1 test "${dax[@]}" --media stale --keep all \
	-o stale synced
check "and said to be" grep -qrE 'holds what it held before' stale/findings --include=diagnosis

# What is not promised may be bad: the blocks of a file that nobody synced are not its own yet.
check "in what nobody synced it is none" status 0 test "${dax[@]}" --media poison,stale --media-max 8 --json -o loose-run loose
check "although lines were tried" json "d['unique_states'] > 4 and d['errors'] == 0"
check "what was not tried is counted" json "d['budget_hit'] and d['left_out'] > 0"

wrong "media is a list of poison or stale, not 'dust'" -t vm:ext4-dax --media dust
wrong 'media is for persistent memory; vm:ext4 has a disk' -t vm:ext4 --media poison
check "no process is left at the end" wait_for_none
done_testing
