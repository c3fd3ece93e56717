#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0842-pm-read-only.sh - a crash state of persistent memory is mounted read-only, walked and dumped, and
# only then made writable, checked and used; one that cannot be made writable is found, and told as that;
# a file system whose new ones cannot do it is tested as ever, and not blamed.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_qemu
requires_tools busybox:busybox-static
mkdir -p "$kernels"
export OUTAGE_CACHE=$kernels

trial=("$OUTAGE" -v test -j 1)
how='grep " /mnt " /proc/mounts'
at_once='crash states are mounted writable at once'
untold() { ! complains "$at_once"; }
only_unmountable() { [ "$(cut -f 1 kept/findings/*/problems | sort -u)" = unmountable ]; }
said_once() { [ "$(grep -c "$at_once: .*remount: Invalid argument; .*Cannot specify journal" err)" = 1 ]; }

printf '%s\n' 'creat foo' 'write foo 0 5000' 'fsync foo' >three
printf '%s\n' 'creat foo' >unsynced
tries 0 -t vm:ext4-dax --dump "$how | grep -q ' ro,' && ! touch new 2>/dev/null && ls" \
	--check "$how | grep -q ' rw,' && touch new && rm new && rm -f foo" three
rc=$?
requires_kernel $rc
check 'ext4 is dumped read-only, then checked, and it can be written' test $rc -eq 0
check 'in several states' grep -Eq 'workload, ([5-9]|[1-9][0-9]+) different' out
check 'which nobody need be told' untold
check 'a dump cannot write' tries 1 -t vm:ext4-dax --dump 'touch new' three
check 'which it says' problem dump-failed 'new: Read-only file system'
check 'and the case, for who shows it again' grep -qx 'mounted read-only' kept/findings/0-0/case
check 'a check may write: it is judged by what was there before, and used as it is then' tries 0 -t vm:ext4-dax \
	--check 'rm -f foo; mkdir d && touch d/new' three
check 'a second crash may be while it is made writable' tries 0 -t vm:ext4-dax --crash prefix,recovery --budget 30 three
check 'but what a check writes is no part of recovery' tries 0 -t vm:ext4-dax --crash last,recovery --budget 80 \
	--check 'rm -f foo; sync; true' three
check 'a kernel that a check kills is told' tries 1 -t vm:ext4-dax,commit=600 --guarantee sync --crash persist \
	--check 'echo c >/proc/sysrq-trigger; sleep 60' unsynced
check 'as are promises that were broken before' problem missing 'foo'
if [ -x "$(command -v mkfs.xfs)" ]; then
	check 'xfs, too' tries 0 -t vm:xfs-dax --dump "$how | grep -q ' ro,' && ls" --check 'touch new' three
	check 'in the same way' untold
else
	skip 'mkfs.xfs is not there'
fi

# A file that was removed while it was open is on a list, and taken off it by recovery: also if that is
# read-only, or ext4 would refuse to be made writable.
printf '%s\n' 'shell "exec 3> foo; head -c 9000 /dev/zero >&3; sync; rm foo; sync"' >orphan
check 'with files to be removed, ext4 is made writable' tries 0 -t vm:ext4-dax,commit=600 --crash prefix orphan
check 'and there are such files' tries 1 -t vm:ext4-dax,commit=600 --crash prefix --check '! dmesg | grep orphan' orphan
check 'which are removed in the read-only mount' problem check-failed 'orphan cleanup on readonly fs'

# A feature that no kernel knows, of those that forbid to write: all can be read, and nothing be written.
cat >feature <<'END'
creat foo
shell "printf '\\200' | dd of=/dev/disk bs=1 seek=1127 conv=notrunc; sync"
END
make='mke2fs -q -F -t ext4 -O ^metadata_csum -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 {disk}'
check 'what cannot be made writable is found' tries 1 --fstype ext4 --mkfs "$make" --guarantee linux \
	--mount-options dax=always,commit=600 feature
check 'as that' problem unmountable \
	'it can be mounted read-only, and not be made writable: remount: Read-only file system'
check 'and nothing else is wrong' only_unmountable
check 'what could be read is kept' test -s kept/findings/0-0/seen
f=kept/findings/0-0
timeout 900 "$OUTAGE" replay $f >out 2>err
check 'it is shown again' eval "[ $? -eq 1 ] && grep -q 'not be made writable' out"
timeout 900 "$OUTAGE" export $f -o script >out 2>err
check 'it is exported' test $? -eq 0
if [ "$(id -u)" = 0 ] && timeout 900 "$OUTAGE" doctor >out 2>err; then
	timeout 900 sh script/reproduce.sh >out 2>err
	check 'and shown without this program' eval "[ $? -eq 1 ] && grep -q 'It cannot be made writable' out"
	printf '\000' | dd of=script/crash.img bs=1 seek=1127 conv=notrunc 2>/dev/null
	timeout 900 sh script/reproduce.sh >out 2>err
	check 'but not where it was mended' eval "[ $? -eq 0 ] && grep -q 'it could not be made writable' out"
	cp -r $f kept/findings/0-9
	printf 'missing\tbar\tbar: is missing\t\n' >>kept/findings/0-9/problems
	check 'with something else that is wrong, too' timeout 900 "$OUTAGE" export kept/findings/0-9 -o both
	timeout 900 sh both/reproduce.sh >out 2>err
	check 'that is shown first' eval "[ $? -eq 1 ] && sed -n '/^It cannot be made writable/q;p' out |
		grep -q '^shows: *bar: is missing'"
	printf '\000' | dd of=both/crash.img bs=1 seek=1127 conv=notrunc 2>/dev/null
	timeout 900 sh both/reproduce.sh >out 2>err
	check 'and remains where the first was mended' eval "[ $? -eq 1 ] && grep -q 'it could not be made writable' out"
else
	skip 'what is exported is mounted by root'
fi

# The name of a journal that is not there is taken by a mount, and refused by each remount.
printf '%s\n' 'creat foo' 'write foo 0 5000' 'sync' >synced
make='mke2fs -q -F -t ext4 -O ^has_journal -b 4096 -E lazy_itable_init=0 {disk}'
plain() { # STATUS OPTIONS OUTAGE-OPTIONS...: nothing is promised, but that it can be mounted and used
	local want=$1 options=$2
	shift 2
	keeps "$want" "$OUTAGE" "$@" test --fstype ext4 --mkfs "$make" --mount-options "$options" -j 2 \
		--guarantee unmount --crash persist synced
}
check 'who refuses each remount is tested all the same' plain 0 dax=always,journal_dev=1 -v
check 'and not blamed' says 'nothing found'
check 'it is said once, with what the kernel says' said_once
check 'if somebody asks' plain 0 dax=always,journal_dev=1
check 'and else not' untold
check 'without that name it is not refused' plain 0 dax=always -v
check 'and so not said' untold

done_testing
