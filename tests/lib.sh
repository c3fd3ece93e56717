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
root=$(cd "$(dirname "$0")/.." && pwd)
OUTAGE=$(realpath --no-symlinks "${OUTAGE:-$root/build/outage}")
if [ ! -x "$OUTAGE" ]; then
	echo "1..0 # SKIP $OUTAGE is not there"
	exit 77
fi
dir=$(mktemp -d) || exit 1
cd "$dir" || exit 1
export OUTAGE_CACHE=$dir/cache # new file systems are kept here, not in the user's home
export XDG_STATE_HOME=$dir/state # and so is the key that marks what the tests make
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

# The ordinary user of the tests: "${as_user[@]}" COMMAND...
# shellcheck disable=SC2034 # used by the tests
as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# for_everybody: OUTAGE becomes a copy that every user may run, in the directory of the test, which
# every user may enter from then on. The clone may be below a home directory of mode 0700.
for_everybody() { OUTAGE=$(copy_for_everybody "$OUTAGE") || exit 1; }
# copy_for_everybody PROGRAM: prints the path of such a copy of another program
copy_for_everybody() {
	local copy
	copy=$dir/.everybody/$(basename "$1")
	chmod 755 "$dir" && mkdir -p "$dir/.everybody" && chmod 755 "$dir/.everybody" || return 1
	[ "$1" -ef "$copy" ] || install -m 755 "$1" "$copy" || return 1
	echo "$copy"
}

# own_mounts: the test goes on, from its beginning, in a mount namespace of its own, where every user may
# open /dev/fuse. udev sees to that on most machines; on one without it the kernel's mode is 0600. For
# root; another user must find a machine that lets him.
own_mounts() {
	if [ "${OUTAGE_TEST_MOUNTS:-}" != "$(basename "$0")" ]; then
		if ! unshare -m --propagation private true 2>/dev/null; then
			echo "1..0 # SKIP no mount namespace can be made here"
			exit 77
		fi
		cd / && rm -rf "$dir"
		OUTAGE_TEST_MOUNTS=$(basename "$0") exec unshare -m --propagation private "$root/tests/$(basename "$0")"
	fi
	if [ -c /dev/fuse ] && [ "$(stat -c %a /dev/fuse)" != 666 ]; then
		mknod -m 666 "$dir/.fuse" c 10 229 && mount --bind "$dir/.fuse" /dev/fuse
	fi
}

# needs_mounts: the test mounts file systems; where doctor says that cannot be done, it is skipped.
# A machine on which it should work, and does not, is a failure and no reason to skip.
needs_mounts() {
	if [ "$(id -u)" != 0 ]; then
		echo "1..0 # SKIP mounting needs root"
		exit 77
	fi
	if ! timeout 900 "$OUTAGE" doctor >out 2>err; then
		echo "1..0 # SKIP $(grep -m 1 '^missing' out)"
		exit 77
	fi
}

# needs_namespaces: the test runs commands in a mount namespace of their own, for which an ordinary user
# needs a user namespace. In a chroot the kernel makes none, and a sysctl may forbid them.
has_namespaces() { [ "$(id -u)" = 0 ] || unshare -Um true 2>/dev/null; }
needs_namespaces() {
	if ! has_namespaces; then
		echo "1..0 # SKIP an ordinary user gets no user namespace here"
		exit 77
	fi
}

# keeps STATUS COMMAND...: runs it with -o kept; true if it ends with STATUS
keeps() {
	local want=$1 got
	shift
	rm -rf kept
	timeout 900 "$@" -o kept >out 2>err </dev/null
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
no_orphan_now() { [ "$(orphans)" = 0 ]; }
no_orphan() { soon no_orphan_now; }
# soon COMMAND...: it succeeds, or comes to. Tests wait for events; the limit is for what hangs.
soon() {
	local deadline=$((SECONDS + 600))
	until "$@"; do
		[ "$SECONDS" -lt "$deadline" ] || return 1
		sleep 0.05
	done
}

quietly() { "$@" >/dev/null 2>&1; }

# few_files N COMMAND...: runs it where N files may be open at once, which not even root may raise
few_files() {
	local most=$1
	shift
	(ulimit -n "$most" && exec setpriv --bounding-set=-sys_resource "$@")
}

done_testing() {
	echo "1..$n"
	exit "$failed"
}
