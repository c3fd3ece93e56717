#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0511-explore-cut.sh - what outage explore finds is kept before it is made smaller: the end of its time,
# signals, and tasks that die or hang meanwhile lose nothing.
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cut-lib.sh
. "$root/tests/cut-lib.sh"

# A mutant waits where OUTAGE_HOLD_AT says; see tests/mutant/mutant.c. Of the bug that is searched here, "1" is
# when it is found, and "2" the first try to see it again.
# begin AT TASKS ARGS...: explores until so many tasks are held there
begin() {
	local at=$1 tasks=$2
	shift 2
	rm -rf hold run && mkdir hold
	OUTAGE_HOLD=$dir/hold OUTAGE_HOLD_AT=$at env --default-signal=INT,TERM,HUP timeout -s KILL 900 \
		"$mutant" explore -o run "$@" >out 2>err </dev/null &
	pid=$!
	until_true held "$tasks"
}
held() { [ "$(find hold -name 'held-*' | wc -l)" -ge "$1" ]; }
# complete FINDING: it is there, and report and replay can read it
complete() {
	[ -s "$1/case" ] && [ -s "$1/problems" ] && [ -s "$1/seen" ] || return 1
	timeout 900 "$mutant" report "$1" >report.out 2>err.report || { cat err.report; return 1; }
	timeout 900 "$mutant" explore --replay "$1" >replay.out 2>&1
	[ $? -eq 1 ] && grep -q '^shown 3 of 3 times' replay.out
}
only() { [ "$(ls -A run/findings)" = "$1" ]; } # there is nothing else, not even what is hidden
# Without states that are saved on the way: there is one every 64 steps.
search=(-t mutant:errno --order walk --depth 60 --findings 1 --seed 5)

# ---- signals ----

for signal in TERM INT HUP; do
	check "$signal: the first try is held" begin 2 1 "${search[@]}"
	check '... and what was found is there already, whole' complete run/findings/1-0
	check '... as it was found' grep -q '^shown 0 of 0' run/findings/1-0/case
	check '... a signal is seen' eval 'kill -$signal "$(child)" && until_true stopping'
	check '... and ends it' ends 2
	check '... after no other operation' test ! -e hold/after
	check '... which is said' grep -q '^shrinking was cut short for 1 finding' out
	check '... of what was found' grep -q '^found  unlink .*(shown 1 of 1 times; shrinking was cut short)' out
	check '... and kept' complete run/findings/1-0
	check '... alone' only 1-0
done
check 'in the middle of shrinking' begin 12 1 "${search[@]}"
check '... what is there is smaller than what was found' \
	test "$(operations run/findings/1-0)" -lt "$(operations run/whole/1-0)"
check '... and complete' complete run/findings/1-0
was=$(operations run/findings/1-0)
check '... a signal is seen' eval 'kill -TERM "$(child)" && until_true stopping'
check '... and ends it' ends 2
check '... with the smallest so far' test "$(operations run/findings/1-0)" -le "$was"
check '... which is complete' complete run/findings/1-0
check '... as is what was found' complete run/whole/1-0
check '... and nothing else' only 1-0
check '... after no other operation' test ! -e hold/after

# ---- going on ----

cp -r run/findings/1-0 before
resumed() { timeout -s KILL 900 "$mutant" explore "${search[@]}" --resume run "$@" >out 2>err; }
check 'it goes on from there' eval 'resumed; [ $? -eq 1 ]'
check '... what was kept is as it was' diff -r before run/findings/1-0
check '... what is found now has a name of its own' complete run/findings/2-0
check '... and is made as small as it gets' test "$(operations run/findings/2-0)" -eq 2
check '... what was found before is not forgotten' grep -q '^1 finding was found before' out
check '... also if nothing more is found' eval 'resumed --json --limit 1; [ $? -eq 1 ]'
check '... which is said' grep -q '"findings_before": 2' out

# ---- time ----

# begin_timed ARGS...: with as much time as it takes to come to the fourth try
begin_timed() {
	local seconds
	for seconds in 5 20 80 320; do
		begin 4 1 "${search[@]}" --time "${seconds}s" "$@" && return 0
		wait "$pid"
	done
	return 1
}
check 'time: a try is held' begin_timed
check '... until the time is up' until_true stopping
check '... that ends it, with a finding' ends 1
check '... after no other operation' test ! -e hold/after
check '... which is said' grep -q '^shrinking was cut short for 1 finding' out
check '... and kept' complete run/findings/1-0
check 'with JSON' begin_timed --json
check '... until the time is up' until_true stopping
check '... it ends' ends 1
check '... and says so' grep -q '"cut_short": 1' out

# ---- other searches, and many tasks ----

for order in depth breadth; do
	check "$order first: a try is held" begin 3 1 -t mutant:errno --order $order --findings 1 --time 800s
	check '... a signal is seen' eval 'kill -TERM "$(child)" && until_true stopping'
	check '... and ends it' ends 2
	check '... what was found is kept' complete run/findings/1-0
done
check 'two tasks are held' begin 3 2 "${search[@]}" -j 2
check '... a signal is seen' eval 'kill -TERM "$(child)" && until_true stopping'
check '... and ends both' ends 2
check '... which is said' grep -q '^shrinking was cut short for 2 findings' out
check '... the first is kept' complete run/findings/1-0
check '... and the second' complete run/findings/1-1

# ---- what dies, and what hangs ----

check 'a task is held' begin 12 1 "${search[@]}"
check '... and killed' eval 'kill -KILL "$(pgrep -P "$(child)")"'
check '... which is a failure' ends 2
check '... but what was found is told' grep -q '^found  unlink .*the task ended while this was made smaller' out
check '... and kept' complete run/findings/1-0
check 'a run is held' begin 12 1 "${search[@]}"
check '... and killed' eval 'kill -KILL "$(child)"; wait "$pid"; [ $? -eq 137 ]'
check '... what was found is kept' complete run/findings/1-0
hangs() {
	begin "$@" --hang-after "${seconds}s" || return
	wait "$pid"
	[ $? -eq 1 ] && says 'did not answer for .* while a finding was made smaller'
}
check 'a task hangs, which is a finding' with_time 20 hangs 4 1 "${search[@]}"
check '... with what was tried' test "$(operations run/findings/999000-0)" -le "$(operations run/whole/1-0)"
check '... up to the operation that hung' eval 'tail -n 1 run/findings/999000-0/workload | grep -q "^unlink"'
check '... what had been found is told' grep -q '^found  unlink .*the task ended while this was made smaller' out
check '... and kept' complete run/findings/1-0
check '... both count' grep -q '^2 findings, kept in run' out

check 'a task hangs in a try from a state that was saved' \
	with_time 20 hangs 2 1 -t mutant:errno --order walk --findings 1 --seed 5
check '... the finding of that begins with the empty file system' \
	test "$(operations run/findings/999000-0)" -gt 300

done_testing
