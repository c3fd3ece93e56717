# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154,SC2317 # for eval; t0020-recipes.sh has the variables, and calls it
# The profile `f2fs-strict` judges a run: ext2 keeps to posix, and not to this.

used() {
	check 'the profile is known' eval 'status 2 test --guarantee none && grep -q "guarantee is .*atomic or f2fs-strict, not .none" err'
	if command -v linux.uml >/dev/null; then
		judged() { status "$1" test -t uml:ext2 --guarantee "$2" -j 1 -o "by-$2" tree/strict.workload; }
		check 'ext2 is silent by posix' judged 0 posix
		check 'and not by f2fs-strict' judged 1 f2fs-strict
		check 'as the finding says' grep -rqx 'guarantee f2fs-strict' --include=case by-f2fs-strict/findings
	else
		skip 'user-mode Linux is not there'
	fi
}

left_out() {
	: # an entry of a table, whole or not there
}
