#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0615-flash.sh - a file system of flash in a virtual machine: what was stored is recorded between
# operations, survives when it should, and does not when it was never stored.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

for p in qemu-system-x86_64:qemu-system-x86 mkfs.jffs2:mtd-utils; do
	if ! command -v "${p%:*}" >/dev/null; then
		echo "1..0 # SKIP ${p%:*} is not there (apt-get install ${p#*:})"
		exit 77
	fi
done
kernels=${OUTAGE_TEST_KERNELS:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/outage-test}
mkdir -p "$kernels" cache
run() { timeout --kill-after=5 250 "$OUTAGE" "$@" >out 2>err </dev/null; }
status() { # STATUS ARGUMENTS
	local want=$1
	shift
	run "$@"
	[ $? -eq "$want" ]
}
says() { grep -qE "$1" out; } # PATTERN
json() { python3 -c "import json; d = json.load(open('out')); assert $1, d" 2>>err; } # CONDITION

printf 'creat foo\nwrite foo 0 8192\nfsync foo\nmkdir A\nrename foo A/bar\nremount\nwrite A/bar 100 10\n' >some
OUTAGE_CACHE=$kernels run test -t vm:jffs2 -o fetched some
fetched=$?
image=$(find "$kernels/kernels" -name 'vmlinuz-*-amd64' ! -name '*-cloud-*' 2>/dev/null | sort -V | tail -1)
if [ $fetched != 0 ] && [ -z "$image" ] && grep -qE 'apt-get|apt-cache' err; then
	sed 's/^/# /' err
	echo "1..0 # SKIP no kernel can be fetched"
	exit 77
fi
check "a kernel with jffs2 is fetched, and nothing is found" [ $fetched = 0 ]
export OUTAGE_CACHE=$dir/cache
ln -s "$kernels/kernels" cache/kernels

check "vm:jffs2 is silent" status 0 test -t vm:jffs2 -j 1 -b seq-1 --sample 15 --paranoid --json -o ok
check "it was tested" json "d['workloads'] == d['verified'] == 15 and d['crash_states'] >= 15 and \
	d['errors'] == 0"
check "it keeps what it was told at once" status 0 test -t vm:jffs2 --guarantee sync --json -o sync some
check "after each operation" json "d['unique_states'] >= 5 and d['refused'] == 0"
check "it is silent in other modes" status 0 test -t vm:jffs2 --crash prefix,reorder,recovery --budget 40 \
	-o modes some

# What is on the flash counts: an image without the data is not taken for one that has it.
check "mounted read-only, nothing can be written" run test -t vm:jffs2,ro -o ro some
check "and all of it is refused" says '[0-9]+ operations? (was|were) refused'

# A finding, to see its trace: a power cut before the first operation has no file in it.
printf 'creat foo\nwrite foo 0 8192\nfsync foo\n' >short
for fs in jffs2 ext4; do
	status 0 test -t vm:$fs --crash prefix --json -o "prefix-$fs" short
	python3 -c "import json; print(json.load(open('out'))['unique_states'])" >"$fs.states"
done
check "there are states before, between and after operations" [ "$(cat jffs2.states)" -ge 3 ]
done_testing
