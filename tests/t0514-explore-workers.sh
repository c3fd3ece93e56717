#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage explore: another process goes on with the task of one that was killed. (A task that hangs is a
# finding: t0511-explore-cut.sh.)
# takes 20 s
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
pid=
trap '[ -z "$pid" ] || kill -KILL $pid 2>/dev/null; rm -rf "$dir"' EXIT
limit=100000 # operations: much more than are done before a process is killed that was just seen

explore() { # NAME OPTIONS...
	local name=$1
	shift
	"$OUTAGE" explore -t reffs -j 1 --limit "$limit" --json -o "$name" "$@" >"$name.out" 2>"$name.err" </dev/null &
	pid=$!
}
task() { pgrep -P "$pid"; }
another() { [ -n "$(task)" ] && [ "$(task)" != "$first" ]; }
kill_task() {
	soon task >/dev/null
	first=$(task)
	kill -KILL "$first"
}
told() { grep -q 'a task was ended by signal 9 (Killed); another process goes on with it' err; }

for order in depth breadth; do
	explore "$order" --order "$order"
	check "$order: undisturbed, nothing is found" ended_in "$order." 0
	all=$(json_value '(d["operations"], d["states"], d["revisits"], d["findings"])')
	explore "$order-killed" --order "$order"
	kill_task
	check "$order: its process is killed, and nothing is found" ended_in "$order-killed." 0
	check "$order: which is said" told
	check "$order: the search is the same" test "$(json_value '(d["operations"], d["states"], d["revisits"], d["findings"])')" = "$all"
done

explore walk --order walk
kill_task
check 'walk: there is another process' soon another
kill_task
check 'walk: two of them are killed, and nothing is found' ended_in walk. 0
check 'walk: which is said' told
check 'walk: all operations are done' test "$(json_value "d['operations'] >= $limit")" = True
check 'walk: without an error' test "$(json_value 'd["errors"]')" = 0

# A task that kills all its processes is given up.
explore deadly --order walk --limit 100000000
for round in 1 2 3; do
	kill_task
	check "deadly: there is another process, $round" soon another
done
kill_task
ended_in deadly. 0
check 'deadly: which is an error' test "$status" -eq 2
check 'deadly: that is said' grep -q 'a task was ended by signal 9 (Killed)$' err
check 'deadly: and counted' test "$(json_value 'd["errors"]')" = 1
done_testing
