#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What an application acknowledged, by outage ack, by lines or by a file, must be there when it is queried or
# restarted after a crash; and which call is missing where it is not.
# shellcheck disable=SC2016,SC2317 # commands for other shells; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/app-lib.sh
. "$root/tests/app-lib.sh"

fresh

# ---- acknowledgements ----

app data -p minimal --json --run "echo a >a; '$OUTAGE' ack a; sync a . ; '$OUTAGE' ack b" \
	--check "grep -q b \$OUTAGE_ACKED || exit 0; [ -s a ] && [ \"\$1\" = \"\$OUTAGE_DIR\" ] && [ \"\$PWD\" = '$dir/data' ] && [ \$OUTAGE_CRASH_POINT -gt 0 ]"
check "ack: what is acknowledged after a sync is there, at the same path" test $status = 0
check "ack: two of them" test "$(json_value 'd["acknowledgements"]')" = 2
check "--json has the keys that scripts rely on" \
	test "$(json_value '[type(d[k]).__name__ for k in ("operations", "crash_states", "unique_states", "checked", "findings", "errors", "elapsed_s", "budget_hit")]')" = "['int', 'int', 'int', 'int', 'int', 'int', 'float', 'bool']"
app data -p minimal --run "echo a >a; '$OUTAGE' ack a" --check '! grep -q a $OUTAGE_ACKED || [ -s a ]'
check "ack: what is acknowledged without one is not" test $status = 1
app data -p minimal --ack-file log --run 'echo a >a; echo a >>log' --check '! grep -q a $OUTAGE_ACKED || [ -s a ]'
check "ack-file: a line in it counts" test $status = 1
app data -p minimal --ack-file log --run 'echo a >a; sync a .; echo a >>log' --check '! grep -q a $OUTAGE_ACKED || [ -s a ]'
check "ack-file: and after a sync it is kept" test $status = 0
app data --ack-file nolog --run 'echo a >a' --check true
check "ack-file: one that is not written is said" grep -q nolog err
OUTAGE_ACK='' "$OUTAGE" ack x >out 2>err
check "ack: where nobody listens it fails" test $? = 2

# Each line is before the next operation: without that, an acknowledgement would be late, and losses
# go unseen.
app data -p minimal --run 'for i in 1 2 3 4 5 6 7 8; do echo $i; echo $i >f$i; done' --check 'n=$(wc -l <$OUTAGE_ACKED); i=2; while [ $i -le $n ]; do [ -e f$((i - 1)) ] || exit 1; i=$((i + 1)); done'
timeout 900 "$OUTAGE" trace show run/trace >out 2>err
check "lines are marks between the operations" \
	test "$(grep -o ' begin \| create ' out | uniq | wc -l)" = 16

# ---- patterns ----

many='for i in 1 2 3 4 5 6 7 8; do echo $i >f$i; sync f$i; mv f$i g$i; done; rm g*'
app data -p minimal --json --budget 20 --run "$many" --check true
check "patterns: a small budget covers them all" test "$(json_value 'd["patterns"] == d["patterns_covered"] > 5 and d["budget_hit"]')" = True
app data -p minimal --json --budget 2 --run "$many" --check true
check "patterns: one that is too small does not, and says so" test "$(json_value 'd["patterns"] > d["patterns_covered"] > 0')" = True

# ---- a call that is missing ----

# The removal is lost, which a sync of another directory would not mend; and what is torn no sync does.
mkdir -p data/a data/b
app data -p minimal --run ': >a/x; sync a a/x; mv a/x b/y; sync b; rm b/y; echo gone' --check '! grep -q gone $OUTAGE_ACKED || [ ! -e b/y ]'
check "missing: the directory of what was removed" said "an fsync of the directory b is missing"
check "missing: and it is verified" said "(verified: with it, no crash leaves this state)"
app data -p minimal --run 'head -c 8192 /dev/zero | tr "\\0" x >big.tmp; sync big.tmp .; cp big.tmp big; sync big .' --check 's=$(stat -c %s big 2>/dev/null || echo 0); [ $s = 0 ] || [ $s = 8192 ]'
check "missing: of what is torn, no call is" eval '[ $status = 1 ] && ! grep -q "is missing\|verified" out'
fresh

# ---- restart and query ----

app data -p minimal --run 'for i in 1 2; do : >f$i; sync f$i .; echo f$i; done' --query 'ls | grep ^f || :'
check "query: what was acknowledged is there" test $status = 0
app data -p minimal --run 'for i in 1 2; do : >f$i; sync f$i; echo f$i; done' --query 'ls | grep ^f || :'
check "query: or it is found" said_like "create N of f1 was not durable when 'f1' was acknowledged"
app data -p minimal --run 'rm settings; echo new >settings; sync settings .' --restart 'cat settings'
check "restart: a moment without the file is found" said "unavailable:"
app data -p minimal --run 'echo new >new; sync new; mv new settings; sync .' --restart 'grep -q . settings'
check "restart: without such a moment nothing is" test $status = 0

# A restart comes before the check or the query, which finds what it did.
two='echo 1 >one; sync one .; echo 2 >two; sync two .'
fresh
app data --run "$two" --restart '[ ! -e one ] || cp one up' --check '[ ! -e one ] || [ -e up ]'
check "restart, check: the one finds what the other did" test $status = 0
app data --run "$two; echo 1" --restart 'echo 5; cp one up 2>/dev/null || :' --query 'cat up 2>/dev/null || :'
check "restart, query: what the restart prints is no answer" test $status = 0
app data --run "$two" --restart '[ ! -e one ] || [ -e two ] || { echo no two; exit 3; }' --check true
check "restart, check: it must succeed" test $status = 1
timeout 900 "$OUTAGE" report run >out 2>err
check "restart, check: whose failure it is" said "seen: the restart exited with status 3"
check "restart, check: what it said" said "| no two"
check "restart, check: the harm" said "unavailable: "
check "restart, check: both are told" test "$(grep -c '^  \(check\|restart\)  ' out)" = 2
timeout 900 "$OUTAGE" export run/findings/0 -o exported-both >out 2>err
rm -rf rebuilt
sh exported-both/reproduce.sh rebuilt check >out 2>err
check "restart, check: the exported script fails, too" test $? = 3
check "restart, check: and says which of the two" said "the restart ended with status 3"
timeout 900 "$OUTAGE" app --run true --check true --query true -- data >out 2>err
check "check, query: not both" test $? = 2
check "check, query: which is said" grep -q 'give one of --check and --query' err

# What was there before may be there after a crash, although the run removes it.
fresh
echo k >data/kept
app data -p minimal --run 'rm kept; sync .; : >f1; sync f1 .; echo f1' --query 'ls | grep -v settings || :'
check "query: what the run removes may still be there" test $status = 0
app data -p minimal --run 'mv kept wrong; mv wrong f1; sync .; echo f1' --query 'ls | grep -v settings || :'
check "query: what it never shows may not" said "corruption: the data was never written like that"
app data -p minimal --run 'echo 1 >k; sync k .; echo k=1; echo 2 >k; sync k; echo k=2' --query 'echo k=$(cat k)'
check "query: a line that changes is refused" test $status = 2
check "query: with what to do" grep -q 'must stay visible.*use --check' err
app data -p minimal --run 'for i in 1 2; do : >f$i; sync f$i; echo f$i; done' --query 'ls | grep ^f || :'
check "query: words are of the query" test "$(grep -c 'the check' out)" = 0
timeout 900 "$OUTAGE" export run/findings/0 -o exported-query >out 2>err
rm -rf rebuilt
sh exported-query/reproduce.sh rebuilt check >out 2>err
check "query: the exported script compares as we do" test $? = 1
check "query: and says what" said "does not show 'f1'"
: >rebuilt/f1
sed -n '/^\[ "${2:-}" = check/,$p' exported-query/reproduce.sh >only-check.sh
(cd rebuilt && bash -c '. ../only-check.sh' x rebuilt check) >out 2>&1
check "query: and is content with what is right" test $? = 0
app data -p minimal --run 'rm settings; echo new >settings; sync settings .' --restart 'cat settings'
timeout 900 "$OUTAGE" export run/findings/0 -o exported-restart >out 2>err
rm -rf rebuilt
sh exported-restart/reproduce.sh rebuilt check >out 2>err
check "restart: the exported script fails, too" test $? = 1
check "restart: and calls it by its name" said "the restart ended with status 1"

# The application does not start on an empty directory. That is one thing; what it lost after it
# said that it was ready is another.
rm -rf empty && mkdir empty
app empty -p minimal --run 'echo x >db; sync db; echo ready; echo y >log; sync log' --restart 'test -e db'
check "restart: the empty directory is a finding" said "as it was before the run"
check "restart: and so is what was acknowledged and lost" \
	said_like "create N of db was not durable when 'ready' was acknowledged"

done_testing
