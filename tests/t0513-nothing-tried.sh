#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0513-nothing-tried.sh - a run that tried nothing is a failure, in every command that searches, and never looks
# like one that found nothing; and the clock of --time begins when the target is up.
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# fails_with WORDS: one sentence of the program, and no word of that all is well
fails_with() { [ "$(grep -c '^outage: ' err)" = 1 ] && grep -q "^outage: $1" err && ! grep -q 'nothing found$\|no difference found$' out; }
held() { [ -n "$(find "$1" -name 'held*')" ]; }
ended() { # PID STATUS
	wait "$1"
	local got=$?
	[ "$got" -eq "$2" ] || { echo "# status $got, not $2"; return 1; }
}

# ---- explore ----

# explore AT ARGS...: until the mutant is held there; see tests/mutant/mutant.c
explore() {
	local at=$1
	shift
	rm -rf hold run && mkdir hold
	OUTAGE_HOLD=$dir/hold OUTAGE_HOLD_AT=$at env --default-signal=TERM timeout -s KILL 900 "$mutant" -v explore \
		-t mutant --order walk -o run "$@" >out 2>err </dev/null &
	pid=$!
	while_alive "$pid" held hold
}
for json in '' --json; do
	# shellcheck disable=SC2086 # nothing, or one option
	check "explore $json: before the first operation" explore start --time 100ms $json
	check '... the time is up' while_alive "$pid" grep -q 'the time is up' err
	touch hold/go
	check '... which is a failure' ended "$pid" 2
	sed -i '/^outage: the time is up/d' err
	check '... and says what to do' fails_with 'nothing was tried: the time was up before the first operation; give more --time'
done
check '... in JSON, too' json 'd["errors"] == 1 and d["operations"] == 0'
check 'explore: while the target comes up' explore open
check '... a signal comes' eval 'kill -TERM "$(pgrep -P "$pid")" && while_alive "$pid" grep -q "^outage: stopping" err'
touch hold/go
check '... which is a failure' ended "$pid" 2
check '... and is said' grep -q '^outage: nothing was tried: a signal came before the first operation' err
check 'what was searched to its end' eval 'timeout 900 "$OUTAGE" explore -t reffs --alphabet 12 --depth 2 -o all >out 2>err'
check '... has nothing left to try, and that is no failure' \
	eval 'timeout 900 "$OUTAGE" explore -t reffs --alphabet 12 --depth 2 --resume all >out 2>err'
check '... as all was seen' grep -q '^every state within the bounds was visited' out

# ---- the clock ----

check 'explore: the target comes up late' explore open --time 15s --limit 1000
late=$pid
mv hold hold.explore && ln -s hold.explore hold
mv out out.explore
# A file system whose mkfs waits for us.
cat >mkfs.sh <<END
#!/bin/sh
touch "$dir/made/held"
while [ ! -e "$dir/made/go" ]; do sleep 0.01; done
exec "$seedfs" mkfs "\$1"
END
chmod +x mkfs.sh
mkdir made
can_seed=
if [ "$(id -u)" = 0 ] && [ -x "$seedfs" ] && [ -e /dev/fuse ]; then can_seed=1; fi
# begin ARGS...: outage test of seedfs; whole ARGS...: to its end
begin() {
	env --default-signal=TERM timeout -s KILL 900 "$OUTAGE" test -t "fuse:$seedfs mount {disk} {mnt} -f" --size 4M -j 1 \
		--mkfs "$dir/mkfs.sh {disk}" "$@" >out 2>err </dev/null &
	pid=$!
}
whole() { begin "$@" && wait "$pid"; }
if [ -n "$can_seed" ]; then
	begin --bounds seq-1 --limit 2 --time 15s --json -o late
	check 'test: the target comes up late' while_alive "$pid" held made
fi
sleep 16 # the time of both is up, if it has begun
touch hold.explore/go made/go
check 'explore: it searches all the same' ended "$late" 0
check '... for as long as it should' grep -q '^mutant: [1-9][0-9]* operations' out.explore
if [ -n "$can_seed" ]; then
	check 'test: it runs all the same' ended "$pid" 0
	check "... and gets something done" json 'd["workloads"] > 0 and d["crash_states"] > 0'

	# ---- test ----

	rm -rf made && mkdir made
	export OUTAGE_CACHE=$dir/cache2
	begin --bounds seq-1 --limit 2 --json -o stopped
	check 'test: while the target comes up' while_alive "$pid" held made
	check '... a signal comes' eval 'kill -TERM "$(pgrep -P "$pid")" && while_alive "$pid" grep -q "^outage: stopping" err'
	touch made/go
	check '... which is a failure' ended "$pid" 2
	check '... and is said' grep -q '^outage: nothing was tried: a signal came before the first workload' err
	check '... in JSON, too' json 'd["errors"] == 1 and d["workloads"] == 0'
	printf 'creat foo\nwrite foo 0 8192\n' >unsynced
	for mode in persist last; do
		whole --crash $mode unsynced -o $mode
		check "test: no persistence point, $mode: a failure" test $? -eq 2
		check '... with what was done, and what to do' fails_with \
			'no crash state was tried: 1 workload was run, without a crash, and none has a persistence point; add an fsync'
	done
	whole unsynced --json -o no-point
	check '... in JSON, too' json 'd["errors"] == 1 and d["workloads"] == 1 and d["crash_states"] == 0'
	whole --resume no-point
	check '... also when all is done' fails_with 'no crash state was tried'
	check 'explore --crash-every: no crash' eval '! timeout 900 "$OUTAGE" explore -t "fuse:$seedfs mount {disk} {mnt} -f" \
		--mkfs "$dir/mkfs.sh {disk}" --size 4M --order walk --crash-every 1000 --limit 20 -o uncrashed >out 2>err'
	check '... is a failure' fails_with 'no crash was tried: too few steps made something durable; give a larger --limit'
else
	skip 'seedfs cannot be mounted'
fi

# ---- app, pm ----

if [ "$(id -u)" = 0 ] && [ -e /dev/fuse ]; then
	mkdir data
	for json in '' --json; do
		# shellcheck disable=SC2086 # nothing, or one option
		timeout 900 "$OUTAGE" app --time 1ns --run 'echo x >file' --check true $json -o "app$json" -- data >out 2>err
		check "app $json: no time for a check is a failure" test $? -eq 2
		check '... and says what to do' fails_with 'nothing was tried: the time was up before the first crash state'
	done
	check '... in JSON, too' json 'd["errors"] == 1 and d["checked"] == 0'
else
	skip 'app needs root and FUSE'
fi
if command -v qemu-x86_64 >/dev/null && has_namespaces; then
	truncate -s 64K pool
	for json in '' --json; do
		# shellcheck disable=SC2086 # nothing, or one option
		timeout 900 "$OUTAGE" pm --time 1ns --file pool --check true $json -o "pm$json" -- "$helpers/pm-writer" pool synced >out 2>err
		check "pm $json: no time for a check is a failure" test $? -eq 2
		check '... and says what to do' fails_with 'nothing was tried: the time was up before the first crash state'
	done
	check '... in JSON, too' json 'd["errors"] == 1 and d["checked"] == 0'
else
	skip 'there is no qemu-x86_64, or no user namespace'
fi

done_testing
