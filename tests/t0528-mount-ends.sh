#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# How a mount ends: while it is used, with what could not be written, where the kernel gives numbers of
# devices again, and with a server that does not end.
# shellcheck source=tests/lib.sh disable=SC2016,SC2317 # expanded by eval, called through check
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/mount-lib.sh
. "$root/tests/mount-lib.sh"

# ---- in use ----


# sits_in DIR: $sleeper is there already, and is sleep(1)
sits_in() {
	[ "$(readlink "/proc/$sleeper/cwd")" = "$dir/$1" ] && [ "$(cat "/proc/$sleeper/comm")" = sleep ]
}
# end_server ROOT: of a mount that is out of sight. It would end with its last user, but whoever makes a
# mount namespace at this moment, another test say, has a copy of it for a while.
end_server() {
	pkill -TERM -f "^$OUTAGE mount --daemon --log log $dir/$1 mnt\$"
	check "a signal ends it" soon flock -n "$1" true
}
mkdir lazy_root used_root
echo x >lazy_root/b
outage mount --daemon --log log "$dir/lazy_root" mnt
exec 7<mnt/b
outage umount mnt
check "a mount that is in use is not unmounted" test $status = 2 -a "$(findmnt -n mnt)"
check "and it is said by whom" complains "(bash|$(cat /proc/$$/comm)) \($$\)"
exec 7<&-
(cd mnt && exec sleep 900) &
sleeper=$!
soon sits_in mnt
outage umount mnt
check "nor one in which somebody is" complains "sleep \($sleeper\)"
outage umount --lazy mnt
check "--lazy takes it out of sight" test $status = 0 -a ! "$(findmnt -n mnt)"
kill $sleeper
wait $sleeper 2>/dev/null
end_server lazy_root

# A namespace that is made meanwhile has a copy of the mount.
if [ "$(id -u)" = 0 ]; then
	outage mount --daemon --log log data mnt
	unshare --mount --propagation private sleep 900 &
	sleeper=$!
	soon grep -q " $dir/mnt fuse" /proc/$sleeper/mounts
	soon eval '[ "$(readlink /proc/$sleeper/ns/mnt)" != "$(readlink /proc/self/ns/mnt)" ]'
	echo kept >mnt/g
	outage umount mnt
	check "a copy that nobody uses does not keep the server" test $status = 0
	check "and nothing is lost" test "$(cat data/g)" = kept
	kill $sleeper
	wait $sleeper 2>/dev/null
	outage mount --daemon --log log "$dir/used_root" mnt
	unshare --mount --propagation private sh -c 'cd mnt && exec sleep 900' &
	sleeper=$!
	soon sits_in mnt
	outage umount mnt
	check "one that is used does, and it is said by whom" complains "namespace by sleep \($sleeper\)"
	kill $sleeper
	wait $sleeper 2>/dev/null
	end_server used_root
else
	skip "mount namespaces need root"
fi

# ---- what the end of a mount tells ----

mkdir full root2
if mount -t tmpfs -o size=1M tmpfs full 2>/dev/null; then
	mkdir full/r
	rm -f log
	outage mount --daemon --log log full/r mnt
	timeout 900 dd if=/dev/zero of=mnt/big bs=1M count=4 2>/dev/null
	outage umount mnt
	check "umount fails if not everything could be written" rejected "not everything could be written"
	check "and the log says it" grep -q "not everything could be written to $dir/full/r" log
	umount full
	outage mount --daemon --log log root2 mnt
	timeout 900 dd if=/dev/zero of=mnt/big bs=1M count=4 2>/dev/null
	outage umount mnt
	check "umount is silent if everything was" test $status = 0 -a ! -s err
	check "and all is there" test "$(stat -c %s root2/big)" = 4194304
else
	skip "a full file system needs root"
fi

# ---- numbers that the kernel gives again ----

if [ "$(id -u)" = 0 ]; then
	# In a /run of its own, somebody listens under the name of every device that a mount could get.
	cat >squat.sh <<-'END'
		mount -t tmpfs tmpfs /run && mkdir -m 700 /run/outage || exit 9
		python3 -c '
		import os, socket, time
		all = []
		for i in range(1, 600):
		    s = socket.socket(socket.AF_UNIX)
		    s.bind("/run/outage/0:%d" % i)
		    s.listen()
		    all.append(s)
		open("squatting", "w").close()
		time.sleep(900)' &
		trap "kill $!" EXIT
		until [ -e squatting ]; do kill -0 $! || exit 9; sleep 0.02; done
		timeout 900 "$OUTAGE" mount --daemon --log log data mnt || exit
		timeout 900 "$OUTAGE" ctl mnt status || exit
		timeout 900 "$OUTAGE" umount mnt
	END
	sed -i 's/^\t*//' squat.sh
	timeout 900 unshare -m --propagation private bash squat.sh >out 2>err
	check "a mount takes the place of servers that have lost theirs" test $? = 0
	check "and it is the one that answers" grep -q "^$dir/data on $dir/mnt" out

	outage mount --daemon --log log data mnt
	stopped=$(server_of mnt)
	kill -STOP "$stopped"
	timeout 900 "$OUTAGE" umount --timeout 3s mnt >out 2>err &
	unmounting=$!
	soon unmounted mnt
	# another one of ours, and file systems of other kinds: one of them gets the number
	unshare -m --propagation private bash -c 'for i in 1 2 3; do mkdir t$i r$i u$i
		timeout 900 "$OUTAGE" mount --daemon --log /dev/null "$PWD/r$i" t$i; (cd t$i && exec sleep 900 >/dev/null 2>&1) &
		mount -t tmpfs tmpfs u$i; (cd u$i && exec sleep 900 >/dev/null 2>&1) &
		done; wait' &
	sleeper=$!
	wait $unmounting
	check "umount does not take another file system for a copy of the mount" complains "has not ended within 3 s"
	kill -CONT "$stopped"
	soon flock -n data true
	pkill -P $sleeper
	kill $sleeper
	wait $sleeper 2>/dev/null
	for i in 1 2 3; do
		pkill -TERM -f "^$OUTAGE mount --daemon --log /dev/null $dir/r$i t$i\$"
		soon flock -n r$i true
	done
else
	skip "a /run of its own needs root"
fi

# ---- a server that does not end ----

outage mount --daemon --log log data mnt
stopped=$(server_of mnt)
kill -STOP "$stopped"
outage umount --timeout 1200ms mnt
check "umount tells how long it has waited" eval 'test $status = 2 && complains "has not ended within 1.2 s"'
kill -CONT "$stopped"
check "and the server ends when it can" soon flock -n data true

done_testing
