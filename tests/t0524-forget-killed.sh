#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The mount that forgets is killed while it takes things back, or cannot take them back, and going back to a
# snapshot: the next mount gets there.
# shellcheck disable=SC2317 # what `check` and the trap call
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/forget-lib.sh
. "$root/tests/forget-lib.sh"

mutant=$build/tests/mutant/forget-mutant

# ---- killed while it takes things back ----

for profile in minimal ext4-ordered; do
	for at in 1 2 7 20 33; do
		rm -rf source
		mkdir -p source
		program=$mutant FORGET_MUTANT=killed FORGET_MUTANT_AT=$at keep=yes start $profile
		run "$helpers/forget-probe" storm mnt $at 400
		mkdir mnt/more
		for i in 1 2 3 4 5; do put more/$i $i; put more/old$i old; done
		ctl checkpoint
		for i in 1 2 3 4 5; do
			put more/new$i new
			mv mnt/more/new$i mnt/more/$i
			ln mnt/more/$i mnt/more/link$i
			chmod 600 mnt/more/$i
			mkdir mnt/more/dir$i
			mv mnt/more/old$i mnt/more/dir$i/moved
			put more/old$i again
			rm mnt/more/$i
		done
		ctl snapshot s
		rm -rf kept-copy
		cp -a source/.outage-stash/snapshots/s kept-copy
		tree kept-copy kept
		echo clear-cache >&9 # who answers is killed
		check "$profile: killed at operation $at" soon server_gone
		finish 2>/dev/null
		soon not_mounted
		# Its guardian is killed at the same place: then the next mount goes on.
		soon unlocked
		keep=yes start $profile
		check "$profile: it can be mounted again ($at)" is_mounted
		tree mnt seen
		check "$profile: the rest was taken back ($at)" same kept seen
		stop
		rm -rf kept-copy
	done
done

# Directories that are made anew have other numbers then, each one that another of them had, on a file
# system that gives a number again as soon as it is free. Whoever goes on has to know them.
own_ext4() {
	rm -rf source
	mkdir source
	truncate -s 4M image
	mkfs.ext4 -q image >out 2>err && timeout 900 mount -o loop image source 2>err
}
mix_up() {
	local i
	put deep/left/early x
	put deep/right/early x
	rmdir mnt/first
	for i in 1 2 3 4; do
		rm mnt/d$i/file
		mv mnt/d$i/moved mnt/moved$i
		rmdir mnt/d$i/sub
		rmdir mnt/d$i
	done
	mv -T mnt/full mnt/empty
	python3 -c '
import ctypes
ctypes.CDLL(None).renameat2(-100, b"mnt/deep/left", -100, b"mnt/deep/right", 2) and exit(1)' || return 1
	rm mnt/deep/left/* mnt/deep/right/*
	rmdir mnt/deep/left mnt/deep/right
	mkdir mnt/d1 mnt/new
	rmdir mnt/new
	mkdir mnt/d1/sub
	put d1/file wrong
	chmod 700 mnt/empty
}
mounted_or_gone() { answer_has mounted || server_gone; }
# go_on: the next mount, which is killed at its second operation if $at is "all"
go_on() {
	: >answers
	FORGET_MUTANT=$([ "$at" = all ] && echo killed) FORGET_MUTANT_AT=2 "$mutant" "$profile" source mnt \
		</dev/null >answers 2>server.err &
	server=$!
	soon mounted_or_gone
	answer_has mounted && return 0
	wait "$server" 2>/dev/null
	soon not_mounted
	return 1
}
if [ "$(id -u)" != 0 ] || ! own_ext4; then skip "without an ext4 of its own"; fi
for at in all 2 3 7 8 13 14 15 16 20 24 28 30 31 32 33; do
	[ "$at" = all ] || [ $((at % 2)) = 1 ] && profile=minimal || profile=ext4-ordered
	find source -mindepth 1 -delete 2>err
	# Its guardian is killed at the same place.
	program=$mutant FORGET_MUTANT=killed FORGET_MUTANT_AT=${at/all/2} keep=yes start "$profile"
	mkdir -p mnt/d{1,2,3,4}/sub mnt/full mnt/empty mnt/first mnt/deep/{left,right}
	for i in 1 2 3 4; do
		chmod 71$i mnt/d$i
		put d$i/file $i
		put d$i/moved m$i
	done
	put full/a a
	put deep/left/l l
	put deep/right/r r
	ctl checkpoint
	tree mnt kept
	mix_up || skip "no names can be exchanged"
	tree mnt mixed
	check "$profile: directories are removed, replaced and exchanged ($at)" fails diff kept mixed
	kill -KILL "$server"
	finish 2>/dev/null
	soon not_mounted
	soon unlocked
	for ((kills = 0; kills < 60; kills++)); do
		go_on && break
		grep -q 'cannot be undone' server.err && break
	done
	cp server.err err
	check "$profile: who was killed in between gets there ($at)" answer_has mounted
	[ "$at" != all ] || check "$profile: which takes many" test $kills -gt 15
	tree mnt seen
	check "$profile: and all is as it was ($at)" same kept seen
	stop
done
umount source 2>/dev/null

start minimal
mkdir mnt/d
put d/a x
ctl checkpoint
mv mnt/d/a mnt/b
put c x
chattr_works() { chattr +i source/d 2>err; }
if chattr_works; then
	kill -KILL "$server"
	finish 2>/dev/null
	soon not_mounted
	soon unlocked
	check "what cannot be taken back is said" fails timeout 900 "$helpers/forget-server" minimal \
		source mnt </dev/null
	check "with what to do" grep -q 'cannot be undone: .*; mend that, or remove' err
	check "and nothing before it was" test -e source/b
	chattr -i source/d
	keep=yes start minimal
	check "then it is" holds mnt/d/a x
	check "all of it" test ! -e mnt/b -a ! -e mnt/c
	stop
	start minimal
	mkdir mnt/d
	put d/a x
	ctl checkpoint
	mv mnt/d/a mnt/b
	chattr +i source/d
	check "a loss that stops half way is an error" fails ctl clear-cache
	check "which says what to do" grep -q 'mount .* again' answers
	finish
	check "and ends the mount" test "$status" = 3
	chattr -i source/d
	keep=yes start minimal
	check "the next one finishes it" holds mnt/d/a x
	stop
else
	skip "no file can be made immutable here"
	stop
fi

# ---- going back to a snapshot ----

for at in 1 2; do
	rm -rf source
	mkdir source
	program=$mutant FORGET_MUTANT=rollback FORGET_MUTANT_AT=$at keep=yes start ext4-ordered
	mkdir mnt/d mnt/e
	for i in 1 2 3; do put d/$i $i; done
	ctl checkpoint
	ctl snapshot s
	tree mnt kept
	rm -r mnt/d
	put new x
	ctl checkpoint
	echo rollback s >&9
	check "killed on the way back to a snapshot, at $at" soon server_gone
	finish 2>/dev/null
	soon not_mounted
	soon unlocked
	keep=yes start ext4-ordered
	tree mnt seen
	check "the next mount gets there ($at)" same kept seen
	check "and forgets about it" test ! -e source/.outage-stash/rollback
	stop
done
start ext4-ordered
put a x
ctl checkpoint
ctl snapshot s
stop
printf gone >source/.outage-stash/rollback
check "half way back to a snapshot that is gone" fails timeout 900 "$helpers/forget-server" \
	ext4-ordered source mnt </dev/null
check "is said, with what to do" grep -q 'half way back to its snapshot gone.*remove' err

# Who works while it goes back comes before it or after it: what was done in between must not be taken
# back from what the snapshot brought.
program=$mutant FORGET_MUTANT=slow-loss start minimal
put x snapshot
ctl checkpoint
ctl snapshot s
workers=()
for i in 1 2 3; do
	python3 - <<'END' &
import os, signal
signal.alarm(120)
while True:
	for do in (lambda: os.unlink("mnt/x"), lambda: open("mnt/x", "w").close()):
		try:
			do()
		except OSError:
			pass
END
	workers+=($!)
done
wrong=0
stopped() {
	local pid
	for pid in "${workers[@]}"; do
		grep -q '^State:.T' "/proc/$pid/status" || return 1
	done
}
for ((i = 0; i < 8; i++)); do
	kill -STOP "${workers[@]}"
	soon stopped # a request that is on its way is done before
	put x later
	ctl checkpoint
	kill -CONT "${workers[@]}"
	ctl rollback s || wrong=1
	kill -STOP "${workers[@]}"
	soon stopped
	ctl clear-cache
	holds source/x snapshot || wrong=2
done
kill -KILL "${workers[@]}"
wait "${workers[@]}" 2>/dev/null
check "nothing of the time before it is taken back later" test $wrong = 0
put x new
sync_it mnt/x mnt
ctl clear-cache
check "and it goes on" holds source/x new
stop

done_testing
