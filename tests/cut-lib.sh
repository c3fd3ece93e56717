# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034,SC2317 # functions are called through check
# cut-lib.sh - for tests that hold outage explore at some moment and cut it short there: the run is `run`, the
# process $pid, a timeout(1), and it goes on once there is hold/go. Sourced after lib.sh.
pid=
# until_true COMMAND...: waits until it succeeds, or the run is over
until_true() { while_alive "$pid" "$@"; }
child() { pgrep -P "$pid" | head -n 1; } # the parent of the tasks
stopping() { grep -q '^outage: stopping' err; }
# ends STATUS: lets the tasks go on; true if it ends so
ends() {
	touch hold/go
	ended "$1"
}
operations() { grep -vc '^#' "$1/workload"; }
