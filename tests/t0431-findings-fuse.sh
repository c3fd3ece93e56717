#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Findings in a file system of user space, and such as take a second crash, during recovery: exported, each is
# shown on its own image and on no other.
# shellcheck disable=SC2317,SC2016 # called through check; for eval
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/finding-lib.sh
. "$root/tests/finding-lib.sh"

requires_root 'it mounts file systems'
own_mounts # where nobody else holds what is unmounted
requires_tools losetup gcc python3
requires_seedfs

buggy() { # BUG ARGUMENTS...: tests seedfs with that bug
	local bug=$1
	shift
	outage test -t "fuse:$seedfs mount {disk} {mnt} -f -o bug=$bug" --mkfs "$seedfs mkfs {disk}" \
		--size 4M -j 1 -o "s-$bug" "$@"
	test $? -eq 1
}
healthy_seedfs() { # DIR
	local status
	gcc -o "$1/program" "$1/workload.c" && "$seedfs" mkfs "$1/crash.img" >/dev/null || return 1
	mkdir -p mnt
	"$seedfs" mount "$1/crash.img" mnt -f &
	local server=$!
	soon eval 'mountpoint -q mnt || ! kill -0 "$server" 2>/dev/null'
	timeout 900 "$1/program" mnt >/dev/null
	status=$?
	umount mnt && wait "$server" && test "$status" -eq 0
}
while read -r bug kind set number <&3; do
	case $set in *.bounds) set=$root/tests/seeded/bounds/$set ;; esac
	check "$bug is found" buggy "$bug" -b "$set" --skip "$number" --limit 1
	check "$bug: export" status 0 export "$(of_kind "s-$bug" "$kind")" -o "x-$bug"
	check "$bug: no test for xfstests" test ! -e "x-$bug/generic-NNN"
	check "$bug: and it is said" grep -q 'generic-NNN is not written' out
	check "$bug: the script shows $kind" reproduces "x-$bug" 1
	check "$bug: an image that did the same" healthy_seedfs "x-$bug"
	check "$bug: does not show it" reproduces "x-$bug" 0
done 3<<-'EOF'
	xattr-lost xattr seq-2 1367
	symlink-empty target symlink.bounds 0
	chmod-lost mode chmod.bounds 53
	size-old size seq-1 178
	falloc-keep blocks seq-1 28
	dir-count unusable seq-1 4
	rename-both both-places seq-2 1315
EOF

# Statuses up to 3 of what recovers are repairs, in the run and in the script.
check "a repair is no failure" buggy name-new -b seq-1 --skip 1 --limit 1 \
	--recover 'cat {disk} >/dev/null; exit 3'
check "of the file system" test -d "$(of_kind s-name-new missing)"
check "and nothing else is found" test -z "$(of_kind s-name-new unmountable)"
check "nor is it in the script" status 0 export "$(of_kind s-name-new missing)" -o x-repaired
check "which goes on" reproduces x-repaired 1
check "and mounts" grep -q 'It can be mounted' out
rm -rf s-name-new
check "more is a failure" buggy name-new -b seq-1 --skip 1 --limit 1 \
	--recover 'echo {disk} is beyond repair; exit 4'
check "in the run" test -d "$(of_kind s-name-new unmountable)"
check "which does not tell where its disk was" \
	grep -q '{disk} is beyond repair' "$(of_kind s-name-new unmountable)/said"
check "and to the script" status 0 export "$(of_kind s-name-new unmountable)" -o x-beyond
check "which says so" reproduces x-beyond 1
check "aloud" grep -q 'It cannot be mounted' out

check "a crash during recovery" buggy recovery-order -b seq-1 --skip 256 --limit 1 \
	--crash recovery
finding_of=$(of_kind s-recovery-order missing)
check "it is reported" status 0 report "$finding_of"
check "as a second one" grep -q 'the power failed a second time' out
check "with the writes of recovery" grep -q '^in flight then: ' out
check "as JSON" status 0 report "$finding_of" --json
check "too" json "d['findings'][0]['second_crash']['writes']"
check "as a page" status 0 report "$finding_of" --html page.html
check "with a second picture" test "$(grep -c 'role="img"' page.html)" -eq 2
check "in a reproducer" status 0 export "$finding_of" -o x-second
check "that says so" grep -q 'the power failed a second time' x-second/reproduce.sh
check "and shows it" reproduces x-second 1
check "on that image alone" healthy_seedfs x-second
check "and on no other" reproduces x-second 0
check "the report of one crash" status 0 report "$(of_kind s-size-old size)"
check "has no second one" test "$(grep -c 'second time' out)" -eq 0
check "it can be shrunk" status 0 shrink "$finding_of" -o small-second
check "and still is one of two crashes" grep -q '^state .*/' small-second/case

check "no loop device is left" test "$(loops)" -eq 0
check "nothing is left mounted" test "$(grep -c "$dir" /proc/mounts)" -eq 0

done_testing
