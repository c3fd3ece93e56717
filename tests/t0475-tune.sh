#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0475-tune.sh - outage test --tune changes this machine while it runs, and puts everything back,
# whatever ends it.
# shellcheck disable=SC2317,SC2016 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

level() { cut -f 1 </proc/sys/kernel/printk; }
# 0: normal, 1: real-time; field 41 of stat is the policy
policy() { sed 's/.*) //' /proc/2/stat | cut -d ' ' -f 39; }

requires_root
[ "$(cat /proc/2/comm)" = kthreadd ] || skip_all "this needs the machine's own process numbers"
console=$(level)
if [ "$(policy)" != 0 ] || ! echo "$console" >/proc/sys/kernel/printk; then
	skip_all "kthreadd has real-time priority already, or the console's level cannot be set"
fi
requires_mounts
before=$(level)
run=
trap 'kill -9 $run 2>/dev/null; echo "$before" >/proc/sys/kernel/printk; [ -z "$dir" ] || rm -rf "$dir"' EXIT
echo 5 >/proc/sys/kernel/printk

tuned() { [ "$(level)" = 1 ] && [ "$(policy)" = 1 ]; }
normal() { [ "$(level)" = 5 ] && [ "$(policy)" = 0 ]; }
start() {
	rm -rf kept
	"$OUTAGE" test --tune -t ext4 -b seq-2 -j 1 -o kept "$@" >out 2>err </dev/null &
	run=$!
}
guardian() {
	local p
	# shellcheck disable=SC2013 # words are what is wanted
	for p in $(cat "/proc/$run/task/$run/children"); do
		[ "$(cat "/proc/$p/comm")" = outage-guardian ] && echo "$p"
	done
}
# taken PID: no signal is on its way to it, or it has gone
taken() {
	local one all blocked
	one=$(awk '/^SigPnd/ { print $2 }' "/proc/$1/status" 2>/dev/null)
	all=$(awk '/^ShdPnd/ { print $2 }' "/proc/$1/status" 2>/dev/null)
	blocked=$(awk '/^SigBlk/ { print $2 }' "/proc/$1/status" 2>/dev/null)
	[ $(((0x0$one | 0x0$all) & ~0x0$blocked)) = 0 ]
}

start --limit 400
check 'while it runs, the machine is tuned' soon tuned
wait $run
check 'it ends well' [ $? -eq 0 ]
check 'after its end all is as before' normal

for signal in INT TERM KILL; do
	start
	soon tuned
	kill -s $signal $run
	{ wait $run; } 2>/dev/null
	check "SIG$signal: all is as before" soon normal
done

start --limit 400
soon tuned
guard=$(guardian)
kill -TERM "$guard"
check 'a signal gets there' soon taken "$guard"
check 'what may be killed by accident holds on' grep -q '^State:.[^ZX]' "/proc/$guard/status"
kill -KILL "$guard"
wait $run
check 'without its guardian the run puts things back itself' normal

start
soon tuned
echo 3 >/proc/sys/kernel/printk
kill -KILL $run
{ wait $run; } 2>/dev/null
check 'what somebody else has changed meanwhile stays' soon sh -c '[ "$(cut -f 1 </proc/sys/kernel/printk)" = 3 ]'
check 'and the rest is put back' soon eval '[ "$(policy)" = 0 ]'
echo 5 >/proc/sys/kernel/printk

"$OUTAGE" test --tune -t ext4 --size 64K -b seq-1 -o kept >out 2>err
check 'a run that cannot begin' [ $? -eq 2 ]
check 'leaves all as it was' normal

for_everybody
mkdir -m 777 nb
"${as_user[@]}" "$OUTAGE" test --tune -t ext4 -b seq-1 -o nb/x >out 2>err
check 'as nobody: it cannot be' [ $? -eq 2 ]
check 'as nobody: says so' grep -q 'needs root' err
done_testing
