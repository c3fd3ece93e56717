#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0456-trust.sh - what this user did not make on this machine is neither run, nor mounted by this
# machine's kernel, unless he says so.
# shellcheck disable=SC2016,SC2317 # for eval and sed; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

requires_seedfs

# shellcheck source=tests/trust-lib.sh
. "$root/tests/trust-lib.sh"
# Who runs one of these leaves a file.
printf '#!/bin/sh\ntouch "%s/ran"\nexec "%s" "$@"\n' "$dir" "$seedfs" >server
chmod +x server
printf 'creat foo\nfsync foo\n' >w
printf 'creat bar\nfsync bar\n' >v

own_run() { # OUT FILE...
	as "$ours" 1 test -t "fuse:$dir/server mount {disk} {mnt} -f -o bug=name-new" --size 4M -j 1 \
		--mkfs "$dir/server mkfs {disk}" -o "$@"
}

check 'a run' own_run mine w v
check 'leaves a key' test "$(stat -c '%a %s %F' state/outage/key)" = '600 32 regular file'
check 'in a directory of its own' test "$(stat -c %a state/outage)" = 700
check 'and marks' test -s mine/mark -a -s mine/base-0.mark -a -s mine/findings/0-0/mark
truncate -s -10 mine/progress # one is to be done again

# ---- an archive ----

tar -czf run.tar.gz mine
mkdir far
tar -xzf run.tar.gz -C far
far=far/mine/findings/0-0
check "replay of a stranger's" distrusts "run '$dir/server mkfs {disk}' (mkfs)" "$stranger" replay $far
check 'and of what it would write' distrusts "run '$dir/server" "$stranger" replay --rerun $far
check 'shrink' distrusts "run '$dir/server" "$stranger" shrink $far -o small
check 'which makes nothing' test ! -e small
check 'going on with the run' distrusts "run '$dir/server" "$stranger" test --resume far/mine
check 'nobody made a key for that' test ! -e "$stranger"
check 'what it would do is told' grep -q "(target), run '$dir/server mkfs {disk}' (mkfs), use the path '$dir/w'" err
check 'and where to look' grep -q "look at it with 'outage report', and at its file run, then give --trust" err
check 'report may look' as "$stranger" 0 report far/mine
check 'at one, too' as "$stranger" 0 report $far
check 'export writes it' as "$stranger" 0 export $far -o given
check 'runs nothing' test ! -e ran
check 'says that it is not known' grep -q "$far was not made by you on this machine: read" err
check 'there as well' eval 'test "$(grep -l "NOT VERIFIED" given/* | wc -l)" = 3'
check 'the user who made it may' as "$ours" 1 replay $far
check 'all of it' as "$ours" 1 test --resume far/mine
check 'another may if he says so' as "$stranger" 1 replay $far --trust
check 'he goes on with it' as "$stranger" 1 test --resume far/mine --trust
check 'for this command only' distrusts "run '$dir/server" "$stranger" replay $far
check 'what he makes of it is his own' as "$stranger" 0 shrink $far --trust -o small
check 'for him' as "$stranger" 1 replay small
check 'and no more for who made the first' distrusts "run '$dir/server" "$ours" replay small
check 'exported with trust it has no warning' eval 'as "$stranger" 0 export $far --trust -o given &&
	! grep -l "NOT VERIFIED" given/*'

# ---- many workers ----

check 'many findings at once' as "$ours" 1 test -t "fuse:$dir/server mount {disk} {mnt} -f -o bug=name-new" --size 4M \
	--mkfs "$dir/server mkfs {disk}" -j 4 -b seq-1 --sample 40 --keep all -o many
# Export verifies what it writes, and mounts nothing.
all_marked() {
	local one n=0
	for one in many/findings/*; do
		as "$ours" 0 export "$one" -o given && [ ! -s err ] || return 1
		n=$((n + 1))
	done
	[ "$n" -gt 8 ]
}
check 'are all marked' all_marked
check 'with several images' test "$(find many -name 'base-*.mark' | wc -l)" -gt 1

# ---- copies, and changes ----

cp -r mine copy
check 'a copy is still the same' as "$ours" 1 replay copy/findings/0-0
mv copy moved
check 'also if it is moved' as "$ours" 1 replay moved/findings/0-0
check 'and can be gone on with' as "$ours" 1 test --resume moved
cp --sparse=never mine/base-0.img full && cp full moved/base-0.img
check 'zeros in place of holes are the same' as "$ours" 1 replay moved/findings/0-0
check 'what shrink made is kept as well' as "$ours" 0 shrink mine/findings/0-0
check 'with a mark' as "$ours" 1 replay mine/shrunk/0-0

one=copy/findings/0-0
others() { distrusts "run '$dir/server" "$ours" replay "$one"; }
for file in $(cd mine && echo findings/0-0/* base-0.img base-0.mark); do
	rm -rf copy ran && cp -r mine copy
	# The last byte that is not zero: of an image that is little.
	at=$(od -An -v -tx1 -w1 -Ad "copy/$file" | awk '$2 != "00" { at = NR - 1 } END { print at + 0 }')
	byte=$(od -An -tu1 -j "$at" -N1 "copy/$file")
	# shellcheck disable=SC2059 # the byte is the format
	printf "\\$(printf %o $((byte ^ 1)))" | dd of="copy/$file" bs=1 seek="$at" conv=notrunc status=none
	if ! cmp -s "mine/$file" "copy/$file" && as "$ours" 2 report $one; then
		check "one bit of $file, which cannot be read then" as "$ours" 2 replay $one
		check 'and runs nothing' test ! -e ran
	else
		check "one bit of $file" others
	fi
done
added() { # FILE TEXT
	rm -rf copy && cp -r mine copy && printf '%s' "$2" >"$one/$1"
	check "$1 that was not there" others
}
added start.img disk
added script 'creat foo'
added recovery x
added diagnosis x
rm -rf copy && cp -r mine copy && rm $one/seen
check 'one that is gone' others
rm -rf copy && cp -r mine copy && rm $one/mark
check 'no mark' others
rm -rf copy && cp -r mine copy && cp copy/findings/1-0/mark $one/mark
check 'the mark of another finding' others
rm -rf copy && cp -r mine copy
check 'another run' own_run other --size 8M w v
cp other/findings/0-0/mark $one/mark
check 'a mark of that' others
rm -rf copy && cp -r mine copy && cp other/base-0.mark copy/
check 'its mark of an image' others
rm -rf copy && cp -r mine copy && rm -rf $one && cp -r other/findings/0-0 $one
check 'a finding of that, with this image' others

resumed() { distrusts "run '$dir/server" "$ours" test --resume copy; }
for change in 's/^size .*/size 8388608/' 's/^mkfs .*/&;/' '$a limit 1'; do
	rm -rf copy && cp -r mine copy && sed -i "$change" copy/run
	check "a run with $change" resumed
done
rm -rf copy && cp -r mine copy && echo '*: *' >copy/suppressions
check 'with suppressions' resumed
rm -rf copy && cp -r mine copy && cp other/mark copy/mark
check 'with the mark of another' resumed
rm -rf copy && cp -r mine copy && cp mine/findings/0-0/mark copy/mark
check 'with that of a finding' resumed
rm -rf copy && cp -r mine copy && chmod 777 copy
check 'one that all can write to is distrusts as well' eval 'as "$ours" 2 test --resume copy &&
	grep -q "copy lies where others can change it (\.: chmod go-w), and would run" err'

for where in . findings; do
	rm -rf copy && cp -r mine copy && chmod 777 copy/$where
	check "a finding that others can replace in $where" eval 'as "$ours" 2 replay $one && test ! -e ran &&
		grep -q "lies where others can change it (.*: chmod go-w)" err'
done
check 'which says where' grep -q '(copy/findings: chmod go-w)' err

# ---- its workload, for another run ----

seq() { as "$1" "$2" test -t "fuse:$seedfs mount {disk} {mnt} -f" --mkfs "$seedfs mkfs {disk}" --size 4M -j 1 -o new "${@:3}"; }
commanded() { rm -rf copy new ran && cp -r "${1:-mine}" copy && printf 'shell "touch %s/ran"\n' "$dir" >>"copy/$2"; }
refuses() { # FILE
	seq "$ours" 2 "$1" && test ! -e ran && test ! -e new && one_line &&
		grep -q "was not made by you.*and would run 'touch $dir/ran' (shell).*at its file .*, then give --trust" err
}
rm -rf copy && cp -r mine copy
check "a stranger may run its workload" seq "$stranger" 0 $one/workload
commanded mine findings/0-0/workload
check 'but no command in it' refuses $one/workload
check 'unless he trusts it' eval 'seq "$ours" 0 $one/workload --trust && test -e ran'
commanded mine planted
check 'nor one beside the findings' refuses copy/planted
check 'by a link, too' eval 'ln -s copy to && refuses to/planted'
commanded small workload
check 'nor one of a finding that is alone' refuses copy/workload
cp w own
printf 'shell "touch %s/ran"\n' "$dir" >>own
check "one's own file is run" own_run shells own
check 'and that of a finding of it' eval 'rm -rf new ran && seq "$ours" 0 shells/findings/0-0/workload && test -e ran'
check "but not by a stranger" eval 'rm -rf new ran && as "$stranger" 2 test -t "fuse:$seedfs mount {disk} {mnt} -f" \
	--mkfs true shells/findings/0-0/workload && test ! -e ran'

# A group that others may be in, with a umask that lets it write.
if command -v setpriv >/dev/null; then
	shared() { (umask 002 && setpriv --regid 54321 --clear-groups -- "$BASH" -c "$(declare -f as status exits run own_run); $1"); }
	export OUTAGE ours dir
	check 'a run of a shared group' shared 'own_run grouped w v'
	check 'is not made for the group to write to' test -z "$(find grouped -perm /022 ! -type l)"
	check 'which may be used' shared 'as "$ours" 1 replay grouped/findings/0-0'
	mkdir data
	chgrp 54321 data
	chmod 2775 data
	check 'so is one of an application' shared 'as "$ours" 1 app -p minimal --stacks -o app --run "echo x >u" --check "test -e u" -- data'
	check 'with files of the group in its directory' shared 'as "$ours" 1 replay app/findings/0'
	chmod 755 app
	chmod g+w app/base
	check 'unless others can reach those' shared 'as "$ours" 2 replay app/findings/0'
	check 'which is said' grep -q 'lies where others can change it (base in its tree: chmod go-rwx its directory)' err
	chmod g+w grouped/findings/0-0/case
	check 'else it is refused' shared 'as "$ours" 2 replay grouped/findings/0-0'
	check 'which says what to do' grep -q 'lies where others can change it (case: chmod go-w)' err
fi

# ---- the key ----

chmod 644 state/outage/key
check 'a key that others can read' as "$ours" 2 replay mine/findings/0-0
check 'is told' grep -q "cannot be told to be yours (others may use $ours/outage/key, which has mode 0644" err
rm -rf mine2
check 'a run goes on without it' own_run mine2 w
check 'and says so once' test "$(grep -c 'mode 0644.*will need --trust' err)" = 1
check 'it has no marks' test -z "$(find mine2 -name '*mark')"
chmod 600 state/outage/key
check 'so it is a stranger'"'"'s' distrusts "run '$dir/server" "$ours" replay mine2/findings/0-0
check 'the others are not' as "$ours" 1 replay mine/findings/0-0
nowhere() { env -u HOME -u XDG_STATE_HOME timeout 900 "$OUTAGE" "$@" >out 2>err </dev/null; }
nowhere test -t "fuse:$dir/server mount {disk} {mnt} -f -o bug=name-new" --size 4M -j 1 \
	--mkfs "$dir/server mkfs {disk}" -o mine3 w
check 'without a home, too' test $? = 1
check 'which is said' grep -q 'neither HOME nor XDG_STATE_HOME.*will need --trust' err
nowhere replay mine/findings/0-0
check 'then nothing is known' test $? = 2
check 'in a sentence' grep -q "mine/findings/0-0 was not made by you on this machine, and would" err
HOME=$dir/home env -u XDG_STATE_HOME timeout 900 "$OUTAGE" report mine >out 2>err
check 'who only looks makes no key' test ! -e home
done_testing
