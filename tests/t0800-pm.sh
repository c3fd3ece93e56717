#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage pm: programs on persistent memory with known mistakes, and what becomes of bad ones.
# shellcheck disable=SC2016,SC2317 # $1 is for the check; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pm-lib.sh
. "$root/tests/pm-lib.sh"
writer=$helpers/pm-writer

# kinds FILTER: the kinds of events in the trace, joined
kinds() { timeout 900 "$OUTAGE" trace show r/trace | awk -v f="${1:-.}" '$1 ~ /^[0-9]+$/ && $0 ~ f { printf "%s ", $2 }'; }

# ---- right and wrong programs ----
pool
check 'a right program is found to be right' pm 0 --check "$good" -- "$writer" pool right
check 'which is said' grep -q '^nothing found' out
before=$(cksum <pool)
for bug in unflushed late; do
	check "data that is $bug is found" pm 1 --check "$good" -- "$writer" pool $bug
	check 'as lost stores' grep -q '^found  fails if 1 store is lost' out
done
check 'a flag that is never flushed is found' pm 1 --check "$good" -- "$writer" pool lost
check 'as a lost record' grep -q 'is lost' r/findings/0/said
check 'what no flush would mend is found' pm 1 --check "$good" -- "$writer" pool logic
check 'and told apart' grep -q 'although nothing is lost: no flush or fence would help' out
check 'with caches that persist, late data is no mistake' pm 0 --eadr --check "$good" -- \
	"$writer" pool late
check 'which is a model' pm 0 --model pm-eadr --check "$good" -- "$writer" pool late
check 'and the usual one finds it' pm 1 --model pm --check "$good" -- "$writer" pool late
check 'the model of a disk is refused' pm 2 --model block --check "$good" -- "$writer" pool late
check 'each store on its own: still right' pm 0 --split --granularity 8 --check "$good" -- \
	"$writer" pool right
check 'the file itself is as it was' test "$(cksum <pool)" = "$before"

# ---- findings ----
pm 1 --check "$good" -- "$writer" pool late
check 'report has the store and where it was made' eval \
	"timeout 900 '$OUTAGE' report r >out && grep -q '^lost .*store of 8 bytes at .*, made at 0x' out"
check 'report in JSON' eval "timeout 900 '$OUTAGE' report --json r >out && value findings >o2 &&
	grep -q 'is not whole' o2"
check 'a page' timeout 900 "$OUTAGE" report r --html page.html
check 'has the store that is lost, the crash, and what comes later' eval \
	"grep -q 'class=\"lost\"><td>lost</td>.*store of 8 bytes at' page.html &&
	grep -q 'the power fails here' page.html && grep -q 'class=\"later\"' page.html"
check 'a page of one finding' timeout 900 "$OUTAGE" report r/findings/0 --html page.html
check 'export' timeout 900 "$OUTAGE" export r/findings/0 -o exported
check 'of a run it is that of its only finding' eval "timeout 900 '$OUTAGE' export r -o exported2 &&
	cmp exported/reproduce.sh exported2/reproduce.sh"
sh exported/reproduce.sh crashed check >out 2>err
check 'the script shows it without us' eval "test $? -ne 0 && grep -q '^it shows' out"
check 'on a file as long as the pool' test "$(stat -c %s crashed)" = "$(stat -c %s pool)"
sh exported/reproduce.sh crashed check >out 2>err
check 'a file that is there stays as it is' eval "test $? -eq 2 && complains 'is there already'"
sed 's/ sh -c .* sh "\$OUTAGE_FILE"/ true/' exported/reproduce.sh >mended.sh
sh mended.sh crashed2 check >out 2>err
check 'and it does not show with a check that is content' eval "test $? -eq 0 && grep -q 'does not show' out"
check 'shrink' timeout 900 "$OUTAGE" shrink r/findings/0
check 'keeps it below its run' test -f r/shrunk/0/case
timeout 900 "$OUTAGE" replay r/shrunk/0 >out 2>err
check 'where it can be replayed' test $? -eq 1
check 'another time it is not replaced' eval "! timeout 900 '$OUTAGE' shrink r/findings/0 2>err &&
	complains 'holds a finding already'"
check 'nor put where its run is not' eval "! timeout 900 '$OUTAGE' shrink r/findings/0 -o alone 2>err &&
	complains 'needs its run'"
# One that loses all of a record, and not the flag behind it: of its stores one is enough.
point=$(sed -n 's/^point //p' r/findings/0/case)
cp -r r/findings/0 r/findings/1
sed -i "s/^state .*/state 4.$point.8/" r/findings/1/case
check 'more is lost than need be' timeout 900 "$OUTAGE" shrink --trust --json r/findings/1
timeout 900 "$OUTAGE" shrink --trust --force --json r/findings/1 >out
check 'and is given back' eval 'test "$(value lost)" -eq 1 && test "$(value lost_before)" -ge 8'
rm -r r/findings/1
timeout 900 "$OUTAGE" replay r/findings/0 >out 2>err
check 'replay shows it again' test $? -eq 1
mv pool kept
timeout 900 "$OUTAGE" replay r/findings/0 >out 2>err
check 'without the file, too' test $? -eq 1
check 'and leaves none behind' test ! -e pool
mv kept pool
sed -i 's/^check .*/check true/' r/run
timeout 900 "$OUTAGE" replay --trust r/findings/0 >out 2>err
check 'and not, once it is mended' test $? -eq 0
check 'JSON says it all' pm 1 --json --check "$good" -- "$writer" pool late
check 'with its keys' eval 'for k in operations crash_states unique_states checked findings errors \
	elapsed_s budget_hit; do value $k >/dev/null || exit 1; done'
check 'and numbers' test "$(value findings) $(value errors) $(value budget_hit)" = '1 0 False'
check 'a budget is kept, and told' eval "pm 0 --json --budget 3 --check true -- $writer pool right &&
	test \"\$(value checked) \$(value budget_hit)\" = '3 True'"

# ---- states that are printed ----
check 'dumps of a right program are single and atomic' pm 0 --dump "$show" -- "$writer" pool right
check 'of a late one, not atomic' eval "pm 1 --dump \"\$show\" -- $writer pool late &&
	grep -q not-atomic out"
check 'which may be promised less' pm 0 --promise none --dump "$show" -- "$writer" pool late
check 'of one that is never flushed, not single' eval "pm 1 --promise sync --dump \"\$show\" -- \
	$writer pool lost && grep -q not-single out"
check 'and replayed' eval "timeout 900 '$OUTAGE' replay r/findings/0 >out; test \$? -eq 1"
check 'without marks there are no operations' eval "pm 2 --dump true -- $writer pool synced &&
	complains 'has no marks'"

# ---- libpmem ----
if [ -x "$helpers/pm-libpmem" ]; then
	check 'libpmem: right' pm 0 --check "$good" -- "$helpers/pm-libpmem" pool right
	check 'libpmem: not persisted' pm 1 --check "$good" -- "$helpers/pm-libpmem" pool unpersisted
else
	skip 'libpmem is not there'
fi

# ---- how memory is used ----
check 'threads, which race' pm 0 --check true --budget 2 -- "$writer" pool threads
check 'are CPUs of their own' test "$(timeout 900 "$OUTAGE" trace show --kind fence r/trace |
	grep -o 'cpu [0-9]*' | sort -u | wc -l)" -ge 4
check 'forked processes' pm 0 --check true --budget 2 -- "$writer" pool fork
check 'as well' test "$(timeout 900 "$OUTAGE" trace show --kind store r/trace |
	grep -o 'cpu [0-9]*' | sort -u | wc -l)" -eq 5
check 'mapped twice, moved, cut, mapped over' pm 0 --check true -- "$writer" pool remap
check 'each store where it belongs' test "$(timeout 900 "$OUTAGE" trace show --kind store r/trace |
	grep -o '0x[0-9a-f]*+8' | tr '\n' ' ')" = '0x10+8 0x18+8 0x2008+8 0x28+8 0x12c0+8 '
check 'msync and fsync flush what was stored' pm 0 --check true -- "$writer" pool synced
check 'line by line, and fence' test "$(kinds)" = \
	'store store lineflush fence store lineflush lineflush fence '
check 'vectors' pm 0 --check true -- "$writer" pool vectors
check 'are stores, some of them past the cache' test "$(kinds " nt "; kinds)" = \
	'store store store store store store fence '
check 'instructions that store many bytes' pm 0 --json --check true -- "$writer" pool strings
check 'are one store for each word' test "$(timeout 900 "$OUTAGE" trace show --kind store r/trace |
	grep -o '0x[0-9a-f]*+[0-9]*' | tr '\n' ' ')" = "0x2+6 $(for i in {1..11}; do printf '0x%x+8 ' $((i * 8)); done)0x60+6 $(
	for i in {0..5}; do printf '0x%x+8 ' $((256 + i * 8)); done)"
check 'and so leave few states' test "$(value unique_states)" -le 378
check 'a program that another one starts' pm 0 --check true -- "$writer" pool start true

# ---- files ----
rm -f pool
check 'a file that the program makes' pm 0 --check "$good" -- "$writer" pool make
check 'is gone afterwards' test ! -e pool
check 'one that is made for it' pm 0 --size 64K --check "$good" -- "$writer" pool right
check 'is, too' test ! -e pool
pool
mv pool 'po,ol x'
check 'a name with a comma and a blank' eval "timeout 900 '$OUTAGE' pm --file 'po,ol x' \
	--check \"\$good\" -o r2 -- $writer 'po,ol x' late >out 2>err; test \$? -eq 1"
pool

# ---- what cannot be ----
check 'not mapped' pm_refused 'did not map' --check true -- "$writer" pool unmapped
check 'not mapped shared' pm_refused 'stored nothing' --check true -- "$writer" pool private
check 'nothing stored' pm_refused 'stored nothing' --check true -- "$writer" pool nothing
check 'it fails' pm_refused 'failed with status 5.*no luck today' --check true -- "$writer" pool fail
check 'a shell that the PATH has is told of, too' pm_refused 'sh failed with status 3.*no luck' --check true -- \
	sh -c 'echo no luck >&2; exit 3'
check 'it dies' pm_refused 'ended by signal 6' --check true -- "$writer" pool die
check 'it hangs' pm_refused 'did not end within 3 s' --timeout 3s --check true -- "$writer" pool hang
check 'a child of it is killed' pm_refused 'trace has no end' --check true -- "$writer" pool killed-child
check 'the file is written to by other means' pm_refused 'byte at 100 was changed' --check true -- \
	"$writer" pool write
check 'also by a program that was started' pm_refused 'was changed by something' --check true -- \
	"$writer" pool start 'printf x | dd of=pool bs=1 seek=300 conv=notrunc 2>/dev/null'
check 'the trace gets too long' pm_refused 'longer than 65536 bytes' --trace-limit 64K --check true -- \
	"$writer" pool many
check 'the check fails anyway' pm_refused 'without any crash: mend that first' --check false -- \
	"$writer" pool right
check 'no such program' pm_refused 'no program ./nothing' --check true -- ./nothing
check 'no such emulator' pm_refused 'no program ./qemu' --qemu ./qemu --check true -- true
check 'an emulator that is none' pm_refused 'does not say which version' --qemu /bin/true --check true -- \
	true
mkdir bin
ln -s "$(command -v sh)" bin/sh
(
	PATH=$dir/bin
	"$OUTAGE" pm --file pool --check true -o r -- /bin/true >out 2>err
)
check 'no emulator at all' test $? -eq 2
check 'what to install' complains 'apt-get install qemu-user'
printf '#!/bin/sh\n[ "$1" = --version ] && echo "qemu-x86_64 version 7.2.0" && exit\necho "no plugin"; exit 1\n' >q
chmod +x q
check 'an emulator without plugins' pm_refused 'cannot load the tracer' --qemu ./q --check true -- true
printf '#!/bin/sh\n[ "$1" = --version ] && echo "qemu-x86_64 version 7.2.0" && exit\nexec qemu-x86_64 -cpu max "$6" "$7"\n' >q
check 'one that traces nothing' eval "pm 2 --qemu ./q --check true -- true && test ! -e r"
printf '#!/bin/sh\n[ "$1" = --version ] && echo "qemu-x86_64 version 7.2.0" && exit\n%s\n' \
	'p=${4%,region*},region=user:/dev/null; exec qemu-x86_64 -cpu max -plugin "$p" "$5" "$6"' >q
check 'one that traces something else' pm_refused "tracer's test failed" --qemu ./q --check true -- true
check 'a command line without a check' eval "pm 2 -- true && complains 'give one of --check and --dump'"
check 'or without a program' eval "pm 2 --check true && complains 'give a program'"
check 'a directory' eval "timeout 900 '$OUTAGE' pm --file . --check true -- true 2>err; test \$? -eq 2 &&
	complains 'no regular file'"

# ---- marks by hand ----
check 'marks do nothing here' eval "'$OUTAGE' mark begin 1 && '$OUTAGE' mark end 1 &&
	'$OUTAGE' mark text a b"
check 'and want a number' eval "! '$OUTAGE' mark begin x 2>err && complains 'no number'"
check 'nothing is mounted, nothing left' eval '! grep -q outage-pm /proc/mounts'
done_testing
