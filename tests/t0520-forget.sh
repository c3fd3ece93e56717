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
		sleep 0.1 # it is let go by somebody who waits for nothing
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
		clean() { [ ! -e source/.outage-stash/journal ]; }
		check "$profile $seed: and is cleared up" soon clean
		tree killed kept
		tree source now
		check "$profile $seed: with what was durable" same kept now
		rm -rf killed
	done
done

# ---- faults ----

start lazyfs -- crash timing=after op=fsync from=a
put a one
sync_it mnt/a >out 2>err
check "the application gets an error" test $? != 0
finish
check "the mount has crashed" test $status = 3
check "nothing is mounted" not_mounted
check "what was synced is there" holds source/a one
start lazyfs -- crash timing=before op=fsync from=a
put a one
sync_it mnt/a 2>err
finish
check "before the sync, nothing is" holds source/a ""

start lazyfs -- torn-op file=a parts=3 persist=1,3
printf 'aaabbbccc' >mnt/a 2>err
finish
check "a torn write" test "$(tr '\0' . <source/a)" = aaa...ccc
start lazyfs -- torn-op file=a parts=3 persist=2
put b whole
sync_it mnt/b
printf 'aaabbbccc' >mnt/a 2>err
finish
check "of another shape" test "$(tr '\0' . <source/a)" = ...bbb
check "and other files are whole" holds source/b whole

keep=
start ext4-ordered
coproc HOLD { "$helpers/forget-probe" hold mnt f; }
read -r -u "${HOLD[0]}" line
echo w >&"${HOLD[1]}" && read -r -u "${HOLD[0]}" line
check "somebody writes" test "$line" = 3
exec 6<mnt # nobody closes it before the end
ctl crash
finish
echo w >&"${HOLD[1]}" && read -r -u "${HOLD[0]}" line
check "after a crash, who has a file open gets an error ($line)" test "$line" = ENOTCONN
exec 6<&-
kill "$HOLD_PID" 2>/dev/null
wait "$HOLD_PID" 2>/dev/null
check "and the server says so" test $status = 3

start ext4-ordered
mkdir mnt/d
put d/a 1
check "a second mount of the same ROOT is refused" sh -c \
	"! timeout 900 '$helpers/forget-server' minimal source mnt </dev/null >out 2>err"
check "and told why" grep -q 'in use by another mount' err
check "the report names what is at risk" ctl report
check "the file" grep -q '^d/a: data 0' out
check "and the directory" grep -q '^d: make' out
ctl nonsense
check "and says so" grep -q '^error: ' out
stop

# ---- a fault in the middle of things, and the application goes on ----

for timing in before after; do
	for op in create mkdir symlink link unlink rmdir rename write truncate chmod fsync open setxattr; do
		start minimal
		mkdir mnt/d mnt/e
		put d/old x
		put gone x
		ctl checkpoint
		put unsynced x
		mv mnt/gone mnt/e/moved
		ctl "clear-cache timing=$timing op=$op"
		do_all() {
			timeout --kill-after=5 900 sh -c '
				cd mnt; ls >/dev/null
				echo a >d/new; mkdir d/dir; ln -s x d/sym; ln d/old d/link
				rm d/link; rmdir d/dir; mv d/sym e/; chmod 600 d/old; echo y >>d/old
				truncate -s 1 d/old; setfattr -n user.a -v 1 d/old; sync d/old d' >out 2>err
			[ $? -lt 124 ]
		}
		check "everything is lost $timing $op, and nothing hangs" do_all
		# The kernel is told after the answer, which another thread may be slow to do.
		is_lost() { [ -e mnt/gone ] && [ ! -e mnt/e/moved ]; }
		check "what came before is lost ($timing $op)" soon is_lost
		ctl checkpoint
		tree mnt seen
		tree source now
		check "the kernel knows it ($timing $op)" same seen now
		stop
	done
done

start lazyfs
put a 123456
sync_it mnt/a
ctl "error op=write error=ENOSPC file=a"
check "a write fails" bash -c "! printf x >>mnt/a 2>err"
check "with what was asked for" grep -q 'No space' err
check "the next one does not" sh -c 'printf 7 >>mnt/a'
sync_it mnt/a
check "and is written" holds source/a 1234567
for keep_dirty in false true; do
	printf %s "$keep_dirty" 1<>mnt/b
	ctl "error op=fsync error=EIO file=b keep_dirty=$keep_dirty"
	check "a sync fails" sh -c "! sync mnt/b 2>err"
	check "what was written is still seen" holds mnt/b "$keep_dirty"
	check "another one does not fail" sync_it mnt/b
	ctl clear-cache
	[ $keep_dirty = true ] && text=true || text=
	check "but what it should have written is $keep_dirty to be there" holds mnt/b "$text"
	rm mnt/b
done
coproc HOLD { "$helpers/forget-probe" hold mnt c; }
read -r -u "${HOLD[0]}" line
ctl "short op=write bytes=2 file=c"
for bytes in 2 3; do
	echo w >&"${HOLD[1]}" && read -r -u "${HOLD[0]}" line
	check "a write of 3 bytes that writes $bytes" test "$line" = $bytes
done
kill "$HOLD_PID"
wait "$HOLD_PID" 2>/dev/null
head -c 40960 /dev/zero | tr '\0' x >mnt/pages
check "a page becomes durable" ctl "sync file=pages pages=first"
ctl clear-cache
check "and no other" test "$(wc -c <mnt/pages)" = 4096
put a abcdefg
check "data may survive" ctl "clear-cache survive=data"
check "and does" holds source/a abcdefg
ctl "delay op=read delay=1h file=a"
rm -f slow
(cat mnt/a >out 2>err; echo ended >slow) &
check "a delay strikes" soon grep -q 'at read of a' server.err
check "somebody waits" test ! -e slow
ctl crash
check "a crash ends that" soon test -e slow
finish
check "at once" test "$status" = 3

start minimal
put a x
mkdir mnt/d
check "metadata may survive" ctl "clear-cache survive=metadata"
check "and does, without data" test -d mnt/d -a -e mnt/a -a ! -s mnt/a
stop

start lazyfs -- torn-seq file=a op=write persist=1,3
timeout 900 sh -c 'exec 3>mnt/a; printf aaaa >&3; printf bbbb >&3; printf cccc >&3; printf dddd >&3' 2>err
finish
check "of some writes, some are durable" test "$(tr '\0' . <source/a)" = aaaa....cccc

start lazyfs
coproc HOLD { "$helpers/forget-probe" hold mnt f; }
read -r -u "${HOLD[0]}" line
for what in w f s; do echo $what >&"${HOLD[1]}" && read -r -u "${HOLD[0]}" line; done
ctl clear-cache
echo m >&"${HOLD[1]}" && read -r -u "${HOLD[0]}" line
check "what was stored to a mapped file is lost ($line)" test "$line" = new
for what in s f; do echo $what >&"${HOLD[1]}" && read -r -u "${HOLD[0]}" line; done
ctl clear-cache
echo r >&"${HOLD[1]}" && read -r -u "${HOLD[0]}" line
check "unless it was synced ($line)" test "${line:0:3}" = map
kill "$HOLD_PID"
wait "$HOLD_PID" 2>/dev/null
stop

for sync in "" oflag=sync oflag=dsync; do
	start lazyfs
	# shellcheck disable=SC2086 # no flag is no word
	printf data | dd of=mnt/a $sync 2>err
	ctl clear-cache
	[ -n "$sync" ] && text=data || text=
	check "after a write with '$sync'" holds mnt/a "$text"
	stop
done

start ext4-ordered trace="$dir/t" data=1
put a text
mv mnt/a mnt/b
sync_it mnt/b
stop
check "the trace can be read" run "$OUTAGE" trace show t
for op in create write rename fsync; do
	check "$op is in it" grep -qw $op out
done

done_testing
