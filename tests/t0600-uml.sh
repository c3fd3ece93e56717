#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0600-uml.sh - file systems of user-mode Linux, as root and as an ordinary user: healthy ones are
# silent, sick ones are caught, a kernel that panics is reported and started anew, and nothing stays
# behind, however a run ends. t0620 has the other ways in which a guest ends.
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_uml

# The ordinary user has a copy of the program and a directory of his own. What is started here has
# a word in its environment by which it is found again.
export HOME=$dir/home OUTAGE_TEST_MARK=t0600-$$
chmod 755 "$dir"
mkdir -m 777 home nobody
cp "$OUTAGE" prog
if [ "$(id -u)" = 0 ]; then
	users='root nobody'
else
	users=self
fi
as() { # USER ARGUMENTS: runs outage as that user, in a directory that is his
	local user=$1
	shift
	case $user in
	nobody) (cd nobody && timeout --kill-after=5 900 setpriv --reuid=65534 --regid=65534 \
		--clear-groups env OUTAGE_CACHE="$HOME" XDG_STATE_HOME="$dir/nobody/state" "$dir/prog" "$@") >out 2>err </dev/null ;;
	*) timeout --kill-after=5 900 "$dir/prog" "$@" >out 2>err </dev/null ;;
	esac
}
status() { # STATUS USER ARGUMENTS
	local want=$1
	shift
	as "$@"
	[ $? -eq "$want" ]
}
ours() { # [PROGRAM]: prints processes, of the guests or of PROGRAM, that this test has started
	local p
	for p in $(pgrep -x "${1:-linux.uml}"); do
		grep -qzx "OUTAGE_TEST_MARK=t0600-$$" "/proc/$p/environ" 2>/dev/null && echo "$p"
	done
}
cleanup() {
	local p
	for p in $(ours); do kill -KILL "$p" 2>/dev/null; done
	rm -rf "$dir"
}
trap cleanup EXIT

last=${users##* }
release=$(linux.uml --version)
has() { command -v "$1" >/dev/null; }

# Healthy, and silent.
for user in $users; do
	for fs in ext4:mke2fs xfs:mkfs.xfs btrfs:mkfs.btrfs; do
		if ! has "${fs#*:}"; then
			skip "${fs#*:} is not there"
			continue
		fi
		fs=${fs%:*}
		check "$user: uml:$fs is silent" \
			status 0 "$user" test -t "uml:$fs" -j 2 -b seq-1 --sample 20 --paranoid --json -o "ok-$fs"
		check "$user: uml:$fs was tested" json "d['workloads'] == d['verified'] == 20 and \
			d['crash_states'] >= 20 and d['errors'] == 0 and d['kernel'] == '$release'"
	done
done
check "uml:ext4 is silent in every mode" \
	status 0 "$last" test -t uml:ext4 -j 2 -b seq-1 --sample 8 --crash prefix,reorder,recovery \
	--budget 60 --fsck -o modes
for fs in f2fs:mkfs.f2fs nilfs2:mkfs.nilfs2; do
	if has "${fs#*:}"; then
		check "uml:${fs%:*}, a module, is silent" \
			status 0 "$last" test -t "uml:${fs%:*}" -j 2 -b seq-1 --sample 15 -o "ok-${fs%:*}"
	else
		skip "${fs#*:} is not there"
	fi
done
printf 'creat foo\nwrite foo 0 5000\nremount\ndrop_caches\nf1 = open foo rdwr\nwrite f1 5000 10\nfsync f1\nclose f1\n' >nobody/again
check "remounts, caches and handles" status 0 "$last" test -t uml:ext4 --json -o remount \
	"$dir/nobody/again"
check "none of it was refused" json "d['refused'] == 0 and d['unique_states'] > 0"
check "it can be explored" status 0 "$last" explore -t uml:ext4 --time 300s --limit 1000 -o explored
check "and was" says 'uml:ext4: [0-9]{2,} operations'

# Explored with kernels that are named, the target's and a reference's; they are kept with a case.
kernel=$(command -v linux.uml)
modules=/usr/lib/uml/modules/$release
printf 'only mkdir creat chown\n' >nobody/few
check "explored with kernels that are named" status 0 "$last" explore -t uml:ext4 --kernel "$kernel" \
	--modules "$modules" -r uml:ext4 --ref-kernel "$kernel" --ref-modules "$modules" --limit 40 --json \
	-o named-explored
check "the release is that of the guest" json \
	"d['kernel'] == '$release' and d['operations'] >= 40 and d['errors'] == 0"
check "a difference of such a kernel" status 1 "$last" explore -t uml:ext4,grpid --kernel "$kernel" \
	-r uml:ext4 --ref-kernel "$kernel" --order walk --findings 1 --inputs "$dir/nobody/few" --time 800s -o grpid
where=.
[ "$last" != nobody ] || where=nobody
case=$(find "$where/grpid/findings" -mindepth 1 -maxdepth 1 | sort | head -1)
cp "$case/case" out
check "is kept with the kernel" says "^guest-kernel $(realpath "$kernel")\$"
check "with that of the reference" says "^reference-guest-kernel $(realpath "$kernel")\$"
check "and its release" says "^kernel $release\$"
check "it is shown again" status 1 "$last" explore --replay "${case#nobody/}"
sed -i 's,^guest-kernel .*,guest-kernel /bin/false,' "$case/case"
check "with the kernel that was kept" status 2 "$last" explore --replay "${case#nobody/}" --trust
check "and no other" complains 'is no kernel of user-mode Linux'
refused_explore() { # PATTERN ARGUMENTS
	local pattern=$1
	shift
	status 2 "$last" explore --time 1s -o x "$@" && complains "$pattern"
}
check "explored with a kernel that is not there" refused_explore 'cannot find /nowhere' \
	-t uml:ext4 --kernel /nowhere
check "with one that is none" refused_explore 'is no kernel of user-mode Linux' \
	-t uml:ext4 --kernel /bin/false
check "with modules that are not there" refused_explore 'modules.dep' -t uml:ext4 --modules "$dir/home"
check "a kernel for what has none" refused_explore '^outage: --kernel is for uml: and vm: targets' \
	-t reffs --kernel "$kernel"
check "nor has the reference" refused_explore '^outage: --ref-kernel is for uml: and vm: targets' \
	-t uml:ext4 -r reffs --ref-kernel "$kernel"
check "a reference's kernel without a reference" refused_explore 'begin with --ref-' \
	-t uml:ext4 --ref-kernel "$kernel"

# Sick, and caught; and the marks stand around what each operation sent.
printf 'mkdir A\ncreat A/foo\nsync\nmkdir B\nrename A/foo B/bar\nwrite B/bar 0 8192\nfsync B/bar\nunlink B/bar\nrmdir A\nsync\n' >nobody/long
printf 'creat foo\nwrite foo 0 8192\nfsync foo\n' >nobody/short
check "without barriers, something is lost" status 1 "$last" test -t uml:ext4,barrier=0 \
	--crash reorder --budget 60 -o sick "$dir/nobody/short"
check "a file is missing" says '^found  missing: creat write fsync'
check "with them, nothing is" status 0 "$last" test -t uml:ext4 --crash reorder --budget 60 \
	-o sound "$dir/nobody/short"
check "a flush that is lost is noticed" status 1 "$last" test -t uml:ext4 --crash reorder \
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
check "a finding is shown again" status 1 "$last" replay "${case#nobody/}"
timeout 900 "$OUTAGE" report "$case" >out 2>err
check "a report says which kernel it was" says "uml:ext4, guarantee linux, Linux $release"

# Torn between its two sectors, the superblock of ext4 has a wrong checksum: that is so on every kernel.
printf 'setup mkdir A\nsetup creat A/foo\nunlink A/foo\nsync\n' >nobody/removed
torn() { # STATUS USER TARGET
	status "$1" "$2" test -t "$3" --crash torn --budget 300 -o "torn-${3%:*}" "$dir/nobody/removed" &&
		[ "$(grep ^found out)" = "found  unmountable: unlink sync" ]
}
check "a superblock that is torn is noticed on uml:ext4" torn 1 "$last" uml:ext4
if [ "$(id -u)" = 0 ]; then
	check "and in the same way on ext4 of this machine" torn 1 root ext4
else
	skip "ext4 of this machine needs root"
fi
check "whole, it does no harm" status 0 "$last" test -t uml:ext4 --crash reorder --budget 300 -o whole \
	"$dir/nobody/removed"

# A kernel that panics.
check "a panic is a finding" status 1 "$last" test -t uml:ext4,barrier=0,errors=panic --crash reorder \
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
		status 0 "$last" test -t "uml:$fs" --guarantee posix -o "both-$fs" "$dir/nobody/both"
	check "and not for the directory alone" \
		status 1 "$last" test -t "uml:$fs" --guarantee posix -o "one-$fs" "$dir/nobody/one"
	check "which it does not promise" status 0 "$last" test -t "uml:$fs" -o "bare-$fs" "$dir/nobody/one"
done

# Who names no target.
check "as $last, without -t" status 0 "$last" test -b seq-1 --sample 3 --json -o chosen
check "it is uml:ext4" json "d['target'] == 'uml:ext4' and d['workloads'] == 3"
check "and that is said" complains '^testing uml:ext4, .*-t names another'
check "unless nobody wants to hear it" status 0 "$last" -q test -b seq-1 --sample 1 -o chosen-q
check "then nothing is" test ! -s err
check "with a kernel, it is that one" status 0 "$last" test --kernel "$kernel" -b seq-1 --sample 1 --json -o chosen-k
check "in a guest" json "d['target'] == 'uml:ext4'"
check "a run that is over" status 0 "$last" test --resume chosen
check "is known to be of this kernel" says 'nothing left to do'
sed -i 's/^kernel .*/kernel 1.2.3/' "$where/chosen/run"
check "and of no other" status 2 "$last" test --resume chosen
check "says so" complains "began on Linux 1.2.3, and this is $release"
if [ "$last" = nobody ]; then
	check "as root, without -t" status 0 root test -b seq-1 --sample 3 --json -o chosen-root
	check "it is this machine's ext4" json "d['target'] == 'ext4' and d['workloads'] == 3"
	check "and that is said" complains '^testing ext4, .*-t names another'
	with_path() { # PATH STATUS ARGUMENTS: as nobody
		local path=$1 want=$2
		shift 2
		(cd nobody && timeout --kill-after=5 900 setpriv --reuid=65534 --regid=65534 --clear-groups \
			env PATH="$path" OUTAGE_CACHE="$HOME" "$dir/prog" "$@") >out 2>err </dev/null
		[ $? -eq "$want" ]
	}
	check "a user's PATH, without mkfs, is enough" with_path /usr/bin:/bin 0 test -b seq-1 --sample 1 -o user-path
	check "without user-mode Linux, there is nothing to test" with_path "$dir/home" 2 test -b seq-1 -o user-none
	check "and what to do is said" complains 'apt-get install user-mode-linux'
	check "no run is left" [ ! -e nobody/user-none ]
fi

# A file system that is recovered by a program: it runs in the guest, and is recorded.
check "uml:ext2 is preened in the guest" as "$last" test -t uml:ext2 --json -o ext2 "$dir/nobody/short"
check "without an error" json "d['errors'] == 0 and d['unique_states'] > 0"

# What a person can get wrong.
check "a file system that is none" status 2 "$last" test -t uml:zfs -o x "$dir/nobody/short"
check "says which there are" complains "no target 'uml:zfs'; there are .*uml:ext4"
check "a kernel that is not there" status 2 "$last" test -t uml:ext4 --kernel /nowhere -o x "$dir/nobody/short"
check "says so" complains 'cannot find /nowhere'
check "a kernel that is none" status 2 "$last" test -t uml:ext4 --kernel /bin/false -o x "$dir/nobody/short"
check "says so" complains 'is no kernel of user-mode Linux'
check "modules that are not there" status 2 "$last" test -t uml:ext4 --modules "$dir/home" -o x "$dir/nobody/short"
check "says so" complains 'modules.dep'
check "a kernel for a target of this machine" status 2 "$last" test -t ext4 --kernel /bin/sh -o x "$dir/nobody/short"
check "says so" complains '^outage: --kernel is for uml: and vm: targets'
check "a recorder of this machine" status 2 "$last" test -t uml:ext4 --recorder bpf -o x "$dir/nobody/short"
check "says so" complains 'recorder bpf cannot see what a guest writes'
check "the kernel and its modules can be named" status 0 "$last" test -t uml:ext4 \
	--kernel "$(command -v linux.uml)" --modules "/usr/lib/uml/modules/$release" \
	-o named "$dir/nobody/short"
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	# The guest's memory lies in /dev/shm; what this machine lacks is no finding.
	small() { # MIB
		timeout --kill-after=5 900 unshare -m --propagation private sh -c "mount -t tmpfs -o size=$1m \
			tmpfs /dev/shm && exec $dir/prog test -t uml:ext4 -b seq-1 -j 1 -o small-$1" >out 2>err
		[ $? -eq 2 ]
	}
	for mib in 4 12; do
		check "$mib MiB for its memory are too few" small $mib
		check "and that is said" complains 'no room for the guest.s memory; make /dev/shm larger'
	done
else
	skip "mounting a small /dev/shm needs root"
fi
if [ "$last" = nobody ]; then
	check "a user who wants ext4 is told of uml:ext4" status 2 nobody test -t ext4 -o x "$dir/nobody/short"
	check "in the error" complains 'needs root.*uml:ext4'
	as nobody doctor
	check "doctor says that it works" says '^ok +user-mode Linux'
	check "and what to do with it" says 'outage test -t uml:ext4'
fi

# However it ends, nothing stays.
check "no process is left" wait_for_none
begin() { # DIR ARGUMENTS: a run that goes on for long, in the background, once it is under way
	timeout --kill-after=5 900 "$dir/prog" test -t uml:ext4 -b seq-2 -j 2 -o "$@" >out 2>err </dev/null &
	run=$!
	progressed "$1" 9
	pid=$(pgrep -P "$run" -x prog)
}
begin interrupted
kill -INT "$pid"
wait "$run"
check "interrupted: it stops" [ $? -eq 2 ]
check "interrupted: and says how to go on" says 'to go on: outage test --resume'
check "interrupted: no process is left" wait_for_none
begin killed
check "killed: guests are there before" soon eval '[ -n "$(ours)" ]'
kill -KILL "$pid"
wait "$run" 2>/dev/null
check "killed: and none after" wait_for_none

# With the keeper, too: then it is doctor's turn.
begin all-killed
# shellcheck disable=SC2046 # all of them
kill -KILL $(ours prog)
wait "$run" 2>/dev/null
# Those that end by themselves, as their disks are gone, do so now; some may need longer than this.
left=$(ours) same=0
while [ -n "$left" ] && [ $same -lt 3 ]; do
	before=$left
	sleep 1
	left=$(ours)
	[ "$left" = "$before" ] && same=$((same + 1)) || same=0
done
timeout 900 "$dir/prog" doctor --fix >out 2>err
if says 'cleared: process' || [ -n "$(ours)" ]; then
	check "all killed: doctor finds it" says 'cleared: process [0-9]+ \(linux.uml\)'
else
	skip "all killed: the guests ended by themselves"
fi
check "all killed: and ends it" wait_for_none

# A guest that somebody kills: the workload is lost, and said to be; the run goes on.
begin shot --limit 600
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
