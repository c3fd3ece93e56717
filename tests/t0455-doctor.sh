#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0455-doctor.sh - outage doctor: what works here and what does not, and clearing what killed runs
# left. Only what this test made itself is looked at: others may be running beside it.
# shellcheck disable=SC2317,SC2016 # functions are called through check; a namespace expands its words
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"


as_nobody() { # STATUS COMMAND...: with a copy of the program that anybody may run
	local want=$1
	shift
	for_everybody
	timeout 900 "${as_user[@]}" "$OUTAGE" "$@" >out 2>err
	[ $? -eq "$want" ]
}

check 'an unknown option' status 2 doctor --mend
check 'says so' grep -q "unknown option --mend" err
check 'an argument' status 2 doctor everything

"$OUTAGE" >out 2>err
check 'without a command, it says what can be done' says 'outage doctor .*works on this machine'
check 'and what of it here' says 'can be tested here'
check 'on one screen' [ "$(wc -l <out)" -le 24 ]

# An ordinary user can test file systems of other kernels, if there are any.
if command -v linux.uml >/dev/null; then
	user=0
else
	user=2
fi
if [ "$(id -u)" != 0 ]; then
	check 'not root: what a user can do counts' status $user doctor
	check 'not root: says so' says '^missing  root'
	done_testing
fi

check 'as nobody: what a user can do counts' as_nobody $user doctor
check 'as nobody: those of this kernel cannot be tested' \
	says "Those of this machine's kernel need root|^File systems cannot be tested here"
check 'as nobody: root is missing' says '^missing  root'
check 'as nobody: and it says what to do' says '> run outage as root'
check 'as nobody: without a command, too' as_nobody 0
check 'as nobody: sudo is named' says 'sudo outage test'

if ! timeout 900 "$OUTAGE" test -t ext4 -b seq-1 --limit 1 -o probe >out 2>err; then
	skip "file systems cannot be tested here: $(head -1 err)"
	done_testing
fi
check 'as root: file systems can be tested' status 0 doctor
check 'as root: nothing is missing for ext4' says '^ok +ext4'
if command -v qemu-x86_64 >/dev/null; then
	check 'programs on persistent memory can be traced' says '^ok +pm programs .*by QEMU [0-9]'
else
	check 'programs on persistent memory cannot be traced' says '^note +pm programs .*apt-get install qemu-user'
fi
if command -v fusermount3 >/dev/null; then
	check 'fusermount3 is found' says '^ok +fusermount3'
else
	skip 'fusermount3 is not there'
fi
check 'as JSON' status 0 doctor --json
check 'JSON says the same' json "d['usable'] and any(c['name'] == 'ext4' and c['status'] == 'ok' for c in d['checks'])"

# Sick machines, made in a mount namespace or with another environment.
with_path() { # STATUS PATH
	PATH=$2 "$OUTAGE" doctor >out 2>err
	[ $? -eq "$1" ]
}
inside() { # STATUS SETUP: doctor after that setup
	timeout 900 unshare -m --propagation private sh -c "$2; exec $OUTAGE doctor" >out 2>err
	[ $? -eq "$1" ]
}
mkdir bin
ln -s "$(command -v mke2fs)" "$(command -v e2fsck)" bin
check 'no mkfs.xfs: the others can still be tested' with_path 0 "$dir/bin"
check 'no mkfs.xfs: it names the package' says '> apt-get install xfsprogs'
check 'no mkfs.xfs: ext4 is well' says '^ok +ext4'
check 'no fusermount3: says what cannot be mounted' says '^missing +fusermount3 +without root, outage reffs'
check 'no fusermount3: it names the package' says '> apt-get install fuse3'
check 'no program at all: nothing can be tested' with_path 2 /nowhere
few_devices='mount -t tmpfs t /dev; mknod /dev/null c 1 3; mknod /dev/kmsg c 1 11;
	mknod /dev/loop-control c 10 237; for i in $(seq 0 255); do mknod /dev/loop$i b 7 $i; done'
check 'no /dev/fuse: the rest works' inside 0 "$few_devices"
check 'no /dev/fuse: says so' says '^missing  /dev/fuse'
check 'no loop devices: nothing can be tested' inside 2 'mount -t tmpfs t /dev; mknod /dev/null c 1 3'
check 'no loop devices: says so' says '^missing  loop devices'
check 'no loop devices: and what to do' says '> modprobe loop'

# What a process that is gone has left, and what one that is alive needs: this shell.
start=$(sed 's/.*) //' /proc/$$/stat | cut -d ' ' -f 20)
space=$(stat -L -c %i /proc/self/ns/pid)
gone=outage-tmp-$$-$((start + 1))-$space
living=outage-tmp-$$-$start-$space
export TMPDIR=$dir/tmp
mkdir -p "$TMPDIR/$gone.d/deep" "$TMPDIR/$living.d"
touch "$TMPDIR/$gone" "$TMPDIR/$gone.d/deep/file" "$TMPDIR/$living" "$TMPDIR/outage-1" "$TMPDIR/other"
ln -s "$dir/out" "$TMPDIR/$gone.link"
OUTAGE_OWNER=$gone sleep 600 &
orphan=$!
disown $orphan
OUTAGE_OWNER=$living sleep 600 &
mine=$!
disown $mine
trap 'kill $orphan $mine 2>/dev/null; [ -z "$dir" ] || rm -rf "$dir"' EXIT
truncate -s 1M "$gone.img"
loop=
if command -v losetup >/dev/null; then loop=$(losetup -f --show "$dir/$gone.img"); fi
check 'looking changes nothing' status 0 doctor
check 'it finds the file' says "file $TMPDIR/$gone,"
check 'and the process' says "process $orphan \(sleep\)"
check 'and says what to do' says '> outage doctor --fix'
check 'not what is alive' sh -c "! grep -q '$living' out && ! grep -q 'process $mine ' out"
check 'the process is still there' kill -0 $orphan
check 'clearing' status 0 doctor --fix --json
check 'says what it did' json "any(l['what'] == '$TMPDIR/$gone' and l['cleared'] for l in d['leftovers'])"
check 'the process is gone' sh -c "! kill -0 $orphan 2>/dev/null || grep -q 'State:.Z' /proc/$orphan/status"
check 'the files are gone' sh -c "! ls '$TMPDIR' | grep -q '$gone'"
check 'what a link pointed at is not' test -e "$dir/out"
check 'what is alive is not' test -e "$TMPDIR/$living" -a -d "$TMPDIR/$living.d"
check 'nor is its process' kill -0 $mine
check 'nor what only looks like it' test -e "$TMPDIR/outage-1" -a -e "$TMPDIR/other"
if [ -n "$loop" ]; then
	check 'the loop device is free' sh -c "! losetup -n -O BACK-FILE $loop 2>/dev/null | grep -q '$gone'"
else
	skip 'losetup is not there'
fi
check 'a second time there is nothing of it left' sh -c "TMPDIR=$TMPDIR timeout 900 $OUTAGE doctor --fix >out 2>err; ! grep -q '$gone' out"
kill $mine 2>/dev/null
done_testing
