# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154,SC2317 # for eval; t0020-recipes.sh has the variables, and calls it
# minix is a target of both kinds of guests.

twins() { build tests/unit/target-guest-words && timeout 900 tree/build/tests/unit/target-guest-words >out 2>err; }

used() {
	check 'both targets are listed' \
		eval 'status 2 test -t nothing --bounds seq-1 && grep -q "uml:minix, .*vm:minix, " err'
	if command -v linux.uml >/dev/null && command -v mkfs.minix >/dev/null; then
		printf 'mkdir A\nsync\ncreat A/foo\nwrite A/foo 0 4096\nsync\n' >minix.workload
		check 'minix is made, mounted, recovered and checked' \
			status 0 test -t uml:minix --guarantee unmount --fsck -j 1 -o minix minix.workload
	else
		skip 'user-mode Linux or mkfs.minix is not there'
	fi
	check 'the test of the targets goes through it' eval 'twins && grep -q "^ok .*uml:minix: how it is made" out'
}

left_out() {
	check 'without its description' become "$section" 2
	check 'that fails' eval '! twins && grep -q "^not ok .*uml:minix: how it is made" out'
}
