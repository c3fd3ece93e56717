#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0435-kinds.sh - replay, shrink, export and report take runs and findings of every kind, know each by its
# record, and refuse what another version made.
# shellcheck disable=SC2016,SC2317 # for eval; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# record TYPE LINE...: the text of one
record() {
	printf 'outage-%s 2\nversion 0.1.0\n' "$1"
	shift
	printf '%s\n' "$@"
}
# of_disk TYPE NAME LINE...: a finding of outage test, or of outage explore
of_disk() {
	local type=$1 to=r/findings/$2
	shift 2
	mkdir -p "$to"
	record "$type" 'target ext4' 'guarantee linux' 'state live' 'base none' "$@" >"$to/case"
	printf 'missing\tfoo\tfoo: is missing in %s\t\n' "${to##*/}" >"$to/problems"
	echo 'creat foo' | tee "$to/script" >"$to/workload"
}
# of_program KIND NUMBER: a finding of outage app, or of outage pm
of_program() {
	mkdir -p "r/findings/$2"
	record "$1-case" "state 1.$2" "title title $2\\nof two lines" >"r/findings/$2/case"
	: >"r/findings/$2/said"
}
test_run() { rm -rf r && mkdir -p r/findings && record test-run 'target ext4' 'kernel 6' 'guarantee linux' 'bounds seq-1' 'hash 0' 'workloads 1' >r/run; }
explore_run() { rm -rf r && mkdir -p r/findings && record explore-run 'target ext4' 'depth 10' 'hash 0' 'reference reffs' >r/run; }
app_run() { rm -rf r && mkdir -p r/findings && record app-run 'dir /x' 'run true' 'profile minimal' 'check true' >r/run; }
pm_run() { rm -rf r && mkdir -p r/findings && record pm-run 'file /x' 'dir /' 'program true' 'check true' >r/run; }

# lists NAME WORDS NAME WORDS: each command, and below it what is found there
lists() {
	local command
	for command in replay shrink 'export -o given'; do
		# shellcheck disable=SC2086 # words
		gives 2 $command r && grep -qx 'outage: r has 2 findings: give the directory of one of them' err &&
			[ "$(cat out)" = "outage ${command%% *} r/findings/$1
    $2
outage ${command%% *} r/findings/$3
    $4" ] || return 1
	done
}

# ---- several, and one ----

test_run
of_disk test-case 0-0
of_disk test-case 0-1
check 'test: several are listed' lists 0-0 'foo: is missing in 0-0' 0-1 'foo: is missing in 0-1'
check 'test: a report has both' eval 'gives 0 report r --json && [ "$(grep -c "is missing in 0-[01]" out)" -ge 1 ]'
rm -rf r/findings/0-1
check 'test: the only one is taken' eval 'gives 2 replay r && grep -q "^outage: r/findings/0-0 was not made by you" err'
check 'test: and exported' eval 'gives 0 export r -o given && test -s given/workload.c'
rm -rf r/findings/0-0
check 'test: none' eval 'gives 2 replay r && grep -q "^outage: r has no findings$" err'
explore_run
of_disk explore-case 1-0 'reference reffs' 'signature x'
of_disk test-case 2-0
check 'explore: of both kinds' lists 1-0 'foo: is missing in 1-0' 2-0 'foo: is missing in 2-0'
rm -rf r/findings/2-0
check 'explore: outage replay does what --replay does' eval 'gives 2 replay r && mv err one && gives 2 explore --replay r/findings/1-0 && cmp err one'
check 'explore: it needs its script' eval 'rm r/findings/1-0/script && gives 2 replay r && grep -q script err'
app_run
of_program app 0
of_program app 1
check 'app: several are listed' lists 0 'title 0 of two lines' 1 'title 1 of two lines'
rm -rf r/findings/1
check 'app: the only one is taken' eval 'gives 2 shrink r && grep -q "^outage: r: not finished" err'
check 'app: which is not run again' eval 'gives 2 replay r --rerun; grep -q "run .outage app. again" err'
pm_run
of_program pm 0
of_program pm 1
check 'pm: several are listed' lists 0 'title 0 of two lines' 1 'title 1 of two lines'
check 'pm: a report has both, and the version' eval 'gives 0 report r && grep -qx "version  0.1.0" out && grep -qx "problem  title 0" out && grep -qx "problem  title 1" out'
rm -rf r/findings/1
check 'pm: the only one is taken' eval 'gives 2 replay r && grep -q "r/base.img" err'
sed -i 's/^title .*/nonsense x/' r/findings/0/case
of_program pm 1
check 'what cannot be read is listed' eval 'gives 2 replay r && grep -q "r/findings/0/case:4: .nonsense. is no key" out'

# ---- other versions, other kinds ----

refuses() { # WORDS ARGUMENTS...
	local words=$1
	shift
	gives 2 "$@" && grep -qx "outage: $words" err
}
earlier='was made by an earlier version of outage, and cannot be read by this one'
printf 'target ext4\nguarantee linux\nstate live\nbase none\n' >plain
test_run
of_disk test-case 0-0
cp plain r/findings/0-0/case
for command in replay shrink report 'export -o given'; do
	# shellcheck disable=SC2086 # words
	check "$command: a finding of an earlier version" refuses "r/findings/0-0/case $earlier" $command r/findings/0-0
done
of_disk test-case 0-0
echo 'outage-run 1' >r/run
for command in replay report 'test --resume' 'explore --resume' 'app --resume' 'pm --resume'; do
	# shellcheck disable=SC2086 # words
	check "$command: a run of an earlier version" refuses "\(.*/\)\?r/run $earlier" $command r
done
for kind in test explore app pm; do
	printf 'outage-%s-run 1\n' "$kind" >r/run
	check "$kind --resume: one of its kind, of an earlier version" refuses "\(.*/\)\?r/run $earlier" "$kind" --resume r
done
printf 'outage-test-run 99\nversion 9\n' >r/run
check 'a run of a later version' refuses "r/run ${earlier/an earlier/a later}" report r
rm r/run
check 'findings without a run' refuses 'r is not the directory of a run, nor of a finding: .*' report r
check '... which nobody goes on with' refuses 'r is not the directory of a run: it has no file run' explore --resume r
explore_run
check 'a run of another kind is not gone on with' refuses 'r/run:1: it is of another kind, explore-run, not test-run' test --resume r
test_run
check '... the other way round' refuses 'r/run:1: it is of another kind, test-run, not explore-run' explore --resume r
app_run
check 'a run of another kind' refuses 'r/run:1: it is of another kind, app-run, not test-run' test --resume r
of_program app 0
sed -i 's/^outage-app-case/outage-pm-case/' r/findings/0/case
check 'a finding of another kind than its run' refuses 'r/run:1: it is of another kind, app-run, not pm-run' replay r
sed -i 's/^outage-pm-case/outage-no-case/' r/findings/0/case
check 'of none' refuses "r/findings/0: there is no such kind as 'no'" replay r
check 'no directory of ours' refuses '.* is not the directory of a run, nor of a finding: .*' replay .
done_testing
