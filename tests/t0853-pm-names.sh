#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0853-pm-names.sh - the functions that reports of persistent memory name are those of the machine that was
# traced, also if the others have booted on their own and have their modules elsewhere.
# takes 40 s
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_root 'it puts another program in the place of QEMU'
requires_qemu
requires_tools busybox:busybox-static
qemu=$(realpath "$(command -v qemu-system-x86_64)")
own_mounts
mkdir -p "$kernels"
export OUTAGE_CACHE=$kernels
printf '%s\n' 'creat foo' 'fsync foo' >one
keeps 0 "$OUTAGE" test -t vm:ext4-dax -j 1 --crash persist one
rc=$?
requires_kernel $rc
check 'a machine that has booted is kept' test $rc -eq 0

# The traced machine cannot go on from it, and boots; a probe in its kernel has a page where modules would
# be. What is kept depends on QEMU's size and age, so the program in its place has them, too.
copy=$(mktemp -d "$kernels.XXXXXX") || exit 1
trap 'umount "$qemu" "$kernels" "$dir/real/bin/qemu" 2>/dev/null; cd /; rm -rf "$copy" "$dir"' EXIT
mkdir -p real/bin && ln -s /usr/share /usr/lib real/ && touch real/bin/qemu
cat >instead <<END
#!/bin/sh
case " \$* " in
*' -plugin '*' -incoming '*) exit 1 ;;
*' -plugin '*)
	for word; do
		case \$word in console=*) word="\$word kprobe_event=p,vfs_read" ;; esac
		set -- "\$@" "\$word"
		shift
	done ;;
esac
exec "$PWD/real/bin/qemu" "\$@"
exit
END
chmod 755 instead && truncate -s "$(stat -c %s "$qemu")" instead && touch -r "$qemu" instead &&
	cp -al "$kernels/." "$copy" && mount --bind "$copy" "$kernels" &&
	mount --bind "$qemu" real/bin/qemu && mount --bind instead "$qemu" || exit 1

# What its kernel says of itself, the traced machine writes to a file of the file system under test.
echo 'shell "grep nd_pmem /proc/kallsyms >names; sync"' >asked
f=kept/findings/0-0
# addresses FILE: "ADDRESS NAME" of what a quoted text has of the module
addresses() { # "ffffffff" is eight times f there
	sed -n '/^file names/{s/8\*"f"+"/ffffffff/g;s/"+/\n/g;p}' "$1" |
		sed -n 's/.*\(ffffffff[0-9a-f]\{8\}\) t \([a-z_]*\)\\x09\[nd_pmem\].*/\1 \2/p'
}
elsewhere() { # the machine that checks has it somewhere else
	local there
	there=$(sed -n 's/^\(ffffffff[0-9a-f]*\) t pmem_do_write.*/\1/p' "$f/said" | head -n 1)
	[ -n "$there" ] && ! grep -q "^$there pmem_do_write\$" true
}
found() {
	keeps 1 "$OUTAGE" -v test -t vm:ext4-dax -j 1 --guarantee sync --crash persist \
		--check 'grep "t pmem_do_write" /proc/kallsyms; false' asked && addresses $f/expected >true
}
# Where the kernel puts a module depends on what its threads did before; now and then it is the same place.
for ((i = 0; i < 4; i++)); do
	found
	rc=$?
	[ $rc = 0 ] && ! elsewhere || break
done
check 'something is found' test $rc -eq 0
check 'by a machine that has booted for it' complains 'another one is booted'
grep -h '\[nd_pmem\]' $f/places >named
check 'it tells where the module is' test -s true
check 'and names are kept for places in it' test -s named
check 'which is elsewhere in the machine that checks' elsewhere
right() { # each name is that of an address which the machine itself gave it
	local at place name
	while read -r at place _; do
		name=${place%+*}
		printf '%x %s\n' $((at - ${place#*+})) "$name" >out
		grep -qxFf out true || return 1
	done <named
}
check 'they are right' right
check 'the last store is told by name' grep -q '(pmem_do_write+0x' $f/diagnosis
names() { sed -n 's/.* \([a-z_]*+0x[0-9a-f]*\) \[nd_pmem\]$/\1/p' "$1" | sort; }
timeout 900 "$OUTAGE" report $f --json >out 2>err
check 'and so in a report' grep -q "\"$(names $f/places | grep pmem_do_write | head -n 1) \[nd_pmem\]" out

# In another machine, all of it is somewhere else once more; a name and what is behind it are the same.
umount "$qemu" "$kernels"
timeout 900 "$OUTAGE" shrink $f -o small >out 2>err
check 'it is made small in another one' test $? -eq 0
check 'with addresses of its own' eval "! cmp -s <(grep nd_pmem $f/places) <(grep nd_pmem small/places)"
check 'and the same names' eval "[ -n \"\$(names small/places)\" ] && [ -z \"\$(comm -13 <(names $f/places) <(names small/places))\" ]"
done_testing
