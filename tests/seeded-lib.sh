# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034,SC2317 # dir, seedfs: lib.sh; the rest: the tests
# seeded-lib.sh - for tests of seedfs itself, on `disk`, mounted on `m`; `ref` is a tmpfs to compare with. Sourced
# after lib.sh. Everything is in namespaces of its own: nothing stays mounted and no server stays, whatever happens.
requires_fuse
requires_built "$seedfs"
if [ "${OUTAGE_TEST_INSIDE:-}" != "$(basename "$0")" ]; then
	inside=(-m -p -f)
	[ "$(id -u)" = 0 ] || inside+=(--map-root-user)
	unshare "${inside[@]}" true 2>/dev/null || skip_all 'no mount and process namespaces here'
	cd / && rm -rf "$dir"
	OUTAGE_TEST_INSIDE=$(basename "$0") exec timeout --kill-after=10 900 \
		unshare "${inside[@]}" --kill-child --mount-proc --propagation private "$root/tests/$(basename "$0")"
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
export LC_ALL=C SEEDFS=$seedfs
umask 022
# The disks in memory, and what to compare with: a tmpfs.
mount -t tmpfs -o mode=0755 tmpfs "$dir" || skip_all 'cannot mount tmpfs'
cd "$dir" || exit 1
mkdir m ref
: >out
: >err

mkfs() { rm -f disk && timeout 900 "$seedfs" mkfs disk ${size:+--size "$size"} >out 2>err; }
fsck() { timeout 900 "$seedfs" fsck disk >out 2>err; }
fsck_says() { # STATUS TEXT
	fsck
	[ $? -eq "$1" ] && grep -q "$2" out
}

# start [OPTIONS]: mounts the disk; false if that fails
start() {
	"$seedfs" mount disk m -f ${1:+-o "$1"} >out 2>err </dev/null &
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
