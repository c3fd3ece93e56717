#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage pm: what was told is kept, and can be replayed, whatever happens to the rest of the run.
# takes 10 s
# shellcheck disable=SC2012,SC2016,SC2317 # names are numbers; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pm-lib.sh
. "$root/tests/pm-lib.sh"
undo=$helpers/pm-undo
pid=
trap '[ -z "$pid" ] || kill -KILL $pid 2>/dev/null; chattr -R -i "$dir" 2>/dev/null; rm -rf "$dir"' EXIT
nap=5433.$$ # no other process sleeps for so long
truncate -s 64K pool
# noisy: the check succeeds on the whole run, then fails always; do.sh, if there is one, comes before that
cat >check.sh <<END
cd '$dir'
echo >>checks
[ \$(wc -l <checks) -gt 1 ] || exit 0
[ ! -e do.sh ] || . ./do.sh
echo bad
exit 1
END
noisy() {
	rm -rf checks
	pm "$1" -j 1 --max-subset 1 --budget 60 --check "sh '$dir/check.sh'" -- "$undo" pool noise
}
# replayed N: the finding shows again
replayed() {
	timeout 900 "$OUTAGE" replay "r/findings/$1" >out 2>err
	[ $? = 1 ] && grep -q 'shows again' out
}
# whole: the report tells each finding that is there, and each of them shows again
whole() {
	local one
	timeout 900 "$OUTAGE" report r >told 2>err || return 1
	for one in r/findings/[0-9]*; do
		grep -q "^ *$one: state" told && replayed "${one##*/}" || return 1
	done
}

# ---- a run that ends ----
check 'some fail' noisy 1
early=$(grep -c '^fails  at' out)
found=$(grep -c '^found' out)
check 'more fail at first than are findings in the end, which are some' test "$early" -gt "$found" -a "$found" -gt 1
check 'only these are left' test "$(ls -A r/findings | wc -l)" = "$found" -a "$(ls -d r/findings/[0-9]* | wc -l)" = "$found"
check 'with the numbers that were told' test "$(grep -c "^ *$dir/r/findings/[0-9]*$" out)" = "$found"
last=$((found - 1))
check 'the last number is the greatest' test -s r/findings/$last/case

# ---- its seed ----
timeout 900 "$OUTAGE" pm --file pool -o seeded --seed 7 --budget 5 --check true -- "$undo" pool noise >out 2>err
check 'the seed is in its plan' grep -qx 'seed 7' seeded/run
check '... and holds' eval '! timeout 900 "$OUTAGE" pm --resume seeded --seed 8 >out 2>err && complains "began with --seed 7"'

# ---- more than are kept ----
{
	printf '#include <%s>\n' fcntl.h immintrin.h sys/mman.h
	for i in $(seq 70); do
		echo "__attribute__((noinline)) static void store_$i(long *p) { p[8 * $i] = 1; }"
	done
	echo 'int main(int argc, char **argv) {'
	echo 'long *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, open(argv[argc - 1], O_RDWR), 0);'
	printf 'store_%d(p);' $(seq 70)
	echo 'p[0] = 1; for (int i = 0; i <= 70; i++) _mm_clflush(&p[8 * i]);'
	echo '_mm_sfence(); return 0; }'
} >many.c
check 'a program that takes 70 stores for durable' cc -o many many.c
# Once the first word is there, all others must be.
cat >all.sh <<'END'
[ "$(od -An -v -w64 -tu1 -N 4544 "$1" | awk '{ n += $1; if (NR == 1) first = $1 } END { print !first || n == 71 }')" = 1 ]
END
many() {
	rm -rf r
	timeout 900 "$OUTAGE" pm --file pool -o r -j 1 --max-subset 1 --check "sh '$dir/all.sh' \"\$1\"" "$@" -- ./many pool >out 2>err
}
many
check 'each of which is found' eval "test $? -eq 1 && test \$(grep -c '^found' out) -eq 70"
check 'of which 64 are kept' test "$(ls -d r/findings/[0-9]* | wc -l)" -eq 64
check 'with their places' test "$(grep -c "^ *$dir/r/findings/[0-9]*$" out)" -eq 64
check 'and it is said of the others' grep -q "^70 findings; .*; 6 of the findings not kept, the others are kept in $dir/r$" out
many --json
check 'in JSON, too' test "$(json_value '(d["findings"], d["not_kept"])')" = '(70, 6)'

# ---- the summary cannot be written ----
echo 'mkdir -p r/summary' >do.sh
check 'no summary: which is an error' noisy 2
check 'no summary: that says where the findings are' grep -q "summary.*what was found until then is in $dir/r$" err
check 'no summary: what has its name is no summary' eval "! timeout 900 '$OUTAGE' report r >out 2>err"
rm do.sh
rmdir r/summary
check 'no summary: all findings are there' test "$(ls -d r/findings/[0-9]* | wc -l)" = "$found"
check 'no summary: and of use' whole
check 'no summary: the report says so' grep -q '^not finished' told

# ---- a finding cannot be written: what has its name cannot be removed ----
: >probe
if chattr +i probe 2>/dev/null && chattr -i probe; then
	stuck=r/findings/$early/stuck
	echo "[ -e $stuck ] || { mkdir -p ${stuck%/*} && : >$stuck && chattr +i $stuck; }" >do.sh
	check 'a finding: which is an error' noisy 2
	rm do.sh
	check 'a finding: the next is kept' test -s "r/findings/$((early + 1))/case"
	check 'a finding: so is what failed first' test -s r/findings/0/case
	find r/findings -name stuck -exec chattr -i {} + # whatever its directory is called by now
	find r/findings -name stuck -delete
	check 'a finding: and all is of use' whole
else
	skip 'no file can be made immutable here'
fi

# ---- killed after the first failure was told ----
echo "[ \$(wc -l <checks) -lt 3 ] || { : >third; exec sleep $nap; }" >do.sh
rm -rf r checks
"$OUTAGE" pm --file pool -o r -j 1 --timeout 1h --check "sh '$dir/check.sh'" -- "$undo" pool noise >out 2>err &
pid=$!
soon eval "grep -q '^fails  at' out || ! kill -0 $pid 2>/dev/null"
check 'killed: a failure was told' grep -q '^fails  at .*: bad' out
soon eval "[ -e third ] || ! kill -0 $pid 2>/dev/null"
kill -KILL $pid
wait $pid 2>/dev/null
pid=
rm do.sh
check 'killed: no check is left' no_nap
check 'killed: what was told is kept' test -s r/findings/0/case -a ! -e r/findings/1
check 'killed: and of use' whole
check 'killed: the report says so' grep -q '^not finished' told
check 'killed: so does its JSON' eval "timeout 900 '$OUTAGE' report --json r | python3 -c '
import json, sys
d = json.load(sys.stdin)
sys.exit(d[\"ended\"] or len(d[\"findings\"]) != 1)'"
check 'killed: and its page' eval "timeout 900 '$OUTAGE' report --html page r && grep -q 'not finished' page"
done_testing
