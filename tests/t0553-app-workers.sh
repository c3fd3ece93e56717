#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage app: a process that checks crash states and is killed is replaced, and all states are checked. One that
# hangs is killed and replaced, and the state that it had is an error. A check that hangs is ended with all that it
# started, and is a finding.
# takes 90 s
# shellcheck disable=SC2016,SC2317 # commands for other shells; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_namespaces
requires_root
requires_fuse
pid='' stopped=''
trap '[ -z "$pid$stopped" ] || kill -KILL $pid $stopped 2>/dev/null; rm -rf "$dir"' EXIT
chmod 755 "$dir"
mkdir data

# A check that counts how often it is called; if that is the number in the file "which", it waits: for the file "go",
# or to be killed.
cat >looks <<END
#!/bin/sh
cd '$dir'/\$1
echo >>all
if [ "\$(wc -l <all)" = "\$(cat which)" ]; then
	: >there
	until [ -e go ]; do sleep 0.05; done
fi
exit 0
END
chmod 755 looks
begin() { # AT NAME TIMEOUT
	rm -rf "$2"
	mkdir "$2"
	echo "$1" >"$2/which"
	"$OUTAGE" app -o "$2/run" -p minimal -j 1 --timeout "$3" --json --run 'for i in 1 2 3; do echo $i >f$i; done' \
		--check "$dir/looks $2" -- data >"$2/out" 2>"$2/err" </dev/null &
	pid=$!
}
came_to() { # NAME
	wait "$pid"
	status=$?
	pid=
	cp "$1/out" out
	cp "$1/err" err
}
# The child of the run that has mounts of its own: the other starts the checks.
worker() {
	local p
	for p in $(pgrep -P "$pid"); do
		[ "$(readlink "/proc/$p/ns/mnt")" = "$(readlink "/proc/$pid/ns/mnt")" ] || echo "$p"
	done
}

begin 0 whole 1h
came_to whole
check 'undisturbed: nothing is found' test "$status" = 0
calls=$(wc -l <whole/all)
states=$(json_value 'd["checked"]')
check 'undisturbed: there are some states' test "$states" -gt 4

# This takes longest: the worker is stopped now, and the end of it is looked at below.
begin $((calls - 2)) hung 20s
soon eval "[ -e hung/there ] || ! kill -0 $pid 2>/dev/null"
held=$(worker)
check 'one process is there to be stopped' test "$(wc -w <<<"$held")" = 1
kill -STOP "$held"
: >hung/go
stopped=$pid

begin $((calls - 2)) killed 1h
soon eval "[ -e killed/there ] || ! kill -0 $pid 2>/dev/null"
killed=$(worker)
check 'a process checks' test "$(wc -w <<<"$killed")" = 1
kill -KILL "$killed"
came_to killed
check 'it is killed: nothing is found' test "$status" = 0
check 'all states are checked' test "$(json_value 'd["checked"]')" = "$states"
check 'without an error' test "$(json_value 'd["errors"]')" = 0
check 'one of them twice' test "$(wc -l <killed/all)" = $((calls + 1))
check 'no check is left' soon eval '! pgrep -x looks >/dev/null'

# A check that hangs in some states: it waits for what it started, which left its session and hears no signal. How
# long the others take is not known: on a busy machine more time is given, until the run as it ended passes.
nap=5434.$$ # no other process sleeps for so long
cat >hangs <<END
#!/bin/sh
[ -e f2 ] || [ ! -e f1 ] && exit 0
trap '' TERM HUP INT
setsid sh -c 'trap "" TERM HUP INT; sleep $nap; :' &
sleep $nap
:
END
chmod 755 hangs
for seconds in 1 4 16 64; do
	rm -rf run
	exits 1 "$OUTAGE" app -o run -p minimal -j 2 --timeout ${seconds}s --json --run 'echo >f1; echo >f2' \
		--check "$dir/hangs" -- data && break
done
check 'a check hangs: that is found' test "$status" = 1
check 'a check hangs: it is said how it ended' eval "'$OUTAGE' report run >report && grep -q 'did not end in its time' report"
check 'a check hangs: the others are checked' test "$(json_value 'd["errors"] == 0 and d["checked"] > d["failing"]')" = True
check 'a check hangs: nothing of it is left' no_nap

pid=$stopped stopped=''
came_to hung
check 'a process is stopped: part of the run failed' test "$status" = 2
check 'a process is stopped: the others are done' json "d['checked'] == $states - 1 and d['errors'] == 1 and d['failing'] == 0"
check 'a process is stopped: which is said' grep -q '1 state could not be checked: the process that checked it did not answer for' err
check 'a process is stopped: it is gone' test ! -e "/proc/$held"
done_testing
