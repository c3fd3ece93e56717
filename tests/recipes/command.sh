# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154,SC2317 # for eval; t0020-recipes.sh has the variables, and calls it
# `outage guarantees` is a command like the others.

used() {
	check 'the command runs' eval 'status 0 guarantees && grep -q "^linux  *the promises of ext4" out'
	check 'is in the list' eval 'status 0 --help && grep -q "^  guarantees  *lists" out'
	check 'has help' eval 'status 0 guarantees --help && grep -qx "usage: outage guarantees" out'
	check 'refuses what it does not know' eval 'status 2 guarantees all && grep -q "not expected here" err'
	if command -v scdoc >/dev/null; then
		check 'and has a manual page' eval 'build man/outage-guarantees.1 && grep -q guarantees tree/build/man/outage-guarantees.1'
	else
		skip 'scdoc is not there'
	fi
}

left_out() {
	check 'a command that does nothing does not compile' \
		noticed "1:$(grep -n '\.run = run' tree/src/cli/cmd_guarantees.c | cut -d : -f 1)" 'run.* defined but not used|unused function' \
		outage.p/src_cli_cmd_guarantees.c.o
}
