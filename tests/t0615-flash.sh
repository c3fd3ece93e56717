#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0615-flash.sh - a file system of flash in a virtual machine: what was stored is recorded between
# operations, survives when it should, and does not when it was never stored.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_qemu
requires_tools mkfs.jffs2:mtd-utils
mkdir -p "$kernels" cache

printf 'creat foo\nwrite foo 0 8192\nfsync foo\nmkdir A\nrename foo A/bar\nremount\nwrite A/bar 100 10\n' >some
printf 'creat foo\nwrite foo 0 8192\nfsync foo\n' >short
OUTAGE_CACHE=$kernels outage test -t vm:jffs2 -o fetched some
fetched=$?
image=$(find "$kernels/kernels" -name 'vmlinuz-*-amd64' ! -name '*-cloud-*' 2>/dev/null | sort -V | tail -1)
requires_kernel $fetched "$image"
check "a kernel with jffs2 is fetched, and nothing is found" [ $fetched = 0 ]
export OUTAGE_CACHE=$dir/cache
ln -s "$kernels/kernels" cache/kernels

for fs in jffs2 ubifs; do
	check "vm:$fs is silent" status 0 test -t vm:$fs -j 1 -b seq-1 --sample 15 --paranoid --json -o "ok-$fs"
	check "it was tested" json "d['workloads'] == d['verified'] == 15 and d['crash_states'] >= 15 and \
		d['errors'] == 0"
	check "vm:$fs is silent in other modes" status 0 test -t vm:$fs --crash prefix,reorder,recovery \
		--budget 40 -o "modes-$fs" some
	# What was not stored is not there.
	check "vm:$fs, read-only, keeps nothing" status 1 test -t vm:$fs,ro -o "ro-$fs" some
	check "which is noticed" says 'foo: is missing'
done

# jffs2 stores what it is told at once; ubifs waits for an fsync, and what it has not stored is lost.
printf 'creat foo\nwrite foo 0 8192\n' >unsynced
check "vm:jffs2 keeps what was not synced" status 0 test -t vm:jffs2 --guarantee sync -o sync-jffs2 unsynced
check "vm:ubifs does not" status 1 test -t vm:ubifs --guarantee sync -o sync-ubifs unsynced
check "it is missing" says '^found  missing: creat write'
case=$(find sync-ubifs/findings -mindepth 1 -maxdepth 1 | sort | head -1)
check "which is shown again" status 1 replay "$case"
check "unless it was synced" status 0 test -t vm:ubifs -o synced-ubifs short

# What is seen of flash: between two operations one write, which is durable.
outage trace show "$case/trace"
check "what was written is in the trace as one durable write" \
	awk '/ write +0x/ { n++; fua += /fua/ } / begin / { if (n > 1) bad = 1; n = 0 }
		END { exit !(fua > 0 && !bad) }' out
done_testing
