#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0854-pm-bracket.sh - in a guest, what orders stores between begin and end of an operation is one of its own
# system calls: a lock that the kernel takes for any other call would hide a fence that a file system forgot.
# takes 45 s
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"

requires_qemu
mkdir -p "$kernels"
export OUTAGE_CACHE=$kernels

# Each line, and the system calls that it is made of; the unit test workload-bracket has every operation.
cat >lines <<'END'
creat f                      openat2
write f 0 8192               write
write new 0 4096             openat2 lseek write
h = open f rdwr              openat2
write h 100 1000             write
append f 100                 write
pwrite h 4096 100            pwrite64
mmapwrite f 0 100            madvise msync
truncate f 4096              ftruncate
falloc f plain 0 16384       fallocate
fsync h                      fsync
fdatasync f                  fdatasync
close h                      close
mkdir D                      mkdirat
symlink f D/s                symlinkat
link f D/l                   linkat
rename D/l D/m               renameat
setxattr f user.a 1          fsetxattr
removexattr f user.a         fremovexattr
chmod f 0600                 fchmod
chown f 1 1                  fchownat
utimens f 1 1                utimensat
fsync D                      fsync
unlink D/m                   unlinkat
remove D/s                   unlinkat
rmdir D                      unlinkat
syncfs                       syncfs
END
sed 's/   .*//' lines >workload

# The functions of the kernel that are close to a system call, and for each the next one, where it ends.
# shellcheck disable=SC2016 # words for awk in the guest
near='awk "\$2 ~ /[tT]/ { near = \$3 ~ /^(__x64_sys_|__do_sys_|ksys_|do_)/; if (near || was) print \$1, \$3; was = near }" /proc/kallsyms; false'

# foreign LINES SAID TRACE: prints "OPERATION: CALL" where a call that is not the operation's ordered something;
# the last line counts those that are
cat >foreign.awk <<'END'
function place(address,    i) { # the function of a kernel address
	address = substr(address, 3)
	for (i = n; i > 0 && at[i] > address; i--);
	return name[i]
}
FILENAME == ARGV[1] {
	sub(/^.*   +/, "")
	own[FNR - 1] = " " $0 " "
	next
}
FILENAME == ARGV[2] {
	if ($1 ~ /^ffffffff[0-9a-f]+$/) { at[++n] = $1; name[n] = $2 }
	next
}
$2 == "stack" {
	gsub(/[:,]/, "")
	outer[$3] = ""
	if (NF > 6 && place($(NF - 1)) == "do_syscall_64") # no thread of the kernel, and no interrupt
		outer[$3] = NF > 7 ? $(NF - 2) : "pc"
	next
}
$2 == "begin" { op = $4; on = 1; next }
$2 == "end" { on = 0; next }
on && ($2 == "fence" || $2 == "lineflush") {
	where = $0
	sub(/^.* from /, "", where)
	split(where, w, " ")
	if (length(w[1]) < 18) print op ": this program"
	else if (w[2] != "stack" || outer[w[3]] == "") next
	else {
		call = place(outer[w[3]] == "pc" ? w[1] : outer[w[3]])
		sub(/^(__x64_sys_|__do_sys_|ksys_|do_sys_)/, "", call)
		if (index(own[op], " " call " ")) good++
		else print op ": " call
	}
}
END { print good + 0 }
END

# with_cpus N: the workload in a guest with so many processors
with_cpus() {
	rm -rf run
	timeout 900 "$OUTAGE" test -t vm:ext4-dax -j 1 --guest-cpu "$1,clwb" --crash persist --check "$near" -o run workload >out 2>err
}
for cpus in 1 2 4; do
	with_cpus $cpus
	rc=$?
	requires_kernel "$([ $rc = 1 ] && echo 0 || echo $rc)"
	check "$cpus processors: a check that fails at the end keeps the trace" test $rc -eq 1
	timeout 900 "$OUTAGE" trace show run/findings/0-0/trace >trace 2>err
	check 'all operations are in it' test "$(grep -c ' begin  ' trace)" -eq "$(wc -l <lines)"
	awk -f foreign.awk lines run/findings/0-0/said trace >foreign
	check 'none but its own calls order anything in an operation' test "$(wc -l <foreign)" -eq 1
	grep ': ' foreign | sort | uniq -c | sed 's/^/# /'
	check 'and these do' test "$(tail -n 1 foreign)" -ge 20
done

done_testing
