#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Commands in workloads: on this machine's kernel, and in guests, where busybox is the shell. What
# they do is looked up; a crash is then held against it as ever.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"
requires_mounts

cat >simple <<'END'
setup shell "mkdir d; echo one > d/f"
sync
shell "echo two > d/g; mv d/f d/h; echo tmp > t; rm t; ln d/g l"
shell "chmod 600 d/h"
fsync d/h
END
keeps 0 "$OUTAGE" test -t ext4 --crash prefix,reorder --budget 60 -j1 simple
check "ext4 keeps what it promises of what commands did" grep -q 'nothing found' out

keeps 1 "$OUTAGE" test -t ext4 --crash prefix --guarantee sync -j1 simple
check "if it were synchronous, it would not" [ $? = 0 ]
check "which names the command" grep -q '^missing.*d: is missing.*shell "mkdir d; echo one > d/f" (operation 0) had returned' \
	kept/findings/0-0/problems
timeout 900 "$OUTAGE" replay kept/findings/0-0 >out 2>err </dev/null
check "a case with commands shows again" [ $? = 1 ]
timeout 900 "$OUTAGE" replay --rerun kept/findings/0-0 >out 2>err </dev/null
check "and when it is run again" [ $? = 1 ]

# An fsync behind the command covers what that did; a lie of the disk's about it shows.
printf 'shell "echo some > f"\nfsync f\nshell "echo more >> f"\nfsync f\n' >synced
keeps 0 "$OUTAGE" test -t ext4 --crash prefix,reorder --budget 60 -j1 synced
check "what is synced afterwards is kept" grep -q 'nothing found' out

# The exit status is told, as a command that is not there would test nothing.
echo 'shell "no-such-command-here"' >typo
keeps 0 "$OUTAGE" test -t ext4 -j1 typo
check "a command that fails is told of" grep -q 'no-such-command-here.*status 127' err

# What others wrote is not run unasked.
printf 'shell "echo x > f"\nshell "echo y > g"\n' >two
keeps 1 "$OUTAGE" test -t ext4 --guarantee sync -j1 two
cp -r kept others
chown -R 12345:12345 others
chmod 777 others/findings/0-0
timeout 900 "$OUTAGE" replay others/findings/0-0 >out 2>err </dev/null
check "commands of others are refused" [ $? = 2 ]
check "in a sentence" grep -q "others/findings/0-0 lies where others can change it.*'echo x > f' (shell).*--trust" err
timeout 900 "$OUTAGE" replay --trust others/findings/0-0 >out 2>err </dev/null
check "unless they are trusted" [ $? = 1 ]

mkdir theirs
echo 'shell "echo x > f"' >theirs/work
keeps 1 "$OUTAGE" test -t ext4 --guarantee sync -j1 theirs/work
chown -R 12345:12345 kept
timeout 900 "$OUTAGE" test --resume kept >out 2>err </dev/null
check "so are those of a run of others that is gone on with" [ $? = 2 ]
check "in a sentence as well" grep -q "kept lies where others can change it.*use the path '$dir/theirs/work' (file).*--trust" err

# Bad input
bad() { # NAME TEXT COMPLAINT
	local status
	printf '%s\n' "$2" >bad
	timeout 900 "$OUTAGE" test -t ext4 bad >out 2>err </dev/null
	status=$?
	check "$1" [ $status = 2 ]
	check "$1: it is said" grep -q "$3" err
}
bad "a quote without end" 'shell "echo a' 'bad:1:7: this " has no second one'
bad "text behind a quote" 'shell "echo"a' 'bad:1:13: expected a blank'
bad "a command without quotes" 'shell echo a' "bad:1:12: "
bad "no command" 'shell' 'bad:1:6: expected COMMAND'
echo 'operations shell' >bounds
timeout 900 "$OUTAGE" gen --bounds bounds >out 2>err </dev/null
check "commands are not generated" [ $? = 2 ]

# ---- guests ----

guest() { # TARGET
	keeps 0 "$OUTAGE" test -t "$1" -j1 simple
	check "$1: what commands did is kept" grep -q 'nothing found' out
	keeps 1 "$OUTAGE" test -t "$1" --guarantee sync -j1 two
	check "$1: it is not synchronous, and the command is named" \
		grep -q 'f: is missing.*shell "echo x > f" (operation 0) had returned' \
		kept/findings/0-0/problems
	timeout 900 "$OUTAGE" replay kept/findings/0-0 >out 2>err </dev/null
	check "$1: it shows again" [ $? = 1 ]
}


mkdir -p "$kernels/kernels" cache
ln -s "$kernels/kernels" cache/kernels
for target in uml:ext4 vm:ext4-dax; do
	if ! command -v busybox >/dev/null; then
		skip "busybox is not here"
	elif ! timeout 900 "$OUTAGE" test -t "$target" --bounds seq-1 --limit 1 -j1 -o "tried-${target##*:}" >out 2>err </dev/null; then
		skip "$target: $(tail -n 1 err)"
	else
		guest "$target"
	fi
done

# Without it, and without anything else of this machine that is needed, the sentence names it.
if [ -d tried-ext4-dax ] || [ -d tried-ext4 ]; then
	target=$([ -d tried-ext4 ] && echo uml:ext4 || echo vm:ext4-dax)
	mkdir bin
	IFS=: read -ra places <<<"$PATH"
	for place in "${places[@]}"; do
		for file in "$place"/*; do
			[ "${file##*/}" = busybox ] || ln -s "$file" bin/ 2>/dev/null
		done
	done
	PATH=$dir/bin timeout 900 "$OUTAGE" test -t "$target" -j1 two >out 2>err </dev/null
	check "without busybox it is refused" [ $? = 2 ]
	check "and the package is named" grep -q 'apt-get install busybox-static' err
fi

# A mark inside a command is a place where a crash is tried; other words are refused.
if [ -d tried-ext4-dax ]; then
	printf 'shell "echo a > f; outage mark text half; echo b > g" atomic\nshell "outage mark end 1"\n' >marked
	keeps 0 "$OUTAGE" test -t vm:ext4-dax -j1 marked
	check "only texts can be marked in a guest" grep -q 'outage mark end 1.*status 2' err
	keeps 1 "$OUTAGE" test -t vm:ext4-dax -j1 --guarantee sync marked
	"$OUTAGE" trace show kept/findings/0-0/trace >out 2>err
	check "a mark inside a command is in the trace" grep -q ' text .* half$' out
	# The same trace with the power failing right before the mark, and right after it.
	case=$(dirname "$(find kept/findings -name trace | head -n 1)")
	at=$(awk '$2 == "text" && / half$/ { print $1 }' out)
	for p in "$at" $((at + 1)); do
		sed -i "s/^state .*/state 0.$p/; s/^done .*/done 0/" "$case/case"
		timeout 900 "$OUTAGE" report "$case" >"report.$p"
	done
	check "a report has it behind a crash before it" eval \
		"grep -A1 'power fails here' report.$at | grep -q '^ *mark half    <- not reached'"
	check "and before one after it" eval \
		"grep -B1 'power fails here' report.$((at + 1)) | grep -q '^ *mark half$'"
fi

done_testing
