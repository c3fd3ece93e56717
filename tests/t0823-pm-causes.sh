#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage pm: the class of a mistake, how many findings it makes, and what is left out.
# takes 52 s
# shellcheck disable=SC2016,SC2317 # $1 is for the check; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pm-lib.sh
. "$root/tests/pm-lib.sh"
causes=$helpers/pm-causes
truncate -s 2M pool

# caused STATUS HOW WHAT OPTIONS...: HOW is check or dump; what it found is kept in r
caused() { pm "$1" "--$2" "'$causes' \"\$1\" $2 $3" "${@:4}" -- "$causes" pool run "$3"; }
findings() { grep -c '^found' out; }
# classes: of each finding, one letter line
classes() { timeout 900 "$OUTAGE" report --json r | python3 -c '
import json, sys
print(" ".join(f["class"] for f in json.load(sys.stdin)["findings"]))'; }

# ---- classes ----
for how in check dump; do
	check "$how: two stores that must come together are found" caused 1 $how pair
	check 'as a mistake of logic, and once' test "$(classes)" = logic
	check 'nothing is said to be missing, or lost' eval "! grep -q 'missing\\|; event .* got lost' out"
	check 'the example lost nothing' grep -q '^state.1\.[0-9]*$' r/findings/0/case
	check 'which is replayed' eval "timeout 900 '$OUTAGE' replay r/findings/0 >o2; test \$? -eq 1"
	check 'one store of 8 bytes is fine' caused 0 $how word
	check "$how: one instruction across two lines is found" caused 1 $how cross
	check 'as tearing, and once' test "$(classes)" = tearing
	check 'nothing is said to be missing' eval "! grep -q 'is missing\\|are missing' out"
done
for how in check dump; do
	check "$how: a right log is fine" caused 0 $how log
	check "$how: a log without a fence is found" caused 1 $how unfenced
	check 'as ordering, and once' test "$(classes)" = ordering
	check 'a fence is missing, and no flush' eval "grep -q 'ordering: a fence is missing' out &&
		! grep -q 'a flush' out"
	check 'with what came too early' eval "timeout 900 '$OUTAGE' report r >o2 &&
		grep -q 'is flushed by event .*but there is no fence before event .*the next is event' o2"
	check "$how: a log without a flush is found" caused 1 $how unflushed --max-subset 1
	check 'as ordering, and once' test "$(classes)" = ordering
	check 'a flush is missing, and no fence' eval "grep -q 'ordering: a flush is missing' out &&
		! grep -q 'a fence' out"
	check 'which is printed with its line' grep -q 'its line is never flushed afterwards' out
	check "$how: a log with neither" caused 1 $how both --max-subset 1
	check 'is told so' grep -q 'ordering: a flush and a fence are missing' out
done
caused 1 check unfenced
check 'the words of the check are printed' grep -q 'it said: an entry is not whole' out
check 'and that it fails, before all is done' test "$(grep -n -m 1 '^fails  at' out | cut -d: -f1)" = 1

# ---- copies ----
check 'a copy with its own flag is found' caused 1 check record
check 'as tearing' test "$(classes)" = tearing
check 'with what is gone of it' grep -Eq 'in part  events .*stores, [0-9]+ bytes at 0x' out
check 'that it is not cut everywhere is said' grep -q '^1 copy was not cut at every line; --split does' out
check 'replayed' eval "timeout 900 '$OUTAGE' replay r/findings/0 >o2; test \$? -eq 1"
check 'a flag after the copy is fine' caused 0 check guarded
check 'line by line as well' eval 'caused 0 check guarded --split && ! grep -q "not cut" out'
check 'the copy with its flag is found line by line' caused 1 check record --split
check 'a megabyte is cut, too, at few places' eval 'caused 1 check large --json &&
	test "$(value unique_states)" -lt 20 && test "$(value copies_not_cut)" = 1'
check 'a small log has no such copy' eval 'caused 0 check log && ! grep -q "not cut" out'

# ---- many states of one mistake ----
caused 1 check unflushed --json
known=$(value known) checked=$(value checked) unique=$(value unique_states)
check 'what fails often enough is not tried again and again' test "$known" -gt 0
check 'and counted' test $((known + checked)) -eq "$unique"
caused 1 check unflushed --enough 4
check 'which is said' grep -q '^[0-9]* states were not checked, as what they lose' out
check 'the finding is the same' test "$(classes)" = ordering
check 'all can be asked for' eval 'caused 1 check unfenced --enough 0 --json &&
	test "$(value known) $(value checked)" = "0 $(value unique_states)"'
check 'what is beyond --max-subset is told' eval 'caused 1 check unfenced --max-subset 1 &&
	grep -Eq "^--max-subset left out up to [0-9]+ crash states" out'
check 'and not where there is nothing' eval 'caused 0 check word && ! grep -q "left out" out'
check 'more than can be counted is the same everywhere' eval 'caused 1 check unflushed --json --budget 50 &&
	test "$(value left_out)" = "$(sed -n "s/^left-out.//p" r/summary)"'

# ---- one of them ----
check 'one finding, one state' eval 'caused 1 check pair --budget 10; grep -q "1 finding; 1 state fails" out'

# ---- flushes of its own, without an emulator ----
timeout 900 "$OUTAGE" pm --file pool -o r2 --tracer preload --check true -- "$causes" pool run own >out 2>err
check 'a library sees no instruction' test $? -eq 0
check 'and is loud about it' grep -q 'no flush and no fence was seen.*leave out --tracer preload' err
# In a user namespace of its own, the program has fewer rights than whoever traces it.
if [ "$(id -u)" = 0 ] && "${as_user[@]}" unshare -Um true 2>/dev/null; then
	for_everybody
	theirs=$(copy_for_everybody "$causes")
	mkdir -m 777 user
	truncate -s 64K user/pool && chmod 666 user/pool
	cd user || exit 1
	"${as_user[@]}" env XDG_STATE_HOME="$dir/user/state" timeout 900 "$OUTAGE" pm --file pool -o r3 --tracer preload \
		--check true -- "$theirs" pool run own >../out 2>../err
	check 'an ordinary user traces as well' test $? -eq 0
	check 'and sees its stores' grep -q '^[1-9][0-9]* stores' ../out
	cd .. || exit 1
else
	skip 'no root, or no user namespaces for ordinary users'
fi
done_testing
