#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0468-test-workers.sh - a worker of outage test that is killed is replaced, and one that does not answer is
# ended and replaced: all other workloads are done.
# takes 20 s
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_seedfs
pid=
trap '[ -z "$pid" ] || kill -KILL $pid 2>/dev/null; rm -rf "$dir"' EXIT

# A user's check: when the file "hold" is there, it waits until that is gone, once.
cat >check <<'END_CHECK'
cd "$1" || exit 9
echo >>checks
[ ! -e hold ] || [ "$(wc -l <checks)" != 2 ] || { : >held; while [ -e hold ]; do sleep 0.05; done; }
exit 0
END_CHECK
for n in 1 2 3 4; do
	printf '%s\n' "workload w$n" "creat f$n" "fsync f$n" >"w$n"
done
n=0

begin() { # NAME OPTIONS...
	local name=$1
	shift
	rm -f checks held
	: >hold
	"$OUTAGE" test -t "fuse:$seedfs mount {disk} {mnt} -f" --mkfs "$seedfs mkfs {disk}" --size 4M --json \
		--check "sh $dir/check $dir" -j 1 -o "$name" "$@" w1 w2 w3 w4 >out 2>err </dev/null &
	pid=$!
	soon eval "[ -e held ] || ! kill -0 $pid 2>/dev/null"
	worker=$(pgrep -P "$pid" | head -n 1)
}

begin killed
kill -KILL "$worker"
rm hold
check 'killed: part of the run failed' ended 2
check 'killed: which is said, with the workload' grep -q 'workload w2: the worker was ended by signal 9 (Killed) while' err
check 'killed: all others are done' json 'd["workloads"] == 3 and d["errors"] == 1 and d["findings"] == 0'
timeout 900 "$OUTAGE" test --resume killed --json -j 1 >out 2>err </dev/null
check 'killed: resumed, the run ends well' test $? = 0
check 'killed: and that one is done as well' json 'd["workloads"] == 4 and d["errors"] == 0'

stopped() {
	rm -rf stopped
	begin stopped --hang-after "${seconds}s"
	kill -STOP "$worker"
	rm hold
	ended 1 && json 'd["findings"] == 1'
}
check 'stopped: a worker that does not answer is a finding' with_time 20 stopped
check 'stopped: of one workload, and the others are done' \
	json 'd["workloads"] == 4 and d["errors"] == 0 and d["findings"] == 1'
check 'stopped: the worker is gone' test ! -e "/proc/$worker"
done_testing
