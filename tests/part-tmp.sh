#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The commands mount, ctl and umount: what they print, how they end, what they refuse, and that
# nothing is left behind.
# shellcheck source=tests/lib.sh disable=SC2016,SC2317 # expanded by eval, called through check
. "$(dirname "$0")/lib.sh"

if [ ! -c /dev/fuse ] || ! command -v fusermount3 >/dev/null; then
	echo "1..0 # SKIP there is no FUSE here"
	exit 77
fi
trap 'clean_up; rm -rf "$dir"' EXIT

clean_up() {
	local m

	for m in "$dir"/*mnt*; do
		mountpoint -q "$m" 2>/dev/null && timeout 10 umount -l "$m" 2>/dev/null
	done
	wait
}

mkdir data mnt
run() {
	timeout 60 "$OUTAGE" "$@" >out 2>err
	status=$?
}
# mounted MNT: nobody is asked there, for whoever serves it may be about to end
here=$(pwd -P)
mounted() {
	grep -q " $here/$1 fuse" /proc/self/mounts
}
says() {
	grep -q -- "$1" err
}
# one sentence, exit 2, nothing mounted
refused() {
	[ "$status" = 2 ] && [ "$(wc -l <err)" = 1 ] && says "$1" && ! mounted mnt
}
# end_server ROOT: of a mount that is out of sight. It would end with its last user, but whoever makes a
# mount namespace at this moment, another test say, has a copy of it for a while.
end_server() {
	pkill -TERM -f "^$OUTAGE mount --daemon --log log $dir/$1 mnt\$"
	check "a signal ends it" wait_for flock -n "$1" true
}
refused_elsewhere() {
	[ "$status" = 2 ] && [ "$(wc -l <err)" = 1 ] && says "$1" && ! mounted other
}
# wait_for CONDITION...
wait_for() {
	local i

	for ((i = 0; i < 500; i++)); do
		"$@" && return 0
		sleep 0.02
	done
	return 1
}

export OUTAGE

foreground() {
	timeout 120 "$OUTAGE" mount "$@" >fg.out 2>fg.err &
	server=$!
	wait_for mounted mnt
}
ended() {
	wait $server
	status=$?
}
# ---- one ROOT in another ----

mkdir -p outer/inner/most sibling one two
run mount --daemon --log nest.log outer one
run mount outer/inner two
check "a ROOT inside of another mount's ROOT is refused" eval 'test $status = 2 && says "is inside of $dir/outer, which is the ROOT of the mount on $dir/one" && ! mounted two'
run mount --daemon --log nest2.log sibling two
check "one beside it is not" eval 'test $status = 0 && mounted two'
run umount two
run umount one
run mount --daemon --log nest.log outer/inner one
run mount outer two
check "nor may it have one inside" eval 'test $status = 2 && says "$dir/outer/inner, the ROOT of the mount on $dir/one, is inside of it" && ! mounted two'
run umount one
run mount --daemon --log nest.log outer two
check "when that is gone it may be" test $status = 0
run umount two
rm -rf outer sibling one two

done_testing
