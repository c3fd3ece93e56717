#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage app: a state that failed is kept before it is explained, whatever ends the explanation.
# Commands for other shells are in single quotes; functions are called through check and soon.
# takes 15 s
# shellcheck disable=SC2016,SC2317
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_namespaces

requires_root
requires_fuse
pid=
trap '[ -z "$pid" ] || kill -KILL $pid 2>/dev/null; rm -rf "$dir"' EXIT
chmod 755 "$dir"
mkdir data
nap=4321.$$ # no other process sleeps for so long

# The first few checks succeed, as many as are made of the directory without a crash. All states fail, so
# the first one is explained; for that it is checked again, and then the check hangs.
cat >looks <<END
#!/bin/sh
cd '$dir'
echo >>all
[ \$(wc -l <all) -gt \$(cat passes) ] || exit 0
state=seen/\$( (ls data; cksum data/* "\$OUTAGE_ACKED") | cksum | tr ' ' -)
if [ -d seen ] && ! mkdir \$state 2>/dev/null; then
	: >explaining
	sleep $nap
fi
echo it fails
exit 1
END
chmod 755 looks
run='for i in 1 2 3 4 5 6; do echo $i >f$i; done; echo end >end'

# begin OPTION...: in the background, with its process in $pid
begin() {
	rm -rf run all seen explaining
	mkdir seen
	echo 3 >passes
	env --default-signal=INT,TERM,HUP "$OUTAGE" app -o run -p minimal --timeout 1h "$@" --run "$run" \
		--check "$dir/looks" -- data >out 2>err &
	pid=$!
}
has_ended() { ! kill -0 "$pid" 2>/dev/null; }
# until_begun N: the first state is being explained, and checks of N states have begun; or it has ended
until_begun() {
	begun() { [ -e explaining ] && [ "$(find seen -mindepth 1 | wc -l)" -ge "$1" ]; }
	soon eval "begun $1 || has_ended"
}
# replays: finding 0 fails again, and the directory without a crash does not
replays() {
	rm -rf all seen
	echo 1 >passes
	timeout 900 "$OUTAGE" replay run/findings/0 >out 2>err
	[ $? = 1 ]
}
# finish: waits for the end, for which there is no reason to take long; the status is in $status
finish() {
	soon has_ended || kill -KILL $pid
	wait $pid 2>/dev/null
	status=$?
	pid=
}
# in_all: how many states the findings have together
in_all() { json_value 'sum(f["states"] for f in d["findings"])' report.json; }

# ---- signals ----

for signal in INT TERM HUP; do
	begin -j 1
	until_begun 1
	kill -s $signal $pid
	finish
	check "SIG$signal: ends it at once, with the check that runs" test $status = 2 -a -e explaining
	check "SIG$signal: which is said" grep -q 'stopped by a signal after [0-9]* of [0-9]* states' err
	check "SIG$signal: no check is left" no_nap
	check "SIG$signal: what failed is kept" test -s run/findings/0/case -a -s run/findings/0/said -a -s run/findings/0/trace
	check "SIG$signal: and told, with what is not known" \
		grep -q 'the cause is not known, as a signal cut the explanation short; here .* is lost by a crash after' out
	check "SIG$signal: no cause, nothing that mends it" test "$(grep -cE '^(fix|cause)' run/findings/0/case)" = 0
	timeout 900 "$OUTAGE" report run --json >report.json 2>err
	check "SIG$signal: the summary has as many as there are" \
		test "$(json_value 'len(d["findings"])' report.json)" = "$(sed -n 's/^findings //p' run/summary)"
	check "SIG$signal: each state that failed is in one" test "$(in_all)" = "$(json_value 'd["failing"]' report.json)"
done
timeout 900 "$OUTAGE" report run >out 2>err
check "report: says that it is not explained" grep -q 'the cause is not known' out
check "report: and how many are not" grep -q 'note: the cause of [1-9][0-9]* findings\? is not known' out
check "report --json: too" test "$(json_value '{f["explained"] for f in d["findings"]}' report.json)" = '{False}'
check "replay: it shows again" replays

# What other processes have found by then is not lost. Of two, each with two states, all but the one that
# is explained have begun: so one of those has ended.
begin -j 2 --json
until_begun 4
kill -INT $pid
finish
timeout 900 "$OUTAGE" report run --json >report.json 2>>err
check "a signal with --json: the object is there" test "$(json_value 'd["findings"] == d["unexplained"] >= 1' out)" = True
check "checks that ended before are counted" test "$(json_value 'd["failing"]' out)" -ge 2
check "and each is in a finding" test "$(in_all)" = "$(json_value 'd["failing"]' out)"

# Before a state is tried there is nothing to keep.
rm -rf run explaining
env --default-signal=INT "$OUTAGE" app -o run --timeout 1h --run "$run" --check ": >'$dir/explaining'; sleep $nap" -- data >out 2>err &
pid=$!
rm -rf seen
mkdir -p seen/first
until_begun 1
kill -INT $pid
finish
check "a signal in the first check: ends it at once" test $status = 2 -a -e explaining
check "a signal in the first check: is said" grep -q 'stopped by a signal' err
check "a signal in the first check: no check is left" no_nap
check "a signal in the first check: no run is left" test ! -e run

# ---- the time ----

# Until one is long enough for a state to fail.
for seconds in 1 4 16 64 256; do
	begin -j 1 --time ${seconds}s
	finish
	[ ! -e explaining ] || break
done
check "--time: ends it, and the check that runs" test $status = 1 -a -e explaining
check "--time: no check is left" no_nap
check "--time: what failed is kept" test -s run/findings/0/case
check "--time: and told, with what is not known" grep -q 'as the end of --time cut the explanation short' out
check "--time: and counted" grep -q '^[1-9][0-9]* findings\? with profile minimal' out

# ---- killed ----

begin -j 1
until_begun 1
kill -KILL $pid
finish
check "killed: no check is left" no_nap
check "killed: what failed is kept" test -s run/findings/0/case -a -s run/findings/0/said
timeout 900 "$OUTAGE" report run >out 2>err
check "killed: a report reads it" grep -q 'the cause is not known, as the explanation did not come to its end' out
check "killed: replay, too" replays

# ---- if nothing ends it ----

rm -rf run
timeout 900 "$OUTAGE" app -o run -p minimal --budget 200 --json --run "$run" --check '[ -e end ] && [ -e f1 ]' -- data >out 2>err
check "undisturbed: it is explained" test "$(json_value 'd["unexplained"]' out)" = 0
check "undisturbed: what failed for a known reason is no finding of its own" \
	test "$(ls -A run/findings)" = "$(seq 0 $(($(json_value 'd["findings"]' out) - 1)))"
rm -rf run count
timeout 900 "$OUTAGE" app -j 1 -o run -p minimal --run 'echo x >u; sync u .' \
	--check "[ -e u ] || { echo >>'$dir/count'; [ \$(wc -l <'$dir/count') != 1 ]; }" -- data >out 2>err
check "a state that fails once and not again is a finding" test $? = 1
check "which says how often" grep -q 'shown 1 of 6 times: the check depends on more than the directory' out
check "and why there is no cause" grep -q 'as the check does not always say the same of one state; here' out
check "it is kept" test -s run/findings/0/case -a "$(ls -A run/findings)" = 0
check "and counted" grep -qx "findings 1" run/summary
timeout 900 "$OUTAGE" report run >out 2>err
check "report: tells how often, too" grep -q 'shown 1 of 6 times' out
rm count
timeout 900 "$OUTAGE" replay run/findings/0 >out 2>err
check "replay: shows it again if it fails once more" test $? = 1
timeout 900 "$OUTAGE" replay run/findings/0 >out 2>err
check "replay: else not" test $? = 0
check "replay: which says that it never did always" grep -q 'when it was found, it showed 1 of 6 times' out
check "replay: and asks as often" test "$(wc -l <count)" = 7

# The states that are made smaller pass all: the one that failed is kept as it was found.
rm -rf run count
timeout 900 "$OUTAGE" app -j 1 -o run -p minimal --run 'echo x >u; echo y >v; sync u v .' \
	--check "[ -e u -a -e v ] || { echo >>'$dir/count'; [ \$(wc -l <'$dir/count') -gt 3 ]; }" -- data >out 2>err
check "an explanation that does not show again: the state is kept" test $? = 1
check "with its mark" grep -q 'as the check does not always say the same of one state; here' out

# A check that fails without any crash, too, is at fault itself. It passes there at first, for more than
# the three times that it is asked; what is there without u fails once.
rm -rf run count-*
timeout 900 "$OUTAGE" app -j 1 -o run -p minimal --run 'echo x >u; sync u .' \
	--check "c='$dir/count-'\$(cat u); echo >>\$c; n=\$(wc -l <\$c); [ -e u -a \$n -le 4 ] || [ -e u -a \$((n % 2)) = 0 ] ||
		[ ! -e u -a \$n != 1 ]" -- data >out 2>err
check "a check that fails by itself: exit status 2" test $? = 2
check "a check that fails by itself: is said" grep -q 'the check does not always say the same of the directory as the run left it' err
check "a check that fails by itself: gives no finding" test -z "$(ls -A run/findings)"

done_testing
