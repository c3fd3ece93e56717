#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage pm --resume: a run that was interrupted goes on, and has found in the end what one that was not
# interrupted finds.
# takes 40 s
# shellcheck disable=SC2016,SC2317 # $1 is for the check; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pm-lib.sh
. "$root/tests/pm-lib.sh"
# shellcheck source=tests/resume-lib.sh
. "$root/tests/resume-lib.sh"
command=pm
undo=$helpers/pm-undo

cat >looks <<END
#!/bin/sh
$counts
exec '$undo' "\$1" check
END
chmod 755 looks
pool
pm=("$OUTAGE" pm --file pool -o run -j 2 --enough 0 --timeout 1h)

for signal in KILL INT; do
	rm -rf run
	interrupted $signal 20 "${pm[@]}" --budget 50 --check "$dir/looks \"\$1\"" -- "$undo" pool noise
	check "SIG$signal: it was interrupted" test $status -ne 0 -a $status -ne 1
	goes_on "SIG$signal"
done

check '--time: it ends' with_time 2 timed_out "${pm[@]}" --budget 60 --check "$dir/looks \"\$1\"" -- "$undo" pool noise
check '--time: what is left can be done' says "^to go on: outage pm --resume $dir/run$"
resumed run --time 1s
status=2 goes_on '--time, twice'

rm -rf run
interrupted KILL 20 "${pm[@]}" --budget 60 --crash recovery --recoveries 2 --recover "$undo \"\$1\" sick" --check "$dir/looks \"\$1\"" -- "$undo" pool run
restarts=1 goes_on 'recovery'

rm -rf run
rm pool
interrupted KILL 10 "${pm[@]}" --size 64K --budget 30 --check "$dir/looks \"\$1\"" -- "$undo" pool noise
check 'a file that the run made' test -e pool
goes_on 'a file that the run made'
check 'is not there afterwards' test ! -e pool

# ---- what cannot go on ----

check 'another budget' refused_like 'began with --budget 30 and cannot go on with 10' pm --resume run --budget 10
check 'another program' eval "! '$OUTAGE' pm --resume run true 2>err && complains 'leave true out'"
check 'another size' eval "! '$OUTAGE' pm --resume run --size 1M 2>err && complains 'leave --size out'"
check 'no run at all' refused_like 'nothing is not the directory of a run' pm --resume nothing
cp -r run foreign
sed -i 's/^budget .*/budget 31/' foreign/run
check 'one that somebody else may have made' refused_like 'not made by you.*--trust' pm --resume foreign
check 'if it is trusted' eval 'resumed foreign --trust; test $status -eq 1'
done_testing
