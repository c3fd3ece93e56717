#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage app --crash recovery: the power fails again while the application comes up. What only that breaks is
# found, kept, shown again, reported and exported; what is right is not.
# takes 20 s
# shellcheck disable=SC2016,SC2317 # commands for other shells; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/app-lib.sh
. "$root/tests/app-lib.sh"
requires_built "$helpers/app-log"
log=$(copy_for_everybody "$helpers/app-log")
nap=5561.$$ # no other process sleeps for so long

# logged OPTION...: the application with the log, in a directory with nothing in its files
logged() {
	rm -rf data
	mkdir data
	: >data/log
	: >data/data
	app data --run "$log run" "$@"
}
# comes_up HOW OPTION...: the same, with a restart and a check
comes_up() { logged --restart "$log up $1" --check "$log check" "${@:2}"; }
# value KEY: of what was printed with --json
value() { json_value "d[\"$1\"]"; }
again="the power failed again while it came up after a crash after acknowledgement 3 ('line003'): "
missing="write N to data was not ordered before the truncate N of log: an fsync of data is missing"

# ---- one crash ----

for profile in minimal ext4-ordered; do
	for how in right wrong; do
		comes_up $how -p $profile
		check "$how, $profile: one crash shows nothing" test $status = 0
	done
done
check "one crash: nothing is said of another" lacks recovery
check "one crash: and nothing is recorded" test ! -e run/recovery

# ---- and another one ----

comes_up wrong --crash recovery -j 1
check "two: it is found" test $status = 1
check "two: the first crash is named" said "$again"
check "two: and what is missing" said_like "$missing"
check "two: which was tried" grep -q '^verified yes' run/findings/0/case
check "two: all restarts show one cause" test "$(grep -c ^found out)" = 1
check "two: how far it went is told" \
	says '^recovery changes states in 3 ways; 3 traced, 3 of them different: [1-9][0-9]* crash states of them checked, up to 0 left out'
check "two: the state names both crashes" grep -q '^state r0:' run/findings/0/case
check "two: the trace is that of the restart" cmp run/findings/0/trace run/recovery/0/trace
check "two: nothing is left of the recording" test -z "$(find run -name work)"
cp run/findings/0/case case.1
comes_up wrong --crash recovery -j 4
check "two: how many work at once makes no difference" cmp run/findings/0/case case.1
comes_up right --crash recovery
check "two: what is right is silent" test $status = 0
check "two: though it was tried" says '3 of them different: [1-9][0-9]* crash states'
comes_up wrong --crash recovery --json
check "two: --json" json '[d[k] for k in ("recovery_ways", "recoveries", "recoveries_tried", "recovery_left_out", "findings", "errors", "budget_hit")] == [3, 3, 3, 0, 1, 0, False]'
check "two: --json counts the states" test "$(value recovery_states)" -gt "$(value recoveries)"
comes_up wrong --crash recovery --recoveries 1 --json
check "two: --recoveries is the limit" test "$(value recoveries) $(value recovery_ways)" = '1 3'
check "two: the best one is tried" test "$(value findings)" = 1
comes_up wrong --crash recovery --budget 14 --json
check "two: second crashes are inside the budget" json '[d["checked"], d["recoveries"], d["recovery_states"], d["budget_hit"]] == [7, 3, 7, True]'
comes_up wrong --crash recovery --budget 8 --json
check "two: first ones take no more than half" json '[d["checked"], d["recoveries"], d["recovery_states"], d["budget_hit"]] == [4, 2, 4, True]'

# ---- what else can be the restart ----

logged --crash recovery --check "$log check wrong"
check "the check restarts it: found" said_like "$missing"
logged --crash recovery --check "$log check right"
check "the check restarts it: silent" test $status = 0
logged --crash recovery --restart "$log up wrong" --query "$log show"
check "a restart and a query: found" said_like "$missing"
logged --crash recovery --query "$log up right; $log show"
check "the query restarts it: silent" test $status = 0
logged --crash recovery --check "$log check"
check "nothing is changed: there is no way" says '^recovery changes states in 0 ways; 0 traced'
check "nothing is changed: silent" test $status = 0

# What was there is written again, in its place: what the state is afterwards does not tell.
rm -rf data
mkdir data
echo line000 >data/data
: >data/log
app data --crash recovery --run ': >new; sync new .' --restart "$log up remake" --check 'grep -q line000 data'
check "the same again: found" said_like "a crash after truncate N of data is one too many, with nothing lost"
app data --run ': >new; sync new .' --restart "$log up remake" --check 'grep -q line000 data'
check "the same again: only by a second crash" test $status = 0

# ---- what tells nothing ----

logged --crash recovery --check "$log check && rm log"
check "a check that destroys what it looks at: no finding" lacks ^found
check "a check that destroys what it looks at: is told" complains 'must not change what is good, or give --restart'
check "a check that destroys what it looks at: status 2" test $status = 2
comes_up fails --crash recovery
check "a restart that works once: is told" complains 'the check fails where the application had come up once after a crash'
# Elsewhere it is a check, in front of the recording mount it fails.
comes_up right --crash recovery --restart "! grep -q ' $dir/data fuse' /proc/self/mounts && $log up right"
check "a restart that cannot be recorded: is told" complains '^outage: 3 of 3 restarts could not be recorded: the restart fails by itself, with exit status 1, without a second crash'
check "a restart that cannot be recorded: status 2" test $status = 2
check "a restart that cannot be recorded: leaves nothing" test -z "$(ls run/recovery)"

# The first one that is recorded fails, and has a file that cannot be removed.
once="[ -e '$dir/once' ] || ! grep -q ' $dir/data fuse' /proc/self/mounts || { : >'$dir/once'; stuck=$dir/run/recovery/0/stuck; : >\$stuck; chattr +i \$stuck; exit 1; }"
: >probe
if chattr +i probe 2>/dev/null && chattr -i probe; then
	logged --crash recovery --restart "$once; $log up wrong" --check "$log check"
	check "a record that cannot be removed: is told" says '^note: a record of a restart of no use could not be removed: .*stuck'
	check "a record that cannot be removed: others are recorded" complains '^outage: 1 of 3 restarts could not be recorded'
	check "a record that cannot be removed: and found" said_like "$missing"
	check "a record that cannot be removed: keeps its number" grep -q '^state r[1-9]:' run/findings/0/case
	chattr -i run/recovery/0/stuck
	rm once
else
	skip "no file can be made immutable here"
fi

# ---- what is kept ----

comes_up wrong --crash recovery
finding=run/findings/0
status 1 replay $finding
check "replay: it shows again" said "shows again: acknowledged data is gone"
status 1 replay run --json
check "replay --json: the state" test "$(value state)" = "$(sed -n 's/^state //p' $finding/case)"
mv data away
check "replay: the directory need not be there any more" status 1 replay $finding
mv away data
cp -p run/recovery/0/run kept
sed -i 's/^budget .*/budget 7/' run/recovery/0/run
check "replay: another plan of the restart is not ours" refused --trust replay $finding
cat kept >run/recovery/0/run
echo line009 >>run/recovery/0/base/data
check "replay: another state after the first crash is not ours" refused --trust replay $finding
: >run/recovery/0/base/data
sed -i "s,up wrong,up right," run/run
check "replay: a restart that does it right has lost it all the same" status 1 replay --trust $finding
sed -i "s,up right,up wrong," run/run
cat run/run >kept
sed -i "s,up wrong,up wrong; test \$OUTAGE_DIR = $dir/data || touch $dir/strange," run/run
mkdir other
cp -p run/recovery/0/run kept.0
sed -i "s,^dir .*,dir $dir/other," run/recovery/0/run
outage replay --trust $finding
check "replay: the directory is that of the whole run" test ! -e strange
cat kept >run/run
cat kept.0 >run/recovery/0/run
outage report run
check "report: both commands" eval 'says "^  check    .*app-log check" && says "^  restart  .*app-log up wrong"'
check "report: the first crash" said "the power failed a first time after acknowledgement 3 ('line003')"
check "report: what was lost" says '^    lost     write [0-9]* to data'
check "report: and what was not" says '^    survived truncate [0-9]* of log'
check "report: how far it went" says '^  recovery: 3 ways of changes, 3 traced, 3 of them different'
outage report run --json
check "report --json" json 'd["recoveries"] == 3 and [f["outer_point"] > 0 and f["outer_state"] != "" for f in d["findings"]] == [True]'
check "report --json: the sequence is that of the restart" \
	test "$(json_value '[e["op"] for e in d["findings"][0]["sequence"] if e["fate"] in ("lost", "survived")]')" = "['write', 'truncate']"
outage report run --html page.html
check "report --html" eval 'says "the power failed a first time" page.html && says "<p>restart .*app-log up wrong" page.html'
outage export $finding -o exported
check "export: a script" test -x exported/reproduce.sh
check "export: no fault for LazyFS" test ! -e exported/lazyfs.toml
sh exported/reproduce.sh rebuilt check >out 2>err
check "export: it builds a directory on which the check fails" test $? = 1
check "export: after a restart" said "line001 is gone"

# ---- others ----

if [ "$(uname -m)" = x86_64 ]; then
	comes_up wrong --crash recovery --stacks
	check "--stacks: who called, in the restart" says 'write [0-9]* to data, at app-log.c:[0-9]* in append'
fi
chown -R 65534:65534 data
user='setpriv --reuid=65534 --regid=65534 --clear-groups'
app data --crash recovery --run "$user $log run" --restart "$user $log up wrong" --check "$user $log check"
check "commands of another user: found" said_like "$missing"
if "${as_user[@]}" unshare --user true 2>/dev/null && "${as_user[@]}" test -w /dev/fuse; then
	rm -rf user
	install -d -o 65534 -g 65534 user
	cp -a data user/data
	(cd user && "${as_user[@]}" timeout 900 "$OUTAGE" app -o run --crash recovery --run "$log run" \
		--restart "$log up wrong" --check "$log check" -- data) >out 2>err
	check "as an ordinary user: found" said_like "$missing"
else
	skip "no user namespaces, or no FUSE, for ordinary users"
fi

# ---- stopped ----

# The restart that is recorded waits: from then on there is a directory for it.
for signal in TERM KILL; do
	rm -rf run reached data
	mkdir data
	: >data/log
	: >data/data
	env --default-signal=TERM "$OUTAGE" app -o run --crash recovery --timeout 1h --run "$log run" \
		--restart "[ ! -e '$dir/run/recovery' ] || { : >'$dir/reached'; sleep $nap; }; $log up right" \
		--check "$log check" -- data >out 2>err &
	pid=$!
	while_alive $pid test -e reached
	kill -s $signal $pid
	wait $pid 2>/dev/null
	status=$?
	check "SIG$signal: no process is left" no_nap
	check "SIG$signal: nothing is mounted" eval '! grep -q " $dir/" /proc/self/mounts'
	[ $signal = KILL ] || check "SIG$signal: is told" complains 'stopped by a signal'
	[ $signal = KILL ] || check "SIG$signal: status 2" test $status = 2
	[ $signal = KILL ] || check "SIG$signal: nothing half made stays" test -z "$(ls run/recovery)"
	check "SIG$signal: what there is can be told" status 0 report run
done

# So does the program that copies the crash state.
mkdir bin
printf '%s\n' '#!/bin/sh' "[ ! -e '$dir/run/recovery' ] || { : >'$dir/reached'; exec sleep $nap; }" \
	"exec $(command -v cp) \"\$@\"" >bin/cp
chmod +x bin/cp
rm -rf run reached data
mkdir data
: >data/log
: >data/data
PATH="$dir/bin:$PATH" env --default-signal=TERM "$OUTAGE" app -o run --crash recovery --run "$log run" \
	--restart "$log up right" --check "$log check" -- data >out 2>err &
pid=$!
while_alive $pid test -e reached
kill -s TERM $pid
wait $pid 2>/dev/null
check "SIGTERM while a state is copied: no process is left" no_nap
check "SIGTERM while a state is copied: is told" complains 'stopped by a signal'

done_testing
