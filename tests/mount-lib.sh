# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034,SC2317 # dir: lib.sh; status and functions: the tests
# mount-lib.sh - for tests of the commands mount, ctl and umount, which mount `data` or another directory of the
# test, most of them on `mnt`. Sourced after lib.sh. What is mounted by a name with mnt in it ends with the test.
requires_fuse
requires_tools fusermount3
[ "$(id -u)" != 0 ] || own_mounts
trap 'clean_up; rm -rf "$dir"' EXIT
clean_up() {
	local m

	for m in "$dir"/*mnt*; do
		mountpoint -q "$m" 2>/dev/null && timeout 60 umount -l "$m" 2>/dev/null
	done
	wait
}
mkdir data mnt
export OUTAGE

# mounted MNT, unmounted MNT: nobody is asked there, for whoever serves it may be about to end
here=$(pwd -P)
mounted() { grep -q " $here/$1 fuse" /proc/self/mounts; }
unmounted() { ! mounted "$1"; }
# rejected PATTERN [MNT]: the command before was, in one sentence that has it, and nothing is mounted
rejected() { [ "$status" = 2 ] && one_line && complains "$1" && unmounted "${2:-mnt}"; }
# foreground ARGUMENT...: starts a mount, and waits until it is there; $server is its process
foreground() {
	timeout 900 "$OUTAGE" mount "$@" >fg.out 2>fg.err &
	server=$!
	soon mounted mnt
}
# server_of MNT: prints the process that serves it
server_of() { outage ctl --json "$1" status && json_value 'd["pid"]'; }
# kill_server MNT ROOT: and waits until whoever takes back what was not durable is done
kill_server() {
	kill -9 "$(server_of "$1")"
	soon unmounted "$1"
	soon flock -n "$2" true
}
