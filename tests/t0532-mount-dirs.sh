#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Directories that are removed in a mount, also such as may not be written to, and come back.
# shellcheck source=tests/lib.sh disable=SC2016,SC2317 # expanded by eval, called through check
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/mount-lib.sh
. "$root/tests/mount-lib.sh"

# a user's mount over directories that may not be written to; looks DIR: all that must come back
looks() {
	stat -c '%a %u %g %Y' "$1"
	getfattr -d -m '^user' --absolute-names "$1" 2>/dev/null | grep '^user'
	getfacl -cp "$1" 2>/dev/null
}
try_dirs() { # WHO... : as this user, on udir and its mount udmnt
	local was

	"$@" mkdir udmnt/a udmnt/b udmnt/b/in udmnt/c
	"$@" chmod 555 udmnt/a udmnt/c
	"$@" touch -d 2001-02-03 udmnt/a
	"$@" touch udmnt/b/in/file
	setfattr -n user.color -v red udir/a 2>/dev/null
	setfacl -d -m u:1:rx udir/b 2>/dev/null
	timeout 900 "${@:-env}" "$OUTAGE" ctl udmnt sync >out 2>err
	was=$(looks udir/a)
	timeout 900 "$@" rmdir udmnt/a 2>err
	check "a directory that may not be written to can be removed" test ! -e udmnt/a -a -d udir/a
	"$@" mkdir udmnt/d
	timeout 900 "$@" mv -T udmnt/d udmnt/c 2>err
	check "and replaced" test ! -e udmnt/d -a "$(stat -c %a udmnt/c)" != 555
	timeout 900 "$@" rm -r udmnt/b 2>err
	check "and a whole tree" test ! -e udmnt/b -a -f udir/b/in/file
	timeout 900 "${@:-env}" "$OUTAGE" ctl udmnt "${cut[@]}" >out 2>err
	soon eval '[ "${cut[0]}" = clear-cache ] || ! mounted udmnt'
	check "after a power cut (${cut[*]}) it is back" test -d udir/a -a "$(stat -c %a udir/c)" = 555
	check "as it was" test "$(looks udir/a)" = "$was"
	check "and the tree, with its file" test -f udir/b/in/file
	check "not the one that replaced another" test ! -e udir/d
}
with_dirs() { # WHO...
	rm -rf udir udmnt
	mkdir udir udmnt
	[ $# = 0 ] || chown 65534:65534 udir udmnt
	timeout 900 "${@:-env}" "$OUTAGE" mount --daemon --log /dev/null "${profile[@]}" udir udmnt >out 2>err
	try_dirs "$@"
}
profile=(--profile minimal)
cut=(clear-cache)
with_dirs
check "the kernel shows it, too" test -d udmnt/a -a -f udmnt/b/in/file
chmod u+w udmnt/a # root needs no right to write
touch udmnt/b/in/more udmnt/a/new
timeout 900 "$OUTAGE" ctl udmnt sync >out 2>err
check "and what comes back can be used" test -f udir/b/in/more -a -f udir/a/new
rm -r udmnt/a
mkdir udmnt/a
touch udmnt/a/2
outage ctl udmnt snapshot s
check "a snapshot has the directory as it was" eval 'test -e udir/.outage-stash/snapshots/s/a/new && test ! -e udir/.outage-stash/snapshots/s/a/2'
outage umount udmnt
check "and it ends" test $status = 0
profile=()
cut=(crash)
with_dirs
rm -rf udir udmnt
mkdir udir udmnt
mkdir -p udir/x/y/z
chmod 711 udir/x/y/z
outage mount --daemon --log log --profile minimal udir udmnt
mv udmnt/x/y/z udmnt/x/q
rmdir udmnt/x/q udmnt/x/y
mkdir udmnt/x/y
kill_server udmnt udir
check "who is killed leaves them to be made again" test "$(stat -c %a udir/x/y/z 2>err)" = 711
check "and nothing else" eval 'test ! -e udir/x/q && test ! -e udir/.outage-stash'
mkdir -p udir/s/one udir/s/two
chmod 711 udir/s/one
outage mount --daemon --log log --profile minimal udir udmnt
python3 -c '
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.renameat2(-100, b"udmnt/s/one", -100, b"udmnt/s/two", 2):
	raise OSError(ctypes.get_errno(), "renameat2")
os.rmdir("udmnt/s/one")
os.rmdir("udmnt/s/two")'
kill_server udmnt udir
check "also if they were exchanged before" test "$(stat -c %a udir/s/one 2>err)" = 711 -a "$(stat -c %a udir/s/two)" = 755
if [ "$(id -u)" = 0 ]; then
	for_everybody
	cut=(clear-cache)
	profile=(--profile minimal)
	with_dirs "${as_user[@]}"
	outage umount udmnt
	mkdir over_mnt
	if mount -t tmpfs tmpfs over_mnt && mkdir -p over_mnt/{low/old,up,work,all} &&
		mount -t overlay -o lowerdir=over_mnt/low,upperdir=over_mnt/up,workdir=over_mnt/work overlay over_mnt/all 2>/dev/null; then
		outage mount --daemon --log log over_mnt/all udmnt
		timeout 900 rmdir udmnt/old 2>err
		check "on overlayfs, where directories do not move, one is removed" test ! -e udmnt/old
		outage ctl udmnt clear-cache
		check "and comes back" test -d udmnt/old -a -d over_mnt/all/old
		outage umount udmnt
		umount over_mnt/all
	else
		skip "there is no overlayfs here"
	fi
	umount over_mnt
fi

done_testing
