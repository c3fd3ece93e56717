#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0847-pm-any.sh - any file system of any kernel on persistent memory: named by what the kernel
# calls it, made by a command or by a first mount, judged as a synchronous one unless said otherwise;
# what is missing is said in one sentence.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_qemu

mkdir -p "$kernels/kernels" cache
ln -s "$kernels/kernels" cache/kernels
printf 'mkdir A\ncreat A/foo\nwrite A/foo 0 5000\nrename A/foo A/bar\nfsync A/bar\n' >short
make='mke2fs -q -F -t ext4 -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 {disk}'

# What is said wrong is refused before a kernel is looked for.
check "a file system has a name" refused_at_all test -t vm:pm --mkfs mount:x short
check "which is asked for" complains '--fstype NAME'
check "it is made somehow" refused_at_all test -t vm:pm:ext4 short
check "which is asked for" complains "how is ext4 made\\? .*mount:OPTIONS"
check "more arguments for mkfs are none" refused_at_all test -t vm:pm:ext4 --mkfs '-b 4096' short
check "a target with a name has its own" refused_at_all test -t vm:ext4-dax --fstype ext4 short
check "which is said" complains '--fstype is one name .* for -t vm:pm'
check "a name is one" refused_at_all test --fstype ext4,dax --mkfs "$make" short
check "options are for a target" refused_at_all test --mount-options dax short
check "no kernel of Debian has nova" refused_at_all test -t vm:nova short
check "which is said" complains 'name one that has it with --kernel'

# Nor is one fetched.
mkdir fetch
# shellcheck disable=SC2016 # for another shell
printf '#!/bin/sh\necho "$0 $*" >>%s/asked\nexit 1\n' "$dir" >fetch/apt-get
chmod +x fetch/apt-get
cp fetch/apt-get fetch/apt-cache
asks() { # ARGUMENTS: with a cache that holds no kernel
	rm -f asked
	PATH=$dir/fetch:$PATH OUTAGE_CACHE=$dir/no-kernels outage test "$@" short
	[ $? -eq 2 ]
}
check "how it is made is asked for" asks --fstype pmfs
check "in one sentence" complains '^outage: how is pmfs made\? '
check "before a kernel is" test ! -e asked
check "so is its name" asks -t vm:pm --mkfs mount:init
check "also before" test ! -e asked
check "with both, one would be fetched" asks --fstype pmfs --mkfs mount:init
check "which is seen" test -s asked

# The kernel of Debian: fetched by apt-get, and not installed.
outage test --fstype ext4 --mount-options dax --mkfs "$make" --guarantee linux -j1 -o ok short
rc=$?
if [ $rc != 0 ] && complains 'apt-get|apt-cache'; then
	sed 's/^/# /' err
	echo "1..$n # no kernel can be fetched"
	exit $failed
fi
check "ext4, named and made by hand, is silent" [ $rc = 0 ]
check "in more than one state" says ': 1 workload, [1-9][0-9]* different'
check "the run knows it by one word" grep -qx 'target vm:pm:ext4,dax' ok/run
check "as a synchronous one" status 1 test -t vm:pm:ext4,dax --mkfs "$make" -j1 -o sync short
check "it loses what was not synced" says '^found  missing: '
found=$(find sync/findings -mindepth 1 -maxdepth 1 | sort | head -1)
check "the finding knows how it was made" grep -qxF "mkfs $make" "$found/case"
check "and is shown again" status 1 replay "$found"

# ramfs takes any option and any device, and keeps nothing: made by being mounted, and all is lost.
image=$(find "$kernels/kernels" -name 'vmlinuz-*-cloud-amd64' 2>/dev/null | sort -V | tail -1)
check "made by a first mount" status 1 test -t vm:pm:ramfs --kernel "$image" --mkfs mount:init -j1 \
	-o ramfs short
check "what keeps nothing is found" says '^found  missing: '
check "a mount that makes nothing is told" refused_at_all test -t vm:pm:ext4 --mkfs mount:dax=maybe -j1 short
check "with what the kernel says" complains "no ext4 can be made .*; the guest's kernel said: .*ext4"
check "a command that makes nothing is told" refused_at_all test -t vm:pm:ext4 --mkfs 'echo never; false {disk}' -j1 short
check "with what it says" complains 'never'
check "what no kernel has is told" refused_at_all test -t vm:pm:nofs --kernel "$image" --mkfs mount: -j1 short
check "by its name" complains 'has no nofs'

done_testing
