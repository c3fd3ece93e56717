#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0515-explore-plan.sh - a run of outage explore has its options in a record, and goes on with them: what is
# given again must be the same, what a stranger made is refused, and reports tell which version made it.
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

printf 'names files 1\nnames dirs 1\nnames depth 1\n' >three
printf 'names files 2\nnames dirs 1\nnames depth 1\n' >four
key() { sed -n "s/^$2 //p" "$1/run"; }
# refuses OPTION VALUE WORDS [OPTIONS]: the run stopped in `half` does not go on with that
refuses() { refused "the run began with $3" explore --resume half "$1" "$2" "${@:4}"; }

# ---- what it has ----

whole=(-t reffs --inputs three --alphabet 30 --round 0 --seed 3 --depth 4)
check 'all of a small world' status 0 explore "${whole[@]}" --json -o all
states=$(json_value 'd["distinct_states"]')
check 'the same, stopped' status 0 explore "${whole[@]}" --limit 1000 -o half
check '... has a record' grep -qx 'outage-explore-run 2' half/run
check '... with the options' test "$(key half seed) $(key half depth) $(key half alphabet)" = '3 4 30'
check '... and the inputs, which need no file then' eval 'grep -q "^inputs names files 1.nnames dirs 1" half/run && mv three gone'
cp -a half before

# ---- what may not change ----

printf 'names files 1\nnames dirs 1\nnames depth 1\n' >three
while read -r option value words; do
	check "not with $option $value" refuses "$option" "$value" "$words"
	check '... which leaves it as it was' diff -r before half
done <<'TABLE'
--target reffs: --target reffs and cannot go on with reffs::
--ref reffs, --ref reffs and cannot go on with reffs,:
--mkfs -q --mkfs left out and cannot go on with -q:
--size 64M --size left out and cannot go on with 67108864:
--kernel three --kernel left out and cannot go on with 
--modules . --modules left out and cannot go on with 
--guest-memory 1G --guest-memory left out and cannot go on with 1073741824:
--guest-cpu 2,clwb --guest-cpu left out and cannot go on with 2,clwb:
--recorder fuse --recorder left out and cannot go on with fuse:
--order walk --order left out and cannot go on with walk:
--depth 5 --depth 4 and cannot go on with 5:
--alphabet 31 --alphabet 30 and cannot go on with 31:
--round 7 --round left out and cannot go on with 7:
--inputs four another --inputs:
--dist rank --dist left out and cannot go on with rank:
--strategy remount --strategy left out and cannot go on with remount:
--compare-every 2 --compare-every left out and cannot go on with 2:
--memory 1M --memory left out and cannot go on with 1048576:
--seed 4 --seed 3 and cannot go on with 4:
--crash last --crash left out and cannot go on with last:
--crash-every 3 --crash-every left out and cannot go on with 3:
--guarantee posix --guarantee left out and cannot go on with posix:
--jobs 2 --jobs left out and cannot go on with 2:
--swarm 1/2 --swarm left out and cannot go on with 1/2:
TABLE
for flag in share vary deterministic; do
	check "not with --$flag" refused "the run began with --$flag left out and cannot go on with yes" explore --resume half --$flag
done
check 'not with a name in two options' refuses -t vm:pm '--target reffs and cannot go on with vm:pm:pmfs:' --fstype pmfs
check 'nor with the second of them' refuses --fstype pmfs '--target reffs and cannot go on with vm:pm:pmfs:'
check 'nor with that of a reference' refuses --ref vm:pm '--ref reffs and cannot go on with vm:pm:pmfs:' --ref-fstype pmfs
check 'a line end in a name' refused '--target has a line end in it' explore -t ext4 --mount-options $'a\nb' -o other
check 'or in that of a reference' refused '--ref has a line end in it' explore -t reffs -r ext4 --ref-mount-options $'a\nb' -o other
check 'not elsewhere' refused '--resume goes on in half: leave -o out' explore --resume half -o other
check '... which is not there then' test ! -e other

# ---- what reports tell of it ----

check 'a report has the options' eval 'outage report half && says "^    alphabet +30\$" && says "^    reference +reffs\$"'
check '... and the inputs, line by line' eval '[ "$(grep -c "^    inputs  *names" out)" = 3 ] && lacks "^    inputs *\$"'
check '... not what is at its default' lacks '^    (order|jobs|memory) '
check '... as JSON' eval 'outage report half --json && json "d[\"options\"][\"seed\"] == \"3\" and d[\"target\"] == \"reffs\""'
check '... as a page' eval 'outage report half --html - && says "<td>alphabet</td><td>30</td>"'

# ---- going on ----

check 'it goes on without a word' status 0 explore --resume half --json
check '... to the end of the same search' json "d['exhausted'] and d['distinct_states'] == $states"
check '... and is what it was' cmp before/run half/run
check 'with a word for all of it, too' status 0 explore --resume half "${whole[@]}" --limit 10 --findings 1 --hang-after 30s
check 'a round that the time or a limit chose' status 0 explore -t reffs --limit 500 -o round
check '... is a part of the plan' test "$(key round round)" = 6000
check '... and stays' status 0 explore --resume round --limit 500
check 'a run with tasks that differ' status 0 explore -t reffs -j 2 --vary --swarm 2/3 --memory 1M --limit 2000 -o tasks
check '... has all of them again' eval 'status 0 explore --resume tasks --limit 2000 && grep -q "^2 tasks; " out'
check '... those of machine 2' test "$(key tasks swarm)" = 2/3
cp -a half other
sed -i 's/^seed 3/seed 4/' other/run
check 'a run that draws other steps' refused 'are not those drawn when the run began' explore --resume other
sed -i 's/^seed 4/nonsense 4/' other/run
check 'one with a key that is none' refused "other/run:8: 'nonsense' is no key" explore --resume other

# ---- what a task has written ----

mkdir left mnt && touch left/task-3.pickle
check 'a directory with the state of a task is in use' refused 'left/task-3.pickle is there already: give another -o' \
	explore -t reffs --limit 10 -o left
check 'a run that fails' status 2 explore -t 'mounted:exit 1 {mnt}' -o failed
check '... leaves nothing' test ! -e failed
if [ "$(id -u)" = 0 ]; then
	check 'one that fails when a task has written' status 2 explore -j 2 -t "mounted:touch $dir/failed/task-1.pickle; exit 1 {mnt}" -o failed
	check '... leaves its record and its mark' test -s failed/run -a -s failed/mark
else
	skip 'to mount needs root'
fi

# ---- reported, replayed, trusted ----

trial=("$mutant" explore)
check 'a run of three tasks' tries 1 -t mutant:errno --order walk --time 800s --findings 2 --seed 1 -j 3 --json
check '... stops after the findings of all of them, and what two have at hand' json '2 <= d["findings"] <= 4'
check 'a run with a finding' tries 1 -t mutant:errno --order walk --time 800s --findings 1 --seed 5
version=$(outage --version && sed 's/^outage //' out)
check '... is reported' eval 'outage report kept && says "^run kept: 1 finding in 1 cluster"'
check '... with the version that made it' says "^    version +$version\$"
check '... also as JSON' eval 'outage report kept --json && json "d[\"version\"] == \"$version\""'
check '... and as a page' eval 'outage report kept --html - && says "<td>version</td><td>$version</td>"'
check '... replayed' exits 1 "$mutant" replay kept
check '... of which version it was, is not said' lacks 'it was found by outage'
sed -i 's/^version .*/version 0.0.1-old/' kept/findings/1-0/case
check 'one of another version' exits 1 "$mutant" replay kept --trust
check '... says so' says "^it was found by outage 0.0.1-old, and this is $version\$"
check '... not where others read it' eval 'exits 1 "$mutant" replay kept --trust --json; lacks "it was found by outage"'
check 'its report has it' eval 'outage report kept/findings/1-0 && says "^    version +0.0.1-old\$"'
sed -i 's/^version .*/version <b>/' kept/run
check 'a version that is no word is refused' refused 'kept/run:2: it does not say the version' report kept

served="mounted:touch $dir/served; exit 1 {mnt}"
cp -a half far
sed -i "s|^target .*|target $served|" far/run
check 'a run that a stranger changed' refused_like "far was not made by you on this machine, or was changed.*run 'touch $dir/served.*--trust" \
	explore --resume far
check '... runs nothing' test ! -e served
if [ "$(id -u)" = 0 ]; then
	check '... unless it is trusted' eval 'status 2 explore --resume far --trust; test -e served'
else
	skip 'to mount needs root'
fi
rm -f served far/mark
check 'without a mark it is refused as well' refused_like '--trust' explore --resume far
check '... and runs nothing' test ! -e served
rm half/mark
check 'one that leads to nothing needs no mark' status 0 explore --resume half --limit 10

done_testing
