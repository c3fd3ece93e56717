#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The mount that forgets on its own bad days: what holds on to files and memory, descriptors run out, modes
# change under open files.
# shellcheck disable=SC2317,SC2094 # what `check` and the trap call
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/forget-lib.sh
. "$root/tests/forget-lib.sh"

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

# ---- no descriptor is left ----

# What is new is in memory; it needs descriptors only when it becomes durable.
for profile in lazyfs minimal ext4-ordered; do
	for what in touch mkdir "ln mnt/a"; do
		read -ra words <<<"$what"
		start $profile
		put a x
		ctl checkpoint
		for ((fd = 0; ; fd++)); do [ -L "/proc/$server/fd/$fd" ] || break; done
		prlimit --pid "$server" --nofile="$fd:"
		check "$profile: $what works without descriptors" timeout 100 "${words[@]}" mnt/new
		prlimit --pid "$server" --nofile=1024:
		sync_it mnt mnt/new
		ctl clear-cache
		check "$profile: and is durable when synced" test -e source/new
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

done_testing
