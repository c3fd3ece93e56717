# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034,SC2317 # root, dir: lib.sh; status and functions: the tests
# forget-lib.sh - a mount that forgets, in a mount namespace of its own, by the server of the tests.
# Sourced after lib.sh. ROOT is `source`, the mount `mnt`.
requires_fuse
own_mounts
server=

cleanup() {
	[ -z "$server" ] || kill -KILL "$server" 2>/dev/null
	umount -l "$dir/mnt" "$dir/source" 2>/dev/null
	cd / && rm -rf "$dir"
}
trap cleanup EXIT

answer_has() { grep -q -- "$1" answers; }
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
	soon answer_has mounted
	cp server.err err
}
# ctl COMMAND...: its answer is in `out`
ctl() {
	local before
	before=$(grep -cE '^(ok|error: .*)$' answers)
	printf '%s\n' "$*" >&9
	answered() { [ "$(grep -cE '^(ok|error: .*)$' answers)" -gt "$before" ]; }
	soon answered || return 1
	cp answers out
	[ "$(tail -1 answers)" = ok ]
}
server_gone() { ! kill -0 "$server" 2>/dev/null; }
# finish: waits for the end; its exit status is in `status`
finish() {
	exec 9>&-
	soon server_gone || kill -KILL "$server"
	wait "$server" 2>/dev/null
	status=$?
	server=
	cp server.err err
}
stop() {
	soon umount mnt 2>umount.err # who was killed may need a moment to go
	finish
}
tree() { timeout 900 "$helpers/forget-probe" tree "$1" >"$2"; }
put() { printf %s "$2" >"mnt/$1"; }
holds() { [ "$(tr -d '\0' 2>err <"$1")" = "$2" ]; }
sync_it() { timeout 900 sync "$@"; }
# bytes N LETTER: prints so many; all_of FILE N LETTER: it consists of them
bytes() { head -c "$1" /dev/zero | tr '\0' "$2"; }
all_of() { [ "$(wc -c <"$1")" = "$2" ] && [ "$(tr -d "$3" <"$1" | wc -c)" = 0 ]; }
# unlocked: whoever takes things back for a server that was killed has ended
unlocked() { flock -n source true; }
