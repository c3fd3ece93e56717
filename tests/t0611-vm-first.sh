#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0611-vm-first.sh - the first run of a vm: target: what is missing is said before anything is fetched,
# kernels and modules are unpacked without any program, and what is said of booting is so. QEMU and
# apt-get are scripts here, and the kernel is made up: nothing boots.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

printf 'creat foo\nfsync foo\n' >short

# A machine with apt-get and few other programs; none of them unpacks anything.
mkdir bin
for p in sh cat cp rm mkdir tail mke2fs e2fsck; do ln -s "$(command -v $p)" bin/; done
cat >bin/apt-cache <<END
#!/bin/sh
echo "  Depends: linux-image-6.1.0-1-cloud-amd64"
END
cat >bin/apt-get <<END
#!/bin/sh
echo "\$*" >>$dir/asked
echo 'E: there is no network' >&2
exit 100
END
chmod +x bin/apt-cache bin/apt-get
few() { # STATUS ARGUMENTS
	local want=$1
	shift
	timeout --kill-after=5 900 env PATH="$dir/bin" "$OUTAGE" "$@" >out 2>err </dev/null
	[ $? -eq "$want" ]
}
fetches_nothing() { # STATUS ARGUMENTS
	rm -f asked
	few "$@" && [ ! -e asked ]
}

check "no QEMU: it is said, and nothing is fetched" fetches_nothing 2 test -t vm:ext4 -o x short
check "and what to install" complains '^outage: qemu-system-x86_64 is not there; .*apt-get install qemu-system-x86'
check "in one line" one_line
check "no run is begun" [ ! -e x ]
check "so it is with explore" fetches_nothing 2 explore -t vm:ext4 --time 1s -o x
check "and it says the same" complains 'apt-get install qemu-system-x86'
check "and with persistent memory" fetches_nothing 2 test -t vm:ext4-dax -o x short

# It tells of plugins where the file with-plugins is; and it keeps what it is given to boot.
cat >bin/qemu-system-x86_64 <<END
#!/bin/sh
if [ "\$1" = -help ]; then
	[ ! -e $dir/with-plugins ] || echo '-plugin [file=]<file>'
	exit 0
fi
while [ \$# -gt 0 ]; do
	case \$1 in
	-kernel) cp "\$2" $dir/booted-kernel ;;
	-initrd) cp "\$2" $dir/booted-root ;;
	esac
	shift
done
echo 'this is no QEMU' >&2
exit 3
END
chmod +x bin/qemu-system-x86_64
check "no plugins: it is said, and nothing is fetched" fetches_nothing 2 test -t vm:ext4-dax -o x short
check "and why" complains '^outage: .*was built without plugins.*apt-get install qemu-system-x86'
if [ "$(id -u)" = 0 ]; then
	check "no mkfs: it is said, and nothing is fetched" fetches_nothing 2 test -t vm:xfs -o x short
	check "and what to install" complains '^outage: vm:xfs needs mkfs.xfs, .*apt-get install xfsprogs'
else
	skip "a user's programs are looked for in /usr/sbin, too: mkfs cannot be hidden"
fi
check "none of Debian has it: nothing is fetched" fetches_nothing 2 test -t vm:nova -o x short
check "but plugins come first" complains 'plugins'
touch with-plugins
check "none of Debian has it" fetches_nothing 2 test -t vm:nova -o x short
check "is said" complains 'no kernel of Debian 12 has nova: name one'
little_memory() {
	printf 'MemAvailable: 100000 kB\nSwapFree: 50000 kB\n' >meminfo
	rm -f asked
	timeout --kill-after=5 900 unshare -m sh -c "mount --bind meminfo /proc/meminfo &&
		PATH=$dir/bin exec '$OUTAGE' test -t vm:ext4 -o x short" >out 2>err </dev/null
	[ $? = 2 ] && [ ! -e asked ]
}
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	check "no memory: it is said, and nothing is fetched" little_memory
	check "and how much there is" complains '^outage: a virtual machine has 256 MiB .*has only 145 MiB'
else
	skip "no root, or no mount namespace"
fi
rm -f asked
check "no network" few 2 test -t vm:ext4 -j 4 -o x short
check "is said once" [ "$(wc -l <asked)" = 1 ]
check "with what to do" complains '^outage: no kernel for a virtual machine: .*no network; name one with --kernel FILE'

# A kernel that is one note and a few bytes, packed in each way; and modules.
python3 - <<'END'
import gzip, lzma, os, struct

note = struct.pack('<III4sQ', 4, 8, 18, b'Xen\0', 16 << 20)
elf = struct.pack('<16sHHIQQQIHHHHHH', b'\177ELF\2\1\1', 2, 62, 1, 16 << 20, 64, 0, 0, 64, 56, 1, 64, 0, 0)
elf += struct.pack('<IIQQQQQQ', 4, 4, 120, 0, 0, len(note), len(note), 4) + note
elf += b'Linux version 6.9.1-ours made up' + b'\0' * 2000

def literals(data):  # one block of lz4 that repeats nothing
    n = len(data) - 15
    return bytes([15 << 4]) + b'\xff' * (n // 255) + bytes([n % 255]) + data

def zstd(data, behind=0):  # one block as it is, and blocks of 128 KiB that repeat a byte
    out = b'\x28\xb5\x2f\xfd\0\x38' + (len(data) << 3 | (not behind)).to_bytes(3, 'little') + data
    return out + b''.join((131072 << 3 | 2 | (i == behind - 1)).to_bytes(3, 'little') + b'x' for i in range(behind))

block = literals(elf)
packed = {
    'gzip': gzip.compress(elf),
    'xz': lzma.compress(elf, check=lzma.CHECK_CRC32),
    'lzma': lzma.compress(elf, format=lzma.FORMAT_ALONE),
    'zstd': zstd(elf),
    'lz4': b'\x02\x21\x4c\x18' + struct.pack('<I', len(block)) + block,
    'bzip2': b'BZh91AY&SY' + b'\0' * 100,
}
os.mkdir('kernels')
for name, data in packed.items():
    if name != 'gzip':
        data += struct.pack('<I', len(elf))
    size = -(-(64 + len(data)) // 16)
    head = bytearray(1024)
    struct.pack_into('<B', head, 0x1f1, 1)
    struct.pack_into('<I', head, 0x1f4, size)
    struct.pack_into('<4sH', head, 0x202, b'HdrS', 0x20f)
    struct.pack_into('<H', head, 0x20e, 0x100)
    struct.pack_into('<II', head, 0x248, 64, len(data))
    head[0x300:0x310] = b'6.9.1-ours (me)\0'
    open('kernels/' + name, 'wb').write(head + b'\0' * 64 + data + b'\0' * (size * 16 - 64 - len(data)))
open('elf', 'wb').write(elf)

def module(depends, words):
    return b'\177ELF\0depends=' + depends + b'\0' + words

def tree(name, files, order):
    for path, data in files.items():
        os.makedirs(os.path.dirname(name + '/kernel/' + path), exist_ok=True)
        open(name + '/kernel/' + path, 'wb').write(data)
    open(name + '/modules.order', 'w').write(''.join('kernel/%s.ko\n' % o for o in order))
    open(name + '/modules.builtin', 'w').write('kernel/virtio_pci.ko\n')

order = ['virtio_blk', 'jbd2', 'ext4']
good = {
    'virtio_blk.ko.xz': lzma.compress(module(b'', b'this is virtio_blk')),
    'jbd2.ko.gz': gzip.compress(module(b'', b'this is jbd2')),
    'ext4.ko.zst': zstd(module(b'jbd2', b'this is ext4')),
}
tree('modules', good, order)
tree('damaged', good | {'virtio_blk.ko.xz': good['virtio_blk.ko.xz'][:-9]}, order)
tree('large', good | {'ext4.ko.zst': zstd(module(b'jbd2', b''), 6520)}, order)
tree('many', {n + '.ko.zst': zstd(module(b'', b''), 50 * 8) for n in order + ['crc32c_generic']},
     order + ['crc32c_generic'])
END
for format in gzip xz lzma zstd lz4; do
	rm -f booted-kernel
	check "a kernel packed by $format" few 2 test -t vm:ext4 --kernel kernels/$format --modules modules -o x short
	check "is unpacked without that program" cmp booted-kernel elf
done
check "and so are modules" eval 'grep -aq "this is virtio_blk" booted-root &&
	grep -aq "this is jbd2" booted-root && grep -aq "this is ext4" booted-root'
check "QEMU itself is what failed" complains 'this is no QEMU'
check "what is booted is kept for later runs, and it says so" \
	complains '^outage: booting Linux 6.9.1-ours in .*; the next runs go on from there$'
no_cache() { OUTAGE_CACHE='' few 2 test -t vm:ext4 --kernel kernels/lz4 --modules modules -o x short; }
check "without a cache" no_cache
check "it is not, and it says so" complains '^outage: booting .*; so does each run, as there is no cache'
check "one packed in another way" few 2 -v test -t vm:ext4 --kernel kernels/bzip2 --modules modules -o x short
check "is booted as it is" cmp booted-kernel kernels/bzip2
check "which is said" complains 'bzip2 is booted as it is, which takes a little longer: it is compressed by bzip2'
check "and later runs go on from there, too" complains 'the next runs go on from there$'

bad() { # PATTERN MODULES
	check "modules: $2" few 2 test -t vm:ext4 --kernel kernels/xz --modules "$2" -o x short
	check "$1" complains "^outage: $1"
	check "in one line" one_line
}
bad 'the module .*/virtio_blk.ko.xz cannot be used: it is cut off' damaged
bad 'the module .*/ext4.ko.zst cannot be used: it is too large: unpacked, it has more than 64 MiB' large
bad 'the modules that a guest needs take more than half of its memory, which is 256 MiB: ' many
check "with more of it they fit" few 2 test -t vm:ext4 --kernel kernels/xz --modules many --guest-memory 512M -o x short
check "and QEMU is started" complains 'this is no QEMU'

done_testing
