#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0466-durable.sh - what is found is on disk when it is counted: the tested kernel may take the
# machine down a moment later.
# takes 20 s
# shellcheck disable=SC2317,SC2016 # functions are called through check; commands for other shells
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_mounts
: >out
durable=$build/tests/unit/run-durable undo=$helpers/pm-undo
requires_seedfs
requires_built "$mutant"
requires_tools strace python3
# What is traced has no use for the search for leaks, which traces as well.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

# ---- the order of calls ----

cat >order.py <<'END'
# order.py LOG RUN FINDING [NEEDED...] [-- RECORD WORD]: the files of FINDING, and those it needs, are
# synced before it is renamed to its name, its directory after that; then WORD is written to RECORD,
# which is synced. All are paths below RUN. Prints what is wrong. Of a finding that was replaced by smaller
# ones, the first is below whole/ in the end; the others are synced before they take its place, too.
import os, re, sys

log, run, finding, *needed = sys.argv[1:]
record = None
if '--' in needed:
    record, word = needed[needed.index('--') + 1:]
    needed = needed[:needed.index('--')]
run = os.path.realpath(run)
parent, name = os.path.split(os.path.join(run, finding))
events, pending = [], {}
for line in open(log, errors='replace'):
    pid, call = line.split(None, 1)
    if call.rstrip().endswith('<unfinished ...>'):
        pending[pid] = call[:call.index(' <unfinished')]
        continue
    resumed = re.match(r'<\.\.\. \w+ resumed>', call)
    if resumed:
        call = pending.pop(pid, '') + call[resumed.end():]
    m = re.match(r'(\w+)\((.*)\) += (-?\d+)', call)
    if not m or m[3].startswith('-'):
        continue
    what, args = m[1], m[2]
    paths = re.findall(r'\d+<([^>]*)>', args)
    names = re.findall(r'"((?:[^"\\]|\\.)*)"', args)
    if what == 'fsync':
        events.append(('sync', paths[0]))
    elif what.startswith('rename') and len(paths) == 2 and len(names) == 2:
        events.append(('name', os.path.join(paths[0], names[0]), os.path.join(paths[1], names[1])))
    elif what == 'write' and paths:
        events.append(('write', paths[0], names[0] if names else ''))

def after(at, what):
    for i in range(at + 1, len(events)):
        if what(events[i]):
            return i
    print(f'{sys.argv[3]}: not found after call {at}: {events[at] if at >= 0 else ""}')
    sys.exit(1)

# What was synced before it was renamed is synced under its new name.
def synced_by(end):
    synced = set()
    for e in events[:end]:
        if e[0] == 'sync':
            synced.add(e[1])
        elif e[0] == 'name' and e[1] in synced:
            synced.add(e[2])
    return synced

named = lambda e: e[0] == 'name' and e[2] == os.path.join(parent, name)
born = after(-1, named)
hidden = events[born][1]
synced = synced_by(born)
whole = os.path.join(run, 'whole', name)
first = whole if os.path.isdir(whole) else os.path.join(parent, name)
missing = [f for f in os.listdir(first) if os.path.join(hidden, f) not in synced]
missing += [f for f in needed if os.path.join(run, f) not in synced]
if hidden not in synced or missing:
    print(f'{finding}: not synced before it has its name: {missing}, {hidden in synced}')
    sys.exit(1)
for i in range(born + 1, len(events)):
    if events[i][0] == 'name' and events[i][2] in (os.path.join(parent, name), whole):
        new, synced = events[i][1], synced_by(i)
        if not os.path.basename(new).startswith('.'):
            continue # the two change places
        if new not in synced or os.path.join(new, 'case') not in synced:
            print(f'{finding}: replaced by what was not synced: {new}')
            sys.exit(1)
there = after(after(born, lambda e: e == ('sync', parent)), lambda e: e == ('sync', run))
if record:
    counted = after(-1, lambda e: e[0] == 'write' and e[1].startswith(os.path.join(run, record)) and word in e[2]) \
        if word else after(-1, lambda e: e[0] == 'name' and e[2] == os.path.join(run, record))
    if counted < there:
        print(f'{record} counts {finding} before it is on disk')
        sys.exit(1)
    if word:
        after(counted, lambda e: e[0] == 'sync' and e[1].startswith(os.path.join(run, record)))
    else:
        after(counted, lambda e: e == ('sync', run))
END
traced() { # STATUS COMMAND...: the log is in log
	local want=$1
	shift
	timeout 900 strace -f -y -q -s 200 -e trace=fsync,rename,renameat,renameat2,write -o log "$@" >out 2>err
	test $? -eq "$want"
}
order() { python3 order.py log "$@" >err || { grep -v write log | tail -n 15 >>err; return 1; }; }

printf 'workload w\ncreat foo\nwrite foo 0 64\nfsync foo\n' >w
check "a run of test" traced 1 "$OUTAGE" test -t "fuse:$seedfs mount {disk} {mnt} -f -o bug=name-new" \
	--mkfs "$seedfs mkfs {disk}" --size 4M -j 1 -o test w
check "its finding, its base image and its plan, then its record" \
	order test findings/0-0 base-0.img run -- progress found
mkdir first-run
check "a first run, where there was none" eval "(cd first-run && traced 1 '$OUTAGE' test \
	-t 'fuse:$seedfs mount {disk} {mnt} -f -o bug=name-new' --mkfs '$seedfs mkfs {disk}' --size 4M -j 1 ../w)"
check "the directory of runs is on disk before it is told" eval "awk '/fsync.*<.*first-run>/ { synced = 1 }
	/write.*found/ { exit !synced } END { exit !synced }' first-run/log"
check "made small" traced 0 "$OUTAGE" shrink test/findings/0-0 --runs 1
check "it is on disk as well" order test shrunk/0-0
explore=("$mutant" explore -t mutant:errno --order walk --limit 3000 --findings 1)
check "a run of explore" traced 1 "${explore[@]}" -o explore
check "its finding, then where it goes on" order explore findings/1-0 -- task-0.pickle ''
cp -a explore/findings/1-0 first
check "that goes on" eval "timeout 900 ${explore[*]} --resume explore >out 2>err; test -d explore/findings/2-0"
check "and has what it found before" diff -r first explore/findings/1-0
mkdir data
echo old >data/foo
check "a run of app" traced 1 "$OUTAGE" app -o app --run 'echo new >t; mv t foo' --check 'grep -q . foo' -p minimal \
	--budget 50 -- data
check "its finding, the trace and the directory before it, then its counts" \
	order app findings/0 run trace base base/foo -- summary ''
if command -v qemu-x86_64 >/dev/null && [ -x "$undo" ]; then
	check "a run of pm" traced 1 "$OUTAGE" pm --file pool --size 64K -o pm --crash recovery --recoveries 2 \
		--budget 100 --recover "$undo \"\$1\" sick" --check "$undo \"\$1\" check" -- "$undo" pool run
	check "its findings, the traces and the file before it, then its counts" order pm findings/1 run \
		base.img trace places recovery/0/trace recovery/1/base.img -- summary ''
else
	skip "no emulator, no run of pm"
fi

# ---- what crashes leave ----

# Our own way to keep findings, under every power cut: nothing that was told is lost, and nothing is
# half there.
for profile in minimal ext4-ordered; do
	rm -rf data kept && mkdir data
	check "no power cut loses what was told ($profile)" eval "timeout 900 '$OUTAGE' app -o kept \
		--run '$durable keep run' --check '$durable check run' -p $profile --budget 500 -- data >out 2>err"
done

# ---- it costs nothing where nothing is found ----

start=$SECONDS
check "a run that finds nothing" traced 0 "$OUTAGE" test -t "fuse:$seedfs mount {disk} {mnt} -f" \
	--mkfs "$seedfs mkfs {disk}" --size 4M -j 1 --bounds seq-1 --limit 40 -o healthy
synced=$(grep -c "fsync([0-9]*<$(realpath .)" log)
# What is done is synced every 5 s, and not for each workload: so many are right however long the run takes.
check "syncs its directory $synced times" test "$synced" -le $((10 + (SECONDS - start) / 5))
done_testing
