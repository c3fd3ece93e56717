#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage pm: what is easily taken for something else. A flag right behind the data that it commits is
# no part of the copy; what the kernel stores for the program is traced; a file of another file system
# with the same number is another file; a stack in persistent memory is told of.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pm-lib.sh
. "$root/tests/pm-lib.sh"
edges=$helpers/pm-edges

# edge STATUS WHAT OPTIONS...: the program's status; what it found is kept in r
edge() { pm_anew "$1" --check "'$edges' check \"\$1\" $2" "${@:3}" -- "$edges" pool "$2"; }

# ---- a flag behind its data ----
check 'a record and its flag, with a fence between them' edge 0 fenced
check 'without one' edge 1 flag
check 'only flushed' edge 1 flushed
check 'the record is what got lost' eval "timeout 900 '$OUTAGE' report r >out && grep -q '^lost .* in record, ' out"
check 'call stacks do not change that' edge 1 flushed --stacks

# ---- what the kernel stores ----
for what in read readv recvmsg getrandom; do
	check "$what: data that the kernel stored is there before its flag" edge 0 "$what"
	# 8 bytes at 64 twice, and the flag between them. A random byte may be what was there before, and
	# at either end it is then no part of the store.
	first='0x40[+]8'
	[ "$what" != getrandom ] || first='0x4[0-7][+][1-8]'
	check "$what: as a store of its own" grep -qE "^$first 0x0[+]8 0x40[+]8 $" <<<"$(timeout 900 \
		"$OUTAGE" trace show r/trace | awk '$2 == "store" { printf "%s ", $3 }')"
done

# ---- the same number on another file system ----
two_files() {
	mkdir -p a b
	unshare -m sh -c "mount -t tmpfs none a && mount -t tmpfs none b &&
		truncate -s 64K a/pool && truncate -s 64K b/pool &&
		test \$(stat -c %i a/pool) = \$(stat -c %i b/pool) || exit 9
		timeout 900 '$OUTAGE' pm --file a/pool -o r2 --check true -- '$edges' a/pool other b/pool" \
		>out 2>err
}
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	rm -rf r2
	check 'a file of the same number elsewhere is not traced' two_files
	check 'only the right one' test "$(timeout 900 "$OUTAGE" trace show r2/trace |
		awk '$2 == "store" { printf "%s ", $3 }')" = '0x0+8 0x80+8 '
else
	skip 'file systems are mounted by root'
fi

# ---- a stack there ----
check 'a stack in persistent memory is an error' edge 2 stack
check 'that says so' grep -q "stack is in the persistent memory" err

done_testing
