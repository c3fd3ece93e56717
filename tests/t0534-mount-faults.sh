#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Power cuts and other faults in a mount: who waits meanwhile, writes that are torn, and what a trace tells
# of it after its server was killed.
# shellcheck source=tests/lib.sh disable=SC2016,SC2317 # expanded by eval, called through check
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/mount-lib.sh
. "$root/tests/mount-lib.sh"

# ---- a loss while the kernel has the file locked, and somebody waits for it ----

outage mount --daemon --log log --profile minimal data mnt
echo x >mnt/held
sync mnt/held mnt
echo x >mnt/new
outage ctl mnt delay op=write file=held delay=1s
outage ctl mnt clear-cache op=write file=held timing=after
timeout 900 sh -c 'echo more >>mnt/held' &
writer=$!
check "a delay strikes the writer" soon grep -q 'at write of held' log
timeout 900 rm mnt/held
check "nobody waits for ever: who removes the file" test $? = 0
wait $writer
check "nor who writes it" test $? = 0
outage umount mnt

# ---- a trace outlives its server, and tells what went wrong ----

mkdir root2
# trace_has WORDS: the trace that is still written, or was cut off
trace_has() {
	timeout 900 "$OUTAGE" trace show k.trace 2>/dev/null | grep -q -- "$1"
}
rm -rf root2/*
timeout 900 "$OUTAGE" mount --trace k.trace -f 'error op=write from=b error=EIO' root2 mnt \
	>fg.out 2>fg.err &
server=$!
soon mounted mnt
echo one >mnt/a
sync mnt/a
check "what is synced is in the trace at once" trace_has 'fsync *a '
echo two 2>/dev/null >mnt/b
check "and so is a fault that strikes" trace_has 'fault 1: at write of b'
echo three >mnt/c
check "the rest comes without a sync" soon trace_has 'write *c '
outage ctl mnt snapshot s
check "a snapshot is noted" trace_has 'snapshot s'
outage ctl mnt rollback s
check "and going back" trace_has 'back to snapshot s'
outage ctl mnt cache-checkpoint
check "and a checkpoint" trace_has 'everything became durable'
check "no power cut is noted that was not" test "$(timeout 900 "$OUTAGE" trace show k.trace 2>/dev/null | grep -c 'power cut by')" = 0
outage ctl mnt clear-cache
check "but one that was" trace_has 'power cut by a command'
echo four >mnt/d
sync mnt/d
kill -9 "$(pgrep -P $server)"
wait $server 2>/dev/null
check "after the server was killed all of it is readable" trace_has 'fsync *d '
outage trace graph -o k.svg k.trace
check "and the picture shows the power cut" grep -q 'power cut by a command' k.svg
soon unmounted mnt

# ---- writes that are torn ----

outage mount --daemon --log torn.log data mnt
outage ctl mnt torn-op file=fit parts_bytes=3,3 persist=1
printf 12345 >mnt/fit
soon grep -q "of 5 bytes" torn.log
outage ctl mnt faults
check "a fault whose parts do not fit tells the length" grep -q "(missed); 1 seen; the write had 5 bytes" out
check "and so does the log" grep -q "not done, its parts have another length .* of 5 bytes" torn.log
outage ctl mnt torn-op file=new parts=2 persist=1
(printf 12345678 >mnt/new) 2>/dev/null
soon unmounted mnt
check "a new file whose name was not durable is lost" test ! -e data/new
check "and the log says so" grep -q "but its name was not durable" torn.log
printf 1234 >data/old
outage mount --daemon --log torn2.log data mnt
outage ctl mnt torn-op file=old parts=2 persist=1
(printf abcdefgh 1<>mnt/old) 2>/dev/null
soon unmounted mnt
check "of an old one a part is durable" test "$(cat data/old)" = abcd
check "and its name is not called lost" eval '! grep -q "its name was not durable" torn2.log'

done_testing
