#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage app: every crash of an application's run. Programs that are wrong are found, with what they
# did wrong; their twins that are right are not.
# Commands for other shells are in single quotes.
# takes 60 s
# shellcheck disable=SC2016
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
needs_namespaces

if [ "$(id -u)" != 0 ] || [ ! -c /dev/fuse ]; then
	echo "1..0 # SKIP this needs root and FUSE"
	exit 77
fi
apps=$root/examples/apps
own_mounts
for_everybody

# app DIR OPTION...: one run, kept in run; its status is in $status. The usual budget takes minutes.
app() {
	local of=$1

	shift
	rm -rf run
	timeout 900 "$OUTAGE" app -o run --budget 1000 "$@" -- "$of" >out 2>err
	status=$?
}
# json EXPRESSION: of what was printed
json() {
	python3 -c 'import json, sys; d = json.load(open("out")); print(eval(sys.argv[1]))' "$1" 2>>err
}
# said TEXT: in the output, on one line
# shellcheck disable=SC2317 # called by check
said() {
	grep -qF -- "$1" out
}
# said_like TEXT: the same, N being any number: when a file is closed is seen late, so that numbers vary
# shellcheck disable=SC2317 # called by check
said_like() {
	sed 's/ [0-9][0-9]* \(of\|to\|and\) / N \1 /g' out | grep -qF -- "$1"
}
# build NAME [LIBRARY...]: a program of the examples
build() {
	local name=$1

	shift
	cc -Wall -o "$name" "$apps/$name.c" "$@" >out 2>&1
}

# ---- replacing a file ----

build replace
check "the example compiles" test -x replace
fresh() {
	rm -rf data
	mkdir data
	echo old >data/settings
}
replace() {
	fresh
	app data "${@:2}" --run "$dir/replace $1" --check "$dir/replace check"
}

# wrong HOW PROFILE TEXT
wrong() {
	replace "$1" -p "$2"
	check "$1, $2: is found" test $status = 1
	check "$1, $2: and named: $3" said_like "$3"
	check "$1, $2: as one cause" test "$(grep -c ^found out)" = 1
}
wrong in-place ext4-ordered "a crash after truncate N of settings is one too many, with nothing lost: all is well only after write N to settings"
wrong no-sync minimal "write N to settings.tmp was not ordered before the rename N of settings.tmp to settings: an fsync of settings.tmp is missing"
wrong sync-after xfs "write N to settings.tmp was not ordered before the rename N of settings.tmp to settings: an fsync of settings.tmp is missing"
wrong unlink-first ext4-ordered "a crash after unlink N of settings is one too many"
wrong dir-only xfs "write N to settings.tmp was not ordered before the rename N of"
wrong no-dir ext4-ordered "rename N of settings.tmp to settings was not durable when 'replaced' was acknowledged: an fsync of the directory . is missing"
for profile in minimal ext4-ordered ext4-writeback xfs btrfs; do
	replace right -p $profile
	check "right, $profile: nothing is found" test $status = 0
	check "right, $profile: and states were checked" grep -q ' [1-9][0-9]* checked' out
done
replace no-sync -p ext4-ordered
check "no-sync, ext4-ordered: a rename brings its data along" test $status = 0
fresh
touch -d @1000 data data/settings
sum=$(tar -c data | cksum)
app data -p minimal --run "$dir/replace no-dir" --check "$dir/replace check"
check "the directory itself is never changed" test "$(tar -c data | cksum)" = "$sum"

# ---- what is kept ----

finding=run/findings/0
check "a finding is kept" test -s $finding/case -a -s $finding/trace -a -s $finding/said
timeout 900 "$OUTAGE" replay $finding >out 2>err
check "replay: it shows again" test $? = 1
check "replay: and says what" grep -q "shows again: what was acknowledged is gone" out
timeout 900 "$OUTAGE" replay $finding --json >out 2>err
check "replay --json" test "$(json 'd["shown"] and d["harm"]')" = rolled-back
check "the missing call was tried" grep -q '^verified yes' $finding/case
sed -i "s,replace check,replace check || :," run/run
timeout 900 "$OUTAGE" replay $finding --trust >out 2>err
check "replay: with a check that accepts it, it does not show" test $? = 0
sed -i "s,replace check || :,replace check," run/run
chmod o+w run/run
timeout 900 "$OUTAGE" replay $finding >out 2>err
check "replay: commands that others could have written are not run" test $? = 2
check "replay: which is said" grep -q -- --trust err
chmod o-w run/run
timeout 900 "$OUTAGE" report run >out 2>err
check "report: the lost operation is marked" grep -q 'lost  *rename [0-9]* of settings.tmp to settings' out
check "report: and where the power fails" grep -q 'the power fails here' out
timeout 900 "$OUTAGE" report run --json >out 2>err
check "report --json: one finding" test "$(json 'len(d["findings"])')" = 1
check "report --json: the sequence has the lost one" \
	test "$(json '[e["op"] for e in d["findings"][0]["sequence"] if e["fate"] == "lost"]')" = "['rename']"
timeout 900 "$OUTAGE" report run --html page.html >out 2>err
check "report --html: a page with the lost one marked" grep -q 'class="lost"' page.html
check "report --html: also in the picture" grep -q '<g class="dead">' page.html
check "report --html: with the crash" grep -q '>the power fails</text>' page.html
check "report --html: the check, the directory, what to do, what was seen" \
	test "$(grep -cE "<p>check $dir/replace check|<p>directory $dir/data|>mend it with: an fsync|<p>seen: the check exited" page.html)" = 4
check "report --html: and nothing empty" test -z "$(grep -F '<pre></pre>' page.html)"
timeout 900 "$OUTAGE" export $finding -o exported >out 2>err
check "export: a script" test -x exported/reproduce.sh
sh exported/reproduce.sh rebuilt check >out 2>err
check "export: it builds a directory on which the check fails" test $? = 1
check "export: the old settings are there" test "$(cat rebuilt/settings)" = old
replace no-sync -p minimal
timeout 900 "$OUTAGE" export $finding -o lazy >out 2>err
check "export: a fault for LazyFS" grep -q 'op = "rename"' lazy/lazyfs.toml
mkdir -p root mnt
cp data/settings root/
timeout 900 "$OUTAGE" mount --daemon --config lazy/lazyfs.toml root mnt >out 2>err
(cd mnt && timeout 900 "$dir/replace" no-sync) >>out 2>&1
timeout 900 "$OUTAGE" umount mnt >>out 2>&1
check "export: that fault leads there" test -e root/settings -a ! -s root/settings
umount -l mnt 2>/dev/null

# ---- acknowledgements ----

fresh
app data -p minimal --json --run "echo a >a; '$OUTAGE' ack a; sync a . ; '$OUTAGE' ack b" \
	--check "grep -q b \$OUTAGE_ACKED || exit 0; [ -s a ] && [ \"\$1\" = \"\$OUTAGE_DIR\" ] && [ \"\$PWD\" = '$dir/data' ] && [ \$OUTAGE_CRASH_POINT -gt 0 ]"
check "ack: what is acknowledged after a sync is there, at the same path" test $status = 0
check "ack: two of them" test "$(json 'd["acknowledgements"]')" = 2
check "--json has the keys that scripts rely on" \
	test "$(json '[type(d[k]).__name__ for k in ("operations", "crash_states", "unique_states", "checked", "findings", "errors", "elapsed_s", "budget_hit")]')" = "['int', 'int', 'int', 'int', 'int', 'int', 'float', 'bool']"
app data -p minimal --run "echo a >a; '$OUTAGE' ack a" --check '! grep -q a $OUTAGE_ACKED || [ -s a ]'
check "ack: what is acknowledged without one is not" test $status = 1
app data -p minimal --ack-file log --run 'echo a >a; echo a >>log' --check '! grep -q a $OUTAGE_ACKED || [ -s a ]'
check "ack-file: a line in it counts" test $status = 1
app data -p minimal --ack-file log --run 'echo a >a; sync a .; echo a >>log' --check '! grep -q a $OUTAGE_ACKED || [ -s a ]'
check "ack-file: and after a sync it is kept" test $status = 0
app data --ack-file nolog --run 'echo a >a' --check true
check "ack-file: one that is not written is said" grep -q nolog err
OUTAGE_ACK='' "$OUTAGE" ack x >out 2>err
check "ack: where nobody listens it fails" test $? = 2

# Each line is before the next operation: without that, an acknowledgement would be late, and losses
# go unseen.
app data -p minimal --run 'for i in 1 2 3 4 5 6 7 8; do echo $i; echo $i >f$i; done' --check 'n=$(wc -l <$OUTAGE_ACKED); i=2; while [ $i -le $n ]; do [ -e f$((i - 1)) ] || exit 1; i=$((i + 1)); done'
timeout 900 "$OUTAGE" trace show run/trace >out 2>err
check "lines are marks between the operations" \
	test "$(grep -o ' begin \| create ' out | uniq | wc -l)" = 16

# ---- patterns ----

many='for i in 1 2 3 4 5 6 7 8; do echo $i >f$i; sync f$i; mv f$i g$i; done; rm g*'
app data -p minimal --json --budget 20 --run "$many" --check true
check "patterns: a small budget covers them all" test "$(json 'd["patterns"] == d["patterns_covered"] > 5 and d["budget_hit"]')" = True
app data -p minimal --json --budget 2 --run "$many" --check true
check "patterns: one that is too small does not, and says so" test "$(json 'd["patterns"] > d["patterns_covered"] > 0')" = True

# ---- a call that is missing ----

# The removal is lost, which a sync of another directory would not mend; and what is torn no sync does.
mkdir -p data/a data/b
app data -p minimal --run ': >a/x; sync a a/x; mv a/x b/y; sync b; rm b/y; echo gone' --check '! grep -q gone $OUTAGE_ACKED || [ ! -e b/y ]'
check "missing: the directory of what was removed" said "an fsync of the directory b is missing"
check "missing: and it is verified" said "(verified: with it, no crash leaves this state)"
app data -p minimal --run 'head -c 8192 /dev/zero | tr "\\0" x >big.tmp; sync big.tmp .; cp big.tmp big; sync big .' --check 's=$(stat -c %s big 2>/dev/null || echo 0); [ $s = 0 ] || [ $s = 8192 ]'
check "missing: of what is torn, no call is" eval '[ $status = 1 ] && ! grep -q "is missing\|verified" out'
rm -rf data
mkdir data
echo old >data/settings

# ---- restart and query ----

app data -p minimal --run 'for i in 1 2; do : >f$i; sync f$i .; echo f$i; done' --query 'ls | grep ^f || :'
check "query: what was acknowledged is there" test $status = 0
app data -p minimal --run 'for i in 1 2; do : >f$i; sync f$i; echo f$i; done' --query 'ls | grep ^f || :'
check "query: or it is found" said_like "create N of f1 was not durable when 'f1' was acknowledged"
app data -p minimal --run 'rm settings; echo new >settings; sync settings .' --restart 'cat settings'
check "restart: a moment without the file is found" said "unavailable:"
app data -p minimal --run 'echo new >new; sync new; mv new settings; sync .' --restart 'grep -q . settings'
check "restart: without such a moment nothing is" test $status = 0

# What was there before may be there after a crash, although the run removes it.
fresh
echo k >data/kept
app data -p minimal --run 'rm kept; sync .; : >f1; sync f1 .; echo f1' --query 'ls | grep -v settings || :'
check "query: what the run removes may still be there" test $status = 0
app data -p minimal --run 'mv kept wrong; mv wrong f1; sync .; echo f1' --query 'ls | grep -v settings || :'
check "query: what it never shows may not" said "corruption: what is there was never written like that"
app data -p minimal --run 'echo 1 >k; sync k .; echo k=1; echo 2 >k; sync k; echo k=2' --query 'echo k=$(cat k)'
check "query: a line that changes is refused" test $status = 2
check "query: with what to do" grep -q 'must stay visible.*use --check' err
app data -p minimal --run 'for i in 1 2; do : >f$i; sync f$i; echo f$i; done' --query 'ls | grep ^f || :'
check "query: words are of the query" test "$(grep -c 'the check' out)" = 0
timeout 900 "$OUTAGE" export run/findings/0 -o exported-query >out 2>err
rm -rf rebuilt
sh exported-query/reproduce.sh rebuilt check >out 2>err
check "query: the exported script compares as we do" test $? = 1
check "query: and says what" said "does not show 'f1'"
: >rebuilt/f1
sed -n '/^\[ "${2:-}" = check/,$p' exported-query/reproduce.sh >only-check.sh
(cd rebuilt && bash -c '. ../only-check.sh' x rebuilt check) >out 2>&1
check "query: and is content with what is right" test $? = 0
app data -p minimal --run 'rm settings; echo new >settings; sync settings .' --restart 'cat settings'
timeout 900 "$OUTAGE" export run/findings/0 -o exported-restart >out 2>err
rm -rf rebuilt
sh exported-restart/reproduce.sh rebuilt check >out 2>err
check "restart: the exported script fails, too" test $? = 1
check "restart: and calls it by its name" said "the restart ended with status 1"

# The application does not start on an empty directory. That is one thing; what it lost after it
# said that it was ready is another.
rm -rf empty && mkdir empty
app empty -p minimal --run 'echo x >db; sync db; echo ready; echo y >log; sync log' --restart 'test -e db'
check "restart: the empty directory is a finding" said "as it was before the run"
check "restart: and so is what was acknowledged and lost" \
	said_like "create N of db was not durable when 'ready' was acknowledged"

# ---- replay ----

fresh
app data -p minimal --run "$dir/replace no-dir" --check "$dir/replace check"
timeout 900 "$OUTAGE" replay run >out 2>err
check "replay: the only finding of a run is taken" test $? = 1
check "replay: which is said" grep -q '^run/findings/0 shows again' out
mv data away
timeout 900 "$OUTAGE" replay run/findings/0 >out 2>err
check "replay: the directory need not be there any more" test $? = 1
mv away data
cp run/run app.kept
sed -i "s,replace check,replace check || { echo outage: corruption; exit 1; }," run/run
timeout 900 "$OUTAGE" replay --trust run/findings/0 >out 2>err
check "replay: another failure is not this one" test $? = 0
check "replay: it is told" said "another failure shows, corruption"
sed "s,$dir/replace check,exit 1," app.kept >run/run
timeout 900 "$OUTAGE" replay --trust run/findings/0 >out 2>err
check "replay: a check that fails without a crash shows nothing" test $? = 2
check "replay: which is said" grep -q 'without any crash' err

# ---- what is in flight ----

cat >sync.py <<'END'
import os, sys
f = os.open("f", os.O_RDWR | os.O_SYNC)
os.write(f, b"n" * 8192)
print("done", flush=True)
END
rm -rf two && mkdir two
head -c 8192 /dev/zero | tr '\0' o >two/f
whole='case $(tr -d n <f | wc -c) in 0|8192) exit 0;; esac; echo half; exit 1'
app two -p minimal --run "python3 '$dir/sync.py'" --check "$whole"
check "O_SYNC: a write that runs can be torn" said "write"
check "O_SYNC: and is said not to be atomic" said "is not atomic: a crash can leave 1 of its 2 parts"
app two -p minimal --run "python3 '$dir/sync.py'" --check '! grep -q done $OUTAGE_ACKED || [ $(tr -d n <f | wc -c) = 0 ]'
check "O_SYNC: but not when it has returned" test $status = 0
app two -p minimal --run 'head -c 8192 /dev/zero | tr "\0" n | dd of=f bs=8192 iflag=fullblock conv=notrunc status=none; sync f; echo done' \
	--check 'test "$(head -c 1 f)" != o || test "$(tail -c 1 f)" != n'
check "a write survives as its last page alone" said "is not atomic"
app two -p minimal --run 'echo more >>f' --check 'test -z "$(tail -c 5 f | tr -d "\0" | head -c 0)" && ! tail -c 5 f | tr "\0" Z | grep -q Z'
check "minimal: what is appended without a sync may be zeros" said "zeros instead of what was written"
app two -p ext4-ordered --run 'echo more >>f' --check '! tail -c 5 f | tr "\0" Z | grep -q Z'
check "ext4-ordered: or not" test $status = 0

# A journal is committed for new space, a size or a time; not for data in blocks that are there.
fresh
head -c 4096 /dev/zero | tr '\0' o >data/log
# over SEEK SYNC: a rename that nobody synced, a block of a log that somebody did, and then it is said
over() {
	app data -p ext4-ordered --run "echo new >tmp; sync tmp; mv tmp settings; head -c 4096 /dev/zero | tr '\0' n | dd of=log bs=4096 iflag=fullblock seek=$1 conv=notrunc,$2 status=none; echo done" \
		--check '! grep -q done $OUTAGE_ACKED || grep -q new settings'
}
over 0 fdatasync
check "fdatasync of a block that is written over: a rename goes on waiting" \
	said_like "rename N of tmp to settings was not durable when 'done' was acknowledged"
over 1 fdatasync
check "fdatasync of a new block: all that was before it is durable" test $status = 0
over 0 fsync
check "fsync of a block that is written over: the same" test $status = 0
truncate -s 8192 data/log
over 1 fdatasync
check "fdatasync of a block in a hole that was there before: the same" test $status = 0
fresh

# One call arrives in parts, and nothing can be put between these.
app two -p minimal --run 'printf 123 >>f; head -c 9000 /dev/zero | tr "\0" x | dd of=f oflag=append conv=notrunc bs=9000 iflag=fullblock status=none' \
	--check 'n=$(tr -cd x <f | wc -c); [ $n = 0 ] || [ $n = 9000 ]'
check "one call in parts is found" test $status = 1
check "and no call between these is asked for" test -z "$(grep -E 'fsync of f, after write [0-9]+ to f and before write' out)"
check "but that it is not atomic" said "one write call may arrive in parts"

# No FUSE server is told of sync and syncfs; they are seen all the same.
acked='! grep -q a $OUTAGE_ACKED || [ -s a ]'
for how in sync 'sync -f a'; do
	app two -p minimal --run "echo a >a; $how; echo a" --check "$acked"
	check "$how: is seen" test $status = 0
done
app two -p minimal --run 'sync; echo a >a; echo a' --check "$acked"
check "sync: what comes after it is not synced" test $status = 1
app two -p minimal --run "echo a >a; sync -f '$dir/err'; echo a" --check "$acked"
check "sync -f: of another file system is none of ours" test $status = 1
check "and that syncs are seen needs no word" test -z "$(grep 'not seen' out)"
mkdir inner
app two --run "'$OUTAGE' app -o '$dir/run-inner' --run 'echo x >a; sync' --check true -- '$dir/inner' >'$dir/inner.out'; echo y >y" --check true
check "where they cannot be seen, as in another run, that is told" grep -q 'sync(2) and syncfs(2) are not seen' inner.out
cat >map.py <<'END'
import mmap, os
f = os.open("f", os.O_RDWR)
m = mmap.mmap(f, 8192)
m[0:1] = b"M"
os.sync()
print("mapped", flush=True)
END
app two -p minimal --run "python3 '$dir/map.py'" --check '! grep -q mapped $OUTAGE_ACKED || [ "$(head -c 1 f)" = M ]'
check "sync: what was stored through a mapping is synced, too" test $status = 0

# ---- what is left out ----

app two -p minimal --max-subset 1 --run 'for i in 1 2 3 4 5 6; do : >a$i; done' --check '[ "$(echo a?)" != "a1 a4 a6" ]'
check "a bound on subsets leaves out" said "not tried: "
check "and then nothing is found" test $status = 0
timeout 900 "$OUTAGE" report run >out 2>err
check "which a report tells, too" said "not tried: "
app two -p minimal --run 'for i in 1 2 3 4 5 6; do : >a$i; done' --check '[ "$(echo a?)" != "a1 a4 a6" ]'
check "without it, three of six are lost" test $status = 1
check "and nothing is left out" test -z "$(grep 'not tried' out)"
app two -p lazyfs --run 'echo x >b' --restart 'test -e f'
check "the moment before the first operation is fine" test $status = 0
app two -p lazyfs --run 'echo x >b' --restart 'test -e b'
check "it is one that is tried, though that operation is durable at once" said "as it was before the run"

# Files of one name in two directories are two findings.
rm -rf dirs && mkdir -p dirs/one dirs/two
app dirs -p minimal --run 'for d in one two; do echo new >$d/x.tmp; mv $d/x.tmp $d/x; done' \
	--check 'for d in one two; do [ ! -e $d/x ] || grep -q new $d/x || exit 1; done'
check "two directories: one finding for each" test "$(grep -c ^found out)" = 2
check "two directories: the second is named" said_like "to two/x"

# A check that is not steady gives no finding that is told as sure.
app two -j 1 -p minimal --run 'echo x >u; sync u .' --check "[ -e u ] || { echo x >>'$dir/count'; [ \$((\$(wc -l <'$dir/count') % 2)) = 0 ]; }"
check "a check that fails now and then is told" test -n "$(grep -E 'shown [0-9]+ of|failed at first' out)"

# ---- runs that are none ----

refused() {
	check "$1: exit status 2" test $status = 2
	check "$1: is said" grep -q -- "$2" err
	check "$1: in one line" test "$(wc -l <err)" = 1
}
app data --run 'echo boo >&2; exit 3' --check true
refused "a run that fails by itself" "exit status 3.*boo"
app data --timeout 1s --run 'echo x >a; sleep 1000' --check true
refused "a run that does not end" "did not end within 1 s"
app data --run 'echo x >a' --check false
refused "a check that fails without a crash" "as the run left it"
app data --run 'echo x >a' --query 'date +%N'
refused "a check that is not steady" "not always"
app data --run true --check true
refused "a run that does nothing" "did nothing"
app data --run true
refused "no check" "--check"
app nosuch --run true --check true
refused "no directory" nosuch
(cd data && timeout 900 "$OUTAGE" app --run 'echo x >a' --check true -- .) >out 2>err
status=$?
refused "results inside of the directory" "give another -o"
check "results inside of the directory: nothing is made there" test "$(ls -A data)" = settings
app data --run 'echo x >a' --check true
timeout 900 "$OUTAGE" app -o run --run 'echo x >a' --check true -- data >out 2>err
status=$?
refused "results over others" "holds a run already"
# naps: no process that sleeps for as long as only this test does, or soon none
nap=1234.$$
# shellcheck disable=SC2317 # called by check
no_nap() { soon eval '! pgrep -f "sleep $nap" >/dev/null'; }
app data --run "echo x >a; (setsid sleep $nap &)" --check true
check "a process that is left is ended, and said" said "left a process behind"
check "a process that is left is gone" no_nap
app data --kill --run "echo x >a; (setsid sleep $nap &)" --check true
check "--kill: it is killed, and that is no news" test $status = 0 -a -z "$(grep behind out)"
app data --stop 'kill $(cat pid)' --run "(setsid sleep $nap & echo \$! >pid)" --check true
check "--stop: it is ended by that, and that is no news" test $status = 0 -a -z "$(grep behind out)"
app data --run "echo x >a; echo y >'$dir/outside'" --check true
check "a file that is written outside is named" said "$dir/outside"
app data --run 'echo x >a' --check 'sleep 1000' --timeout 10s
refused "a check that hangs without a crash" "as the run left it"
app data --run 'exit 1' --check true
check "of a run that failed nothing is kept" test ! -e run
check "nothing is left mounted" test -z "$(grep "$dir" /proc/mounts)"

# Killed while it records, it leaves nothing outside of its own directory.
rm -rf run
here=$(ls /tmp)
# begun FILE: it is there, or whoever would make it has ended
begun() {
	until [ -e "$1" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
}
timeout --foreground -s KILL 900 "$OUTAGE" app -o run --run ": >started; sleep $nap" --check true -- data >out 2>err &
pid=$!
begun run/work/started
check "killed: it was recording" test -e run/work/started
kill -KILL "$(pgrep -P $pid)"
wait $pid
check "killed: no process is left" no_nap
check "killed: no FIFO is left in /tmp" test -z "$(comm -13 <(echo "$here") <(ls /tmp) | grep outage-ack)"
check "killed: nothing is mounted" test -z "$(grep "$dir" /proc/mounts)"

# Whoever stops it gets his machine back.
fresh
rm -rf run
# stopped CHECK: a run that gets SIGINT when states are being checked; the first few checks are made without
# a crash, to see that it is content then
stopped() {
	rm -rf run checks
	env --default-signal=INT timeout --preserve-status -s INT 900 "$OUTAGE" app -o run -p minimal --run 'for i in 1 2 3 4 5 6; do echo $i >f$i; done' \
		--check "echo >>'$dir/checks'; $1" -- data >out 2>err &
	pid=$!
	until [ "$(wc -l 2>/dev/null <checks || echo 0)" -gt 8 ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
	kill -INT $pid
	wait $pid
}
stopped "[ \$(wc -l <'$dir/checks') -lt 9 ] || sleep $nap"
check "a signal ends it" test $? = 2
check "and it says so" grep -q 'stopped by a signal' err
check "no check is left" no_nap

stopped 'sleep 0.2'
check "a signal between checks: after how many of them is said" grep -qE 'after [0-9]+ of [0-9]+ states' err

# One that was killed is told from one that has ended.
fresh
rm -rf run
timeout --foreground -s KILL 900 "$OUTAGE" app -o run --run "echo x >a; sleep $nap" --check true -- data >out 2>err &
pid=$!
begun run/work/a
kill -KILL "$(pgrep -P $pid)"
wait $pid 2>/dev/null
check "killed again: no process is left" no_nap
timeout 900 "$OUTAGE" app -o run --run 'echo x >a' --check true -- data >out 2>err
status=$?
refused "killed while it recorded: the same -o" "not finished: remove it"
timeout 900 "$OUTAGE" report run >out 2>err
status=$?
refused "killed while it recorded: a report" "not finished"

# ---- as an ordinary user ----

if "${as_user[@]}" unshare --user true 2>/dev/null; then
	install -d -o 65534 -g 65534 user user/data
	(cd user && echo old >data/settings && chown 65534:65534 data/settings)
	for how in no-dir right; do
		(cd user && rm -rf run && "${as_user[@]}" timeout 900 "$OUTAGE" \
			app -o run -p minimal --run "$dir/replace $how" --check "$dir/replace check" -- data) >out 2>err
		check "as an ordinary user: $how" test $? = "$([ $how = right ] && echo 0 || echo 1)"
	done
else
	skip "no user namespaces for ordinary users"
fi

# ---- databases ----

if build leveldb -lleveldb; then
	rm -rf db && mkdir db
	app db --budget 400 --findings 1 --run "$dir/leveldb rotate" --check "$dir/leveldb check"
	check "LevelDB: the log that was rotated and not synced is found" \
		grep -q 'write [0-9]* to 000003.log was not ordered before the write [0-9]* to 000004.log: an fsync of 000003.log is missing' out
	check "LevelDB: it is a silent loss" said "silent-loss"
	app db -p minimal --budget 400 --run "$dir/leveldb reopen" --check "$dir/leveldb check"
	check "LevelDB: CURRENT and the old MANIFEST are found" \
		grep -q 'rename [0-9]* of 000002.dbtmp to CURRENT was not ordered before the unlink [0-9]* of MANIFEST-000001: an fsync of the directory . is missing' out
	app db --run "$dir/leveldb synced" --check "$dir/leveldb check"
	check "LevelDB: synced puts lose nothing, on ext4" test $status = 0
else
	skip "LevelDB is not installed"
fi

# sqlite PROFILE JOURNAL SYNC
sqlite() {
	rm -rf db && mkdir db && (cd db && "$dir/sqlite" make "$2") >out
	app db -p "$1" --run "$dir/sqlite insert $2 $3" --check "$dir/sqlite check"
}
if build sqlite -lsqlite3; then
	sqlite minimal delete full
	check "SQLite: the lost unlink of the journal is found" \
		grep -q "unlink [0-9]* of db-journal was not durable when '0' was acknowledged: an fsync of the directory . is missing" out
	check "SQLite: and nothing else" test "$(grep -c ^found out)" = 1
	sqlite minimal delete extra
	check "SQLite: with synchronous=EXTRA nothing is" test $status = 0
	sqlite ext4-ordered wal full
	check "SQLite: nor with a write-ahead log and synchronous=FULL" test $status = 0
	check "SQLite: mappings are said" said mappings
else
	skip "SQLite is not installed"
fi

if build lmdb -llmdb; then
	rm -rf db && mkdir db && (cd db && "$dir/lmdb" make)
	app db --run "$dir/lmdb put" --check "$dir/lmdb check"
	check "LMDB: nothing is found" test $status = 0
	app db --run "$dir/lmdb put nosync" --check "$dir/lmdb check" --findings 1
	check "LMDB: with MDB_NOSYNC it is" said "an fsync of data.mdb is missing"
else
	skip "LMDB is not installed"
fi

if command -v redis-server >/dev/null; then
	rm -rf db && mkdir db && : >db/users.acl
	app db -p minimal --run "$apps/redis.sh acl" --check "$apps/redis.sh check-acl"
	check "Redis: ACL SAVE renames what it did not sync" \
		grep -q "write [0-9]* to users.acl.tmp-[0-9-]* was not durable when 'saved' was acknowledged: an fsync of users.acl.tmp" out
	rm -rf db && mkdir db
	app db --run "$apps/redis.sh aof" --check "$apps/redis.sh check-aof"
	check "Redis: an append-only file that is synced always loses nothing" test $status = 0
else
	skip "Redis is not installed"
fi

if [ -x /usr/lib/postgresql/15/bin/initdb ]; then
	"$apps/postgres.sh" make "$dir/pg" >out 2>err
	app pg --budget 60 --run "$apps/postgres.sh insert" --check "$apps/postgres.sh check"
	check "PostgreSQL: nothing is found" test $status = 0
	check "PostgreSQL: and every pattern of operations was tried" grep -q '^\([0-9]*\) of \1 patterns of operations covered' out
else
	skip "PostgreSQL 15 is not installed"
fi

done_testing
