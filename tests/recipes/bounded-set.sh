# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154,SC2317 # for eval; t0020-recipes.sh has the variables, and calls it
# The set `replace` is there wherever sets are, and the test of the generator asks for its count.

# says WORDS: the test of the generator does; that is at its beginning, and the rest takes long
says() { build tests/unit/workload-gen && timeout 900 stdbuf -oL tree/build/tests/unit/workload-gen 2>err | grep -qm 1 "$1"; }

used() {
	check 'the set is listed' eval 'status 0 gen --list && grep -q "^replace .*renamed over another$" out'
	check 'and generated' eval 'status 0 gen --bounds replace && grep -qx "rename A/foo A/bar" out'
	check 'the test of the generator counts it' says '^ok .*replace has [0-9]* workloads'
}

left_out() {
	check 'without its count' become "$section" 2
	check 'that fails' says '^not ok .*how many workloads replace has is known'
}
