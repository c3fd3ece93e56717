# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034,SC2317 # dir: lib.sh; the rest: the tests
# database-lib.sh - a mount for databases, of `data` on `mnt`, whose power can fail. Sourced after lib.sh.
requires_root
requires_fuse
trap 'clean_up; rm -rf "$dir"' EXIT
servers=()

clean_up() {
	local pid

	for pid in "${servers[@]}"; do
		kill -9 "$pid" 2>/dev/null
	done
	cd / || return
	umount -l "$dir/mnt" 2>/dev/null
	wait 2>/dev/null
}

chmod 755 "$dir"
mkdir mnt
mnt=$dir/mnt

gone() {
	! mountpoint -q "$mnt"
}
# begin OPTION...: an empty mount
begin() {
	rm -rf data
	mkdir data
	again "$@"
}
# again OPTION...: what survived, mounted
again() {
	# Out of sight is not yet gone: the server before may still be clearing up.
	soon flock -n data true
	timeout 900 "$OUTAGE" mount --daemon --no-real-sync --allow-other --log log "$@" data mnt >out 2>err ||
		sed 's/^/# /' err
}
ctl() {
	timeout 900 "$OUTAGE" ctl mnt "$@" >out 2>err || sed 's/^/# /' err
}
crash() {
	ctl crash
	soon quietly gone
}
end() {
	timeout 900 "$OUTAGE" umount mnt >out 2>err || sed 's/^/# /' err
}
# stop PID: it has had its chance
stop() {
	kill -9 "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}
