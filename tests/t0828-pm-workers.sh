#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage pm: a worker that is killed is replaced, and all states are checked; one that hangs is killed when
# it was silent for too long, which is an error, and the rest of its share is checked. The process that
# checks a single state ends in the same way. A command that hangs while it is found out what it reads is ended.
# takes 150 s
# shellcheck disable=SC2016,SC2317 # $1 is for the check; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_namespaces
undo=$(dirname "$OUTAGE")/tests/helpers/pm-undo
if ! command -v qemu-x86_64 >/dev/null; then
	echo '1..0 # SKIP there is no qemu-x86_64'
	exit 77
fi
pids=
# shellcheck disable=SC2154 # p is of the loop
trap 'for p in $pids; do kill -KILL "$p" 2>/dev/null; done; rm -rf "$dir"' EXIT

# A check that counts how often it is called. If that is the number in the file "at", it waits for "go".
cat >check.sh <<'END'
cd "$2" || exit 9
echo >>checks
n=$(wc -l <checks)
if [ -e at ] && grep -qx "$n" at; then
	: >"there-$n"
	until [ -e "go-$n" ]; do sleep 0.05; done
fi
case $n in
*[05]) echo it fails; exit 1 ;;
esac
END
# begin NAME AT OPTIONS...: a run in the directory NAME; the checks that have one of these numbers wait
begin() {
	local name=$1 at=$2
	shift 2
	mkdir "$name"
	(cd "$name" && truncate -s 64K pool)
	tr ' ' '\n' <<<"$at" >"$name/at"
	"$OUTAGE" pm --file "$name/pool" -o "$name/r" -j 1 --max-subset 1 --budget 60 --json "$@" \
		--check "sh '$dir/check.sh' \"\$1\" '$dir/$name'" -- "$undo" "$name/pool" noise >"$name/out" 2>"$name/err" </dev/null &
	pid=$!
	pids="$pids $pid"
}
# worker_at NAME N: its check N waits; WORKER is the process that called it
worker_at() {
	soon eval "[ -e '$1/there-$2' ] || ! kill -0 $pid 2>/dev/null"
	worker=$(pgrep -P "$pid")
}
# Without what depends on how often a check was called.
totals() { json_value '(d["crash_states"], d["unique_states"], d["checked"], d["errors"], d["pruned"])'; }

# It takes longest: its worker is stopped now, and the end of that is looked at below.
begin stopped 20 --timeout 60s
stopped=$pid
worker_at stopped 20
check 'one worker is there to be stopped' test "$(wc -w <<<"$worker")" = 1
held=$worker
kill -STOP "$held"
: >stopped/go-20

# The first check is of the whole run, in a process for it alone.
begin first 1 --timeout 60s
first=$pid
worker_at first 1
check 'a process checks the whole run' test "$(wc -w <<<"$worker")" = 1
held_first=$worker
kill -STOP "$held_first"
: >first/go-1
# One that traces what is read.
begin tracing 4 --timeout 60s --prune reads
tracing=$pid
worker_at tracing 4
check 'a process traces what is read' test "$(wc -w <<<"$worker")" = 1
held_tracing=$worker
kill -STOP "$held_tracing"
: >tracing/go-4

begin whole ''
check 'undisturbed: some fail' ended_in whole/ 1
whole=$(totals)
checked=$(json_value 'd["checked"]')
check 'undisturbed: more than 50 are checked' test "$checked" -gt 50

begin killed 20 --timeout 1h
worker_at killed 20
kill -KILL "$worker"
check 'killed: the run ends as if nothing had happened' ended_in killed/ 1
check 'killed: all states are checked' test "$(totals)" = "$whole"
check 'killed: one of them twice' test "$(wc -l <killed/checks)" = $((checked + 2))
check 'killed: which is said' grep -q 'a process that checks crash states was ended by signal 9 (Killed) at state .*; another one goes on' err
check 'killed: no other process is' test "$(grep -c 'goes on' err)" = 1

# The same state is called again, and its worker is killed each time.
begin deadly '20 21 22' --timeout 1h
for at in 20 21 22; do
	worker_at deadly $at
	kill -KILL "$worker"
done
check 'three workers are killed at a state: part of the run failed' ended_in deadly/ 2
check 'deadly: it is given up' test "$(json_value 'd["errors"]')" = 1
check 'deadly: and all others are checked' test "$(json_value 'd["checked"]')" = $((checked - 1))
check 'deadly: what failed is found' test "$(json_value 'd["findings"] > 0')" = True
check 'deadly: why is said' grep -q 'a process that checks crash states was ended by signal 9 (Killed) at state' err

# While it is found out what is read.
begin pruned '' --timeout 1h --prune reads
ended_in pruned/ 1
pruned=$(totals)
pruned_checked=$(json_value 'd["checked"]')
begin read 4 --timeout 1h --prune reads
worker_at read 4
kill -KILL "$worker"
check 'killed while a state is traced: the run ends well' ended_in read/ 1
check 'and all states are traced and checked' test "$(totals)" = "$pruned"
check 'and it was while it was traced' grep -q 'goes on' err

pid=$stopped
check 'stopped: part of the run failed' ended_in stopped/ 2
check 'stopped: one state is given up' test "$(json_value 'd["errors"]')" = 1
check 'stopped: all others are checked' test "$(json_value 'd["checked"]')" = $((checked - 1))
check 'stopped: why is said' grep -Eq 'a process that checks crash states did not answer for [0-9]+ s at state .*; process [0-9]+ .* was stopped from outside' err
check 'stopped: it is gone' test ! -e "/proc/$held"

pid=$first
check 'stopped at the whole run: it ends' ended_in first/ 2
check 'stopped at the whole run: why is said' grep -Eq 'a process of ours did not answer for [0-9]+ s at state .*; process [0-9]+ .* was stopped from outside' err
check 'stopped at the whole run: nothing is kept' test ! -e first/r
check 'stopped at the whole run: it is gone' test ! -e "/proc/$held_first"

pid=$tracing
check 'stopped while it traces: part of the run failed' ended_in tracing/ 2
check 'stopped while it traces: that is one error' test "$(json_value 'd["errors"]')" = 1
check 'stopped while it traces: no state is left out for it' test "$(json_value 'd["checked"]')" -ge "$pruned_checked"
check 'stopped while it traces: it is gone' test ! -e "/proc/$held_tracing"
pids=

# A command that hangs while it is traced is ended with what it started, and the next state is traced. On a busy
# machine others take long as well, and more time is given.
nap=5433.$$ # no other process sleeps for so long
cat >hangs.sh <<END
cd '$dir/hangs' || exit 9
echo >>checks
[ \$(wc -l <checks) != 4 ] || { setsid sleep $nap & sleep $nap; }
END
for seconds in 2 8 32 128; do
	rm -rf hangs
	mkdir hangs
	truncate -s 64K hangs/pool
	exits 0 "$OUTAGE" pm --file hangs/pool -o hangs/r -j 1 --max-subset 1 --budget 20 --timeout ${seconds}s --prune reads \
		--check "sh '$dir/hangs.sh' \"\$1\"" -- "$undo" hangs/pool noise && break
done
check 'a command hangs while it is traced: the run ends well' test "$status" = 0
check 'and others are traced after it' test "$(wc -l <hangs/checks)" -gt 4 -a "$(sed -n 's/.*, as seen in \([0-9]*\) runs.*/\1/p' out)" -gt 4
check 'and nothing of it is left' no_nap
done_testing
