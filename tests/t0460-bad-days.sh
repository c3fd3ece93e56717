#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0460-bad-days.sh - what goes wrong on a machine that is not as it should be: one sentence that says
# what to do, exit status 2, and nothing left behind. After each kind comes its healthy twin, so that
# it is surely the missing piece that was missed.
# shellcheck disable=SC2317,SC2016 # functions are called through check; a namespace expands its words
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

requires_mounts
rm -rf probe
for_everybody
mkdir -m 777 work

# bad PATTERN COMMAND...: fails with status 2, one line that has PATTERN, and no file or directory
bad() {
	local pattern=$1 got
	shift
	rm -rf work/* work/.[!.]*
	(cd work && timeout 900 "$@" >../out 2>../err </dev/null)
	got=$?
	[ "$got" -eq 2 ] || { echo "# status $got, not 2"; return 1; }
	[ "$(wc -l <err)" -eq 1 ] || { echo "# $(wc -l <err) lines, not 1"; return 1; }
	grep -qE "^outage: .*$pattern" err || { echo "# not said: $pattern"; return 1; }
	[ -z "$(ls -A work)" ] || { echo "# left behind: $(ls -A work)"; return 1; }
}
# bad_part PATTERN COMMAND...: the same for what shows only when the run is under way
bad_part() {
	local pattern=$1 got
	shift
	(cd work && timeout 900 "$@" >../out 2>../err </dev/null)
	got=$?
	[ "$got" -eq 2 ] && grep -qE "^outage: .*$pattern" err
}
good() { # COMMAND...: works
	rm -rf work/*
	(cd work && timeout 900 "$@" >../out 2>../err </dev/null)
}
# inside SETUP ARGUMENTS...: outage after that setup, in a mount namespace of its own
inside() {
	local setup=$1
	shift
	unshare -m --propagation private sh -c "$setup"'; exec "$0" "$@"' "$OUTAGE" "$@"
}
export -f inside
export OUTAGE
one='-b seq-1 --limit 1 -j 1'

# shellcheck disable=SC2086 # options are words
{
# ---- who runs it
nobody=${as_user[*]}
check 'not root' bad 'needs root.*sudo.*outage gen and outage trace need no root' \
	$nobody "$OUTAGE" test -t ext4 $one
check 'not root: outage gen works' good $nobody "$OUTAGE" gen -b seq-1 --limit 1
check 'not root, and nowhere to write' bad 'cannot make the directory' \
	sh -c "mkdir -m 755 ro && cd ro && $nobody $OUTAGE test -t ext4 $one; s=\$?; cd ..; rmdir ro; exit \$s"

# ---- devices
check 'no /dev/fuse' bad 'needs /dev/fuse .*modprobe fuse' \
	bash -c 'inside "mount -t tmpfs t /dev" "$@"' x test -t ext4 --recorder fuse $one
check 'no /dev/fuse, for a FUSE server' bad 'needs /dev/fuse .*modprobe fuse' \
	bash -c 'inside "mount -t tmpfs t /dev" "$@"' x \
	test -t "fuse:$seedfs mount {disk} {mnt} -f" --mkfs "$seedfs mkfs {disk}" $one
check 'with it, the fuse recorder works' good "$OUTAGE" test -t ext4 --recorder fuse $one
check 'no /dev/loop-control' bad '/dev/loop-control .*modprobe loop' \
	bash -c 'inside "mount -t tmpfs t /dev" "$@"' x test -t ext4 $one
if [ -L /bin ] && [ -L /lib ]; then
	# Its root is a plain directory, and so no mount that could be made private.
	mkdir -p jail/usr jail/proc jail/sys jail/dev jail/tmp
	cp -P /bin /sbin /lib* jail
	cp "$OUTAGE" jail
	check 'in a chroot it works' good bash -c 'cd ..; inside "for d in usr proc sys dev; do mount --rbind /\$d jail/\$d; done;
		exec chroot jail /outage test -t ext4 -b seq-1 --limit 1 -j 1 -o /tmp/run"'
	check 'with the fuse recorder as well' good bash -c 'cd ..; inside "for d in usr proc sys dev; do mount --rbind /\$d jail/\$d; done;
		exec chroot jail /outage test -t ext4 --recorder fuse -b seq-1 --limit 1 -j 1 -o /tmp/run2"'
else
	skip 'making a chroot from an older layout'
fi

# ---- programs
mkdir empty
for fs in ext4:mke2fs:e2fsprogs xfs:mkfs.xfs:xfsprogs btrfs:mkfs.btrfs:btrfs-progs; do
	IFS=: read -r fs program package <<<"$fs"
	check "no $program" bad "$program is not there.*apt-get install $package" \
		env PATH="$dir/empty" "$OUTAGE" test -t "$fs" $one
done
ln -s "$(command -v mke2fs)" empty
check 'no fsck for a recovery that needs it' bad_part 'e2fsck is not there.*apt-get install e2fsprogs' \
	env PATH="$dir/empty" "$OUTAGE" test -t ext2 $one

# ---- the command line
for fs in ext2 ext3 ext4 xfs btrfs; do
	check "$fs: a disk of 64K" bad "refused a disk of 65536 bytes \(--size; $fs has [0-9]+ by default\)" \
		"$OUTAGE" test -t $fs --size 64K $one
done
check 'a disk that is no multiple of a sector' bad 'a disk cannot have 100001 bytes' \
	"$OUTAGE" test -t ext4 --size 100001 $one
check 'an unknown recorder' bad 'no recorder called tape; there are bpf, fuse' \
	"$OUTAGE" test -t ext4 --recorder tape $one
check 'an unknown target' bad "no target 'fat12'; there are ext4, xfs" "$OUTAGE" test -t fat12 $one
for fs in ext4 xfs btrfs; do
	check "$fs: an option of mount that it refuses" bad 'cannot be mounted; see dmesg.*Invalid argument' \
		"$OUTAGE" test -t $fs,fly=1 $one
done
check 'ext4: an option that it takes' good "$OUTAGE" test -t ext4,data=journal $one
check 'a file that is not there' bad 'cannot open nowhere.*No such file' "$OUTAGE" test -t ext4 nowhere
echo 'creat foo' >secret
chmod 600 secret
check 'a file that may not be read' bad 'cannot open .*secret.*Permission denied' \
	$nobody "$OUTAGE" test -t ext4 "$dir/secret"
echo 'crate foo' >wrong
check 'a file that cannot be understood' bad 'wrong:1' "$OUTAGE" test -t ext4 "$dir/wrong"

# ---- no room
check 'no room for the directory of a run' bad 'cannot make the directory full/run: No space left' \
	bash -c 'mkdir ../full; inside "cd ..; mount -t tmpfs -o nr_inodes=1 t full" "$@"' x \
	test -t ext4 $one -o full/run
sick='-t ext4,barrier=0 -b seq-1 --sample 4 -j 1 --crash reorder --budget 40'
bash -c 'inside "mount -t tmpfs -o size=64k t full" "$@"; exit $?' x test $sick -o full/run >out 2>err
check 'no room for what was found' [ $? -eq 2 ]
check 'says so' grep -q 'cannot be kept; give it a place with --output: cannot write .*No space left' err
check 'with room, the same is found' sh -c "timeout 900 $OUTAGE test $sick -o roomy >out 2>err; [ \$? -eq 1 ]"
mkdir /var/tmp/outage-bad-days.$$
trap 'rm -rf "$dir" /var/tmp/outage-bad-days.$$' EXIT
cp "$OUTAGE" /var/tmp/outage-bad-days.$$/outage
check 'a full /tmp stops nothing' good unshare -m --propagation private sh -c \
	'cd /var/tmp && mount -t tmpfs -o nr_inodes=1 t /tmp && exec "$@"' x \
	"/var/tmp/outage-bad-days.$$/outage" test -t ext4 $one -o "/var/tmp/outage-bad-days.$$/run"
check 'no address space for a disk' bad 'cannot map .*[Cc]annot allocate memory' \
	sh -c "ulimit -v 700000; exec $OUTAGE test -t ext4 --size 2G $one"
check 'a disk larger than any machine' bad 'cannot|a disk cannot' "$OUTAGE" test -t ext4 --size 900000T $one

# ---- paths that were hidden once
if [ -x "$seedfs" ]; then
	check 'a FUSE server and its output below /mnt' good bash -c 'inside "mount -t tmpfs t /mnt; cp '"$seedfs"' /mnt" "$@"' x \
		test -t 'fuse:/mnt/seedfs mount {disk} {mnt} -f' --mkfs '/mnt/seedfs mkfs {disk}' --size 4M \
		$one -o /mnt/run
	printf '%s\n' 'setup creat foo' 'setup mkdir A' 'rename foo A/foo' 'fsync A/foo' >renames
	check 'and what it finds is kept there' good bash -c 'inside "mount -t tmpfs t /mnt; cp '"$seedfs"' /mnt" \
		test -t "fuse:/mnt/seedfs mount {disk} {mnt} -f -o bug=rename-lost" --mkfs "/mnt/seedfs mkfs {disk}" \
		--size 4M -j 1 -o /mnt/run '"$dir/renames"'; [ $? -eq 1 ]'
	check 'a FUSE server that is not there' bad 'no such program' \
		"$OUTAGE" test -t 'fuse:/nowhere {disk} {mnt}' --mkfs "$seedfs mkfs {disk}" --size 4M $one
	check 'its mkfs is not there' bad 'mkfs of 4194304 bytes failed .*not found' \
		"$OUTAGE" test -t "fuse:$seedfs {disk} {mnt}" --mkfs '/nowhere {disk}' --size 4M $one
else
	skip "$seedfs is not there"
fi
}

# ---- two at once: the kernel knows a btrfs by its id, and takes no second one
"$OUTAGE" test -t btrfs -b seq-1 --limit 20 -j 2 -o first >out1 2>err1 </dev/null &
other=$!
"$OUTAGE" test -t btrfs -b seq-1 --limit 20 -j 2 -o second >out 2>err </dev/null
check 'a btrfs run beside another' [ $? -eq 0 ]
wait $other
check 'and the other' [ $? -eq 0 ]

# ---- a worker that is killed from outside
"$OUTAGE" test -t ext4 -b seq-2 --limit 120 -j 2 -o kept >out 2>err </dev/null &
run=$!
has_disk() {
	worker=$(cut -d ' ' -f 1 "/proc/$run/task/$run/children" 2>/dev/null)
	[ -n "$worker" ] && grep -qs "outage-disk-$worker-" /sys/block/loop*/loop/backing_file
}
soon eval 'has_disk || ! kill -0 $run 2>/dev/null'
kill -9 "$worker"
wait $run
check 'a worker is killed: part of the run failed' [ $? -eq 2 ]
check 'it says so, and why that may be' grep -q 'ended by signal 9 (Killed) while .*, by a person or for lack of memory' err
check 'the others went on' grep -qE 'ext4: 1(1[0-9]|20) workloads' out
nothing_left() { # what it had is let go of a moment after it
	"$OUTAGE" doctor --fix >out 2>err
	! grep -qs "outage-disk-$worker-" /sys/block/loop*/loop/backing_file
}
check 'nothing of it is left' soon nothing_left
done_testing
