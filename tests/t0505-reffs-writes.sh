#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is written to the mounted reference file system in large pieces is there, however the pieces
# lie, whoever else writes, and whatever was saved meanwhile.
# shellcheck disable=SC2317 # what `check` and the trap call
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/reffs-lib.sh
. "$root/tests/reffs-lib.sh"
requires_fuse
requires_tools fusermount3

ctl() { timeout 900 "$OUTAGE" reffs "$@" >out 2>err; }
put() { # FILE SIZE-OF-WRITES OPTIONS-OF-DD...: the same into a plain file and into the mount
	local to
	for to in "want/$1" "mnt/$1"; do
		timeout 900 dd "if=data" "of=$to" "bs=$2" conv=notrunc "${@:3}" 2>dd.err || return 1
	done
}
# Each is opened anew, and so read anew: pages are kept only while it is open.
alike() { # FILE...
	local f
	for f; do
		timeout 900 cmp "want/$f" "mnt/$f" >out 2>err || return 1
	done
}
pipes() { find "/proc/$server/fd" -lname 'pipe:*' | wc -l; }

mkdir mnt want
{
	head -c 3000000 /dev/urandom
	head -c 500000 /dev/zero # whole pages of zeros
	head -c 1100000 /dev/urandom
} >data

for how in "" --direct; do
	name=${how:+, not kept by the kernel}
	check "it is mounted$name" start $how
	before=$(pipes)
	put small 4096
	put small 1000 count=50 skip=7
	check "small writes are there$name" alike small
	check "and need no pipe$name" test "$(pipes)" = "$before"
	put large 131072
	check "large ones are there$name" alike large
	if [ "$(cat /proc/sys/fs/pipe-max-size)" -ge 1048576 ]; then
		check "and took a pipe$name" test "$(pipes)" -gt "$before"
	else
		skip "pipes are small here"
	fi
	for at in 0 1 4095 4096 4097 130000; do
		for size in 32768 131072 131073 524288 1048576; do
			put large "$size" count=2 "seek=$at" oflag=seek_bytes "skip=$((at % 7))" iflag=skip_bytes
		done
	done
	check "over others, wherever they lie$name" alike large
	put large 200000 oflag=append
	check "at the end$name" alike large
	put large 131072 count=4 seek=8388608 oflag=seek_bytes
	check "beyond the end$name" alike large
	writers=()
	for i in 1 2 3 4; do
		put "both$i" 131072 "skip=$i" &
		writers+=($!)
	done
	wait "${writers[@]}"
	check "by several at once$name" alike both1 both2 both3 both4
	check "small ones in between$name" put both1 4096 seek=9 count=3
	check "are there, too$name" alike both1 both2

	ctl save 1 mnt
	ctl hash mnt
	first=$(cat out)
	cp -r want was
	put large 131072 skip=1
	put both2 524288 skip=3 iflag=skip_bytes
	check "after a state was saved$name" alike large both2
	ctl hash mnt
	check "the state is another one$name" test "$(cat out)" != "$first"
	ctl restore 1 mnt
	mv want later && mv was want
	check "the one that was saved has not changed$name" alike small large both1 both2 both3 both4
	ctl hash mnt
	check "nor has its hash$name" test "$(cat out)" = "$first"
	stop -TERM

	start $how
	for f in small large both1 both2 both3 both4; do
		timeout 900 cp --sparse=always "want/$f" "mnt/$f"
		timeout 900 truncate -r "want/$f" "mnt/$f"
	done
	ctl hash mnt
	check "it is that of a new file system with the same files$name" test "$(cat out)" = "$first"
	echo x >>mnt/small
	ctl hash mnt
	check "and of no other$name" test "$(cat out)" != "$first"
	stop -TERM
	rm -rf want later
	mkdir want
done
done_testing
