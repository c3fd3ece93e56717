# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154,SC2317 # for eval; t0020-recipes.sh has the variables, and calls it
# `--note TEXT` is known wherever there is a target, told when it is opened, and kept with a run and a finding.

used() {
	check 'test has it' eval 'status 0 test --help all && grep -q -e "--note TEXT" out'
	check 'explore has it' eval 'status 0 explore --help all && grep -q -e "--note TEXT" out'
	check 'a reference, too' eval 'status 2 explore --ref-note x && grep -q "before them" err'
	check 'completion has it' eval 'status 0 generate fish && [ "$(grep -c -e " -l note " -e " -l ref-note " out)" = 3 ]'
	if [ "$(id -u)" = 0 ] && timeout 120 "$OUTAGE" doctor >out 2>err; then
		noted() { status "$1" -v test -t "$2" --note 'on a Monday' --crash reorder -j 1 -o "noted-$1" noted.workload; }
		printf 'creat A\nfsync A\nrename A B\nfsync B\n' >noted.workload
		check 'a run tells it' eval 'noted 0 ext4 && grep -q "ext4: on a Monday" err'
		check 'and keeps it' grep -qx 'note on a Monday' noted-0/run
		check 'one that goes on has the same' eval '! status 0 test --resume noted-0 --note other && grep -q -e "--note on a Monday" err'
		check 'a finding keeps it' eval 'noted 1 ext4,barrier=0 && grep -rqx "note on a Monday" noted-1/findings/*/case'
		check 'and tells it again' eval 'status 1 -v replay "$(dirname "$(find noted-1/findings -name case | head -n 1)")" &&
			grep -q "on a Monday" err'
	else
		skip 'file systems of the kernel cannot be tested here'
	fi
}

left_out() {
	check 'one that is not in the table does not compile' noticed 1 'no member named .note' ../src/target/target.c^
}
