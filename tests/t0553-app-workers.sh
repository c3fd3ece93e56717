#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage app: a process that checks crash states and is killed is replaced, and all states are checked. (One
# that hangs: tests/unit/app-check.c, which has the patience for it.)
# takes 10 s
# shellcheck disable=SC2016,SC2317 # commands for other shells; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
needs_namespaces
if [ "$(id -u)" != 0 ] || [ ! -c /dev/fuse ]; then
	echo "1..0 # SKIP this needs root and FUSE"
	exit 77
fi
pid=
trap '[ -z "$pid" ] || kill -KILL $pid 2>/dev/null; rm -rf "$dir"' EXIT
chmod 755 "$dir"
mkdir data

# A check that counts how often it is called; if that is the number in the file "which", it waits to be killed.
cat >looks <<END
#!/bin/sh
cd '$dir'
echo >>all
if [ "\$(wc -l <all)" = "\$(cat which)" ]; then
	: >there
	sleep 3600
fi
exit 0
END
chmod 755 looks
begin() { # AT
	rm -rf run all there
	echo "$1" >which
	"$OUTAGE" app -o run -p minimal -j 1 --timeout 1h --json --run 'for i in 1 2 3; do echo $i >f$i; done' \
		--check "$dir/looks" -- data >out 2>err </dev/null &
	pid=$!
}
json() { python3 -c 'import json, sys; d = json.load(open("out")); print(eval(sys.argv[1]))' "$1" 2>>err; }
# The child of the run that has mounts of its own: the other starts the checks.
worker() {
	local p
	for p in $(pgrep -P "$pid"); do
		[ "$(readlink "/proc/$p/ns/mnt")" = "$(readlink "/proc/$pid/ns/mnt")" ] || echo "$p"
	done
}

begin 0
wait "$pid"
check 'undisturbed: nothing is found' test $? = 0
calls=$(wc -l <all)
states=$(json 'd["checked"]')
check 'undisturbed: there are some states' test "$states" -gt 4
begin $((calls - 2))
soon eval "[ -e there ] || ! kill -0 $pid 2>/dev/null"
killed=$(worker)
check 'a process checks' test "$(wc -w <<<"$killed")" = 1
kill -KILL "$killed"
wait "$pid"
check 'it is killed: nothing is found' test $? = 0
pid=
check 'all states are checked' test "$(json 'd["checked"]')" = "$states"
check 'without an error' test "$(json 'd["errors"]')" = 0
check 'one of them twice' test "$(wc -l <all)" = $((calls + 1))
check 'no check is left' soon eval '! pgrep -x looks >/dev/null'
done_testing
