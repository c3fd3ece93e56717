#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The commands mount, ctl and umount: the documents' examples, what they print and how they end when all is
# well, in the background and in the foreground.
# shellcheck source=tests/lib.sh disable=SC2016,SC2317 # expanded by eval, called through check
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/mount-lib.sh
. "$root/tests/mount-lib.sh"

# ---- the documents' example ----

awk '/^## / { on = /Cutting the power/ } on && /^    / { print substr($0, 5); seen = 1; next } seen { exit }' \
	"$root/README.md" >example.sh
mkdir readme bin
ln -s "$OUTAGE" bin/outage
(cd readme && PATH=$dir/bin:$PATH timeout 900 bash -e ../example.sh) >out 2>err
status=$?
check "the example of README.md runs" test $status = 0
check "and prints what it says" test "$(tail -n 1 out)" = one
outage umount readme/mnt
check "umount ends it" test $status = 0

# ---- a whole life ----

outage mount --daemon --log log data mnt
check "mount --daemon returns" test $status = 0
check "and says nothing" test ! -s err -a ! -s out
check "it is mounted" mounted mnt
check "with the type fuse.outage" test "$(findmnt -n -o FSTYPE mnt)" = fuse.outage
outage ctl mnt status
check "it answers" test $status = 0 -a -s out
outage ctl mnt status --json
check "as JSON, too" python3 -c 'import json
s = json.load(open("out"))
assert s["profile"] == "ext4-ordered" and s["page_size"] == 4096 and s["pages_max"] == 0, s
assert s["faults_waiting"] == 0 and s["trace"] is None and s["log"].endswith("/log"), s
assert s["lost"] == 0 and s["since"] > 0'
outage ctl mnt error op=mkdir file=nowhere error=EIO
outage ctl mnt status
check "status tells what waits" grep -q "^1 fault waiting, 0 done" out
check "and what was lost" grep -q "^nothing was lost yet" out
check "and where it writes" grep -q "^log: .*/log$" out
outage ctl mnt cancel 1
outage ctl mnt status
check "also if nothing waits" grep -q "^0 faults waiting" out
outage ctl mnt snapshot -d a
check "an option that ctl does not have is named" eval 'test $status = 2 && complains "unknown option -d"'
outage ctl mnt status --timeout
check "and one without its value" eval 'test $status = 2 && complains "--timeout needs a value"'
outage ctl --json=1 mnt status
check "and a value that is too many" eval 'test $status = 2 && complains "--json takes no value"'
mkdir second
outage mount mnt second
check "ROOT on such a mount is refused" eval 'test $status = 2 && complains "is a mount of outage itself"'
mkdir mnt/inside
outage mount --daemon --log second.log mnt/inside second
check "but a directory inside of it can be ROOT" eval 'test $status = 0 && mounted second'
outage umount second
check "and that ends" eval 'test $status = 0 && ! mounted second'
echo long >mnt/long
sleep 0.05 # at least: an age that is longer is right, too
outage ctl --json mnt report
check "ages are whole milliseconds" python3 -c 'import json
ages = [r["age_s"] for f in json.load(open("out"))["files"] for r in f["ranges"]]
assert ages and all(abs(a * 1000 - round(a * 1000)) < 1e-6 for a in ages) and max(ages) > 0, ages'
echo unsynced >mnt/a
outage ctl mnt report
check "what is unsynced is told" grep -q '\ba\b' out
outage ctl mnt clear-cache
check "clear-cache is done" test $status = 0
check "and loses it" test ! -s mnt/a
outage ctl mnt no-such-command
check "an unknown command is no success" test $status = 2 -a -s err -a ! -s out
outage ctl --json mnt no-such-command
check "nor as JSON" python3 -c 'import json; assert "error" in json.load(open("out"))'
check "and its status says so" test $status = 2
outage ctl mnt torn-op file=x parts=2 persist=3
check "a fault that cannot be is refused" test $status = 2
outage ctl mnt crash op=write from_rgx='[' timing=before
check "so is a regular expression that does not compile" test $status = 2
outage ctl mnt faults --json
check "and none of them waits now" grep -q '"faults": *\[\]' out
mkdir other
outage mount data other
check "ROOT is mounted once" rejected "data" other
outage mount --daemon data mnt
check "also if MNT is the same" rejected "already" other
check "and the first is still there" mounted mnt
echo kept >mnt/b
outage umount mnt
check "umount ends it" test $status = 0
check "it is not mounted any more" test ! "$(findmnt -n mnt)"
check "and nothing was lost" test "$(cat data/b)" = kept
check "the log tells what was lost" grep -q "power cut" log
outage umount mnt
check "a second umount says that nothing is mounted" rejected "nothing is mounted"
outage ctl mnt status
check "and so does ctl" rejected "nothing is mounted"

# ---- in the foreground ----

foreground data mnt
check "it stays in the foreground" mounted mnt
echo kept >mnt/c
outage umount mnt
check "unmounted, its status is 0" ended 0 "$server"
check "and nothing was lost" test "$(cat data/c)" = kept
foreground data mnt
echo kept >mnt/d
kill -TERM "$server"
wait "$server"
# timeout(1) passes the signal on, and says 124 or what the program said
check "a signal ends it, and nothing is lost" test "$(cat data/d)" = kept
check "it is unmounted then" test ! "$(findmnt -n mnt)"
foreground data mnt
echo lost >mnt/e
outage ctl mnt crash
check "ctl crash is answered" test $status = 0
check "crashed, its status is 3" ended 3 "$server"
check "what was not synced is lost" test ! -s data/e
check "and nothing is mounted" test ! "$(findmnt -n mnt)"
foreground --fault 'crash op=fsync file=f timing=before' data mnt
(echo lost >mnt/f && sync mnt/f) 2>/dev/null
check "who syncs when a fault crashes it gets an error" test $? != 0
check "a fault's crash has the status 3, too" ended 3 "$server"
check "and has lost it" test ! -s data/f


# ---- the example programs ----

if command -v cc >/dev/null; then
	outage mount --daemon --log log --socket "$dir/s" data mnt
	check "the C example compiles" cc -o control "$root/examples/forget/control.c"
	check "and finds what was lost" timeout 900 sh -c "./control '$dir/s' mnt >out"
	outage umount mnt
	check "the socket is removed" test ! -e s
fi
PATH=$dir/bin:$PATH timeout 900 "$root/examples/forget/lose.sh" \
	sh -c 'echo one >a; sync a; echo more >>a' >out 2>err
check "the shell example runs" test $? = 0
check "and shows what is left" grep -q ' 4 .* a$' out
PATH=$dir/bin:$PATH timeout 900 "$root/examples/forget/lose.sh" >out 2>err
status=$?
check "without a command it says how it is used" eval 'test $status = 2 && complains "^usage: lose.sh COMMAND" && test ! -s out'

done_testing
