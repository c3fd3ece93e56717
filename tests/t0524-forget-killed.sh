#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The mount that forgets is killed in the middle of a sync, or of going back to a snapshot; and ROOT refuses a
# change: what is left is what a power cut could leave.
# shellcheck disable=SC2317 # what `check` and the trap call
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/forget-lib.sh
. "$root/tests/forget-lib.sh"

mutant=$build/tests/mutant/forget-mutant

# ---- killed in the middle of a sync ----

# ROOT then has a first part of what the sync was to bring, in order: each name with its whole file, no
# other names, and nothing of what is older is missing.
cat >prefix.py <<'END'
import os, sys
at, last = "source/d", 12
names = set(os.listdir(at))
steps = []
for i in range(1, last + 1):
    new, old, moved = "new%d" % i, "old%d" % i, "moved%d" % i
    steps.append(new in names)           # made, with its data
    steps.append(moved in names)         # renamed over what was there
    steps.append(old not in names)       # removed
    for name, text in (new, "new %d\n" % i), (old, "old %d\n" % i):
        if name in names and open(at + "/" + name).read() != text:
            sys.exit("%s is not whole" % name)
    if moved in names and open(at + "/" + moved).read() != "moving %d\n" % i:
        sys.exit("%s is not whole" % moved)
    if (moved in names) == ("moving%d" % i in names):
        sys.exit("moving%d is at both names, or at none" % i)
    names -= {new, old, moved, "moving%d" % i}
if names:
    sys.exit("there are other names: %s" % names)
done = steps.count(True)
if steps != [True] * done + [False] * (len(steps) - done):
    sys.exit("not the first %d: %s" % (done, steps))
if os.listdir("source") != ["d"]:
    sys.exit("ROOT has other names")
print(done)
END
for profile in ext4-ordered minimal; do
	for at in 1 2 3 20 41 71 72; do
		rm -rf source
		program=$mutant FORGET_MUTANT=killed FORGET_MUTANT_AT=$((at + 50)) keep=yes start $profile
		mkdir mnt/d
		for i in {1..12}; do
			echo "old $i" >mnt/d/old$i
			echo "moving $i" >mnt/d/moving$i
		done
		ctl checkpoint # 25 are made, and it may die before and after each
		check "$profile: it lives as long as it should ($at)" kill -0 "$server"
		for i in {1..12}; do
			echo "new $i" >mnt/d/new$i
			mv mnt/d/moving$i mnt/d/moved$i
			rm mnt/d/old$i
		done
		echo checkpoint >&9 # which is killed
		check "$profile: killed in the middle of a sync ($at)" soon server_gone
		finish 2>/dev/null
		soon not_mounted
		soon unlocked
		check "$profile: ROOT has a first part of it ($at)" run python3 prefix.py
		tree source left
		keep=yes start $profile
		tree mnt seen
		check "$profile: which the next mount shows ($at)" same left seen
		stop
	done
done

# ---- what ROOT refuses ----

start minimal
mkdir mnt/d
put d/a x
ctl checkpoint
chattr_works() { chattr +i source/d 2>err; }
if chattr_works; then
	mv mnt/d/a mnt/b
	put c x
	check "a sync that ROOT refuses fails" fails sync_it mnt
	check "and is said" grep -q 'cannot be done in ROOT: ' server.err
	check "what is seen stays" holds mnt/b x
	check "ROOT is as it was" test -e source/d/a -a ! -e source/b
	chattr -i source/d
	check "then it works" sync_it mnt mnt/c
	check "all of it" test -e source/b -a -e source/c -a ! -e source/d/a
	stop
else
	skip "no file can be made immutable here"
	stop
fi

# ---- going back to a snapshot ----

for at in 1 2; do
	rm -rf source
	mkdir source
	program=$mutant FORGET_MUTANT=rollback FORGET_MUTANT_AT=$at keep=yes start ext4-ordered
	mkdir mnt/d mnt/e
	for i in 1 2 3; do put d/$i $i; done
	ctl checkpoint
	ctl snapshot s
	tree mnt kept
	rm -r mnt/d
	put new x
	ctl checkpoint
	echo rollback s >&9
	check "killed on the way back to a snapshot, at $at" soon server_gone
	finish 2>/dev/null
	soon not_mounted
	soon unlocked
	keep=yes start ext4-ordered
	tree mnt seen
	check "the next mount gets there ($at)" same kept seen
	check "and forgets about it" test ! -e source/.outage-stash/rollback
	stop
done
start ext4-ordered
put a x
ctl checkpoint
ctl snapshot s
stop
printf gone >source/.outage-stash/rollback
check "half way back to a snapshot that is gone" fails timeout 900 "$helpers/forget-server" \
	ext4-ordered source mnt </dev/null
check "is said, with what to do" grep -q 'half way back to its snapshot gone.*remove' err

# Who works while it goes back comes before it or after it: what was done in between must not be taken
# back from what the snapshot brought.
program=$mutant FORGET_MUTANT=slow-loss start minimal
put x snapshot
ctl checkpoint
ctl snapshot s
workers=()
for i in 1 2 3; do
	python3 - <<'END' &
import os, signal
signal.alarm(120)
while True:
	for do in (lambda: os.unlink("mnt/x"), lambda: open("mnt/x", "w").close()):
		try:
			do()
		except OSError:
			pass
END
	workers+=($!)
done
wrong=0
stopped() {
	local pid
	for pid in "${workers[@]}"; do
		grep -q '^State:.T' "/proc/$pid/status" || return 1
	done
}
for ((i = 0; i < 8; i++)); do
	kill -STOP "${workers[@]}"
	soon stopped # a request that is on its way is done before
	put x later
	ctl checkpoint
	kill -CONT "${workers[@]}"
	ctl rollback s || wrong=1
	kill -STOP "${workers[@]}"
	soon stopped
	ctl clear-cache
	holds source/x snapshot || wrong=2
done
kill -KILL "${workers[@]}"
wait "${workers[@]}" 2>/dev/null
check "nothing of the time before it is taken back later" test $wrong = 0
put x new
sync_it mnt/x mnt
ctl clear-cache
check "and it goes on" holds source/x new
stop

done_testing
