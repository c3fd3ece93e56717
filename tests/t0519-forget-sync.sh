#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a sync of the mount that forgets brings along, by profile: what came before it, and what fdatasync
# leaves out.
# shellcheck disable=SC2317 # what `check` and the trap call
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/forget-lib.sh
. "$root/tests/forget-lib.sh"

# ---- in order, with what survives ----

for profile in ext4-ordered xfs btrfs minimal; do
	start $profile
	bytes 5000 x >mnt/cut
	put a one
	ctl checkpoint
	truncate -s 10 mnt/cut
	mv mnt/a mnt/b
	ctl "clear-cache survivors=b"
	check "$profile: the rename survives" test -e source/b -a ! -e source/a
	[ $profile = minimal ] && size=5000 || size=10
	check "$profile: what was cut before it has $size bytes" test "$(stat -c %s source/cut)" = "$size"
	ctl checkpoint
	bytes 5000 x >mnt/cut
	ctl checkpoint
	mv mnt/b mnt/a
	truncate -s 10 mnt/cut
	ctl "clear-cache survivors=a"
	check "$profile: what is cut after it is not" test "$(stat -c %s source/cut)" = 5000
	truncate -s 10 mnt/cut
	ctl "clear-cache survive=metadata"
	[ $profile = minimal ] && size=5000 || size=10
	check "$profile: a size is metadata, with $size bytes" test "$(stat -c %s source/cut)" = "$size"
	stop
done

# ---- fdatasync ----

for profile in ext4-ordered ext4-writeback xfs; do
	for what in over again punched shrunk grown hole new; do
		start $profile
		bytes 8192 x >mnt/a
		truncate -s 65536 mnt/a
		ctl checkpoint
		case $what in
		again | punched | shrunk)
			# It is known that there is space, and then there is none.
			dd if=/dev/urandom of=mnt/a bs=4096 count=1 conv=notrunc,fdatasync 2>err
			[ $what != punched ] || fallocate -p -o 0 -l 4096 mnt/a
			[ $what != shrunk ] || { truncate -s 0 mnt/a && sync_it mnt/a && truncate -s 65536 mnt/a; }
			ctl checkpoint
			;;
		esac
		put b x
		case $what in
		over | again | punched | shrunk) offset=0 file=a ;;
		grown) offset=16 file=a ;;
		hole) offset=8 file=a ;;
		new) offset=0 file=c ;;
		esac
		dd if=/dev/urandom of="mnt/$file" bs=4096 count=1 seek="$offset" conv=notrunc,fdatasync 2>err
		ctl clear-cache
		case $what in
		over | again) check "$profile: $what: an overwrite in place commits nothing else" test ! -e source/b ;;
		*) check "$profile: $what: what needs metadata commits all" test -e source/b ;;
		esac
		stop
	done
	start $profile
	bytes 8192 x >mnt/a
	ctl checkpoint
	put b x
	dd if=/dev/urandom of=mnt/a bs=4096 count=1 conv=notrunc,fsync 2>err
	ctl clear-cache
	check "$profile: an fsync has the time of the file, and commits" test -e source/b
	stop
done

done_testing
