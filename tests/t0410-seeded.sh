#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0410-seeded.sh - seedfs, the file system with known bugs: it is a good file system until its
# power fails, with every bug as without; and what its bugs lose is what they should.
# shellcheck disable=SC2317,SC2016 # functions are called through check, words expanded by eval
set -u

# Everything in a namespace of its own: nothing stays mounted and no server stays, whatever happens.
if [ -z "${SEEDED_INSIDE-}" ]; then
	export SEEDED_INSIDE=1
	user=()
	[ "$(id -u)" -eq 0 ] || user=(--map-root-user)
	if [ ! -r /dev/fuse ] || [ ! -w /dev/fuse ]; then
		echo "1..0 # SKIP /dev/fuse cannot be opened"
		exit 77
	fi
	if ! unshare "${user[@]}" -m -p -f true 2>/dev/null; then
		echo "1..0 # SKIP no mount and process namespaces here"
		exit 77
	fi
	exec timeout --kill-after=10 "${SEEDED_TIMEOUT:-900}" \
		unshare "${user[@]}" -m -p -f --kill-child --mount-proc --propagation private "$0" "$@"
fi

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
SEEDFS=$(realpath --no-symlinks "${SEEDFS:-${OUTAGE_BUILD:-$(dirname "$OUTAGE")}/tests/seeded/seedfs}")
POWER=$(dirname "$SEEDFS")/seedfs-power
if [ ! -x "$SEEDFS" ]; then
	echo "1..0 # SKIP $SEEDFS is not there"
	exit 77
fi
server='' size=''
# The power fails as far as the server is concerned: what it has written is written.
crash() {
	if [ -n "$server" ]; then
		kill -9 "$server"
		wait "$server"
		server=
	fi 2>/dev/null
	umount -l "$dir/m" 2>/dev/null
	true
}
trap 'crash; cd /; umount -l "$dir" 2>/dev/null; [ -z "$dir" ] || rm -rf "$dir"' EXIT
export LC_ALL=C SEEDFS
umask 022
# The disks in memory, and what to compare with: a tmpfs.
if ! mount -t tmpfs -o mode=0755 tmpfs "$dir"; then
	echo "1..0 # SKIP cannot mount tmpfs"
	exit 77
fi
cd "$dir" || exit 1
mkdir m ref
: >out
: >err

mkfs() { rm -f disk && timeout 900 "$SEEDFS" mkfs disk ${size:+--size "$size"} >out 2>err; }
fsck() { timeout 900 "$SEEDFS" fsck disk >out 2>err; }
fsck_says() { # STATUS TEXT
	fsck
	[ $? -eq "$1" ] && grep -q "$2" out
}

# start [OPTIONS]: mounts the disk; false if that fails
start() {
	"$SEEDFS" mount disk m -f ${1:+-o "$1"} >out 2>err </dev/null &
	server=$!
	soon eval 'mountpoint -q m || ! kill -0 "$server" 2>/dev/null' && mountpoint -q m && return 0
	kill "$server" 2>/dev/null
	wait "$server"
	server=
	return 1
}

# stop: a clean unmount; the server must end by itself, with status 0
stop() {
	timeout 900 umount m 2>>err || return 1
	wait "$server"
	local status=$?
	server=
	return $status
}

# What can be seen of the tree in the current directory. Of directories no sizes: they differ.
describe() {
	find . -type d -printf '%p %y %m %U %G %n\n' -o -printf '%p %y %m %U %G %n %s %l\n' | sort
	find . \( -type b -o -type c \) -exec stat -c '%n %t %T' {} + | sort
	find . -type f -exec sha256sum {} + | sort -k 2
	# Up to the first indirect block, which counts here and not there.
	find . -type f -size -49k -exec stat -c '%n %b' {} + | sort
}

# The same in two places; messages too, and what fails. Each part in its own directory.
exercise() {
	mkdir A A/B A/B/C D; mkdir A; rmdir A; rmdir A/B/C; rmdir nothing; rm A
	echo one >A/one; echo two >A/two; cat A/one A/two A/three; echo more >>A/one
	ln A/one D/one; ln A/one A/two; ln nothing D/x; echo through >>D/one; rm A/one; cat D/one
	ln -s one D/sym; ln -s "$(printf 'a%.0s' $(seq 300))" D/long; readlink D/sym; readlink D/long
	mkfifo -m 600 D/fifo; mknod -m 640 D/null c 1 3; mknod D/disk b 7 1
	mv A/two A/B/two; mv A/B/two D/two; mv -T D A/two; mv D A/B; mv A/B/D D; mv -T A/B D
	echo old >over; echo new >over2; mv over2 over; cat over; mv -n over D/one; ls over
	mkdir E F; mv -T E F; mkdir E; touch F/x; mv -T E F; rmdir E
	chmod 640 over; chmod 4755 over; chmod 1777 F; chmod 2775 F; touch F/inherits; mkdir F/sub
	chown 12:34 D/one; chown -h 5:6 D/sym; touch -d @1234567890 over; stat -c %Y over
	yes pattern | head -c 100000 >big; dd if=/dev/zero of=big bs=1000 seek=20 count=3 conv=notrunc
	truncate -s 50001 big; truncate -s 90000 big; truncate -s 300 over; truncate -s 0 D/one
	yes x | head -c 16384 >fa; fallocate -l 20000 fa; fallocate -n -o 30000 -l 5000 fa
	fallocate -p -o 5000 -l 8000 fa; fallocate -l 12345 fb; fallocate -c -o 0 -l 4096 fb
	dd if=/dev/zero of=sparse bs=1 seek=200000 count=1; cp --sparse=always sparse sparse2
	dd if=/dev/zero of=direct bs=4096 count=3 oflag=direct
	for i in $(seq 150); do echo "$i" >"F/sub/a-file-with-quite-a-long-name-$i"; done
	for i in $(seq 1 2 150); do rm "F/sub/a-file-with-quite-a-long-name-$i"; done
	exec 7<>held; echo kept >&7; rm held; cat /proc/self/fd/7; echo again >&7; exec 7>&-
	mkdir gone; (cd gone && rmdir ../gone && touch x); find . | wc -l
	sync big; sync D; sync .
	rm -r A/B; mkdir -p p/q/r/s; mv p/q D/q; echo deep >D/q/r/s/t; sync D/q/r/s/t
	touch "$(printf 'n%.0s' $(seq 255))" "$(printf 'n%.0s' $(seq 256))"
}
run_in() { # DIR FUNCTION FILE: its output, numbers of seconds left out
	(cd "$1" && "$2") </dev/null 2>&1 | sed 's/, [0-9.e-]* s, .*//; s/line [0-9]*: //' >"$3"
}
run_in ref exercise ref.said
run_in ref describe ref.tree
same() { diff "$1" "$2" >out 2>&1; }

check "mkfs" mkfs
check "a new disk is clean" fsck_says 0 clean
check "mount" start
check "a second server on the disk is refused" \
	eval '! timeout 900 "$SEEDFS" mount disk ref -f >out 2>err && grep -q busy err'
run_in m exercise m.said
run_in m describe m.tree
check "operations answer as on tmpfs" same ref.said m.said
check "the tree is as on tmpfs" same ref.tree m.tree
check "unmount" stop
check "the disk is clean" fsck_says 0 clean
check "mount again" start
run_in m describe m.tree
check "everything is still there" same ref.tree m.tree
check "everything can be removed" eval 'rm -rf m/* && [ -z "$(ls -A m)" ]'
check "and the space is free again" eval '[ "$(df --output=used m | tail -1)" -le 8 ]'
stop
check "the empty disk is clean" fsck_says 0 clean

# tmpfs has no zero range: written zeros are the measure.
zero_range() {
	start && yes | head -c 20000 >m/a && cp m/a m/b && fallocate -z -o 100 -l 9000 m/a &&
		dd if=/dev/zero of=m/b bs=100 seek=1 count=90 conv=notrunc 2>err && cmp m/a m/b &&
		fallocate -z -n -o 40960 -l 4096 m/a && [ "$(stat -c '%s %b' m/a)" = "20000 48" ] &&
		fallocate -z -o 40960 -l 5000 m/a && truncate -s 45960 m/b && cmp m/a m/b &&
		[ "$(stat -c '%s %b' m/a)" = "45960 56" ] && rm m/a m/b && stop && fsck_says 0 clean
}
check "zero range" zero_range

# A full disk.
fill() {
	start || return 1
	head -c 100000 /dev/urandom >m/precious
	cp m/precious copy
	head -c 8M /dev/zero >m/big 2>out && return 1
	grep -q "No space" out && cmp m/precious copy && rm m/big &&
		head -c 2M /dev/zero >m/big && stop
}
check "a full disk says so, and loses nothing" fill
check "and is clean" fsck_says 0 clean
check "sizes" eval 'size=1M mkfs && fsck_says 0 clean && size=64M mkfs && fsck_says 0 clean &&
	! size=1000 mkfs'
check "what is no file system is refused" \
	eval 'rm -f disk; truncate -s 4M disk; ! start && grep -q superblock err && fsck_says 4 superblock'

# What was synced is there after kill -9, and nothing is damaged.
survives() {
	mkfs && start || return 1
	(
		cd m || exit 1
		mkdir A
		yes text | head -c 30000 >A/foo
		ln A/foo bar
		ln -s target A/sym
		chmod 600 A/foo
		truncate -s 123456 A/foo
		sync A/foo
		echo unsynced >later
	) || return 1
	crash
	cp disk crashed
	fsck_says 1 recovered && fsck_says 0 clean || return 1
	cp crashed disk
	start || return 1
	[ "$(stat -c '%s %a %h' m/bar)" = "123456 600 2" ] &&
		yes text | head -c 30000 | cmp -n 30000 - m/A/foo && [ "$(readlink m/A/sym)" = target ] &&
		stop
}
check "what was synced survives kill -9" survives
check "and the disk is clean after it" fsck_says 0 clean
same_twice() {
	for i in 1 2; do
		mkfs && start clock=fixed && (cd m && echo x >a && mv a b && sync b && mkdir c) && stop ||
			return 1
		cp disk "disk.$i"
	done
	cmp disk.1 disk.2
}
check "two runs with a fixed clock write the same" same_twice

# Attributes, mappings and exchanges need more than a shell.
cat >tool.py <<'PY'
import ctypes, mmap, os, sys
what, args = sys.argv[1], sys.argv[2:]
if what == "set": os.setxattr(args[0], args[1], args[2].encode())
if what == "remove": os.removexattr(args[0], args[1])
if what == "list": print(sorted((n, os.getxattr(args[0], n)) for n in os.listxattr(args[0])))
if what == "exchange":
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, args[0].encode(), -100, args[1].encode(), 2): sys.exit("failed")
if what == "mmap":
    fd = os.open(args[0], os.O_RDWR)
    with mmap.mmap(fd, 0) as m: m[100:107] = b"mapping"
PY
python=
python3 -c 'import ctypes, mmap, os; os.setxattr' >out 2>err && python=yes
tool() { timeout 900 python3 "$dir/tool.py" "$@"; }
exotic() {
	mkfs && start && cd m && echo a >a && mkdir d && tool set a user.one 1 && tool set a user.two 2 &&
		tool set d user.dir 3 && tool set a user.one 11 && tool remove a user.two &&
		! tool remove a user.two 2>/dev/null && tool exchange a d && truncate -s 8192 d &&
		tool mmap d && [ "$(tool list d)" = "[('user.one', b'11')]" ] &&
		[ "$(tail -c +101 d | head -c 7)" = mapping ] && [ -d a ] && cd .. && stop && start &&
		[ "$(tool list m/d)" = "[('user.one', b'11')]" ] && [ "$(tool list m/a)" != "[]" ] &&
		[ "$(tail -c +101 m/d | head -c 7)" = mapping ] && stop && fsck_says 0 clean
}
if [ $python ]; then
	check "attributes, mappings and exchanges" exotic
	cd "$dir" || exit 1
	crash
else
	skip "attributes, mappings and exchanges: no python3"
fi

# The bugs: listed, and invisible without a crash.
"$SEEDFS" bugs >list
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
if [ -x "$POWER" ]; then
	check "seedfs-power: silent without a bug, each bug shown by its crash" \
		eval 'timeout 900 "$POWER" --random "${SEEDED_RANDOM:-10}" >out 2>err'
else
	skip "$POWER is not there"
fi
done_testing
