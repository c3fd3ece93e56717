#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is in flight when the power fails: parts of a call, data without its journal, what no FUSE server is
# told of; and what is left out.
# shellcheck disable=SC2016,SC2317 # commands for other shells; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/app-lib.sh
. "$root/tests/app-lib.sh"

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

done_testing
