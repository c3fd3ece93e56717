#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The mount that forgets: what was synced is there after a power cut, and what was not is not, by
# profile; whatever ends the server; and without a power cut it is like any other file system.
# shellcheck disable=SC2317 # what `check` and the trap call
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/forget-lib.sh
. "$root/tests/forget-lib.sh"

# ---- like any other file system ----

for profile in lazyfs ext4-ordered minimal; do
	start $profile
	check "$profile: what applications do" run "$helpers/forget-probe" calls mnt
	check "$profile: many threads" run "$helpers/forget-probe" crowd mnt 5 400
	check "$profile: names are counted while others go" run "$helpers/forget-probe" links mnt 1000
	tree mnt seen
	stop
	check "$profile: it ends well" test $status = 0
	tree source left
	check "$profile: unmounting loses nothing" same seen left
	check "$profile: nothing else is left" test ! -e source/.outage-stash
done
for profile in lazyfs minimal; do
	descriptors=200 start $profile
	check "$profile: with few descriptors" run "$helpers/forget-probe" calls mnt
	tree mnt seen
	stop
	tree source left
	check "$profile: nothing is lost with few descriptors" same seen left
done

# ---- what a large file leaves ----

# A file of many pages that nobody synced is removed; its memory goes to the next ones.
for profile in lazyfs ext4-ordered; do
	start $profile
	printf 'old old old' >mnt/b
	ctl checkpoint
	for i in 1 2 3 4 5 6 7 8; do
		head -c 16000000 /dev/zero | tr '\0' x >mnt/large
		rm mnt/large
		# A thread that waits for nothing gives its memory back. Mostly it has begun by then, which nothing below needs.
		sleep 0.1
		printf "new %s" "$i" 1<>mnt/b
		printf "small %s" "$i" >"mnt/a$i"
		sync_it "mnt/a$i" mnt/b || break
	done
	check "$profile: memory of a large file that went: new files" holds mnt/a8 "small 8"
	check "$profile: and old ones, of which the rest stays" holds mnt/b "new 8ld old"
	check "$profile: what was synced is durable" holds source/b "new 8ld old"
	check "$profile: new files as well" holds source/a8 "small 8"
	ctl clear-cache
	check "$profile: and stays after a power cut" holds mnt/b "new 8ld old"
	stop
	check "$profile: it ends well after that" test $status = 0
done

# ---- by profile ----

# lost NAME PROFILE FILE TEXT: after a power cut, FILE holds TEXT ("-": it is not there), both for
# who looks through the mount and in ROOT
after() {
	local name="$2: $1"
	ctl clear-cache
	if [ "$4" = - ]; then
		check "$name" test ! -e "mnt/$3"
		check "$name, in ROOT as well" test ! -e "source/$3"
	else
		check "$name" holds "mnt/$3" "$4"
		check "$name, in ROOT as well" holds "source/$3" "$4"
	fi
}
for profile in lazyfs ext4-ordered ext4-writeback xfs btrfs minimal; do
	start $profile
	# Something that is there.
	put old before
	mkdir mnt/d
	put d/f durable
	ctl cache-checkpoint

	put new data
	cat mnt/new >/dev/null
	case $profile in
	lazyfs) after "a name is durable at once, data is not" $profile new "" ;;
	*) after "a file that was not synced" $profile new - ;;
	esac
	put new data && sync_it mnt/new
	case $profile in
	minimal) after "a file whose directory was not synced" $profile new - ;;
	*) after "a file that was synced" $profile new data ;;
	esac
	put new data && sync_it mnt/new mnt
	after "a file and its directory, synced" $profile new data

	printf changed >mnt/d/f
	after "what was overwritten and not synced" $profile d/f \
		durable
	printf changed 1<>mnt/d/f
	sync_it mnt/d/f
	after "what was overwritten and synced" $profile d/f changed
	mv mnt/old mnt/d/g
	case $profile in
	lazyfs) after "a rename" $profile d/g before && mv mnt/d/g mnt/old ;;
	*) after "a rename that was not synced" $profile old before ;;
	esac
	mv mnt/old mnt/d/g
	put other x && sync_it mnt/other
	case $profile in
	lazyfs | ext4* | xfs) after "a rename before the sync of another file" $profile d/g before ;;
	*) after "a rename and the sync of another file" $profile old before ;;
	esac
	ctl cache-checkpoint
	put tmp replacing
	mv mnt/tmp mnt/d/f
	put other y && sync_it mnt/other
	case $profile in
	ext4-ordered) after "what replaces another has its data" $profile d/f replacing ;;
	ext4-writeback) after "what replaces another may be zeros" $profile d/f "" ;;
	xfs | lazyfs) after "what replaces another may be empty" $profile d/f "" ;;
	*) after "a replacement that was not synced" $profile d/f changed ;;
	esac
	ctl cache-checkpoint
	rm mnt/d/f
	case $profile in
	lazyfs) after "a removal" $profile d/f - ;;
	*) check "$profile: what was removed is hidden" test ! -e mnt/d/f
		ctl clear-cache
		check "$profile: a removal that was not synced" test -e mnt/d/f
		rm mnt/d/f && sync_it mnt/d
		after "a removal that was synced" $profile d/f - ;;
	esac
	chmod 700 mnt/d
	ctl clear-cache
	mode=$(stat -c %a mnt/d)
	case $profile in
	lazyfs) check "$profile: a mode is durable" test "$mode" = 700 ;;
	*) check "$profile: a mode that was not synced" test "$mode" = 755 ;;
	esac
	chmod 700 mnt/d
	sync_it mnt/d
	ctl clear-cache
	check "$profile: a mode that was synced" test "$(stat -c %a mnt/d)" = 700
	check "$profile: unmounted" stop
done

# ---- a loss leaves what is durable, whatever happened before; however it comes ----

for profile in lazyfs ext4-ordered btrfs minimal; do
	for seed in 1 2 3; do
		start $profile
		run "$helpers/forget-probe" storm mnt $seed 700 || cat out
		check "$profile $seed: a snapshot" ctl snapshot s
		check "$profile $seed: and a loss" ctl clear-cache
		tree source/.outage-stash/snapshots/s kept
		tree source now
		check "$profile $seed: what is left is what was durable" same kept now
		tree mnt seen
		check "$profile $seed: and that is what is seen" same kept seen
		run "$helpers/forget-probe" storm mnt $((seed + 100)) 300
		ctl cache-checkpoint
		tree mnt seen
		tree source now
		check "$profile $seed: it goes on" same seen now
		check "$profile $seed: back to the snapshot" ctl rollback s
		tree mnt seen
		check "$profile $seed: all is as it was" same kept seen
		run "$helpers/forget-probe" storm mnt $((seed + 200)) 300
		ctl snapshot t
		cp -a source/.outage-stash/snapshots/t killed
		kill -KILL "$server"
		finish 2>/dev/null
		check "$profile $seed: a killed server's mount ends" soon not_mounted
		check "$profile $seed: and is cleared up" soon test ! -e source/.outage-stash/journal
		tree killed kept
		tree source now
		check "$profile $seed: with what was durable" same kept now
		rm -rf killed
	done
done

done_testing
