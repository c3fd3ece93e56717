#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Faults of the mount that forgets: each strikes where it should, in the middle of what an application does,
# which goes on and sees what is left.
# shellcheck disable=SC2317 # what `check` and the trap call
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/forget-lib.sh
. "$root/tests/forget-lib.sh"

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
