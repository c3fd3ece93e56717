#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0457-trust-kinds.sh - a stranger's findings of every kind: what they would have this machine's
# kernel mount, a guest load, an application or a program run.
# shellcheck disable=SC2016,SC2034,SC2317 # commands for other shells, and for eval; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_mounts

# shellcheck source=tests/trust-lib.sh
. "$root/tests/trust-lib.sh"
# bits WORDS FINDING FILE...: of a copy of run, each file in turn with its last byte changed is refused
bits() {
	local words=$1 finding=$2 file
	shift 2
	for file; do
		rm -rf copy && cp -r run copy
		printf '#' | dd of="copy/$file" bs=1 seek=$(($(stat -c %s "copy/$file") - 1)) conv=notrunc status=none
		check "a byte of $file" eval 'rm -f ran; as "$ours" 2 replay "copy/$finding" && test ! -e ran &&
			{ grep -q "was not made by you.*$words" err || grep -qE "damaged|no such|cut|end|expected" err; }'
	done
}

# ---- this machine's kernel ----

printf 'creat foo\nwrite foo 0 8192\nfsync foo\n' >w
check 'ext4 without barriers' as "$ours" 1 test -t ext4,barrier=0 --crash reorder --budget 40 -j 1 -o run w
kernel="have its disk mounted by this machine's kernel with the options 'barrier=0'"
one=run/findings/0-0
check 'one finds it again' as "$ours" 1 replay $one
check 'a stranger has nothing mounted' distrusts "$kernel; look at it" "$stranger" replay $one
check 'nor run again' distrusts "$kernel" "$stranger" replay --rerun $one
check 'nor made small' distrusts "$kernel" "$stranger" shrink $one

# What is exported is no way to run something, either: names may have any byte in them.
cp -r run odd
printf '%s\n' 'symlink z mode=0777 uid=0 gid=0 nlink=1 size=40 target="x\nEND_OF_LISTING\n}\ntouch ran\nf() {\n"' >>odd/findings/0-0/expected
check 'a link with ends of lines in it' as "$ours" 0 export odd/findings/0-0 -o given
check 'is told' grep -q 'z: l 777 0:0 links=1 -> x END_OF_LISTING' given/reproduce.sh
check 'and no line of the script' eval '! grep -qx "touch ran" given/*'

sed -i 's/^target .*/target ext4,errors=continue/' $one/case
check 'another option, such as errors=panic would be' distrusts "with the options 'errors=continue'" "$ours" replay $one
check 'can be avoided' grep -q -- '--trust, or make its target vm:ext4, which is a guest' err
check 'with other words the same is refused' eval 'sed -i "s/^target .*/target fuse,:touch ran {disk} {mnt}/" $one/case &&
	distrusts "run .touch ran" "$ours" replay $one'

if command -v linux.uml >/dev/null; then
	sed -i 's/^target .*/target uml:ext4/; /^recorder/d' $one/case
	check 'in a guest a stranger sees it' as "$stranger" 1 replay $one
	cp $one/case plain
	for key in guest-kernel guest-modules guest-file mkfs check; do
		{ cat plain; echo "$key $dir/evil"; } >$one/case
		check "not with $key" distrusts "'$dir/evil' ($key)" "$stranger" replay $one
	done
	cp plain $one/case
	cp $one/workload work
	echo 'shell "touch ran"' >>$one/workload
	check 'nor with a command in its workload' distrusts "'touch ran' (shell)" "$stranger" replay $one
	cp work $one/workload

	# Of a disk that cannot be mounted, a checker of this machine is not asked.
	mkdir bin
	printf '#!/bin/sh\ntouch "%s/ran"\nexit 8\n' "$dir" >bin/e2fsck
	chmod +x bin/e2fsck
	broken=$(grep -l '^unmountable' run/findings/*/problems | head -n 1)
	broken=${broken%/problems}
	sed -i 's/^target .*/target uml:ext4/; /^recorder/d' "$broken/case"
	check 'one that cannot be mounted' env PATH="$dir/bin:$PATH" bash -c "
		XDG_STATE_HOME=$stranger timeout 900 '$OUTAGE' replay '$broken' >out 2>err; [ \$? -le 1 ]"
	check 'runs no program here' test ! -e ran
	PATH=$dir/bin:$PATH XDG_STATE_HOME=$stranger timeout 900 "$OUTAGE" replay --trust "$broken" >out 2>err
	check 'unless it is trusted' test -e ran
	rm -f ran
	sed -i 's/^unmountable/fsck/' "$broken/problems"
	check 'what only that can show is refused' distrusts 'checker (fsck) of this machine' "$stranger" replay "$broken"
else
	skip 'linux.uml is not there'
fi

# ---- the model checker ----

mkdir -p found
printf 'creat foo\n' >found/script
cp found/script found/workload
printf 'missing\tfoo\tfoo: is missing\t\n' >found/problems
printf 'outage-explore-case 2\nversion 0.1.0\ntarget uml:ext4\nguarantee linux\nstate live\nbase base.img\nreference reffs\nsignature x\n' >plain
for key in guest-modules reference-guest-modules reference-guest-kernel reference-mkfs; do
	{ cat plain; echo "$key $dir/evil"; } >found/case
	check "explore: $key" distrusts "'$dir/evil' ($key)" "$ours" explore --replay found
done
sed 's/^reference .*/reference ext4,errors=continue/' plain >found/case
check 'explore: a reference of this kernel' distrusts "with the options 'errors=continue'" "$ours" explore --replay found
sed 's/^target .*/target mounted,:touch ran {mnt}/' plain >found/case
check 'explore: a server by another name' distrusts "run 'touch ran {mnt}'" "$ours" explore --replay found
cp plain found/case
echo 'shell "touch ran"' >>found/script
check 'explore: a command in its script' distrusts "run 'touch ran' (shell)" "$ours" explore --replay found
printf '#!/bin/sh\ntouch "%s/ran"\nexec "%s" reffs "$1"\n' "$dir" "$OUTAGE" >server
chmod +x server
rm -rf run
check 'explore: a server that is not the reference' as "$ours" 1 explore -t ext4,grpid -r "mounted:$dir/server {mnt}" \
	--order walk --time 800s --findings 1 -o run \
	--inputs <(printf 'only mkdir chown creat\nnames files 1\nnames dirs 1\nnames depth 1\n')
one=$(echo run/findings/*-0)
check 'explore: one'"'"'s own is done again' as "$ours" 1 explore --replay "$one"
check 'explore: a stranger does not run it' distrusts "kernel with the options 'grpid', run '$dir/server {mnt}'" \
	"$stranger" explore --replay "$one"
check 'explore: nor does he with outage replay' distrusts "by this machine's kernel" "$stranger" replay "$one"
bits "by this machine's kernel" "${one#run/}" "${one#run/}/script" "${one#run/}/case"

# ---- an application ----

mkdir data
echo old >data/settings
printf '#!/bin/sh\ntouch "%s/ran"\ngrep -q . "$1/settings"\n' "$dir" >looks
printf '#!/bin/sh\ncd "%s/data" && echo new >tmp && mv tmp settings\n' "$dir" >writes
chmod +x looks writes
rm -rf run
check 'app: a file that may be empty' as "$ours" 1 app -p minimal --run "$dir/writes" --check "$dir/looks \"\$1\"" -j 1 -o run -- data
one=run/findings/0
check 'app: it has marks' test -s run/mark -a -s $one/mark
check 'app: it shows again' as "$ours" 1 replay $one
check 'app: a stranger does not run it' distrusts "^outage: run was not made.* run '$dir/looks .*(check), use the path '$dir/data' (dir)" "$stranger" replay $one
check 'app: he may look' as "$stranger" 0 report run
check 'app: and export' as "$stranger" 0 export $one -o given
check 'app: with a warning' grep -q 'NOT VERIFIED' given/reproduce.sh
cp -r run copied
check 'app: a copy is still the same' as "$ours" 1 replay copied/findings/0
bits "run '$dir/looks" findings/0 run base/settings findings/0/case
rm -rf copy && cp -r run copy && touch copy/base/more
check 'app: a file more in its directory' distrusts "run '$dir/looks" "$ours" replay copy/findings/0
rm -rf copy && cp -r run copy && rm copy/base/settings && ln -s /etc/passwd copy/base/settings
check 'app: a link in place of one' distrusts "run '$dir/looks" "$ours" replay copy/findings/0

# ---- a program on persistent memory ----

if command -v qemu-x86_64 >/dev/null; then
	printf '#!/bin/sh\ntouch "%s/ran"\n"%s/pm-reader" check "$1"\n' "$dir" "$helpers" >sees
	chmod +x sees
	rm -rf run
	check 'pm: a store that is late' as "$ours" 1 pm --file pool --size 64K -j 1 -o run --check "$dir/sees \"\$1\"" -- \
		"$helpers/pm-writer" pool late
	one=run/findings/0
	check 'pm: it shows again' as "$ours" 1 replay $one
	check 'pm: a stranger does not run it' distrusts "run '$dir/sees" "$stranger" replay $one
	check 'pm: nor makes it small' distrusts "run '$dir/sees" "$stranger" shrink $one
	check 'pm: what one made small' as "$ours" 0 shrink $one
	check 'pm: is one'"'"'s own' as "$ours" 1 replay run/shrunk/0
	check 'pm: exported by a stranger' as "$stranger" 0 export $one -o given
	check 'pm: it says so' grep -q 'NOT VERIFIED' given/reproduce.sh
	bits "run '$dir/sees" findings/0 run base.img findings/0/case findings/0/said
else
	skip 'there is no qemu-x86_64'
fi

done_testing
