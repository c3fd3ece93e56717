#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0610-vm.sh - file systems in a virtual machine: healthy ones are silent, all ways to a kernel's
# ext4 see the same, a kernel that panics is reported and started anew, what a person gets wrong is
# said in one sentence, and nothing stays behind, however a run ends.
# takes 89 s
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_qemu

# The kernel is fetched once and kept for other runs; all else goes to a folder of this test.
own_machines
mkdir -p "$kernels" cache

touch new
printf 'creat foo\nwrite foo 0 8192\nfsync foo\n' >short
printf 'mkdir A\ncreat A/foo\nsync\nmkdir B\nrename A/foo B/bar\nwrite B/bar 0 8192\nfsync B/bar\nunlink B/bar\nrmdir A\nsync\n' >long
printf 'creat foo\nwrite foo 0 5000\nremount\ndrop_caches\nf1 = open foo rdwr\nwrite f1 5000 10\nfsync f1\nclose f1\n' >again

# The kernel of Debian: fetched by apt-get, and not installed.
OUTAGE_CACHE=$kernels outage test -t vm:ext4 -o fetched short
fetched=$?
image=$(cloud_kernel)
requires_kernel $fetched "$image"
check "a kernel is fetched and boots" [ $fetched = 0 ]
OUTAGE_CACHE=$dir/first
mkdir first
ln -s "$kernels/kernels" first/kernels
check "a first run" status 0 test -t vm:ext4 -o first-run short
cp err first-said
outage doctor
if says 'starts, by KVM'; then
	skip "with KVM there is nothing to wait for"
else
	check "says what it waits for" grep -q '^outage: booting Linux .* in an emulated machine' first-said
fi
check "the next one" status 0 test -t vm:ext4 -o second-run short
check "need not wait, and says nothing" test ! -s err
release=${image##*/vmlinuz-}
check "only what a machine needs is kept" [ "$(du -sm "$kernels/kernels" | cut -f1)" -lt 400 ]
export OUTAGE_CACHE=$dir/cache
ln -s "$kernels/kernels" cache/kernels

# Healthy, and silent.
check "vm:ext4 is silent" status 0 -v -v test -t vm:ext4 --kernel "$image" -j 2 -b seq-1 --sample 12 \
	--paranoid --json -o ok
check "it was tested" json "d['workloads'] == d['verified'] == 12 and d['crash_states'] >= 12 and \
	d['errors'] == 0 and d['kernel'] == '$release'"
check "what has booted once is kept" [ "$(find cache -name 'vm-*.state' | wc -l)" -le 1 ]
check "vm:ext4 is silent in every mode" status 0 test -t vm:ext4 --kernel "$image" -j 2 -b seq-1 \
	--sample 4 --crash prefix,reorder,recovery --budget 30 --fsck -o modes
check "remounts, caches and handles" status 0 test -t vm:ext4 --kernel "$image" --json -o again-run again
check "none of it was refused" json "d['refused'] == 0 and d['unique_states'] > 0"
check "it can be explored" status 0 explore -t vm:ext4 --time 300s --limit 1000 -o explored
if [ -x "$(command -v mkfs.xfs)" ]; then
	check "vm:xfs, a module, is silent" status 0 test -t vm:xfs --kernel "$image" -b seq-1 --sample 4 -o xfs
else
	skip "mkfs.xfs is not there"
fi
check "vm:ext2 is preened by a program in the guest" outage test -t vm:ext2 --kernel "$image" --json -o ext2 short
check "without an error" json "d['errors'] == 0 and d['unique_states'] > 0"

# Sick, and caught.
check "without barriers, something is lost" status 1 test -t vm:ext4,barrier=0 --kernel "$image" \
	--crash reorder --budget 60 -o sick short
check "a file is missing" says '^found  missing: creat write fsync'
case=$(find sick/findings -mindepth 1 -maxdepth 1 | sort | head -1)
check "a finding is shown again" status 1 replay "$case"
outage report "$case"
check "a report says which kernel it was" says "vm:ext4,barrier=0, guarantee linux, Linux $release"

# The same workload is seen in the same way on every kernel. If every operation were durable, ext4
# would be at fault after most of them; what is there then is kept.
verdicts() { # TARGET NAME ARGUMENTS
	outage test -t "$1" --guarantee sync -j 1 -o "$2" "${@:3}" long
	(cd "$2/findings" && for f in */problems */seen; do echo "$f" && cat "$f"; done) >"$2.seen" 2>>err
}
verdicts vm:ext4 by-vm
check "verdicts on vm:ext4" [ "$(grep -c problems by-vm.seen)" -ge 5 ]
if [ "$(id -u)" = 0 ]; then
	verdicts ext4 by-host
	check "are those on ext4 of this machine" cmp by-host.seen by-vm.seen
else
	skip "ext4 of this machine needs root"
fi
if command -v linux.uml >/dev/null; then
	verdicts uml:ext4 by-uml
	check "and on uml:ext4" cmp by-uml.seen by-vm.seen
else
	skip "linux.uml is not there"
fi

# Also where time is counted in instructions.
verdicts vm:ext4 by-count --deterministic
check "and with --deterministic" cmp by-count.seen by-vm.seen
check "which the case says" grep -qx 'deterministic yes' by-count/findings/0-0/case
check "and others do not" [ "$(grep -c deterministic by-vm/findings/0-0/case)" = 0 ]
check "and it is shown again" status 1 replay by-count/findings/0-0

# Then not only what is found is the same, but every byte that was written; without it times differ. Where
# other programs have the processors, a guest spins for longer until it is answered, and there are two or
# three ways that it can go: it takes some runs until one comes again.
traces() { (cd "$1/findings" && cksum ./*/trace); }
come_again() {
	local i
	traces by-count >traces.0
	for i in 1 2 3 4 5 6; do
		verdicts vm:ext4 "by-count-$i" --deterministic
		traces "by-count-$i" >"traces.$i"
		cmp_any "$i" && return 0
	done
	return 1
}
cmp_any() { # N: the traces of that run are those of one before, all of them
	local j
	for ((j = 0; j < $1; j++)); do
		cmp -s "traces.$j" "traces.$1" && return 0
	done
	return 1
}
check "again with --deterministic: the traces are the same" come_again
verdicts vm:ext4 by-vm-again
check "twice without: they are not" [ "$(traces by-vm)" != "$(traces by-vm-again)" ]

# A kernel that panics.
check "a panic is a finding" status 1 test -t vm:ext4,barrier=0,errors=panic --kernel "$image" \
	--crash reorder --budget 60 --json -j 1 -o panic long
check "and the run goes on to its end" json "d['workloads'] == 1 and d['unique_states'] == 60 and d['errors'] == 0"
check "the panic is told" grep -rq 'Kernel panic' panic/findings --include=problems

# An ordinary user, who has a copy of program and kernel, and a folder of his own.
if [ "$(id -u)" = 0 ]; then
	chmod 755 "$dir"
	mkdir -m 777 nobody
	cp "$OUTAGE" prog
	cp -r "$(dirname "$image")/.." kernel
	# Compressed, as other kernels have them.
	find kernel/lib -path '*/drivers/*' -name '*.ko' -exec gzip {} +
	chmod -R a+rX kernel
	(cd nobody && timeout --kill-after=5 900 setpriv --reuid=65534 --regid=65534 --clear-groups \
		env OUTAGE_CACHE="$dir/nobody/cache" "$dir/prog" test -t vm:ext4 \
		--kernel "$dir/kernel/boot/vmlinuz-$release" --json -o run "$dir/short") >out 2>err </dev/null
	check "without root, and with compressed modules" json "d['workloads'] == 1 and d['findings'] == d['errors'] == 0"
	check "a machine is kept, too" [ -n "$(find nobody/cache -name 'vm-*.state')" ]
else
	skip "this is no root already"
fi

# What a person can get wrong.
head -c 100000 /dev/urandom >noise
wrong "no target 'vm:zfs'.*; there are .*vm:ext4" -t vm:zfs
wrong 'cannot find /nowhere' -t vm:ext4 --kernel /nowhere
wrong 'noise is no kernel that a virtual machine can boot' -t vm:ext4 --kernel noise
head -c 5000000 "$image" >half
wrong 'the kernel .*/half is cut off: by its header it has at least [0-9]+ bytes, and there are 5000000' \
	-t vm:ext4 --kernel half
cp "$image" damaged
dd if=/dev/urandom of=damaged bs=1k seek=3000 count=8 conv=notrunc status=none
wrong '^outage: the kernel .*/damaged cannot be used: it is damaged: its lz4 data ' \
	-t vm:ext4 --kernel damaged
: >nothing
wrong '/nothing is an empty file, and no kernel' -t vm:ext4 --kernel nothing
wrong ' is a directory, and no kernel' -t vm:ext4 --kernel "$dir"
mkfifo pipe
wrong '/pipe is no regular file, and no kernel' -t vm:ext4 --kernel pipe
head -c 60000 "$OUTAGE" >vmlinux
wrong 'the kernel .*/vmlinux is cut off' -t vm:ext4 --kernel vmlinux
wrong 'is a program, and no machine can boot it' -t vm:ext4 --kernel "$OUTAGE"
wrong 'has no f2fs: neither built in nor as a module' -t vm:f2fs --kernel "$image"
mkdir tools
printf '#!/bin/sh\n' >tools/bcachefs
chmod +x tools/bcachefs
PATH=$PATH:$dir/tools
wrong 'has no bcachefs: neither built in nor as a module in .*; name one that has it with --kernel' \
	-t vm:bcachefs --kernel "$image"
wrong 'flash of 5000000 bytes cannot be: --size is a multiple of 65536, and at most 64M' \
	-t vm:jffs2 --kernel "$image" --size 5000000
wrong 'the writes of vm:jffs2 are seen only between operations, .* give --crash without torn' \
	-t vm:jffs2 --kernel "$image" --crash torn
cp "$image" alone
[ -d "/lib/modules/$release" ] || wrong 'there are no modules for .*alone \(see --modules\)' -t vm:ext4 --kernel alone
wrong 'modules.dep' -t vm:ext4 --kernel "$image" --modules "$dir/cache"
wrong 'recorder bpf cannot see what a guest writes' -t vm:ext4 --kernel "$image" --recorder bpf
wrong '^outage: --deterministic is for vm: targets' -t uml:ext4 --deterministic
mkdir empty-path
for p in mke2fs e2fsck sh; do ln -s "$(command -v "$p")" empty-path/; done
no_qemu() { # with a cache of its own, which holds no kernel
	timeout --kill-after=5 900 env PATH="$dir/empty-path" OUTAGE_CACHE="$dir/none" "$OUTAGE" "$@" \
		>out 2>err </dev/null
}
no_qemu test -t vm:ext4 --kernel "$image" -o x short
check "no QEMU: it cannot run" [ $? = 2 ]
check "and says what to install" complains 'qemu-system-x86_64 is not there; .*apt-get install qemu-system-x86'
ln -s "$(command -v qemu-system-x86_64)" empty-path/
no_qemu test -t vm:ext4 -o x short
check "no kernel, and no apt-get: it cannot run" [ $? = 2 ]
check "and says what to do" complains 'name one with --kernel FILE'
check "in one line" one_line
outage test -t help
check "help has a line for it" says '^vm:ext4 +ext4 of any kernel'
OUTAGE_CACHE=$kernels outage doctor
check "doctor says that it works" says "^ok +virtual machine +Linux $release starts"
check "also for persistent memory" says '^ok +virtual machine .* vm:ext4-dax'
# Another build of QEMU, without plugins.
cat >tools/qemu-system-x86_64 <<END
#!/bin/sh
[ "\$1" != -help ] || { $(command -v qemu-system-x86_64) -help | grep -v plugin; exit 0; }
exec $(command -v qemu-system-x86_64) "\$@"
END
chmod +x tools/qemu-system-x86_64
PATH=$dir/tools:$PATH outage doctor
check "without plugins, vm:ext4 can be tested" says '^ok +virtual machine .* vm:ext4 '
check "but none in persistent memory" eval '! says "^ok +virtual machine .* vm:ext4-dax"'

# However it ends, nothing stays.
check "no process is left" wait_for_none
long=(-t vm:ext4 --kernel "$image" -b seq-2 -j 2)
under_way 6 interrupted "${long[@]}"
kill -INT "$pid"
wait "$run"
check "interrupted: it stops" [ $? -eq 2 ]
check "interrupted: no process is left" wait_for_none
under_way 6 killed "${long[@]}"
check "killed: machines are there before" soon eval '[ -n "$(ours)" ]'
kill -KILL "$pid"
wait "$run" 2>/dev/null
check "killed: and none after" wait_for_none

# QEMU that somebody kills: the workload is lost, and said to be; the run goes on.
under_way 6 shot "${long[@]}" --limit 40
soon eval '[ -n "$(ours)" ] || ! kill -0 "$run" 2>/dev/null'
kill -KILL "$(ours | head -1)"
wait "$run"
check "QEMU was killed: part of the run failed" [ $? -eq 2 ]
check "it is said" complains 'the guest was killed'
check "and the others were done" says '(39|40) workloads'
kill_early() { # ends it while the first machine boots, and no template is there yet
	rm -f cache/vm-*
	timeout --kill-after=5 900 "$OUTAGE" test -t vm:ext4 --kernel "$image" -o early short >out 2>err </dev/null &
	run=$!
	soon eval '[ -n "$(ours)" ] || ! kill -0 "$run" 2>/dev/null'
	kill -INT "$(pgrep -P "$run")"
	wait "$run"
}
kill_early
check "interrupted while it boots: no process is left" wait_for_none
check "no half of a machine is kept" [ "$(find cache/ -maxdepth 1 -name '*vm-*.ram*' | wc -l)" = \
	"$(find cache/ -maxdepth 1 -name 'vm-*.state' | wc -l)" ]
check "and the next run works" status 0 test -t vm:ext4 --kernel "$image" -o after short

check "no socket is left" no_socket new

# A template that does not work is made anew, and harms nobody.
for f in cache/vm-*.state; do head -c 1000 /dev/urandom >"$f"; done
check "a template that is broken" status 0 test -t vm:ext4 --kernel "$image" -o broken short
check "is dropped" [ "$(find cache -name 'vm-*.state' -size -2k | wc -l)" = 0 ]

done_testing
