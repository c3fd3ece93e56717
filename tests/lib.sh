# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# lib.sh - what the shell tests share. A test sources it first:
#
#	. "$(dirname "$0")/lib.sh"
#	check "two and two" test $((2 + 2)) = 4
#	done_testing
#
# It works in a directory of its own, which is removed whatever happens, and speaks TAP. What a test
# cannot do without it asks for by requires_..., of requires.sh.

# The clean-up comes first: nothing below may leave anything behind.
dir=
trap '[ -z "$dir" ] || rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

# Used by the tests: the program, and the root of the project.
# shellcheck disable=SC2034
root=$(cd "$(dirname "$0")/.." && pwd)
OUTAGE=$(realpath --no-symlinks "${OUTAGE:-$root/build/outage}")
# Programs that are built for the tests.
# shellcheck disable=SC2034
build=${OUTAGE_BUILD:-$root/build} helpers=${OUTAGE_BUILD:-$root/build}/tests/helpers
# shellcheck disable=SC2034
seeded=$build/tests/seeded seedfs=$build/tests/seeded/seedfs mutant=$build/tests/mutant/outage-mutant
# shellcheck source=tests/requires.sh
. "$root/tests/requires.sh"
requires_built "$OUTAGE"
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

# run COMMAND...: with a limit for what hangs; what it prints is in out and err, how it ends in `status`
run() {
	timeout --kill-after=5 900 "$@" >"$dir/out" 2>"$dir/err" </dev/null
	status=$?
	return $status
}
# exits STATUS COMMAND...: runs it; true if it ends with STATUS
exits() {
	local want=$1
	shift
	run "$@"
	[ $status -eq "$want" ] || { echo "# status $status, not $want: $*"; return 1; }
}
# ended STATUS [PID]: waits for the process, or for $pid; true if it ends with STATUS; how it ends is in `status`
ended() {
	wait "${2:-$pid}"
	status=$?
	[ -n "${2-}" ] || pid=
	[ $status -eq "$1" ] || { echo "# status $status, not $1"; return 1; }
}
# gives STATUS ARGUMENTS...: of the program; a failure is told in one line
gives() {
	local want=$1 got
	shift
	timeout 900 "$OUTAGE" "$@" >out 2>err </dev/null
	got=$?
	[ "$got" -eq "$want" ] && { [ "$got" -ne 2 ] || [ "$(wc -l <err)" -eq 1 ]; }
}
# ended_in PREFIX STATUS: the same of $pid, whose output is in PREFIXout and PREFIXerr
ended_in() {
	local right
	ended "$2"
	right=$?
	cp "$1out" "$dir/out"
	cp "$1err" "$dir/err"
	return $right
}
# outage ARGUMENTS..., status STATUS ARGUMENTS...: the same of the program itself
outage() { run "$OUTAGE" "$@"; }
status() { exits "$1" "$OUTAGE" "${@:2}"; }
# keeps STATUS COMMAND...: the same with -o kept
keeps() {
	rm -rf kept
	exits "$@" -o kept
}
# tries STATUS ARGUMENTS...: the same with the words of `trial` before the arguments
trial=("$OUTAGE" test)
tries() { keeps "$1" "${trial[@]}" "${@:2}"; }
# not COMMAND...: it fails; fails COMMAND...: the same, and what it prints is in out and err
not() { ! "$@"; }
fails() { ! "$@" >"$dir/out" 2>"$dir/err"; }

# says PATTERN [FILE], lacks PATTERN [FILE]: an extended regular expression that a line of FILE, or of out,
# has, or none has; complains PATTERN: one of err
says() { grep -qE -e "$1" "${2:-$dir/out}"; }
lacks() { ! says "$@"; }
complains() { says "$1" "$dir/err"; }
# said WORDS: as they are, in out
said() { grep -qF -e "$1" "$dir/out"; }
# one_line: so much was said on standard error, but for what a machine has to say when it starts
one_line() { [ "$(grep -vcE '^outage: (booting|fetching|warning: KVM) ' "$dir/err")" -eq 1 ]; }
# refused WORDS ARGUMENTS...: outage ends with status 2, prints nothing, and says these WORDS in one line;
# refused_like PATTERN ARGUMENTS...: the same with a regular expression
refused_at_all() { status 2 "$@" && [ ! -s "$dir/out" ] && one_line; }
refused() { refused_at_all "${@:2}" && grep -qF -e "$1" "$dir/err"; }
refused_like() { refused_at_all "${@:2}" && complains "$1"; }

# same FILE FILE: if they are not, it is said what differs
same() { cmp -s "$1" "$2" || { diff "$1" "$2" | head -20 | sed 's/^/#   /'; false; }; }

# json CONDITION [FILE]: of what is printed as JSON, d
json() { python3 -c "import json, sys; d = json.load(open(sys.argv[1])); assert $1, d" "${2:-$dir/out}" 2>>"$dir/err"; }
# json_value EXPRESSION [FILE]: prints it
json_value() {
	python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print($1)" "${2:-$dir/out}" 2>>"$dir/err"
}

# is_mounted, not_mounted: a file system of ours, on mnt; nobody is asked there
is_mounted() { grep -q " $dir/mnt fuse.outage " /proc/self/mounts; }
not_mounted() { ! is_mounted; }
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

# with_time SECONDS COMMAND...: it succeeds, where $seconds are so many, or, if the machine is too busy for that,
# four or sixteen times as many. For tests of what hangs: nothing else in them must take that long.
with_time() {
	local first=$1
	shift
	# shellcheck disable=SC2034 # used by the tests
	for seconds in "$first" $((4 * first)) $((16 * first)); do
		"$@" && return
	done
	return 1
}
# while_alive PID COMMAND...: the same, as long as the process is there
while_alive() {
	local pid=$1
	shift
	until "$@"; do
		kill -0 "$pid" 2>/dev/null || return 1
		sleep 0.02
	done
}

# no_nap: no sleep(1) of $nap seconds is left; no other process sleeps for so long
# shellcheck disable=SC2016 # for eval
no_nap() { soon eval '! pgrep -f "sleep $nap" >/dev/null'; }

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
