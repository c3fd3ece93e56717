#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The mount that forgets on its own bad days: ROOT is full, the journal cannot be written, descriptors
# run out, modes change under open files, and it is killed while it takes things back.
# shellcheck disable=SC2317,SC2094 # what `check` and the trap call; names that are checked alone
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/forget-lib.sh
. "$root/tests/forget-lib.sh"
mutant=$build/tests/mutant/forget-mutant

# unlocked: whoever takes things back for a server that was killed has ended
unlocked() { flock -n source true; }
# small SIZE: ROOT is a file system of its own, as large as this
small() {
	mkdir -p source
	umount source 2>/dev/null
	mount -t tmpfs -o "size=$1" none source
}
# fill_up [BYTES]: fills what is left of ROOT, from outside, but for so much
fill_up() {
	dd if=/dev/zero of=source/filler bs=4096 >out 2>&1
	truncate -s "-${1:-0}" source/filler
}
bytes() { head -c "$1" /dev/zero | tr '\0' "$2"; }
all_of() { [ "$(wc -c <"$1")" = "$2" ] && [ "$(tr -d "$3" <"$1" | wc -c)" = 0 ]; }

# ---- the journal cannot be written ----

for profile in minimal btrfs; do
	start $profile
	mkdir mnt/d mnt/e
	ctl checkpoint
	put d/a one
	put e/b two
	rm -f out
	# The next byte of it is one too many.
	size=$(stat -c %s source/.outage-stash/journal)
	prlimit --pid "$server" --fsize="$size:"
	check "$profile: a sync whose record does not fit fails" fails sync_it mnt/d
	check "$profile: and says so" grep -q 'journal .* cannot be written' server.err
	prlimit --pid "$server" --fsize=unlimited:
	ctl clear-cache
	check "$profile: nothing of it is durable" test ! -e mnt/d/a -a ! -e source/d/a
	put d/a one
	check "$profile: with space again, the same sync works" sync_it mnt/d
	ctl clear-cache
	check "$profile: and is one" test -e source/d/a -a ! -e source/e/b
	put d/c one
	put e/b two
	prlimit --pid "$server" --fsize="$(stat -c %s source/.outage-stash/journal):"
	sync_it mnt/d 2>err
	kill -KILL "$server"
	finish 2>/dev/null
	soon not_mounted
	clean() { [ ! -e source/.outage-stash ]; }
	check "$profile: after a kill, too, it is taken back" soon clean
	check "$profile: all of it, and nothing else" test -e source/d/a -a ! -e source/d/c
done

# ---- ROOT is full ----

keep=yes
for how in rename truncate; do
	small 2M
	start ext4-ordered
	bytes 300000 o >mnt/a
	ctl checkpoint
	fill_up 65536
	bytes 400000 n >mnt/new
	[ $how = truncate ] || mv mnt/new mnt/a
	[ $how = rename ] || { cat mnt/new >mnt/a; rm mnt/new; }
	put other x
	check "$how: a sync that cannot write what it orders fails" fails sync_it mnt/other
	check "$how: for want of space" grep -q 'No space' err
	if [ $how = rename ]; then
		check "$how: what is seen is new" all_of mnt/a 400000 n
		ctl clear-cache
		check "$how: what was replaced is there after a power cut" all_of mnt/a 300000 o
		check "$how: and in ROOT" all_of source/a 300000 o
		check "$how: nothing else is left" test ! -e mnt/new -a ! -e mnt/other
		bytes 400000 n >mnt/new
		mv mnt/new mnt/a
		put other x
	fi
	rm -f source/filler
	check "$how: with space, it works" sync_it mnt/other
	ctl clear-cache
	check "$how: and the new one is there" all_of source/a 400000 n
	stop
	umount source
done

small 2M
start ext4-ordered
bytes 300000 o >mnt/a
ctl checkpoint
fill_up 65536
bytes 400000 n >mnt/new
mv mnt/new mnt/a
soon umount mnt 2>err
finish
check "what cannot be written at the end is said" grep -q 'not everything could be written' err
check "and the old one is there" all_of source/a 300000 o
check "with nothing left to do" test ! -e source/.outage-stash
umount source

for profile in ext4-ordered xfs btrfs minimal; do
	small 2M
	start $profile
	bytes 500000 b >mnt/big
	bytes 4096 x >mnt/small
	ctl checkpoint
	fill_up 65536
	rm mnt/big
	bytes 400000 n >mnt/small
	check "$profile: what was removed gives its space to what is synced" sync_it mnt/small mnt
	check "$profile: it is written" all_of source/small 400000 n
	check "$profile: which is said" grep -q 'is full: names and attributes that waited' server.err
	bytes 100000 n >mnt/more
	rm mnt/small
	stop
	check "$profile: and at the end as well" all_of source/more 100000 n
	check "$profile: which is fine" test $status = 0
	umount source
done
small 2M
start ext4-ordered
bytes 600000 b >mnt/big
ctl checkpoint
fill_up
bytes 700000 n >mnt/a
check "what is too much is no space" fails sync_it mnt/a
check "something can be removed where nothing is free" rm mnt/big
check "which may not be enough" fails sync_it mnt/a
check "with more, it is" sh -c 'rm source/filler && sync mnt/a'
stop
check "it ends well" test $status = 0
umount source

# The journal itself has no space: it is emptied.
small 1M
start ext4-ordered
ctl checkpoint
mkdir mnt/d
fill_up
for ((i = 0; i < 100; i++)); do : >mnt/d/a-name-that-takes-some-space-$i || break; done 2>err
check "names are made although the journal cannot grow" test -e mnt/d/a-name-that-takes-some-space-99
stop
umount source
keep=

# ---- sizes, and what holds on to a file ----

for profile in minimal btrfs ext4-ordered; do
	start $profile
	mkdir mnt/d
	for ((i = 0; i < 60; i++)); do bytes 5000 x >mnt/d/$i; done
	ctl checkpoint
	for ((i = 0; i < 60; i++)); do truncate -s $((i % 2 * 4096)) mnt/d/$i; done
	[ $profile = minimal ] || sync_it mnt/d/*
	rm mnt/d/*
	sync_it mnt/d
	held() { find "/proc/$server/fd" -lname '*(deleted)*' | wc -l; }
	none_held() { [ "$(held)" = 0 ]; }
	check "$profile: a file that was truncated and removed is let go" soon none_held
	exec 7<>mnt/open 8<mnt/open
	rm mnt/open
	sync_it mnt
	check "$profile: one that is open is not" test "$(held)" != 0
	exec 7>&- 8<&-
	check "$profile: until it is closed" soon none_held
	stop
done

# ---- memory of what was removed ----

pages() { ctl display-cache-usage && test "$(sed -n 's/^\([0-9]*\) pages of .*/\1/p' answers | tail -1)" "$@"; }
no_pages() { pages "=" 0; }
for profile in minimal btrfs ext4-ordered; do
	start $profile
	bytes 20000 x >mnt/old
	ctl checkpoint
	bytes 9000000 x >mnt/new
	ln mnt/new mnt/other
	rm mnt/new
	check "$profile: a file with another name keeps its data" pages -gt 2000
	rm mnt/other
	check "$profile: what was made and removed takes no memory" soon no_pages
	bytes 20000 y 1<>mnt/old
	rm mnt/old
	check "$profile: what a power cut brings back has its data" pages -gt 0
	ctl clear-cache survive=data
	check "$profile: if that survives" all_of mnt/old 20000 y
	check "$profile: and what was new is gone" test ! -e mnt/new -a ! -e mnt/other
	bytes 30000 x >mnt/new
	exec 7<mnt/new
	rm mnt/new
	check "$profile: who has it open" all_of "/dev/fd/7" 30000 x
	exec 7<&-
	check "$profile: holds it" soon no_pages
	stop
	check "$profile: it ends well" test $status = 0
done

# ---- a snapshot of deep directories ----

# deep N: a directory in a directory in a directory
deep() { (cd mnt && mkdir -p "deep$(printf '/d%.0s' $(seq "$1"))"); }
start lazyfs
deep 300
ctl checkpoint
check "a snapshot of deep directories" ctl snapshot s
ctl rollback s
check "has all of them" test "$(find source/deep -name d | wc -l)" = 300
rm -r mnt/deep
deep 2100
ctl checkpoint
check "what is too deep is no snapshot" fails ctl snapshot t
check "and that is said" grep -q '^error: cannot keep a copy' answers
check "none is there" fails ctl rollback t
stop

# ---- a create that fails half way ----

for profile in lazyfs minimal ext4-ordered; do
	for what in touch mkdir "ln mnt/a"; do
		read -ra words <<<"$what"
		start $profile
		put a x
		ctl checkpoint
		# One descriptor is left, and it takes two.
		free=()
		for ((fd = 0; ${#free[@]} < 2; fd++)); do
			[ -L "/proc/$server/fd/$fd" ] || free+=("$fd")
		done
		[ "$what" = touch ] && max=${free[1]} || max=${free[0]}
		prlimit --pid "$server" --nofile="$max:"
		check "$profile: $what fails without descriptors" fails timeout 900 "${words[@]}" mnt/new
		check "$profile: and leaves nothing" test ! -e source/new
		prlimit --pid "$server" --nofile=1024:
		check "$profile: with them, $what works" timeout 900 "${words[@]}" mnt/new
		sync_it mnt mnt/new
		ctl clear-cache
		check "$profile: and is durable" test -e source/new
		stop
	done
done

# ---- who is not root, and may not open a file twice ----

if [ "$(id -u)" = 0 ] && su -s /bin/sh nobody -c 'test -w /dev/fuse' &&
	[ -u "$(command -v fusermount3)" ]; then
	server_program=$(copy_for_everybody "$helpers/forget-server")
	# as_nobody SCRIPT: in the directory of the test
	as_nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=-all "$@"; }
	for profile in lazyfs ext4-ordered; do
		rm -rf source mnt commands
		mkdir -p source mnt
		chown nobody source mnt
		mkfifo commands
		: >answers
		as_nobody "$server_program" $profile source mnt <commands >answers 2>server.err &
		server=$!
		exec 9>commands
		soon answer_has mounted
		cp server.err err
		as_nobody timeout 900 sh -c '
			printf durable >mnt/old
			exec 3<>mnt/old
			chmod 0 mnt/old
			printf changed >&3
			umask 0377; exec 4>mnt/new; printf data >&4
			umask 022; printf xxxx >mnt/cut; sync mnt/cut
			truncate -s 2 mnt/cut; chmod 0400 mnt/cut
			printf 1 >mnt/read; sync mnt/read; exec 5<mnt/read; chmod 0 mnt/read
			cat <&5 >seen.$$; cat seen.$$; rm -f seen.$$
			python3 -c "
import os
for fd in 3, 4: os.fsync(fd)
os.fsync(os.open(\"mnt/cut\", os.O_RDONLY))
os.fsync(os.open(\"mnt\", os.O_RDONLY))"' >out 2>err
		check "$profile: a file is synced whatever its mode became" test $? = 0
		check "$profile: what was changed" holds source/old changed
		check "$profile: what was made" holds source/new data
		check "$profile: what was cut" holds source/cut xx
		soon as_nobody fusermount3 -u mnt
		finish
		check "$profile: it ends well" test "$status" = 0
	done
	rm -rf source mnt
else
	skip "nobody can mount here but root"
fi

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
		check "$profile: killed at operation $at" soon ended
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
mounted_or_ended() { answer_has mounted || ended; }
# go_on: the next mount, which is killed at its second operation if $at is "all"
go_on() {
	: >answers
	FORGET_MUTANT=$([ "$at" = all ] && echo killed) FORGET_MUTANT_AT=2 "$mutant" "$profile" source mnt \
		</dev/null >answers 2>server.err &
	server=$!
	soon mounted_or_ended
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
	check "killed on the way back to a snapshot, at $at" soon ended
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

# ---- in order, with what survives ----

for profile in ext4-ordered xfs btrfs minimal; do
	start $profile
	bytes 5000 x >mnt/cut
	put a one
	ctl checkpoint
	truncate -s 10 mnt/cut
	mv mnt/a mnt/b
	ctl "clear-cache survivors=b"
	check "$profile: the rename survives" test -e source/b -a ! -e source/a
	[ $profile = minimal ] && size=5000 || size=10
	check "$profile: what was cut before it has $size bytes" test "$(stat -c %s source/cut)" = "$size"
	ctl checkpoint
	bytes 5000 x >mnt/cut
	ctl checkpoint
	mv mnt/b mnt/a
	truncate -s 10 mnt/cut
	ctl "clear-cache survivors=a"
	check "$profile: what is cut after it is not" test "$(stat -c %s source/cut)" = 5000
	truncate -s 10 mnt/cut
	ctl "clear-cache survive=metadata"
	[ $profile = minimal ] && size=5000 || size=10
	check "$profile: a size is metadata, with $size bytes" test "$(stat -c %s source/cut)" = "$size"
	stop
done

# ---- fdatasync ----

for profile in ext4-ordered ext4-writeback xfs; do
	for what in over again punched shrunk grown hole new; do
		start $profile
		bytes 8192 x >mnt/a
		truncate -s 65536 mnt/a
		ctl checkpoint
		case $what in
		again | punched | shrunk)
			# It is known that there is space, and then there is none.
			dd if=/dev/urandom of=mnt/a bs=4096 count=1 conv=notrunc,fdatasync 2>err
			[ $what != punched ] || fallocate -p -o 0 -l 4096 mnt/a
			[ $what != shrunk ] || { truncate -s 0 mnt/a && sync_it mnt/a && truncate -s 65536 mnt/a; }
			ctl checkpoint
			;;
		esac
		put b x
		case $what in
		over | again | punched | shrunk) offset=0 file=a ;;
		grown) offset=16 file=a ;;
		hole) offset=8 file=a ;;
		new) offset=0 file=c ;;
		esac
		dd if=/dev/urandom of="mnt/$file" bs=4096 count=1 seek="$offset" conv=notrunc,fdatasync 2>err
		ctl clear-cache
		case $what in
		over | again) check "$profile: $what: an overwrite in place commits nothing else" test ! -e source/b ;;
		*) check "$profile: $what: what needs metadata commits all" test -e source/b ;;
		esac
		stop
	done
	start $profile
	bytes 8192 x >mnt/a
	ctl checkpoint
	put b x
	dd if=/dev/urandom of=mnt/a bs=4096 count=1 conv=notrunc,fsync 2>err
	ctl clear-cache
	check "$profile: an fsync has the time of the file, and commits" test -e source/b
	stop
done

done_testing
