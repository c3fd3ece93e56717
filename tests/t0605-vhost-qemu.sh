#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0605-vhost-qemu.sh - the disk of a guest serves QEMU's vhost-user-blk-pci as well.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
probe=${OUTAGE_BUILD:-$root/build}/tests/helpers/vhost-qemu
qemu=$(command -v qemu-system-x86_64)
if [ -z "$qemu" ] || [ ! -x "$probe" ]; then
	echo "1..0 # SKIP qemu-system-x86_64 is not there"
	exit 77
fi
run() { timeout --kill-after=5 900 "$probe" "$qemu" >out 2>err; }
check "QEMU's firmware reads and writes it, and both are recorded" run
sed 's/^/# /' out
done_testing
