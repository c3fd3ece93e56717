#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0451-resume.sh - what cannot be resumed, and runs whose workers die, cannot begin, or leave a file system
# mounted.
# takes 40 s
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/life-lib.sh
. "$root/tests/life-lib.sh"

whole_run
cp -r whole killed
mkdir else

# ---- what cannot be resumed ----

check 'another target' refused_like 'began with --target' test --resume killed -t ext4
check 'or its name in two options' refused_like 'began with --target .* cannot go on with vm:pm:xfs' test --resume killed --fstype xfs
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

# ---- workers ----

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
done_testing
