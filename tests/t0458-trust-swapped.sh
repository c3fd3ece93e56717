#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0458-trust-swapped.sh - another user owns the directory that a run lies in, or a link that leads to
# it. First his copy of the run has its name, with his commands; and he exchanges the two at each
# moment at which something of his copy is opened. Then the marks that fit are those of the run, and
# the commands that were read are his. None of them is run.
# shellcheck disable=SC2016,SC2317 # for eval and sed; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_mounts
requires_seedfs
requires_built "$helpers/swap-at"
requires_built "$mutant"

printf 'creat foo\nfsync foo\n' >w
printf 'creat bar\nfsync bar\n' >v
# Here is the command that the other user would have run.
printf '#!/bin/sh\ntouch "%s/ran"\nexit 1\n' "$dir" >his
chmod +x his

place() { # HOW: his copy is named `it`, and the run `other`
	rm -rf it other copy run
	case $1 in
	link) cp -r his-copy copy && cp -r was run && ln -s "$dir/copy" it && ln -s "$dir/run" other ;;
	dir) cp -r his-copy it && cp -r was other ;;
	esac
}
# trial N HOW COMMAND...: exchanged at the Nth open of something in the copy
trial() {
	rm -f ran
	place "$2"
	mapfile -t dirs < <(find it/ -type d)
	timeout -k 5 900 "$helpers/swap-at" "$1" it other opened "${dirs[@]}" -- "${@:3}" >out 2>err </dev/null
}
# swapped HOW NAME COMMAND...: at no moment is his command run, and the copy alone is refused
swapped() {
	local name="$2, a $1" at=0 opens ends
	trial 0 "$1" "${@:3}"
	ends=$?
	if [ $ends = 77 ]; then
		skip "$name: the kernel cannot hold an open up"
		return
	fi
	check "$name: his copy is refused" test $ends = 2 -a ! -e ran
	opens=$(cat opened)
	check "$name: there are moments to exchange it" test "$opens" -gt 2
	while [ "$at" -lt "$opens" ] && [ ! -e ran ]; do
		at=$((at + 1))
		trial "$at" "$1" "${@:3}"
		[ $? -le 2 ] || break
	done
	check "$name: and at none of $opens moments his command is run" test "$at" = "$opens" -a ! -e ran
}
his() { rm -rf his-copy was && cp -r it his-copy && mv it was; } # a copy that he changes then

# ---- test ----

check 'a run' status 1 test -t "fuse:$seedfs mount {disk} {mnt} -f -o bug=name-new" --size 4M -j 1 \
	--mkfs "$seedfs mkfs {disk}" -o it w v
truncate -s -10 it/progress # one is to be done again
his
sed -i "s#^mkfs .*#mkfs $dir/his#" his-copy/run his-copy/findings/0-0/case
for how in link dir; do
	swapped $how 'replay' "$OUTAGE" replay it/findings/0-0
	swapped $how 'test --resume' "$OUTAGE" test --resume it
done
swapped dir 'replay --rerun' "$OUTAGE" replay it/findings/0-0 --rerun
swapped dir 'shrink' "$OUTAGE" shrink it/findings/0-0 -o small --force
place dir
ln -s it/findings/0-0 finding
swapped dir 'replay by a link' "$OUTAGE" replay finding

# ---- explore ----

rm -rf it
explore=(explore -t "ext4,grpid" --order walk --time 800s --findings 1 -j 1)
printf 'only mkdir chown creat\nnames files 1\nnames dirs 1\nnames depth 1\n' >inputs
check 'a run of explore' status 1 "${explore[@]}" -r "mounted:$OUTAGE reffs {mnt}" --inputs inputs -o it
one=$(cd it && echo findings/*-0)
his
sed -i "s#^reference .*#reference mounted:$dir/his {mnt}#" his-copy/run "his-copy/$one/case"
swapped dir 'explore: replay' "$OUTAGE" replay "it/$one"
swapped dir 'explore --replay' "$OUTAGE" explore --replay "it/$one"
swapped dir 'explore --resume' "$OUTAGE" explore --resume it --limit 1

# ---- app ----

rm -rf it
mkdir data
echo old >data/foo
check 'a run of app' status 1 app -o it --run 'echo new >t; mv t foo' -p minimal --budget 20 -j 1 \
	--check 'grep . foo || { echo it is empty; false; }' -- data
his
sed -i "s#^check .*#check $dir/his#" his-copy/run
swapped dir 'app: replay' "$OUTAGE" replay it/findings/0
swapped dir 'app --resume' "$OUTAGE" app --resume it

# ---- pm ----

rm -rf it
if command -v qemu-x86_64 >/dev/null && [ -x "$helpers/pm-writer" ]; then
	check 'a run of pm' status 1 pm --file pool --size 64K -j 1 -o it --check "$helpers/pm-reader check \"\$1\"" -- \
		"$helpers/pm-writer" pool late
	his
	sed -i "s#^check .*#check $dir/his#" his-copy/run
	swapped dir 'pm: replay' "$OUTAGE" replay it/findings/0
	swapped dir 'pm --resume' "$OUTAGE" pm --resume it
else
	skip 'no emulator, no run of pm'
fi
done_testing
