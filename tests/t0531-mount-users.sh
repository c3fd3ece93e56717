#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Mounts of a user who is not root, and what the kernel remembers of who may do what.
# shellcheck source=tests/lib.sh disable=SC2016,SC2317 # expanded by eval, called through check
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/mount-lib.sh
. "$root/tests/mount-lib.sh"

# ---- as another user ----

if [ "$(id -u)" = 0 ]; then
	for_everybody
	mkdir udata umnt
	chown 65534:65534 udata umnt
	user=("${as_user[@]}")
	timeout 900 "${user[@]}" "$OUTAGE" mount --daemon --log /dev/null udata umnt >out 2>err
	check "a user can mount" test $? = 0
	socket=outage-65534/$(findmnt -n -o MAJ:MIN umnt | tr -d " ")
	check "its socket is found" eval 'test -S "/tmp/$socket" || test -S "/run/user/65534/outage/${socket#*/}"'
	timeout 900 "${user[@]}" sh -c 'echo x >umnt/a; sync umnt/a; echo y >>umnt/a'
	timeout 900 "${user[@]}" "$OUTAGE" ctl umnt clear-cache >out 2>err
	check "and command" test $? = 0
	check "what was synced stays" test "$(cat udata/a)" = x
	outage ctl umnt status
	check "root may, too" test $status = 0
	outage mount --daemon --log log data mnt
	timeout 900 "${user[@]}" "$OUTAGE" ctl mnt clear-cache >out 2>err
	check "a user may not command root's mount" test $? = 2
	check "and is told so" complains "belongs to user 0"
	timeout 900 "${user[@]}" "$OUTAGE" umount mnt >out 2>err
	check "nor unmount it" test $? = 2
	outage umount mnt
	timeout 900 "${user[@]}" "$OUTAGE" umount umnt >out 2>err
	check "a user can unmount" test $? = 0
	check "and it is gone" test ! "$(findmnt -n umnt)"
	check "and so is its socket" eval 'test ! -e "/tmp/$socket" && test ! -e "/run/user/65534/outage/${socket#*/}"'
	if ! grep -q "^ *user_allow_other" /etc/fuse.conf 2>/dev/null; then
		timeout 900 "${user[@]}" "$OUTAGE" mount --daemon --allow-other udata umnt >out 2>err
		check "--allow-other is not a user's to say" test $? = 2
		check "fusermount3 says why" complains "user_allow_other"
		check "and nothing else is blamed" eval '! complains "is /dev/fuse there"'
	fi
	timeout 900 "${user[@]}" "$OUTAGE" mount data umnt >out 2>err
	check "a ROOT that may not be written is refused" test $? = 2
	check "and nothing stays mounted" test ! "$(findmnt -n umnt)"
else
	skip "another user needs root"
fi

# ---- who may do what, and what the kernel remembers ----

try_modes() { # WHO...
	rm -rf udir udmnt
	mkdir udir udmnt
	[ $# = 0 ] || chown 65534:65534 udir udmnt
	timeout 900 "${@:-env}" "$OUTAGE" mount --daemon --log /dev/null udir udmnt >out 2>err
	timeout 900 "$@" sh -c 'mkdir udmnt/shut && echo x >udmnt/shut/file && cat udmnt/shut/file' >out 2>err
	check "a user reads a file ($*)" test "$(cat out)" = x
	"$@" chmod 0 udmnt/shut
	timeout 900 "$@" cat udmnt/shut/file >out 2>err
	check "and not when its directory does not let him" eval 'test $? != 0; complains "Permission denied"'
	"$@" chmod 700 udmnt/shut
	timeout 900 "$@" cat udmnt/shut/file >out 2>err
	check "but when it does again" test "$(cat out)" = x
	"$@" chmod 400 udmnt/shut/file
	timeout 900 "$@" sh -c 'echo y >udmnt/shut/file' >out 2>err
	check "a file that he may only read he cannot write" eval 'test $? != 0; complains "Permission denied"'
	timeout 900 "${@:-env}" "$OUTAGE" umount udmnt >out 2>err
	check "and it ends" test $? = 0
}
if [ "$(id -u)" = 0 ]; then
	for_everybody
	try_modes "${as_user[@]}"
else
	try_modes
fi
mkdir gone
outage mount --daemon --log log gone mnt
mkdir mnt/d
echo x >mnt/a
echo x >mnt/d/b
outage ctl mnt sync
outage ctl mnt snapshot s
rm -r mnt/a mnt/d
outage ctl mnt sync
cat mnt/a mnt/d mnt/d/b mnt/never >out 2>err
check "what was removed is not there" test ! -s out
outage ctl mnt rollback s
check "and is again, after going back to a snapshot" test "$(cat mnt/a mnt/d/b 2>&1)" = "x
x"
check "but nothing that never was" test ! -e mnt/never
rm mnt/d/b
outage ctl mnt sync
cat mnt/d/b 2>err
outage ctl mnt rollback s
check "also in a directory that was there all the time" test "$(cat mnt/d/b 2>&1)" = x
outage umount mnt
rm -rf gone

done_testing
