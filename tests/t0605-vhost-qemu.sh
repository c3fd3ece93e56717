#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0605-vhost-qemu.sh - the disk of a guest serves QEMU's vhost-user-blk-pci as well.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
probe=$helpers/vhost-qemu
qemu=$(command -v qemu-system-x86_64)
requires_tools qemu-system-x86_64:qemu-system-x86
requires_built "$probe"
check "QEMU's firmware reads and writes it, and both are recorded" run "$probe" "$qemu"
sed 's/^/# /' out
done_testing
