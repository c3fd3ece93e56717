#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0510-kernel.sh - outage explore on the file systems of this kernel and on FUSE servers: healthy
# ones do not differ from the reference, sick ones do, and nothing is left behind.
# takes 50 s
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

requires_mounts

trial=("$OUTAGE" explore)

# ---- healthy ----

for fs in ext4 xfs btrfs; do
	check "$fs: walks do not differ from the reference" tries 0 -t $fs --order walk --limit 8000 --seed 11
	check "$fs: nor does a depth-first search" tries 0 -t $fs --order depth --limit 2500
	check "$fs: nor breadth first" tries 0 -t $fs --order breadth --limit 1000
	check "$fs: nor with a mount around every step" tries 0 -t $fs --order walk --strategy remount --limit 250
	# What btrfs loses of its promises is in doc/findings.md.
	promise=linux
	[ $fs = btrfs ] && promise=posix
	check "$fs: nor after crashes" tries 0 -t $fs --order walk --crash-every 5 --guarantee $promise --depth 25 --limit 600
done
check 'crashes were tried' grep -q '^[1-9][0-9]* crash states checked' out
for fs in ext2 ext3; do
	check "$fs: walks do not differ from the reference" tries 0 -t $fs --order walk --limit 3000
done
check 'ext2 is unmounted to be saved' tries 0 -t ext2 --order depth --limit 600
check 'ext4 against xfs, without the reference' tries 0 -t ext4 -r xfs --order walk --limit 2500
check 'three of them, where the majority decides' tries 0 -t ext4 -r reffs -r btrfs --order walk --limit 1500
check 'a small disk runs full, and nobody is to blame' \
	tries 0 -t ext4 --size 2200k --mkfs '-b 1024' --order walk --limit 3000 --depth 1000
check 'nor one that has no inode left, after which everything is removed' \
	tries 0 -t ext4 --mkfs '-N 16' --order walk --limit 6000
check 'which it ran out of' grep -q "own business: .* ENOSPC" out

# ---- sick ----

check 'ext4 that gives files the group of their directory is caught' \
	tries 1 -t ext4,grpid --order walk --time 800s --findings 1
check 'by three operations' test "$(wc -l <kept/findings/1-0/workload)" = 3
check 'what differed is kept' grep -q 'owner is' kept/findings/1-0/problems
check 'with a log of what each returned' grep -q 'ext4,grpid returns 0; reffs returns 0' kept/findings/1-0/log
check 'and the disk' test -s kept/findings/1-0/last.img
check 'it is shown again' sh -c "
	timeout 900 '$OUTAGE' explore --replay kept/findings/1-0 >out 2>err; [ \$? = 1 ]"
check 'and by outage replay' sh -c "
	timeout 900 '$OUTAGE' replay kept/findings/1-0 >out 2>err; [ \$? = 1 ]"
timeout 900 "$OUTAGE" export kept/findings/1-0 -o exported >said 2>err
check 'it can be exported' test $? = 0
check 'as a program' sh -c 'cc -Wall -Wextra -Werror -o program exported/workload.c 2>err'
check 'and a script' sh -n exported/workload.sh
check 'but as no test of what a crash leaves' test ! -e exported/generic-NNN
check 'which is said' grep -q 'generic-NNN is not written: nothing had crashed' said

# on OPTIONS STATUS COMMAND...: what it ends with in the root of a new ext4, mounted so
on() {
	local options=$1 want=$2 got
	shift 2
	rm -f disk.img
	truncate -s 32M disk.img && mke2fs -q -F -t ext4 disk.img && mkdir -p mnt || return 1
	# shellcheck disable=SC2016 # for the shell that runs it
	timeout 900 unshare -m sh -c '
		mount -o "loop,$1" disk.img mnt || exit 99
		shift
		"$@" mnt
		got=$?
		umount mnt
		exit $got' - "$options" "$@" >out 2>err
	got=$?
	[ "$got" -eq "$want" ] || { echo "# status $got, not $want"; return 1; }
}
check 'the program shows it' on grpid 1 ./program
check 'and what it is' grep -q 'owner is NOT as expected' out
check 'but not on a healthy one' on defaults 0 ./program
check 'the script shows it' on grpid 1 exported/workload.sh
check 'and what it is' grep -q '^shows: .*owner is' out
check 'but not on a healthy one' on defaults 0 exported/workload.sh
check 'and says so' grep -q '^does not show: .*owner is' out
check 'and where it was, and where it should be' grep -qx 'DIR is on ext2/ext3; it was found on ext4,grpid' out

# ---- FUSE ----

fuse() {
	local want=$1 bug=$2
	shift 2
	tries "$want" -t "fuse:$seedfs mount {disk} {mnt} -f $bug" --mkfs "$seedfs mkfs {disk}" \
		--size 4M "$@"
}
if [ -x "$seedfs" ] && [ -e /dev/fuse ]; then
	check 'a FUSE server: walks' fuse 0 "" --order walk --limit 1500
	check 'a FUSE server: depth first' fuse 0 '' --order depth --limit 800
	check 'a FUSE server with a bug that only a crash shows' \
		fuse 1 '-o bug=chmod-lost' --order walk --crash-every 3 --depth 20 --time 800s --findings 1
	check 'and without it' fuse 0 '' --order walk --crash-every 3 --depth 20 --limit 250
	# A server that makes its own disk anew whenever it starts.
	anew="mounted:rm -f $dir/disk; $seedfs mkfs $dir/disk; exec $seedfs mount $dir/disk {mnt} -f"
	check 'a server whose states cannot be saved is started anew' \
		tries 0 -t "$anew" --order walk --depth 60 --limit 400
	check 'and walked where it should be searched depth first' \
		tries 0 -t "$anew" --order depth --limit 400
	check 'which is said' grep -q 'cannot be saved: it is searched by walks' err
	check 'one whose states can be is not' tries 0 -t ext4 --order depth --limit 200
	check 'and nothing is said' test ! -s err
	check 'a server that ends at once' tries 2 -t 'mounted:true {mnt}' --order walk
	check 'is said to' grep -q 'ended before anything was mounted' err
	if "$OUTAGE" reffs --help >out 2>err; then
		check 'the mounted reference file system saves itself' \
			tries 0 -t "mounted:$OUTAGE reffs {mnt}" --order depth --limit 1500
		check 'and was mounted once' grep -q ', 1 mount$' out
	else
		skip 'outage reffs is not there'
	fi
	hangs() {
		fuse 1 '-o hang=fsync' --order walk --hang-after "${seconds}s" &&
			tail -n 1 kept/findings/999000-0/workload | grep -q sync
	}
	check 'a server that stops answering is a finding, with what was being done' with_time 10 hangs
	check 'and is said to hang' grep -Eq 'did not answer for [1-9][0-9]+ s' out
	# shellcheck disable=SC2016 # for the shell that runs it
	check 'a server that does not mount' sh -c '
		timeout 900 "$1" explore -t "fuse:sleep 100 # {disk} {mnt}" --mkfs "true {disk}" --hang-after 2s \
			-o none >out 2>err; [ $? -eq 2 ] && grep -q "did not answer" err' - "$OUTAGE"
else
	skip 'there is no /dev/fuse'
fi

check 'no device is left behind' no_orphan

done_testing
