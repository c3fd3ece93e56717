# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# lib.sh - what the shell tests share. A test sources it first:
#
#	. "$(dirname "$0")/lib.sh"
#	check "two and two" test $((2 + 2)) = 4
#	done_testing
#
# It works in a directory of its own, which is removed whatever happens, and speaks TAP.

# The clean-up comes first: nothing below may leave anything behind.
dir=
trap '[ -z "$dir" ] || rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

# Used by the tests: the program, and the root of the project.
# shellcheck disable=SC2034
root=$(realpath "$(dirname "$0")/..")
OUTAGE=$(realpath "${OUTAGE:-$root/build/outage}")
if [ ! -x "$OUTAGE" ]; then
	echo "1..0 # SKIP $OUTAGE is not there"
	exit 77
fi
dir=$(mktemp -d) || exit 1
cd "$dir" || exit 1
export OUTAGE_CACHE=$dir/cache # new file systems are kept here, not in the user's home
: >out
: >err

n=0
failed=0

# check NAME CONDITION...: one line of TAP; on failure, what is in the files out and err
check() {
	local name=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed "s/^/#   out: /" "$dir/out" | head -20
		sed "s/^/#   err: /" "$dir/err" | head -20
		failed=1
	fi
}

# skip WHY: a check that cannot be made here
skip() {
	n=$((n + 1))
	echo "ok $n # SKIP $1"
}

# needs_mounts: the test mounts file systems; where doctor says that cannot be done, it is skipped.
# A machine on which it should work, and does not, is a failure and no reason to skip.
needs_mounts() {
	if [ "$(id -u)" != 0 ]; then
		echo "1..0 # SKIP mounting needs root"
		exit 77
	fi
	if ! timeout 120 "$OUTAGE" doctor >out 2>err; then
		echo "1..0 # SKIP $(grep -m 1 '^missing' out)"
		exit 77
	fi
}

# keeps STATUS COMMAND...: runs it with -o kept; true if it ends with STATUS
keeps() {
	local want=$1 got
	shift
	rm -rf kept
	timeout 300 "$@" -o kept >out 2>err </dev/null
	got=$?
	[ "$got" -eq "$want" ] || { echo "# status $got, not $want: $*"; return 1; }
}

# orphans: how many loop devices there are whose process is gone
orphans() {
	local file pid n=0
	for file in /sys/block/loop*/loop/backing_file; do
		pid=$(sed -n 's/.*outage-disk-\([0-9]*\)-.*/\1/p' "$file" 2>/dev/null)
		if [ -n "$pid" ] && [ ! -d "/proc/$pid" ]; then n=$((n + 1)); fi
	done
	echo "$n"
}
# no_orphan: there are none, or soon are none: another test, which kills runs, may have some for a while
no_orphan() { soon eval '[ "$(orphans)" = 0 ]'; }
# soon COMMAND...: it succeeds, or does so within twenty seconds
soon() {
	local i
	for ((i = 0; i < 200; i++)); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}

done_testing() {
	echo "1..$n"
	exit "$failed"
}
