#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage app --resume: a run that was interrupted goes on, and has found in the end what one that was
# not interrupted finds.
# takes 60 s
# shellcheck disable=SC2016,SC2317 # commands for other shells; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/app-lib.sh
. "$root/tests/app-lib.sh"
# shellcheck source=tests/resume-lib.sh
. "$root/tests/resume-lib.sh"
command=app

chmod 777 "$dir"
cat >looks <<END
#!/bin/sh
$counts
[ ! -e "\$1/f3" ] || [ -s "\$1/f3" ] || { echo f3 is empty; exit 1; }
[ ! -e "\$1/end" ] || [ -e "\$1/f1" ] || { echo f1 is gone; exit 1; }
END
chmod 755 looks
fresh
app=("$OUTAGE" app -o run -p minimal -j 2 --budget 60 --timeout 1h --run 'for i in 1 2 3 4; do echo $i >f$i; done; echo end >end' --check "$dir/looks \"\$1\"")

for signal in KILL INT; do
	rm -rf run
	interrupted $signal 25 "${app[@]}" -- data
	check "SIG$signal: it was interrupted" test $status -ne 0 -a $status -ne 1
	goes_on "SIG$signal"
done

check '--time: it ends' with_time 2 timed_out "${app[@]}" -- data
check '--time: what is left can be done' says "^to go on: outage app --resume $dir/run$"
resumed run --time 1s
status=2 goes_on '--time, twice'

# The power fails again while it comes up.
rm -rf run
restart='[ ! -e f2 ] || { echo new >up.new && mv up.new up; }'
interrupted KILL 25 "${app[@]}" --crash recovery --recoveries 2 --restart "cd \"\$OUTAGE_DIR\" && $restart" -- data
restarts=1 goes_on 'recovery'
some=$(found_in run)
resumed run --time 1ms
check 'recovery: with no time for it, what was found stays' test "$(found_in run)" = "$some"
check 'and can be gone on with' eval 'resumed run; test $status -eq 1'
check 'which says the same' test "$(found_in run)" = "$some"
check 'and leaves nothing' test ! -e run/before

# Only the end of the run and that of the restart are looked at anew. The restart has no open files, so that
# its record is the same each time.
rm -rf run
timeout 900 "${app[@]}" --crash recovery --recoveries 1 --restart 'cd "$OUTAGE_DIR" && { [ ! -e f2 ] || mkdir -p up/1 up/2; }' -- data >out 2>err
check 'recovery: second crashes are checked' says '; 1 traced, 1 of them different: [1-9][0-9]* crash states'
some=$(found_in run)
resumed run
check 'recovery: their answers are kept, too' test "$(asked)" -le 2
check 'recovery: and say the same' test $status -eq 1 -a "$(found_in run)" = "$some"

# Interrupted again before it has found them again.
rm -rf run
timeout 900 "${app[@]}" -- data >out 2>err
some=$(found_in run)
rm run/answers
resumed run --time 1ns
check 'out of time: its findings are still told' test $status -eq 1
check 'and nothing else is' says '; 0 checked'
check 'all of them' says '^2 findings'
check 'and stay' test "$(found_in run)" = "$some"
rm run/answers
interrupted KILL 3 "$OUTAGE" app --resume run
timeout 900 "$OUTAGE" report run >out 2>err
check 'killed: it is told where they are' says ': 2 findings of before are in .*/run/before/findings$'
resumed run
check 'killed: it goes on' test $status -eq 1
check 'killed: and has found them again' test "$(found_in run)" = "$some"

# ---- what cannot go on ----

check 'the same budget is fine' eval 'resumed run --budget 60; test $status -eq 1'
check 'another budget' refused_like 'began with --budget 60 and cannot go on with 10' app --resume run --budget 10
check 'another command' refused_like 'began with another --check' app --resume run --check true
check 'another directory' eval "! '$OUTAGE' app --resume run data 2>err && complains 'leave data out'"
check 'another place' eval "! '$OUTAGE' app --resume run -o run2 2>err && complains 'leave -o out'"
check 'no run at all' refused_like 'nothing is not the directory of a run' app --resume nothing
cp -r run foreign
sed -i 's/^budget .*/budget 61/' foreign/run
check 'one that somebody else may have made' refused_like 'not made by you.*--trust' app --resume foreign
check 'if it is trusted' eval 'resumed foreign --trust; test $status -eq 1'
sed -i '/^root-ino/d' foreign/run
check 'one that was killed while it was recorded' refused_like 'ended while the application was recorded' app --resume foreign --trust
printf 'what is this' >run/answers
check 'answers that cannot be read are asked for again' eval 'resumed run; test $status -eq 1'
done_testing
