#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0837-pm-commands.sh - who tests persistent memory may say himself what a state is (--dump), and
# what is wrong with one (--check): bugs of pmfs are found by them, a healthy one is not blamed, and
# a command that does not end with success never passes. The same in a guest, with ext4, where a
# flush is left out.
# takes 45 s
# shellcheck disable=SC2016,SC2317 # functions are called through check; $ is for the commands
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"
pm=$seeded/outage-pmfs

pmfs() { local want=$1; shift; keeps "$want" "$pm" test -j 2 "$@"; } # STATUS ARGS...

printf '%s\n' 'setup creat foo' 'setup write foo 0 700' 'rename foo bar' >move
names='ls; cat foo bar 2>/dev/null | cksum'
there='test -e foo -o -e bar'

if [ -x "$pm" ]; then
	# ---- what is there ----

	check 'without a bug, a dump shows nothing' pmfs 0 -t pmfs --dump "$names" move
	check 'in the same states' grep -Eq ' [1-9][0-9]* different' out
	check 'nor in generated workloads' pmfs 0 -t pmfs --dump 'ls -R' --bounds pm-seq-1 --sample 12
	check 'a rename in two steps is seen' pmfs 1 -t pmfs:rename-del-first --dump "$names" move
	check 'as neither of two states' problem not-atomic "'rename foo bar' is done in part"
	check 'by the lines that differ' problem not-atomic "unlike before: line 1 is '.*', was 'foo'; unlike after: line 1 is '.*', was 'bar'"
	check 'as a mistake of logic' grep -q '^logic: ' kept/findings/0-0/diagnosis
	check 'what it printed is kept' grep -q '^--dump exited with status 0, and printed:' kept/findings/0-0/said
	outage replay kept/findings/0-0
	check 'no target of others is known here' test $? -eq 2
	timeout 900 "$pm" replay kept/findings/0-0 >out 2>err
	check 'it is shown again' eval "[ $? -eq 1 ] && grep -q 'shows again' out"
	check 'what is not printed is no state' pmfs 0 -t pmfs:rename-del-first --dump 'echo the same' move

	# ---- success ----

	check 'a dump that fails is a state that failed' pmfs 1 -t pmfs --dump "$names; exit 7" move
	check 'which is told' problem dump-failed '--dump exited with status 7: foo'
	check 'as one that cannot be recovered from' grep -q "cannot be recovered from" kept/findings/0-0/diagnosis
	check 'one that is killed is none that succeeded' pmfs 1 -t pmfs --dump 'ls; kill -9 $$' move
	check 'by its signal' problem dump-failed 'was killed by signal 9'
	check 'nor is one that cannot be run' pmfs 1 -t pmfs --dump 'no-such-command-here' move
	check 'which says why' problem dump-failed 'status 127: .*no-such-command-here'
	check 'it fails in one state only, where it does' pmfs 1 -t pmfs:rename-del-first --dump "ls; $there" move
	check 'and is one finding' grep -q '^1 finding in 1 cluster' out
	check 'too much is an error, and no state' pmfs 2 -t pmfs --dump 'head -c 2000000 /dev/zero' move
	check 'that says what to do' grep -q 'prints more than 1024 KiB: let it print less' err

	# ---- what is wrong with it ----

	check 'a predicate that holds' pmfs 0 -t pmfs --check "$there" move
	check 'one that a bug breaks' pmfs 1 -t pmfs:rename-del-first --guarantee unmount --check "$there" move
	check 'which is told' problem check-failed '--check exited with status 1'
	check 'with the operation alone' grep -q '^found  check-failed: rename$' out
	check 'our own promises stay' pmfs 1 -t pmfs:rename-del-first --check true move
	check 'as they were' problem lost 'neither foo nor bar'
	check 'it is killed: that is no success' pmfs 1 -t pmfs --check 'kill -9 $$' move
	check 'it reads what was dumped' pmfs 0 -t pmfs --dump ls --check 'read -r x; test "$x" = "$(ls)"' move
	check 'and can say that it is wrong' pmfs 1 -t pmfs --dump ls --check 'grep -qv bar' move
	cat >where <<'END_OF_CHECK'
	test "$1" = "$OUTAGE_DIR" && test "$(pwd)" = "$1" || exit 9
	case "$OUTAGE_DONE $OUTAGE_OPERATION" in
	'2 ') ls | grep -qx foo ;;
	'2 rename foo bar') ls | grep -qxE 'foo|bar' ;;
	'3 ') ls | grep -qx bar ;;
	*) exit 8 ;;
	esac
END_OF_CHECK
	check 'it knows how far the run had come' pmfs 0 -t pmfs --check "sh $dir/where \"\$1\"" move
	printf '%s\n' 'setup creat foo' 'write foo 0 700' >grow
	long='test "$OUTAGE_DONE" -lt 2 || test "$(wc -c <foo)" = 700'
	check 'and so what should be there' pmfs 0 -t pmfs --guarantee unmount --check "$long" grow
	check 'or was not kept' pmfs 1 -t pmfs:tail-noflush --guarantee unmount --check "$long" grow

	# ---- what a case of others may do ----

	pmfs 1 -t pmfs --check 'false here' move
	cp -r kept others
	if [ "$(id -u)" = 0 ]; then
		chown -R 12345:12345 others
		timeout 900 "$pm" replay others/findings/0-0 >out 2>err
		check 'commands of others are refused' eval "[ $? -eq 2 ] && grep -q \"'false here' (check).*--trust\" err"
		timeout 900 "$pm" replay --trust others/findings/0-0 >out 2>err
		check 'unless they are trusted' test $? -eq 1
	fi

	# ---- clusters ----

	printf '%s\n' 'mkdir A' 'creat A/foo' 'setup creat B' 'rename A/foo A/bar' >four
	check 'of four operations, one is wrong' pmfs 1 -t pmfs:rename-del-first four
	check 'and gives the cluster its name' grep -q '^found  lost: rename$' out
	timeout 900 "$pm" report kept --json >out
	check 'in reports, too' json "d['clusters'][0]['name'] == 'lost: rename' and d['findings'][0]['cluster'] == 'lost: rename'"
else
	skip 'pmfs is for x86-64'
fi

check 'on a disk states are not compared' status 2 test -t ext4 --dump ls move
check 'which is said' complains '--dump is for persistent memory.*use --check'

# ---- a disk of this machine ----

if [ "$(id -u)" = 0 ] && timeout 900 "$OUTAGE" doctor >out 2>err; then
	printf '%s\n' 'creat foo' 'write foo 0 5000' 'fsync foo' >three
	kept='test "$OUTAGE_DONE" -lt 3 || test "$(wc -c <foo)" = 5000'
	check 'ext4: a check that holds' keeps 0 "$OUTAGE" test -t ext4 -j1 --crash prefix --check "$kept" three
	check 'ext4: one that does not' keeps 1 "$OUTAGE" test -t ext4 -j1 --check '! test -e foo' three
	check 'which is told' problem check-failed '--check exited with status 1'
	timeout 900 "$OUTAGE" replay kept/findings/0-0 >out 2>err
	check 'and shown again' test $? -eq 1
	check 'it is exported' timeout 900 "$OUTAGE" export kept/findings/0-0 -o script
	timeout 900 sh script/reproduce.sh >out 2>err
	check 'and shown without this program' test $? -eq 1
	sed -i 's/! test -e foo/test -e foo/' script/reproduce.sh
	timeout 900 sh script/reproduce.sh >out 2>err
	check 'but not by another check' test $? -eq 0
else
	skip 'nothing can be mounted here'
fi

# ---- a guest ----

if ! command -v qemu-system-x86_64 >/dev/null || ! command -v busybox >/dev/null; then
	skip 'qemu-system-x86_64 or busybox is not there'
	done_testing
fi
mkdir -p "$kernels"
export OUTAGE_CACHE=$kernels
trial=("$OUTAGE" test -t "vm:ext4-dax,commit=600" -j 1)

printf '%s\n' 'creat foo' 'write foo 0 5000' 'fsync foo' >three
kept='test "$OUTAGE_DONE" -lt 3 || test "$(wc -c <foo)" = 5000'
tries 0 --guarantee sync --dump 'ls -l | cut -c1-10; md5sum foo 2>/dev/null; true' --check "$kept" three
rc=$?
if [ $rc != 0 ] && complains 'apt-get|apt-cache'; then
	sed 's/^/# /' err
	skip 'no kernel can be fetched'
	done_testing
fi
check 'ext4 on persistent memory: one state before and one after, and what was synced is there' test $rc -eq 0
lost=
# The same fences each time, also those of interrupts. One store that is lost is enough to miss it.
for i in 5 4 6 3 7 8; do
	if tries 1 --deterministic --guarantee unmount --lose-flush $i --max-subset 1 --check "$kept" three >/dev/null &&
		problem check-failed '--check exited with status' >/dev/null; then
		lost=$i
		break
	fi
done
check "a flush that is left out is missed by a predicate (the ${lost:-none})" test -n "$lost"
check 'as a flush that is missing' grep -q '^ordering: ' kept/findings/0-0/diagnosis
if grep -q 'made at 0x[0-9a-f]* (' kept/findings/0-0/diagnosis; then
	timeout 900 "$OUTAGE" report kept/findings/0-0 >out 2>err
	check 'what is in flight has names, too' says '^  (lost|survived) +event .*, made at 0xf[0-9a-f]+ \(__memcpy_flushcache\+0x[0-9a-f]+\), called from pmem_do_write'
	timeout 900 "$OUTAGE" report kept/findings/0-0 --json >out 2>err
	check 'for programs' json "[w for f in d['findings'] for w in f['writes'] if w['fate'] == 'lost' and \
		w['place'].startswith('__memcpy_flushcache') and [c for c in w['callers'] if c.startswith('jbd2') or 'journal' in c]]"
	timeout 900 "$OUTAGE" report kept --html page.html >out 2>err
	check 'and in a page' grep -qE '^(<pre>)? +lost +event .*made at 0xf[0-9a-f]+ \(__memcpy_flushcache' page.html
	mv kept/findings/0-0/places nameless
	timeout 900 "$OUTAGE" report kept/findings/0-0 >out 2>err
	check 'a case without them has addresses' says '^  (lost|survived) +event .*, made at 0xf[0-9a-f]+$'
	mv nameless kept/findings/0-0/places
else
	skip 'the kernel has no names (CONFIG_KALLSYMS)'
fi
timeout 900 "$OUTAGE" replay kept/findings/0-0 >out 2>err
check 'it is shown again' test $? -eq 1
check 'and by what is dumped' tries 1 --deterministic --guarantee sync --lose-flush "${lost:-5}" --max-subset 1 --dump 'ls' three
check 'as two states after one operation' problem not-single "unlike it was: line [0-9]* is .*, was 'foo'"
check 'a dump that fails in the guest is no state' tries 1 --dump 'ls; exit 4' three
check 'which is told' problem dump-failed '--dump exited with status 4'

# ---- commands that should be atomic ----

printf '%s\n' 'shell "echo a > f; echo b > g; sync" atomic' >one
printf '%s\n' 'setup creat x' 'setup sync' 'shell "echo a > f; sync; echo b > g; sync" atomic' >halves
check 'a command that is committed as one is atomic' tries 0 --guarantee atomic one
check 'one that is committed in two parts is not' tries 1 --guarantee atomic halves
check 'which is told' problem not-atomic 'is done in part; .*unlike after: g: missing, was a file'
check 'by the name of the command, and not of what prepares it' grep -q '^found  not-atomic: shell$' out
sed 's/ atomic$//' halves >parts
check 'and not asked of one that may have parts' tries 0 --guarantee atomic parts

done_testing
