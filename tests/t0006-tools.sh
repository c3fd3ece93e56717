#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the Makefile calls: long steps say each minute how far they are, a demonstration that cannot be given is a
# failure, and a skipped test is one that may be.
# shellcheck disable=SC2016,SC2317 # words are for other shells; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
export OUTAGE_TEST_MINUTE=900
aloud() { exits "$1" "$root/tools/aloud" "${@:2}"; }
# program NAME COMMANDS: in the directory bin
program() {
	mkdir -p bin
	printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"
	chmod 755 "bin/$1"
}

# ---- long steps ----

check 'what says a little is heard' aloud 0 building sh -c 'echo "[1/2] a"; echo a warning; echo "[2/2] b"'
check '... and no more' test "$(cat out)" = 'a warning'
check 'what fails' aloud 3 building sh -c 'echo "[1/2] a"; echo an error >&2; exit 3'
check '... too' test "$(cat out)" = 'an error'
check 'with -q, what ends well is silent' aloud 0 -q installing echo a lot
check '... really' test ! -s out -a ! -s err
check 'with -q, what fails' aloud 1 -q installing sh -c 'seq 100; exit 1'
check '... says its last lines' test "$(cat err)" = "$(seq 81 100)"
# It waits until it is told of.
until_told() { printf 'echo "%s"; until grep -q "%s" "%s/out"; do sleep 0.05; done' "$1" "$2" "$dir"; }
slow=$(until_told '[5/466] Compiling' '0 min: building.*: \[5/466\] Compiling')
check 'each minute' exits 0 env OUTAGE_TEST_MINUTE=0.2 "$root/tools/aloud" building sh -c "$slow"
check '... it says how far it is' says '^0 min: building: \[5/466\] Compiling$'

# A tree whose build is slow.
mkdir -p tree/tools
cp "$root/Makefile" tree/
cp "$root/tools/aloud" tree/tools/
printf '#!/bin/sh\n' >tree/tools/configure
chmod 755 tree/tools/configure
program ninja "$slow; echo 'what the compiler says'"
for target in all outage fuzz; do
	check "make $target" exits 0 env OUTAGE_TEST_MINUTE=0.2 PATH="$dir/bin:$PATH" make -C tree "$target"
	check '... says how far it is' says '^0 min: building build(-fuzz)?: \[5/466\] Compiling$'
	check '... and what else is said' says '^what the compiler says$'
done

# Packages are missing, and come slowly. A file that forbids services to start is made in a /usr/sbin of its own.
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	program dpkg-query 'exit 1'
	program apt-get "[ \$1 = update ] && what=reading || what=installing
		$(until_told 'Setting up it' '0 min: $what .*: Setting up it$')"
	mkdir -p layers
	mount_own='mount -t tmpfs tmpfs layers && mkdir layers/up layers/work &&
		mount -t overlay -o lowerdir=/usr/sbin,upperdir=layers/up,workdir=layers/work overlay /usr/sbin || exit 77'
	run unshare -m --propagation private env OUTAGE_TEST_MINUTE=0.2 PATH="$dir/bin:$PATH" \
		sh -c "$mount_own; exec '$root/tools/setup' build"
	if [ $status = 77 ]; then
		skip 'there is no overlayfs here'
	else
		check 'setup ends well' test $status = 0
		check '... reads lists, which is said' says '^0 min: reading the lists of packages: Setting up it$'
		check '... and packages come, which is said' says '^0 min: installing packages: Setting up it$'
	fi
else
	skip 'mount namespaces need root'
fi

# ---- the demonstration ----

program outage '[ "$1" != doctor ]'
demo() { exits "$1" env PATH="$2" bash "$root/tools/demo" "$dir/bin/outage"; }
if [ "$(id -u)" = 0 ]; then
	check 'a demonstration that doctor does not allow is a failure' demo 2 "$PATH"
	check '... and says so' says 'The rest cannot be shown here'
else
	mkdir -p few
	for tool in bash date wc id; do ln -s "$(command -v $tool)" few/; done
	check 'a demonstration without a kernel is a failure' demo 2 "$dir/few"
	check '... and says so' says 'The rest needs a kernel to test'
fi

# ---- what may be skipped ----

# skipped REASON...: of a run that skipped that
skipped() {
	{
		printf '\nSkipped:\n'
		printf '      1  %s\n' "$@"
		echo "9 passed, 0 failed, $# skipped"
	} >log
	run "$root/tools/skips" "$dir/log"
}
check 'a kernel that lacks something may be skipped' skipped 'there is no module f2fs, or no mkfs.f2fs' 'there is no overlayfs here'
check 'a package that is missing may not' not skipped 'there is no overlayfs here' 'strace is not there (apt-get install strace)'
check '... and is told alone' test "$(cat out)" = 'strace is not there (apt-get install strace)'
check 'nor what has an allowed reason in it' not skipped 'no: there is no overlayfs here'
echo '9 passed, 0 failed, 0 skipped' >log
check 'nothing skipped' exits 0 "$root/tools/skips" "$dir/log"
echo 'a run that did not end' >log
check 'a run that did not come to its end' exits 2 "$root/tools/skips" "$dir/log"
check 'without a log' exits 2 "$root/tools/skips"
check '... it says how it is called' test "$(cat err)" = 'usage: tools/skips LOG'
done_testing
