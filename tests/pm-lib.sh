# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # helpers: lib.sh; commands: the tests
# pm-lib.sh - for tests of outage pm, whose file is `pool`. Sourced after lib.sh.
requires_namespaces
requires_tools qemu-x86_64:qemu-user
# commands that look at the pool
good="'$helpers/pm-reader' check \"\$1\""
show="'$helpers/pm-reader' dump \"\$1\""

# pm STATUS OPTIONS...: the program's status; what it found is kept in r
pm() {
	rm -rf r
	exits "$1" "$OUTAGE" pm --file pool -j 2 -o r "${@:2}"
}
pool() {
	rm -f pool
	truncate -s 64K pool
}
# pm_anew STATUS OPTIONS...: the same, on a new file
pm_anew() { pool && pm "$@"; }
# pm_refused PATTERN OPTIONS...: in one line, and nothing is kept
pm_refused() { pm 2 "${@:2}" && complains "$1" && one_line && test ! -e r; }
# value KEY: of the last --json
value() { json_value "d['$1']"; }
