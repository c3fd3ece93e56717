#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A finding from end to end: reported, seen again, made small, and handed to people who do not have
# this program. ext4 without barriers is the sick one: it never flushes, so a crash may lose anything.
# shellcheck disable=SC2317,SC2016 # called through check; for eval
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/finding-lib.sh
. "$root/tests/finding-lib.sh"

requires_root 'it mounts file systems'
own_mounts # where nobody else holds what is unmounted
requires_tools mke2fs losetup gcc python3

# More operations than are needed, a handle, and names that mean harm.
cat >workload <<'EOF'
workload harm
setup mkdir A
creat A/<script>alert(1)
f1 = open foo rdwr,creat
write f1 0 64
fsync f1
mkdir B
link foo B/bar&amp;
fsync foo
close f1
EOF
check "a sick file system is caught" \
	status 1 test -t ext4,barrier=0 --crash reorder --budget 40 -j 1 --keep all -o run workload
finding=$(find run/findings -name problems -exec grep -l '^missing.foo' {} + | sort -V | head -n 1)
finding=${finding%/problems}
check "a synced file is missing" test -d "$finding"

# ---- reports ----

check "report as text" status 0 report "$finding"
check "it has the sentence" grep -q 'foo: is missing' out
check "and what was promised" grep -q 'although fsync f1 (operation [0-9]*) had returned' out
check "and the power cut" grep -q 'the power fails here' out
check "and what was lost" grep -q '^  lost  *event [0-9]' out
check "and the trees" grep -q '^  - file foo ' out
check "report as JSON" status 0 report run --json
check "it lists every finding" json "len(d['findings']) == $(find run/findings -name case | wc -l)"
check "with its operations" json "d['findings'][0]['operations'][3]['text'] == 'write f1 0 64'"
check "with its writes" json "any(w['fate'] == 'lost' for w in d['findings'][0]['writes'])"
check "clusters count them" json "sum(c['count'] for c in d['clusters']) == len(d['findings'])"
check "report as a page" status 0 report run --html page.html
check "the page has the sentence" grep -q 'foo: is missing' page.html
check "and a picture" grep -q '<svg' page.html
check "and no script" test "$(grep -c '<script' page.html)" -eq 0
check "names are escaped" grep -q '&lt;script&gt;alert(1)' page.html
check "twice if need be" grep -q 'bar&amp;amp;' page.html
check "nothing is loaded from elsewhere" test "$(grep -cE 'https?://|url\(|src=' page.html)" -eq 0

# ---- again, and smaller ----

check "replay shows it" status 1 replay "$finding"
check "it says so" grep -q 'foo: is missing' out
check "replay --json" status 1 replay "$finding" --json
check "shown" json "d['shown'] and d['kind'] == 'missing'"
check "running the workload again shows it" status 1 replay "$finding" --rerun
check "shrink" status 0 shrink "$finding" -o small --json
check "to fewer operations" json "d['operations'] <= 3 < d['operations_before']"
check "and fewer lost writes" json "d['lost'] < d['lost_before']"
check "the small one shows it" status 1 replay small
check "and when it is run again" status 1 replay small --rerun
check "the small one has a name of its own" grep -qx 'workload shrunk-from-harm' small/workload
check "a second shrink does not overwrite it" status 2 shrink "$finding" -o small
check "and says what would" grep -q 'give --force' err
cp -r small again
check "a small one can be made smaller, and replaced" status 0 shrink again -o again --force
check "no state is tried twice" test "$(grep -c ' 0 of .* lost write' out)" -le 1
check "its name does not grow" grep -qx 'workload shrunk-from-harm' again/workload
check "shrink with a budget stops" status 0 shrink "$finding" -o less --runs 3 --json
check "and says so" json "d['budget_hit']"

# A finding carries the options that found it, and running it again uses them.
check "the case has its crash modes" grep -qx 'crash reorder' "$finding/case"
check "and its budget" grep -qx 'budget 40' "$finding/case"
cp -r "$finding" milder
cp run/base-0.img milder/base.img
sed -i 's/^crash .*/crash last/; s/^base .*/base base.img/' milder/case
check "with milder crashes it does not show" status 0 replay milder --rerun --trust
sed -i 's/^crash .*/crash sideways/' milder/case
check "a mode that is none" status 2 replay milder --rerun --trust
check "is told" grep -q "milder/case: crash is one of .* not 'sideways'" err

# A healthy file system must not show what the sick one did.
cp -r small healthy
sed -i 's/^target .*/target ext4/' healthy/case
check "what is healthy does not show it" status 0 replay healthy --rerun --trust

# ---- for others ----

check "export" status 0 export "$finding" -o exported
check "the image is sparse" test "$(du -k exported/crash.img | cut -f 1)" -lt 8192
for script in reproduce.sh workload.sh; do
	check "$script is a script" sh -n "exported/$script"
done
check "the test is a script" bash -n exported/generic-NNN
check "each states the finding" \
	test "$(grep -l 'foo: is missing' exported/* | wc -l)" -eq 4
timeout 900 exported/reproduce.sh >out 2>err
check "the script shows it" test $? -eq 1
check "and says what was expected, marked" \
	grep -q '^\* foo: f 644 0:0 64 bytes links=[12] cksum=[0-9]*$' out
mkdir in-c in-shell
check "the program compiles" gcc -Wall -Wextra -Werror -o program exported/workload.c
timeout 900 ./program in-c >out 2>err
check "it does as then" test $? -eq 0
check "the tree is as expected" test -f "in-c/A/<script>alert(1)" -a in-c/foo -ef 'in-c/B/bar&amp;'
check "and so is the content" \
	grep -qF "$(cat in-c/foo)" <(grep '^file foo ' "$finding/expected")
timeout 900 exported/workload.sh in-shell >out 2>err
check "the shell script makes the same tree" \
	diff <(cd in-c && find . -printf '%y %m %n %P\n' | sort) \
	<(cd in-shell && find . -printf '%y %m %n %P\n' | sort)

# ---- what the script shows, it shows on the crash image alone ----

cat >plain.workload <<'EOF'
workload plain
mkdir D
creat foo
write foo 0 8192
fsync foo
EOF
check "a sick one with contents" \
	status 1 test -t ext4,barrier=0 --crash reorder --budget 60 -j 1 -o plain plain.workload
healthy_ext4() { # DIR COMMAND...: puts an image in place of crash.img on which COMMAND did the work
	local size status
	size=$(stat -c %s "$1/crash.img")
	rm "$1/crash.img" && truncate -s "$size" "$1/crash.img" && mkdir -p mnt &&
		mke2fs -q -F -t ext4 "$1/crash.img" && mount -o loop "$1/crash.img" mnt || return 1
	shift
	"$@" mnt >/dev/null
	status=$?
	umount mnt && test "$status" -eq 0
}
for kind in missing content unmountable; do
	finding_of=$(of_kind plain "$kind")
	check "$kind is found" test -d "$finding_of"
	check "$kind: export" status 0 export "$finding_of" -o "x-$kind"
	check "$kind: the script shows it on the crash image" reproduces "x-$kind" 1
	gcc -o "x-$kind/program" "x-$kind/workload.c" || exit 1
	healthy_ext4 "x-$kind" "x-$kind/program"
	check "$kind: there is an image that did the same" test $? -eq 0
	check "$kind: and not on that one" reproduces "x-$kind" 0
	healthy_ext4 "x-$kind" "x-$kind/workload.sh"
	check "$kind: nor with other bytes" reproduces "x-$kind" 0
done
check "the words of a finding are one line, trimmed" \
	test "$(cut -f 3 plain/findings/*/problems | grep -c ' $')" -eq 0
check "what was never promised is told apart" status 0 report "$(of_kind plain missing)"
check "in the text" grep -q '^(-) dir D ' out
check "and what was promised as well" grep -q '^  - file foo ' out
check "a page of it" status 0 report "$(of_kind plain missing)" --html page.html
check "has it grey" grep -q 'class="free"><td>dir D' page.html
check "and red" grep -q 'class="gone"><td>file foo' page.html

# The test for xfstests, with stand-ins for what the suite brings along: it compares data.
make_suite
if command -v xfs_io >/dev/null; then
	check "the test passes if nothing is lost" in_suite x-content
	check "it fails if zeros are in the file" \
		not in_suite x-content 'dd if=/dev/zero of=foo bs=8192 count=1 status=none'
	check "and if it is gone" not in_suite x-content 'rm foo'
	check "but not for what was never promised" in_suite x-content 'rmdir D'
else
	skip "xfs_io is not there"
fi

# ---- how a run came out ----

check "report of a whole run" status 0 report plain
check "says how far it came" grep -q '^ *workloads  *1 of 1 done$' out
check "what the budget left out" grep -q '^ *left out  *up to [0-9.e+]* crash states, by the budget of 60' out
check "which states were tried, and which differ" \
	grep -q '^ *crash states  *[0-9]* tried, [0-9]* of them different' out
check "and when it began" grep -qE '^ *started +20[0-9]{2}-[0-9]{2}-[0-9]{2} ' out
cp -r plain cut
head -n 1 plain/progress >cut/progress
check "report of a run that was interrupted" status 0 report cut
check "says so" grep -q '0 of 1 done; it was interrupted.*--resume cut' out
check "as a page" status 0 report cut --html page.html
check "as well" grep -q '0 of 1 done; it was interrupted' page.html
check "options are folded" grep -q '<details class="options">' page.html
check "report of one finding" status 0 report small
check "has no plural" grep -q '1 finding in 1 cluster$' out

check "and a reason" grep -q '^although fsync' out
check "and no other" test "$(grep -c '^because' out)" -eq 0
cp -r small unpromised
printf 'size\tfoo\tfoo: size is 5, not 64\t\n' >unpromised/problems
check "report of what no promise covers" status 0 report unpromised
check "gives a reason as well" grep -qx 'because  no operation ever gave it that value' out
check "the page of a run" status 0 report plain --html page.html
check "tells how many more are kept" grep -q '4 more kept, [0-9]* counted only' page.html

# ---- what cannot be done ----

check "replay of nothing" status 2 replay nowhere
check "report of nothing" status 2 report nowhere
check "export without a place" status 2 export "$finding"
check "a report with a trace has the place" status 0 report "$finding"
check "and says nothing of its trace" test "$(grep -c 'trace cannot be used' out)" -eq 0
check "and what was in flight" grep -q '^in flight' out
: >"$finding/trace"
check "a report with an empty trace" status 0 report "$finding"
check "says so" grep -q 'the trace cannot be used: .* is not a trace' out
check "and claims no event" test "$(grep -c 'at event' out)" -eq 0
check "nor in JSON" status 0 report "$finding" --json
check "where it is said as well" grep -q '"trace_error": ".*is not a trace' out
rm "$finding/trace"
check "replay without a trace" status 2 replay "$finding"
check "report without a trace" status 0 report "$finding" --html page.html
check "no loop device is left" test "$(loops)" -eq 0
check "nothing is left mounted" test "$(grep -c "$dir" /proc/mounts)" -eq 0

done_testing
