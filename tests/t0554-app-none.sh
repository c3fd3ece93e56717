#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs of an application that are none: they fail by themselves, do not end, leave processes behind, are killed
# or stopped. Nothing stays behind.
# takes 20 s
# shellcheck disable=SC2016,SC2317 # commands for other shells; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/app-lib.sh
. "$root/tests/app-lib.sh"

fresh

# no_run NAME WORDS: it was refused
no_run() {
	check "$1: exit status 2" test $status = 2
	check "$1: is said" complains "$2"
	check "$1: in one line" test "$(wc -l <err)" = 1
}
app data --run 'echo boo >&2; exit 3' --check true
no_run "a run that fails by itself" "exit status 3.*boo"
app data --timeout 1s --run 'echo x >a; sleep 1000' --check true
no_run "a run that does not end" "did not end within 1 s"
app data --run 'echo x >a' --check false
no_run "a check that fails without a crash" "as the run left it"
app data --run 'echo x >a' --query 'date +%N'
no_run "a check that is not steady" "not always"
app data --run true --check true
no_run "a run that does nothing" "did nothing"
app data --run true
no_run "no check" "--check"
app nosuch --run true --check true
no_run "no directory" nosuch
(cd data && timeout 900 "$OUTAGE" app --run 'echo x >a' --check true -- .) >out 2>err
status=$?
no_run "results inside of the directory" "give another -o"
check "results inside of the directory: nothing is made there" test "$(ls -A data)" = settings
app data --run 'echo x >a' --check true
timeout 900 "$OUTAGE" app -o run --run 'echo x >a' --check true -- data >out 2>err
status=$?
no_run "results over others" "holds a run already"
nap=1234.$$ # no other process sleeps for so long
app data --run "echo x >a; (setsid sleep $nap &)" --check true
check "a process that is left is ended, and said" said "left a process behind"
check "a process that is left is gone" no_nap
app data --kill --run "echo x >a; (setsid sleep $nap &)" --check true
check "--kill: it is killed, and that is no news" test $status = 0 -a -z "$(grep behind out)"
# until it is gone: processes that are left then are news
app data --stop 'kill $(cat pid); while grep -q "^State:[^Z]*$" /proc/$(cat pid)/status; do sleep 0.05; done 2>/dev/null' --run "(setsid sleep $nap & echo \$! >pid)" --check true
check "--stop: it is ended by that, and that is no news" test $status = 0 -a -z "$(grep behind out)"
app data --run "echo x >a; echo y >'$dir/outside'" --check true
check "a file that is written outside is named" said "$dir/outside"
# The run has to end within that time, too. It takes a moment, and the last time is a limit for what hangs.
for seconds in 5 20 80 320; do
	app data --run 'echo x >a' --check 'sleep 1000' --timeout ${seconds}s
	complains 'did not end within' || break
done
no_run "a check that hangs without a crash" "as the run left it"
app data --run 'exit 1' --check true
check "of a run that failed nothing is kept" test ! -e run
check "nothing is left mounted" test -z "$(grep "$dir" /proc/mounts)"
if "${as_user[@]}" unshare --user true 2>/dev/null && "${as_user[@]}" test -w /dev/fuse; then
	deep=$(printf 'd/%.0s' {1..70})
	mkdir -p user/data
	chown -R 65534 user
	(cd user && "${as_user[@]}" timeout 900 "$OUTAGE" app -o run --run "mkdir -p $deep; chmod -R 555 d; exit 1" \
		--check true -- data) >out 2>err
	status=$?
	no_run "an ordinary user's run that fails" "exit status 1"
	check "... and of directories that may not be written to nothing is kept, however deep they are" test ! -e user/run
else
	skip "no user namespaces, or no FUSE, for ordinary users"
fi

# Killed while it records, it leaves nothing outside of its own directory.
rm -rf run
# begun FILE: it is there, or whoever would make it has ended
begun() {
	while_alive $pid test -e "$1"
}
timeout --foreground -s KILL 900 "$OUTAGE" app -o run --run ": >started; sleep $nap" --check true -- data >out 2>err &
pid=$!
begun run/work/started
check "killed: it was recording" test -e run/work/started
kill -KILL "$(pgrep -P $pid)"
wait $pid
check "killed: no process is left" no_nap
check "killed: nothing is mounted" test -z "$(grep "$dir" /proc/mounts)"

# Whoever stops it gets his machine back.
fresh
rm -rf run
# stopped CHECK: a run that gets SIGINT when states are being checked; the first few checks are made without
# a crash, to see that it is content then
stopped() {
	rm -rf run checks go
	env --default-signal=INT timeout --preserve-status -s INT 900 "$OUTAGE" app -o run -p minimal --timeout 1h --run 'for i in 1 2 3 4 5 6; do echo $i >f$i; done' \
		--check "echo >>'$dir/checks'; $1" -- data >out 2>err &
	pid=$!
	until [ "$(wc -l 2>/dev/null <checks || echo 0)" -gt 8 ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
	kill -INT $pid
	: >go
	wait $pid
}
stopped "[ \$(wc -l <'$dir/checks') -lt 9 ] || sleep $nap"
check "a signal ends it" test $? = 2
check "and it says so" grep -q 'stopped by a signal' err
check "no check is left" no_nap

stopped "while [ \$(wc -l <'$dir/checks') -gt 8 ] && [ ! -e '$dir/go' ]; do sleep 0.02; done"
check "a signal between checks: after how many of them is said" grep -qE 'after [0-9]+ of [0-9]+ states' err

# One that was killed is told from one that has ended.
fresh
rm -rf run
timeout --foreground -s KILL 900 "$OUTAGE" app -o run --run "echo x >a; sleep $nap" --check true -- data >out 2>err &
pid=$!
begun run/work/a
kill -KILL "$(pgrep -P $pid)"
wait $pid 2>/dev/null
check "killed again: no process is left" no_nap
timeout 900 "$OUTAGE" app -o run --run 'echo x >a' --check true -- data >out 2>err
status=$?
no_run "killed while it recorded: the same -o" "not finished: remove it"
timeout 900 "$OUTAGE" report run >out 2>err
status=$?
no_run "killed while it recorded: a report" "not finished"

done_testing
