#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The reference file system does what this kernel's ext4 and tmpfs do, for several users: the same
# random calls on both, in a mount namespace of our own.
# shellcheck disable=SC2317 # what `check` and the trap call
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
if [ "${REFFS_NAMESPACE:-}" != yes ]; then
	if ! unshare -m --propagation private true 2>/dev/null; then
		echo "1..0 # SKIP no mount namespace can be made here"
		exit 77
	fi
	rm -rf "$dir"
	REFFS_NAMESPACE=yes exec unshare -m --propagation private "$root/tests/$(basename "$0")"
fi
diff=${OUTAGE_BUILD:-$root/build}/tests/helpers/reffs-diff

cleanup() {
	local m
	for m in mnt ext4 tmpfs; do umount -l "$dir/$m" 2>/dev/null; done
	rm -rf "$dir"
}
trap cleanup EXIT

run() { timeout --kill-after=5 120 "$@" >out 2>err; }
enough() { awk -v least="$1" '/^rounds/ { n = $4 } END { exit n < least }' out; }
refused() { awk '/^rounds/ { n = $6 } END { exit n < 100 }' out; }

mkdir ext4 tmpfs mnt
truncate -s 64M image
if mkfs.ext4 -q -F -b 4096 image 2>err && timeout 20 mount -o loop image ext4 2>err; then
	check "by several users, as on ext4" run "$diff" ext4 --rounds 300 --seed 501
	grep '^rounds' out | sed 's/^/# /'
	check "that is enough to say something" enough 15000
	check "and much was refused" refused
	run "$diff" ext4 --rounds 300 --seed 501 --spoil
	status=$?
	check "a user who is taken for another is found out" test $status = 1
else
	skip "no ext4 can be mounted here: $(head -1 err)"
fi
if timeout 20 mount -t tmpfs none tmpfs 2>err; then
	check "by several users, as on tmpfs" run "$diff" tmpfs --tmpfs --rounds 300 --seed 502
	grep '^rounds' out | sed 's/^/# /'
else
	skip "no tmpfs can be mounted here"
fi
done_testing
