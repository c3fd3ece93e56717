#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The scripts of the tree are as tools/scripts wants them, and each of its checks can fail.
# shellcheck disable=SC2016,SC2317 # lines of scripts; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

check 'no function of a library is defined twice, and no script is too long' exits 0 "$root/tools/scripts"

# a_tree: one that is right, with a library of its own
a_tree() {
	rm -rf tree
	mkdir -p tree/tests tree/tools
	printf '%s\n' '# SPDX' 'run() { :; }' '	soon() { :; }' >tree/tests/lib.sh
	printf '%s\n' '# SPDX' 'skip_all() { :; }' >tree/tests/requires.sh
	echo '. "$root/tests/requires.sh"' >>tree/tests/lib.sh
	printf '%s\n' '# SPDX' 'mounted() { :; }' >tree/tests/mount-lib.sh
	printf '%s\n' '#!/bin/bash' '. "$(dirname "$0")/lib.sh"' '. "$root/tests/mount-lib.sh"' 'own() { :; }' >tree/tests/t0001-a.sh
	printf '%s\n' '#!/bin/bash' '. "$(dirname "$0")/lib.sh"' 'mounted() { false; }' >tree/tests/t0002-b.sh
	seq 300 | sed 's/^/# /' >tree/long
}
refuses() { exits 1 "$root/tools/scripts" tree && says "$1"; }
a_tree
check 'a right tree' exits 0 "$root/tools/scripts" tree
echo 'run() { :; }' >>tree/tests/t0001-a.sh
check 'a function of lib.sh' refuses '^tests/t0001-a.sh: run\(\) is a function of tests/lib.sh: '
a_tree
echo 'soon() { :; }' >>tree/tests/t0001-a.sh
check 'one that is not at the beginning of its line' refuses 'soon\(\) is a function of tests/lib.sh'
a_tree
echo 'skip_all() { :; }' >>tree/tests/t0001-a.sh
check 'one of what lib.sh sources' refuses 'skip_all\(\) is a function of tests/requires.sh'
a_tree
echo 'mounted() { :; }' >>tree/tests/t0001-a.sh
check 'one of a library that is sourced' refuses 'mounted\(\) is a function of tests/mount-lib.sh'
a_tree
echo 'run() { :; }' >>tree/tests/mount-lib.sh
check 'a library that redefines one' refuses '^tests/mount-lib.sh: run\(\) is a function of tests/lib.sh'
a_tree
printf '%s\n' 'wait_for() {' '	local at=$1' '	until [ -e "$at" ]; do sleep 1; done # here' '}' >>tree/tests/t0001-a.sh
printf '%s\n' 'if true; then' '	wait_for() {' '		local at=$2' '		until [ -e "$at" ]; do sleep 1; done' '	}' 'fi' >>tree/tests/t0002-b.sh
check 'a function that is nearly another' refuses '^tests/t0002-b.sh: wait_for\(\) is nearly that of tests/t0001-a.sh'
sed -i 's/until.*/rm -f "$at"; ln -s "$dir" "$at"/' tree/tests/t0001-a.sh
check 'two of one name that do different things' exits 0 "$root/tools/scripts" tree
a_tree
for script in t0001-a t0002-b; do echo 'made() { [ -e "$1" ]; } # FILE' >>tree/tests/$script.sh; done
check 'a function of one line' refuses 'made\(\) is nearly that of'
a_tree
tail -n +3 tree/long | cat tree/tests/t0002-b.sh - | head -n 301 >tree/t && mv tree/t tree/tests/t0002-b.sh
check '301 lines' refuses '^tests/t0002-b.sh: has 301 lines'
a_tree
{ echo '#!/bin/sh'; cat tree/long; } >tree/tools/t
check '301 lines of a tool' refuses '^tools/t: has 301 lines'
done_testing
