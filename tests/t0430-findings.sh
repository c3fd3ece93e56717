#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A finding from end to end: reported, seen again, made small, and handed to people who do not have
# this program. ext4 without barriers is the sick one: it never flushes, so a crash may lose anything.
# shellcheck source=tests/lib.sh disable=SC2317 # called through check
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" != 0 ]; then
	echo "1..0 # SKIP needs root: it mounts file systems"
	exit 77
fi
for tool in mke2fs losetup gcc python3; do
	if ! command -v "$tool" >/dev/null; then
		echo "1..0 # SKIP $tool is not there"
		exit 77
	fi
done

loops() { losetup -l -n -O NAME,BACK-FILE | grep -c "$dir"; }
run() { timeout 120 "$OUTAGE" "$@" >out 2>err; }                # ARGUMENTS: its exit status
status() { local want=$1; shift; run "$@"; test $? -eq "$want"; } # STATUS ARGUMENTS
json() { python3 -c "import json, sys; d = json.load(open('out')); sys.exit(not ($1))"; } # CONDITION

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
check "shrink with a budget stops" status 0 shrink "$finding" -o less --runs 3 --json
check "and says so" json "d['budget_hit']"

# A finding carries the options that found it, and running it again uses them.
check "the case has its crash modes" grep -qx 'crash reorder' "$finding/case"
check "and its budget" grep -qx 'budget 40' "$finding/case"
cp -r "$finding" milder
sed -i 's/^crash .*/crash last/; s|^base .*|base ../run/base-0.img|' milder/case
check "with milder crashes it does not show" status 0 replay milder --rerun
sed -i 's/^crash .*/crash sideways/' milder/case
check "a mode that is none" status 2 replay milder --rerun
check "is told" grep -q "milder/case: 'sideways' is none of" err

# A healthy file system must not show what the sick one did.
cp -r small healthy
sed -i 's/^target .*/target ext4/' healthy/case
check "what is healthy does not show it" status 0 replay healthy --rerun

# ---- for others ----

check "export" status 0 export "$finding" -o exported
check "the image is sparse" test "$(du -k exported/crash.img | cut -f 1)" -lt 8192
for script in reproduce.sh workload.sh; do
	check "$script is a script" sh -n "exported/$script"
done
check "the test is a script" bash -n exported/generic-NNN
check "each states the finding" \
	test "$(grep -l 'foo: is missing' exported/* | wc -l)" -eq 4
timeout 60 exported/reproduce.sh >out 2>err
check "the script shows it" test $? -eq 1
check "and says what was expected" grep -q '^f 644 0:0 64 bytes, [12] links foo' out
mkdir in-c in-shell
check "the program compiles" gcc -Wall -Wextra -Werror -o program exported/workload.c
timeout 60 ./program in-c >out 2>err
check "it does as then" test $? -eq 0
check "the tree is as expected" test -f "in-c/A/<script>alert(1)" -a in-c/foo -ef 'in-c/B/bar&amp;'
check "and so is the content" \
	grep -qF "$(cat in-c/foo)" <(grep '^file foo ' "$finding/expected")
timeout 60 exported/workload.sh in-shell >out 2>err
check "the shell script makes the same tree" \
	diff <(cd in-c && find . -printf '%y %m %n %P\n' | sort) \
	<(cd in-shell && find . -printf '%y %m %n %P\n' | sort)

# ---- what cannot be done ----

check "replay of nothing" status 2 replay nowhere
check "report of nothing" status 2 report nowhere
check "export without a place" status 2 export "$finding"
rm "$finding/trace"
check "replay without a trace" status 2 replay "$finding"
check "report without a trace" status 0 report "$finding" --html page.html
check "no loop device is left" test "$(loops)" -eq 0
check "nothing is left mounted" test "$(grep -c "$dir" /proc/mounts)" -eq 0
done_testing
