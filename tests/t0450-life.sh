#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0450-life.sh - the life of a run: interrupted and resumed, what is kept of it, what is suppressed,
# and what hangs.
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

requires_seedfs
requires_tools python3 pgrep

cp "$seedfs" server # so that its processes are known by their path
mkfs="$dir/server mkfs {disk}"
target() { echo "fuse:$dir/server mount {disk} {mnt} -f${1:+ -o $1}"; } # OPTIONS

sick() { # STATUS ARGUMENTS...: a file system that forgets the names of new files
	local want=$1
	shift
	status "$want" test -t "$(target bug=name-new)" --mkfs "$mkfs" --size 4M -j 2 "$@"
}
# What must be the same, however often it was interrupted.
totals() {
	python3 -c "import json; d = json.load(open('out')); print([d[k] for k in ('workloads',
		'workloads_total', 'crash_states', 'unique_states', 'findings', 'clusters', 'not_kept',
		'suppressed', 'errors')])"
}
done_in() { grep -c '^done ' "$1/progress" 2>/dev/null; } # RUN
no_server() { soon eval '! pgrep -f "$dir/server" >/dev/null'; }

# interrupt SIGNAL RUN N ARGUMENTS...: starts outage test, and sends it a signal once N are done
interrupt() {
	local signal=$1 where=$2 want=$3 pid
	shift 3
	env --default-signal=HUP timeout 900 "$OUTAGE" test "$@" >out 2>err </dev/null &
	pid=$!
	enough() { [ "$(done_in "$where")0" -ge "${want}0" ] || ! kill -0 "$pid" 2>/dev/null; }
	soon enough
	if [ "$signal" = KILL ]; then
		# timeout would not pass it on: to its child itself, the parent of the workers
		pkill -KILL -P $pid
	else
		kill "-$signal" $pid
	fi
	wait $pid 2>/dev/null
}

# ---- interrupted, and resumed ----

bounds=(--bounds seq-1 --sample 90 --seed 3)
check 'a run that is not interrupted' sick 1 "${bounds[@]}" --keep all -o whole --json
whole=$(totals)
check 'finds something' json 'd["findings"] > 3 and d["workloads"] == 90'
start=(-t "$(target bug=name-new)" --mkfs "$mkfs" --size 4M -j 2 "${bounds[@]}" --keep all -o killed)
for at in 1 25 60; do
	interrupt KILL killed $at "${start[@]}" 2>killed.err
	check "killed when $at were done: the record is there" test "$(done_in killed)" -ge $at
	check "killed when $at were done: no server is left" no_server
	start=(--resume killed -j 2)
done
check 'resumed, it comes to its end' status 1 test --resume killed -j 1 --json
check 'with the same totals' test "$(totals)" = "$whole"
check 'what was done before is not done again' json 'd["done_before"] >= 60'
check 'no workload counts twice' \
	test -z "$(awk '/^done/ { print $2 }' killed/progress | sort | uniq -d)"
check 'the same findings are kept' diff <(ls whole/findings) <(ls killed/findings)
check 'and tell the same' diff <(cat whole/findings/*/problems) <(cat killed/findings/*/problems)
check 'each can be seen again' status 1 replay "$(find killed/findings -mindepth 1 -maxdepth 1 | sort | tail -n 1)"
check 'resumed once more' status 1 test --resume killed
check 'it says that it is finished' grep -q 'killed is finished' out
check 'and gives the result' grep -q ' findings in ' out
check 'as JSON, too' status 1 test --resume killed --json
check 'with the same totals again' test "$(totals)" = "$whole"

interrupt INT stopped 10 -t "$(target bug=name-new)" --mkfs "$mkfs" --size 4M -j 2 "${bounds[@]}" --keep all -o stopped
check 'interrupted from the keyboard, it says how to go on' \
	grep -q 'outage test --resume stopped' out
check 'and goes on from another directory' sh -c \
	"mkdir -p else && cd else && timeout 900 '$OUTAGE' test --resume ../stopped --json >../out 2>../err; test \$? -eq 1"
check 'to the same totals' test "$(totals)" = "$whole"
timed() { # with as much time as it takes to do something
	local time
	for time in 1s 4s 16s 64s; do
		rm -rf timed
		sick 0 --bounds seq-2 --sample 4000 --time "$time" --json --crash last --suppress <(echo '*: *') -o timed && return 0
		grep -q 'nothing was tried' err || return 1
	done
	return 1
}
check 'when its time is up' timed
check 'part of it is done' json '0 < d["workloads"] < 4000'
ended() { # with as much time as it takes to begin
	local time
	for time in 1ns 500ms 2s 10s 60s; do
		rm -rf ended
		sick 0 --bounds seq-1 --limit 1 --time "$time" --crash last --suppress <(echo '*: *') -o ended && return 0
		grep -q 'nothing was tried' err || return 1
	done
	return 1
}
check 'when it is up before the end of the last one' ended
check 'nothing is left to go on with' eval '! grep -q "to go on" out'

# One workload that has more states than anybody could wait for: it stops between two of them.
printf '%s\n' 'mkdir A' 'creat A/foo' 'write A/foo 0 65536' 'fsync A/foo' 'rename A/foo A/bar' 'fsync A/bar' >endless
env --default-signal=TERM timeout --kill-after=10 900 "$OUTAGE" test -t "$(target bug=name-new)" --mkfs "$mkfs" --size 4M -j 1 \
	--crash reorder,torn --prune none --budget 0 --max-subset 9 --keep 1 -o endless.run endless >out 2>err </dev/null &
pid=$!
soon eval '[ -e endless.run/findings/0-0 ] || ! kill -0 $pid 2>/dev/null'
kill -TERM $pid
wait $pid
check 'in the middle of a workload with many states, a signal is obeyed' test $? -eq 2
check 'which is said, once' test "$(grep -c '^outage: stopping' err)" = 1
check 'with what was found' eval "grep -q 'stopped by a signal' out && grep -q 'findings* in .* cluster' out"
check 'nothing is wrong with that' test "$(wc -l <err)" = 1

# The end of a session is a reason to stop, unless nohup(1) says otherwise.
interrupt HUP hangup 10 -t "$(target bug=name-new)" --mkfs "$mkfs" --size 4M -j 2 "${bounds[@]}" --keep all -o hangup
check 'when the session ends, it says how to go on' grep -q 'outage test --resume hangup' out
check 'and leaves no server' no_server
check 'it goes on' status 1 test --resume hangup --json
check 'to the same totals, too' test "$(totals)" = "$whole"
timeout 900 sh -c 'trap "" HUP && exec "$@"' sh "$OUTAGE" test -t "$(target bug=name-new)" --mkfs "$mkfs" \
	--size 4M -j 2 "${bounds[@]}" --keep all -o nohup --json >out 2>err </dev/null &
pid=$!
while [ "$(done_in nohup)0" -lt 50 ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
pkill -HUP -P $pid
wait $pid
check 'with nohup it does not stop' test "$(totals)" = "$whole"

# Killed before anything was written down.
cp -r whole early
rm -r early/progress early/findings/*
check 'a run that has only begun' status 1 test --resume early --json
check 'is done from the start' json 'd["done_before"] == 0'
check 'to the same totals, too' test "$(totals)" = "$whole"

# A record that was cut in the middle, as if the machine had gone down.
cp -r whole cut
truncate -s -10 cut/progress
check 'a record that is cut' status 1 test --resume cut --json
check 'is done again' json 'd["done_before"] == 89'
check 'and nothing else' test "$(totals)" = "$whole"

# What only the second worker had kept is not taken for the disk of another.
cp -r whole gap
rm -r gap/progress gap/findings/* gap/base-*.img
echo old >gap/base-1.img
check 'with the base image of one worker there' status 1 test --resume gap -j 2
check 'no case is kept with it' sh -c '! grep -q "^base .*base-[01].img" gap/findings/*/case'
check 'it stays as it was' test "$(cat gap/base-1.img)" = old
check 'and each case shows again' status 1 replay "$(find gap/findings -mindepth 1 -maxdepth 1 | sort | head -n 1)"

# ---- what cannot be resumed ----

check 'another target' refused_like 'began with --target' test --resume killed -t ext4
check 'another seed' refused_like 'began with --seed 3' test --resume killed --seed 4
check 'another crash' refused_like 'began with --crash persist' test --resume killed --crash prefix
check 'other bounds' refused_like 'began with --bounds seq-1' test --resume killed --bounds seq-2
check 'the same seed is fine' status 1 test --resume killed --seed 3
check 'files' refused_like 'leave out out' test --resume killed out
check 'another place' refused_like 'leave -o out' test --resume killed -o else
check 'another run in the same place' refused_like 'holds a run already' test -t ext4 -b seq-1 -o killed
check 'no run at all' refused_like 'not the directory of a run' test --resume else
printf 'creat foo\nfsync foo\n' >w
timeout 900 "$OUTAGE" test -t "$(target)" --mkfs "$mkfs" --size 4M -o piped - <w >out 2>err
check 'from standard input' refused_like 'standard input, which is gone' test --resume piped
check 'workloads from a file' status 0 test -t "$(target)" --mkfs "$mkfs" --size 4M -o filed w
check 'are the same' status 0 test --resume filed
printf 'creat bar\nfsync bar\n' >w
check 'or are refused' refused_like 'are not those filed began with' test --resume filed
cp -r whole other
sed -i 's/^kernel .*/kernel 2.4.0/' other/run
check 'another kernel' refused_like 'began on Linux 2.4.0' test --resume other --trust
sed -i 's/^seed .*/sede 3/' other/run
check 'a file that is damaged' refused_like "other/run:[0-9]*: 'sede' is no key" test --resume other
cp -r whole again
awk '/^done/ && $5 == 0 { print; exit }' whole/progress >>again/progress
check 'a record that counts twice' refused_like 'twice' test --resume again

# A run names programs that are run as whoever resumes it.
cp -r whole foreign
truncate -s -10 foreign/progress
chmod o+w foreign/run
check 'what others may have written' refused_like "foreign lies where others can change it \(run: chmod go-w\), and would run '$dir/server.*--trust" test --resume foreign
check 'if it is trusted' status 1 test --resume foreign --trust
one=$(find foreign/findings -mindepth 1 -maxdepth 1 | sort | head -n 1)
check 'one of its findings, which is ours' status 1 replay "$one"
chown 1 "$one"
check "another's is not replayed" status 2 replay "$one"
check 'and says why' grep -q "$one lies where others can change it.*--trust" err
check 'nor shrunk' status 2 shrink "$one" -o foreign-small
check 'nothing is made' test ! -e foreign-small
check 'trusted it is' status 1 replay "$one" --trust

mkdir mine
echo precious >mine/suppressions
check 'a directory with a file of that name' refused_like 'mine/suppressions is there already' test \
	-t "$(target)" --mkfs "$mkfs" --size 4M -b seq-1 --limit 1 -o mine
check 'which stays' grep -q precious mine/suppressions

# A worker that dies is an error that names the workload; another one takes its place.
timeout 900 "$OUTAGE" test -t "$(target bug=name-new)" --mkfs "$mkfs" --size 4M -j 1 "${bounds[@]}" --keep all \
	-o died --json >out 2>err </dev/null &
pid=$!
while [ "$(done_in died)0" -lt 50 ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
parent=$(pgrep -P $pid | head -n 1)
pkill -SEGV -P "$parent"
wait $pid
check 'a worker that died is an error' test $? -eq 2
check 'which names the workload' grep -q 'workload seq-1.*ended by signal 11' err
check 'all others are done' json 'd["workloads"] == 89 and d["errors"] == 1'
check 'and it, too, when resumed' status 1 test --resume died --json
check 'with the totals of the whole' test "$(totals)" = "$whole"

# So is one that cannot begin, if others could: here mkfs fails as often as a file says.
cat >sometimes <<'END'
read -r left <left || left=0
[ "$left" -gt 0 ] || exec "$@"
echo $((left - 1)) >left
echo "mkfs is tired" >&2
exit 1
END
faltering() { # FAILURES OUT: the worker dies, and so often another cannot take its place
	rm -f left
	timeout 900 "$OUTAGE" test -t "$(target bug=name-new)" --mkfs "sh $dir/sometimes $mkfs" --size 4M \
		-j 1 "${bounds[@]}" --keep all -o "$2" --json >out 2>err </dev/null &
	local pid=$! got
	while [ "$(done_in "$2")0" -lt 50 ] && kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
	echo "$1" >left
	pkill -SEGV -P "$(pgrep -P "$pid" | head -n 1)"
	wait "$pid"
	got=$?
	rm -f left
	[ "$got" -eq 2 ]
}
check 'a worker that cannot begin is an error' faltering 2 faltered
check 'which tells why' grep -q 'a worker could not begin: .*mkfs is tired' err
check 'and is replaced' json 'd["workloads"] == 89 and d["errors"] == 3'
check 'but not for ever' faltering 9 gave-up
check 'then it tells what was not done' grep -q '[0-9]* workloads were not run: .*mkfs is tired' err
check 'after three in its place' json 'd["errors"] == 5 and d["workloads"] < 89'
check 'the rest is done when resumed' status 1 test --resume gave-up --json
check 'with the totals of the whole, again' test "$(totals)" = "$whole"
echo 99 >left
check 'where none can begin' status 2 test -t "$(target)" --mkfs "sh $dir/sometimes $mkfs" --size 4M -j 2 -b seq-1 -o none-begins
check 'it is told once' test "$(grep -c 'mkfs is tired' err)" -eq 1
check 'and nothing is left' test ! -e none-begins
check 'no worker tries again' test "$(cat left)" -ge 97

# And one whose file system cannot be unmounted: here a stranger sits in it.
# The run is held in a check until the stranger sits there.
cat >hold <<'END'
: >"$1/held"
until [ -e "$1/go" ]; do sleep 0.05; done
END
cat >stay.py <<'END'
import os, sys, time
here = os.stat('/proc/driver').st_dev
end = time.time() + 600
while time.time() < end:
    fd = os.open('/proc/driver/fs', os.O_RDONLY)
    if os.fstat(fd).st_dev != here:
        open(sys.argv[1], 'w').close()
        time.sleep(600)
    os.close(fd)
END
if command -v nsenter >/dev/null && grep -qw ext4 /proc/filesystems; then
	timeout 900 "$OUTAGE" test -t ext4 -j 1 --bounds seq-1 --sample 120 --check "sh '$dir/hold' '$dir'" \
		-o stuck --json >out 2>err </dev/null &
	pid=$!
	soon test -e held
	timeout 900 nsenter -t "$(pgrep -P "$(pgrep -P $pid | head -n 1)" | head -n 1)" -m python3 "$dir/stay.py" "$dir/sits" &
	stranger=$!
	soon test -e sits
	: >go
	wait $pid
	check 'a file system that stays mounted is an error' test $? -eq 2
	kill $stranger 2>/dev/null
	wait $stranger 2>/dev/null
	check 'which names workload and reason' grep -q 'workload seq-1.*cannot unmount' err
	check 'another worker does the others' json 'd["workloads"] in (119, 120) and d["errors"] == 1'
	check 'no device is left behind' no_orphan
	check 'resumed, all are done' status 0 test --resume stuck --json
	check 'that one, too' json 'd["workloads"] == 120 and d["done_before"] in (119, 120)'
else
	skip 'a file system that stays mounted: no ext4, or no nsenter'
fi

# ---- what is kept ----

kept() { find "$1/findings" -mindepth 1 -maxdepth 1 -type d | wc -l; } # RUN
most() { cut -f1 "$1"/findings/*/problems >/dev/null && timeout 900 "$OUTAGE" report "$1" --json >out; }
check 'one of each cluster' sick 1 "${bounds[@]}" --keep 1 -o one --json
check 'is kept' json "d['clusters'] == $(kept one) and d['not_kept'] == d['findings'] - d['clusters']"
check 'all are counted' test "$(totals | cut -d, -f5,6)" = "$(echo "$whole" | cut -d, -f5,6)"
check 'the report counts them, too' most one
check 'kept or not' json "sum(c['count'] for c in d['clusters']) == d['totals']['findings'] > d['totals']['kept'] == len(d['findings']) == $(kept one)"
check 'none' sick 1 "${bounds[@]}" --keep none -o none
check 'is kept, and it says so' grep -q 'of them not kept' out
check 'no directory' test "$(kept none)" -eq 0
check 'the report still has the clusters' status 0 report none
check 'with what was wrong' grep -q '^problem .*is missing' out
check 'as a page' status 0 report none --html page.html
check 'which has them as well' grep -q 'no case of it was kept' page.html
check 'a number that is none' sick 2 -b seq-1 --keep few -o no
check 'is told' grep -q 'keep is all, findings, none' err

# ---- suppressions ----

check 'rules for all that was found' status 0 report one --suppressions
cp out rules
check 'name each cluster' test "$(cut -d@ -f1 rules | sort -u | wc -l)" -ge 2
check 'and hide it all' sick 0 "${bounds[@]}" --suppress rules -o hidden --json
check 'which is counted apart' json 'd["findings"] == 0 and d["suppressed"] > 3'
check 'and not kept' test "$(kept hidden)" -eq 0
sed 1d rules >less
check 'without one of the rules' sick 1 "${bounds[@]}" --suppress less -o less.run --json
check 'only that one shows' json 'd["clusters"] == 1 and d["suppressed"] > 0'
check 'which is the one' grep -qF "$(head -n 1 rules | sed 's/ @.*//')" less.run/progress
check 'rules for another target' sick 1 "${bounds[@]}" --suppress <(sed 's/@ fuse/@ ext4/' rules) -o for-ext4 --json
check 'hide nothing' json 'd["suppressed"] == 0'
check 'two files' sick 0 "${bounds[@]}" --suppress less --suppress <(head -n 1 rules) -o two
check 'they hold when the run is resumed' status 0 test --resume hidden --json
check 'as before' json 'd["suppressed"] > 3'
printf '# fine\nmissing: *\nmising: *\n' >bad
check 'a rule that is wrong' sick 2 -b seq-1 --suppress bad -o no
check 'is named' grep -q "bad:3: 'mising' is no kind" err
known=$root/share/known-btrfs.suppress
printf '%s\n' 'creat foo' 'fsync foo' 'setup mkdir A' 'setup creat A/foo' 'rename A/foo foo' \
	'setup creat A/bar' 'fsync A/bar' >replaced
if status 1 test -t btrfs -j 1 -o btrfs replaced; then
	check 'what is known of btrfs is hidden' status 0 test -t btrfs -j 1 --suppress "$known" -o btrfs2 replaced
	check 'and counted' grep -q '1 findings are suppressed' out
	sed 's/^setup //' replaced >longer
	check 'what is not known is told' status 1 test -t btrfs -j 1 --suppress "$known" -o btrfs3 longer
else
	skip 'this btrfs does not lose a replaced file'
fi

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
hanging() { # STATUS OPTIONS ARGUMENTS...
	local want=$1 options=$2
	shift 2
	status "$want" test -t "$(target "$options")" --mkfs "$mkfs" --size 4M -j 1 --hang-after 5s "$@"
}
check 'an fsync that hangs is a finding' hanging 1 hang=fsync -o hung three
check 'with what was done' grep -Eq 'did not answer for ([5-9]|[1-9][0-9]+) s while running fsync foo' out
check 'the others are done' grep -q ' 3 workloads, 2 different crash states' out
check 'it is kept' grep -q '^hang' hung/findings/1-0/problems
check 'with the limit, however long it was silent' grep -qx 'hang-after-ms 5000' hung/findings/1-0/case
check 'with where it is' grep -q 'process [0-9]* is in state' hung/findings/1-0/said
check 'no server is left' no_server
check 'no device is left' no_orphan
check 'nothing is left mounted' test "$(grep -c "$dir" /proc/mounts)" -eq 0
check 'the report tells it' status 0 report hung
check 'with the operation' grep -q 'phase .*running fsync foo' out
check 'it shows again' status 1 replay hung/findings/1-0
check 'no server is left after that' no_server
check 'resumed, it is finished' status 1 test --resume hung
check 'a recovery that hangs' hanging 1 hang=recovery -o hung2 three --json
check 'is a finding each time' json 'd["findings"] == 3 and d["errors"] == 0'
check 'with the crash state' grep -q 'recovering from crash state 0\.' hung2/findings/0-0/problems
check 'a hang can be suppressed' hanging 0 hang=fsync --suppress <(echo 'hang: creat fsync') -o hung3 three
check 'and is counted' grep -q '1 findings are suppressed' out
check 'what does not hang is silent' hanging 0 '' -o quiet three
# A hang that is mended, replayed while somebody sets the clock: only time that passed counts.
cat >serve <<'END'
if [ -e hanging-on ]; then set -- "$@" -o hang=fsync; fi
exec ./server mount "$@" -f
END
jumps=$helpers/clock-jumps.so
if LD_PRELOAD=$jumps "$OUTAGE" --version >out 2>err && [ ! -s err ]; then
	touch hanging-on
	check 'a server that hangs for a while' status 1 test -t "fuse:cd $dir && exec sh serve {disk} {mnt}" --mkfs "$mkfs" \
		--size 4M -j 1 --hang-after 2s -o mended three
	rm hanging-on
	LD_PRELOAD=$jumps timeout 900 "$OUTAGE" replay mended/findings/1-0 >out 2>err
	check 'does not hang because the clock is set' test $? -eq 0
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

# ---- where it is ----

# A place that the mounts of a worker may hide.
unshare -m sh -c "mount -t tmpfs none /mnt && timeout 900 '$OUTAGE' test -t '$(target bug=name-new)' \
	--mkfs '$mkfs' --size 4M -j 1 -b seq-1 --limit 8 -o /mnt/run >out 2>err; cp -r /mnt/run hidden-place"
check 'a run below a place that is hidden keeps what it found' \
	test -f "$(find hidden-place/findings -name case 2>/dev/null | head -n 1)"
done_testing
