#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Crash states of runs that were recorded by the mount: what the mount writes down is understood, and
# a program that renames without a sync is told from one that does it right.
# shellcheck disable=SC2317 # what `check` and the trap call
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_mounts
replay=$helpers/app-replay

stop() {
	mountpoint -q "$dir/mnt" && timeout 900 "$OUTAGE" umount "$dir/mnt"
	cd / && rm -rf "$dir"
}
trap stop EXIT

# record PROFILE: runs the program on standard input in a copy of base, by way of the mount
record() {
	rm -rf root trace numbers
	cp -a base root
	mkdir -p mnt
	"$replay" numbers root numbers || return 1
	timeout 900 "$OUTAGE" mount --daemon -p "$1" --no-real-sync --trace trace --trace-data \
		--trace-reads --log log root mnt >out 2>err </dev/null || return 1
	(cd mnt && timeout 900 bash -e -) >out 2>err
	local status=$?
	timeout 900 "$OUTAGE" umount mnt >>out 2>>err && return "$status"
}

# all_survives PROFILE: whether the root is the state in which everything did
all_survives() {
	timeout 900 "$replay" all numbers trace base root "$1" >out 2>err
}

mkdir base base/sub base/full
echo old >base/file
echo gone >base/gone
echo inner >base/full/inner
printf 'k1 v1\n' >base/table
ln base/file base/second
ln -s file base/link
setfattr -n user.x -v 1 base/file
chmod 2775 base/sub
chgrp 7 base/sub

cat >all.sh <<'END'
umask 027
echo new >new
echo more >>file
mkdir -p a/b
echo deep >a/b/deep
mv a/b sub/moved
rm gone full/inner
rmdir full
mkdir full
ln new full/linked
ln -s nowhere dangling
mv new renamed
truncate -s 10000 renamed
echo x >sub/group
chmod 4755 renamed
chown 5:6 renamed
chown :9 second
setfattr -n user.y -v why renamed
setfattr -x user.x file
dd if=/dev/urandom of=big bs=64k count=5 status=none
dd if=/dev/urandom of=big bs=1000 seek=3 count=2 conv=notrunc,fsync status=none
fallocate -p -o 8192 -l 50000 big
fallocate -o 300000 -l 100000 big
sync -d file
sync sub
mkfifo pipe
echo short >table
python3 -c '
import mmap, os
f = os.open("big", os.O_RDWR)
m = mmap.mmap(f, 0)
m[100000:100004] = b"mmap"
m.flush()
os.rename("renamed", "table")
os.unlink("second")
d = os.open("direct", os.O_RDWR | os.O_CREAT | os.O_DSYNC)
os.write(d, b"d" * 5000)
os.unlink("direct")
os.write(d, b"e" * 5000)
'
END
for profile in ext4-ordered minimal lazyfs; do
	check "$profile: a run of many calls is recorded" record $profile <all.sh
	check "$profile: if everything survives, it is as it was" all_survives $profile
done
all_survives minimal
check "there is much that may be lost" grep -q '[0-9][0-9] may be lost' out
echo extra >>root/file
all_survives minimal
check "what differs is found" grep -q '^file: ' out

# A table is replaced: right, and without a sync.
cat >holds <<'END'
case $(cat table) in
"k1 v1" | "k1 v2") ;;
*) echo "table holds: $(head -c 20 table)"; exit 1 ;;
esac
END
chmod +x holds
check "a replacement without a sync" record minimal <<'END'
echo "k1 v2" >table.tmp
mv table.tmp table
END
timeout 900 "$replay" check numbers trace "$dir/base" root minimal 100 ". $dir/holds" >out 2>err
check "can lose the table" test $? = 1
check "which the check tells" grep -q 'exited with status 1: table holds: $' out
timeout 900 "$replay" check numbers trace "$dir/base" root ext4-ordered 100 ". $dir/holds" >out 2>err
check "but not on ext4" test $? = 0
check "a replacement with a sync" record minimal <<'END'
echo "k1 v2" >table.tmp
sync table.tmp
mv table.tmp table
sync .
END
timeout 900 "$replay" check numbers trace "$dir/base" root minimal 100 ". $dir/holds" >out 2>err
check "loses nothing" test $? = 0
check "in several states" grep -qE '([4-9]|[1-9][0-9]) checked, 0 failed, 0 errors' out
check "the directory is as it was" test "$(cat base/table base/file)" = "$(printf 'k1 v1\nold')"
check "and nothing is mounted on it" eval '! mountpoint -q base'
done_testing
