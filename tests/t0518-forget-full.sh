#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The mount that forgets where there is no space: ROOT is full.
# shellcheck disable=SC2317 # what `check` and the trap call
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/forget-lib.sh
. "$root/tests/forget-lib.sh"

# small SIZE: ROOT is a file system of its own, as large as this
small() {
	mkdir -p source
	umount source 2>/dev/null
	mount -t tmpfs -o "size=$1" none source
}
# fill_up [BYTES]: fills what is left of ROOT, from outside, but for so much
fill_up() {
	dd if=/dev/zero of=source/filler bs=4096 >out 2>&1
	truncate -s "-${1:-0}" source/filler
}

# ---- ROOT is full ----

keep=yes
for how in rename truncate; do
	small 2M
	start ext4-ordered
	bytes 300000 o >mnt/a
	ctl checkpoint
	fill_up 65536
	bytes 400000 n >mnt/new
	[ $how = truncate ] || mv mnt/new mnt/a
	[ $how = rename ] || { cat mnt/new >mnt/a; rm mnt/new; }
	put other x
	check "$how: a sync that cannot write what it orders fails" fails sync_it mnt/other
	check "$how: for want of space" grep -q 'No space' err
	if [ $how = rename ]; then
		check "$how: what is seen is new" all_of mnt/a 400000 n
		ctl clear-cache
		check "$how: what was replaced is there after a power cut" all_of mnt/a 300000 o
		check "$how: and in ROOT" all_of source/a 300000 o
		check "$how: nothing else is left" test ! -e mnt/new -a ! -e mnt/other
		bytes 400000 n >mnt/new
		mv mnt/new mnt/a
		put other x
	fi
	rm -f source/filler
	check "$how: with space, it works" sync_it mnt/other
	ctl clear-cache
	check "$how: and the new one is there" all_of source/a 400000 n
	stop
	umount source
done

small 2M
start ext4-ordered
bytes 300000 o >mnt/a
ctl checkpoint
fill_up 65536
bytes 400000 n >mnt/new
mv mnt/new mnt/a
soon umount mnt 2>err
finish
check "what cannot be written at the end is said" grep -q 'not everything could be written' err
check "and the old one is there" all_of source/a 300000 o
check "with nothing left to do" test ! -e source/.outage-stash
umount source

for profile in ext4-ordered xfs btrfs minimal; do
	small 2M
	start $profile
	bytes 500000 b >mnt/big
	bytes 4096 x >mnt/small
	ctl checkpoint
	fill_up 65536
	rm mnt/big
	bytes 400000 n >mnt/small
	check "$profile: what was removed gives its space to what is synced" sync_it mnt/small mnt
	check "$profile: it is written" all_of source/small 400000 n
	check "$profile: which is said" grep -q 'is full: names and attributes that waited' server.err
	bytes 100000 n >mnt/more
	rm mnt/small
	stop
	check "$profile: and at the end as well" all_of source/more 100000 n
	check "$profile: which is fine" test $status = 0
	umount source
done
small 2M
start ext4-ordered
bytes 600000 b >mnt/big
ctl checkpoint
fill_up
bytes 700000 n >mnt/a
check "what is too much is no space" fails sync_it mnt/a
check "something can be removed where nothing is free" rm mnt/big
check "which may not be enough" fails sync_it mnt/a
check "with more, it is" sh -c 'rm source/filler && sync mnt/a'
stop
check "it ends well" test $status = 0
umount source

# Names that wait need no space in ROOT, and a sync that has none for them says so.
small 1M
start ext4-ordered
ctl checkpoint
mkdir mnt/d
fill_up
for ((i = 0; i < 100; i++)); do : >mnt/d/a-name-that-takes-some-space-$i || break; done 2>err
check "names are made although ROOT is full" test -e mnt/d/a-name-that-takes-some-space-99
bytes 100000 x >mnt/d/data
check "a sync of more than there is fails" fails sync_it mnt/d/data
check "and leaves no name without its data" test ! -e source/d/data
rm source/filler
check "with space, it works" sync_it mnt/d/data
check "and brings the data" all_of source/d/data 100000 x
stop
check "and all that was before it" test -e source/d/a-name-that-takes-some-space-99
umount source
keep=

done_testing
