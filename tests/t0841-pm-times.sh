#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0841-pm-times.sh - where the guest's clock is set (--deterministic), times of files are part of a
# state: healthy ext4 on persistent memory keeps them, one that was synced and is lost is found, also
# when it is replayed; and where the clock just runs, they make no difference.
# takes 30 s
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_qemu
mkdir -p "$kernels"
export OUTAGE_CACHE=$kernels
trial=("$OUTAGE" test -t "vm:ext4-dax,commit=600" -j 1)

printf '%s\n' 'creat foo' 'fsync foo' 'utimens foo 1000000000 1100000000' 'fsync foo' >stamp
tries 0 --deterministic stamp
rc=$?
requires_kernel $rc
check 'ext4 keeps the times that were synced' test $rc -eq 0
check 'in several states' grep -Eq 'workload, ([6-9]|[1-9][0-9]+) different' out

# A flush of the second fsync is what commits it. To miss it, one store that is lost is enough.
lost=
for i in 5 6 4 7 8 9 10; do
	if tries 1 --deterministic --lose-flush $i --max-subset 1 stamp >/dev/null &&
		grep -q '^time	' kept/findings/*/problems; then
		lost=$i
		break
	fi
done
check "a time that was synced and is lost (by flush ${lost:-none}) is found" \
	grep -q '^time	foo	foo: mtime is .*, was 1100000000.000000000	fsync foo (operation 3) had returned' kept/findings/0-0/problems
check 'and so is that of the change' grep -q '^time	foo	foo: ctime is ' kept/findings/0-0/problems
check 'as a flush that is missing' grep -q '^ordering: ' kept/findings/0-0/diagnosis
"$OUTAGE" trace show kept/findings/0-0/trace >out 2>err
check 'the trace has what the times were' grep -q 'times\..* 1100000000 0 ' out
timeout 900 "$OUTAGE" replay kept/findings/0-0 >out 2>err
check 'it is shown again' eval "[ $? -eq 1 ] && grep -q 'mtime is' out"
if [ "$(id -u)" = 0 ] && timeout 900 "$OUTAGE" doctor >out 2>err; then
	check 'it is exported' timeout 900 "$OUTAGE" export kept/findings/0-0 -o script
	timeout 900 sh script/reproduce.sh >out 2>err
	check 'and shown without this program' eval "[ $? -eq 1 ] && says '^shows: +foo: mtime is .*, was 1100000000.000000000'"
	check 'each time by itself' says '^shows: +foo: ctime is '
	# The same disk with other times: those that it had, and one that nobody knows.
	retime() { # MTIME: makes the disk in place of the one that was found
		mkdir -p mnt
		mount -o loop script/crash.img mnt && touch -m -d "@$1" mnt/foo && sync -f mnt && umount mnt
	}
	sed -i 's/^.*time_is ctime .*$/true/; s/^.*judge .*ctime is .*$/true/' script/reproduce.sh
	check 'with the time that it had' retime 1100000000
	timeout 900 sh script/reproduce.sh >out 2>err
	check 'it does not show' eval "[ $? -eq 0 ] && says '^does not show: +foo: mtime is '"
	check 'with another time' retime 1234567890
	timeout 900 sh script/reproduce.sh >out 2>err
	check 'it cannot be told' eval "[ $? -eq 2 ] && says '^cannot be told: +foo: mtime is '"
	check 'and is said where to look' says 'look at the mtime of foo \(stat\): it is 1234567890.000000000, .* had been 1100000000'
else
	skip 'nothing can be mounted here'
fi
# Interrupts have fences, too, so that by the clock it may be another one that is lost.
untimed() { tries 0 --lose-flush "${lost:-3}" stamp || ! grep -q '^time	' kept/findings/*/problems; }
check 'without a clock that is set, times are no part of a state' untimed

# More that sets times, of directories too.
printf '%s\n' 'mkdir A' 'creat A/foo' 'sync' 'write A/foo 0 5000' 'rename A/foo A/bar' 'fsync A' 'truncate A/bar 100' \
	'unlink A/bar' 'sync' >many
check 'nor are they found to be wrong after a rename, a truncate and a removal' tries 0 --deterministic --budget 24 many

done_testing
