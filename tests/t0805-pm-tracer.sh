#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tracer of persistent memory: call stacks, and several threads and processes.
# shellcheck disable=SC2016,SC2317 # $1 is for the check; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pm-lib.sh
. "$root/tests/pm-lib.sh"

# ---- call stacks ----
# callers WAY: the functions around the store to this word, inner first, up to main or a thread
callers() {
	timeout 900 "$OUTAGE" trace show --json r/trace >json
	python3 - "$1" <<'END'
import json, sys
names = {}
for line in open("r/places"):
    pc, words = line.rstrip("\n").split("\t")
    names[int(pc, 16)] = words.split(" in ")[1] if " in " in words else words.split()[0]
stacks, found = {}, []
for e in json.load(open("json"))["events"]:
    if e["kind"] == "stack":
        stacks[e["number"]] = e["frames"]
    elif e["kind"] == "store" and e["addr"] == 8 * int(sys.argv[1]):
        found = [names.get(e["pc"], "?")]
        found += [names.get(f - 1, "?") for f in stacks.get(e.get("stack", 0), [])]
last = [i for i, f in enumerate(found) if f in ("main", "thread")]
print(" ".join(found[:last[0] + 1] if last else found))
END
}
# way NUMBER FUNCTIONS WORDS
way() {
	local got
	got=$(callers "$1" | sed 's/ handler .* main$/ handler ... main/')
	check "$3" test "$got" = "$2" || echo "#   got: $got"
}
check 'a program is traced with its stacks' pm_anew 0 --stacks --check true -- "$helpers/pm-stacks" pool
way 1 'put through main' 'a call in a call'
way 2 'put through main' 'through a pointer'
way 3 "put $(printf 'deep %.0s' {1..21})main" 'recursion'
way 4 'put caught main' 'after longjmp'
way 5 'put handler ... main' 'in a signal handler, and where it came'
way 6 'put through other' 'on another stack'
way 7 'put through switches main' 'back on the first'
way 8 'put through' 'on the other again, called by a jump'
way 9 'put through switches main' 'and back'
for i in 10 11 12 13; do
	way $i 'put through thread' "in thread $i"
done
way 14 'put main' 'after all'
way 15 'put through main' 'in a child'
check 'without being asked, none' eval "pm_anew 0 --check true -- $helpers/pm-stacks pool &&
	! timeout 900 '$OUTAGE' trace show r/trace | grep -q stack"
check 'findings tell the callers' eval "pm_anew 1 --stacks --check 'test \$(od -An -tu8 -j56 -N8 \"\$1\") != 0 ||
	test \$(od -An -tu8 -j72 -N8 \"\$1\") = 0' -- $helpers/pm-stacks pool && timeout 900 '$OUTAGE' report r >out &&
	grep -q 'called from pm-stacks.c:[0-9]* in main' out"
check 'without an emulator there are none' eval "pm_anew 2 --stacks --tracer preload --check true -- true &&
	grep -q 'wants an emulator' err"

# ---- several CPUs ----
# in_turn: whether the stores to the first word are by the three, in turn
in_turn() {
	timeout 900 "$OUTAGE" trace show --json r/trace >json
	python3 - <<'END'
import json
cpus = [e["cpu"] for e in json.load(open("json"))["events"] if e["kind"] == "store" and e["addr"] == 0]
n = len(set(cpus))
ok = len(cpus) == 900 and n == 3 and all(cpus[i] == cpus[i % 3] for i in range(900))
print("in turn" if ok else "%d stores by %d: %s" % (len(cpus), n, cpus[:12]))
END
}
check 'threads that take turns' pm_anew 0 --check true --budget 1 -- "$helpers/pm-threads" pool turns
check 'are recorded in turn' test "$(in_turn)" = 'in turn'
check 'so are processes' pm_anew 0 --check true --budget 1 -- "$helpers/pm-threads" pool forked
check 'in turn' test "$(in_turn)" = 'in turn'
second='test $(od -An -tu8 -j64 -N8 "$1") = 0 || test $(od -An -tu8 -N8 "$1") = 1'
check "another thread's fence makes nothing durable" pm_anew 1 --check "$second" -- \
	"$helpers/pm-threads" pool other
check 'its own does' pm_anew 0 --check "$second" -- "$helpers/pm-threads" pool own
done_testing
