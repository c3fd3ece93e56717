#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ROOT has bad days: it is removed, full, deep, moved.
# shellcheck source=tests/lib.sh disable=SC2016,SC2317 # expanded by eval, called through check
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/mount-lib.sh
. "$root/tests/mount-lib.sh"

# ---- ROOT goes bad ----

mkdir root2
outage mount --daemon --log log root2 mnt
echo x >mnt/a
rm -rf root2
(echo y >mnt/b) 2>/dev/null
check "when ROOT is removed, programs get errors" test $? != 0
outage umount mnt
check "and it can be unmounted" test ! "$(findmnt -n mnt)"

if [ "$(id -u)" = 0 ]; then
	mkdir small_mnt
	mount -t tmpfs -o size=1M outage-test small_mnt
	mkdir small_mnt/root
	outage mount --daemon --profile lazyfs --log log small_mnt/root mnt
	dd if=/dev/zero of=mnt/big bs=64k count=64 conv=fsync 2>dd.err
	check "when ROOT is full, a sync fails" test $? != 0
	check "with the right error" grep -q "No space left" dd.err
	outage ctl mnt status
	check "and the server lives" test $status = 0
	rm mnt/big
	echo small >mnt/small
	sync mnt/small
	check "what fits can be synced" test "$(cat small_mnt/root/small)" = small
	outage umount mnt
	check "and it can be unmounted" test $status = 0
	umount small_mnt
else
	skip "a small file system needs root"
fi

# ---- a mount without its directories ----

mkdir root3
touch mnt/hidden
outage mount --daemon --log log root3 mnt
check "a MNT that is not empty is warned of" grep -q 'not empty.*such as hidden' log
outage umount mnt
rm mnt/hidden
foreground root3 mnt
rm -rf root3
check "a mount whose ROOT is removed ends" ended 2 "$server"
check "and says why" grep -q 'taken away' fg.err
check "and is gone" test ! "$(findmnt -n mnt)"
mkdir root3

# ---- deeper than there are descriptors ----

mkdir deep_root
deep=$(printf 'd/%.0s' $(seq 400))
mkdir -p "deep_root/$deep"
echo old >"deep_root/${deep}file"
few_files 200 timeout 900 "$OUTAGE" mount --daemon --log log deep_root mnt >out 2>err
check "a deep ROOT is mounted with few descriptors" test $? = 0
mv "mnt/${deep}file" "mnt/${deep}new"
mkdir "mnt/${deep}dir"
kill_server mnt deep_root
check "and what is at its end comes back when the server is killed" test "$(cat "deep_root/${deep}file")" = old
check "without what was new" eval 'test ! -e "deep_root/${deep}new" && test ! -e "deep_root/${deep}dir"'
check "and nothing waits any more" test ! -e deep_root/.outage-stash
mkdir -m 700 deep_root/.outage-stash
mkdir -p "deep_root/.outage-stash/new-x/$deep"
few_files 200 timeout 900 "$OUTAGE" mount --daemon --log log deep_root mnt >out 2>err
check "what a snapshot left that was not finished is cleared away" test ! -e deep_root/.outage-stash/new-x
outage umount mnt
rm -rf deep_root

# ---- ROOT is moved ----

mkdir moved_root
echo old >moved_root/a
outage mount --daemon --log moved.log moved_root mnt
echo new >mnt/b
mv moved_root away_root
echo x >mnt/c
sync mnt/c
check "a ROOT that is moved is used where it is" test "$(cat away_root/c)" = x
outage ctl mnt status
check "status tells that it was moved" grep -q "ROOT was moved: it is $dir/away_root now" out
rm mnt/a
kill_server mnt away_root
check "and when the server is killed, what waits is undone there" test "$(cat away_root/a 2>&1)" = old
check "with nothing left" test ! -e away_root/.outage-stash -a ! -e moved_root
mkdir moved_root
outage mount --daemon --log moved.log away_root mnt
outage ctl mnt status
check "a ROOT that was not moved is not called so" eval '! grep -q "was moved" out'
outage umount mnt
rm -rf away_root moved_root

done_testing
