#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage explore: another process goes on with the task of one that was killed, or, where a walk hangs, with the
# next walk. (A task that hangs is a finding: t0511-explore-cut.sh.)
# takes 40 s
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
pid=
trap '[ -z "$pid" ] || kill -KILL $pid 2>/dev/null; rm -rf "$dir"' EXIT
limit=100000 # operations

explore() { # NAME OPTIONS...
	local name=$1
	shift
	"$OUTAGE" explore -t reffs -j 1 --limit "$limit" --json -o "$name" "$@" >"$name.out" 2>"$name.err" </dev/null &
	pid=$!
}
task() { pgrep -P "$pid"; }
# over: the run has ended, or is about to
over() { case $(ps -o stat= -p "$pid") in '' | Z*) return 0 ;; *) return 1 ;; esac; }
another() { next=$(task) && [ -n "$next" ] && [ "$next" != "$first" ]; }
# seen CONDITION: soon; false if the run is over
seen() { soon eval "$1 || over" && "$1"; }
# kill_task: kills the process of the task; false if there is none any more
found() { first=$(task) && [ -n "$first" ]; }
kill_task() { seen found && kill -KILL "$first"; }
# in_time ACTION...: does it to a run that is not over yet; for a slow tester, the run must be longer
in_time() {
	local tries
	for tries in 1 2 3 4; do
		"$@" && return 0
		ended_in "$as." 0
		rm -rf "$as"
		limit=$((limit * 10))
	done
	return 1
}
told() { grep -q 'a task was ended by signal 9 (Killed); another process goes on with it' err; }

once() { explore "$as" --order "$order" && kill_task; }
counts() { json_value '(d["operations"], d["states"], d["revisits"], d["findings"])'; }
for order in depth breadth; do
	as=$order-killed
	check "$order: its process is killed" in_time once
	check "$order: ... and nothing is found" ended_in "$as." 0
	check "$order: which is said" told
	killed=$(counts)
	explore "$order" --order "$order"
	check "$order: undisturbed, nothing is found" ended_in "$order." 0
	check "$order: the search is the same" test "$(counts)" = "$killed"
done

as=walk order=walk
twice() { once && seen another && kill_task; }
check 'walk: a process is killed, and the next' in_time twice
check 'walk: nothing is found' ended_in walk. 0
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

# Every walk comes to the operation that hangs.
trial=("$mutant" explore)
hangs() {
	tries 1 -t mutant:hang -j 1 --order walk --findings 3 --hang-after "${seconds}s" &&
		[ "$(tail -qn 1 kept/findings/*/workload | grep -c '^link')" = 3 ]
}
check 'hangs: three walks that hang are three findings' with_time 4 hangs
check 'hangs: which is said' test "$(grep -c 'another process goes on with the next walk' err)" = 2
check 'hangs: they are different walks' eval '! cmp -s kept/findings/999000-0/workload kept/findings/999001-0/workload'
check 'hangs: without an error' test "$(grep -c '^outage: ' err)" = 2
check 'hangs: what was done counts' says '^mutant:hang: [0-9]+ operations'
ends() { tries 1 -t mutant:hang --findings 3 --hang-after "${seconds}s" && [ "$(ls kept/findings)" = 999000-0 ]; }
check 'other orders end where they hang' with_time 4 ends
done_testing
