# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154,SC2317 # for eval; t0020-recipes.sh has the variables, and calls it
# `outage gen --last N` gives what `tail` would.

last() { timeout 900 "$OUTAGE" gen --bounds seq-1 "$@" | grep '^workload '; }

used() {
	check 'the last three' eval '[ "$(last --last 3 | wc -l)" = 3 ] && [ "$(last --last 3)" = "$(last | tail -n 3)" ]'
	check 'of the first ten' eval '[ "$(last --limit 10 --last 3)" = "$(last | head -n 10 | tail -n 3)" ]'
	check 'of fewer: all' eval '[ "$(last --limit 2 --last 3)" = "$(last --limit 2)" ]'
	check 'it is in the help' eval 'status 0 gen --help && grep -q -e "--last N" out'
	check 'and in completion' eval 'status 0 generate bash && grep -q -e "--last" out'
	check 'and in the manual page' eval 'status 0 generate man tree/man/outage-gen.1.scd tree/man/options.scd &&
		grep -A 1 "^\*--last\* _N_$" out | grep -q "The last N of them."'
	check 'and wants a number' eval 'status 2 gen --bounds seq-1 --last x && grep -q "x" err'
}

left_out() {
	check 'an option that goes nowhere does not compile' noticed 1 'no member named .last' outage.p/src_cli_cmd_gen.c.o
	check 'one that is not in the table' eval 'become "$section" 2 && build outage'
	check 'is unknown' eval 'status 2 gen --bounds seq-1 --last 3 && grep -q "unknown option --last" err'
}
