#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage pm: what failed before a signal, or the end of --time, is kept and counted.
# takes 10 s
# shellcheck disable=SC2016,SC2317 # $1 is for the check; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_namespaces
undo=$helpers/pm-undo
requires_tools qemu-x86_64:qemu-user
pid=
trap '[ -z "$pid" ] || kill -KILL $pid 2>/dev/null; rm -rf "$dir"' EXIT
nap=5432.$$ # no other process sleeps for so long
truncate -s 64K pool
# until_there FILE: or whoever would make it has ended
until_there() { soon eval "[ -e $1 ] || ! kill -0 $pid 2>/dev/null"; }

# The first check is of the whole run. The second fails, but not before it is told to, and the third hangs.
cat >fails.sh <<END
cd '$dir'
echo >>checks
case \$(wc -l <checks) in
1) exit 0 ;;
2) : >second; until [ -e go ]; do sleep 0.05; done; echo it fails; exit 1 ;;
*) : >third; sleep $nap ;;
esac
END
# What a worker tells while its parent is stopped is in a pipe when the parent gets the signal.
rm -rf r checks second third go
"$OUTAGE" pm --file pool -o r -j 1 --timeout 1h --json --check "sh '$dir/fails.sh'" \
	-- "$undo" pool noise >out 2>err &
pid=$!
until_there second
kill -STOP $pid
: >go
until_there third
kill -TERM $pid
kill -CONT $pid
wait $pid
check "a signal: ends it" test $? = 2 -a -e third
pid=
check "a signal: which is said" grep -q 'stopped by a signal; what was found is in' err
check "a signal: no check is left" no_nap
check "a signal: what failed is kept" test -s r/findings/0/case -a -s r/findings/0/said
check "a signal: and counted" test "$(json_value '(d["checked"], d["failing"], d["findings"])')" = '(1, 1, 1)'
check "a signal: of states that are known" test "$(json_value 'd["unique_states"] >= d["checked"]')" = True
check "a signal: a report tells it" eval "timeout 900 '$OUTAGE' report r >report && grep -q 'it fails' report"

# Recoveries are not tried when the time is up; each would take as long again.
for seconds in 1 4 16 64 256; do
	rm -rf r
	timeout 900 "$OUTAGE" pm --file pool -o r -j 2 --time ${seconds}s --json --crash recovery --recover "$undo \"\$1\" sick" \
		--check "sleep 0.1; $undo \"\$1\" check" -- "$undo" pool noise >out 2>err
	[ "$(json_value 'd["recovery_ways"] > 0')" != True ] || break
done
check '--time: it is up before all is tried' test "$(json_value 'd["budget_hit"] and d["recovery_ways"] > 0')" = True
check '--time: no recovery is tried then' test "$(json_value 'd["recoveries"]')" = 0
done_testing
