#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0467-no-finding-lost.sh - a finding that was told and kept is counted, and stays where it is, also
# if its workload was interrupted and does not show it again.
# takes 13 s
# shellcheck disable=SC2317,SC2016 # functions are called through check; commands for eval
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

requires_seedfs
requires_tools python3 pgrep

# A user's check. The file "mood" says whether each state in turn is good, bad, or takes for ever.
cat >check <<'END_CHECK'
cd "$1" || exit 9
n=$(cat n 2>/dev/null || echo 0)
echo $((n + 1)) >n
case $(cut -d ' ' -f $((n + 1)) mood) in
bad) exit 1 ;;
wait) echo $$ >asleep && exec sleep 900 ;;
esac
exit 0
END_CHECK
printf '%s\n' 'workload w' 'creat foo' 'fsync foo' 'creat bar' 'fsync bar' >w

# begin NAME OPTIONS...: a run of one workload, NAME.run; its first state is bad, and at the second it
# waits: then PID is its process, and WORKER that of its worker
begin() {
	local name=$1
	shift
	mkdir "$name"
	launch "$name" 'bad wait' -t "fuse:$seedfs mount {disk} {mnt} -f" --mkfs "$seedfs mkfs {disk}" --size 4M \
		--check "sh $dir/check $dir/$name" -o "$name.run" "$@" w
}
launch() { # NAME MOOD OPTIONS...
	local name=$1
	echo "$2" >"$name/mood"
	rm -f "$name/n" "$name/asleep"
	shift 2
	"$OUTAGE" test -j 1 "$@" >"$name.out" 2>"$name.err" </dev/null &
	pid=$!
	soon eval "[ -s $name/asleep ] || ! kill -0 $pid 2>/dev/null"
	worker=$(pgrep -P "$pid" | head -n 1)
}
# ends NAME PID: waits for it; its output is that of the checks below
ends() {
	wait "$2"
	status=$?
	cp "$1.out" out
	cp "$1.err" err
	kill "$(cat "$1/asleep")" 2>/dev/null
}
# resume NAME MOOD STATUS OPTIONS...
resume() {
	local name=$1 want=$3
	echo "$2" >"$name/mood"
	rm -f "$name/n"
	shift 3
	timeout 900 "$OUTAGE" test --resume "$name.run" -j 1 "$@" >out 2>err </dev/null
	test $? -eq "$want"
}
kept() { [ "$(cd "$1.run/findings" && echo *)" = "$2" ]; } # NAME NAMES

# ---- what was told is counted ----

begin told
told=$pid
kill -TERM "$told" # the worker sleeps, and does not answer: it is killed after ten seconds
begin told-json --json
told_json=$pid
kill -TERM "$told_json"
begin died
kill -KILL "$worker"
ends died "$pid"
check 'a worker dies after it found something: an error' test "$status" -eq 2
check 'and its finding counts' grep -q '^1 finding in 1 cluster, kept in died.run' out
begin died-json --json
kill -KILL "$worker"
ends died-json "$pid"
check 'as JSON, too' json 'd["findings"] == 1 and d["clusters"] == 1 and d["errors"] == 1'

# ---- and what was kept stays ----

cp -r died.run/findings/0-0 first
check 'resumed, another shows' resume died 'good bad' 1 --json
check 'both count' json 'd["findings"] == 2 and d["not_again"] == 1 and d["not_kept"] == 0'
check 'and are kept' kept died '0-0 0-1'
check 'the first as it was' diff first/problems died.run/findings/0-0/problems
check 'the other is of another state' \
	eval '[ "$(grep "^state" died.run/findings/0-0/case)" != "$(grep "^state" died.run/findings/0-1/case)" ]'

# Resumed, and interrupted again before it shows.
launch died-json 'wait' --resume died-json.run
kill -KILL "$worker"
ends died-json "$pid"
check 'interrupted again, it is an error again' test "$status" -eq 2
check 'what was kept counts' grep -q '^1 finding in 1 cluster, kept in died-json.run' out
check 'and stays' kept died-json 0-0

# ---- the same after a signal ----

ends told "$told"
check 'a signal comes after something was found: it stops' test "$status" -eq 2
check 'the finding counts' grep -q '^1 finding in 1 cluster, kept in told.run' out
check 'and nobody says that nothing was tried' eval '! grep -q "nothing was tried" out err'
ends told-json "$told_json"
check 'as JSON, as well' json 'd["findings"] == 1 and d["errors"] == 0 and d["workloads"] == 0'

cp -r told.run/findings/0-0 first-told
check 'resumed, nothing shows again: that is a finding still' resume told 'good good' 1
check 'it is where it was' diff -r first-told told.run/findings/0-0
check 'it counts' grep -q '^1 finding in 1 cluster, kept in told.run' out
check 'and is told' grep -qx '1 of them was found before the run was resumed, and did not show again: told.run/findings/0-0' out
check 'resumed once more, the run is finished' resume told '' 1 --json
check 'with the same result' json 'd["workloads"] == 1 and d["findings"] == 1 and d["not_kept"] == 0'
check 'the report has it' eval 'timeout 900 "$OUTAGE" report told.run >out 2>err; grep -q "1 in 1 cluster; 1 kept" out'

check 'resumed, it shows again' resume told-json 'bad bad' 1 --json
check 'it counts once' json 'd["findings"] == 2 and d["not_again"] == 0 and d["not_kept"] == 0'
check 'and has its name' kept told-json '0-0 0-1'
done_testing
