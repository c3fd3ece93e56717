# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # dir: lib.sh; who there is: the tests
# trust-lib.sh - two users with a key each, and what one of them may not do with what the other made.
# Sourced after lib.sh. What may not be run leaves the file `ran`.
ours=$dir/state stranger=$dir/other-state
# as WHO STATUS ARGUMENTS...: outage as that user ends with STATUS
as() { XDG_STATE_HOME=$1 status "${@:2}"; }
# distrusts WORDS WHO ARGUMENTS...: it is refused, with a sentence that has these words; and nothing was run
distrusts() {
	rm -f ran
	as "$2" 2 "${@:3}" && test ! -e ran && one_line && grep -q 'was not made by you on this machine.*--trust' err &&
		grep -q -e "$1" err && lacks 'yours alone' err
}
