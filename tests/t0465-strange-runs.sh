#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0465-strange-runs.sh - a run that came from a stranger: whatever is in it, no command shows or
# changes a file of the user's that a link in it leads to, and none waits for a pipe or a device.
#
# A small run of each kind is made. Then each of its files and directories in turn becomes a link to
# a secret, a pipe, a device, and another name of a file of the user's, and all commands that read such a run are tried. What a run holds is
# listed by find, so that a new file is covered by itself.
# takes 120 s
# shellcheck disable=SC2317,SC2016 # functions are called through check; commands for other shells
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_mounts
: >out
undo=$helpers/pm-undo
requires_seedfs
requires_built "$mutant"

ask() { timeout -k 5 900 "$@" >>shown 2>&1 </dev/null; } # COMMAND...: what it says goes to shown
answers() { local want=$1; shift; ask "$@"; test $? -eq "$want"; } # STATUS COMMAND...

# ---- a run of each kind ----

printf 'workload w\ncreat foo\nwrite foo 0 64\nfsync foo\n' >w
echo 'missing: nothing # it is there' >rules
check "a run of test" answers 1 "$OUTAGE" test -t "fuse:$seedfs mount {disk} {mnt} -f -o bug=name-new" \
	--mkfs "$seedfs mkfs {disk}" --size 4M -j 1 --suppress rules -o test w
check "with a finding made small" answers 0 "$OUTAGE" shrink test/findings/0-0
explore=("$mutant" explore -t mutant:errno --order walk --limit 3000 --findings 1)
check "a run of explore" answers 1 "${explore[@]}" -o explore
mkdir data
echo old >data/foo
check "a run of app" answers 1 "$OUTAGE" app -o app --run 'echo new >t; mv t foo' -p minimal --budget 50 \
	--check 'grep . foo || { echo it is empty; false; }' -- data
kinds="test explore app"
if command -v qemu-x86_64 >/dev/null && [ -x "$undo" ]; then
	check "a run of pm" answers 1 "$OUTAGE" pm --file pool --size 64K -o pm --crash recovery --recoveries 2 \
		--budget 100 --recover "$undo \"\$1\" sick" --check "$undo \"\$1\" check" -- "$undo" pool run
	check "with a finding made small" answers 0 "$OUTAGE" shrink pm/findings/0
	kinds="$kinds pm"
else
	skip "no emulator, no run of pm"
fi

# ---- commands ----

# commands KIND HOW: those that read or write what is in run; false: one was ended for taking long.
# With a link, something may be shown or written; with a pipe, something may wait; a device is read by
# what reads the rest. "all" are all of them.
commands() {
	local one=run/findings/0 hung=0
	try() {
		ask "$@"
		case $? in 124 | 137) echo "hangs: $*" >>hung; hung=1 ;; esac
	}
	: >hung
	[ "$1" != test ] || one=run/findings/0-0
	[ "$1" != explore ] || one=run/findings/1-0
	rm -rf exported page
	if [ "$2" = planted ]; then
		# What is written and read is in the run as well.
		try "$OUTAGE" report run --html run/planted/page
		try "$OUTAGE" export "$one" -o run/planted/out
		try "$OUTAGE" trace graph run/trace -o run/planted/page
		try "$OUTAGE" gen --import run/planted/workload
		try "$OUTAGE" gen --bounds run/planted/workload --count
		try "$OUTAGE" test -t fuse:true --mkfs true -o tried run/planted/workload
		try "$OUTAGE" test -t fuse:true --mkfs true -o tried --suppress run/planted/workload w
		return "$hung"
	fi
	try "$OUTAGE" report run --json --html page
	case $1 in app | pm) try "$OUTAGE" "$1" --resume run --trust ;; esac
	[ "$2" != device ] || return "$hung"
	try "$OUTAGE" report "$one"
	try "$OUTAGE" export "$one" -o exported
	try "$OUTAGE" trace info run/trace
	try "$OUTAGE" trace info "$one/trace"
	[ "$1" != pm ] || try "$OUTAGE" trace info run/recovery/0/trace
	[ "$1" != test ] || try "$OUTAGE" test --resume run --trust
	# What is strange is not trusted, and would not be looked at.
	if [ "$1" = explore ]; then
		try "$mutant" explore --replay "$one" --trust
		try "$mutant" explore --overlap run run
		try "${explore[@]}" --resume run
	fi
	[ "$2" = link ] || try "$mutant" replay "$one" --trust
	[ "$2" = pipe ] || [ "$1" = explore ] || try "$OUTAGE" shrink "$one" --force --runs 1 --trust
	cat page exported/*.sh exported/*.c >>shown 2>/dev/null
	return "$hung"
}

# mark FILE...: has the word in it that must not be seen, at places where it would be
mark() {
	local f
	for f; do
		if [ -s "$f" ] && grep -Iq . "$f"; then
			sed -i 's/ is / SECRETWORD /; s/ was / SECRETWORD /; s/foo/SECRETWORD/g' "$f"
		fi
		echo SECRETWORD >>"$f"
	done
}

# ---- as it is, and with other names ----

for kind in $kinds; do
	rm -rf run other was && cp -a "$kind" run && cp -al run other && cp -a other was
	: >shown
	check "$kind: all commands come to an end" commands "$kind" all
	check "$kind: files of the same inode are as they were" diff -r was other
	ln -s "$kind" link
	check "$kind: the run itself may be a link" answers 0 "$OUTAGE" report link
	rm link
done

# ---- what a command is told to write to, and to read ----

for kind in $kinds; do
	for how in link pipe; do
		rm -rf run secret && cp -a "$kind" run && mkdir secret run/planted
		echo SECRETWORD >secret/it
		if [ $how = link ]; then
			ln -s ../../secret/it run/planted/page
			ln -s ../../secret run/planted/out
			ln -s ../../secret/it run/planted/workload
		else
			mkfifo run/planted/page run/planted/workload
		fi
		: >shown
		check "$kind: nothing waits for a $how that was planted" commands "$kind" planted
		check "... or shows what is behind it" eval '! grep SECRETWORD shown >err'
		check "... or writes to it" test "$(cat secret/*)" = SECRETWORD
		check "... the page is a file" test -f run/planted/page -a ! -h run/planted/page
	done
done

# ---- each file and each directory ----

# becomes HOW ENTRY: what run/ENTRY was is in secret, and is something else in the run
becomes() {
	rm -rf run secret secret-was && cp -a "$kind" run && mkdir secret && cp -a "run/$2" secret/it || return 1
	rm -rf "run/${2:?}"
	case $1 in
	link) find secret -type f | while read -r f; do mark "$f"; done && ln -s "$dir/secret/it" "run/$2" ;;
	pipe) mkfifo "run/$2" ;;
	device) mknod "run/$2" c 1 5 ;;
	name) mark secret/it && ln secret/it "run/$2" ;;
	esac
	cp -a secret secret-was
}
strange() { # KIND HOW ENTRY
	: >shown
	if ! becomes "$2" "$3" || ! commands "$1" "$2"; then
		cat hung >err
		return 1
	fi
	if [ "$2" != name ] && grep -q SECRETWORD shown; then
		grep -m 5 SECRETWORD shown >err
		return 1
	fi
	diff -r secret-was secret >err 2>&1
}
for kind in $kinds; do
	for entry in $(cd "$kind" && find . -mindepth 1 -printf '%P\n' | sort); do
		for how in link pipe device name; do
			[ "$how" != name ] || [ -f "$kind/$entry" ] || continue
			check "$kind: $entry as a $how" strange "$kind" "$how" "$entry"
		done
	done
done

# ---- what the user names ----

rm -rf run elsewhere && cp -a test run && mkdir elsewhere && ln -s elsewhere to
check "a link that the user gives is followed" answers 0 "$OUTAGE" shrink run/findings/0-0 --runs 1 -o to
check "to where it leads" test -f elsewhere/case -a -h to
ln -s ../base-0.img run/findings/0-0/link
check "a case that is named from within" eval "(cd run/findings && ask '$OUTAGE' replay 0-0; test \$? = 1)"
check "and by itself" eval "(cd run/findings/0-0 && ask '$OUTAGE' replay .; test \$? = 1)"
ln -s "$dir/run/findings/0-0" mine
check "and by a link of the user's" answers 1 "$OUTAGE" replay mine
mkdir real && ln -s real findings && cp -a test findings/0-0
check "a run behind a link that has a name like ours" answers 0 "$OUTAGE" report findings/0-0
mkdir strange
echo mine >precious
ln -s ../precious strange/trace
check "a new run does not write through a link that is there" eval "! run '$OUTAGE' app -o strange \
	--run 'echo x >t' --check true -- data && test \"\$(cat precious)\" = mine"
done_testing
