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
	check '... which is a failure' ended 2
	sed -i '/^outage: the time is up/d' err
	check '... and says what to do' fails_with 'nothing was tried: the time was up before the first operation; give more --time'
done
check '... in JSON, too' json 'd["errors"] == 1 and d["operations"] == 0'
check 'explore: while the target comes up' explore open
check '... a signal comes' eval 'kill -TERM "$(pgrep -P "$pid")" && while_alive "$pid" grep -q "^outage: stopping" err'
touch hold/go
check '... which is a failure' ended 2
check '... and is said' grep -q '^outage: nothing was tried: a signal came before the first operation' err
check 'what was searched to its end' eval 'timeout 900 "$OUTAGE" explore -t reffs --alphabet 12 --depth 2 -o all >out 2>err'
check '... has nothing left to try, and that is no failure' \
	eval 'timeout 900 "$OUTAGE" explore -t reffs --alphabet 12 --depth 2 --resume all >out 2>err'
check '... as all was seen' grep -q '^every state within the bounds was visited' out

# ---- the clock ----

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
# late SECONDS: both commands, whose targets come up when that time is over. True if both got something
# done, for which they have as long.
late() {
	explore open --time "$1s" --limit 1000 || return 1
	local exploring=$pid ok=0
	mv hold hold.explore && ln -s hold.explore hold
	mv out out.explore
	if [ -n "$can_seed" ]; then
		rm -rf made late && mkdir made
		export OUTAGE_CACHE=$dir/cache-$1
		begin --bounds seq-1 --limit 2 --time "$1s" --json -o late
		while_alive "$pid" held made || ok=1
	fi
	sleep $(($1 + 1))
	touch hold.explore/go made/go
	ended 0 "$exploring" || ok=1
	grep -q '^mutant: [1-9][0-9]* operations' out.explore || ok=1
	rm -rf hold hold.explore
	[ -n "$can_seed" ] || return "$ok"
	ended 0 && json 'd["workloads"] > 0 and d["crash_states"] > 0' && return "$ok"
}
# A few milliseconds' work: on a busy machine it is tried again with more time, and the last is a limit for hangs.
late_once() { late 4 || late 16 || late 64 || late 256; }
check "explore, test: the clock of --time begins when the target is up" late_once
if [ -n "$can_seed" ]; then
	# ---- test ----

	rm -rf made && mkdir made
	export OUTAGE_CACHE=$dir/cache2
	begin --bounds seq-1 --limit 2 --json -o stopped
	check 'test: while the target comes up' while_alive "$pid" held made
	check '... a signal comes' eval 'kill -TERM "$(pgrep -P "$pid")" && while_alive "$pid" grep -q "^outage: stopping" err'
	touch made/go
	check '... which is a failure' ended 2
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
	printf 'workload w\nunlink gone\nrmdir gone\nfsync gone\nsync\n' >refused
	whole refused -o refused-run
	check 'test: every operation is refused: a failure' test $? -eq 2
	check '... which is said' fails_with 'nothing was tried: the file system refused all 3 operations'
	# Run again, a workload that comes to no crash has not mended what was lost in one.
	printf 'workload w\ncreat foo\nwrite foo 0 64\nfsync foo\n' >lost
	(cd . && timeout 900 "$OUTAGE" test -t "fuse:$seedfs mount {disk} {mnt} -f -o bug=name-new" --mkfs "$seedfs mkfs {disk}" \
		--size 4M -j 1 -o lost-run lost) >out 2>err
	check 'replay: a finding' test $? -eq 1
	check '... that shows' eval 'timeout 900 "$OUTAGE" replay lost-run/findings/0-0 --rerun >out 2>err; test $? = 1'
	sed -i '/^fsync/d' lost-run/findings/0-0/workload
	for json in '' --json; do
		# shellcheck disable=SC2086 # nothing, or one option
		check "replay $json: without a crash: a failure" \
			eval 'timeout 900 "$OUTAGE" replay lost-run/findings/0-0 --rerun --trust $json >out 2>err; test $? = 2'
		check '... which is said' fails_with 'nothing was tried: the workload of lost-run/findings/0-0 ran to no crash point'
		check '... and not that it is mended' eval '! grep "does not show" out'
	done
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
