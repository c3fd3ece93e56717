#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0855-guest-args.sh - words of the user's for the kernel of a guest, for its modules and for QEMU arrive
# there, are kept with a finding, and are refused where nobody could take them.
# takes 20 s
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

printf 'creat foo\nfsync foo\n' >short
wrong 'kernel-args is for uml: and vm: targets' -t fuse:true --kernel-args quiet
wrong 'qemu-args is for vm: targets' -t uml:ext4 --qemu-args -S
wrong 'control character' -t uml:ext4 --kernel-args $'a\tb'
wrong 'more than 32 words' -t uml:ext4 --kernel-args "$(seq -s ' ' 33)"
wrong 'has 1001 bytes; it may have 1000' -t uml:ext4 --kernel-args "$(printf '%01001d' 0)"

# given TARGET OPTIONS...: both words are there, one of them with the module
cat >given <<'END'
shell "grep -q ' outage_word=17 ' /proc/cmdline && test $(cat /sys/module/virtio_blk/parameters/queue_depth) = 8 && echo arrived >there"
sync
END
arrived() { grep -q '^file there .*arrived' kept/findings/0-0/seen; }
words=' outage_word=17 virtio_blk.queue_depth=8  last'

requires_uml
check 'user-mode Linux: a run with words ends' keeps 1 "$OUTAGE" test -t uml:ext4 -j 1 --kernel-args "$words" \
	--check false --crash persist given
check 'both have arrived' arrived
check 'a finding keeps them' grep -q '^kernel-args .*outage_word=17 virtio_blk.queue_depth=8  last' kept/findings/0-0/case
check 'and is replayed with them' exits 1 timeout 900 "$OUTAGE" replay --rerun kept/findings/0-0
check 'without them it is another run' keeps 1 "$OUTAGE" test -t uml:ext4 -j 1 --check false --crash persist given
check 'in which nothing arrives' not arrived

requires_qemu
mkdir -p "$kernels"
export OUTAGE_CACHE=$kernels
keeps 1 "$OUTAGE" test -t vm:ext4 -j 1 --kernel-args "$words" --check false --crash persist given
rc=$?
requires_kernel $rc
check 'a virtual machine: a run with words ends' test $rc -eq 0
check 'both have arrived' arrived
cat >given <<'END'
shell "grep -q outage-serial /sys/class/dmi/id/product_serial && echo arrived >there"
sync
END
check 'words for QEMU' keeps 1 "$OUTAGE" test -t vm:ext4 -j 1 --qemu-args '-smbios type=1,serial=outage-serial' \
	--check false --crash persist given
check 'have arrived' arrived
check 'words that QEMU refuses' keeps 2 "$OUTAGE" test -t vm:ext4 -j 1 --qemu-args '-no-such-option' given
check 'are told in its words' complains 'no-such-option: invalid option'

done_testing
