#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# pmfs, the file system on persistent memory whose bugs are known: by itself, every crash of it in
# one process, and a few of its bugs through outage pm.
# shellcheck disable=SC2016,SC2317 # $1 is for the dump; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_namespaces
pmfs=$seeded/pmfs

requires_built "$pmfs" # for x86-64

# ---- the command ----
script() { printf '%s\n' "$@" >script; }
check 'mkfs' timeout 900 "$pmfs" mkfs pool
check 'of the size that it needs' test "$(stat -c %s pool)" -eq 65536
script 'mkdir A' 'creat A/foo' 'write A/foo 0 700' 'link A/foo bar' 'symlink A/foo sl' \
	'rename A/foo A/b' 'chmod bar 0600' 'creat gone' 'unlink gone' 'mkdir D' 'rmdir D'
check 'a script' timeout 900 "$pmfs" run pool script
timeout 900 "$pmfs" dump --read-only pool >out
check 'leaves what it says' eval \
	'test "$(cut -d" " -f1-5 out | tr "\n" ,)" = "A dir 0755 2 ,A/b file 0600 2 size=700,bar file 0600 2 size=700,sl symlink 0777 1 size=5,"'
check 'both names have the same content' test "$(sed -n 2p out | cut -d' ' -f6)" = \
	"$(sed -n 3p out | cut -d' ' -f6)"
sum=$(cksum <pool)
timeout 900 "$pmfs" dump pool >out2
check 'a dump that may write shows the same' cmp -s out out2
check 'and leaves the files' eval 'timeout 900 "$pmfs" dump --read-only pool | cmp -s out -'
check 'check is content' timeout 900 "$pmfs" check pool
check 'looking changes nothing' test "$(cksum <pool)" = "$sum"
script 'unlink nothing' 'mkdir A' 'rmdir A' 'rename A A/x' 'write A 0 1' 'truncate bar 1000000'
timeout 900 "$pmfs" run pool script >out
check 'operations that cannot be say so' test "$(grep -c ': ' out)" -eq 6
check 'for the right reasons' eval 'sed -n "s/.*: //p" out | tr "\n" , | grep -q \
	"^No such file.*,File exists,Directory not empty,Invalid argument,Is a directory,File too large,$"'
script 'make foo'
timeout 900 "$pmfs" run pool script >out 2>err
check 'what is no operation is refused' test $? -eq 2
for flush in clflush clflushopt clwb; do
	grep -qw "$flush" /proc/cpuinfo || [ $flush = clflush ] || continue
	script 'creat f' 'append f 100' 'unlink f'
	check "with $flush" timeout 900 "$pmfs" run pool script --flush $flush
done
for bad in 'run pool' 'dump' 'dump pool -o bug=nothing' 'check pool --flush pcommit'; do
	# shellcheck disable=SC2086 # words
	timeout 900 "$pmfs" $bad >out 2>err
	check "usage: pmfs $bad" test $? -eq 2
done
truncate -s 64K zeros
timeout 900 "$pmfs" check zeros >out
check 'zeros are no pmfs' eval "test $? -eq 1 && grep -q 'no pmfs' out"
cp pool torn
printf 'x' | dd of=torn bs=1 seek=1540 conv=notrunc 2>/dev/null # the root's inode
check 'a damaged inode is mended' timeout 900 "$pmfs" check torn
printf 'x' | dd of=torn bs=1 seek=3588 conv=notrunc 2>/dev/null # and its replica
timeout 900 "$pmfs" check torn >out
check 'but not both of its copies' eval "test $? -eq 1 && grep -q 'both copies' out"
check 'bugs are listed' test "$(timeout 900 "$pmfs" --list-bugs | wc -l)" -ge 16
rm -f pool
"$pmfs" mkfs pool
script 'creat foo'
check 'a stream of its own' eval 'PMFS_STREAM=stream timeout 900 "$pmfs" run pool script &&
	head -c 7 stream | grep -q OUTPMS1'

# ---- every crash ----
timeout 900 "$seeded/pmfs-states" >states 2>err
check 'every crash of it, with and without bugs' test $? -eq 0
grep '^not ok' -A 5 states | sed 's/^/# /'
grep '^# ' states
for set in pm-seq-1 'pm-seq-2 --sample 500'; do
	# shellcheck disable=SC2086 # words
	timeout 900 "$OUTAGE" gen --bounds $set >workloads
	timeout 600 "$seeded/pmfs-states" --workloads workloads >states 2>err
	check "nothing is found in $set" test $? -eq 0
	grep '^not ok' -A 5 states | head -20 | sed 's/^/# /'
	grep '^# [0-9]* workloads' states
done
timeout 900 "$seeded/pmfs-states" --table >table
# rows FILE: those of the table of bugs
rows() { grep -E '^\| .*\| (prefix|reorder)' "$1"; }
check 'the table in the document is what is found' cmp <(rows "$root/doc/pm-bugs.md") <(rows table)
check 'nothing in it needs more than two' eval '! grep -q "| -1 |" table'

# ---- outage pm ----
if ! command -v qemu-x86_64 >/dev/null; then
	skip 'there is no qemu-x86_64'
	done_testing
fi
# shellcheck source=tests/pm-lib.sh
. "$root/tests/pm-lib.sh"
# crashes STATUS OPTIONS...: of the script
crashes() { pm "$1" --dump "'$pmfs' dump \"\$1\" ${*:2}" -- "$pmfs" run pool script "${@:2}"; }
rm -f pool
"$pmfs" mkfs pool
script 'creat foo' 'write foo 0 700' 'link foo bar' 'rename foo baz' 'truncate bar 100'
check 'outage pm: silent if it is right' crashes 0
check 'of which there were crashes' grep -q 'checked in' out
script 'creat foo' 'write foo 0 700'
check 'outage pm: a tail that is not flushed' crashes 1 -o bug=tail-noflush
check 'is what is missing: a flush' eval 'grep -q "after .operation 1. has returned.*a flush is missing" out'
script 'creat foo' 'link foo bar'
check 'outage pm: a count before its name' crashes 1 -o bug=link-count-first
check 'is what no flush mends' eval 'grep -q "neither the state before.*no flush or fence would help" out'
check 'outage pm: a journal that is valid too early' crashes 1 -o bug=journal-flag-first
check 'cannot be recovered' grep -q 'cannot be recovered.*a fence is missing' out
script 'creat foo' 'write foo 0 11'
check 'outage pm: the end of a copy' crashes 1 -o bug=nt-tail
check 'is not flushed' grep -q 'a flush is missing' out

# Every bug of the table, by its workload; what is only seen by who knows the live state, or crashes
# twice, is not.
sed -n 's/^| `\([a-z-]*\)` | \([^|]*\) |.*/\1|\2/p' table >list
while IFS='|' read -r bug workload; do
	case $bug in
	falloc-replay | recovery-order | recovery-noflush) want=0 ;;
	*) want=1 ;;
	esac
	printf '%s\n' "$workload" | sed 's/; /\n/g' >script
	rm -f pool
	"$pmfs" mkfs pool
	check "outage pm: $bug is $([ $want -eq 1 ] || echo not) found" crashes $want -o bug="$bug"
done <list
done_testing
