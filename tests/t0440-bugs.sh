#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0440-bugs.sh - outage test finds every bug of the seeded file system, where doc/bugs.md says, and
# is silent without them.
# shellcheck disable=SC2317,SC2016 # functions are called through check; sed's own back quotes
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

requires_seedfs

# bugged STATUS BUG ARGS...: tests seedfs with that bug ("none": without)
bugged() {
	local want=$1 option=''
	[ "$2" = none ] || option="-o bug=$2"
	keeps "$want" "$OUTAGE" test -t "fuse:$seedfs mount {disk} {mnt} -f $option" \
		--mkfs "$seedfs mkfs {disk}" --size 4M -j 2 "${@:3}"
}

# first_of KIND: the number of the first workload of the run with a finding of that kind
first_of() {
	local f
	for f in kept/findings/*/; do
		cut -f1 "$f/problems" | grep -qx "$1" && sed -n 's/^workload .*\///p' "$f/workload"
	done | sort -n | head -1
}

# finds BUG KIND NUMBER ARGS...: it is found, with that consequence, and first by that workload
finds() {
	local bug=$1 kind=$2 number=$3 first
	shift 3
	bugged 1 "$bug" "$@" || return 1
	first=$(first_of "$kind")
	[ "$first" = "$number" ] && return
	echo "# $bug: $kind is first found by '$first', not $number"
	return 1
}

# --- the table: every bug is in it, with the words of the program ---

# "BUG|what|stands for|set|mode|kind|first", one a line
sed -n 's/^| `\([a-z-]*\)` | /\1 | /p' "$root/doc/bugs.md" | sed 's/ *| */|/g; s/|$//' >table
"$seedfs" bugs | sed -n 's/^\([a-z][a-z-]*\)  *\(.*\)/\1|\2/p' >listed
same_words() { cut -d'|' -f1,2 table | diff - listed >out 2>&1; }
check 'doc/bugs.md has every bug, as the program describes it' same_words

while read -r words; do
	check "a bug stands for: $words" grep -q "^[^|]*|[^|]*|[^|]*$words" table
done <<'CONSEQUENCES'
a rename loses the file
in both places
missing after fsync of its directory
hard link is not persisted
fsync persists one of two names
the size is wrong
blocks past the end are lost
appended is lost after a link
second fsync does nothing
removed attribute is back
symbolic link is empty
directory cannot be removed
disk cannot be mounted
data is written after the metadata
no flush before the commit record
torn commit record
CONSEQUENCES

# "SET|COUNT"
sed -n 's/^| \([a-z0-9.-]*\) | \([0-9]*\) |$/\1|\2/p' "$root/doc/bugs.md" >sets
set_of() { # SET: what to give to --bounds
	case $1 in
	*.bounds) echo "$root/tests/seeded/bounds/$1" ;;
	*) echo "$1" ;;
	esac
}
counts() {
	local name count
	[ -s sets ] && [ "$(cut -d'|' -f4 table | sort -u)" = "$(cut -d'|' -f1 sets | sort)" ] ||
		return 1
	while IFS='|' read -r name count; do
		[ "$("$OUTAGE" gen -b "$(set_of "$name")" --count 2>err)" = "$count" ] ||
			{ echo "# $name has not $count workloads"; return 1; }
	done <sets
}
check 'and the sets have as many workloads as it says' counts

# --- each bug is found, by the workload and in the mode of the table; without it nothing is ---

while IFS='|' read -r bug _ _ set mode kind number <&3; do
	skip=$((number > 2 ? number - 2 : 0))
	unit=()
	[ "$mode" != torn ] || unit=(--sector 512) # its blocks are whole on a disk that writes 4096 bytes at once
	slice=(-b "$(set_of "$set")" --skip "$skip" --limit $((number - skip + 1)))
	check "$bug: $kind, by $set/$number, $mode" \
		finds "$bug" "$kind" "$number" "${slice[@]}" --crash "$mode" "${unit[@]}"
	"$OUTAGE" gen "${slice[@]}" >>"twin.$mode"
done 3<table
for mode in persist prefix reorder torn recovery; do
	check "$mode: nothing by the same workloads without a bug" bugged 0 none --crash "$mode" "twin.$mode"
	[ "$mode" != torn ] || check "... nor in sectors of 512 bytes" bugged 0 none --crash torn --sector 512 "twin.$mode"
done

# A mode that is milder than the one of the table does not find it.
while read -r bug mode number set; do
	check "$bug is not found by $mode" bugged 0 "$bug" -b "$set" --crash "$mode" --skip "$number" --limit 1
done <<'MILDER'
data-late persist 10982 seq-2
reuse-early persist 10982 seq-2
no-flush prefix 255 seq-1
torn-record reorder 0 seq-1
torn-record torn 0 seq-1
recovery-order reorder 256 seq-1
MILDER

# --- what a server on a damaged disk does, and what can be replayed ---

rootless() {
	bugged 1 no-flush -b seq-1 --skip 260 --limit 1 --crash reorder &&
		grep -q 'mounted, but its root cannot be opened' kept/findings/*/said
}
check 'a server that has no root to show is not waited for' rootless

blocks_replay() {
	local finding
	bugged 1 falloc-keep -b seq-1 --skip 28 --limit 1 || return 1
	finding=$(dirname "$(grep -l '^blocks' kept/findings/*/problems | head -1)")
	timeout 900 "$OUTAGE" trace show "$finding/trace" >out 2>err
	grep -q 'blocks 40' out || return 1
	timeout 900 "$OUTAGE" replay "$finding" >out 2>err
	[ $? -eq 1 ] && grep -q 'shows again' out && [ ! -s err ] || return 1
	# On a healthy server the trace still shows it, as it holds what the bug wrote; a run does not.
	sed -i 's/ -o bug=falloc-keep//' "$finding/case"
	timeout 900 "$OUTAGE" replay "$finding" --rerun --trust >out 2>err && grep -q 'does not show' out
}
check 'lost blocks are replayed from the trace' blocks_replay

# --- the correct twin ---

check 'without a bug, seq-1 reports nothing' bugged 0 none -b seq-1
for mode in prefix reorder torn recovery; do
	check "without a bug, nor does $mode" bugged 0 none -b seq-1 --crash "$mode" --sample 20
	check "nor with two operations" bugged 0 none -b seq-2 --crash "$mode" --sample 10 --seed 3
done
check 'without a bug, a sample of seq-2 reports nothing' bugged 0 none -b seq-2 --sample 60
done_testing
