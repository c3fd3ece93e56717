#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0510-explore.sh - outage explore: every mutant of the reference file system is found and shrunk to
# what is known to be the least, the healthy one is not accused, and bad input is refused.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

trial=("$mutant" explore)

# least N: the finding has N operations
least() {
	[ "$(grep -vc '^#' kept/findings/1-0/script)" -eq "$1" ]
}

# ---- ground truth ----

while read -r bug ops order; do
	check "$bug is found" tries 1 -t "mutant:$bug" --order "$order" --time 800s --findings 1
	check "$bug is shrunk to $ops operations" least "$ops"
done <<'TABLE'
truncate-stale 3 walk
rename-nlink 4 walk
errno 2 walk
hole-stale 2 walk
xattr-limit 2 walk
dir-nlink 2 walk
rename-child 2 walk
unlink-open 3 walk
enospc-half 3 walk
sticky 3 walk
copy-overlap 2 walk
remount-xattr 3 walk
noreplace 2 walk
truncate-round 2 walk
kernel-log 1 walk
room 2 walk
room 2 depth
room 2 breadth
cache-restore 2 depth
TABLE
check 'a cache that survives being put back needs just that' \
	grep -q '^#@ restore' kept/findings/1-0/script
check 'what was found can be done again' sh -c "
	timeout 900 '$mutant' explore --replay kept/findings/1-0 >out 2>err; [ \$? = 1 ]"
check 'and again shows every time' grep -q '^shown 3 of 3 times' out

check 'room that does not come back, without a limit of walks' \
	tries 1 -t mutant:room --order walk --time 800s --findings 1
check 'is shown each time' grep -q '^shown 3 of 3' kept/findings/1-0/case
check 'with what was there, not what was left' grep -q '^file' kept/findings/1-0/seen
check 'and can be done again' sh -c "
	timeout 900 '$mutant' explore --replay kept/findings/1-0 >out 2>err; [ \$? = 1 ]"
check 'with the same words' grep -q 'bytes of room did not come back' out
check 'all three times' grep -q '^shown 3 of 3 times' out
printf 'only creat link\nnames files 3\nnames dirs 1\nnames depth 1\nnames long 0\nnames many 0\n' >links
check 'room is asked for at the end, however short it is' \
	tries 1 -t mutant:room --order depth --limit 300 --seed 1 --inputs links --findings 1
check 'and where it comes back nothing is said' \
	tries 0 -t mutant --order depth --limit 3000 --inputs links
check 'breadth first finds one as well' tries 1 -t mutant:dir-nlink --order breadth --time 800s --findings 1
check 'without a mutation, nothing is found by walking' tries 0 -t mutant --order walk --limit 60000
check 'nor depth first' tries 0 -t mutant --order depth --limit 30000
check 'nor breadth first' tries 0 -t mutant --order breadth --limit 10000
check 'the majority is not with the mutant' tries 1 -t mutant:errno -r reffs -r reffs --time 800s --findings 1
check 'a mutant among the references is named' tries 1 -t reffs -r mutant:errno -r reffs --time 800s --findings 1
check 'as the one at fault' grep -q 'a reference is at fault' kept/findings/1-0/problems

hangs() {
	tries 1 -t mutant:hang --hang-after "${seconds}s" --time 800s &&
		grep -q '	.*last operation begun was link' kept/findings/*/problems
}
check 'what never returns is a finding, with the operation that hangs' with_time 10 hangs
check 'and the operations before it' grep -q '^link' kept/findings/999000-0/workload
boots() {
	OUTAGE_BOOT=$((2 * seconds)) tries 0 -t mutant:boots --order walk --limit 3000 --hang-after "${seconds}s"
}
check 'what starts a guest does not hang' with_time 6 boots

check 'what does not show again is kept' tries 1 -t mutant:once --order walk --time 800s --findings 1
check 'and marked so' grep -q '^shown 0 of 3' kept/findings/1-0/case
check 'with what was seen' grep -q 'rmdir .*: mutant:once fails with EIO' kept/findings/1-0/problems

# ---- what cannot be kept ----

if [ "$(id -u)" = 0 ]; then
	mkdir small
	# shellcheck disable=SC2016 # for the shell that runs it
	full() {
		timeout 900 unshare -m sh -c 'mount -t tmpfs -o size=64k,nr_inodes=8 none small && exec "$@"' - \
			"$mutant" explore -t mutant:errno --order walk --time 800s --findings 1 -o small/run "$@" >out 2>err
	}
	full
	check 'a full disk is a failure' test $? = 2
	check 'but what was found is said' grep -q '^found  unlink .*: mutant:errno fails with EPERM' out
	check 'and that it was not kept' grep -q 'which could not be kept' out
	check 'with the reason' grep -q 'No space left on device' err
	full --json
	check 'also where others read what is printed' grep -q 'found, and could not be kept: unlink' err
fi

# ---- exported ----

# Of a mutant, what it does wrong is in no directory of this machine: nothing shows there. What was
# found is put in its place by changing what is expected.
exported() { # BUG STATUS-OF-PROGRAM STATUS-OF-SCRIPT
	tries 1 -t "mutant:$1" --order walk --time 800s --findings 1 || return 1
	rm -rf x inc ins && mkdir inc ins
	timeout 900 "$OUTAGE" export kept/findings/1-0 -o x >out 2>err || return 1
	cc -Wall -Wextra -Werror -o x/program x/workload.c 2>err || return 1
	timeout 900 x/program inc >out 2>err
	[ $? = "$2" ] || return 1
	timeout 900 x/workload.sh ins >out 2>err
	[ $? = "$3" ]
}
if [ "$(id -u)" = 0 ] && [ "$(stat -f -c %T .)" != overlayfs ]; then
	check 'a wrong result is not wrong here' exported noreplace 0 2
	check 'a failure that should be none, without a command for all of it' exported sticky 0 2
	tries 1 -t mutant:noreplace --order walk --time 800s --findings 1
	timeout 900 "$OUTAGE" export kept/findings/1-0 -o x >out 2>err
	sed -i 's/got == -17L/got == -95L/' x/workload.c
	check 'but is if another is expected' sh -c '
		cc -o x/program x/workload.c 2>err && rm -rf inc && mkdir inc && x/program inc >out; [ $? = 1 ]'
	check 'a wrong size' exported truncate-round 0 0
	check 'wrong content, which only the program knows' exported truncate-stale 0 2
	sed -i 's/has_sum(\(.*\), [0-9]*u)/has_sum(\1, 1u)/' x/workload.c
	check 'and sees' sh -c '
		cc -o x/program x/workload.c 2>err && rm -rf inc && mkdir inc && x/program inc >out; [ $? = 1 ]'
	check 'attributes' exported remount-xattr 0 2
	check 'what no look at files tells' exported kernel-log 2 2
fi

# ---- searching ----

check 'the same seed does the same' sh -c "
	timeout 900 '$OUTAGE' explore -t reffs --order walk --limit 20000 --seed 4 --coverage a -o r1 >out 2>err &&
	timeout 900 '$OUTAGE' explore -t reffs --order walk --limit 20000 --seed 4 --coverage b -o r2 >>out 2>>err && cmp a b"
check 'a picture of what was exercised' sh -c "
	timeout 900 '$OUTAGE' explore -t reffs --limit 2000 --coverage c.svg -o r3 >out 2>err &&
	grep -q '<svg' c.svg"
check 'with combinations of bits' grep -q '>rename FLAGS noreplace,exchange: [0-9]*</title>' c.svg
check 'and errors' grep -q '>rename ENOENT: [1-9][0-9]*</title>' c.svg
printf 'only rename creat\ncombination rename FLAGS exchange 1\n' >exchange
check 'only the combinations that were asked for' sh -c "
	timeout 900 '$OUTAGE' explore -t reffs --order walk --limit 2000 --inputs exchange --coverage c -o r6 >out 2>err &&
	grep -q 'combinations 1 of 8: exchange:[1-9][0-9]*\$' c"
printf 'only mkdir creat rmdir unlink\nnames files 1\nnames dirs 1\nnames depth 0\n' >few
check 'tasks that share what they visited' tries 0 -t reffs -j 2 --share --order depth --limit 20000
check 'and that do not, with how much they overlap' tries 0 -t reffs -j 2 --vary --limit 20000
check 'which is told' grep -q '%, were visited by more than one' out
check 'two tasks that do the same overlap in all of it' tries 0 \
	-t reffs -j 2 --alphabet 12 --depth 3 --order breadth --inputs few --json
check 'where they share what was visited' tries 0 \
	-t reffs -j 2 --share --alphabet 12 --depth 3 --order breadth --inputs few --json
check 'it is counted as well' grep -q '"overlap_states": [1-9]' out
check 'as a part of all' grep -q '"overlap": 0*[01]' out
check 'one task overlaps with nobody' tries 0 -t reffs --order walk --limit 3000 --json
check 'and says so' grep -q '"overlap_states": 0,' out
check 'machine 2 of 3' tries 0 -t reffs --order walk --swarm 2/3 --limit 5000
run_overlap() { # DIR: a search of all there is with few steps
	timeout 900 "$OUTAGE" explore -t reffs --alphabet 12 --depth 3 --order breadth --inputs few -o "$@" >out 2>err
}
check 'one machine' run_overlap same1
check 'another that does the same' run_overlap same2
check 'they overlap' sh -c "timeout 900 '$OUTAGE' explore --overlap same1 same2 >out 2>err"
check 'in all of it' grep -q '(100.0 %) visited by more than one run' out
check 'two machines of three' sh -c "
	timeout 900 '$OUTAGE' explore -t reffs --order walk --swarm 1/3 --limit 3000 -o m1 >out 2>err &&
	timeout 900 '$OUTAGE' explore -t reffs --order walk --swarm 2/3 --limit 3000 -o m2 >out 2>err &&
	timeout 900 '$OUTAGE' explore --overlap m1 m2 --json >out 2>err"
check 'hardly do' grep -Eq '"overlap": 0(\.[01]|,|$)' out
cp -r m1 late
mv late/task-0.pickle late/task-7.pickle
check 'any task will do' eval 'outage explore --overlap late m1 && says "\(100.0 %\) visited"'
check 'JSON' sh -c "timeout 900 '$OUTAGE' explore -t reffs --limit 5000 --json -o r4 >out 2>err &&
	grep -q '\"operations\": [0-9]' out && grep -q '\"depth_max\": ' out && grep -q '\"restores\": ' out"
check 'full memory is told, with its odds' sh -c "
	timeout 900 '$OUTAGE' explore -t reffs --order walk --memory 64k --limit 60000 -o r5 >out 2>err && grep -q 'with odds of' out"
check 'a run is stopped' tries 0 -t reffs --order depth --limit 3000
check 'and goes on' sh -c "timeout 900 '$OUTAGE' explore -t reffs --order depth --limit 3000 --resume kept >out 2>err"

# within N ORDER ARGS...: all states of a small world within N steps; what was seen is in out
within() {
	local depth=$1 order=$2
	shift 2
	timeout 900 "$OUTAGE" explore -t reffs --inputs three --alphabet 30 --round 0 --seed 3 \
		--depth "$depth" --order "$order" --json "$@" >out 2>err
}
# saw N: so many different states, and that was all; saw_some N: fewer, and it was not
saw() { grep -q "\"distinct_states\": $1," out && grep -q '"exhausted": true' out; }
saw_some() {
	[ "$(sed -n 's/.*"distinct_states": \([0-9]*\),/\1/p' out)" -lt "$1" ] && grep -q '"exhausted": false' out
}

printf 'names files 1\nnames dirs 1\nnames depth 1\n' >three
while read -r depth states; do
	check "breadth first within $depth steps" within "$depth" breadth -o "b$depth"
	check "... there are $states states" saw "$states"
	check "depth first within $depth steps" within "$depth" depth -o "d$depth"
	check "... there are the same $states" saw "$states"
	check '... and they are the same' sh -c "
		timeout 900 '$OUTAGE' explore --overlap b$depth d$depth >out 2>err && grep -q '(100.0 %) visited' out"
done <<'TABLE'
3 172
4 850
5 4359
TABLE
check 'two tasks that share the work' within 4 depth -j 2 --share -o s4
check '... see all of it' saw 850
check '... and can be stopped' within 4 depth -j 2 --share --limit 2000 -o s5
check '... in the middle' saw_some 850
cp -r s5 s6
rm s6/task-0.pickle
check '... and go on' within 4 depth -j 2 --share --resume s5
check '... to the end' saw 850
check 'if one was killed before it wrote where it was, it begins anew' within 4 depth -j 2 --share --resume s6
check '... and both see all' saw 850
check 'a depth-first search that is stopped' within 4 depth --limit 1000 -o p4
check '... has not seen all' saw_some 850
check '... goes on' within 4 depth --resume p4
check '... to the end' saw 850
check 'states that are known by bits only' within 5 depth --memory 64k -o f5
check '... are never called all' grep -q '"exhausted": false' out
check '... and take less than the 30 bytes of others' grep -Eq '"bytes_per_state": [12][0-9]\.' out
printf 'names files 1\nnames dirs 3\nnames depth 1\nonly mkdir rmdir\ncombination mkdir MODE 0755 1\n' >dirs
check 'a state is searched with every alphabet' sh -c "
	timeout 900 '$OUTAGE' explore -t reffs --inputs dirs --order breadth --alphabet 10 --depth 20 --seed 3 \
		--round 1000 --limit 100000 --json -o many >out 2>err"
check '... so in the end all are seen' grep -q '"distinct_states": 54,' out
check '... which nobody can know' grep -q '"exhausted": false' out
killed_at_once() { # before it first writes where it is
	local pid
	timeout 900 "$OUTAGE" explore -t reffs --order walk -o killed >out 2>err &
	pid=$!
	soon test -d killed/findings
	pkill -KILL -P "$pid"
	wait "$pid" 2>/dev/null
	[ $? = 137 ]
}
check 'a run that is killed at once' killed_at_once

check 'what it goes on from is nobody else'"'"'s to write' test "$(stat -c %a kept/task-0.pickle)" = 600

# ---- bad input ----


printf 'operation fly 1\n' >unknown
printf 'weight truncate SIZE 0 0\n' >zero
printf 'bit rename FLAGS exchange 1\ncombination rename FLAGS none 1\n' >both
cp -r kept changed
printf 'x' | dd of=changed/task-0.pickle bs=1 seek=100 conv=notrunc 2>dd.err
cp -r kept other
printf 'outage-explore 9' | dd of=other/task-0.pickle bs=1 conv=notrunc 2>dd.err
check 'no target' refused 'target is missing' explore
check 'a target that is not there' refused 'there is no target' explore -t nofs
check 'a reference that is not there' refused 'there is no target' explore -t reffs -r nofs
check 'an unknown operation in the inputs' refused "there is no operation 'fly'" explore -t reffs --inputs unknown
check 'bits and combinations of one argument' refused 'by-bit WEIGHT' explore -t reffs --inputs both
check 'partitions that sum to zero' refused 'sum to zero' explore -t reffs --inputs zero
check 'a state with a changed byte' refused 'was changed or cut short' explore -t reffs --order depth --resume changed
check 'a state of another version' refused 'another version' explore -t reffs --order depth --resume other
check 'a run with another seed' refused 'began with --seed left out and cannot go on with 9' explore -t reffs --order depth --seed 9 --resume kept
check 'of another target' refused 'began with --target reffs and cannot go on with reffs:' explore -t reffs: --order depth --resume kept
check 'of another reference' refused 'began with --ref reffs and cannot go on with reffs, reffs:' explore -t reffs -r reffs -r reffs --order depth --resume kept
check 'of fewer tasks' refused 'began with --jobs left out and cannot go on with 2' explore -t reffs -j 2 --order depth --resume kept
check 'of other inputs' refused 'began with another --inputs' explore -t reffs --order depth --inputs few --resume kept
check 'one that was killed at once' refused 'each minute' explore -t reffs --order walk --resume killed
check 'no run at all' refused 'unknown-dir is not the directory of a run' explore -t reffs --resume unknown-dir
check 'a crash without a disk' refused 'no disk' explore -t reffs --crash-every 10
check 'an order that is not there' refused 'walk, depth or breadth' explore -t reffs --order sideways
check 'one run alone' refused 'two runs' explore --overlap m1
check 'what is no run' refused 'has no task-*.pickle' explore --overlap m1 c.svg
check 'a swarm that is none' refused 'I/N' explore -t reffs --swarm 4/3
check 'a distribution that is not there' refused 'uniform, rank' explore -t reffs --dist bell
check 'too little memory' refused 'at least' explore -t reffs --memory 1k
check 'no depth' refused 'depth is from 1 to' explore -t reffs --depth 0
check 'no alphabet' refused 'alphabet is from 1 to' explore -t reffs --alphabet 0
printf 'weight truncate LENGTH 0 1\n' >noarg
check 'an argument that is not there' refused "truncate has no argument 'LENGTH'; it has FILE, SIZE" explore \
	-t reffs --inputs noarg
check 'coverage that cannot be written' refused 'coverage cannot be written' explore -t reffs --coverage no/where
check 'or not there' refused 'is a directory' explore -t reffs --coverage .
check 'a run into which another was kept' refused 'holds a run already: give --resume kept' explore \
	-t reffs --limit 100 -o kept
check 'an unknown option' refused 'unknown option' explore -t reffs --sideways

# ---- what is refused leaves nothing ----

mkdir empty was
(cd empty && refused_like 'FUSE target is|needs root' explore -t fuse:nosuch --limit 3)
check 'a run that cannot begin leaves no directory' test ! -e empty/outage-runs
check 'also not the one that was asked for' refused_like 'FUSE target is|needs root' explore -t fuse:nosuch --limit 3 -o given
check '... which is not there' test ! -e given
check 'nor one to go on with' refused 'nowhere is not the directory of a run' explore -t reffs --resume nowhere
check '... which is not there, either' test ! -e nowhere
check 'a directory of somebody else' refused_like 'FUSE target is|needs root' explore -t fuse:nosuch --limit 3 -o was
check '... stays, as it was' test -d was -a ! -e was/findings

done_testing
