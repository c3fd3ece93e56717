#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0601-uml-kernel.sh - which kernel of user-mode Linux is used: one that is named, for a target and for a
# reference, one that is kept with a finding, or the default; and the mistakes that a user can make.
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"
# shellcheck source=tests/uml-lib.sh
. "$root/tests/uml-lib.sh"

# Explored with kernels that are named, the target's and a reference's; they are kept with a case.
kernel=$(command -v linux.uml)
modules=/usr/lib/uml/modules/$release
printf 'only mkdir creat chown\n' >nobody/few
check "explored with kernels that are named" status_as 0 "$last" explore -t uml:ext4 --kernel "$kernel" \
	--modules "$modules" -r uml:ext4 --ref-kernel "$kernel" --ref-modules "$modules" --limit 40 --json \
	-o named-explored
check "the release is that of the guest" json \
	"d['kernel'] == '$release' and d['operations'] >= 40 and d['errors'] == 0"
check "a difference of such a kernel" status_as 1 "$last" explore -t uml:ext4,grpid --kernel "$kernel" \
	-r uml:ext4 --ref-kernel "$kernel" --order walk --findings 1 --inputs "$dir/nobody/few" --time 800s -o grpid
case=$(find "$where/grpid/findings" -mindepth 1 -maxdepth 1 | sort | head -1)
cp "$case/case" out
check "is kept with the kernel" says "^guest-kernel $(realpath "$kernel")\$"
check "with that of the reference" says "^reference-guest-kernel $(realpath "$kernel")\$"
check "and its release" says "^kernel $release\$"
check "it is shown again" status_as 1 "$last" explore --replay "${case#nobody/}"
sed -i 's,^guest-kernel .*,guest-kernel /bin/false,' "$case/case"
check "with the kernel that was kept" status_as 2 "$last" explore --replay "${case#nobody/}" --trust
check "and no other" complains 'is no kernel of user-mode Linux'
refused_explore() { # PATTERN ARGUMENTS
	local pattern=$1
	shift
	status_as 2 "$last" explore --time 1s -o x "$@" && complains "$pattern"
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

# Who names no target.
check "as $last, without -t" status_as 0 "$last" test -b seq-1 --sample 3 --json -o chosen
check "it is uml:ext4" json "d['target'] == 'uml:ext4' and d['workloads'] == 3"
check "and that is said" complains '^testing uml:ext4, .*-t names another'
check "unless nobody wants to hear it" status_as 0 "$last" -q test -b seq-1 --sample 1 -o chosen-q
check "then nothing is" test ! -s err
check "with a kernel, it is that one" status_as 0 "$last" test --kernel "$kernel" -b seq-1 --sample 1 --json -o chosen-k
check "in a guest" json "d['target'] == 'uml:ext4'"
check "a run that is over" status_as 0 "$last" test --resume chosen
check "is known to be of this kernel" says 'nothing left to do'
sed -i 's/^kernel .*/kernel 1.2.3/' "$where/chosen/run"
check "and of no other" status_as 2 "$last" test --resume chosen
check "says so" complains "began on Linux 1.2.3, and this is $release"
if [ "$last" = nobody ]; then
	check "as root, without -t" status_as 0 root test -b seq-1 --sample 3 --json -o chosen-root
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

# What a person can get wrong.
check "a file system that is none" status_as 2 "$last" test -t uml:zfs -o x "$dir/nobody/short"
check "says which there are" complains "no target 'uml:zfs'.*; there are .*uml:ext4"
check "a kernel that is not there" status_as 2 "$last" test -t uml:ext4 --kernel /nowhere -o x "$dir/nobody/short"
check "says so" complains 'cannot find /nowhere'
check "a kernel that is none" status_as 2 "$last" test -t uml:ext4 --kernel /bin/false -o x "$dir/nobody/short"
check "says so" complains 'is no kernel of user-mode Linux'
check "modules that are not there" status_as 2 "$last" test -t uml:ext4 --modules "$dir/home" -o x "$dir/nobody/short"
check "says so" complains 'modules.dep'
check "a kernel for a target of this machine" status_as 2 "$last" test -t ext4 --kernel /bin/sh -o x "$dir/nobody/short"
check "says so" complains '^outage: --kernel is for uml: and vm: targets'
check "a recorder of this machine" status_as 2 "$last" test -t uml:ext4 --recorder bpf -o x "$dir/nobody/short"
check "says so" complains 'recorder bpf cannot see what a guest writes'
check "the kernel and its modules can be named" status_as 0 "$last" test -t uml:ext4 \
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
	check "a user who wants ext4 is told of uml:ext4" status_as 2 nobody test -t ext4 -o x "$dir/nobody/short"
	check "in the error" complains 'needs root.*uml:ext4'
	as nobody doctor
	check "doctor says that it works" says '^ok +user-mode Linux'
	check "and what to do with it" says 'outage test -t uml:ext4'
fi

done_testing
