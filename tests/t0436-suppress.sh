#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0436-suppress.sh - findings of outage app, pm and explore that a rule names are counted apart; one that
# none names still is a finding. (For outage test see t0452-kept.sh.)
# takes 30 s
# shellcheck disable=SC2016,SC2317 # commands for other shells; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# found COMMAND [OPTION...]: the run of that command, kept in `run`; the status is in $status
found() {
	rm -rf run
	run "$@" -o run "${program[@]}"
}
# suppresses NAME COMMAND...: of the several findings of a run that the command makes
suppresses() {
	local name=$1 many
	shift
	found "$@" --json
	many=$(json_value 'd["findings"]')
	check "$name: there are findings" test $status -eq 1 -a "$many" -gt 1
	timeout 900 "$OUTAGE" report run --suppressions >rules 2>err
	check "$name: a rule for each" test "$(wc -l <rules)" -ge "$many"
	found "$@" --json --suppress rules
	check "$name: nothing is left of them" test $status -eq 0
	check "$name: they are counted apart" test "$(json_value 'd["findings"] == 0 and d["suppressed"] > 1')" = True
	check "$name: and not kept" test "$(find run/findings -name case | wc -l)" = 0
	sed 1d rules >less
	found "$@" --json --suppress less
	check "$name: what no rule names is a finding" test $status -eq 1 -a "$(json_value 'd["findings"]')" = 1
	timeout 900 "$OUTAGE" report run --suppressions >other 2>err
	check "$name: it is that one" cmp -s <(sed 's/ #.*//' other) <(sed -n '1s/ #.*//p' rules)
	head -n 1 rules >one
	found "$@" --suppress less --suppress one
	check "$name: two files" eval "test $status -eq 0 && grep -q 'findings are suppressed' out"
	found "$@" --suppress <(echo '*: *')
	check "$name: all of any kind" test $status -eq 0
	found "$@" --suppress <(sed 's/ @ .*/ @ nothing like it/' rules)
	check "$name: not those of others" test $status -eq 1
	found "$@" --suppress <(echo 'nonsense: *')
	check "$name: there are kinds" eval "test $status -eq 2 && complains 'no kind of problem'"
	check "$name: of a run that goes on, too" eval \
		"rm run -rf; found $(printf '%q ' "$@") --suppress less; timeout 900 '$OUTAGE' $2 --resume run --json >out; test \$? -eq 1 && json 'd[\"findings\"] == 1'"
	check "$name: given once more" eval "timeout 900 '$OUTAGE' $2 --resume run --suppress less >out 2>err; test \$? -eq 1"
	check "$name: others are refused" eval \
		"timeout 900 '$OUTAGE' $2 --resume run --suppress one >out 2>err; test \$? -eq 2 && complains 'began with another --suppress'"
}

# ---- app ----

if (requires_namespaces && requires_root && requires_fuse) >/dev/null 2>&1; then
	chmod 755 "$dir"
	mkdir data
	program=(-- data)
	app=("$OUTAGE" app -p minimal --budget 60 --run 'for i in 1 2 3; do echo $i >f$i; done; echo end >end'
		--check '[ ! -e f3 ] || [ -s f3 ] || exit 1; [ ! -e end ] || [ -e f1 ] || { echo outage: silent-loss; exit 1; }')
	suppresses app "${app[@]}"
	# Of all rules but one: whichever that is, --findings 1 stops no search that found only what is known.
	for one in $(seq "$(wc -l <rules)"); do
		sed "${one}d" rules >less
		found "${app[@]}" --json --suppress less --findings 1
		check "app: a limit counts none that is known ($one)" test $status -eq 1
	done
else
	skip 'outage app cannot run here'
fi

# ---- pm ----

if command -v qemu-x86_64 >/dev/null && (requires_namespaces) >/dev/null 2>&1; then
	truncate -s 64K pool
	program=(-- "$helpers/pm-undo" pool noise)
	suppresses pm "$OUTAGE" pm --file pool --budget 50 --enough 0 --check "'$helpers/pm-undo' \"\$1\" check"
else
	skip 'outage pm cannot run here'
fi

# ---- explore ----

program=()
explore=("$mutant" explore -t mutant:errno --order walk --seed 1 --limit 4000)
found "${explore[@]}" --json
check 'explore: there are findings' test $status -eq 1
timeout 900 "$OUTAGE" report run --suppressions >rules 2>err
check 'explore: there are rules' test -s rules
found "${explore[@]}" --suppress rules --json
check 'explore: they are counted apart' test "$(json_value 'd["suppressed"] > 0')" = True
timeout 900 "$OUTAGE" report run --suppressions >others 2>err
check 'explore: none of them is left' eval '! cut -d "#" -f 1 rules | grep -qxFf - <(cut -d "#" -f 1 others)'
found "${explore[@]}" --suppress <(echo '*: *') --json
check 'explore: nothing is left' eval 'test $status -eq 0 && json "d[\"findings\"] == 0 and d[\"suppressed\"] > 0"'
check 'explore: nor kept' test "$(find run/findings -name case | wc -l)" = 0
found "${explore[@]}" --suppress <(echo 'missing: *') --json
check 'explore: what no rule names is a finding' eval 'test $status -eq 1 && json "d[\"suppressed\"] == 0"'
done_testing
