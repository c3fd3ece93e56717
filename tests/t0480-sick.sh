#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0480-sick.sh - real file systems that are set up to lose data are caught, and the same workloads
# are silent where they are not; deleting one flush from what a healthy one sent is caught as well.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

requires_mounts
printf 'creat foo\nfsync foo\n' >probe

trial=("$OUTAGE" test -j 1)

# caught KIND ARGS...: it is found, with this consequence
caught() {
	local kind=$1
	shift
	tries 1 "$@" && cut -f1 kept/findings/*/problems | grep -qx "$kind"
}

# mounts SPEC: whether this kernel takes these options
mounts() {
	rm -rf mounted; timeout 900 "$OUTAGE" test -t "$1" -j 1 -o mounted probe >out 2>err
	[ $? -ne 2 ]
}

printf '%s\n' 'creat foo' 'write foo 0 8192' 'fsync foo' >new
printf '%s\n' 'write foo 0 8192' 'fsync foo' 'rename foo bar' 'fsync .' >move
printf '%s\n' 'mkdir A' 'mkdir B' 'write A/foo 0 4096' 'sync' 'rename A/foo B/foo' 'fsync A' >across
few='--crash reorder --budget 40'

# ---- a journal without barriers ----

# shellcheck disable=SC2086 # the options are meant to be split
{
	check 'ext4 without barriers loses a synced file' caught missing -t ext4,barrier=0 $few new
	check 'and what was renamed' caught lost -t ext4,barrier=0 $few move
	check 'ext4 with barriers does not' tries 0 -t ext4,barrier=1 $few new move
	check 'without reordering nobody can tell' tries 0 -t ext4,barrier=0 new move
	if mounts btrfs,nobarrier; then
		check 'btrfs without barriers has files that cannot be read' \
			caught unreadable -t btrfs,nobarrier $few new
	else
		skip 'this btrfs has no option nobarrier'
	fi
	check 'btrfs with barriers does not' tries 0 -t btrfs $few new move
}
if mounts xfs,nobarrier; then
	check 'xfs without barriers is caught' tries 1 -t xfs,nobarrier --crash reorder new
else
	check 'xfs has no option nobarrier, and says so' grep -q 'cannot be mounted' err
fi

# ---- no journal at all ----

check 'ext2: a file renamed to another directory is lost' caught lost -t ext2 --guarantee linux across
check 'ext2: which posix does not forbid' tries 0 -t ext2 across
check 'ext4: rename is atomic' tries 0 -t ext4 across
check 'ext2: under posix, a sample is silent' tries 0 -t ext2 -j 2 -b seq-2 --sample 40 --seed 3
# Its inode is given away while the old name is still on the disk; a name ends in lost+found.
printf '%s\n' 'mkdir A' 'write A/foo 0 16384' 'fdatasync A/foo' 'unlink A/foo' 'rmdir A' 'mkdir A' \
	'creat A/bar' 'fsync A/bar' >reuse
printf '%s\n' 'mkdir A' 'write A/foo 0 4096' 'fsync A/foo' 'mkdir B' 'link A/foo B/foo' \
	'creat B/bar' 'fsync B/bar' >unconnected
check 'ext2: nor does posix forbid that an inode is used again' \
	tries 0 -t ext2 --crash prefix,reorder --budget 60 reuse
check 'ext2: which is not what a journal does' \
	tries 1 -t ext2 --guarantee linux --crash prefix,reorder --budget 60 reuse
check 'ext2: nor that fsck finds a place for a name' tries 0 -t ext2 --crash prefix unconnected
printf '%s\n' 'write foo 0 4096' 'sync' 'reflink foo bar' 'mmapwrite foo 0 8192' \
	'h = open foo rdwr' 'falloc h plain 0 65536' 'pwrite h 0 512' 'fsync h' >refused
check 'ext2: what it refuses is not held against it' tries 0 -t ext2 refused

# ---- a FUSE server whose fsync does nothing when the file is open for reading only ----

# server STATUS-OR-KIND ARGS...
server() {
	local want=$1 call=tries
	shift
	case $want in [0-9]) ;; *) call=caught ;; esac
	$call "$want" -t 'fuse:fuse2fs {disk} {mnt} -f -o fakeroot,hard_remove' \
		--mkfs 'mke2fs -q -F -t ext4 -O ^has_journal {disk}' --recover 'e2fsck -y {disk}' \
		--size 16M "$@"
}
printf '%s\n' 'write foo 0 16384' 'fsync foo' 'write foo 0 8192' 'fsync foo' >reader
printf '%s\n' 'h = open foo rdwr,creat' 'write h 0 16384' 'fsync h' 'write h 0 8192' 'fsync h' \
	>writer
if [ ! -e /dev/fuse ] || ! command -v fuse2fs >/dev/null; then
	skip 'fuse2fs: it needs /dev/fuse and the package fuse2fs'
elif server 0 --guarantee posix reader; then
	skip 'this fuse2fs keeps what is synced through a descriptor for reading'
else
	check 'fuse2fs: synced data is lost' server content --guarantee posix reader
	check 'fuse2fs: also when writes land one after the other' \
		server content --guarantee posix --crash prefix reader
	check 'fuse2fs: a name is lost with it' \
		server missing --guarantee linux --crash reorder --budget 20 reader
	check 'fuse2fs: synced through a descriptor for writing, nothing is' \
		server 0 --guarantee linux --crash persist,reorder --budget 40 writer
	check 'fuse2fs: and it promises what is there at an unmount' \
		server 0 --guarantee unmount --crash persist,reorder --budget 40 reader
	check 'fuse2fs: under that, a sample is silent' \
		server 0 --guarantee unmount -j 2 -b seq-1 --sample 30
fi

# ---- one flush less ----

# lose N STATUS-OR-KIND FS
lose() {
	local n=$1 want=$2 call=tries
	case $want in [0-9]) ;; *) call=caught ;; esac
	$call "$want" -t "$3" --crash reorder --budget 60 --lose-flush "$n" new
}
for fs in ext4 xfs btrfs; do
	check "$fs: as it was recorded, nothing is wrong" lose 0 0 $fs
	check "$fs: without its first flush, something is" lose 1 1 $fs
	check "$fs: without the second, the synced file is missing" lose 2 missing $fs
	check "$fs: there is no third one" lose 3 0 $fs
done
done_testing
