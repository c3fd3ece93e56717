#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# LazyFS's users change nothing: its documented configuration, its command line, its FIFO commands.
# shellcheck disable=SC2317,SC2016 # functions are called through check, words expanded by eval
export TMPDIR=/var/tmp
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lazyfs-lib.sh
. "$root/tests/lazyfs-lib.sh"

# ---- the documented configuration ----

cat >config.toml <<'EOF'
[faults]
fifo_path="/tmp/faults.fifo"
# fifo_path_completed="/tmp/faults_completed.fifo"

[cache]
apply_eviction=false

[cache.simple]
custom_size="0.5GB"
blocks_per_page=1

# [cache.manual]
# io_block_size=4096
# page_size=4096
# no_pages=10

[file system]
log_all_operations=false
logfile="/tmp/lazyfs.log"

[[injection]]
type="torn-seq"
op="write"
file="output.txt"
persist=[1,4]
occurrence=2

[[injection]]
type="torn-op"
file="output1.txt"
occurrence=5
parts=3 #or parts_bytes=[4096,3600,1260]
persist=[1,3]

[[injection]]
type="clear"
from="f1.txt"
timing="before"
op="fsync"
occurrence=6
crash=true
EOF
start
check "the documented configuration and command line mount" serves
check "with LazyFS's type" test "$(findmnt -n -o FSTYPE $mnt)" = fuse.lazyfs
check "the log says what harnesses wait for" logs "running LazyFS..."
check "and that commands are read" logs "waiting for fault commands"
check "the FIFO is there, for this user alone" test -p $fifo -a "$(stat -c %a $fifo)" = 600

# ---- commands, as documented ----

echo synced >$mnt/synced
sync $mnt/synced
echo unsynced >$mnt/unsynced
mkdir $mnt/dir
echo "lazyfs::unsynced-data-report" >$fifo
check "the report names what is unsynced" logs "unsynced$\|unsynced[^-]"
echo "lazyfs::display-cache-usage" >$fifo
check "the usage is told" logs "received 'lazyfs::display-cache-usage'"
echo "lazyfs::clear-cache" >$fifo
check "clear-cache is told when it is done" logs "cache is cleared"
check "what was synced is there" test "$(cat $mnt/synced)" = synced
check "what was not is lost" test ! -s $mnt/unsynced
check "its name is not: only data is lost" test -e $mnt/unsynced -a -d $mnt/dir
echo kept >$mnt/unsynced
echo "lazyfs::cache-checkpoint" >$fifo
check "cache-checkpoint is told when it is done" logs "checkpoint is done"
echo "lazyfs::clear-cache" >$fifo
cleared_twice() { [ "$(grep -c 'cache is cleared' "$log")" = 2 ]; }
soon quietly cleared_twice
check "what was there at the checkpoint is kept" test "$(cat $data/unsynced)" = kept
echo "lazyfs::help" >$fifo
check "help is told" logs "received 'lazyfs::help'"
echo "lazyfs::no-such-command" >$fifo
check "a wrong command is told as such" logs "INVALID"

# ---- the faults of the configuration ----

for i in 1 2 3 4 5; do
	put $mnt/output1.txt $((i * 12288 - 12288)) 12288 $i 2>/dev/null
done
check "torn-op: the fifth write crashes it" logs "Killing LazyFS"
check "nothing is mounted then" soon quietly gone
check "its first and last third survived, and nothing else" \
	test "$(shape $data/output1.txt)" = "49152x0 4096x5 4096x0 4096x5"
check "the FIFO is removed" test ! -e $fifo

start
check "it can be mounted again" serves
check "the log begins anew" test "$(grep -c 'running LazyFS' $log)" = 1
python3 - $mnt/output.txt <<'EOF' 2>/dev/null
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.pwrite(fd, b"a" * 100, 0)
os.pwrite(fd, b"b" * 100, 100)
os.fsync(fd)
for i in range(4):
	os.pwrite(fd, b"cdef"[i:i + 1] * 100, 200 + 100 * i)
EOF
check "torn-seq: the fourth write of the second run crashes it" logs "Killing LazyFS"
soon quietly gone
check "the first and the fourth survived" \
	test "$(shape $data/output.txt)" = "100xa 100xb 100xc 200x0 100xf"

start
python3 - $mnt/f1.txt <<'EOF' 2>/dev/null
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for i in range(6):
	os.write(fd, b"%d" % i)
	os.fsync(fd)
EOF
check "clear: the sixth fsync fails" test $? != 0
check "and crashes it" logs "Killing LazyFS"
soon quietly gone
check "what the fifth had synced is left" test "$(cat $data/f1.txt)" = 01234

# ---- faults from the FIFO ----

cat >config.toml <<'EOF'
[faults]
fifo_path="/tmp/faults.fifo"
fifo_path_completed="/tmp/faults_completed.fifo"
[cache]
apply_eviction=false
[cache.manual]
io_block_size=4096
page_size=4096
no_pages=1000
[filesystem]
log_all_operations=true
logfile="/tmp/lazyfs.log"
EOF
# crashes COMMAND PROGRAM...: the program meets the fault
crashes() {
	start
	echo "$1" >"$fifo"
	logs "received: VALID"
	shift
	timeout 900 "$@" 2>/dev/null
	logs "Killing LazyFS" && soon quietly gone
}
# shellcheck disable=SC2016
writes='echo x >"$0"'
check "crash before a write" crashes "lazyfs::crash::timing=before::op=write::from_rgx=file1" \
	sh -c "$writes" $mnt/file1
check "which was not done" test ! -s $data/file1
check "crash after a link" crashes "lazyfs::crash::timing=after::op=link::from_rgx=file1::to_rgx=file2" \
	ln $mnt/file1 $mnt/file2
check "which was done" test -e $data/file2
check "crash before a rename" crashes "lazyfs::crash::timing=before::op=rename::to_rgx=fileabd" \
	mv $mnt/file1 $mnt/fileabd
check "which was not done" test -e $data/file1 -a ! -e $data/fileabd
check "torn-op" crashes "lazyfs::torn-op::file=torn::persist=2::parts=2::occurrence=1" \
	python3 -c 'import os; os.write(os.open("/tmp/lazyfs.mnt/torn", os.O_WRONLY | os.O_CREAT), b"t" * 200)'
check "the second half survived" test "$(shape $data/torn)" = "100x0 100xt"
check "torn-seq" crashes "lazyfs::torn-seq::op=write::file=seq::persist=2::occurrence=1" \
	python3 -c 'import os; fd = os.open("/tmp/lazyfs.mnt/seq", os.O_WRONLY | os.O_CREAT); os.write(fd, b"a" * 10); os.write(fd, b"b" * 10); os.write(fd, b"c" * 10)'
check "the second write survived" test "$(shape $data/seq)" = "10x0 10xb"

start
echo x >$mnt/other
check "a fault for another file does nothing" serves
{ timeout 900 head -n 1 /tmp/faults_completed.fifo >finished; } &
reader=$!
echo "lazyfs::clear-cach" >$fifo
logs "INVALID"
echo "lazyfs::clear-cache" >$fifo
wait $reader
check "what is finished is told in the second FIFO" test "$(cat finished)" = "finished::clear-cache"
echo "lazyfs::clear-cache" >$fifo
logs "cache is cleared"
check "also if the reader comes later" \
	test "$(timeout 900 head -n 1 /tmp/faults_completed.fifo)" = "finished::clear-cache"
check "all operations are in the log" grep -q "other" $log
stop
check "the end is in the log" logs "stopping LazyFS"
check "the FIFOs are removed" test ! -e $fifo -a ! -e /tmp/faults_completed.fifo

done_testing
