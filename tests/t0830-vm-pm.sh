#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0830-vm-pm.sh - file systems on persistent memory of a virtual machine: every store, flush and
# fence of an unmodified kernel is in the trace, between the marks of its operation, and replays to
# what is there; healthy ones are silent; what a person gets wrong is said in one sentence; nothing
# stays behind.
# takes 97 s
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_qemu

# The kernel is fetched once and kept for other runs; all else goes to a folder of this test.
own_machines
mkdir -p "$kernels" cache
traced() { # prints those that are traced
	local p
	for p in $(ours); do
		grep -qzx -e -plugin "/proc/$p/cmdline" 2>/dev/null && echo "$p"
	done
}

printf 'creat foo\nwrite foo 0 5001\nfsync foo\n' >short
printf 'creat foo\nfsync foo\nrename foo bar\nwrite bar 100 10000\nsync\nremount\nunlink bar\nsync\n' >long

OUTAGE_CACHE=$kernels outage test -t vm:ext4-dax -j 1 -o fetched short
fetched=$?
image=$(cloud_kernel)
requires_kernel $fetched "$image"
check "Debian's kernel has all that it needs" [ $fetched = 0 ]
export OUTAGE_CACHE=$dir/cache
ln -s "$kernels/kernels" cache/kernels

# Healthy, and silent; every recording was replayed, and compared with what the memory holds.
check "vm:ext4-dax is silent" status 0 test -t vm:ext4-dax -j 2 -b pm-seq-1 --sample 16 --paranoid \
	--json -o ok
check "it was tested" json "d['workloads'] == d['verified'] == 16 and d['errors'] == 0 and \
	d['unique_states'] > 16"
check "in operations, too: at each fence" status 0 test -t vm:ext4-dax --crash persist,reorder --json \
	-o deep short long
check "there are many states" json "d['unique_states'] > 20 and d['errors'] == 0"
check "it can be explored" status 0 explore -t vm:ext4-dax --time 300s --limit 1000 -o explored
if [ -x "$(command -v mkfs.xfs)" ]; then
	check "vm:xfs-dax is silent" status 0 test -t vm:xfs-dax -j 2 -b pm-seq-1 --sample 6 --paranoid \
		--json -o xfs
	check "it was tested" json "d['workloads'] == d['verified'] == 6 and d['errors'] == 0"
	check "xfs would mount without DAX: it is refused" status 2 test -t vm:xfs-dax --mkfs '-b size=1024' -o x short
	check "and said" complains 'it mounts without DAX only.*Turning off DAX'
else
	skip "mkfs.xfs is not there"
fi

# What is in a trace: kept with what is found if every operation were durable. On a slow machine the journal
# would be committed in between, by the clock.
check "if every operation were durable, ext4 is at fault" status 1 test -t vm:ext4-dax,commit=600 --guarantee sync \
	-j 1 --keep all -o sync short
trace=$(find sync/findings -name trace | sort | head -1)
outage trace info "$trace"
check "a trace of persistent memory" grep -qE '^target +persistent memory of a guest' out
check "with stores" [ "$(awk '$1 == "store" { print $2 }' out)" -gt 1000 ]
check "and fences" [ "$(awk '$1 == "fence" { print $2 }' out)" -gt 5 ]
outage trace show "$trace"
within() { # OPERATION KIND: how many of a kind are between its marks
	awk -v op="$1" -v kind="$2" '$2 == "begin" && $4 == op { on = 1 } $2 == "end" && $4 == op { on = 0 }
		on && $2 == kind { n++ } END { print n + 0 }' out
}
check "each operation is marked once" [ "$(grep -cE '^ +[0-9]+ (begin|end) +op [012] ' out)" = 6 ]
check "with its words" grep -qE '^ +[0-9]+ begin +op 1 .*: write foo 0 5001' out
check "and its result" grep -qE '^ +[0-9]+ end +op 1 = 5001' out
check "its data is stored between its marks" [ "$(within 1 store)" -ge 626 ]
check "the rest of its last line is written back" [ "$(within 1 lineflush)" -ge 1 ]
check "making a file stores nothing: ext4 does that later" [ "$(within 0 store)" = 0 ]
check "but fsync does, and waits for it" [ "$(within 2 store)" -gt 500 ] && [ "$(within 2 fence)" -ge 2 ]
check "a promise is right behind the end" awk '$2 == "end" && $4 == 2 { at = NR }
	$2 == "persist" && $4 == 2 { good = NR == at + 1 } END { exit !good }' out
check "all with where they come from" [ "$(grep -cE '(store|fence) .* from 0xffffffff' out)" -gt 1000 ]
case=$(find sync/findings -mindepth 1 -maxdepth 1 | sort | head -1)
check "a finding is shown again" status 1 replay "$case"

# A flush that is left out is missed, and who made the store is told by name. Right after an interrupt
# nobody knows who called: then another one is left out.
lost=
for i in 3 4 2 5 1 6 7 8; do
	rm -rf less
	outage test -t vm:ext4-dax,commit=600 --lose-flush $i -j 1 -o less short
	if [ $? -eq 1 ] && grep -q '^lost event' less/findings/0-0/diagnosis &&
		grep -q '^  called from' less/findings/0-0/diagnosis; then
		lost=$i
		break
	fi
done
check "a flush that is left out is missed (the ${lost:-none})" test -n "$lost"
cp less/findings/0-0/diagnosis out
check "where the store was made" grep -qE '^lost event .*, made at 0xffffffff[0-9a-f]{8} \([a-z0-9_.]+\+0x[0-9a-f]+' out
check "and who called that, from the system call or the thread of the kernel on" \
	grep -qE '^  called from .*\((do_syscall_64|ret_from_fork)\+0x[0-9a-f]+\)' out

# Other processors.
check "with the oldest instruction" status 1 test -t vm:ext4-dax --guarantee sync --guest-cpu clflush -j 1 --keep all \
	-o clflush short
trace=$(find clflush/findings -name trace | sort | head -1)
outage trace show "$trace"
check "that is what is traced" grep -qE 'lineflush .*clflush' out
check "which the case says" grep -rqx 'guest-cpu clflush' clflush/findings --include=case
check "with two processors" status 0 test -t vm:ext4-dax --guest-cpu 2 --crash persist,reorder --json -o two long
check "it was tested" json "d['workloads'] == 1 and d['errors'] == 0 and d['unique_states'] > 10"

# What a person can get wrong.
wrong 'persistent memory of 5242880 bytes cannot be: --size is a multiple of 2M' -t vm:ext4-dax --size 5M
wrong 'other memory of at most 3072M' -t vm:ext4-dax --guest-memory 4G
wrong "a number of processors from 1 to 8, clwb, clflushopt or clflush.*not 'sfence'" -t vm:ext4-dax --guest-cpu sfence
wrong 'guest-cpu is for vm: targets' -t fuse:x --guest-cpu 2
wrong 'recorder bpf cannot see' -t vm:ext4-dax --recorder bpf
wrong 'data=journal and dax' -t vm:ext4-dax,data=journal
modules=$(dirname "$image")/../lib/modules/${image##*/vmlinuz-}
mkdir no-pmem
cp "$modules"/modules.* no-pmem/
sed -i '/nd_pmem/d' no-pmem/modules.*
wrong 'has no nd_pmem: neither built in nor as a module' -t vm:ext4-dax --kernel "$image" --modules no-pmem
mkdir fake
cat >fake/qemu-system-x86_64 <<EOF
#!/bin/sh
[ "\$1" != -help ] || { $(command -v qemu-system-x86_64) -help | grep -v plugin; exit 0; }
exec $(command -v qemu-system-x86_64) "\$@"
EOF
chmod +x fake/qemu-system-x86_64
PATH=$dir/fake:$PATH wrong 'was built without plugins' -t vm:ext4-dax

# However it ends, nothing stays.
check "no process is left" wait_for_none
long=(-t vm:ext4-dax -b pm-seq-2 -j 1) # once a machine is traced
under_way 4 killed "${long[@]}"
check "killed: a machine is traced before" soon eval '[ -n "$(traced)" ]'
kill -KILL "$pid"
wait "$run" 2>/dev/null
check "killed: and none after" wait_for_none

# The machine that is traced dies: a workload is lost, and said to be; the run goes on.
under_way 4 shot "${long[@]}" --limit 30
soon eval '[ -n "$(traced)" ] || ! kill -0 "$run" 2>/dev/null'
kill -KILL "$(traced | head -1)"
wait "$run"
check "it was killed: part of the run failed" [ $? -eq 2 ]
check "it is said" complains 'the guest (was killed|ended)'
check "and the others were done" grep -qE '(29|30) workloads' out
check "no process is left at the end" wait_for_none

done_testing
