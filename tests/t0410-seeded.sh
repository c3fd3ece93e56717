#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0410-seeded.sh - seedfs, the file system with known bugs, is a good one without them.
# shellcheck disable=SC2317,SC2016 # functions are called through check, words expanded by eval
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/seeded-lib.sh
. "$root/tests/seeded-lib.sh"

check "mkfs" mkfs
check "a new disk is clean" fsck_says 0 clean
check "mount" start
check "a second server on the disk is refused" \
	eval '! timeout 900 "$SEEDFS" mount disk ref -f >out 2>err && grep -q busy err'
run_in m exercise m.said
run_in m describe m.tree
check "operations answer as on tmpfs" same ref.said m.said
check "the tree is as on tmpfs" same ref.tree m.tree
check "unmount" stop
check "the disk is clean" fsck_says 0 clean
check "mount again" start
run_in m describe m.tree
check "everything is still there" same ref.tree m.tree
check "everything can be removed" eval 'rm -rf m/* && [ -z "$(ls -A m)" ]'
check "and the space is free again" eval '[ "$(df --output=used m | tail -1)" -le 8 ]'
stop
check "the empty disk is clean" fsck_says 0 clean

# tmpfs has no zero range: written zeros are the measure.
zero_range() {
	start && yes | head -c 20000 >m/a && cp m/a m/b && fallocate -z -o 100 -l 9000 m/a &&
		dd if=/dev/zero of=m/b bs=100 seek=1 count=90 conv=notrunc 2>err && cmp m/a m/b &&
		fallocate -z -n -o 40960 -l 4096 m/a && [ "$(stat -c '%s %b' m/a)" = "20000 48" ] &&
		fallocate -z -o 40960 -l 5000 m/a && truncate -s 45960 m/b && cmp m/a m/b &&
		[ "$(stat -c '%s %b' m/a)" = "45960 56" ] && rm m/a m/b && stop && fsck_says 0 clean
}
check "zero range" zero_range

# A full disk.
fill() {
	start || return 1
	head -c 100000 /dev/urandom >m/precious
	cp m/precious copy
	head -c 8M /dev/zero >m/big 2>out && return 1
	grep -q "No space" out && cmp m/precious copy && rm m/big &&
		head -c 2M /dev/zero >m/big && stop
}
check "a full disk says so, and loses nothing" fill
check "and is clean" fsck_says 0 clean
check "sizes" eval 'size=1M mkfs && fsck_says 0 clean && size=64M mkfs && fsck_says 0 clean &&
	! size=1000 mkfs'
check "what is no file system is refused" \
	eval 'rm -f disk; truncate -s 4M disk; ! start && grep -q superblock err && fsck_says 4 superblock'

# What was synced is there after kill -9, and nothing is damaged.
survives() {
	mkfs && start || return 1
	(
		cd m || exit 1
		mkdir A
		yes text | head -c 30000 >A/foo
		ln A/foo bar
		ln -s target A/sym
		chmod 600 A/foo
		truncate -s 123456 A/foo
		sync A/foo
		echo unsynced >later
	) || return 1
	crash
	cp disk crashed
	fsck_says 1 recovered && fsck_says 0 clean || return 1
	cp crashed disk
	start || return 1
	[ "$(stat -c '%s %a %h' m/bar)" = "123456 600 2" ] &&
		yes text | head -c 30000 | cmp -n 30000 - m/A/foo && [ "$(readlink m/A/sym)" = target ] &&
		stop
}
check "what was synced survives kill -9" survives
check "and the disk is clean after it" fsck_says 0 clean
same_twice() {
	for i in 1 2; do
		mkfs && start clock=fixed && (cd m && echo x >a && mv a b && sync b && mkdir c) && stop ||
			return 1
		cp disk "disk.$i"
	done
	cmp disk.1 disk.2
}
check "two runs with a fixed clock write the same" same_twice

exotic() {
	mkfs && start && cd m && echo a >a && mkdir d && tool set a user.one 1 && tool set a user.two 2 &&
		tool set d user.dir 3 && tool set a user.one 11 && tool remove a user.two &&
		! tool remove a user.two 2>/dev/null && tool exchange a d && truncate -s 8192 d &&
		tool mmap d && [ "$(tool list d)" = "[('user.one', b'11')]" ] &&
		[ "$(tail -c +101 d | head -c 7)" = mapping ] && [ -d a ] && cd .. && stop && start &&
		[ "$(tool list m/d)" = "[('user.one', b'11')]" ] && [ "$(tool list m/a)" != "[]" ] &&
		[ "$(tail -c +101 m/d | head -c 7)" = mapping ] && stop && fsck_says 0 clean
}
if [ $python ]; then
	check "attributes, mappings and exchanges" exotic
	cd "$dir" || exit 1
	crash
else
	skip "attributes, mappings and exchanges: no python3"
fi

done_testing
