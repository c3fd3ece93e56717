#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0490-healthy.sh - samples on healthy file systems report nothing but the bugs in doc/findings.md.
# With OUTAGE_TEST_LONG=1 the samples are large, and take a quarter of an hour.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

requires_mounts
if [ -n "${OUTAGE_TEST_LONG:-}" ]; then
	many=2000 some=100 few=100 seed=11 budget=200
else
	many=40 some=3 few=2 seed=7 budget=40
fi

# silent FS ARGS...: nothing is found, but what is known of btrfs and suppressed
silent() {
	local fs=$1 got
	local known=()
	shift
	[ "$fs" = btrfs ] && known=(--suppress "$root/share/known-btrfs.suppress")
	rm -rf kept
	timeout 900 "$OUTAGE" test -t "$fs" -j 2 --seed "$seed" "${known[@]}" "$@" -o kept >out 2>err </dev/null
	got=$?
	echo "# $fs $*: $(grep -o '[0-9]* different crash states' out) $(grep suppressed out)"
	[ "$got" -eq 0 ] || { echo "# status $got: outage test -t $fs $*"; return 1; }
}

for fs in ext4 xfs btrfs; do
	check "$fs: persistence points, seq-2" silent $fs -b seq-2 --sample $many
	for set in seq-1 seq-2; do
		check "$fs: lost and reordered writes, $set" \
			silent $fs -b $set --crash reorder --sample $some --budget $budget
		check "$fs: prefixes of writes, $set" silent $fs -b $set --crash prefix --sample $some
	done
	check "$fs: a second crash while recovering" \
		silent $fs -b seq-1 --crash recovery --sample $few --budget $budget
done
done_testing
