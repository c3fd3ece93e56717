# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034,SC2317 # dir: lib.sh; status and functions: the tests
# reffs-lib.sh - for tests of the mounted reference file system, which is on mnt, with the process $server. Sourced
# after lib.sh.
own_mounts
server=

cleanup() {
	local m
	[ -z "$server" ] || kill "$server" 2>/dev/null
	for m in mnt ext4 tmpfs; do umount -l "$dir/$m" 2>/dev/null; done
	rm -rf "$dir"
}
trap cleanup EXIT

# start OPTIONS...: not below timeout(1), which drops signals that come before it knows its child. A process in the
# background does not get SIGINT unless it is told to.
start() {
	env --default-signal=INT "$OUTAGE" reffs "$@" mnt 2>server.err &
	server=$!
	soon is_mounted
}
# stop [SIGNAL]: how it ends, and with which status
stop() {
	kill "$@" "$server"
	wait "$server"
	status=$?
	cp server.err err
	server=
}
