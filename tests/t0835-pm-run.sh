#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0835-pm-run.sh - persistent memory in outage test: each bug of pmfs is found through the whole
# pipeline, as what it is and with the right diagnosis; without one nothing is; findings are
# reported, replayed and shrunk.
# shellcheck disable=SC2016,SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
pm=$seeded/outage-pmfs

requires_built "$pm" # for x86-64

trial=("$pm" test -j 2)

# shows KIND CAUSE: a finding that was kept has that kind of problem, and that diagnosis
shows() {
	local f
	for f in kept/findings/*/; do
		grep -q "^$1	" "$f/problems" || continue
		case $2 in
		-) [ ! -e "$f/diagnosis" ] && return 0 ;;
		*) head -n 1 "$f/diagnosis" | grep -q "^$2: " && return 0 ;;
		esac
	done
	return 1
}

# ---- without a bug ----

check 'nothing is found without a bug' tries 0 -t pmfs --bounds pm-seq-1
check 'in all workloads' grep -q '59 workloads' out
check 'nor by words' tries 0 -t pmfs --bounds pm-seq-1 --granularity 8
check 'nor with persistent caches' tries 0 -t pmfs --bounds pm-seq-1 --eadr
check 'nor if copies are split' tries 0 -t pmfs --bounds pm-seq-1 --split --budget 60
check 'nor if they are torn' tries 0 -t pmfs --bounds pm-seq-1 --torn --budget 60
check 'nor if only what is read is varied' tries 0 -t pmfs --bounds pm-seq-1 --prune reads
check 'nor after a second crash' tries 0 -t pmfs --bounds pm-seq-1 --crash reorder,recovery
check 'nor in some of two operations' tries 0 -t pmfs --bounds pm-seq-2 --sample 60
check 'a weaker guarantee is kept as well' tries 0 -t pmfs --bounds pm-seq-1 --guarantee linux

# ---- with one ----

"$seeded/pmfs-states" --table >table 2>err
check 'there are 27 bugs' test "$(grep -c '^| `' table)" -eq 27

# The operations of a bug's workload, one a line.
workload_of() {
	sed -n "s/^| \`$1\` | \\([^|]*\\) |.*/\\1/p" table | sed 's/; /\n/g'
}

while read -r bug kind cause; do
	ops=$(workload_of "$bug")
	printf '%s\n' "$ops" >"$bug"
	modes=reorder
	[ "$cause" = - ] && modes=reorder,recovery
	check "$bug is found" tries 1 -t "pmfs:$bug" --crash $modes "$bug"
	check "$bug: $kind, $cause" shows "$kind" "$cause"
done <<'TABLE'
entry-noflush unusable ordering
entry-nofence unusable ordering
tail-noflush size ordering
nt-tail content ordering
name-line never-was ordering
symlink-cached target ordering
rename-del-first lost logic
rename-add-first both-places logic
link-count-first nlink logic
truncate-zero-first not-atomic logic
falloc-replay content logic
replica-together unmountable ordering
csum-late unmountable logic
replica-stale missing ordering
trunc-refree unmountable logic
trunc-early unmountable logic
trunc-stale size ordering
journal-flag-first unmountable ordering
journal-index missing logic
count-late unmountable logic
unlink-inode-first unmountable logic
write-inplace not-atomic ordering
size-first not-atomic logic
log-link unmountable ordering
log-end unmountable logic
recovery-order recovery -
recovery-noflush recovery -
TABLE

tries 1 -t pmfs:nt-tail nt-tail
check 'a store that got lost is named' grep -Eqh '^lost event [0-9]+: store of 1 byte at 0x' kept/findings/*/diagnosis
check 'the generated workloads find bugs, too' tries 1 -t pmfs:tail-noflush --bounds pm-seq-1 --keep 1
check 'those that they reach' tries 0 -t pmfs:log-end --bounds pm-seq-1

# ---- read-only first ----

# A state is walked before it is made writable; what goes wrong there, and only there, is found.
cp trunc-stale cut
refused='it can be mounted read-only, and not be made writable: a truncate is not finished'
check 'what can be mounted and not be made writable is found' tries 1 -t pmfs:ro-list cut
check 'as that' shows unmountable logic
check 'with words of its own' grep -q "^unmountable		$refused" kept/findings/0-0/problems
check 'and with what was there' grep -q ' foo' kept/findings/0-0/seen
check 'of the operation that it is about alone' grep -qx 'found  unmountable: truncate' out
timeout 900 "$pm" replay kept/findings/0-0 >out 2>err
check 'it is shown again' eval "[ $? -eq 1 ] && grep -q 'not be made writable' out"
check 'only if there was a truncate' tries 0 -t pmfs:ro-list name-line
check 'a kernel that dies of it is found' tries 1 -t pmfs:remount-dies,tail-noflush cut
check 'as that' grep -qh "^unmountable		${refused%%:*}: the kernel died: of a truncate" kept/findings/*/problems
check 'with what had been read until then, which is judged' eval 'grep -l "kernel died" kept/findings/*/problems |
	xargs grep -q "^size	foo	"'
check 'what is wrong once it is writable is found by its use' tries 1 -t pmfs:remount-forgets cut
check 'as that' grep -q '^found  unusable: write$' out
check 'what making it writable writes is part of recovery' tries 1 -t pmfs:remount-torn --crash reorder,recovery cut
check 'where a second crash is fatal' grep -q '^found  unmountable: ' out
check 'and no first one' tries 0 -t pmfs:remount-torn cut

# Who cannot be mounted read-only, or made writable, while all is well, is not blamed for it.
once='crash states are mounted writable at once: a new pmfs cannot be mounted read-only and then be made writable'
old() { # TARGET WORDS: silent, the old way, and said once
	keeps 0 "$pm" -v test -j 2 -t "$1" --bounds pm-seq-1 --sample 20 && [ "$(grep -c "$once: $2" err)" = 1 ]
}
check 'without a read-only mount nothing is found' old pmfs:no-ro 'it is not mounted read-only'
check 'nor without a remount' old pmfs:no-remount 'there is no remount'
check 'nor by a bug that needs one' old pmfs:no-remount,remount-torn 'there is no remount'
check 'but other bugs are' tries 1 -t pmfs:no-remount,trunc-stale trunc-stale
check 'it is not said unasked' eval '[ ! -s err ]'
keeps 0 "$pm" -v test -j 2 -t pmfs cut
check 'nor where it can be done' eval '! grep -q "writable at once" err'
check 'nor is it blamed if recovery has to write' tries 0 -t pmfs:ro-clean --crash reorder,recovery cut
check 'but for what it would be blamed for anyway' eval 'tries 1 -t pmfs:ro-clean,trunc-refree trunc-refree &&
	shows unmountable logic && grep -q "cannot be mounted: " kept/findings/0-0/problems'

check 'nor for what the kernel says of its disk then' tries 0 -t pmfs:ro-clean,ro-complains cut
check 'but for a bug of the kernel itself' tries 1 -t pmfs:ro-clean,ro-warns cut
check 'in words of its own' grep -q '^kernel-log		the kernel says, where it is mounted read-only: WARNING: ' kept/findings/0-0/problems
check 'and with all lines of it' eval 'grep -qx "Call Trace:" kept/findings/0-0/kernel-log &&
	! grep -q "(pool)" kept/findings/0-0/kernel-log'

# ---- which crashes ----

check 'a mistake of logic is found without loss' tries 1 -t pmfs:rename-del-first --crash prefix rename-del-first
check 'with all of it, the example of logic lost nothing' eval "tries 1 -t pmfs:rename-del-first rename-del-first &&
	for d in kept/findings/*/; do ! grep -q ^logic \"\$d/diagnosis\" || ! grep -q '^lost ' \"\$d/case\" || exit 1; done"
check 'one of ordering is not' tries 0 -t pmfs:entry-nofence --crash prefix entry-nofence
check 'what is not flushed at the end is lost' tries 1 -t pmfs:trunc-stale --crash persist trunc-stale
check 'after the last operation as well' tries 1 -t pmfs:trunc-stale --crash last trunc-stale
check 'what goes wrong within one is not seen there' tries 0 -t pmfs:rename-del-first --crash persist rename-del-first

# ---- what is promised ----

# A write in place: only who promises atomic data breaks it, and only by torn copies.
check 'a torn write is found' tries 1 -t pmfs:write-inplace --bounds pm-seq-1 --torn --keep 1
check 'unless no one promised that' tries 0 -t pmfs:write-inplace --bounds pm-seq-1 --torn --guarantee sync
check 'what is not synced may be lost' tries 0 -t pmfs:trunc-stale --guarantee linux trunc-stale
check 'with persistent caches no flush is missed' tries 0 -t pmfs:tail-noflush --eadr tail-noflush
check 'but logic is' tries 1 -t pmfs:rename-del-first --eadr rename-del-first

# ---- a flush that is left out ----

printf '%s\n' 'mkdir A' 'creat foo' 'write foo 0 700' 'link foo A/bar' 'rename foo A/foo' \
	'truncate A/foo 100' 'unlink A/bar' >mix
check 'nothing is wrong' tries 0 -t pmfs mix
caught=0
for i in 1 3 4 7 9 10 11 12 13 15; do
	tries 1 -t pmfs --lose-flush $i --keep 1 mix && shows "$(cut -f1 kept/findings/0-0/problems | head -1)" ordering &&
		caught=$((caught + 1))
done
check 'flushes and fences that are left out are missed' test $caught -eq 10
check 'one that no workload has changes nothing' tries 0 -t pmfs --lose-flush 5000 mix
check 'and that is said' grep -q 'sent no flush number 5000' out
check 'it needs more than prefixes' tries 2 -t pmfs --lose-flush 1 --crash prefix mix

# ---- pruning ----

tries 0 -t pmfs mix
all=$(sed -n 's/.*workload, \([0-9]*\) different.*/\1/p' out)
tries 0 -t pmfs --prune reads mix
some=$(sed -n 's/.*workload, \([0-9]*\) different.*/\1/p' out)
check "pruning saves states ($some of $all)" test "$some" -lt "$all"
check 'and finds the same' eval 'tries 1 -t pmfs:replica-stale --prune reads replica-stale && shows missing ordering'

# ---- what is kept of it ----

check 'a bug of ordering' tries 1 -t pmfs:entry-nofence entry-nofence
f=$(grep -l unusable kept/findings/*/problems | head -n 1)
f=${f%/problems}
check 'the store that survived too early is named' grep -Eq '^survived event [0-9]+: store of 8 bytes at 0x' "$f/diagnosis"
timeout 900 "$pm" report "$f" >out 2>err
check 'report tells the diagnosis' grep -q '^    ordering: a crash' out
timeout 900 "$pm" report --json "$f" >out 2>err
check 'as JSON' grep -q '"cause": "ordering"' out
timeout 900 "$pm" report --html page.html kept >out 2>err
check 'as a page' grep -q '<h3>Diagnosis</h3>' page.html
timeout 900 "$pm" replay "$f" >out 2>err
check 'replay shows it again' eval "[ $? -eq 1 ] && grep -q 'shows again' out"
timeout 900 "$pm" replay --rerun "$f" >out 2>err
check 'as does running it again' eval "[ $? -eq 1 ] && grep -q 'shows again' out"

check 'a bug of logic' tries 1 -t pmfs:rename-del-first rename-del-first
f=kept/findings/0-0
timeout 900 "$pm" replay $f >out 2>err
check 'it is replayed from its trace' eval "[ $? -eq 1 ] && grep -q 'is done in part' out"
{ cat rename-del-first; echo 'creat other'; echo 'chmod other 0600'; } >longer
check 'the same in a longer workload' tries 1 -t pmfs:rename-del-first longer
timeout 900 "$pm" shrink $f >out 2>err
check 'shrunk' eval "[ $? -eq 0 ] && grep -q '[23] of 5 operations' out"
check 'to what shows it with its diagnosis' grep -q '^logic: ' kept/shrunk/0-0/diagnosis
timeout 900 "$pm" replay kept/shrunk/0-0 >out 2>err
check 'and again' eval "[ $? -eq 1 ]"

check 'by words: a finding' tries 1 -t pmfs:entry-noflush --granularity 8 --split entry-noflush
f=$(dirname "$(grep -l unusable kept/findings/*/problems | head -n 1)")
check 'keeps the model' eval 'grep -qx "granularity 8" $f/case && grep -qx "split yes" $f/case'
timeout 900 "$pm" replay "$f" >out 2>err
check 'and is replayed by it' eval "[ $? -eq 1 ]"

# ---- bad input ----

check 'a disk has no granularity' tries 2 -t ext4 --granularity 8 mix
check 'and says so' grep -q 'for persistent memory' err
check 'nor persistent caches' tries 2 -t ext4 --eadr mix
check 'granularity is 8 or 64' tries 2 -t pmfs --granularity 16 mix
check 'there is no such bug' tries 2 -t pmfs:nothing mix

done_testing
