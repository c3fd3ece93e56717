#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0600-uml.sh - file systems of user-mode Linux, as root and as an ordinary user: healthy ones are
# silent, sick ones are caught, a kernel that panics is reported and started anew, and nothing stays
# behind, however a run ends. t0601 has kernels that are named, t0620 the other ways in which a guest ends.
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"
# shellcheck source=tests/uml-lib.sh
. "$root/tests/uml-lib.sh"

# Healthy, and silent.
for user in $users; do
	for fs in ext4:mke2fs xfs:mkfs.xfs btrfs:mkfs.btrfs; do
		if ! has "${fs#*:}"; then
			skip "${fs#*:} is not there"
			continue
		fi
		fs=${fs%:*}
		check "$user: uml:$fs is silent" \
			status_as 0 "$user" test -t "uml:$fs" -j 2 -b seq-1 --sample 20 --paranoid --json -o "ok-$fs"
		check "$user: uml:$fs was tested" json "d['workloads'] == d['verified'] == 20 and \
			d['crash_states'] >= 20 and d['errors'] == 0 and d['kernel'] == '$release'"
	done
done
check "uml:ext4 is silent in every mode" \
	status_as 0 "$last" test -t uml:ext4 -j 2 -b seq-1 --sample 8 --crash prefix,reorder,recovery \
	--budget 60 --fsck -o modes
for fs in f2fs:mkfs.f2fs nilfs2:mkfs.nilfs2; do
	if has "${fs#*:}"; then
		check "uml:${fs%:*}, a module, is silent" \
			status_as 0 "$last" test -t "uml:${fs%:*}" -j 2 -b seq-1 --sample 15 -o "ok-${fs%:*}"
	else
		skip "${fs#*:} is not there"
	fi
done
printf 'creat foo\nwrite foo 0 5000\nremount\ndrop_caches\nf1 = open foo rdwr\nwrite f1 5000 10\nfsync f1\nclose f1\n' >nobody/again
check "remounts, caches and handles" status_as 0 "$last" test -t uml:ext4 --json -o remount \
	"$dir/nobody/again"
check "none of it was refused" json "d['refused'] == 0 and d['unique_states'] > 0"
check "it can be explored" status_as 0 "$last" explore -t uml:ext4 --time 300s --limit 1000 -o explored
check "and was" says 'uml:ext4: [0-9]{2,} operations'

# Sick, and caught; and the marks stand around what each operation sent.
printf 'mkdir A\ncreat A/foo\nsync\nmkdir B\nrename A/foo B/bar\nwrite B/bar 0 8192\nfsync B/bar\nunlink B/bar\nrmdir A\nsync\n' >nobody/long
check "without barriers, something is lost" status_as 1 "$last" test -t uml:ext4,barrier=0 \
	--crash reorder --budget 60 -o sick "$dir/nobody/short"
check "a file is missing" says '^found  missing: creat write fsync'
check "with them, nothing is" status_as 0 "$last" test -t uml:ext4 --crash reorder --budget 60 \
	-o sound "$dir/nobody/short"
check "a flush that is lost is noticed" status_as 1 "$last" test -t uml:ext4 --crash reorder \
	--budget 60 --lose-flush 2 -o lost "$dir/nobody/short"
case=$(find "$where/lost/findings" -mindepth 1 -maxdepth 1 | sort | head -1)
timeout 900 "$OUTAGE" trace show "$case/trace" >out 2>err
between() { # FROM TO PATTERN: how often it stands between the two
	awk -v from="$1" -v to="$2" -v what="$3" '$0 ~ from { on = 1 } $0 ~ to { on = 0 }
		on && $0 ~ what { n++ } END { print n + 0 }' out
}
check "creat sends nothing" [ "$(between 'begin +op 0' 'end +op 0' ' write| flush')" = 0 ]
check "fsync sends writes" [ "$(between 'begin +op 2' 'end +op 2' ' write ')" -gt 0 ]
check "and flushes" [ "$(between 'begin +op 2' 'end +op 2' ' flush')" -gt 0 ]
check "its promise holds when it has returned" [ "$(between 'end +op 2' 'persist +op 2' ' write ')" = 0 ]
check "a finding is shown again" status_as 1 "$last" replay "${case#nobody/}"
timeout 900 "$OUTAGE" report "$case" >out 2>err
check "a report says which kernel it was" says "uml:ext4, guarantee linux, Linux $release"

# Torn between its two sectors, the superblock of ext4 has a wrong checksum: that is so on every kernel.
printf 'setup mkdir A\nsetup creat A/foo\nunlink A/foo\nsync\n' >nobody/removed
torn() { # STATUS USER TARGET
	status_as "$1" "$2" test -t "$3" --crash torn --sector 512 --budget 300 -o "torn-${3%:*}" "$dir/nobody/removed" &&
		[ "$(grep ^found out)" = "found  unmountable: unlink sync" ]
}
check "a superblock that is torn is noticed on uml:ext4" torn 1 "$last" uml:ext4
if [ "$(id -u)" = 0 ]; then
	check "and in the same way on ext4 of this machine" torn 1 root ext4
else
	skip "ext4 of this machine needs root"
fi
check "on a disk that writes 4096 bytes as a whole it is not torn" status_as 0 "$last" test -t uml:ext4 --crash torn \
	--budget 300 -o not-torn "$dir/nobody/removed"
check "... and a report says how small the pieces are" eval \
	"\"$OUTAGE\" report $where/torn-uml/findings/0-0 | grep -q '[1-9] torn into units of 512 bytes, '"
check "whole, it does no harm" status_as 0 "$last" test -t uml:ext4 --crash reorder --budget 300 -o whole \
	"$dir/nobody/removed"

# A kernel that panics.
check "a panic is a finding" status_as 1 "$last" test -t uml:ext4,barrier=0,errors=panic --crash reorder \
	--budget 60 --json -j 1 -o panic "$dir/nobody/long"
check "and the run goes on to its end" json "d['workloads'] == 1 and d['unique_states'] == 60 and d['errors'] == 0"
grep -rl 'Kernel panic' "$where"/panic/findings/*/problems >out 2>err
check "the panic is told" test -s out

# What is promised where an fsync does only what it was asked for: a file needs two of them.
printf 'write foo 0 8192\nfsync foo\nfsync .\n' >nobody/both
printf 'write foo 0 8192\nfsync .\n' >nobody/one
for fs in ext2:mke2fs reiserfs:mkfs.reiserfs; do
	if ! has "${fs#*:}"; then
		skip "${fs#*:} is not there"
		continue
	fi
	fs=${fs%:*}
	check "uml:$fs keeps a file that was synced with its directory" \
		status_as 0 "$last" test -t "uml:$fs" --guarantee posix -o "both-$fs" "$dir/nobody/both"
	check "and not for the directory alone" \
		status_as 1 "$last" test -t "uml:$fs" --guarantee posix -o "one-$fs" "$dir/nobody/one"
	check "which it does not promise" status_as 0 "$last" test -t "uml:$fs" -o "bare-$fs" "$dir/nobody/one"
done

# A file system that is recovered by a program: it runs in the guest, and is recorded.
check "uml:ext2 is preened in the guest" as "$last" test -t uml:ext2 --json -o ext2 "$dir/nobody/short"
check "without an error" json "d['errors'] == 0 and d['unique_states'] > 0"

# However it ends, nothing stays.
check "no process is left" wait_for_none
program=$dir/prog long=(-t uml:ext4 -b seq-2 -j 2)
under_way 9 interrupted "${long[@]}"
kill -INT "$pid"
wait "$run"
check "interrupted: it stops" [ $? -eq 2 ]
check "interrupted: and says how to go on" says 'to go on: outage test --resume'
check "interrupted: no process is left" wait_for_none
under_way 9 killed "${long[@]}"
check "killed: guests are there before" soon eval '[ -n "$(ours)" ]'
kill -KILL "$pid"
wait "$run" 2>/dev/null
check "killed: and none after" wait_for_none

# With the keeper, too: then it is doctor's turn. The kernels would end by themselves, as their disks are
# gone; and a keeper that is killed after its worker would have time to end them. So all stand still before
# the first is killed, and what is left is stopped once more: the system wakes it when its parent dies.
# Some of it may end in between, or all, and then there is nothing for doctor to find: the next try may.
stands_still() { # [PROGRAM]
	local p
	# shellcheck disable=SC2046 # all of them
	kill -STOP $(ours "$@") 2>/dev/null
	for p in $(ours "$@"); do
		case $(ps -o state= -p "$p") in [TtZ]* | '') ;; *) return 1 ;; esac
	done
}
all_killed() {
	rm -rf all-killed
	under_way 9 all-killed "${long[@]}"
	soon stands_still prog && soon stands_still || return 1
	# shellcheck disable=SC2046 # all of them
	kill -KILL $(ours prog)
	wait "$run" 2>/dev/null
	soon eval '[ -z "$(ours prog)" ]' && soon stands_still && [ -n "$(ours)" ]
}
tries=0
until all_killed || [ $((++tries)) = 20 ]; do
	wait_for_none || break
done
left=$(ours | head -n 1)
check "all killed: something is left, and stands still" test "$left"
timeout 900 "$dir/prog" doctor --fix >out 2>err
check "all killed: doctor finds it" says "cleared: process $left \\(linux.uml\\)"
check "all killed: and ends it" wait_for_none

# A guest that somebody kills: the workload is lost, and said to be; the run goes on.
under_way 9 shot "${long[@]}" --limit 600
soon eval '[ -n "$(ours)" ] || ! kill -0 "$run" 2>/dev/null'
for p in $(ours); do # a kernel itself, not a process that it uses
	[ "$(ps -o comm= -p "$(ps -o ppid= -p "$p" | tr -d ' ')")" != prog ] || break
done
kill -KILL "$p"
wait "$run"
check "a guest was killed: part of the run failed" [ $? -eq 2 ]
check "it is said" complains 'the guest was killed'
check "and the others were done" says '(599|600) workloads'
check "no process is left" wait_for_none

check "no socket is left" no_socket prog
check "nothing is in the user's home" [ ! -e "$HOME/.uml" ]

done_testing
