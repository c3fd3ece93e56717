#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0432-reproduce.sh - whatever the kind of a finding, what outage export makes of it shows it on the sick
# image (1), does not on the healthy one (0), or says that it cannot tell (2): reproduce.sh, and the
# programs for what was found before any crash. The findings are one real one, rewritten for each kind.
# shellcheck source=tests/lib.sh disable=SC2317,SC2016,SC2034 # called through check; for eval
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/finding-lib.sh
. "$root/tests/finding-lib.sh"
requires_mounts
own_mounts # where nobody else holds what is unmounted
requires_tools debugfs chattr setfattr gcc
check 'there is a finding to begin with, and an image without it' real_finding
inside() { # COMMANDS: in the image of the case at hand
	mount -o loop "$img" mnt && (cd mnt && eval "$1") && umount mnt
}
poke() { # OFFSET BYTE
	printf %b "$2" | dd of="$img" bs=1 seek="$1" conv=notrunc status=none
}

ends() { exits "$2" sh "x/$1/reproduce.sh"; } # NAME STATUS
# tells NAME COMMANDS: not on the healthy image; and on the one that COMMANDS made sick
tells() {
	check "$1: not on the healthy image" ends "$1" 0
	check "$1: there is a sick image" eval "$2"
	check "$1: it shows" ends "$1" 1
}

# ---- what can be seen ----

while IFS='|' read -r kind path words seen commands <&3; do
	a_case "$kind" "$kind" "$path" "$words" "$seen"
	tells "$kind" "inside '$commands'"
done 3<<<"$path_problems
recovery|foo|recovering again gives another state: foo: mode is 0600|s/^\(file foo\) mode=0644/\1 mode=0600/|chmod 600 foo
not-single||crashes lead to different states|s/^\(file foo\) mode=0644/\1 mode=0600/|chmod 600 foo
unusable|D|D: no file can be made in it||chattr +i D"
img=$dir/x/mode/crash.img
check 'mode: of a file that is not there' eval 'inside "rm foo" && ends mode 2'

a_case nlink nlink foo 'foo: nlink is 5, has 1 name'
tells nlink 'debugfs -w -R "sif foo links_count 5" "$img" 2>/dev/null'
a_case time time foo 'foo: mtime is 1100000000.000000000, was 1000000000.000000000'
check 'time: another one' ends time 2
check 'time: the right one' eval 'inside "touch -d @1000000000 foo" && ends time 0'
check 'time: the wrong one' eval 'inside "touch -d @1100000000 foo" && ends time 1'
a_case unreadable unreadable foo 'foo: cannot be read'
at=$(debugfs -R 'imap foo' "$img" 2>/dev/null | sed -n 's/.*block \([0-9]*\), offset \(0x[0-9a-f]*\)/\1*4096+\2/p')
tells unreadable 'poke $((at + 0x7c)) "\\001\\002"' # the checksum of its inode
a_case doubled doubled foo 'foo: is listed twice'
tells doubled 'new_image "$img" -O ^metadata_csum && inside "ln foo fop" && LC_ALL=C sed -i s/fop/foo/g "$img"'

# An operation that was under way: what is there may be as before it, or as after it, and nothing between.
begin=$(timeout 900 "$OUTAGE" trace show run/findings/0-0/trace | awk '/begin/ && /creat bar/ { print $1; exit }')
set_key not-atomic state "0.$((begin + 1))"
set_key not-atomic 'done' 3
sed -i '/^file bar/d; /^char nod/d; /^symlink/d; /xattr/d' run/findings/not-atomic/expected
a_case not-atomic not-atomic '' "'creat bar' is done in part" 's/^\(file foo\) mode=0644/\1 mode=0600/'
check 'not-atomic: a third state' ends not-atomic 2
check 'not-atomic: after it' eval 'inside "setfattr -x user.a foo; rm D/l nod" && ends not-atomic 0'
check 'not-atomic: before it' eval 'inside "rm bar" && ends not-atomic 0'
check 'not-atomic: it shows' eval 'inside "chmod 600 foo" && ends not-atomic 1'

# ---- commands, and the file system's own checker ----

for kind in dump check; do
	set_key $kind-failed $kind 'test ! -e sick'
	a_case $kind-failed $kind-failed '' "--$kind ended with status 1"
	tells $kind-failed 'inside "touch sick"'
	set_key $kind-failed $kind '/nowhere/program'
	a_case $kind-failed $kind-failed '' "--$kind ended with status 1"
	check "$kind-failed: a command that is not there" ends $kind-failed 2
done
set_key read-only dump 'touch new'
set_key read-only mounted read-only
a_case read-only dump-failed '' '--dump ended with status 0'
check 'who was mounted read-only first is so again' ends read-only 1
set_key read-only mounted refused
a_case read-only dump-failed '' '--dump ended with status 0'
check 'and who refused that is mounted writable' ends read-only 0
timeout 900 "$OUTAGE" test -t ext4,barrier=0 --fsck --crash reorder --budget 10 -j 1 -o checked workload >out 2>err
check 'a case tells that states were checked by fsck' grep -qx 'with-fsck yes' checked/findings/0-0/case
a_case fsck fsck '' 'fsck complains'
tells fsck 'debugfs -w -R "sif foo links_count 5" "$img" 2>/dev/null'
sed -i 's/e2fsck -f/no-such-program -f/' x/fsck/reproduce.sh
check 'fsck: a checker that is not there' ends fsck 2

# ---- mounting ----

a_case unmountable unmountable '' 'the file system cannot be mounted: mount: Bad message'
tells unmountable 'poke 1080 "\\000\\000"' # the magic number of the superblock
a_case not-writable unmountable '' \
	'it can be mounted read-only, and not be made writable: remount: Read-only file system'
tells not-writable 'new_image "$img" -O ^metadata_csum && poke 1127 "\\200"' # a feature that forbids to write
for target in vm:pm:nosuchfs vm:jffs2; do
	set_key "${target##*:}" target $target
	a_case "${target##*:}" unmountable '' 'the file system cannot be mounted: mount: Invalid argument'
	check "$target: a kernel that does not know it tells nothing" ends "${target##*:}" 2
done
if [ -x "$seedfs" ] && [ -e /dev/fuse ]; then
	set_key not-again target "fuse:! grep -q x $dir/once || exit 1; echo x >>$dir/once; exec $seedfs mount {disk} {mnt} -f"
	a_case not-again unmountable '' 'it can be mounted once, and not again: the server ended'
	"$seedfs" mkfs "$img" >/dev/null
	: >once
	check 'not-again: it shows' ends not-again 1
	sed -i "s,echo x,: x," x/not-again/reproduce.sh
	: >once
	check 'not-again: not with a healthy server' ends not-again 0
	sed -i "s,exec .*/seedfs mount,exec $dir/no-server," x/not-again/reproduce.sh
	check 'not-again: a server that is not there' ends not-again 2
else
	skip 'seedfs or /dev/fuse is not there'
fi

# ---- the kernel's log ----

# The checksum of a bitmap is wrong, which is found out when a block is freed, and not before. What dmesg has is a
# ring: on a machine that has run for long, it has as many lines after as before.
mkdir bin
printf '#!/bin/sh\nexec true\n' >bin/dmesg
chmod +x bin/dmesg
set_key kernel-log target ext4,errors=continue,no_prefetch_block_bitmaps
says='EXT4-fs error (device loop0): ext4_validate_block_bitmap:423: comm outage: bg 0: bad block bitmap checksum'
echo "$says" >run/findings/0-0/kernel-log
cp run/findings/0-0/kernel-log run/findings/kernel-log/
a_case kernel-log kernel-log '' "the kernel says: $says"
bitmap=$(debugfs -R stats "$img" 2>/dev/null | sed -n 's/.*Group *0: block bitmap at \([0-9]*\),.*/\1/p')
PATH=$PWD/bin:$PATH tells kernel-log 'poke $((bitmap * 4096 + 4095)) "\\177"' # of a block that is not there
check 'and is told, with the device of today' grep -q '^EXT4-fs error (device loop.*bad block bitmap checksum' out
sed -i 's,/dev/kmsg,/nowhere/kmsg,g' x/kernel-log/reproduce.sh
check 'a log that cannot be read tells nothing' ends kernel-log 2

# A warning of the kernel names no device. It comes from a log of ours: the check writes it.
set_key warning check "! grep -q . $dir/warning || cat $dir/warning >>$dir/kmsg"
echo 'WARNING: CPU: 0 PID: 7 at fs/ext4/inode.c:1 ext4_x+0x1/0x2' >warning
cp warning run/findings/warning/kernel-log
a_case warning kernel-log '' "the kernel says: $(cat warning)"
sed -i "s,/dev/kmsg,$dir/kmsg,g; s/^forget_warnings\$/forgot=1/" x/warning/reproduce.sh
echo '4,1,1,-;WARNING: of another time' >kmsg
printf '4,2,2,-;%s\n' 'traps: x general protection' 'BUG: soft lockup - CPU#0 stuck' 'all is well' >warning
check 'a log without a warning' ends warning 0
echo '4,2,2,-;WARNING: CPU: 0 PID: 7 at fs/ext4/inode.c:1 ext4_x+0x1/0x2' >warning
check 'a warning' ends warning 1
sed -i 's/^forgot=1$/forgot=0/' x/warning/reproduce.sh
: >warning
check 'a warning that may have been given before' ends warning 2

# ---- before any crash ----

for kind in live hang kernel-log; do
	set_key live-$kind state live
	a_case live-$kind $kind new "$kind: $([ $kind != live ] || echo new is there)" \
		"$([ $kind != live ] || echo '$a file new mode=0644 uid=0 gid=0 nlink=1 size=0')"
	gcc -o x/live-$kind/workload x/live-$kind/workload.c || exit 1
	for program in workload workload.sh; do
		for sick in 0 1; do
			rm -rf w && mkdir w
			[ $sick = 0 ] || touch w/new
			timeout 900 x/live-$kind/$program w >out 2>err
			status=$?
			want=$([ $kind = live ] && echo $sick || echo 2)
			check "$kind: $program, $sick" test $status = "$want"
			[ "$want" != 2 ] || check 'which is said' grep -q "cannot be told.*$kind" out
		done
	done
done

check 'every kind was tried' every_kind
check 'nothing is left mounted' test "$(grep -c "$dir" /proc/mounts)" -eq 0
done_testing
