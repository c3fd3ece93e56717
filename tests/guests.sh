# SPDX-License-Identifier: MIT
# guests.sh - for tests of kernels that run as guests; sourced after lib.sh.
# shellcheck shell=bash disable=SC2016,SC2034,SC2154,SC2317 # $kernels is for who sources it, $OUTAGE from lib.sh; words for eval

# A kernel is fetched once and kept for other runs.
kernels=${OUTAGE_TEST_KERNELS:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/outage-test}

# cloud_kernel: prints the path of the newest kernel of Debian that was fetched
cloud_kernel() { find "$kernels/kernels" -name 'vmlinuz-*-cloud-amd64' 2>/dev/null | sort -V | tail -1; }

requires_uml() { requires_tools linux.uml:user-mode-linux; }
requires_qemu() { requires_tools qemu-system-x86_64:qemu-system-x86; }
# requires_kernel STATUS [IMAGE]: STATUS is of the first run. If it failed because no kernel can be fetched,
# nothing can be tried, unless there is an IMAGE from before.
requires_kernel() {
	if [ "$1" != 0 ] && [ -z "${2:-}" ] && complains 'apt-get|apt-cache'; then
		sed 's/^/# /' err
		skip_all 'no kernel can be fetched'
	fi
}

# wrong PATTERN ARGUMENTS: outage test refuses that before it begins; there is a workload `short`
wrong() {
	local pattern=$1
	shift
	check "wrong: $*" status 2 test "$@" -o wrong-run short
	check "is said in one line" one_line
	check "and what: $pattern" complains "$pattern"
	check "no run is begun" [ ! -e wrong-run/findings ]
	rm -rf wrong-run
}
wait_for_none() { # of the processes that the test's own `ours` prints, while they are being ended
	soon eval '[ -z "$(ours)" ]' && return 0
	ours >out
	return 1
}
# no_socket FILE: none that was made after it, and whose owner is gone, is there, or soon none is: those
# of other tests have a name for a moment
no_socket() {
	local path left
	none_left() {
		left=
		while IFS= read -r path; do
			[ -d "/proc/$(sed -E 's,.*/outage-vhost-([0-9]+)-.*,\1,' <<<"$path")" ] || left=$path
		done < <(find /tmp -maxdepth 1 -name 'outage-vhost-*' -newer "$1" 2>/dev/null)
		[ -z "$left" ]
	}
	soon none_left "$1" && return 0
	echo "$left" >out
	return 1
}
# progressed DIR LINES: waits until so much is done in DIR, or the run $run is over
progressed() {
	soon eval '[ "$(wc -l 2>/dev/null <"'"$1"'/progress" || echo 0)" -ge '"$2"' ] || ! kill -0 "$run" 2>/dev/null'
}
# under_way LINES DIR OPTION...: starts a run in the background, and waits until so much of it is done; $run is a
# timeout(1), $pid the program
under_way() {
	timeout --kill-after=5 900 "${program:-$OUTAGE}" test "${@:3}" -o "$2" >out 2>err </dev/null &
	run=$!
	progressed "$2" "$1"
	pid=$(pgrep -P "$run")
}
# problem KIND WORDS: a finding has it
problem() { grep -q "^$1	.*$2" kept/findings/*/problems; }
# marked: of the processes whose numbers it reads, prints those that this test has started
marked() {
	local p
	while read -r p; do
		grep -qzx "OUTAGE_TEST_MARK=$OUTAGE_TEST_MARK" "/proc/$p/environ" 2>/dev/null && echo "$p"
	done
}
# own_guests: what is started from now on has a word in its environment by which `marked` knows it, and the
# guests among it end with the test
own_guests() {
	export OUTAGE_TEST_MARK
	OUTAGE_TEST_MARK=$(basename "$0" .sh)-$$
	cleanup() {
		local p
		for p in $({ pgrep -x linux.uml; pgrep -x qemu-system-x86; } | marked); do kill -KILL "$p" 2>/dev/null; done
		rm -rf "$dir"
	}
	trap cleanup EXIT
}
# own_machines: the same; `ours` prints virtual machines
own_machines() {
	own_guests
	ours() { pgrep -f '^[^ ]*qemu-system-x86_64 -nodefaults' | marked; }
}
# own_umls: the same; `ours` prints kernels of user-mode Linux with their processes
own_umls() {
	own_guests
	ours() { pgrep -x linux.uml | marked; }
}
