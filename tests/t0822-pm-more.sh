#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage pm: other ways to trace, to crash and to prune.
# shellcheck disable=SC2016,SC2317 # $1 is for the check; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pm-lib.sh
. "$root/tests/pm-lib.sh"


# ---- without an emulator ----
pool
if [ -x "$helpers/pm-libpmem" ]; then
	libpmem=$helpers/pm-libpmem
	check 'preload: right' pm 0 --tracer preload --check "$good" -- "$libpmem" pool right
	check 'what it cannot see is said' grep -q '^traced by calls of libpmem' out
	check 'preload: not persisted' pm 1 --tracer preload --check "$good" -- "$libpmem" pool unpersisted
	check 'the call is named' eval "timeout 900 '$OUTAGE' report r >out &&
		grep -q '^lost .*, seen at 0x.*(pm-libpmem.c:[0-9]* in main)' out"
	check 'replay' eval "timeout 900 '$OUTAGE' replay r/findings/0 >out; test \$? -eq 1"
	check 'all combinations of a line: still right' pm 0 --tracer preload --granularity 8 \
		--check "$good" -- "$libpmem" pool right
	check 'dumps' pm 0 --tracer preload --dump "$show" -- "$libpmem" pool right
	check 'a script that starts it' pm 1 --tracer preload --check "$good" -- \
		sh -c "'$libpmem' pool unpersisted"
	check 'JSON says how' eval "pm 0 --json --tracer preload --check true -- $libpmem pool right &&
		test \"\$(value tracer)\" = preload"
	check 'no emulator is needed' pm 0 --tracer preload --qemu /nothing --check "$good" -- \
		"$libpmem" pool right
	check 'a program without libpmem, which maps' pm 0 --tracer preload --check true -- \
		"$helpers/pm-writer" pool synced
	check 'is traced by its system calls' test "$(timeout 900 "$OUTAGE" trace show r/trace |
		awk '$1 ~ /^[0-9]+$/ { printf "%s ", $2 }')" = 'store store lineflush fence store lineflush lineflush fence '
	check 'one that does not' pm_refused 'where the library could see it' --tracer preload --check true -- true
	check 'one that is killed' pm_refused 'ended by signal 9' --tracer preload --check true -- \
		"$helpers/pm-preload" pool killed
	check 'a trace that gets too long' pm_refused 'longer than 65536 bytes: trace less, or allow more' \
		--tracer preload --trace-limit 64K --check true -- "$helpers/pm-preload" pool long
	check 'and one that does not' pm 0 --tracer preload --trace-limit 1M --budget 5 --check true -- \
		"$helpers/pm-preload" pool long
	check 'one that hangs' pm_refused 'did not end within 2 s; --timeout' --tracer preload --timeout 2s \
		--check true -- sleep 100
else
	skip 'libpmem is not there'
fi
check 'no such tracer' eval "pm 2 --tracer gdb --check true -- true && complains 'qemu or preload'"

# ---- crashes during recovery ----
undo=$helpers/pm-undo
pool
check 'a right recovery survives a crash' pm 0 --crash recovery --recover "$undo \"\$1\" recover" \
	--check "$undo \"\$1\" check" -- "$undo" pool run
check 'which is told' grep -q '^recovery changes states in [1-9].* ways; [1-9].* traced.*: [1-9][0-9]* crash states of them checked' out
check 'and of its sizes nothing' lacks 'the size of the file'
check 'a recovery that changes the size is not tried' pm 0 --crash recovery --recover 'truncate -s +4096 "$1"' \
	--check true -- "$undo" pool run
check 'which is told, too' says '^recovery changes the size of the file in [1-9][0-9]* states: its crashes there are not tried$'
check 'a sick one is right if it is not disturbed' pm 0 --recover "$undo \"\$1\" sick" \
	--check "$undo \"\$1\" check" -- "$undo" pool run
check 'and found if it is' pm 1 --crash recovery --recover "$undo \"\$1\" sick" \
	--check "$undo \"\$1\" check" -- "$undo" pool run
check 'with what it loses' grep -q 'lost .*pm-undo.c:[0-9]* in recover' out
check 'and when' grep -q 'by a crash during the recovery from another, during operation' out
for budget in 44 20; do # all states of the program are 22
	pm 0 --json --budget $budget --recoveries 7 --crash recovery --recover "$undo \"\$1\" recover" \
		--check "$undo \"\$1\" check" -- "$undo" pool run
	check "second crashes are inside a budget of $budget, of which first ones take half" \
		json "d['checked'] == $budget / 2 and 0 < d['recovery_states'] <= $budget / 2 and d['budget_hit']"
done
pm 1 --crash recovery --recover "$undo \"\$1\" sick" --check "$undo \"\$1\" check" -- "$undo" pool run
check 'it is replayed' eval "timeout 900 '$OUTAGE' replay r/findings/0 >out; test \$? -eq 1 && grep -q ' is not ' out"
sed -i 's/^recover .*/recover \/bin\/true/; s/^check .*/check true/' r/run
check 'with what the run says' eval "timeout 900 '$OUTAGE' replay --trust r/findings/0 >out; test \$? -eq 0"
check 'by its dumps, too' pm 1 --crash recovery --recoveries 8 --recover "$undo \"\$1\" sick" \
	--dump "$undo \"\$1\" dump" -- "$undo" pool run
check 'as an event of the recovery' grep -Eq 'event [0-9]+ of its recovery (survived|got lost)' out
check 'a check that recovers is traced itself' eval "pm 0 --crash recovery --recoveries 2 \
	--dump '$undo \"\$1\" dump' -- $undo pool run && grep -q '; 2 traced, [12] of them' out"
check 'a recovery that fails is found' pm 1 --recover "$undo \"\$1\" check" --check true -- "$undo" pool run
check 'with what it said' grep -q ' is not ' r/findings/0/said
check 'a shell is not traced in an emulator' pm_refused 'give a program with its arguments' --crash recovery \
	--check 'true | true' -- "$undo" pool run
if [ -x "$helpers/pm-libpmem" ]; then
	export PM_UNDO_MSYNC=1
	check 'but without one it is' pm 1 --tracer preload --crash recovery \
		--recover "true && $undo \"\$1\" sick" --check "$undo \"\$1\" check" -- "$undo" pool run
	check 'and the same of several recoveries is one' test "$(grep -c ^found out)" -eq 1
	unset PM_UNDO_MSYNC
else
	skip 'libpmem is not there'
fi
pmfs=$seeded/pmfs
for bug in '' recovery-order recovery-noflush; do
	[ -x "$pmfs" ] || continue
	printf 'creat foo\nlink foo bar\n' >script
	rm -f pool
	"$pmfs" mkfs pool
	# shellcheck disable=SC2086 # words
	check "a file system's recovery: ${bug:-right}" pm "$([ -z "$bug" ]; echo $?)" --crash recovery \
		--dump "'$pmfs' dump \"\$1\" ${bug:+-o bug=$bug}" -- "$pmfs" run pool script ${bug:+-o bug=$bug}
done
check 'what is not flushed there is told' grep -q 'event [0-9]* of its recovery survived; a flush is missing' out
pool

# ---- bad lines ----
check 'what nobody minds' pm 0 --media poison,stale --check true -- "$undo" pool run
check 'is told' grep -q '^[1-9][0-9]* of the states have a bad line; 0 such' out
check 'poison is found' pm 1 --media poison --check "! grep -q POISONED \"\$1\"" -- "$undo" pool run
check 'as such' grep -q 'found  fails if the line at 0x[0-9a-f]* cannot be read (poison)' out
check 'with who stored there' grep -q 'survived event .*pm-undo.c' out
check 'and replayed' eval "timeout 900 '$OUTAGE' replay r/findings/0 >out; test \$? -eq 1"
check 'and the command knows' eval "pm 1 --media stale --check '! grep -q stale <<X
\$OUTAGE_MEDIA
X' -- $undo pool run && grep -q 'as it was before (stale)' out"
check 'a bound is kept' eval "pm 0 --json --media poison --media-max 1 --check true -- $undo pool noise &&
	test \"\$(value media_left_out)\" != 0"
check 'of each kind as many lines' eval "pm 1 --media poison,stale --media-max 1 --check '! grep -q stale <<X
\$OUTAGE_MEDIA
X' -- $undo pool run"
check 'not with dumps' eval "pm 2 --media poison --dump true -- true && complains 'goes with --check'"
check 'twice is once' pm 0 --media stale,poison,stale --check true -- "$undo" pool run
check 'none is none' pm 0 --media none --check true -- "$undo" pool run
check 'no other faults' eval "pm 2 --media rust --check true -- true && complains 'poison or stale'"

# ---- what is not read ----
check 'all is varied' eval "pm 0 --json --budget 150 --check true -- $undo pool noise && test \"\$(value checked)\" -eq 150"
check 'or what is read' eval "pm 0 --json --prune reads --recover '$undo \"\$1\" recover' \
	--check '$undo \"\$1\" check' -- $undo pool noise && test \"\$(value checked)\" -lt 100 &&
	test \"\$(value pruned)\" -gt 1000"
check 'what is wrong is found as well' pm 1 --prune reads --check "$undo \"\$1\" check" -- "$undo" pool noise
check 'a command that reads by system calls reads all' eval "pm 0 --json --budget 150 --prune reads \
	--recover '$undo \"\$1\" recover' --check '$undo \"\$1\" read' -- $undo pool noise &&
	test \"\$(value pruned) \$(value checked)\" = '0 150'"
check 'not without an emulator' eval "pm 2 --tracer preload --prune reads --check true -- true &&
	complains 'wants an emulator'"

# ---- stopping, and what is broken ----
# stopped EVENT ARGUMENTS...: ended by a signal once EVENT, a function, is true; its status
stopped() {
	local event=$1
	shift
	rm -rf r
	timeout 900 "$OUTAGE" pm "$@" >out 2>err &
	local pid=$!
	soon eval "$event"' || ! kill -0 "$pid" 2>/dev/null'
	kill -TERM "$pid"
	wait "$pid"
}
hangs() { # the program has its file, and does nothing more
	local p
	for p in $(pgrep -f "^[^ ]*qemu-x86_64 .*$dir/pool2 hang"); do
		grep -qs "$dir/pool2" "/proc/$p/maps" && return 0
	done
	return 1
}
checking() { [ -e checking ]; }
rm -f pool2
stopped hangs --file "$dir/pool2" --size 64K -o r --check true -- "$helpers/pm-writer" "$dir/pool2" hang
check 'stopped while the program runs' eval "test $? -eq 2 && complains 'stopped by a signal' && test \"\$(wc -l <err)\" -eq 1"
check 'nothing is left' eval "test ! -e r && test ! -e pool2 && ! pgrep -f '$dir/pool2 hang'"
pool
# The first is of the whole run, which must be right before anything is looked for.
mkdir checks
printf '%s\n' 'mktemp -d checks/XXXXXX >/dev/null' '[ "$(ls checks | wc -l)" -lt 6 ] || mkdir -p checking' 'sleep 1' >slow.sh
stopped checking --file pool -o r -j 2 --check "cd '$dir' && sh slow.sh" -- "$undo" pool noise
check 'stopped while states are checked' eval "test $? -eq 2 && complains 'what was found is in'"
check 'and it can be reported' eval "timeout 900 '$OUTAGE' report r >out"
pm 1 --check "$undo \"\$1\" check" -- "$undo" pool run
dd if=/dev/zero of=r/trace bs=1 seek=100 count=8 conv=notrunc 2>/dev/null
timeout 900 "$OUTAGE" replay --trust r/findings/0 >out 2>err
check 'a damaged trace is told' eval "test $? -eq 2 && test \"\$(wc -l <err)\" -eq 1"
pm 1 --crash recovery --recover "$undo \"\$1\" sick" --check "$undo \"\$1\" check" -- "$undo" pool run
for id in r r: r9:1.1 r99999999999999999999:1 r0:r0:1.1 r0:9.9.9 1.1/ 1.1/poison:1 1.1/rust:0; do
	sed -i "s,^state .*,state $id," r/findings/0/case
	timeout 900 "$OUTAGE" replay --trust r/findings/0 >out 2>err
	check "there is no state $id" eval "test $? -eq 2 && test \"\$(wc -l <err)\" -eq 1"
done
printf '#!/bin/sh\n[ "$1" = --version ] && echo "qemu-x86_64 version 7.2.0" && exit\nkill -9 $$\n' >q
chmod +x q
check 'an emulator that is killed' pm_refused 'was killed by signal 9' --qemu ./q --check true -- true
printf '#!/bin/sh\n[ "$1" = --version ] && echo "qemu-x86_64 version 7.2.0" && exit\nexit 3\n' >q
check 'or says nothing' pm_refused 'exited with status 3' --qemu ./q --check true -- true

# ---- where it was ----
pool
check 'a store is named by its line' eval "pm 1 --check \"\$good\" -- '$helpers/pm-writer' pool late &&
	timeout 900 '$OUTAGE' report r >out && grep -q '^lost .*(pm-writer.c:[0-9]* in fill' out"
check 'and what flushed it too late' grep -q 'flushed only by event .*pm-writer.c:[0-9]* in persist' out
check 'or never' eval "pm 1 --check \"\$good\" -- '$helpers/pm-writer' pool unflushed &&
	timeout 900 '$OUTAGE' report r >out && grep -q 'its line is never flushed' out"
if [ -x "$helpers/pm-libpmem" ]; then
	check 'with stacks, who called libpmem' eval "pm 1 --stacks --budget 100 --check \"\$good\" -- \
		'$helpers/pm-libpmem' pool unpersisted && timeout 900 '$OUTAGE' report r >out &&
		grep -q '^ *called from pm-libpmem.c:[0-9]* in main' out"
fi
check 'in a recovery, too' eval "pm 1 --stacks --crash recovery --recover '$undo \"\$1\" sick' \
	--check '$undo \"\$1\" check' -- $undo pool run && timeout 900 '$OUTAGE' report r >out &&
	grep -q '^ *called from' out"
check 'not without an emulator' eval "pm 2 --stacks --tracer preload --check true -- true && complains 'wants an emulator'"
pm 1 --budget 100 --check "$good" -- "$helpers/pm-writer" pool unflushed
printf 'zz\n' >r/places
timeout 900 "$OUTAGE" replay r/findings/0 >out 2>err
check 'damaged names are told' eval "test $? -eq 2 && complains 'places is damaged'"
rm r/places
check 'and not needed' eval "timeout 900 '$OUTAGE' replay --trust r/findings/0 >out; test \$? -eq 1"
done_testing
