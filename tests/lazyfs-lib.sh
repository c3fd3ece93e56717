# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034,SC2317 # dir: lib.sh; the rest: the tests
# lazyfs-lib.sh - outage as LazyFS. The paths are those of its documentation, so /tmp is one of our own; who sources
# this has another TMPDIR. Sourced after lib.sh.
requires_root
requires_fuse
own_mounts
trap 'clean_up; rm -rf "$dir"' EXIT
clean_up() {
	local job

	cd / || return
	for job in $(jobs -p); do
		kill "$job" 2>/dev/null
	done
	wait
	umount -l /tmp/lazyfs.mnt 2>/dev/null
	umount -l /tmp 2>/dev/null
}

mkdir bin tmp
cp "$OUTAGE" bin/outage
ln -s outage bin/lazyfs
mount --bind "$dir/tmp" /tmp || exit 1
PATH=$dir/bin:$PATH
mnt=/tmp/lazyfs.mnt
data=/tmp/lazyfs.root
fifo=/tmp/faults.fifo
log=/tmp/lazyfs.log
mkdir $mnt $data

serves() { findmnt "$mnt" | grep -q lazyfs; }
gone() { ! serves; }
# logs TEXT: waits until the log has it
logs() {
	soon quietly grep -q -- "$1" $log
}
# As LazyFS's own script starts it in the background.
start() {
	timeout 900 lazyfs $mnt --config-path config.toml -o allow_other -o modules=subdir -o subdir=$data >out 2>err
	soon quietly serves
}
stop() {
	fusermount3 -u $mnt
	soon quietly gone
}
# put FILE OFFSET COUNT LETTER: one write
put() {
	python3 - "$@" <<-'EOF'
		import os, sys
		f, offset, count, letter = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
		fd = os.open(f, os.O_WRONLY | os.O_CREAT)
		os.pwrite(fd, letter.encode() * count, offset)
	EOF
}
# shape FILE: runs of equal bytes, "3000xA 1000x0"
shape() {
	python3 - "$1" <<-'EOF'
		import itertools, sys
		data = open(sys.argv[1], "rb").read()
		print(" ".join("%dx%s" % (len(list(g)), chr(b) if b else "0") for b, g in itertools.groupby(data)))
	EOF
}

