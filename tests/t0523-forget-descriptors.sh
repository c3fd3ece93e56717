#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The mount that forgets, with few descriptors: what is not durable needs none, whatever it is; a power cut
# leaves what was durable, and the server goes on.
# takes 30 s
# shellcheck disable=SC2016,SC2046,SC2317,SC2154 # commands for other shells; what `check` and the trap call; `answers` and others: forget-lib.sh
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/forget-lib.sh
. "$root/tests/forget-lib.sh"
chmod 755 "$dir"

# maker.py WHAT N: does it N times, or until it is refused, and waits for a line. `open` then looks what
# became of the files that it has.
cat >maker.py <<'END'
import errno, os, sys
what, n = sys.argv[1], int(sys.argv[2])
fds = []
done = 0
for i in range(n):
    try:
        if what == "rmdir":
            os.rmdir("mnt/dir%d" % i)
        elif what == "unlink":
            os.unlink("mnt/file%d" % i)
        elif what == "replace":
            os.mkdir("mnt/over%d" % i)
            os.rename("mnt/over%d" % i, "mnt/dir%d" % i)
        elif what == "mkdir":
            os.mkdir("mnt/new%d" % i)
        elif what == "opendir":
            fds.append(os.open("mnt", os.O_RDONLY | os.O_DIRECTORY))
        elif what == "gone":
            fds.append(os.open("mnt/file%d" % i, os.O_RDWR))
            os.unlink("mnt/file%d" % i)
        else:
            fd = os.open("mnt/new%d" % i, os.O_CREAT | os.O_EXCL | os.O_RDWR)
            fds.append(fd)
            os.write(fd, b"new")
            if what == "closed":
                os.close(fds.pop())
    except OSError as e:
        print("refused", errno.errorcode[e.errno], flush=True)
        break
    done += 1
print("done", done, flush=True)
sys.stdin.readline()
if what in ("open", "gone"):
    for fd in fds:
        try:
            os.fstat(fd)
            os.pread(fd, 10, 0)
            print("then fine", flush=True)
        except OSError as e:
            print("then", errno.errorcode[e.errno], flush=True)
END
# by WHO COMMAND...
by() {
	if [ "$1" = user ]; then
		timeout 300 "${as_user[@]}" env PATH=/usr/bin:/bin "${@:2}"
	else
		timeout 300 "${@:2}"
	fi
}
# make WHO WHAT N: what it said is in `made`
make() { by "$1" python3 maker.py "$2" "$3" </dev/null >made 2>err; }
done_of() { sed -n 's/^done //p' made; }
# what ROOT holds, as an application would find it
state() {
	(cd source && find . -type f -exec cksum {} + -o -printf '%y %m %u %P\n' | sort) >"$1"
}
is_durable() {
	state now
	diff before now >out
}
# works WHO: a file can be made, synced and removed, at once or when the kernel has let go of what is lost
works() {
	try_it "$1" && ctl checkpoint
}
try_it() {
	soon by "$1" python3 -c 'import os
fd = os.open("mnt/works", os.O_CREAT | os.O_RDWR)
os.write(fd, b"x")
os.fsync(fd)
os.close(fd)
os.unlink("mnt/works")
os.close(os.open("mnt", os.O_RDONLY))' 2>>err
}
# cut WHO WHAT: the power fails
cut() {
	ctl clear-cache
	check "$1: $2: a power cut leaves what was durable" is_durable
	check "$1: $2: the server goes on" eval 'is_mounted && kill -0 "$server"'
}
# begin WHO PROFILE: with things that are durable
begin() {
	local i

	as=
	[ "$1" = root ] || as=65534
	rm -rf source
	mkdir source
	for ((i = 0; i < 400; i++)); do echo $i >source/file$i; done
	(cd source && mkdir -m 750 $(seq -f 'dir%g' 0 199))
	[ "$1" = root ] || chown -R 65534:65534 source
	[ "$1" = root ] || program=$(copy_for_everybody "$helpers/forget-server")
	keep=yes descriptors=256 start "$2"
	state before
}
# waiting WHO WHAT N: makes it, and waits for `echo >&8`
waiting() {
	: >made
	rm -f line
	mkfifo line
	by "$1" python3 maker.py "$2" "$3" <line >made 2>err &
	maker=$!
	exec 8>line
	soon grep -q ^done made
}
go_on() {
	echo >&8
	exec 8>&-
	wait $maker
}

# WHO PROFILE
few() {
	local who=$1 what

	begin "$who" "$2"
	check "$who: it is mounted" is_mounted
	for what in closed open; do
		waiting "$who" $what 600
		check "$who: $what files: all are made" test "$(done_of)" = 600
		check "$who: $what files: none is in ROOT" test ! -e source/new0
		cut "$who" "$what files"
		go_on
		check "$who: $what files: those that are open work on" \
			eval '! grep "^then" made | grep -qv fine'
		check "$who: $what files: and then files can be made again" works "$who"
	done

	make "$who" closed 600
	ctl checkpoint
	check "$who: more files than descriptors become durable" test "$(find source -name 'new*' | wc -l)" = 600
	by "$who" sh -c 'rm mnt/new*'
	ctl checkpoint
	check "$who: and all is as before" is_durable

	for what in mkdir:600 unlink:400 rmdir:200 replace:200 opendir:600; do
		make "$who" ${what%:*} ${what#*:}
		check "$who: ${what%:*}: more than there are descriptors" test "$(done_of)" = ${what#*:}
		cut "$who" ${what%:*}
		check "$who: ${what%:*}: and files can be made" works "$who"
	done
	make "$who" rmdir 200
	ctl checkpoint
	state before

	# A file that is open when its last name goes from ROOT needs a descriptor; there are not enough.
	waiting "$who" gone 400
	check "$who: open files are removed" test "$(done_of)" = 400
	ctl checkpoint
	check "$who: which is durable" test "$(find source -name 'file*' | wc -l)" = 0
	go_on
	check "$who: some are still what they were" test "$(grep -c '^then fine' made)" -gt 40
	check "$who: the others answer ESTALE" eval '! grep "^then" made | grep -v fine | grep -qv ESTALE'
	stop
	check "$who: it ends well" test $status = 0
	check "$who: nothing is left" test ! -e source/.outage-stash
}

few root minimal
mknod fuse c 10 229 2>/dev/null && chmod 666 fuse && mount --bind fuse /dev/fuse
if [ -u "$(command -v fusermount3)" ] && by user test -w /dev/fuse; then
	few user ext4-ordered
else
	skip "nobody can mount here but root"
fi
as=''
program=''

# ---- as many as it takes, and the limit of this machine ----

descriptors=1024 start minimal
make root closed 11000
check "11000 files: they are made" test "$(done_of)" = 11000
ctl clear-cache
check "11000 files: a power cut takes all of them" test "$(find source -name 'new*' | wc -l)" = 0
check "11000 files: the server goes on" eval 'is_mounted && works root'
stop
check "11000 files: it ends well" test $status = 0

few_files 40 timeout 900 "$helpers/forget-server" minimal source mnt </dev/null >out 2>err
check "a mount that cannot have enough is refused" eval '! is_mounted && grep -q "only 40 files may be open" err'
if [ "$(ulimit -n 256; prlimit --nofile=1000 true 2>/dev/null && echo yes)" = yes ]; then
	ulimit -n 256
	start minimal
	check "root has as many as the system allows" test "$(awk '/Max open files/ { print $5 }' /proc/$server/limits)" = "$(cat /proc/sys/fs/nr_open)"
	stop
else
	skip "root may not raise limits here"
fi

done_testing
