# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034,SC2317 # root, dir: lib.sh; status and functions: the tests
# forget-lib.sh - a mount that forgets, in a mount namespace of its own, by the server of the tests.
# Sourced after lib.sh. ROOT is `source`, the mount `mnt`.
if [ ! -w /dev/fuse ]; then
	echo "1..0 # SKIP there is no FUSE here"
	exit 77
fi
own_mounts
helpers=${OUTAGE_BUILD:-$root/build}/tests/helpers
server=

cleanup() {
	[ -z "$server" ] || kill -KILL "$server" 2>/dev/null
	umount -l "$dir/mnt" 2>/dev/null
	cd / && rm -rf "$dir"
}
trap cleanup EXIT

is_mounted() { grep -q " $dir/mnt fuse.outage " /proc/self/mounts; }
not_mounted() { ! is_mounted; }
until_true() { soon "$@"; }
says() { grep -q -- "$1" answers; }
# start PROFILE [OPTION...] [-- FAULT...]: a new ROOT, unless `keep` is set; by the user `as`, if that is set
start() {
	local words=()
	# a limit that not even root may raise
	[ -z "${descriptors:-}" ] || words+=(setpriv --bounding-set=-sys_resource)
	[ -z "${as:-}" ] || words+=(setpriv "--reuid=$as" "--regid=$as" --clear-groups)
	[ -n "${keep:-}" ] || rm -rf source
	mkdir -p source mnt
	[ -z "${as:-}" ] || chown "$as:$as" source mnt
	rm -f commands
	mkfifo commands
	: >answers
	(
		[ -z "${descriptors:-}" ] || ulimit -n "$descriptors"
		trap '' XFSZ # a file that gets too large is an error
		exec "${words[@]}" "${program:-$helpers/forget-server}" "$1" source mnt "${@:2}"
	) <commands >answers 2>server.err &
	server=$!
	exec 9>commands
	until_true says mounted
	cp server.err err
}
# ctl COMMAND...: its answer is in `out`
ctl() {
	local before
	before=$(grep -cE '^(ok|error: .*)$' answers)
	printf '%s\n' "$*" >&9
	answered() { [ "$(grep -cE '^(ok|error: .*)$' answers)" -gt "$before" ]; }
	until_true answered || return 1
	cp answers out
	[ "$(tail -1 answers)" = ok ]
}
ended() { ! kill -0 "$server" 2>/dev/null; }
# finish: waits for the end; its exit status is in `status`
finish() {
	exec 9>&-
	until_true ended || kill -KILL "$server"
	wait "$server" 2>/dev/null
	status=$?
	server=
	cp server.err err
}
stop() {
	until_true umount mnt 2>umount.err # who was killed may need a moment to go
	finish
}
tree() { timeout 900 "$helpers/forget-probe" tree "$1" >"$2"; }
same() { diff "$1" "$2" >out 2>err; }
run() { timeout --kill-after=5 900 "$@" >out 2>err; }
put() { printf %s "$2" >"mnt/$1"; }
holds() { [ "$(tr -d '\0' 2>err <"$1")" = "$2" ]; }
sync_it() { timeout 900 sync "$@"; }
