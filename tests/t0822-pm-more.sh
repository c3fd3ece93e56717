#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage pm: other ways to trace, to crash and to prune.
# shellcheck disable=SC2016,SC2317 # $1 is for the check; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
helpers=$(dirname "$OUTAGE")/tests/helpers
good="'$helpers/pm-reader' check \"\$1\""
show="'$helpers/pm-reader' dump \"\$1\""
if ! command -v qemu-x86_64 >/dev/null; then
	echo '1..0 # SKIP there is no qemu-x86_64'
	exit 77
fi

# pm STATUS OPTIONS...: the program's status; what it found is kept in r
pm() {
	local want=$1
	shift
	rm -rf r
	timeout 300 "$OUTAGE" pm --file pool -j 2 -o r "$@" >out 2>err
	[ $? -eq "$want" ]
}
pool() {
	rm -f pool
	truncate -s 64K pool
}
says() { grep -q -e "$1" err; }
fails() { # WORDS OPTIONS...
	local words=$1
	shift
	pm 2 "$@" && says "$words" && test "$(wc -l <err)" -eq 1 && test ! -e r
}
json() { python3 -c 'import json, sys; print(json.load(open("out"))[sys.argv[1]])' "$1"; }

# ---- without an emulator ----
pool
if [ -x "$helpers/pm-libpmem" ]; then
	libpmem=$helpers/pm-libpmem
	check 'preload: right' pm 0 --tracer preload --check "$good" -- "$libpmem" pool right
	check 'what it cannot see is said' grep -q '^traced by calls of libpmem' out
	check 'preload: not persisted' pm 1 --tracer preload --check "$good" -- "$libpmem" pool unpersisted
	check 'the call is named' eval "timeout 60 '$OUTAGE' report r >out &&
		grep -q '^lost .*, made at 0x.*(pm-libpmem.c:[0-9]* in main)' out"
	check 'replay' eval "timeout 60 '$OUTAGE' replay r/findings/0 >out; test \$? -eq 1"
	check 'all combinations of a line: still right' pm 0 --tracer preload --granularity 8 \
		--check "$good" -- "$libpmem" pool right
	check 'dumps' pm 0 --tracer preload --dump "$show" -- "$libpmem" pool right
	check 'a script that starts it' pm 1 --tracer preload --check "$good" -- \
		sh -c "'$libpmem' pool unpersisted"
	check 'JSON says how' eval "pm 0 --json --tracer preload --check true -- $libpmem pool right &&
		test \"\$(json tracer)\" = preload"
	check 'no emulator is needed' pm 0 --tracer preload --qemu /nothing --check "$good" -- \
		"$libpmem" pool right
	check 'a program without libpmem, which maps' pm 0 --tracer preload --check true -- \
		"$helpers/pm-writer" pool synced
	check 'is traced by its system calls' test "$(timeout 60 "$OUTAGE" trace show r/trace |
		awk '$1 ~ /^[0-9]+$/ { printf "%s ", $2 }')" = 'store store lineflush fence store lineflush lineflush fence '
	check 'one that does not' fails 'where the library could see it' --tracer preload --check true -- true
	check 'one that is killed' fails 'ended by signal 9' --tracer preload --check true -- \
		"$helpers/pm-preload" pool killed
	check 'one that hangs' fails 'did not end within 2 s; --timeout' --tracer preload --timeout 2s \
		--check true -- sleep 100
else
	skip 'libpmem is not there'
fi
check 'no such tracer' eval "pm 2 --tracer gdb --check true -- true && says 'qemu or preload'"

# ---- where it was ----
pool
check 'a store is named by its line' eval "pm 1 --check \"\$good\" -- '$helpers/pm-writer' pool late &&
	timeout 60 '$OUTAGE' report r >out && grep -q '^lost .*(pm-writer.c:[0-9]* in fill' out"
check 'and what flushed it too late' grep -q 'flushed only by event .*pm-writer.c:[0-9]* in persist' out
check 'or never' eval "pm 1 --check \"\$good\" -- '$helpers/pm-writer' pool unflushed &&
	timeout 60 '$OUTAGE' report r >out && grep -q 'its line is never flushed' out"
printf 'zz\n' >r/places
timeout 60 "$OUTAGE" replay r/findings/0 >out 2>err
check 'damaged names are told' eval "test $? -eq 2 && says 'places is damaged'"
rm r/places
check 'and not needed' eval "timeout 60 '$OUTAGE' replay r/findings/0 >out; test \$? -eq 1"
done_testing
