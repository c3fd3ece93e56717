#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0621-guest-kernel.sh - a finding of a guest with another kernel; files that are no kernel, modules that
# are not those of the kernel.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_uml
own_guests
printf 'creat foo\nwrite foo 0 8192\nfsync foo\n' >short
outage test -t uml:ext4,barrier=0 --crash reorder --budget 60 -o sick short
case=$(find sick/findings -mindepth 1 -maxdepth 1 | sort | head -1)

# Another kernel under a finding.
kernel=$(command -v linux.uml)
release=$("$kernel" --version)
check "it is shown again" status 1 replay "$case"
check "on the same kernel" [ "$(grep -c 'was found on' out)" = 0 ]
check "with a kernel that is named" status 1 replay "$case" --kernel "$kernel" --guest-memory 160M
sed -i 's/^kernel .*/kernel 5.4.3/' "$case/case"
check "found on another one" status 1 replay "$case" --kernel "$kernel"
check "which is said" says "it was found on Linux 5.4.3, and this is $release"
check "in JSON, too" status 1 replay "$case" --json
check "as one word" says '"same_kernel": false'
sed -i "s/^kernel .*/kernel $release/; \$a guest-kernel $kernel\\nguest-kernel-hash 00" "$case/case"
check "found on another one that has the same release" status 1 replay "$case" --trust
check "which is said" says "another kernel of the same release, $release"
check "a kernel that is not there" status 2 replay "$case" --kernel /nowhere
check "is not found" complains 'cannot find /nowhere'
check "shrunk with a kernel that is named" status 0 shrink "$case" --trust --kernel "$kernel" --runs 5
check "of which the small one knows" grep -qx "guest-kernel $(realpath "$kernel")" sick/shrunk/*/case
if [ "$(id -u)" = 0 ]; then
	outage test -t ext4,barrier=0 --crash reorder --budget 60 -o host short
	case=$(find host/findings -mindepth 1 -maxdepth 1 | sort | head -1)
	check "a kernel under a finding that was in no guest" status 2 replay "$case" --kernel "$kernel"
	check "is refused" complains 'are for findings of uml: and vm: targets; this one is of ext4'
else
	skip "findings of this machine's kernel need root"
fi

# Files that are no such kernel, and modules that are not those of one.
wrong '/ls is no kernel of user-mode Linux' -t uml:ext4 --kernel /bin/ls
wrong 'linux.uml is a program, .*use a uml: target' -t vm:ext4 --kernel "$kernel"
{ head -c 514 /dev/zero; printf HdrS; head -c 4000 /dev/zero; } >bzImage
wrong 'bzImage is a kernel for a machine, and no program: use a vm: target' -t uml:ext4 --kernel bzImage
modules=/usr/lib/uml/modules/$release
if [ -e "$modules/modules.dep" ] && grep -q '/f2fs.ko' "$modules/modules.dep" && command -v mkfs.f2fs >/dev/null; then
	# As a build tree has them: no modules.dep, names of objects, from the top of the tree.
	mkdir tree installed
	for m in virtio_blk f2fs crc32_generic lz4_compress lz4hc_compress lz4_decompress; do
		f=$(sed -n "s,^\\([^:]*/$m\\.ko\\):.*,\\1,p" "$modules/modules.dep")
		[ -n "$f" ] || continue
		to=${f#kernel/}
		mkdir -p "tree/$(dirname "$to")"
		cp "$modules/$f" "tree/$to"
		echo "${to%ko}o" >>tree/modules.order
	done
	check "modules of a build tree" status 0 test -t uml:f2fs --kernel "$kernel" --modules tree -o tree-run short
	sed -i 's,^,kernel/,; s/o$/ko/' tree/modules.order
	check "of an older one" status 0 test -t uml:f2fs --kernel "$kernel" --modules tree -o old-tree short
	rm tree/modules.order
	wrong "tree has neither modules.dep nor modules.order: .*'make modules'" -t uml:f2fs --modules tree
	grep -v virtio_blk "$modules/modules.dep" >installed/modules.dep
	: >installed/modules.builtin
	wrong 'virtio_blk is missing, without which a guest has no disk' -t uml:ext4 --modules installed
	rm installed/modules.builtin
	: >installed/modules.dep
	wrong 'does not see its disk: virtio_blk is missing' -t uml:ext4 --modules installed
else
	skip "there is no module f2fs, or no mkfs.f2fs"
fi
outage test -t uml:ext4,nosuchoption -o y short
check "a mount that is refused shows what the guest said" complains "the guest's kernel said: .*nosuchoption"

done_testing
