#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0838-pm-nvdimm.sh - persistent memory as an NVDIMM: the kernel's own drivers find it, it is used by DAX,
# all that is stored to it is traced, and where it is not where it should be, nothing is believed.
# shellcheck disable=SC2317,SC2030,SC2031 # called through check; nvdimm is changed in one place alone
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_qemu

own_machines
mkdir -p "$kernels" cache

printf 'creat foo\nwrite foo 0 5001\nfsync foo\n' >short
nvdimm=(-t vm:ext4-dax --guest-pm nvdimm -j 1)

OUTAGE_CACHE=$kernels outage test "${nvdimm[@]}" -o fetched short
fetched=$?
image=$(cloud_kernel)
requires_kernel $fetched
check "Debian's kernel has all that it needs" [ $fetched = 0 ]
modules=$(dirname "$image")/../lib/modules/${image##*/vmlinuz-}
check "with the driver" [ -e "$modules/kernel/drivers/acpi/nfit/nfit.ko" ]
export OUTAGE_CACHE=$dir/cache
ln -s "$kernels/kernels" cache/kernels

# Healthy, and silent; every recording was replayed, and compared with what the memory holds.
check "it is silent" status 0 -v test "${nvdimm[@]}" -b pm-seq-1 --sample 6 --paranoid --fsck --json -o ok
check "it was tested" json "d['workloads'] == d['verified'] == 6 and d['errors'] == 0 and d['unique_states'] > 6"
check "so was the tracer" test "$(grep -c 'the tracer is not tested' err)" = 0

# What is traced is the file system, which starts behind the kernel's block.
check "if every operation were durable, it is at fault" status 1 test "${nvdimm[@]}" --guarantee sync --keep all \
	-o sync short
trace=$(find sync/findings -name trace | sort | head -1)
outage trace show "$trace"
check "stores are traced" [ "$(grep -cE '^ +[0-9]+ store ' out)" -gt 500 ]
check "with flushes" grep -qE '^ +[0-9]+ lineflush ' out
check "and fences" grep -qE '^ +[0-9]+ fence ' out
check "none of them is to the first 2 MiB" test -z "$(grep -E ' (store|lineflush) +0x(.{1,5}|[01].{5})\+' out)"
case=$(find sync/findings -mindepth 1 -maxdepth 1 | sort | head -1)
check "the finding says what it needs" grep -qx 'guest-pm nvdimm' "$case/case"
check "and is shown again" status 1 replay "$case"
check "by another run, too" status 1 replay --rerun "$case"
check "others get it" status 0 export "$case" -o exported
check "as a file system" test "$(dd if=exported/crash.img bs=1 skip=1080 count=2 2>/dev/null | od -An -tx1)" = ' 53 ef'

# Where the device says that caches are persistent, the kernel flushes no lines of what was mapped.
printf 'creat foo\nmmapwrite foo 0 8192\nfsync foo\n' >mapped
flushes() { # ARGUMENTS: how many lines were flushed
	rm -rf counted
	outage test "${nvdimm[@]}" "$@" --guarantee sync --budget 5 --keep all -o counted mapped
	outage trace show "$(find counted/findings -name trace | sort | head -1)"
	says '^ +[0-9]+ fence ' && grep -cE '^ +[0-9]+ lineflush ' out
}
many=$(flushes)
none=$(flushes --eadr)
check "two mapped pages are flushed by lines (${many:-none})" [ "${many:-0}" -ge 128 ]
check "and not where caches are persistent (${none:-nothing traced})" [ "${none:-1}" = 0 ]
case=$(find counted/findings -mindepth 1 -maxdepth 1 | sort | head -1)
check "which the case says" grep -qx 'eadr yes' "$case/case"
check "and is so again in another run" status 1 replay --rerun "$case"
check "that is the machine's doing: as a range of memory it is still flushed" [ "$(
	nvdimm=(-t vm:ext4-dax -j 1)
	flushes --eadr
)" -ge 128 ]

lost=
for i in 3 2 1 4 5 6; do
	rm -rf less
	outage test "${nvdimm[@]}" --lose-flush $i -o less short
	[ $? -ne 1 ] || { lost=$i; break; }
done
check "a flush that is left out is missed (the ${lost:-none})" test -n "$lost"

# An emulator that puts the device elsewhere than it was told to: the tracer's test notices.
mkdir moved
cat >moved/qemu-system-x86_64 <<END
#!/usr/bin/env bash
exec $(command -v qemu-system-x86_64) "\${@/addr=4294967296/addr=4429185024}"
END
chmod +x moved/qemu-system-x86_64
PATH=$dir/moved:$PATH outage test "${nvdimm[@]}" --size 8M -o moved-run short
check "where it is not where it should be, nothing is believed" [ $? -eq 2 ]
check "and it is said" complains "the tracer's test failed"

wrong "guest-pm is e820 or nvdimm, not 'disk'" -t vm:ext4-dax --guest-pm disk
wrong 'guest-pm is for targets on persistent memory' -t vm:ext4 --guest-pm nvdimm
wrong 'its first 2M are for the kernel' -t vm:ext4-dax --guest-pm nvdimm --size 2M
mkdir no-nfit
cp "$modules"/modules.* no-nfit/
sed -i '/nfit/d' no-nfit/modules.*
wrong 'has no nfit: neither built in nor as a module' -t vm:ext4-dax --guest-pm nvdimm --kernel "$image" --modules no-nfit
check "no process is left at the end" wait_for_none
done_testing
