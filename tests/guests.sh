# SPDX-License-Identifier: MIT
# guests.sh - for tests of kernels that run as guests; sourced after lib.sh.
# shellcheck shell=bash disable=SC2016,SC2034,SC2154,SC2317 # $kernels is for who sources it, $OUTAGE from lib.sh; words for eval

# A kernel is fetched once and kept for other runs.
kernels=${OUTAGE_TEST_KERNELS:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/outage-test}

run() { timeout --kill-after=5 900 "$OUTAGE" "$@" >out 2>err </dev/null; }
status() { # STATUS ARGUMENTS
	local want=$1
	shift
	run "$@"
	[ $? -eq "$want" ]
}
says() { grep -qE -e "$1" out; }      # PATTERN
needs_kernel() { # STATUS: of the first run; if that was because there is no kernel, nothing can be tried
	if [ "$1" != 0 ] && complains 'apt-get|apt-cache'; then
		sed 's/^/# /' err
		echo '1..0 # SKIP no kernel can be fetched'
		exit 77
	fi
}
complains() { grep -qE -e "$1" err; } # PATTERN
one_line() { [ "$(grep -vcE '^outage: (booting|fetching|warning: KVM) ' err)" = 1 ]; }
json() { python3 -c "import json; d = json.load(open('out')); assert $1, d" 2>>err; } # CONDITION
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
# own_machines TEST: what is started from now on has a word in its environment by which `ours` finds it
# again, and the machines among it end with the test
own_machines() {
	export OUTAGE_TEST_MARK=$1-$$
	ours() {
		local p
		for p in $(pgrep -f '^[^ ]*qemu-system-x86_64 -nodefaults'); do
			grep -qzx "OUTAGE_TEST_MARK=$OUTAGE_TEST_MARK" "/proc/$p/environ" 2>/dev/null && echo "$p"
		done
	}
	cleanup() {
		local p
		for p in $(ours); do kill -KILL "$p" 2>/dev/null; done
		rm -rf "$dir"
	}
	trap cleanup EXIT
}
