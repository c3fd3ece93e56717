# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # dir: lib.sh; status: the tests
# resume-lib.sh - for tests of runs that are interrupted and go on. Sourced after lib.sh.
#
# A check that is counted runs the commands $counts, and is given an hour.
counts="echo >>'$dir/asked'
[ ! -e '$dir/slow' ] || . '$dir/slow'"
# slow_after N COMMAND: all but so many checks run it; so a run goes on for as long as it takes to interrupt it
slow_after() { echo "[ \$(wc -l <'$dir/asked') -le $1 ] || $2" >slow; }
pid=
trap '[ -z "$pid" ] || kill -KILL $pid 2>/dev/null; rm -rf "$dir"' EXIT

# asked: how many checks there were since the last `forget_asked`
asked() { wc -l <asked 2>/dev/null || echo 0; }
forget_asked() { : >asked; }
# interrupted SIGNAL N COMMAND...: it gets the signal after N checks
interrupted() {
	local signal=$1 n=$2
	forget_asked
	slow_after "$n" "while [ -e '$dir/slow' ]; do sleep 0.02; done"
	env --default-signal=INT,TERM "${@:3}" >out 2>err </dev/null &
	pid=$!
	soon eval "[ \$(asked) -ge $n ] || ! kill -0 $pid 2>/dev/null"
	kill -s "$signal" $pid
	wait $pid 2>/dev/null
	status=$?
	pid=
	rm slow
}
# timed_out COMMAND...: it ends because $seconds are over, in which some checks have been made; for with_time
timed_out() {
	rm -rf run
	forget_asked
	slow_after 8 "sleep $seconds"
	timeout 900 "$1" "$2" --time "${seconds}s" "${@:3}" >out 2>err </dev/null
	rm slow
	[ "$(asked)" -gt 8 ]
}
# unasked RUN COPY: a copy of a run that was killed as soon as it was recorded
unasked() {
	rm -rf "$2"
	cp -a "$1" "$2"
	rm -rf "$2"/answers "$2"/summary "$2"/recovery "$2"/findings/*
}
# found_in RUN: its findings, and which states each has, whatever their numbers are
found_in() {
	timeout 900 "$OUTAGE" report "$1" --json >report.json 2>err
	json_value 'sorted(str([(k, v) for k, v in sorted(f.items()) if not isinstance(v, str) or "/findings/" not in v]) for f in d["findings"])' report.json
}
# resumed RUN [OPTION...]: it goes on to its end; the status is in $status
resumed() {
	forget_asked
	timeout 900 "$OUTAGE" "$command" --resume "$@" >out 2>err </dev/null
	status=$?
}
# [restarts=1] goes_on NAME: `run`, which was interrupted, has in the end what it would have had, and asks less for it
goes_on() {
	local all
	check "$1: it has not ended" test ! -e run/summary -o $status -ne 1
	unasked run other
	resumed other
	all=$(asked)
	check "$1: without a word it does everything" test $status -eq 1
	resumed run
	check "$1: it goes on" test $status -eq 1
	check "$1: and asks only what is not known" test "$(asked)" -lt "$all"
	check "$1: it has found what is found without an interruption" test "$(found_in run)" = "$(found_in other)"
	check "$1: which is something" test "$(found_in run)" != '[]'
	check "$1: nothing else is there" test "$(find run/findings -mindepth 1 -maxdepth 1 | wc -l)" = "$(sed -n 's/^findings //p' run/summary)"
	resumed run
	[ -z "${restarts-}" ] || return # what is recorded again is another record
	check "$1: once more there is nothing to ask" test $status -eq 1 -a "$(asked)" -le 3
}
