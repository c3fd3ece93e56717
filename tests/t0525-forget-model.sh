#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The mount that forgets against a model of it: random operations of several threads, syncs, faults
# and power cuts, with every profile; and servers with a known bug, which the model has to find.
# OUTAGE_TEST_LONG=1 runs it for an hour, with new seeds.
# takes 57 s
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

requires_root
requires_fuse
model=$build/tests/helpers/forget-model
mutant=$build/tests/mutant/forget-mutant

# modelled SECONDS ARG...: the model in a directory of its own
modelled() {
	local seconds=$1
	shift
	mkdir -p "$dir/work"
	timeout --kill-after=10 "$seconds" "$model" "$@" "$dir/work" >out 2>err
}

check "what once went wrong does not any more" modelled 900 cases
if [ -n "${OUTAGE_TEST_LONG:-}" ]; then
	seed=$(date +%s)
	check "an hour of every profile, from seed $seed" modelled 3900 time=3600 "seed=$seed"
else
	check "every profile, a few seeds" modelled 900 time=35 seed=1
fi
check "it says what it did" grep -q 'lives, .* no difference' out

# caught BUG PROFILE: the model finds the bug, and says where
caught() {
	FORGET_MUTANT=$1 modelled 900 "server=$mutant" "profile=$2" seed=1 lives=20 patience=1
	[ $? = 1 ] && grep -q "seed=[0-9]* profile=$2.*: thread" err
}

check "without a bug, the server of the mutants is fine" modelled 900 "server=$mutant" profile=minimal \
	lives=1
while read -r bug profile what; do
	check "$what is found with $profile" caught "$bug" "$profile"
done <<'END'
removal ext4-ordered a removal that ROOT does not get
rename minimal a rename that ROOT does not get
attributes btrfs an attribute that ROOT does not get
new-data minimal data that is missing when a file gets its name
page lazyfs a page that is not written
size xfs a size that is not written
truncation ext4-writeback a truncation that metadata does not bring
failed-sync minimal a failed sync that the next one mends
survivor btrfs data that survives
directory minimal a directory that is not synced
kernel btrfs a kernel that is not told
in-place ext4-ordered an overwrite in place that commits
END

done_testing
