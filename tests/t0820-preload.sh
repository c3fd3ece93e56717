#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The library in front of libpmem: what it writes is what the program did.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
preload=$build/plugin/outage-preload.so
requires_built "$preload" "$helpers/pm-libpmem" # where libpmem is there

# traced PROGRAM ARGUMENTS: run with the library; the file is pool, and was base
traced() {
	rm -f pool stream
	truncate -s 64K pool
	cp pool base
	truncate -s 16M stream
	OUTAGE_PM_STREAM=$dir/stream PMEM_IS_PMEM_FORCE=1 LD_PRELOAD=$preload timeout 900 "$@" >out 2>err
}
trace() { timeout 900 "$helpers/pm-stream" stream base pool trace "$@" >out 2>err; }
# part TEXT: the kinds of events from one text to the next
part() {
	timeout 900 "$OUTAGE" trace show trace |
		awk -v t="$1" '$2 == "text" { on = ($3 ~ t) } on && $2 != "text" { printf "%s%s ", $2, (/ nt/ ? "-nt" : "") }'
}

check 'a program runs as before' traced "$helpers/pm-preload" pool all
check 'and its trace explains what is there' trace
check 'a store that nobody flushed is found' eval \
	"timeout 900 '$OUTAGE' trace show --kind store trace | grep -q '0x0+8'"
check 'flush, drain' test "$(part flush)" = 'store lineflush fence '
check 'deep ones' test "$(part deep)" = 'store lineflush fence store lineflush fence '
check 'msync' test "$(part msync)" = 'store lineflush fence '
check 'copies, a long one past the cache' test "$(part copy)" = \
	'store lineflush fence store-nt fence store lineflush fence '
check 'copies without a fence' test "$(part nodrain)" = \
	'store lineflush store lineflush store lineflush fence '
check 'flags' test "$(part flags | tr ' ' '\n' | uniq | tr '\n' ' ')" = 'store lineflush store-nt store '

check 'a right program' traced "$helpers/pm-libpmem" pool right
check 'is right in every state' eval \
	"trace state \"'$helpers/pm-reader' check state\" && grep -q '^0 of [1-9]' out"
check 'one that does not persist its data' traced "$helpers/pm-libpmem" pool unpersisted
check 'is not' eval "trace state \"'$helpers/pm-reader' check state >/dev/null\" && grep -q '^[1-9][0-9]* of' out"
timeout 900 "$OUTAGE" trace show trace >marks
check 'marks are there' test "$(grep -c ' begin  *op' marks) $(grep -c ' end  *op' marks)" = '4 4'

check 'threads' traced "$helpers/pm-preload" pool threads
check 'are CPUs of their own' eval "trace && test \"\$('$OUTAGE' trace show --kind fence trace |
	grep -o 'cpu [0-9]*' | sort -u | wc -l)\" -eq 4"
kinds() { "$OUTAGE" trace show trace | awk '$1 ~ /^[0-9]/ { printf "%s ", $2 }'; }
check 'a file that is mapped twice' traced env "OUTAGE_PM_FILE=pool" "$helpers/pm-preload" pool twice
check 'is one memory' eval "trace && test \"\$(kinds)\" = \
	'store lineflush fence store lineflush fence store lineflush fence '"
check 'a mapping that is cut and moved' traced "$helpers/pm-preload" pool moved
check 'is followed' eval "trace && test \"\$(kinds)\" = 'store lineflush fence '"
check 'msync and fsync' traced "$helpers/pm-preload" pool synced
check 'flush what was stored, and fence' eval "trace && test \"\$(kinds)\" = \
	'store store lineflush lineflush fence store lineflush fence '"
rm -f pool stream
truncate -s 16M stream
head -c 12M /dev/urandom >pool
cp pool base
OUTAGE_PM_STREAM=$dir/stream PMEM_IS_PMEM_FORCE=1 LD_PRELOAD=$preload timeout 900 \
	"$helpers/pm-preload" pool cold
check 'a large file, stored to without a flush' test $? -eq 0
check 'is compared as a whole, in the end' eval "trace && test \
	\"\$('$OUTAGE' trace show --kind store trace | grep -c '+8')\" -eq 6"
check 'a child that stores' traced "$helpers/pm-preload" pool fork
check 'is not followed: its store is found later, and its flush is not' eval "trace &&
	test \"\$('$OUTAGE' trace show trace | awk '\$1 ~ /^[0-9]/ { print \$2 }')\" = store"
check 'a program that leaves by _exit' traced "$helpers/pm-preload" pool exit
check 'has a trace' trace
# shellcheck disable=SC2016 # for another shell
check 'one that is killed' eval '! traced "$helpers/pm-preload" pool killed'
check 'has a trace without one' eval '! trace && grep -q "no end" err'
rm -f pool
truncate -s 64K pool
LD_PRELOAD=$preload PMEM_IS_PMEM_FORCE=1 OUTAGE_PM_STREAM=$dir/none timeout 900 \
	"$helpers/pm-preload" pool all 2>err
check 'no file for the stream: it runs, and it is said' eval "test $? -eq 0 && grep -q 'must name a file' err"
check 'nothing is asked: nothing is said' eval "LD_PRELOAD=$preload timeout 900 '$helpers/pm-preload' pool all 2>err &&
	test ! -s err"
done_testing
