#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0453-hang.sh - what hangs, and what the kernel says meanwhile.
# takes 60 s
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/life-lib.sh
. "$root/tests/life-lib.sh"

# ---- what hangs ----

cat >three <<'END'
workload first
creat foo
fdatasync foo
workload second
creat foo
fsync foo
workload third
creat bar
fdatasync bar
END
# hanging CONDITION STATUS OPTIONS RUN ARGUMENTS...
hanging_once() {
	local condition=$1 want=$2 options=$3
	rm -rf "$4"
	status "$want" test -t "$(target "$options")" --mkfs "$mkfs" --size 4M -j 1 --hang-after "${seconds}s" -o "${@:4}" &&
		eval "$condition"
}
hanging() { with_time 8 hanging_once "$@"; }
check 'an fsync that hangs is a finding' hanging '[ "$(grep -c ^found out)" = 1 ]' 1 hang=fsync hung three
silence() { sed -n 's/.*did not answer for \([0-9]*\) s while running fsync foo.*/\1/p' out; }
check 'with what was done' test "$(silence)" -ge "$seconds"
check 'the others are done' grep -q ' 3 workloads, 2 different crash states' out
check 'it is kept' grep -q '^hang' hung/findings/1-0/problems
check 'with the limit, however long it was silent' grep -qx "hang-after-ms ${seconds}000" hung/findings/1-0/case
check 'with where it is' grep -q 'process [0-9]* is in state' hung/findings/1-0/said
check 'no server is left' no_server
check 'no device is left' no_orphan
check 'nothing is left mounted' test "$(grep -c "$dir" /proc/mounts)" -eq 0
check 'the report tells it' status 0 report hung
check 'with the operation' grep -q 'phase .*running fsync foo' out
check 'it shows again' status 1 replay hung/findings/1-0
check 'no server is left after that' no_server
check 'resumed, it is finished' status 1 test --resume hung
check 'a recovery that hangs is a finding each time' \
	hanging "json 'd[\"findings\"] == 3 and d[\"errors\"] == 0'" 1 hang=recovery hung2 three --json
check 'with the crash state' grep -q 'recovering from crash state 0\.' hung2/findings/0-0/problems
echo 'hang: creat fsync' >known
check 'a hang can be suppressed' hanging true 0 hang=fsync hung3 three --suppress known
check 'and is counted' grep -q '1 findings are suppressed' out
check 'what does not hang is silent' hanging true 0 '' quiet three
# A hang that is mended, replayed while somebody sets the clock: only time that passed counts.
cat >serve <<'END'
if [ -e hanging-on ]; then set -- "$@" -o hang=fsync; fi
exec ./server mount "$@" -f
END
jumps=$helpers/clock-jumps.so
mended() {
	rm -rf mended
	touch hanging-on
	status 1 test -t "fuse:cd $dir && exec sh serve {disk} {mnt}" --mkfs "$mkfs" --size 4M -j 1 \
		--hang-after "${seconds}s" -o mended three || return
	rm hanging-on
	exits 0 env LD_PRELOAD="$jumps" "$OUTAGE" replay mended/findings/1-0
}
if LD_PRELOAD=$jumps "$OUTAGE" --version >out 2>err && [ ! -s err ]; then
	check 'a server that hung does not hang because the clock is set' with_time 5 mended
else
	skip 'clock-jumps.so cannot be preloaded'
fi
check 'no server is left at all' no_server

# ---- what the kernel says ----

# A log of our own, in a mount namespace of its own. What recovers writes to it, once.
cat >says <<'END'
# says WHO COMMAND...: the kernel ran into a bug, in the worker or in a process that is gone
who=$1
shift
if mkdir said-once 2>/dev/null; then
	pid=$(sh -c 'echo $$')
	while [ "$who" = worker ] && [ "$(cat "/proc/$pid/comm" 2>&1)" != outage ]; do
		[ -d "/proc/$pid" ] || pid=$$
		pid=$(cut -d' ' -f4 "/proc/$pid/stat")
	done
	printf '4,77,1,-;%s\n' "WARNING: CPU: 0 PID: $pid at fs/fake.c:1 fake+0x0/0x1" 'Modules linked in:' \
		'---[ end trace 0000000000000000 ]---' >>/dev/kmsg
fi
exec "$@"
END
: >log
with_log() { # STATUS WHO RUN
	rm -rf said-once
	: >log
	timeout 900 unshare -m sh -c 'mount --bind log /dev/kmsg && exec "$@"' sh "$OUTAGE" test -t "$(target)" \
		--mkfs "$mkfs" --recover "sh $dir/says $2 true" --size 4M -j 2 "${bounds[@]}" -o "$3" --json >out 2>err </dev/null
	[ $? -eq "$1" ]
}
if [ "$(stat -Lc %i /proc/self/ns/pid)" = 4026531836 ]; then
	check 'the kernel complains of one worker' with_log 1 worker blamed
	check 'which is one finding' json 'd["findings"] == 1 and d["clusters"] == 1'
	check 'of the state at hand' grep -q 'fs/fake.c:1' blamed/findings/*/kernel-log
	check 'and of no other' test "$(kept blamed)" -eq 1
	check 'so the run has no log itself' test ! -e blamed/kernel-log
	check 'the kernel complains of nobody that is known' with_log 1 nobody unblamed
	check 'which is one finding, too' json 'd["findings"] == 1 and d["clusters"] == 1'
	check 'of no state' test "$(kept unblamed)" -eq 0
	check 'but of the run' grep -q 'fs/fake.c:1' unblamed/kernel-log
else
	skip 'numbers of processes in the log mean nothing in this namespace'
fi

# What this machine's kernel says is nothing about a file system of another kernel.
if command -v linux.uml >/dev/null; then
	: >log
	rm -rf guest-run
	timeout 900 unshare -m sh -c 'mount --bind log /dev/kmsg && exec "$@"' sh "$OUTAGE" test -t uml:ext4 -j 1 \
		--bounds seq-1 --sample 30 -o guest-run --json >out 2>err </dev/null &
	pid=$!
	while [ "$(done_in guest-run)0" -lt 10 ] && kill -0 $pid 2>/dev/null; do sleep 0.02; done
	printf '4,77,1,-;%s\n' 'WARNING: CPU: 0 PID: 2147483 at fs/fake.c:1 fake+0x0/0x1' \
		'---[ end trace 0000000000000000 ]---' >>log
	wait $pid
	check 'the kernel here complains, and the file system is in a guest' test $? -eq 0
	check 'nothing is found' json 'd["workloads"] == 30 and d["findings"] == 0 and d["errors"] == 0'
else
	skip 'linux.uml is not there'
fi
done_testing
