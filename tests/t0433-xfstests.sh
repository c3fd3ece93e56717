#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0433-xfstests.sh - whatever the kind of a finding, the test that outage export makes of it for xfstests
# fails where it shows, passes where it does not, or is not run. The suite is stood for by a few functions.
# shellcheck source=tests/lib.sh disable=SC2317,SC2016 # called through check; for eval
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/finding-lib.sh
. "$root/tests/finding-lib.sh"
requires_mounts
own_mounts # where nobody else holds what is unmounted
requires_tools xfs_io setfattr gcc
check 'there is a finding to begin with' real_finding
make_suite
ends() { # NAME STATUS [DAMAGE]
	in_suite "x/$1" "${3:-}"
	local status=$?
	[ "$status" = "$2" ] || { echo "# $1: status $status, not $2"; return 1; }
}

while IFS='|' read -r kind path words seen commands <&3; do
	a_case "$kind" "$kind" "$path" "$words" "$seen"
	check "$kind: it passes" ends "$kind" 0
	check "$kind: it fails" ends "$kind" 1 "$commands"
done 3<<<"$path_problems"
a_case nlink nlink foo 'foo: nlink is 2'
check 'nlink: it passes' ends nlink 0
check 'nlink: it fails' ends nlink 1 'ln foo other'
a_case unreadable unreadable foo 'foo: cannot be read'
check 'unreadable: it passes' ends unreadable 0
check 'unreadable: it fails' ends unreadable 1 'ln -sfn foo foo' # stands for an error
a_case doubled doubled foo 'foo: is listed twice'
check 'doubled: it passes' ends doubled 0
sed -i '1a ls() { command ls "$@"; [ ! -e "$SCRATCH_MNT/twice" ] || echo foo; }' x/doubled/generic-NNN
check 'doubled: it fails' ends doubled 1 'touch twice'

a_case unmountable unmountable '' 'the file system cannot be mounted: mount: Bad message'
check 'unmountable: it passes' ends unmountable 0
check 'unmountable: it fails' ends unmountable 1 false
a_case fsck fsck '' 'fsck complains'
check 'fsck: it passes' ends fsck 0
check 'fsck: it fails' ends fsck 1 'touch wrong'
a_case unusable unusable D 'D: no file can be made in it'
check 'unusable: it passes' ends unusable 0
sed -i '1a unlink() { [ ! -e wrong ] && command unlink "$@"; }' x/unusable/generic-NNN
check 'unusable: it fails' ends unusable 1 'touch wrong'
says='EXT4-fs error (device loop0): ext4_validate_block_bitmap:423: bg 0: bad block bitmap checksum'
cp -r "$template" run/findings/kernel-log
echo "$says" >run/findings/kernel-log/kernel-log
a_case kernel-log kernel-log '' "the kernel says: $says"
sed -i "s,/dev/kmsg,$dir/kmsg,g" x/kernel-log/generic-NNN
echo '4,1,1,-;EXT4-fs error (device none): of another time' >kmsg
check 'kernel-log: it passes' ends kernel-log 0
check 'kernel-log: it fails' ends kernel-log 1 "echo '4,2,2,-;EXT4-fs error (device none): x' >>$dir/kmsg"
rm kmsg
check 'kernel-log: without a log it is not run' ends kernel-log 2

for kind in recovery not-atomic not-single time dump-failed check-failed; do
	a_case $kind $kind foo "foo: $kind"
	check "$kind: it is not run" ends $kind 2
	check 'which is said' grep -q 'not run: it cannot be told' out
done
a_case control missing "$(printf 'f\001')" 'f: is missing'
check 'a name that no line can hold: it is not run' ends control 2
for kind in live hang; do
	set_key $kind state live
	a_case $kind $kind '' "$kind"
	check "$kind: there is no test" test ! -e x/$kind/generic-NNN
	check 'which is said' grep -q 'generic-NNN is not written' out
done

check 'every kind was tried' every_kind
done_testing
