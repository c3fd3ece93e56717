#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0620-guest-ends.sh - how a guest ends, and who is to blame: its kernel for a panic or a hang, which
# are findings; somebody else for a guest that is killed, stopped, or has too little memory, which are
# errors of the run, and no word about the file system.
# takes 73 s
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_uml
own_guests
our() { pgrep -x "$1" | marked; } # PROGRAM: prints the processes of this test that run it

printf 'creat foo\nwrite foo 0 8192\nfsync foo\n' >short
(cat short; for ((i = 0; i < 30000; i++)); do echo 'chmod foo 0644'; done) >long

# The guest of a run that is at its second workload, a long one.
begin() { # TARGET ARGUMENTS
	rm -rf run
	timeout --kill-after=5 900 "$OUTAGE" test -t "$1" "${@:2}" -j 1 -o run short long short >out 2>err </dev/null &
	pid=$!
	run=$pid progressed run 2
	guest='' seen=''
	soon eval 'busy || ! kill -0 "$pid" 2>/dev/null'
}
busy() { # $guest is there, and has used half a second of processor time since it was first seen
	local p ticks
	for p in $(our linux.uml) $(our qemu-system-x86); do # not a process that it uses
		[ "$(ps -o comm= -p "$(ps -o ppid= -p "$p" | tr -d ' ')")" != outage ] || guest=$p
	done
	[ -n "$guest" ] && ticks=$(sed 's/.*) //' "/proc/$guest/stat" 2>/dev/null | awk '{ print $12 + $13 }') || return 1
	[ "$seen" = "$guest" ] || { seen=$guest since=$ticks; return 1; }
	[ $((ticks - since)) -ge 50 ]
}
traced() { # prints the processes in which a kernel of user-mode Linux runs programs
	local p
	for p in $(our linux.uml); do
		grep -q '^TracerPid:[[:space:]]*0$' "/proc/$p/status" || echo "$p"
	done
}
failed_alone() { ended 2 && says '^nothing found in 2 of 3 workloads'; }
error() { # NAME PATTERN: the run that was begun ends with that error, and without a finding
	check "$1: part of the run failed, and nothing is found" failed_alone
	check "$1: that is said" complains "$2"
}
stopped() { # TARGET: its guest is stopped
	begin "$1" --hang-after "${seconds}s"
	kill -STOP "$guest"
	failed_alone
}

# From outside.
begin uml:ext4
kill -TERM "$guest"
check "told to end, a guest goes on" ended 0
check "and nothing is found" says '^nothing found'
check "in any workload" says '3 workloads'
begin uml:ext4
kill -KILL "$guest"
error 'killed' 'workload long: the guest was killed from outside'
begin uml:ext4
# shellcheck disable=SC2046 # all of them
kill -KILL $(traced)
error 'a process of its is killed' 'the guest was killed from outside: a process in which its kernel runs'
begin uml:ext4
# shellcheck disable=SC2046 # all of them
kill -STOP $(traced)
error 'a process of its is stopped' 'the guest was killed from outside: a process in which its kernel runs'
check 'stopped: part of the run failed, and nothing is found' with_time 30 stopped uml:ext4
check 'stopped: that is said' complains 'workload long: the guest was stopped from outside, .*\(linux.uml\)'

# By itself: its kernel faults, and panics.
begin uml:ext4
# At some moments it takes it for a fault that it can mend.
soon eval '! kill -SEGV "$guest" 2>/dev/null'
check "a panic before any crash is a finding" ended 1
check "of what the kernel said" says 'the kernel says: Kernel panic'
check "and the run goes on" says '3 workloads'
check "of crash states nothing is said" [ "$(grep -c 'no workload has a persistence point' out)" = 0 ]
timeout 900 "$OUTAGE" report run/findings/1-0 >out 2>err
check "it can be reported" says 'nothing had crashed yet'

# It does not move, and nobody has stopped it: whoever traces it lets it run no more.
cat >hold.py <<'EOF'
import ctypes, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
for request in (0x4206, 0x4207):  # seize, interrupt
    if libc.ptrace(request, int(sys.argv[1]), 0, 0) < 0:
        sys.exit(1)
print("held", flush=True)
time.sleep(900)
EOF
hangs() {
	begin uml:ext4 --hang-after "${seconds}s"
	python3 hold.py "$guest" >held 2>&1 &
	holder=$!
	ended 1
	local how=$?
	kill "$holder" 2>/dev/null
	[ "$how" = 0 ] && { ! grep -q held held || says '^found  hang: '; }
}
check "a guest hangs: that is a finding, called so" with_time 30 hangs
if grep -q held held; then
	check "and the others were done" says '3 workloads'
else
	skip "nobody may trace another process here"
fi

# Too little memory is nobody's bug; what one operation may write fits by default.
printf 'write foo 0 67108864\nfsync foo\n' >large
check "64 MB in one write" status 0 test -t uml:ext4 --size 400M -o large-run large
# What is written, and the kernel, have no room in 76 MB; whether they have it in 96 is a matter of luck.
cat >little <<EOF
#!/bin/bash
exec $(command -v linux.uml) "\${@/#mem=*/mem=76M}"
EOF
chmod +x little
check "too little memory is no finding" status 2 test -t uml:ext4 --kernel ./little --size 400M \
	--guest-memory 96M -o x large
check "but said, with what to do" complains 'ran out of memory: it has 96M; give it more with --guest-memory'
check "and nothing is found" says '^nothing found in 0 of 1 workloads'
check "it is kept for who goes on" grep -qx 'guest-memory 100663296' x/run
check "--guest-memory 1M" status 2 test -t uml:ext4 --guest-memory 1M -o y short
check "is too little for any kernel" complains 'guest-memory is between 96M and 64G'
check "--guest-memory for a target without a guest" status 2 test -t ext4 --guest-memory 1G -o y short
check "is refused" complains '^outage: --guest-memory is for uml: and vm: targets'
check "explore takes it" status 0 explore -t uml:ext4 --guest-memory 128M --limit 20 -o explored
check "and refuses it for others" status 2 explore -t reffs --guest-memory 128M --limit 20 -o y
check "a finding has it" status 1 test -t uml:ext4,barrier=0 --guest-memory 128M --crash reorder --budget 60 \
	-o sick short
case=$(find sick/findings -mindepth 1 -maxdepth 1 | sort | head -1)
check "in its case" grep -qx 'guest-memory 134217728' "$case/case"

# A disk on which mke2fs makes no journal cannot keep what one is there for.
for t in uml:ext4 uml:ext3; do
	check "$t on a disk that is too small" status 2 test -t $t --size 4M -o y short
	check "is refused" complains "ext[34] on a disk of 4194304 bytes has no journal.*--size is at least 8192K"
	check "on one of 8 MB it is not" status 0 test -t $t --size 8M -o "small-${t#uml:}" short
done
outage test -t uml:ext4 --size 8M --mkfs '-O ^has_journal' --json -o none short
check "nor is who wants no journal" says '"errors": 0'
if [ "$(id -u)" = 0 ]; then
	check "the same on this machine" status 2 test -t ext4 --size 4M -o y short
	check "is refused" complains 'has no journal'
else
	skip "ext4 of this machine needs root"
fi

# What a kernel says while it boots is not the first workload's.
cat >loud <<EOF
#!/bin/sh
[ "\$1" = --version ] || printf 'WARNING: CPU: 0 PID: 1 at kernel/boot.c:7 boot+0x1/0x2\n---[ end trace 0 ]---\n'
exec $(command -v linux.uml) "\$@"
EOF
chmod +x loud
check "a warning while it boots" status 0 test -t uml:ext4 --kernel ./loud -o loud-run short
check "is no finding" says '^nothing found'

# A disk that is taken away, as its front end asks for what there is not.
cat >odd.py <<'EOF'
#!/usr/bin/env python3
import os, socket, struct, sys, time
if sys.argv[1] == "--version":
    print("6.1.0")
    sys.exit()
socks = []
for word in sys.argv:
    if word.startswith("virtio_uml.device="):
        s = socket.socket(socket.AF_UNIX)
        s.connect(word.split("=")[1].rsplit(":", 1)[0])
        socks.append(s)
time.sleep(int(open(os.path.dirname(os.path.abspath(__file__)) + "/odd.seconds").read()))
socks[0].send(struct.pack("III", 99, 1, 0))
time.sleep(900)
EOF
chmod +x odd.py
# It says so once it is listened to, which takes as long as it takes.
for seconds in 1 4 16 64 256; do
	echo $seconds >odd.seconds
	rm -rf odd
	outage test -t uml:ext4 --kernel ./odd.py -o odd short
	complains 'did not start: no answer' || break
done
check "a front end that cannot be followed" test $status = 2
check "is an error" complains 'the guest cannot go on: its disk was taken away: message 99'

mkdir -m 777 user
if [ "$(id -u)" = 0 ]; then
	cp "$OUTAGE" prog
	chmod 755 "$dir" prog
	(cd user && timeout 900 setpriv --reuid=65534 --regid=65534 --clear-groups env OUTAGE_CACHE="$dir/user" \
		"$dir/prog" doctor) >out 2>err </dev/null
	check "for an ordinary user a guest is all he needs" [ $? = 0 ]
	check "and is told so" says 'File systems of other kernels can be tested here, in a guest and without root'
else
	skip "this is no root already"
fi

# The keeper of a guest is killed: there is another one, who ends the guest when all others are killed.
begin uml:ext4
keeper() { # prints the child of the worker that is no guest
	for p in $(our outage); do
		[ "$(ps -o ppid= -p "$p" | tr -d ' ')" != "$(ps -o ppid= -p "$guest" | tr -d ' ')" ] || echo "$p"
	done
}
first=$(keeper)
kill -KILL "$first"
replaced() {
	local now
	now=$(keeper)
	[ -n "$now" ] && [ "$now" != "$first" ]
}
check "a keeper that is killed is replaced" soon replaced
kill -KILL "$(ps -o ppid= -p "$guest" | tr -d ' ')"
check "and ends the guest of a worker that is killed" soon test ! -d "/proc/$guest"
kill -INT "$(pgrep -P "$pid")" 2>/dev/null
wait "$pid"

# The same for a virtual machine, whose end QEMU tells.
mkdir -p "$kernels/kernels" cache
ln -s "$kernels/kernels" cache/kernels
if ! command -v qemu-system-x86_64 >/dev/null; then
	skip "qemu-system-x86_64 is not there (apt-get install qemu-system-x86)"
elif ! outage test -t vm:ext4 -o vm-first short && complains 'apt-get|apt-cache'; then
	skip "no kernel can be fetched"
else
	begin vm:ext4
	kill -TERM "$guest"
	error 'QEMU is told to end' 'the guest was killed from outside: the emulator was told to end'
	begin vm:ext4
	kill -KILL "$guest"
	error 'QEMU is killed' 'the guest was killed from outside'
	check 'QEMU is stopped: part of the run failed, and nothing is found' with_time 30 stopped vm:ext4
	check 'QEMU is stopped: that is said' complains 'the guest was stopped from outside, .*\(qemu-system-x86\)'
fi

done_testing
