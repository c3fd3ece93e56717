#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0512-explore-crash-cut.sh - what outage explore --crash-every finds is kept before it is made smaller: neither a
# signal nor a task that dies meanwhile loses it.
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cut-lib.sh
. "$root/tests/cut-lib.sh"

requires_mounts
requires_seedfs

# A server that waits for us once the file is there that hold/when names: it is started anew for each try.
cat >serve.sh <<END
#!/bin/sh
cd "$dir" || exit 1
if [ -e hold/go ]; then
	echo >>hold/after
elif [ -e "\$(cat hold/when)" ]; then
	touch hold/held
	while [ ! -e hold/go ]; do sleep 0.01; done
fi
exec "$seedfs" mount "\$1" "\$2" -f -o bug=chmod-lost
END
chmod +x serve.sh

# begin WHEN: explores until the server is held
begin() {
	rm -rf hold run && mkdir hold && echo "$1" >hold/when
	env --default-signal=INT,TERM,HUP timeout -s KILL 900 "$OUTAGE" explore -o run \
		-t "fuse:$dir/serve.sh {disk} {mnt}" --mkfs "$seedfs mkfs {disk}" --size 4M --order walk \
		--crash-every 3 --depth 20 --findings 1 >out 2>err </dev/null &
	pid=$!
	until_true test -e hold/held
}
complete() { # FINDING: it is there, and shows again
	timeout 900 "$OUTAGE" report "$1" >report.out 2>&1 || return 1
	timeout 900 "$OUTAGE" replay "$1" >replay.out 2>&1
	[ $? -eq 1 ]
}
soon_over() { [ ! -e hold/after ] || [ "$(wc -l <hold/after)" -lt 8 ]; }

check 'the first try is held' begin run/findings/1-0/case
check '... a signal is seen' eval 'kill -TERM "$(child)" && until_true stopping'
check '... and ends it' ends 2
check '... without further tries' soon_over
check '... which is said' grep -q '^shrinking was cut short for 1 finding' out
check '... of what was found' grep -q '^found  .*(shrinking was cut short)' out
check '... and kept' complete run/findings/1-0
check '... alone' test "$(ls -A run/findings)" = 1-0

check 'when it is smaller already, a try is held' begin run/whole/1-0/case
check '... what is kept is smaller than what was found' \
	test "$(operations run/findings/1-0)" -lt "$(operations run/whole/1-0)"
check '... a signal is seen' eval 'kill -INT "$(child)" && until_true stopping'
check '... and ends it' ends 2
check '... without further tries' soon_over
check '... which is said' grep -q '^shrinking was cut short for 1 finding' out
check '... the smaller one is kept' complete run/findings/1-0
check '... and what was found' complete run/whole/1-0
check '... and nothing else' test "$(ls -A run/findings)" = 1-0

check 'a task is held' begin run/whole/1-0/case
check '... and killed' eval 'kill -KILL "$(pgrep -o -P "$(child)")"'
check '... which is a failure' ends 2
check '... but what was found is told' grep -q '^found  .*the task ended while this was made smaller' out
check '... and kept' complete run/findings/1-0
check 'no device is left behind' no_orphan

done_testing
