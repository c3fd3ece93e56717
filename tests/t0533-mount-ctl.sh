#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What ctl answers is true, and in the log; one mount has one FIFO and one place.
# shellcheck source=tests/lib.sh disable=SC2016,SC2317 # expanded by eval, called through check
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/mount-lib.sh
. "$root/tests/mount-lib.sh"

# ---- one mount, one FIFO, one place ----

mkdir root2 root3 mnt3
printf '[faults]\nfifo_path="%s/f.fifo"\n' "$dir" >fifo.toml
outage mount --daemon --config fifo.toml --log log root2 mnt
check "a mount has a FIFO" test $status = 0 -a -p f.fifo
outage mount --daemon --config fifo.toml --log log3 root3 mnt3
check "a second one may not read it" test $status = 2
check "and says what to do" complains "another mount takes commands from the FIFO"
check "the first one goes on" soon grep -q 'waiting for fault' log
echo lazyfs::clear-cache >f.fifo
check "and does what comes" soon grep -q 'cache is cleared' log
outage mount --daemon root3 mnt
check "MNT that is in use is refused" test $status = 2
check "and told" complains "mounted something on $dir/mnt already"
outage umount mnt
check "the first is the only one there" test ! "$(findmnt -n mnt)"
outage mount --daemon --config fifo.toml --log log3 root3 mnt3
check "then the FIFO is free" test $status = 0
outage umount mnt3

# ---- nothing is called durable that is not ----

outage mount --daemon --log log root3 mnt
echo abc >mnt/j
outage ctl mnt sync file=nosuch
check "a file that is not there is not synced" test $status = 2
check "and named" complains "no file nosuch"
outage ctl mnt sync file=/etc/passwd
check "nor one outside" test $status = 2
outage ctl mnt sync-pages file=j pages=7,8
check "nor pages that are not there" test $status = 2
check "which is said" complains "no page 8: j has 1 unsynced page"
check "and nothing was done" test ! -s root3/j
outage ctl mnt sync-pages file=j pages=1
check "a page that is there is synced" test $status = 0 -a "$(cat mnt/j)" = abc
check "but a file without a durable name is not in ROOT" test ! -e root3/j
outage ctl mnt sync file=j
check "a file that is there can be synced again" test $status = 0
outage ctl mnt error op=fsync error=EIO file=j
echo defg >>mnt/j
timeout 900 sync mnt/j 2>/dev/null
check "a sync fails" test $? != 0
outage ctl mnt sync
check "then not everything is durable" test $status = 2
check "and it is said whose fault that is" complains "a sync of j failed"
outage ctl mnt sync file=j
check "so for the file alone" test $status = 2
echo new >mnt/j
outage ctl mnt sync
check "what is written again becomes durable" test $status = 0 -a "$(cat root3/j)" = new
outage umount mnt

# ---- what commands leave in the log, and their answers ----

rm -rf log root3/*
find mnt -mindepth 1 -delete
outage mount --daemon --log log root3 mnt
check "an empty MNT is no reason to warn" test "$(grep -c 'not empty' log)" = 0
printf 1234 >mnt/a
sync mnt/a mnt
outage ctl mnt snapshot s
outage ctl mnt snapshots
check "a snapshot is there" test "$(cat out)" = s
outage ctl mnt drop t
check "one that is not there cannot be removed" test $status = 2
check "and is named" complains "no snapshot t"
outage ctl mnt drop s
check "one that is there can" test $status = 0
outage ctl mnt snapshots
check "and is gone" grep -q 'no snapshots' out
check "with its copy" test ! -e root3/.outage-stash/snapshots
outage ctl mnt status
check "the log has commands that change something" grep -q "received 'snapshot s'" log
check "and that one was not done" grep -q 'not done: there is no snapshot t' log
check "but not those that only ask" test "$(grep -c 'status\|snapshots' log)" = 0
printf 5678 >>mnt/a
mkdir mnt/dir
outage ctl --json mnt clear-cache
check "what was lost is told" python3 -c '
import json
lost = json.load(open("out"))["at_risk"]
assert [f["path"] for f in lost["files"]] == ["a"], lost
assert [m["path"] for m in lost["metadata"] if m["kind"] == "make"] == ["dir"], lost'
outage ctl mnt clear-cache
check "in words as well" grep -q 'lost: 0 files with 0 bytes' out
outage ctl mnt delay op=mkdir delay=1h
timeout 900 mkdir mnt/late &
late=$!
check "a delay strikes" soon grep -q 'fault 1: at mkdir of late' log
outage ctl mnt cancel 1
wait $late
check "who waits for a cancelled delay goes on" test $? = 0 -a -d mnt/late
outage umount mnt

# ---- answers are true ----

mkdir true_root
outage mount --daemon --log true.log --profile minimal true_root mnt
mkdir mnt/d
echo x >mnt/d/a
echo x >mnt/d/b
outage ctl mnt sync-pages file=d/a
check "of a new file whose data is synced it is told that its name is not" grep -q "is durable, but 2 changes of names and attributes are not" out
outage ctl --json mnt sync 'file=d/*'
check "so for those that match a pattern" python3 -c 'import json
s = json.load(open("out"))
assert s["waiting"] == 2 and s["matches"] is True and "but 2 changes" in s["done"], s'
outage ctl mnt sync file=d/a
check "a file that is synced is durable" test "$(cat out)" = "all that was asked for is durable"
outage ctl mnt clear-cache
check "and is there afterwards, with its directory" test "$(cat mnt/d/a)" = x
echo x >mnt/d/c
echo x >mnt/e
outage ctl mnt sync file=d/c
check "a second one, too" grep -q "^all that was asked for is durable" out
outage ctl mnt clear-cache
check "but nothing else" test -e mnt/d/c -a ! -e mnt/e
outage ctl mnt sync 'file=nothing*'
check "that a pattern matches nothing is told" grep -q "^nothing in the mount matches the path; nothing is done" out
outage ctl mnt error op=write error=EIO 'file_glob=no[xyz]*'
check "also of a fault" grep -q "^fault 1 waits; nothing in the mount matches its path yet" out
outage ctl --json mnt error op=write error=EIO 'file_rgx=^nosuch'
check "and as JSON" grep -q '"matches":false' out
outage ctl mnt error op=write error=EIO 'file_glob=d/[x-z]*'
check "and of one for a directory's files" grep -q "matches its path yet" out
outage ctl mnt error op=write error=EIO 'file_glob=d/[a-b]*'
check "not if something does" test "$(cat out)" = "fault 4 waits"
touch mnt/nox
(echo x >mnt/nox) 2>/dev/null
check "and what matches later is met" test $? != 0
outage ctl mnt faults
check "which is told" grep -q "^1: .*(done)" out
for f in 'tmpfile' 'copy_file_range' 'syncfs' 'msync' 'access'; do
	outage ctl mnt error op=$f error=EIO
	check "a fault that could never strike is refused: $f" eval 'test $status = 2 && complains "op=$f would never happen: "'
done
python3 - >out 2>err <<-'END'
	import mmap, os, subprocess
	def fails(op, what):
	    subprocess.run([os.environ["OUTAGE"], "ctl", "mnt", "error", "op=" + op, "error=EIO", "file=m"],
	                   check=True, stdout=subprocess.DEVNULL)
	    try:
	        what()
	    except OSError as e:
	        print(op, e.errno)
	with open("mnt/m", "w+b") as f:
	    f.write(b"x" * 4096)
	    f.flush()
	    m = mmap.mmap(f.fileno(), 4096)
	    m[0] = 1
	    fails("fsync", m.flush)
	    g = os.open("mnt/n", os.O_RDWR | os.O_CREAT)
	    fails("write", lambda: os.copy_file_range(g, f.fileno(), os.write(g, b"yyyy"), 0, 0))
END
check "but what stands for it strikes: msync as fsync, a copy as a write" test "$(cat out)" = "fsync 5
write 5"
outage umount mnt

# ---- delays that are cancelled ----

let_go() {
	soon eval '! kill -0 $late 2>/dev/null'
}
mkdir -p true_root
: >true.log
outage mount --daemon --log true.log true_root mnt
outage ctl mnt delay op=mkdir delay=1ms until=end
outage ctl mnt delay op=mkdir delay=50s
mkdir mnt/late &
late=$!
check "two delays strike" soon grep -q 'at mkdir of late' true.log
outage ctl mnt cancel 2
check "and the second can be cancelled" let_go
wait $late
check "which lets the operation go on" test $? = 0 -a -d mnt/late
outage ctl mnt delay op=rmdir delay=50s
outage ctl mnt delay op=rmdir delay=51s
rmdir mnt/late &
late=$!
check "two others strike" soon grep -q 'at rmdir of late' true.log
outage ctl mnt cancel 4
check "one of them does not let go" kill -0 $late
outage ctl mnt cancel 3
check "both do" let_go
wait $late
check "and it is done" test ! -d mnt/late
outage umount mnt
rm -rf true_root

# ---- what shall survive ----

outage mount --daemon --log some.log data mnt
echo x >mnt/some-a
echo x >mnt/some-b
outage ctl mnt clear-cache 'survivors=*-a'
check "what survivors matches stays" test -e mnt/some-a -a ! -e mnt/some-b
check "and nothing is said of it" eval '! grep -q "survivors matches no" some.log'
echo x >mnt/some-c
outage ctl mnt clear-cache 'survivors=nothing*'
check "that nothing matches is in the log" grep -q "survivors matches no name" some.log
outage umount mnt

done_testing
