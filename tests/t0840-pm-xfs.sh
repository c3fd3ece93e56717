#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0840-pm-xfs.sh - xfs on persistent memory, of an unmodified kernel: healthy it is silent under its
# own guarantee, is found not to be synchronous, and the fence behind its log is missed if left out.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_qemu
requires_tools mkfs.xfs:xfsprogs
mkdir -p "$kernels"
export OUTAGE_CACHE=$kernels

trial=("$OUTAGE" test -t vm:xfs-dax -j 2)

printf '%s\n' 'creat foo' 'write foo 0 5000' 'fsync foo' >three
timeout 900 "$OUTAGE" test -t vm:xfs-dax -j 1 -o first three >out 2>err
requires_kernel $?
check 'a file that is written and synced' grep -q 'nothing found' out
check 'in several states' eval "[ \"\$(sed -n 's/.*workload, \([0-9]*\) different.*/\1/p' out)\" -ge 5 ]"

check 'it is not synchronous' tries 1 --guarantee sync three
check 'as what was made is missing' grep -q 'foo: is missing' out
check 'and no flush would help' grep -q '^logic: ' kept/findings/0-0/diagnosis

# fsync forces the log: what it wrote must be durable when it returns.
lost=
for i in 3 2 4 1 5 6; do
	if tries 1 --deterministic --lose-flush $i three; then
		lost=$i
		break
	fi
done
check "a fence behind the log that is left out is missed (${lost:-none})" test -n "$lost"
check 'what was synced is gone' grep -q 'although fsync foo\|fsync foo (operation 2) had returned' kept/findings/0-0/problems
check 'a fence is missing' grep -q '^ordering: .*; a flush or fence is missing' kept/findings/0-0/diagnosis
check 'of what the log wrote' eval "grep -A 1 '^lost event' kept/findings/0-0/diagnosis | grep -q 'xlog_\|xfs_log'"
timeout 900 "$OUTAGE" replay kept/findings/0-0 >out 2>err
check 'it is replayed' eval "[ $? -eq 1 ] && grep -q 'shows again' out"

done_testing
