#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0836-pm-dax.sh - ext4 on persistent memory, of an unmodified kernel, through outage test: healthy
# it is silent under its own guarantee, is found not to be synchronous, and a flush of its journal
# that is left out is missed; findings are replayed and shrunk.
# takes 70 s
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_qemu
mkdir -p "$kernels"
export OUTAGE_CACHE=$kernels

trial=("$OUTAGE" test -t vm:ext4-dax -j 2)

printf '%s\n' 'creat foo' 'write foo 0 5000' 'fsync foo' >three
timeout 900 "$OUTAGE" test -t vm:ext4-dax -j 1 -o first three >out 2>err
requires_kernel $?
check 'a file that is written and synced' grep -q 'nothing found' out
check 'in several states' eval "[ \"\$(sed -n 's/.*workload, \([0-9]*\) different.*/\1/p' out)\" -ge 5 ]"

check 'generated workloads: nothing is found' tries 0 --bounds pm-seq-1 --sample 6
check 'nor where something is synced' tries 0 --bounds seq-1 --sample 6
check 'nor with persistent caches' tries 0 --eadr three
check 'only what is read is varied, if asked for' tries 0 --prune reads three

check 'it is not synchronous' tries 1 --guarantee sync three
check 'as what was made is missing' grep -q 'foo: is missing' out
check 'and no flush would help' grep -q '^logic: ' kept/findings/0-0/diagnosis

# The superblock of the journal has one checksum, and is 1024 bytes: without a BTT nothing makes that
# one write. doc/pm.md tells more.
printf '%s\n' 'creat foo' 'fsync foo' >two
check 'its journal is not made for torn sectors' tries 1 --torn two
check 'it cannot be mounted' grep -q '^found  unmountable' out
check 'only because of them' grep -q '^tearing: ' kept/findings/0-0/diagnosis

# The journal is committed before fsync returns: a fence comes after the journal's blocks, and the last
# one after the block that commits them. Which they are is told by what got lost without them. On a slow
# machine the journal would be committed before, by the clock. One store that is lost is enough to miss it.
trial=("$OUTAGE" test -t "vm:ext4-dax,commit=600" -j 2)
lost_by() { grep -A 1 '^lost event' kept/findings/0-0/diagnosis | grep -q "$1"; } # FUNCTION
last=
for i in 5 4 6 7 3 8; do
	if tries 1 --deterministic --lose-flush $i --max-subset 1 three && lost_by journal_submit_commit_record; then
		last=$i
		break
	fi
done
check "without the last fence, the block that commits is missed (${last:-none})" test -n "$last"
check 'what was synced is gone' grep -q 'although fsync foo\|fsync foo (operation 2) had returned' kept/findings/0-0/problems
check 'a flush or fence is missing' grep -q '^ordering: .*; a flush or fence is missing' kept/findings/0-0/diagnosis
check 'of what is said where it was made' grep -Eq '^lost event [0-9]+: .* at 0x[0-9a-f]+, made at 0xffffffff[0-9a-f]{8}' \
	kept/findings/0-0/diagnosis
timeout 900 "$OUTAGE" replay kept/findings/0-0 >out 2>err
check 'it is replayed' eval "[ $? -eq 1 ] && grep -q 'shows again' out"
timeout 900 "$OUTAGE" shrink kept/findings/0-0 >out 2>err
check 'and shrunk' eval "[ $? -eq 0 ] && grep -q '2 of 3 operations' out"
if [ "$(id -u)" = 0 ]; then
	check 'it is exported' timeout 900 "$OUTAGE" export kept/findings/0-0 -o script
	timeout 900 sh script/reproduce.sh >out 2>err
	check 'and shown on a disk, without this program' test $? -eq 1
else
	skip 'what is exported is mounted by root'
fi

# Each block is a copy of its own: the one that commits can be there without one of those before it. Their
# checksums tell, and then it is not mounted; without checksums it is, and is wrong.
before=$((${last:-5} - 1))
check 'without the fence before it, a block of the journal is missed' tries 1 --deterministic --lose-flush $before \
	--max-subset 1 three
check 'which is lost alone' eval "grep -q '^lost event .* copy of 4096 bytes' kept/findings/0-0/diagnosis &&
	lost_by 'jbd2_journal_commit_transaction' && ! lost_by journal_submit_commit_record"
plain() { # STATUS OPTIONS...
	local want=$1
	shift
	keeps "$want" "$OUTAGE" test --fstype ext4 --mkfs 'mke2fs -q -F -t ext4 -O ^metadata_csum -b 4096 {disk}' \
		--mount-options dax=always,commit=600 --guarantee linux -j 2 "$@"
}
check 'without checksums, nothing is found' plain 0 three
# Here by the clock, so that an interrupt may have added one.
missed() { plain 1 --lose-flush "$before" three || plain 1 --lose-flush $((before + 1)) three; }
check 'unless that fence is left out' missed
check 'a fence is missing there' grep -q '^ordering: ' kept/findings/0-0/diagnosis

done_testing
