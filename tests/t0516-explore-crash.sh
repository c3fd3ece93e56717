#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0516-explore-crash.sh - the crashes of outage explore are those of outage test: every option of the one is an
# option of the other, and a bug that shows only in torn writes, or in a second crash, is found with that word alone.
# shellcheck disable=SC2016,SC2034,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# ---- the same options ----

crash_options() { # COMMAND: each with its help; what the two say of their own is left out
	"$OUTAGE" "$1" --help all 2>err | sed -n '/^      --crash /,/^      --paranoid /p' |
		sed -n 's/^      \(--[a-z-]*\).*/\1/p' | grep -vx -e '--crash-every' -e '--guarantee'
}
crash_options test >of.test
crash_options explore >of.explore
check 'outage test has options for crashes' grep -qx -e --max-subset of.test
check '... and outage explore has all of them' diff of.test of.explore
check '... with the same words' eval 'outage explore --help all && says "torn, recovery"'

refuses() { refused "$1" explore -t uml:ext4 "${@:2}"; }
check 'without a crash, they are refused' refuses '--budget is about crashes: give --crash or --crash-every' --budget 3
check '... each by its name' refuses '--check is about crashes' --check true
check 'what is no mode' refused_like "torn.*recovery" explore -t uml:ext4 --crash tear
check 'a model that is not for a disk' refuses '--model pm is for persistent memory; uml:ext4 has a disk' --crash last --model pm
check 'nor are bad media' refuses '--media is for persistent memory' --crash last --media poison
check 'nor is a dump' refuses '--dump is for persistent memory' --crash last --dump true
check 'sectors where nothing is torn' refuses '--sector needs --crash torn' --crash reorder --sector 512
check 'no sector' refuses '--sector is 512, 1024, 2048 or 4096' --crash torn --sector 600
check 'a flush that is lost where none is missed' refuses '--lose-flush needs --crash reorder' --crash last --lose-flush 1

# ---- what they do ----

requires_mounts
requires_seedfs
printf 'only creat mkdir rename fsync sync\nnames files 2\nnames dirs 1\n' >few

# explores STATUS BUG [OPTIONS]: a short walk
explores() {
	local bug=
	[ "$2" = none ] || bug=" -o bug=$2"
	rm -rf run
	exits "$1" "$OUTAGE" explore -t "fuse:$seedfs mount {disk} {mnt} -f$bug" --mkfs "$seedfs mkfs {disk}" \
		--size 4M --order walk --inputs few --limit 60 --findings 1 -o run "${@:3}"
}
key() { sed -n "s/^$1 //p" run/run; }
states() { explores 0 none --json "$@" && states=$(json_value 'd["crash_states"]'); }

check 'all of them at once find nothing in what is healthy' explores 0 none --limit 20 --budget 20 \
	--crash persist,last,prefix,reorder,torn,recovery --max-subset 1 --prune none --model block --fsck \
	--check 'test -d .' --guarantee posix --paranoid
check '... and are kept' test "$(key crash) $(key budget) $(key prune)" = 'persist,last,prefix,reorder,torn,recovery 20 none'
check '... with the command' test "$(key check)" = 'test -d .'
check 'torn is a word for two' eval 'explores 0 none --limit 10 --torn && [ "$(key crash)" = reorder,torn ]'
check 'the budget is 50' eval 'states --crash reorder && [ "$(key budget)" = 50 ]'
check '... and 0 is no limit' eval 'explores 0 none --limit 10 --crash reorder --budget 0 && [ -z "$(key budget)" ]'
fifty=$states
check '... and a smaller one counts' eval 'states --crash reorder --budget 4 && [ "$states" -lt "$fifty" ]'
check 'a subset of one write is less' eval 'states --crash reorder --budget 9k --max-subset 1 --prune none'
one=$states
check '... than one of three' eval 'states --crash reorder --budget 9k --max-subset 3 --prune none && [ "$states" -gt "$one" ]'
three=$states
check '... of which recovery reads not all' eval 'states --crash reorder --budget 9k --max-subset 3 && [ "$states" -lt "$three" ]'
check 'a check that fails is a finding' explores 1 none --crash last --check 'echo no; false'
check '... of its kind' grep -rq '^check-failed' run/findings/1-0/problems
check '... which shows again' exits 1 "$OUTAGE" replay run
check 'a flush that is lost is noticed' explores 1 none --crash reorder --lose-flush 1

# ---- a bug that one word shows ----

check 'a torn record is not found by reorder' explores 0 torn-record --crash reorder --budget 200
check '... but by torn, in sectors of 512 bytes' explores 1 torn-record --crash torn --sector 512 --budget 200
check '... and shows again' exits 1 "$OUTAGE" replay run
check 'a recovery that is cut is not found by reorder' explores 0 recovery-order --crash reorder --budget 200
check '... but by recovery' explores 1 recovery-order --crash recovery --budget 200
check '... and shows again' exits 1 "$OUTAGE" replay run
check '... with the trace of the recovery' test -s run/findings/1-0/recovery

done_testing
