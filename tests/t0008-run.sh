#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tests/run itself, on a small tree: what it runs, what it says of a failure, and that it never looks as if all
# were well where nothing was tried.
# shellcheck disable=SC2016,SC2317 # words are for other shells; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_tools pgrep taskset

mkdir -p tree/tests tree/build/tests/unit
cp "$root/tests/run" tree/tests/
unset OUTAGE_TEST_LONG TEST_TIMEOUT ASAN_OPTIONS UBSAN_OPTIONS
export OUTAGE_TEST_MINUTE=900 TMPDIR=$dir # what a run leaves that is killed goes with the test

# a_test NAME COMMANDS: a shell test, or without .sh a unit test
a_test() {
	local file=tree/tests/$1
	case $1 in *.sh) ;; *) file=tree/build/tests/unit/$1 ;; esac
	printf '#!/bin/sh\n%s\n' "$2" >"$file"
	chmod 755 "$file"
}
# tests STATUS ARGUMENTS...: tests/run ends with it
tests() { exits "$1" "$dir/tree/tests/run" "${@:2}"; }
# ran NAME...: these tests were run, and no others
ran() { [ "$(sed -nE 's/^(passed|FAILED) +([^ ]*) .*/\2/p' out | sort | xargs)" = "$*" ]; }
passes='echo "ok 1 - it"; echo 1..1'

a_test t0001-one.sh "$passes"
a_test t0002-one-more.sh "$passes"
a_test one "$passes"
a_test t0003-fails.sh '[ "$OUTAGE_TEST_LONG" = 1 ] && [ "$ASAN_OPTIONS" = "a=1 b" ] || { '"$passes"'; exit; }
	echo "ok 1 - a"; echo "not ok 2 - because"; echo "# a reason"; echo 1..2'
a_test t0004-fails-not.sh "$passes"
a_test t0005-skips.sh 'echo "1..0 # SKIP there is no such thing"; exit 77'

# ---- which ----

check 'all' tests 0
check '... are run' ran one t0001-one.sh t0002-one-more.sh t0003-fails.sh t0004-fails-not.sh t0005-skips.sh
check '... and counted' says '^5 passed, 0 failed, [12] skipped$'
check 'the name of a test' tests 0 one
check '... is that test' ran one
check '... with its number' tests 0 t0001-one t0003-fails.sh
check '... too' ran t0001-one.sh t0003-fails.sh
check 'a part of names' tests 0 on
check '... is all that have it' ran one t0001-one.sh t0002-one-more.sh
check '--times' tests 0 --times 2 one
check '... is so often' ran one one
check 'a test that is not there' tests 2 two
check 'an option that is not there' tests 2 --two

# ---- a failure ----

check 'a test that fails' exits 1 env OUTAGE_TEST_LONG=1 ASAN_OPTIONS='a=1 b' tree/tests/run --build build one fails
check '... is one, with its words' eval 'says "^not ok 2 - because$" && says "^# a reason$" && lacks "^ok 1"'
alone=$(sed -n 's/^this test alone: //p' out)
check '... and the command that runs it alone' test "$alone" = 'ASAN_OPTIONS=a=1\ b OUTAGE_TEST_LONG=1 OUTAGE_TEST_MINUTE=900 tests/run t0003-fails.sh'
again() (cd tree && eval "$alone") >out 2>err
check '... which fails in the same way' eval '! again && says "^not ok 2 - because$"'
check '... alone' ran t0003-fails.sh
a_test t0006-status.sh 'echo "ok 1 - it"; echo 1..1; exit 3'
a_test t0007-plan.sh 'echo "ok 1 - it"; echo 1..2'
a_test t0008-none.sh 'echo "ok 1 - it"'
a_test t0009-long.sh 'exec sleep 1000'
check 'an exit status' tests 1 t0006
check '... is a failure' says 'exit status 3'
check 'one that does not do what it planned' tests 1 t0007
check '... is, too' says 'planned 2 but ran 1'
check 'one without a plan' tests 1 t0008
check '... is, too' says 'ended without a plan'
check 'one that does not end' exits 1 env TEST_TIMEOUT=1 tree/tests/run t0009
check '... is, too' says 'took too long'
check '... and its time is in the command' says '^this test alone: OUTAGE_TEST_MINUTE=900 TEST_TIMEOUT=1 tests/run t0009-long.sh$'

# ---- nothing was tried ----

check 'what is only skipped' tests 2 t0005
check '... is no success' complains '^run: nothing was tried$'
check '... and is counted' says '^0 passed, 0 failed, [12] skipped$'
check '... with the reason' says '1 +there is no such thing$'

# ---- each minute ----

# It waits until the run has told of it.
a_test t0010-slow.sh "until grep -q '0 of 1 tests done; running: t0010-slow$' '$dir/out'; do sleep 0.05; done; $passes"
check 'each minute' exits 0 env OUTAGE_TEST_MINUTE=0.2 tree/tests/run t0010
check '... it is said how far it is' says '^0 min: 0 of 1 tests done; running: t0010-slow$'

# ---- a busy machine ----

# beside: prints the processes that a run of ours has beside it
beside() {
	local p
	for p in $(pgrep -f busy-beside-tests); do
		grep -qzx "OUTAGE_TEST_MARK=$$" "/proc/$p/environ" 2>/dev/null && echo "$p"
	done
}
are_beside() { [ "$(beside | wc -l)" = "$1" ]; }
export OUTAGE_TEST_MARK=$$
a_test t0011-waits.sh "trap ': >$dir/cleared; exit 1' TERM; : >'$dir/waits'; until [ -e '$dir/go' ]; do sleep 0.05; done; $passes"
# begin: a run with two busy processes, whose test waits
begin() {
	rm -f waits go
	OUTAGE_TEST_MINUTE=1 tree/tests/run --busy 2 t0011 >out 2>err &
	pid=$!
	while_alive "$pid" test -e waits && soon are_beside 2
}
check '--busy: so many compute beside' begin
: >go
check '... until the run ends' eval 'wait $pid && soon are_beside 0'
check '--busy, interrupted' begin
kill -TERM "$pid"
wait "$pid"
check '... none is left' soon are_beside 0
check '... and the test is ended, and clears up' soon test -e cleared
check '--busy, killed' begin
kill -KILL "$pid"
wait "$pid" 2>/dev/null
: >go
check '... none is left' soon are_beside 0
# The first processor that we may use.
cpu=$(sed -nE 's/^Cpus_allowed_list:\s*([0-9]+).*/\1/p' /proc/self/status)
a_test t0012-cpu.sh "grep -qx 'Cpus_allowed_list:.$cpu' /proc/self/status && { $passes; exit; }; exit 1"
check '--cpu: the test has that one alone' tests 0 --cpu "$cpu" --busy 1 t0012
a_test t0013-cpu-fails.sh 'exit 1'
check '... and a failure says so' tests 1 --cpu "$cpu" --busy 1 t0013
check '... with who was busy' said "tests/run --busy 1 --cpu $cpu t0013-cpu-fails.sh"

done_testing
