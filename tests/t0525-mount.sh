#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The commands mount, ctl and umount: what they print, how they end, what they refuse, and that
# nothing is left behind.
# shellcheck source=tests/lib.sh disable=SC2016,SC2317 # expanded by eval, called through check
. "$(dirname "$0")/lib.sh"

requires_fuse
requires_tools fusermount3
[ "$(id -u)" != 0 ] || own_mounts
trap 'clean_up; rm -rf "$dir"' EXIT

clean_up() {
	local m

	for m in "$dir"/*mnt*; do
		mountpoint -q "$m" 2>/dev/null && timeout 60 umount -l "$m" 2>/dev/null
	done
	wait
}

mkdir data mnt
run() {
	timeout 900 "$OUTAGE" "$@" >out 2>err
	status=$?
}
# mounted MNT: nobody is asked there, for whoever serves it may be about to end
here=$(pwd -P)
mounted() {
	grep -q " $here/$1 fuse" /proc/self/mounts
}
says() {
	grep -q -- "$1" err
}
# one sentence, exit 2, nothing mounted
refused() {
	[ "$status" = 2 ] && [ "$(wc -l <err)" = 1 ] && says "$1" && ! mounted mnt
}
# end_server ROOT: of a mount that is out of sight. It would end with its last user, but whoever makes a
# mount namespace at this moment, another test say, has a copy of it for a while.
end_server() {
	pkill -TERM -f "^$OUTAGE mount --daemon --log log $dir/$1 mnt\$"
	check "a signal ends it" soon flock -n "$1" true
}
refused_elsewhere() {
	[ "$status" = 2 ] && [ "$(wc -l <err)" = 1 ] && says "$1" && ! mounted other
}
# soon CONDITION...
# sits_in DIR: $sleeper is there already, and is sleep(1)
sits_in() {
	[ "$(readlink "/proc/$sleeper/cwd")" = "$dir/$1" ] && [ "$(cat "/proc/$sleeper/comm")" = sleep ]
}

export OUTAGE

# ---- the documents' example ----

awk '/^## / { on = /Cutting the power/ } on && /^    / { print substr($0, 5); seen = 1; next } seen { exit }' \
	"$root/README.md" >example.sh
mkdir readme bin
ln -s "$OUTAGE" bin/outage
(cd readme && PATH=$dir/bin:$PATH timeout 900 bash -e ../example.sh) >out 2>err
status=$?
check "the example of README.md runs" test $status = 0
check "and prints what it says" test "$(tail -n 1 out)" = one
run umount readme/mnt
check "umount ends it" test $status = 0

# ---- a whole life ----

run mount --daemon --log log data mnt
check "mount --daemon returns" test $status = 0
check "and says nothing" test ! -s err -a ! -s out
check "it is mounted" mounted mnt
check "with the type fuse.outage" test "$(findmnt -n -o FSTYPE mnt)" = fuse.outage
run ctl mnt status
check "it answers" test $status = 0 -a -s out
run ctl mnt status --json
check "as JSON, too" python3 -c 'import json
s = json.load(open("out"))
assert s["profile"] == "ext4-ordered" and s["page_size"] == 4096 and s["pages_max"] == 0, s
assert s["faults_waiting"] == 0 and s["trace"] is None and s["log"].endswith("/log"), s
assert s["lost"] == 0 and s["since"] > 0'
run ctl mnt error op=mkdir file=nowhere error=EIO
run ctl mnt status
check "status tells what waits" grep -q "^1 fault waiting, 0 done" out
check "and what was lost" grep -q "^nothing was lost yet" out
check "and where it writes" grep -q "^log: .*/log$" out
run ctl mnt cancel 1
run ctl mnt status
check "also if nothing waits" grep -q "^0 faults waiting" out
run ctl mnt snapshot -d a
check "an option that ctl does not have is named" eval 'test $status = 2 && says "unknown option -d"'
run ctl mnt status --timeout
check "and one without its value" eval 'test $status = 2 && says "--timeout needs a value"'
run ctl --json=1 mnt status
check "and a value that is too many" eval 'test $status = 2 && says "--json takes no value"'
mkdir second
run mount mnt second
check "ROOT on such a mount is refused" eval 'test $status = 2 && says "is a mount of outage itself"'
mkdir mnt/inside
run mount --daemon --log second.log mnt/inside second
check "but a directory inside of it can be ROOT" eval 'test $status = 0 && mounted second'
run umount second
check "and that ends" eval 'test $status = 0 && ! mounted second'
echo long >mnt/long
sleep 0.05
run ctl --json mnt report
check "ages are whole milliseconds" python3 -c 'import json
ages = [r["age_s"] for f in json.load(open("out"))["files"] for r in f["ranges"]]
assert ages and all(abs(a * 1000 - round(a * 1000)) < 1e-6 for a in ages) and max(ages) > 0, ages'
echo unsynced >mnt/a
run ctl mnt report
check "what is unsynced is told" grep -q '\ba\b' out
run ctl mnt clear-cache
check "clear-cache is done" test $status = 0
check "and loses it" test ! -s mnt/a
run ctl mnt no-such-command
check "an unknown command is no success" test $status = 2 -a -s err -a ! -s out
run ctl --json mnt no-such-command
check "nor as JSON" python3 -c 'import json; assert "error" in json.load(open("out"))'
check "and its status says so" test $status = 2
run ctl mnt torn-op file=x parts=2 persist=3
check "a fault that cannot be is refused" test $status = 2
run ctl mnt crash op=write from_rgx='[' timing=before
check "so is a regular expression that does not compile" test $status = 2
run ctl mnt faults --json
check "and none of them waits now" grep -q '"faults": *\[\]' out
mkdir other
run mount data other
check "ROOT is mounted once" refused_elsewhere "data"
run mount --daemon data mnt
check "also if MNT is the same" refused_elsewhere "already"
check "and the first is still there" mounted mnt
echo kept >mnt/b
run umount mnt
check "umount ends it" test $status = 0
check "it is not mounted any more" test ! "$(findmnt -n mnt)"
check "and nothing was lost" test "$(cat data/b)" = kept
check "the log tells what was lost" grep -q "power cut" log
run umount mnt
check "a second umount says that nothing is mounted" refused "nothing is mounted"
run ctl mnt status
check "and so does ctl" refused "nothing is mounted"

# ---- in the foreground ----

# foreground ARGUMENT...: starts it, and waits until it is mounted; $server is its process
foreground() {
	timeout 900 "$OUTAGE" mount "$@" >fg.out 2>fg.err &
	server=$!
	soon mounted mnt
}
ended() {
	wait $server
	status=$?
}

foreground data mnt
check "it stays in the foreground" mounted mnt
echo kept >mnt/c
run umount mnt
ended
check "unmounted, its status is 0" test $status = 0
check "and nothing was lost" test "$(cat data/c)" = kept
foreground data mnt
echo kept >mnt/d
kill -TERM "$server"
ended
# timeout(1) passes the signal on, and says 124 or what the program said
check "a signal ends it, and nothing is lost" test "$(cat data/d)" = kept
check "it is unmounted then" test ! "$(findmnt -n mnt)"
foreground data mnt
echo lost >mnt/e
run ctl mnt crash
check "ctl crash is answered" test $status = 0
ended
check "crashed, its status is 3" test $status = 3
check "what was not synced is lost" test ! -s data/e
check "and nothing is mounted" test ! "$(findmnt -n mnt)"
foreground --fault 'crash op=fsync file=f timing=before' data mnt
(echo lost >mnt/f && sync mnt/f) 2>/dev/null
check "who syncs when a fault crashes it gets an error" test $? != 0
ended
check "a fault's crash has the status 3, too" test $status = 3
check "and has lost it" test ! -s data/f

# ---- in use ----

mkdir lazy_root used_root
echo x >lazy_root/b
run mount --daemon --log log "$dir/lazy_root" mnt
exec 7<mnt/b
run umount mnt
check "a mount that is in use is not unmounted" test $status = 2 -a "$(findmnt -n mnt)"
check "and it is said by whom" says "bash ($$)\|$(cat /proc/$$/comm) ($$)"
exec 7<&-
(cd mnt && exec sleep 60) &
sleeper=$!
soon sits_in mnt
run umount mnt
check "nor one in which somebody is" says "sleep ($sleeper)"
run umount --lazy mnt
check "--lazy takes it out of sight" test $status = 0 -a ! "$(findmnt -n mnt)"
kill $sleeper
wait $sleeper 2>/dev/null
end_server lazy_root

# A namespace that is made meanwhile has a copy of the mount.
if [ "$(id -u)" = 0 ]; then
	run mount --daemon --log log data mnt
	unshare --mount --propagation private sleep 60 &
	sleeper=$!
	soon grep -q " $dir/mnt fuse" /proc/$sleeper/mounts
	soon eval '[ "$(readlink /proc/$sleeper/ns/mnt)" != "$(readlink /proc/self/ns/mnt)" ]'
	echo kept >mnt/g
	run umount mnt
	check "a copy that nobody uses does not keep the server" test $status = 0
	check "and nothing is lost" test "$(cat data/g)" = kept
	kill $sleeper
	wait $sleeper 2>/dev/null
	run mount --daemon --log log "$dir/used_root" mnt
	unshare --mount --propagation private sh -c 'cd mnt && exec sleep 60' &
	sleeper=$!
	soon sits_in mnt
	run umount mnt
	check "one that is used does, and it is said by whom" says "namespace by sleep ($sleeper)"
	kill $sleeper
	wait $sleeper 2>/dev/null
	end_server used_root
else
	skip "mount namespaces need root"
fi

# ---- wrong from the beginning ----

run mount data
check "one directory is not enough" refused "ROOT and MNT"
run mount nothing mnt
check "ROOT must be there" refused "nothing"
run mount data nothing
check "so must MNT" refused "nothing"
run mount data/b mnt
check "ROOT must be a directory" refused "directory"
run mount data data
check "ROOT and MNT must differ" refused "the same directory"
mkdir -p data/sub mnt/sub
run mount data data/sub
check "MNT must not be inside of ROOT" refused "inside of ROOT"
run mount mnt/sub mnt
check "nor ROOT inside of MNT" refused "inside of MNT"
ln -s data link
run mount link data
check "not by a link, either" refused "the same directory"
run mount --profile ext5 data mnt
check "a profile that is not there is refused" refused "ext4-ordered"
printf '[filesystem]\n\n[outage]\nsocket=""\nprofile="ext5"\n' >ext5.toml
run mount --config ext5.toml data mnt
check "in a file, it is told where" refused "ext5.toml:5: there is no profile 'ext5'"
run mount --config ext5.toml --profile ext6 data mnt
check "but not if the command line says it" refused "^outage: --profile is .*, not 'ext6'"
run mount --daemno data mnt
check "an unknown option is named" refused "unknown option --daemno"
run mount data mnt --log
check "and one without its value" refused "--log needs a value"
run mount -o nonsense data mnt
check "a mount option that is none is told whole" refused "unknown option.*nonsense"
run mount --page-size 1000 data mnt
check "so is a page that is no power of two" refused "1000"
run mount --page-size 4096 --block-size 8192 data mnt
check "so are blocks larger than a page" refused "8192"
run mount --cache-size many data mnt
check "so is a size that is none" refused "cache-size"
run mount --fault 'tear-op file=a' data mnt
check "so is a fault that is none" refused "tear-op"
run mount --fault 'torn-op file=a parts=2 persist=1' --fault 'torn-op file=a parts=3 persist=2' data mnt
check "so are two that tear the same file" refused "a"
run mount --fault 'clear-cache' data mnt
check "so is a command in place of a fault" refused "fault"
run mount --fault 'crash op=write from_rgx=( timing=before' data mnt
check "so is a regular expression that does not compile" refused "("
run mount --log mnt/log data mnt
check "so is a log in MNT" refused "inside of"
run mount --log nowhere/log data mnt
check "so is a log that cannot be" refused "nowhere"
run mount --trace nowhere/trace data mnt
check "so is such a trace" refused "nowhere"
: >file
run mount --socket file data mnt
check "so is a socket where a file is" refused "no socket"
check "which stays" test -f file
run mount --daemon --socket nowhere/s data mnt
check "in the background, it is refused in the same way" refused "nowhere"
run mount -o no_such_option data mnt
check "so is a mount option that is none" test $status = 2

config() {
	printf '%s\n' "$@" >config.toml
	run mount --config config.toml data mnt
}
config '[faults' 'fifo_path = 1'
check "a configuration that is no TOML is refused" refused "config.toml"
config '[cache]' 'apply_evicton = true'
check "so is an unknown key" refused "apply_evicton"
config '[cache]' 'apply_eviction = "yes"'
check "so is a wrong type" refused "apply_eviction"
config '[[injection]]' 'type = "torn-op"' 'file = "a"' 'parts = 2' 'persist = [3]'
check "so is a fault that cannot be" refused "persist"
config '[faults]' "fifo_path = \"$dir/file\""
check "so is a FIFO where a file is" refused "no FIFO"
config '[faults]' 'fifo_path = "/nowhere/fifo"'
check "so is a FIFO that cannot be made" refused "/nowhere/fifo"
config '[faults]' "fifo_path = \"$dir/one.fifo\"" "fifo_path_completed = \"$dir/one.fifo\""
check "so are two FIFOs with one name" refused "two names"
check "and no FIFO is left behind" test ! -e one.fifo
run mount --config nowhere.toml data mnt
check "so is a configuration that is not there" refused "nowhere.toml"

# ---- ROOT goes bad ----

mkdir root2
run mount --daemon --log log root2 mnt
echo x >mnt/a
rm -rf root2
(echo y >mnt/b) 2>/dev/null
check "when ROOT is removed, programs get errors" test $? != 0
run umount mnt
check "and it can be unmounted" test ! "$(findmnt -n mnt)"

if [ "$(id -u)" = 0 ]; then
	mkdir small_mnt
	mount -t tmpfs -o size=1M outage-test small_mnt
	mkdir small_mnt/root
	run mount --daemon --profile lazyfs --log log small_mnt/root mnt
	dd if=/dev/zero of=mnt/big bs=64k count=64 conv=fsync 2>dd.err
	check "when ROOT is full, a sync fails" test $? != 0
	check "with the right error" grep -q "No space left" dd.err
	run ctl mnt status
	check "and the server lives" test $status = 0
	rm mnt/big
	echo small >mnt/small
	sync mnt/small
	check "what fits can be synced" test "$(cat small_mnt/root/small)" = small
	run umount mnt
	check "and it can be unmounted" test $status = 0
	umount small_mnt
else
	skip "a small file system needs root"
fi

# ---- as another user ----

if [ "$(id -u)" = 0 ]; then
	for_everybody
	mkdir udata umnt
	chown 65534:65534 udata umnt
	user=("${as_user[@]}")
	timeout 900 "${user[@]}" "$OUTAGE" mount --daemon --log /dev/null udata umnt >out 2>err
	check "a user can mount" test $? = 0
	timeout 900 "${user[@]}" sh -c 'echo x >umnt/a; sync umnt/a; echo y >>umnt/a'
	timeout 900 "${user[@]}" "$OUTAGE" ctl umnt clear-cache >out 2>err
	check "and command" test $? = 0
	check "what was synced stays" test "$(cat udata/a)" = x
	run ctl umnt status
	check "root may, too" test $status = 0
	run mount --daemon --log log data mnt
	timeout 900 "${user[@]}" "$OUTAGE" ctl mnt clear-cache >out 2>err
	check "a user may not command root's mount" test $? = 2
	check "and is told so" says "belongs to user 0"
	timeout 900 "${user[@]}" "$OUTAGE" umount mnt >out 2>err
	check "nor unmount it" test $? = 2
	run umount mnt
	timeout 900 "${user[@]}" "$OUTAGE" umount umnt >out 2>err
	check "a user can unmount" test $? = 0
	check "and it is gone" test ! "$(findmnt -n umnt)"
	if ! grep -q "^ *user_allow_other" /etc/fuse.conf 2>/dev/null; then
		timeout 900 "${user[@]}" "$OUTAGE" mount --daemon --allow-other udata umnt >out 2>err
		check "--allow-other is not a user's to say" test $? = 2
		check "fusermount3 says why" says "user_allow_other"
		check "and nothing else is blamed" eval '! says "is /dev/fuse there"'
	fi
	timeout 900 "${user[@]}" "$OUTAGE" mount data umnt >out 2>err
	check "a ROOT that may not be written is refused" test $? = 2
	check "and nothing stays mounted" test ! "$(findmnt -n umnt)"
else
	skip "another user needs root"
fi
check "no socket is left behind" test ! -e /tmp/outage-65534

# ---- who may write to ROOT is not believed, nor let in ----

mkdir -m 755 data/.outage-stash
run mount data mnt
check "a stash that others could write is refused" refused "is not this user's own"
rmdir data/.outage-stash
run mount -o allow_other data mnt
check "others are let in only with the kernel's checks" refused "allow-other"

# ---- a loss while the kernel has the file locked, and somebody waits for it ----

run mount --daemon --log log --profile minimal data mnt
echo x >mnt/held
sync mnt/held mnt
echo x >mnt/new
run ctl mnt delay op=write file=held delay=1s
run ctl mnt clear-cache op=write file=held timing=after
timeout 900 sh -c 'echo more >>mnt/held' &
writer=$!
check "a delay strikes the writer" soon grep -q 'at write of held' log
timeout 900 rm mnt/held
check "nobody waits for ever: who removes the file" test $? = 0
wait $writer
check "nor who writes it" test $? = 0
run umount mnt

# ---- what the end of a mount tells ----

mkdir full root2
if mount -t tmpfs -o size=1M tmpfs full 2>/dev/null; then
	mkdir full/r
	rm -f log
	run mount --daemon --log log full/r mnt
	timeout 900 dd if=/dev/zero of=mnt/big bs=1M count=4 2>/dev/null
	run umount mnt
	check "umount fails if not everything could be written" refused "not everything could be written"
	check "and the log says it" grep -q "not everything could be written to $dir/full/r" log
	umount full
	run mount --daemon --log log root2 mnt
	timeout 900 dd if=/dev/zero of=mnt/big bs=1M count=4 2>/dev/null
	run umount mnt
	check "umount is silent if everything was" test $status = 0 -a ! -s err
	check "and all is there" test "$(stat -c %s root2/big)" = 4194304
else
	skip "a full file system needs root"
fi

# ---- a trace outlives its server, and tells what went wrong ----

# trace_has WORDS: the trace that is still written, or was cut off
trace_has() {
	timeout 900 "$OUTAGE" trace show k.trace 2>/dev/null | grep -q -- "$1"
}
rm -rf root2/*
timeout 900 "$OUTAGE" mount --trace k.trace -f 'error op=write from=b error=EIO' root2 mnt \
	>fg.out 2>fg.err &
server=$!
soon mounted mnt
echo one >mnt/a
sync mnt/a
check "what is synced is in the trace at once" trace_has 'fsync *a '
echo two 2>/dev/null >mnt/b
check "and so is a fault that strikes" trace_has 'fault 1: at write of b'
echo three >mnt/c
check "the rest comes without a sync" soon trace_has 'write *c '
run ctl mnt snapshot s
check "a snapshot is noted" trace_has 'snapshot s'
run ctl mnt rollback s
check "and going back" trace_has 'back to snapshot s'
run ctl mnt cache-checkpoint
check "and a checkpoint" trace_has 'everything became durable'
check "no power cut is noted that was not" test "$(timeout 900 "$OUTAGE" trace show k.trace 2>/dev/null | grep -c 'power cut by')" = 0
run ctl mnt clear-cache
check "but one that was" trace_has 'power cut by a command'
echo four >mnt/d
sync mnt/d
kill -9 "$(pgrep -P $server)"
wait $server 2>/dev/null
check "after the server was killed all of it is readable" trace_has 'fsync *d '
run trace graph -o k.svg k.trace
check "and the picture shows the power cut" grep -q 'power cut by a command' k.svg
soon eval '! mounted mnt'

# ---- one mount, one FIFO, one place ----

mkdir root3 mnt3
printf '[faults]\nfifo_path="%s/f.fifo"\n' "$dir" >fifo.toml
run mount --daemon --config fifo.toml --log log root2 mnt
check "a mount has a FIFO" test $status = 0 -a -p f.fifo
run mount --daemon --config fifo.toml --log log3 root3 mnt3
check "a second one may not read it" test $status = 2
check "and says what to do" says "another mount takes commands from the FIFO"
check "the first one goes on" soon grep -q 'waiting for fault' log
echo lazyfs::clear-cache >f.fifo
check "and does what comes" soon grep -q 'cache is cleared' log
run mount --daemon root3 mnt
check "MNT that is in use is refused" test $status = 2
check "and told" says "mounted something on $dir/mnt already"
run umount mnt
check "the first is the only one there" test ! "$(findmnt -n mnt)"
run mount --daemon --config fifo.toml --log log3 root3 mnt3
check "then the FIFO is free" test $status = 0
run umount mnt3

# ---- nothing is called durable that is not ----

run mount --daemon --log log root3 mnt
echo abc >mnt/j
run ctl mnt sync file=nosuch
check "a file that is not there is not synced" test $status = 2
check "and named" says "no file nosuch"
run ctl mnt sync file=/etc/passwd
check "nor one outside" test $status = 2
run ctl mnt sync-pages file=j pages=7,8
check "nor pages that are not there" test $status = 2
check "which is said" says "no page 8: j has 1 unsynced page"
check "and nothing was done" test ! -s root3/j
run ctl mnt sync-pages file=j pages=1
check "a page that is there is synced" test $status = 0 -a "$(cat root3/j)" = abc
run ctl mnt sync file=j
check "a file that is there can be synced again" test $status = 0
run ctl mnt error op=fsync error=EIO file=j
echo defg >>mnt/j
timeout 900 sync mnt/j 2>/dev/null
check "a sync fails" test $? != 0
run ctl mnt sync
check "then not everything is durable" test $status = 2
check "and it is said whose fault that is" says "a sync of j failed"
run ctl mnt sync file=j
check "so for the file alone" test $status = 2
echo new >mnt/j
run ctl mnt sync
check "what is written again becomes durable" test $status = 0 -a "$(cat root3/j)" = new
run umount mnt

# ---- what commands leave in the log, and their answers ----

rm -rf log root3/*
find mnt -mindepth 1 -delete
run mount --daemon --log log root3 mnt
check "an empty MNT is no reason to warn" test "$(grep -c 'not empty' log)" = 0
printf 1234 >mnt/a
sync mnt/a mnt
run ctl mnt snapshot s
run ctl mnt snapshots
check "a snapshot is there" test "$(cat out)" = s
run ctl mnt drop t
check "one that is not there cannot be removed" test $status = 2
check "and is named" says "no snapshot t"
run ctl mnt drop s
check "one that is there can" test $status = 0
run ctl mnt snapshots
check "and is gone" grep -q 'no snapshots' out
check "with its copy" test ! -e root3/.outage-stash/snapshots
run ctl mnt status
check "the log has commands that change something" grep -q "received 'snapshot s'" log
check "and that one was not done" grep -q 'not done: there is no snapshot t' log
check "but not those that only ask" test "$(grep -c 'status\|snapshots' log)" = 0
printf 5678 >>mnt/a
mkdir mnt/dir
run ctl --json mnt clear-cache
check "what was lost is told" python3 -c '
import json
lost = json.load(open("out"))["at_risk"]
assert [f["path"] for f in lost["files"]] == ["a"], lost
assert [m["path"] for m in lost["metadata"] if m["kind"] == "make"] == ["dir"], lost'
run ctl mnt clear-cache
check "in words as well" grep -q 'lost: 0 files with 0 bytes' out
run ctl mnt delay op=mkdir delay=1h
timeout 900 mkdir mnt/late &
late=$!
check "a delay strikes" soon grep -q 'fault 1: at mkdir of late' log
run ctl mnt cancel 1
wait $late
check "who waits for a cancelled delay goes on" test $? = 0 -a -d mnt/late
run umount mnt

# ---- a mount without its directories ----

touch mnt/hidden
run mount --daemon --log log root3 mnt
check "a MNT that is not empty is warned of" grep -q 'not empty.*such as hidden' log
run umount mnt
rm mnt/hidden
foreground root3 mnt
rm -rf root3
ended
check "a mount whose ROOT is removed ends" test $status = 2
check "and says why" grep -q 'taken away' fg.err
check "and is gone" test ! "$(findmnt -n mnt)"
mkdir root3

# ---- the example programs ----

if command -v cc >/dev/null; then
	run mount --daemon --log log --socket "$dir/s" data mnt
	check "the C example compiles" cc -o control "$root/examples/forget/control.c"
	check "and finds what was lost" timeout 900 sh -c "./control '$dir/s' mnt >out"
	run umount mnt
	check "the socket is removed" test ! -e s
fi
PATH=$dir/bin:$PATH timeout 900 "$root/examples/forget/lose.sh" \
	sh -c 'echo one >a; sync a; echo more >>a' >out 2>err
check "the shell example runs" test $? = 0
check "and shows what is left" grep -q ' 4 .* a$' out
PATH=$dir/bin:$PATH timeout 900 "$root/examples/forget/lose.sh" >out 2>err
status=$?
check "without a command it says how it is used" eval 'test $status = 2 && says "^usage: lose.sh COMMAND" && test ! -s out'

# ---- directories that are removed, and come back ----

# a user's mount over directories that may not be written to; looks DIR: all that must come back
looks() {
	stat -c '%a %u %g %Y' "$1"
	getfattr -d -m '^user' --absolute-names "$1" 2>/dev/null | grep '^user'
	getfacl -cp "$1" 2>/dev/null
}
try_dirs() { # WHO... : as this user, on udir and its mount udmnt
	local was

	"$@" mkdir udmnt/a udmnt/b udmnt/b/in udmnt/c
	"$@" chmod 555 udmnt/a udmnt/c
	"$@" touch -d 2001-02-03 udmnt/a
	"$@" touch udmnt/b/in/file
	setfattr -n user.color -v red udir/a 2>/dev/null
	setfacl -d -m u:1:rx udir/b 2>/dev/null
	timeout 900 "${@:-env}" "$OUTAGE" ctl udmnt sync >out 2>err
	was=$(looks udir/a)
	timeout 900 "$@" rmdir udmnt/a 2>err
	check "a directory that may not be written to can be removed" test ! -e udir/a
	"$@" mkdir udmnt/d
	timeout 900 "$@" mv -T udmnt/d udmnt/c 2>err
	check "and replaced" test ! -e udir/d -a "$(stat -c %a udir/c)" != 555
	timeout 900 "$@" rm -r udmnt/b 2>err
	check "and a whole tree" test ! -e udir/b
	timeout 900 "${@:-env}" "$OUTAGE" ctl udmnt "${cut[@]}" >out 2>err
	soon eval '[ "${cut[0]}" = clear-cache ] || ! mounted udmnt'
	check "after a power cut (${cut[*]}) it is back" test -d udir/a -a "$(stat -c %a udir/c)" = 555
	check "as it was" test "$(looks udir/a)" = "$was"
	check "and the tree, with its file" test -f udir/b/in/file
	check "not the one that replaced another" test ! -e udir/d
}
with_dirs() { # WHO...
	rm -rf udir udmnt
	mkdir udir udmnt
	[ $# = 0 ] || chown 65534:65534 udir udmnt
	timeout 900 "${@:-env}" "$OUTAGE" mount --daemon --log /dev/null "${profile[@]}" udir udmnt >out 2>err
	try_dirs "$@"
}
profile=(--profile minimal)
cut=(clear-cache)
with_dirs
check "the kernel shows it, too" test -d udmnt/a -a -f udmnt/b/in/file
chmod u+w udmnt/a # root needs no right to write
touch udmnt/b/in/more udmnt/a/new
timeout 900 "$OUTAGE" ctl udmnt sync >out 2>err
check "and what comes back can be used" test -f udir/b/in/more -a -f udir/a/new
rm -r udmnt/a
mkdir udmnt/a
touch udmnt/a/2
run ctl udmnt snapshot s
check "a snapshot has the directory as it was" eval 'test -e udir/.outage-stash/snapshots/s/a/new && test ! -e udir/.outage-stash/snapshots/s/a/2'
run umount udmnt
check "and it ends" test $status = 0
profile=()
cut=(crash)
with_dirs
rm -rf udir udmnt
mkdir udir udmnt
mkdir -p udir/x/y/z
chmod 711 udir/x/y/z
run mount --daemon --log log --profile minimal udir udmnt
mv udmnt/x/y/z udmnt/x/q
rmdir udmnt/x/q udmnt/x/y
mkdir udmnt/x/y
kill -9 "$(timeout 900 "$OUTAGE" ctl --json udmnt status | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')"
soon eval '! mounted udmnt && flock -n udir true'
check "who is killed leaves them to be made again" test "$(stat -c %a udir/x/y/z 2>err)" = 711
check "and nothing else" eval 'test ! -e udir/x/q && test ! -e udir/.outage-stash'
mkdir -p udir/s/one udir/s/two
chmod 711 udir/s/one
run mount --daemon --log log --profile minimal udir udmnt
python3 -c '
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.renameat2(-100, b"udmnt/s/one", -100, b"udmnt/s/two", 2):
	raise OSError(ctypes.get_errno(), "renameat2")
os.rmdir("udmnt/s/one")
os.rmdir("udmnt/s/two")'
kill -9 "$(timeout 900 "$OUTAGE" ctl --json udmnt status | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')"
soon eval '! mounted udmnt && flock -n udir true'
check "also if they were exchanged before" test "$(stat -c %a udir/s/one 2>err)" = 711 -a "$(stat -c %a udir/s/two)" = 755
if [ "$(id -u)" = 0 ]; then
	for_everybody
	cut=(clear-cache)
	profile=(--profile minimal)
	with_dirs "${as_user[@]}"
	run umount udmnt
	mkdir over_mnt
	if mount -t tmpfs tmpfs over_mnt && mkdir -p over_mnt/{low/old,up,work,all} &&
		mount -t overlay -o lowerdir=over_mnt/low,upperdir=over_mnt/up,workdir=over_mnt/work overlay over_mnt/all 2>/dev/null; then
		run mount --daemon --log log over_mnt/all udmnt
		timeout 900 rmdir udmnt/old 2>err
		check "on overlayfs, where directories do not move, one is removed" test ! -e udmnt/old
		run ctl udmnt clear-cache
		check "and comes back" test -d udmnt/old -a -d over_mnt/all/old
		run umount udmnt
		umount over_mnt/all
	else
		skip "there is no overlayfs here"
	fi
	umount over_mnt
fi

# ---- numbers that the kernel gives again ----

if [ "$(id -u)" = 0 ]; then
	# In a /run of its own, somebody listens under the name of every device that a mount could get.
	cat >squat.sh <<-'END'
		mount -t tmpfs tmpfs /run && mkdir -m 700 /run/outage || exit 9
		python3 -c '
		import os, socket, time
		all = []
		for i in range(1, 600):
		    s = socket.socket(socket.AF_UNIX)
		    s.bind("/run/outage/0:%d" % i)
		    s.listen()
		    all.append(s)
		open("squatting", "w").close()
		time.sleep(900)' &
		trap "kill $!" EXIT
		until [ -e squatting ]; do kill -0 $! || exit 9; sleep 0.02; done
		timeout 900 "$OUTAGE" mount --daemon --log log data mnt || exit
		timeout 900 "$OUTAGE" ctl mnt status || exit
		timeout 900 "$OUTAGE" umount mnt
	END
	sed -i 's/^\t*//' squat.sh
	timeout 900 unshare -m --propagation private bash squat.sh >out 2>err
	check "a mount takes the place of servers that have lost theirs" test $? = 0
	check "and it is the one that answers" grep -q "^$dir/data on $dir/mnt" out

	run mount --daemon --log log data mnt
	stopped=$(timeout 900 "$OUTAGE" ctl --json mnt status | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')
	kill -STOP "$stopped"
	timeout 900 "$OUTAGE" umount --timeout 3s mnt >out 2>err &
	unmounting=$!
	soon eval '! mounted mnt'
	# another one of ours, and file systems of other kinds: one of them gets the number
	unshare -m --propagation private bash -c 'for i in 1 2 3; do mkdir t$i r$i u$i
		timeout 900 "$OUTAGE" mount --daemon --log /dev/null "$PWD/r$i" t$i; (cd t$i && exec sleep 60 >/dev/null 2>&1) &
		mount -t tmpfs tmpfs u$i; (cd u$i && exec sleep 60 >/dev/null 2>&1) &
		done; wait' &
	sleeper=$!
	wait $unmounting
	check "umount does not take another file system for a copy of the mount" says "has not ended within 3 s"
	kill -CONT "$stopped"
	soon flock -n data true
	pkill -P $sleeper
	kill $sleeper
	wait $sleeper 2>/dev/null
	for i in 1 2 3; do
		pkill -TERM -f "^$OUTAGE mount --daemon --log /dev/null $dir/r$i t$i\$"
		soon flock -n r$i true
	done
else
	skip "a /run of its own needs root"
fi

# ---- who may do what, and what the kernel remembers ----

try_modes() { # WHO...
	rm -rf udir udmnt
	mkdir udir udmnt
	[ $# = 0 ] || chown 65534:65534 udir udmnt
	timeout 900 "${@:-env}" "$OUTAGE" mount --daemon --log /dev/null udir udmnt >out 2>err
	timeout 900 "$@" sh -c 'mkdir udmnt/shut && echo x >udmnt/shut/file && cat udmnt/shut/file' >out 2>err
	check "a user reads a file ($*)" test "$(cat out)" = x
	"$@" chmod 0 udmnt/shut
	timeout 900 "$@" cat udmnt/shut/file >out 2>err
	check "and not when its directory does not let him" eval 'test $? != 0; says "Permission denied"'
	"$@" chmod 700 udmnt/shut
	timeout 900 "$@" cat udmnt/shut/file >out 2>err
	check "but when it does again" test "$(cat out)" = x
	"$@" chmod 400 udmnt/shut/file
	timeout 900 "$@" sh -c 'echo y >udmnt/shut/file' >out 2>err
	check "a file that he may only read he cannot write" eval 'test $? != 0; says "Permission denied"'
	timeout 900 "${@:-env}" "$OUTAGE" umount udmnt >out 2>err
	check "and it ends" test $? = 0
}
if [ "$(id -u)" = 0 ]; then
	for_everybody
	try_modes "${as_user[@]}"
else
	try_modes
fi
mkdir gone
run mount --daemon --log log gone mnt
mkdir mnt/d
echo x >mnt/a
echo x >mnt/d/b
run ctl mnt sync
run ctl mnt snapshot s
rm -r mnt/a mnt/d
run ctl mnt sync
cat mnt/a mnt/d mnt/d/b mnt/never >out 2>err
check "what was removed is not there" test ! -s out
run ctl mnt rollback s
check "and is again, after going back to a snapshot" test "$(cat mnt/a mnt/d/b 2>&1)" = "x
x"
check "but nothing that never was" test ! -e mnt/never
rm mnt/d/b
run ctl mnt sync
cat mnt/d/b 2>err
run ctl mnt rollback s
check "also in a directory that was there all the time" test "$(cat mnt/d/b 2>&1)" = x
run umount mnt
rm -rf gone

# ---- answers are true ----

mkdir true_root
run mount --daemon --log true.log --profile minimal true_root mnt
mkdir mnt/d
echo x >mnt/d/a
echo x >mnt/d/b
run ctl mnt sync-pages file=d/a
check "of a new file whose data is synced it is told that its name is not" grep -q "is durable, but 2 changes of names and attributes are not" out
run ctl --json mnt sync 'file=d/*'
check "so for those that match a pattern" python3 -c 'import json
s = json.load(open("out"))
assert s["waiting"] == 2 and s["matches"] is True and "but 2 changes" in s["done"], s'
run ctl mnt sync file=d/a
check "a file that is synced is durable" test "$(cat out)" = "what was asked for is durable"
run ctl mnt clear-cache
check "and is there afterwards, with its directory" test "$(cat mnt/d/a)" = x
echo x >mnt/d/c
echo x >mnt/e
run ctl mnt sync file=d/c
check "a second one, too" grep -q "^what was asked for is durable" out
run ctl mnt clear-cache
check "but nothing else" test -e mnt/d/c -a ! -e mnt/e
run ctl mnt sync 'file=nothing*'
check "that a pattern matches nothing is told" grep -q "^nothing in the mount matches the path; nothing is done" out
run ctl mnt error op=write error=EIO 'file_glob=no[xyz]*'
check "also of a fault" grep -q "^fault 1 waits; nothing in the mount matches its path yet" out
run ctl --json mnt error op=write error=EIO 'file_rgx=^nosuch'
check "and as JSON" grep -q '"matches":false' out
run ctl mnt error op=write error=EIO 'file_glob=d/[x-z]*'
check "and of one for a directory's files" grep -q "matches its path yet" out
run ctl mnt error op=write error=EIO 'file_glob=d/[a-b]*'
check "not if something does" test "$(cat out)" = "fault 4 waits"
touch mnt/nox
(echo x >mnt/nox) 2>/dev/null
check "and what matches later is met" test $? != 0
run ctl mnt faults
check "which is told" grep -q "^1: .*(done)" out
for f in 'tmpfile' 'copy_file_range' 'syncfs' 'msync' 'access'; do
	run ctl mnt error op=$f error=EIO
	check "a fault that could never strike is refused: $f" eval 'test $status = 2 && says "op=$f would never happen: "'
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
run umount mnt

# ---- delays that are cancelled ----

let_go() {
	soon eval '! kill -0 $late 2>/dev/null'
}
mkdir -p true_root
: >true.log
run mount --daemon --log true.log true_root mnt
run ctl mnt delay op=mkdir delay=1ms until=end
run ctl mnt delay op=mkdir delay=50s
mkdir mnt/late &
late=$!
check "two delays strike" soon grep -q 'at mkdir of late' true.log
run ctl mnt cancel 2
check "and the second can be cancelled" let_go
wait $late
check "which lets the operation go on" test $? = 0 -a -d mnt/late
run ctl mnt delay op=rmdir delay=50s
run ctl mnt delay op=rmdir delay=51s
rmdir mnt/late &
late=$!
check "two others strike" soon grep -q 'at rmdir of late' true.log
run ctl mnt cancel 4
check "one of them does not let go" kill -0 $late
run ctl mnt cancel 3
check "both do" let_go
wait $late
check "and it is done" test ! -d mnt/late
run umount mnt
rm -rf true_root

# ---- deeper than there are descriptors ----

mkdir deep_root
deep=$(printf 'd/%.0s' $(seq 400))
mkdir -p "deep_root/$deep"
echo old >"deep_root/${deep}file"
few_files 200 timeout 900 "$OUTAGE" mount --daemon --log log deep_root mnt >out 2>err
check "a deep ROOT is mounted with few descriptors" test $? = 0
mv "mnt/${deep}file" "mnt/${deep}new"
mkdir "mnt/${deep}dir"
kill -9 "$(timeout 900 "$OUTAGE" ctl --json mnt status | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')"
soon eval '! mounted mnt && flock -n deep_root true'
check "and what is at its end comes back when the server is killed" test "$(cat "deep_root/${deep}file")" = old
check "without what was new" eval 'test ! -e "deep_root/${deep}new" && test ! -e "deep_root/${deep}dir"'
check "and nothing waits any more" test ! -e deep_root/.outage-stash
mkdir -m 700 deep_root/.outage-stash
mkdir -p "deep_root/.outage-stash/new-x/$deep"
few_files 200 timeout 900 "$OUTAGE" mount --daemon --log log deep_root mnt >out 2>err
check "what a snapshot left that was not finished is cleared away" test ! -e deep_root/.outage-stash/new-x
run umount mnt
rm -rf deep_root

# ---- ROOT is moved ----

mkdir moved_root
echo old >moved_root/a
run mount --daemon --log moved.log moved_root mnt
echo new >mnt/b
mv moved_root away_root
echo x >mnt/c
sync mnt/c
check "a ROOT that is moved is used where it is" test "$(cat away_root/c)" = x
run ctl mnt status
check "status tells that it was moved" grep -q "ROOT was moved: it is $dir/away_root now" out
rm mnt/a
kill -9 "$(timeout 900 "$OUTAGE" ctl --json mnt status | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')"
soon eval '! mounted mnt && flock -n away_root true'
check "and when the server is killed, what waits is undone there" test "$(cat away_root/a 2>&1)" = old
check "with nothing left" test ! -e away_root/.outage-stash -a ! -e moved_root
mkdir moved_root
run mount --daemon --log moved.log away_root mnt
run ctl mnt status
check "a ROOT that was not moved is not called so" eval '! grep -q "was moved" out'
run umount mnt
rm -rf away_root moved_root

# ---- one ROOT in another ----

mkdir -p outer/inner/most sibling one two
run mount --daemon --log nest.log outer one
run mount outer/inner two
check "a ROOT inside of another mount's ROOT is refused" eval 'test $status = 2 && says "is inside of $dir/outer, which is the ROOT of the mount on $dir/one" && ! mounted two'
run mount --daemon --log nest2.log sibling two
check "one beside it is not" eval 'test $status = 0 && mounted two'
run umount two
run umount one
run mount --daemon --log nest.log outer/inner one
run mount outer two
check "nor may it have one inside" eval 'test $status = 2 && says "$dir/outer/inner, the ROOT of the mount on $dir/one, is inside of it" && ! mounted two'
run umount one
run mount --daemon --log nest.log outer two
check "when that is gone it may be" test $status = 0
run umount two
rm -rf outer sibling one two

# ---- MNT when nothing is mounted ----

mkdir bare_root bare_mnt
if chattr +i bare_mnt 2>/dev/null; then
	run mount --daemon --log log bare_root bare_mnt
	check "on a directory that may not be changed can be mounted" test $status = 0
	check "and written there" touch bare_mnt/a
	run ctl bare_mnt crash
	soon eval '! mounted bare_mnt'
	touch bare_mnt/b 2>/dev/null
	check "after a crash, who goes on gets an error" test $? != 0 -a ! -e bare_mnt/b
	chattr -i bare_mnt
else
	skip "directories cannot be made immutable here"
fi
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o ro tmpfs bare_mnt 2>/dev/null; then
	run mount --daemon --log log bare_root bare_mnt
	touch bare_mnt/a
	run ctl bare_mnt crash
	soon eval '! mounted bare_mnt'
	touch bare_mnt/b 2>/dev/null
	check "so it is above a file system that is read-only" test $? != 0 -a ! -e bare_mnt/b
	umount bare_mnt
else
	skip "a file system that is read-only needs root"
fi
rmdir bare_mnt

# ---- what shall survive ----

run mount --daemon --log some.log data mnt
echo x >mnt/some-a
echo x >mnt/some-b
run ctl mnt clear-cache 'survivors=*-a'
check "what survivors matches stays" test -e mnt/some-a -a ! -e mnt/some-b
check "and nothing is said of it" eval '! grep -q "survivors matches no" some.log'
echo x >mnt/some-c
run ctl mnt clear-cache 'survivors=nothing*'
check "that nothing matches is in the log" grep -q "survivors matches no name" some.log
run umount mnt

# ---- writes that are torn ----

run mount --daemon --log torn.log data mnt
run ctl mnt torn-op file=fit parts_bytes=3,3 persist=1
printf 12345 >mnt/fit
soon grep -q "of 5 bytes" torn.log
run ctl mnt faults
check "a fault whose parts do not fit tells the length" grep -q "(missed); 1 seen; the write had 5 bytes" out
check "and so does the log" grep -q "not done, its parts have another length .* of 5 bytes" torn.log
run ctl mnt torn-op file=new parts=2 persist=1
(printf 12345678 >mnt/new) 2>/dev/null
soon eval '! mounted mnt'
check "a new file whose name was not durable is lost" test ! -e data/new
check "and the log says so" grep -q "but its name was not durable" torn.log
printf 1234 >data/old
run mount --daemon --log torn2.log data mnt
run ctl mnt torn-op file=old parts=2 persist=1
(printf abcdefgh 1<>mnt/old) 2>/dev/null
soon eval '! mounted mnt'
check "of an old one a part is durable" test "$(cat data/old)" = abcd
check "and its name is not called lost" eval '! grep -q "its name was not durable" torn2.log'

# ---- a server that does not end ----

run mount --daemon --log log data mnt
stopped=$(timeout 900 "$OUTAGE" ctl --json mnt status | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')
kill -STOP "$stopped"
run umount --timeout 1200ms mnt
check "umount tells how long it has waited" eval 'test $status = 2 && says "has not ended within 1.2 s"'
kill -CONT "$stopped"
check "and the server ends when it can" soon flock -n data true

done_testing
