#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The recording disk on this machine's kernel: ext4, xfs and btrfs are recorded, replayed and
# compared byte for byte, by each recorder; nothing is left behind, not even by a killed run.
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called by `check` and the trap
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
probe=$helpers/disk-probe
requires_built "$probe"

# What a failed test of ours left must not stay; others' live disks are not touched.
cleanup() {
	[ -z "${held:-}" ] || kill -KILL "$held" 2>/dev/null
	timeout 900 "$probe" bpf clean >/dev/null 2>&1
	rm -rf "$dir"
}
trap cleanup EXIT

say() { sed 's/^/# /' out; } # the figures, for whoever reads the log
mkfs_of() { command -v "mkfs.$1" >/dev/null && grep -qw "$1" /proc/filesystems; }
# With -q, a device of another test that goes meanwhile is no error.
has_loop_of() { grep -qs "outage-disk-$1-" /sys/block/loop*/loop/backing_file; }

for recorder in bpf fuse; do
	run "$probe" "$recorder" probe
	status=$?
	if [ $status = 77 ]; then
		skip "recorder $recorder: $(head -1 out)"
		continue
	fi
	check "$recorder: the recorder works here" test $status = 0
	check "$recorder: two disks of one process do not mix" run "$probe" "$recorder" open
	check "$recorder: marks stand between the requests" run "$probe" "$recorder" order
	check "$recorder: large requests and discards are recorded once" run "$probe" "$recorder" split
	say
	for fs in ext4 xfs btrfs; do
		if mkfs_of $fs; then
			check "$recorder: $fs is recorded, replayed, restored" run "$probe" "$recorder" record $fs
			say
		else
			skip "$fs is not there"
		fi
	done
	check "$recorder: 300 rounds leave memory as it was" run "$probe" "$recorder" rounds 300
	say

	# Two processes at once, each with its own disk.
	mkdir -p a b
	(cd a && timeout 900 "$probe" "$recorder" rounds 40 >../out.a 2>&1) &
	first=$!
	(cd b && timeout 900 "$probe" "$recorder" rounds 40 >../out.b 2>&1) &
	second=$!
	wait $first
	one=$?
	wait $second
	two=$?
	cat out.a out.b >out
	check "$recorder: two processes do not disturb each other" test "$one $two" = "0 0"

	# A run "$probe" that is killed while its file system is mounted.
	rm -f held.out
	"$probe" "$recorder" hold >held.out 2>&1 &
	held=$!
	soon eval '[ -s held.out ] || ! kill -0 "$held" 2>/dev/null'
	cp held.out out
	check "$recorder: a disk is held" has_loop_of "$held"
	run "$probe" "$recorder" clean
	check "$recorder: a live run's disk is not cleared" has_loop_of "$held"
	kill -KILL "$held"
	wait "$held" 2>/dev/null
	cleared() { # whoever was killed takes a moment to let go of it
		run "$probe" "$recorder" clean
		! has_loop_of "$held"
	}
	check "$recorder: a killed run's disk is" soon cleared
	held=
done

if run "$probe" bpf probe; then
	check "bpf: what does not fit into the ring is reported" run "$probe" bpf overflow
	for fs in ext4 btrfs; do
		check "bpf: on a mounted $fs, ends that were missed do not matter for ever" run "$probe" bpf missed $fs
	done
fi
if [ -n "${OUTAGE_TEST_HANG:-}" ] && run "$probe" fuse probe; then
	check "fuse: a server that stops answering is given up" run "$probe" fuse hang
	say
else
	skip "a server that stops answering: leaves I/O errors in the kernel log; OUTAGE_TEST_HANG=1 runs it"
fi
done_testing
