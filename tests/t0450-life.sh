#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0450-life.sh - the life of a run: interrupted and resumed, however it is ended, and wherever it is.
# takes 40 s
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/life-lib.sh
. "$root/tests/life-lib.sh"

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

whole_run
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
# Both are tried again with more time for a moment's work; the last time is a limit for what hangs.
timed() { # with as much time as it takes to do something
	local time
	for time in 1s 4s 16s 64s 256s; do
		rm -rf timed
		sick 0 --bounds seq-2 --sample 4000 --time "$time" --json --crash last --suppress <(echo '*: *') -o timed && return 0
		grep -q 'nothing was tried' err || return 1
	done
	return 1
}
check 'when its time is up' timed
check 'part of it is done' json '0 < d["workloads"] < 4000'
time_up() { # with as much time as it takes to begin
	local time
	for time in 1ns 500ms 2s 10s 60s 300s; do
		rm -rf ended
		sick 0 --bounds seq-1 --limit 1 --time "$time" --crash last --suppress <(echo '*: *') -o ended && return 0
		grep -q 'nothing was tried' err || return 1
	done
	return 1
}
check 'when it is up before the end of the last one' time_up
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

# A place that the mounts of a worker may hide.
unshare -m sh -c "mount -t tmpfs none /mnt && timeout 900 '$OUTAGE' test -t '$(target bug=name-new)' \
	--mkfs '$mkfs' --size 4M -j 1 -b seq-1 --limit 8 -o /mnt/run >out 2>err; cp -r /mnt/run hidden-place"
check 'a run below a place that is hidden keeps what it found' \
	test -f "$(find hidden-place/findings -name case 2>/dev/null | head -n 1)"
done_testing
