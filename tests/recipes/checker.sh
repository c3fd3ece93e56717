# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154,SC2317 # for eval; t0020-recipes.sh has the variables, and calls it
# The link counts of directories are judged; the commands of the recipe have run its case.

used() {
	check 'all other cases are as before' eval 'timeout 900 tree/build/tests/unit/check-persisted >out && ! grep -q "^not ok" out'
	if [ "$(id -u)" = 0 ] && timeout 120 "$OUTAGE" doctor >out 2>err; then
		printf 'mkdir A\nmkdir A/B\nsync\nrename A/B C\nsync\n' >dirs.workload
		check 'ext4 counts the links of directories' status 0 test -t ext4 --crash prefix -j 1 -o dirs dirs.workload
	else
		skip 'file systems cannot be mounted here'
	fi
}

left_out() {
	check 'a kind without a reason does not compile' eval 'whole && sed -i "/^FINDING(DIR_LINKS/s/, [^,]*\$/)/" tree/src/check/finding.def &&
		! build ../src/check/finding.c^ && grep -q "missing initializer" out'
	check 'a checker that is not listed does not compile' noticed 4 'no previous prototype' ../src/check/dir_links.c^
}
