#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0440-bugs.sh - outage test finds the bugs of the seeded file system, and is silent without them.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
seedfs=${OUTAGE_BUILD:-$root/build}/tests/seeded/seedfs

if [ "$(id -u)" != 0 ] || [ ! -x "$seedfs" ] || [ ! -e /dev/fuse ]; then
	echo "1..0 # SKIP this needs root, /dev/fuse and $seedfs"
	exit 77
fi

# run STATUS BUG ARGS...: tests seedfs with that bug ("none": without)
run() {
	local want=$1 bug=$2 got
	shift 2
	rm -rf kept
	local option=''
	[ "$bug" = none ] || option="-o bug=$bug"
	timeout 120 "$OUTAGE" test -t "fuse:$seedfs mount {disk} {mnt} -f $option" \
		--mkfs "$seedfs mkfs {disk}" --size 4M -j 2 "$@" -o kept >out 2>err </dev/null
	got=$?
	[ "$got" -eq "$want" ] || { echo "# status $got, not $want: $bug $*"; return 1; }
}

# found BUG KIND ARGS...: it is found, and the consequence is named
found() {
	local bug=$1 kind=$2
	shift 2
	run 1 "$bug" "$@" && cut -f1 kept/findings/*/problems | grep -qx "$kind"
}

check 'without a bug, seq-1 reports nothing' run 0 none -b seq-1
check 'without a bug, prefixes of writes neither' run 0 none -b seq-1 --crash prefix --sample 20

while read -r bug kind; do
	check "$bug: $kind, by seq-1" found "$bug" "$kind" -b seq-1
done <<'TABLE'
rename-lost missing
name-new missing
link-lost missing
one-name missing
size-old size
direct-size size
falloc-keep blocks
zero-keep size
dir-count unusable
TABLE
check 'torn-record: unmountable, by torn writes' \
	found torn-record unmountable -b seq-1 --crash torn --limit 4 --budget 60

# Workloads of seq-2 that show the others, by their operations.
printf '%s\n' 'setup mkdir A' 'setup creat A/foo' 'rename A/foo A/bar' 'fsync A' 'setup mkdir B' \
	'rename A/bar B/foo' 'fsync B' >rename-both
printf '%s\n' 'creat foo' 'creat bar' 'fsync bar' 'fsync .' >dir-entry
printf '%s\n' 'setup write foo 0 16384' 'write foo 0 5000' 'fdatasync foo' \
	'falloc foo punch,keep 8000 4096' 'fsync foo' >punch-lost
printf '%s\n' 'setup mkdir A' 'setup write A/foo 0 16384' 'falloc A/foo plain 14384 5000' \
	'fdatasync A/foo' 'setup mkdir B' 'link A/foo B/foo' 'fsync A' >link-size
printf '%s\n' 'setup creat foo' 'fsync foo' 'write foo 0 16384' 'fsync foo' >fsync-twice
printf '%s\n' 'setup write foo 0 16384' 'fsync foo' 'mmapwrite foo 0 8192' >mmap-lost
printf '%s\n' 'setup creat foo' 'setxattr foo user.x v' 'fsync foo' 'removexattr foo user.x' \
	'fsync foo' >xattr-back
while read -r bug kind; do
	check "$bug: nothing without the bug" run 0 none "$bug"
	check "$bug: $kind, by a workload of two operations" found "$bug" "$kind" "$bug"
done <<'TABLE'
rename-both both-places
dir-entry missing
punch-lost content
link-size size
fsync-twice size
mmap-lost content
xattr-back xattr
TABLE
done_testing
