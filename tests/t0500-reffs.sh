#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The reference file system does what this kernel's ext4 and tmpfs do, for several users: the same
# random calls on both, in a mount namespace of our own. Mounted, it does so, too; what was saved
# comes back, whatever the kernel knew; and nothing is left of it.
# shellcheck disable=SC2317 # what `check` and the trap call
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/reffs-lib.sh
. "$root/tests/reffs-lib.sh"
diff=$helpers/reffs-diff
probe=$helpers/reffs-probe

enough() { awk -v least="$1" '/^rounds/ { n = $4 } END { exit n < least }' out; }
much_refused() { awk '/^rounds/ { n = $6 } END { exit n < 100 }' out; }

# Another user, who must get here, and to the program.
for_everybody
nobody=("${as_user[@]}")
has_nobody=
"${nobody[@]}" "$OUTAGE" --version >out 2>err && has_nobody=yes

mkdir ext4 tmpfs mnt
has_ext4=
truncate -s 64M image
if mkfs.ext4 -q -F -b 4096 image 2>err && timeout 900 mount -o loop image ext4 2>err; then
	check "by several users, as on ext4" run "$diff" ext4 --rounds 300 --seed 501
	grep '^rounds' out | sed 's/^/# /'
	check "that is enough to say something" enough 15000
	check "and much was refused" much_refused
	run "$diff" ext4 --rounds 300 --seed 501 --spoil
	status=$?
	check "a user who is taken for another is found out" test $status = 1
	has_ext4=yes
else
	skip "no ext4 can be mounted here: $(head -1 err)"
fi
if timeout 900 mount -t tmpfs none tmpfs 2>err; then
	check "by several users, as on tmpfs" run "$diff" tmpfs --tmpfs --rounds 300 --seed 502
	grep '^rounds' out | sed 's/^/# /'
else
	skip "no tmpfs can be mounted here"
fi

if [ ! -w /dev/fuse ] || ! command -v fusermount3 >/dev/null; then
	skip "no FUSE here: nothing is mounted"
	done_testing
fi

# no_fusermount USER...: as on a machine without the package fuse3; root mounts without it
no_fusermount() {
	timeout --kill-after=5 900 unshare -m sh -c "mount --bind /dev/null $(command -v fusermount3) &&
		exec $* $OUTAGE reffs $dir/mnt" >out 2>err </dev/null
	[ $? = 2 ] && grep -q 'fusermount3 is not there; .*apt-get install fuse3' err
}
if [ -n "$has_nobody" ] && "${nobody[@]}" test -w /dev/fuse && unshare -m true 2>/dev/null; then
	check "without fusermount3, it says what to install" no_fusermount "${nobody[@]}"
else
	skip "no other user, or no mount namespace"
fi

# Not by looking at it: root may not look at what users mount.
# unmounted COMMAND...: which somebody may keep from it for a moment; if longer, it is said who
unmounted() {
	local p

	soon "$@" mnt 2>busy.err && return 0
	cp busy.err err
	for p in /proc/[0-9]*; do
		if [ -e "$p/mountinfo" ] && grep -q " $dir/mnt fuse" "$p/mountinfo" 2>/dev/null; then
			echo "seen by ${p#/proc/} ($(cat "$p/comm")) $(find "$p/cwd" "$p/root" "$p/fd" -lname "$dir/mnt*" 2>/dev/null | wc -l) times" >>err
		fi
	done
	return 1
}
ctl() { run "$OUTAGE" reffs "$@"; }
wrong() { # WORDS COMMAND...: a failure that says these words
	local words=$1
	shift
	"$@"
	[ $? = 2 ] && grep -q -- "$words" err
}

check "it is mounted" start --allow-other
if [ -n "$has_ext4" ]; then
	check "mounted, as on ext4" run "$diff" ext4 --mount mnt --rounds 60 --seed 503
	grep '^rounds' out | sed 's/^/# /'
fi
check "a restore leaves nothing of later in the kernel" run "$probe" caches mnt
check "nor do names, attributes, listings, pages stay" run "$probe" kernel mnt
if [ "$(id -u)" = 0 ] && [ -n "$has_nobody" ]; then
	check "nor may others search what they may no longer" run "$probe" users mnt
else
	skip "no other user can run this program here"
fi
if printf '6.16\n%s\n' "$(uname -r)" | sort -CV; then
	check "and yet it is asked less than it is looked at" \
		run "$probe" keeps mnt "$server"
else
	skip "this kernel has no epochs: it keeps nothing"
fi
check "wrong calls are refused" run "$probe" errors mnt
if [ -n "$has_nobody" ]; then
	check "others may look" run "${nobody[@]}" ls mnt
	check "but not save" wrong 'not permitted' run "${nobody[@]}" "$OUTAGE" reffs save 1 mnt
else
	skip "no other user can run this program here"
fi
stop -TERM
check "a signal unmounts it" soon not_mounted
check "and that is a good end" test "$status" = 0

# Whoever asks twice gets the same.
for ((i = 0; i < 10; i++)); do
	start
	kill -TERM "$server"
	stop -TERM
	if [ "$status" != 0 ] || is_mounted; then break; fi
done
check "asked twice, it unmounts as well" test $i = 10

start --direct
check "the same without pages in the kernel" run "$probe" caches mnt
check "and for the rest that it keeps" run "$probe" kernel mnt
stop -INT
ended_well() {
	[ "$status" = 0 ] && not_mounted && return 0
	echo "status $status, mounted $(grep -c " $dir/mnt " /proc/self/mounts) times" >>err
	return 1
}
check "another signal" ended_well

start
check "threads at work while it is saved and restored" run "$probe" crowd mnt 3
sed -n 's/^# /# /p' out
check "whatever others look at, a restore is complete" run "$probe" race mnt 3
sed -n 's/^# /# /p' out

# Files of states: one mount after the other.
echo one >mnt/a
mkdir mnt/d
ln mnt/a mnt/d/b
ctl save 1 mnt
ctl hash mnt
first=$(cat out)
echo two >mnt/a
rm mnt/d/b
ctl save 2 mnt
ctl hash mnt
second=$(cat out)
check "two states, two hashes" test "$first" != "$second"
check "all states go into a file" ctl pickle all.states mnt
check "or one of them" ctl pickle one.states 1 mnt
check "there is no third" wrong 'no state' ctl pickle three.states 99 mnt
check "nowhere to write" wrong 'not there' ctl pickle no/where 1 mnt
check "it is unmounted" unmounted umount
wait "$server"
check "who unmounts it ends it" test $? = 0
server=

start --load one.states --key 1
ctl hash mnt
check "a mount begins with a saved state" test "$(cat out)" = "$first"
check "with all that was there" test "$(cat mnt/d/b) $(stat -c %h mnt/a)" = "one 2"
echo three >mnt/a
touch mnt/new
check "others are loaded into it" ctl load all.states mnt
ctl restore 2 mnt
ctl hash mnt
check "and shown" test "$(cat out) $(cat mnt/a)" = "$second two"
ctl restore --keep 1 mnt
check "one after the other" test "$(cat mnt/d/b)" = one
check "a state that was kept is there again" ctl restore 1 mnt
check "one that was not is gone" wrong 'no state' ctl restore 1 mnt
head -c 200 all.states >cut.states
check "a file that was cut off is refused" wrong damaged ctl load cut.states mnt
echo 'nothing of the kind' >other.states
check "as is one that is none" wrong 'no file of saved states' ctl load other.states mnt
cp all.states old.states
printf '\377' | dd of=old.states bs=1 seek=8 conv=notrunc 2>dd.err
check "one of another version is said to be" wrong 'version 255, this program reads version' ctl load old.states mnt
check "and what to do" grep -q 'write it again with this program' err
mkdir mnt2
check "by --load, too" wrong 'version 255, this program reads version' ctl --load old.states mnt2
check "a file that is not there" wrong 'cannot read' ctl load no.states mnt
check "no key" wrong 'is no key' ctl save x mnt

# However it ends.
kill -KILL "$server"
wait "$server" 2>/dev/null
server=
check "killed, it is unmounted all the same" soon not_mounted

check "in the background" run timeout 900 "$OUTAGE" reffs --daemon --size 40K --inodes 4 mnt
check "it is there when the command returns" is_mounted
head -c 100000 /dev/zero >mnt/full 2>err
check "there is room for as much as was said" test "$(stat -c %s mnt/full)" = 40960
check "and no more" eval "! echo x >>mnt/full 2>err"
touch mnt/b mnt/c
check "nor for more files" eval "! touch mnt/d 2>err"
check "df says so" test "$(df --output=avail mnt | tail -1)" -eq 0
check "it is unmounted" unmounted umount
check "and gone when it is unmounted" soon not_mounted

if [ -n "$has_nobody" ] && "${nobody[@]}" test -w /dev/fuse && [ -u "$(command -v fusermount3)" ]; then
	chown 65534:65534 mnt
	"${nobody[@]}" timeout 900 "$OUTAGE" reffs mnt 2>err &
	user_server=$!
	check "a user mounts it" soon is_mounted
	check "and owns it" run "${nobody[@]}" sh -c 'echo x >mnt/a && test -O mnt && test -O mnt/a'
	check "saves it" run "${nobody[@]}" "$OUTAGE" reffs save 1 mnt
	check "unmounts it" unmounted run "${nobody[@]}" fusermount3 -u
	wait $user_server
	check "and it is gone" soon not_mounted
else
	skip "users cannot mount here"
fi

check "nothing to mount on" wrong 'cannot mount' ctl nowhere
check "a file" wrong 'no directory' ctl image
check "no mount to talk to" wrong 'no mounted reference' ctl save 1 tmpfs
check "no such option" wrong 'help' ctl --frobnicate mnt
check "no such mode" wrong 'permissions' ctl --mode 99 mnt
check "no such way" wrong 'relative' ctl --atime never mnt
done_testing
