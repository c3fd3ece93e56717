#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0470-kill.sh - runs that are killed at some moment leave nothing: no mount, no process, no file, and
# no loop device that the next run, or outage doctor --fix, does not take back. Others may be running
# beside it: only what belongs to the killed run is looked for, by the numbers of its processes.
#
#	OUTAGE_SEED=N tests/t0470-kill.sh	other moments
# shellcheck disable=SC2317,SC2013,SC2094 # functions are called through check; numbers are words
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

requires_mounts
RANDOM=${OUTAGE_SEED:-470}
export TMPDIR=$dir/tmp
mkdir "$TMPDIR"
run=
trap '[ -z "$run" ] || kill -9 -- "-$run" 2>/dev/null; "$OUTAGE" doctor --fix >/dev/null 2>&1; [ -z "$dir" ] || rm -rf "$dir"' EXIT

# Every process below the run, and those that were below it a moment ago, with the time they began:
# numbers are used again.
family() { # PID
	local child
	for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
		echo "$child $(sed 's/.*) //' "/proc/$child/stat" 2>/dev/null | cut -d ' ' -f 20)"
		family "$child"
	done
}

no_process() { # those in the file "family" are gone
	local pid start now
	alive=
	while read -r pid start; do
		now=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null)
		if [ -n "$start" ] && [ "$(cut -d ' ' -f 20 <<<"$now")" = "$start" ] && [ "${now%% *}" != Z ]; then
			alive="$pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
			return 1
		fi
	done <family
}

# A pattern for the names of what the run's processes own.
owned() { awk '{ printf "%soutage-[a-z]+-%s-%s-", n++ ? "|" : "", $1, $2 }' family; }
no_loop() { ! grep -sqE "$pattern" /sys/block/loop*/loop/backing_file; }
# In every namespace that there is, through the processes in it.
no_mount() { ! grep -sqE "$pattern" /proc/[0-9]*/mountinfo; }
no_file() {
	local found
	found=$(find "$TMPDIR" /tmp /var/tmp /dev/shm -maxdepth 1 2>/dev/null | grep -E "$pattern")
	[ -z "$found" ] && [ -z "$(ls -A "$TMPDIR")" ]
}

start() { # TARGET: a run in a process group of its own, so that it can be killed whole
	local spec=("$1")
	case $1 in
	fuse) spec=("fuse:$seedfs mount {disk} {mnt} -f" --mkfs "$seedfs mkfs {disk}" --size 4M) ;;
	# A shell stays between the run and the server, so that killing the one leaves the other.
	shell) spec=("fuse:true; $seedfs mount {disk} {mnt} -f; true" --mkfs "$seedfs mkfs {disk}" --size 4M) ;;
	recorder) spec=(ext4 --recorder fuse) ;;
	esac
	rm -rf kept
	setsid "$OUTAGE" test -t "${spec[@]}" -b seq-2 -j 2 -o kept >out 2>err </dev/null &
	run=$!
}

exec 2>/dev/null # bash tells of each child that was killed
ms=0
kills=(KILL INT TERM KILL)
targets=(ext4 xfs btrfs)
if [ -x "$seedfs" ] && [ -r /dev/fuse ]; then
	targets+=(fuse shell recorder)
fi
for ((round = 0; round < 12; round++)); do
	target=${targets[round % ${#targets[@]}]}
	signal=${kills[(round / ${#targets[@]} + round) % 4]}
	whole=$((RANDOM % 3))
	ms=$((100 + RANDOM % 1900))
	start "$target"
	sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
	# What it consists of must be known when it dies: it is stopped for the look.
	kill -STOP "$run"
	: >family
	family "$run" >family
	case $whole in
	0) what='the parent' ;;
	1) what='its group' ;;
	2) what='all its processes' ;;
	esac
	name="$target, SIG$signal to $what after $ms ms"
	[ "$whole" = 2 ] && awk '{ print $1 }' family | xargs -r kill -s "$signal" 2>/dev/null
	kill -s "$signal" -- "$([ "$whole" = 1 ] && printf -- -)$run"
	kill -CONT "$run" 2>/dev/null
	echo "# $name: $(wc -l <family) processes below it"
	if ! soon sh -c "! kill -0 $run 2>/dev/null || grep -q 'State:.Z' /proc/$run/status"; then
		check "$name: it ends" false
	fi
	wait "$run"
	run=
	pattern=$(owned)
	[ -n "$pattern" ] || pattern='^nothing at all$'
	alive=
	if [ "$signal" = KILL ]; then
		# Those that left their parent, and devices, are for who comes after. Every second time
		# that is the next run.
		if [ $((round % 2)) = 0 ] && [ "$target" != shell ]; then
			soon no_process
			rm -rf next; timeout 900 "$OUTAGE" test -t ext4 -b seq-1 --limit 1 -o next >out 2>err
			check "$name: the next run works" grep -q 'nothing found' out
		else
			timeout 900 "$OUTAGE" doctor --fix >out 2>err
			check "$name: doctor ends well" [ $? -eq 0 ]
		fi
	fi
	check "$name: no process is left" soon no_process
	[ -z "$alive" ] || echo "#   $alive"
	check "$name: nothing is mounted, in no namespace" soon no_mount
	check "$name: no file is left" soon no_file
	if [ "$signal" = KILL ]; then timeout 900 "$OUTAGE" doctor --fix >out 2>err; fi
	check "$name: no loop device is left" soon no_loop
done

# The negative side: what this test looks for would be seen.
start ext4
at_work() { # it has all that it will have
	family "$run" >family
	pattern=$(owned)
	[ -n "$pattern" ] && ! no_process && ! no_loop && ! no_mount
}
soon at_work
check 'while a run works, its processes are seen' eval '! no_process'
check 'its loop devices' eval '! no_loop'
check 'and its mounts' soon eval '! no_mount'
touch "$TMPDIR/x"
check 'a file would be' eval '! no_file'
rm "$TMPDIR/x"
kill -INT "$run"
{ wait "$run"; } 2>/dev/null
run=
done_testing
