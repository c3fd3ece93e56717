#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0411-seeded-bugs.sh - the bugs of seedfs: until its power fails it is a good file system with each of them,
# and what they lose then is what they should.
# takes 25 s
# shellcheck disable=SC2317,SC2016 # functions are called through check, words expanded by eval
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/seeded-lib.sh
. "$root/tests/seeded-lib.sh"

# The bugs: listed, and invisible without a crash.
mkfs
"$seedfs" bugs >list
grep -o '^[a-z][a-z-]*' list >names
check "there are at least 18 bugs" test "$(wc -l <names)" -ge 18
check "each with what is wrong, what is seen, and in which crash" \
	eval '[ "$(grep -c "^ *seen: ." list)" -eq "$(wc -l <names)" ] &&
	[ "$(grep -c "^ *crash: ." list)" -eq "$(wc -l <names)" ]'
check "an unknown bug is refused" \
	eval '! timeout 900 "$SEEDFS" mount disk m -f -o bug=none >out 2>err && grep -q "no bug" err'
live() { # OPTIONS
	mkfs && start "$1" || return 1
	run_in m exercise m.said
	run_in m describe m.tree
	same ref.said m.said && same ref.tree m.tree && stop && fsck_says 0 clean && start "$1" || return 1
	run_in m describe m.tree
	same ref.tree m.tree && stop
}
while read -r name; do
	check "$name: nothing is wrong without a crash" live "bug=$name"
	crash
done <names
check "all at once: nothing is wrong without a crash" live "bug=$(paste -sd, names)"
crash

# Those that any crash after the fsync shows: the server is killed, and with the bug the last words
# are false, without it true. The other kinds of crash are seedfs-power's.
after_crash() { # OPTIONS SETUP RUN WANT
	mkfs && start "$1" || return 2
	(cd m && eval "$2" && timeout 900 "$SEEDFS" sync . && eval "$3") >out 2>&1 || return 2
	crash
	start "$1" || return 1
	(cd m && eval "$4") >>out 2>&1
	local status=$?
	crash
	return $((status != 0))
}
shows() { # BUG SETUP RUN WANT
	after_crash "" "$2" "$3" "$4" || return 1
	after_crash "bug=$1" "$2" "$3" "$4"
	[ $? -eq 1 ]
}
bug() {
	check "$1: a crash shows it" shows "$@"
	crash
	echo "$1" >>shown
}
is_long() { [ "$(stat -c %s "$1")" = "$2" ]; }
has_blocks() { [ "$(stat -c %b "$1")" = "$2" ]; }
bytes() { yes | head -c "$1"; }
bug rename-lost 'mkdir -p A/B C; echo x >A/B/foo' 'mv A/B/foo C/foo; touch A/bar; sync A' \
	'[ -e A/B/foo ] || [ -e C/foo ]'
bug rename-both 'mkdir A; echo x >A/foo' 'mv A/foo A/bar; sync A/bar' \
	'[ ! -e A/foo ] && [ -e A/bar ]'
bug rename-over 'mkdir A B; echo old >A/bar' \
	'echo new >B/bar; mv B/bar A/bar; touch A/foo; sync A/foo' '[ -s A/bar ]'
bug name-new 'true' 'echo x >foo; sync foo' '[ -s foo ]'
bug link-lost 'touch foo' 'ln foo bar; sync foo' '[ -e bar ]'
bug one-name 'true' 'touch foo; ln foo bar; sync foo' '[ -e foo ] && [ -e bar ]'
bug dir-entry 'mkdir A' 'touch foo A/foo; sync A/foo; sync .' '[ -e foo ]'
bug size-old 'echo hello >foo' 'echo hello >>foo; sync foo' 'is_long foo 12'
bug direct-size 'true' 'dd if=/dev/zero of=foo bs=4096 count=1 oflag=direct; sync foo' \
	'is_long foo 4096'
bug falloc-keep 'bytes 4096 >foo' 'fallocate -n -o 4096 -l 4096 foo; sync foo' 'has_blocks foo 16'
bug zero-keep 'bytes 4096 >foo' 'fallocate -z -n -o 4096 -l 4096 foo; sync foo' 'is_long foo 4096'
bug punch-lost 'bytes 8192 >foo' 'fallocate -p -o 0 -l 4096 foo; sync foo' 'has_blocks foo 8'
bug link-size 'touch foo' 'echo hi >foo; sync foo; ln foo foo2; touch bar; sync bar' '[ -s foo ]'
bug fsync-twice 'touch foo' 'echo a >foo; sync foo; echo b >>foo; sync foo' 'is_long foo 4'
bug symlink-empty 'mkdir A' 'ln -s target A/l; sync A' '[ "$(readlink A/l)" = target ]'
bug chmod-lost 'touch foo' 'chmod 600 foo; sync foo' '[ "$(stat -c %a foo)" = 600 ]'
bug dir-count 'mkdir A; touch A/foo' 'touch A/bar; sync A; sync A/bar' 'rm A/foo A/bar && rmdir A'
bug name-reused 'mkdir A; touch A/foo; ln A/foo A/bar' 'rm A/bar; touch A/bar; sync A/bar' 'true'
bug stale-log 'touch foo' 'chmod 400 foo; sync foo; chmod 777 foo; "$SEEDFS" sync .' \
	'[ "$(stat -c %a foo)" = 777 ]'
bug no-revoke 'mkdir A; touch A/x' 'rm A/x; rmdir A; "$SEEDFS" sync .; bytes 4096 >foo; sync foo' \
	'bytes 4096 | cmp - foo'
if [ $python ]; then
	bug mmap-lost 'bytes 8192 >foo' 'tool mmap foo; sync foo' \
		'[ "$(tail -c +101 foo | head -c 7)" = mapping ]'
	bug xattr-back 'touch foo; tool set foo user.a 1; tool set foo user.b 2' \
		'tool remove foo user.a; sync foo' '[ "$(tool list foo)" = "[('\''user.b'\'', b'\''2'\'')]" ]'
	bug xattr-lost 'touch foo' 'tool set foo user.a 1; sync foo' '[ "$(tool list foo)" != "[]" ]'
	check "every bug that a crash after the fsync shows was shown" \
		eval '[ "$(grep -c "crash: after the fsync" list)" -eq "$(wc -l <shown)" ]'
else
	skip "mmap-lost, xattr-back, xattr-lost: no python3"
fi

# Crashes in between, reordered, torn, and during recovery; on a disk in memory.
if [ -x "$seeded/seedfs-power" ]; then
	check "seedfs-power: silent without a bug, each bug shown by its crash" \
		eval 'timeout 900 "$seeded/seedfs-power" --random "${SEEDED_RANDOM:-10}" >out 2>err'
else
	skip "$seeded/seedfs-power is not there"
fi

done_testing
