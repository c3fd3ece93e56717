#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What mount refuses, from the beginning: one sentence, exit status 2, and nothing is mounted.
# shellcheck source=tests/lib.sh disable=SC2016,SC2317 # expanded by eval, called through check
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/mount-lib.sh
. "$root/tests/mount-lib.sh"

# ---- arguments, options, files ----

echo x >data/b
outage mount data
check "one directory is not enough" rejected "ROOT and MNT"
outage mount nothing mnt
check "ROOT must be there" rejected "nothing"
outage mount data nothing
check "so must MNT" rejected "nothing"
outage mount data/b mnt
check "ROOT must be a directory" rejected "directory"
outage mount data data
check "ROOT and MNT must differ" rejected "the same directory"
mkdir -p data/sub mnt/sub
outage mount data data/sub
check "MNT must not be inside of ROOT" rejected "inside of ROOT"
outage mount mnt/sub mnt
check "nor ROOT inside of MNT" rejected "inside of MNT"
ln -s data link
outage mount link data
check "not by a link, either" rejected "the same directory"
outage mount --profile ext5 data mnt
check "a profile that is not there is refused" rejected "ext4-ordered"
printf '[filesystem]\n\n[outage]\nsocket=""\nprofile="ext5"\n' >ext5.toml
outage mount --config ext5.toml data mnt
check "in a file, it is told where" rejected "ext5.toml:5: there is no profile 'ext5'"
outage mount --config ext5.toml --profile ext6 data mnt
check "but not if the command line says it" rejected "^outage: --profile is .*, not 'ext6'"
outage mount --daemno data mnt
check "an unknown option is named" rejected "unknown option --daemno"
outage mount data mnt --log
check "and one without its value" rejected "--log needs a value"
outage mount -o nonsense data mnt
check "a mount option that is none is told whole" rejected "unknown option.*nonsense"
outage mount --page-size 1000 data mnt
check "so is a page that is no power of two" rejected "1000"
outage mount --page-size 4096 --block-size 8192 data mnt
check "so are blocks larger than a page" rejected "8192"
outage mount --cache-size many data mnt
check "so is a size that is none" rejected "cache-size"
outage mount --fault 'tear-op file=a' data mnt
check "so is a fault that is none" rejected "tear-op"
outage mount --fault 'torn-op file=a parts=2 persist=1' --fault 'torn-op file=a parts=3 persist=2' data mnt
check "so are two that tear the same file" rejected "a"
outage mount --fault 'clear-cache' data mnt
check "so is a command in place of a fault" rejected "fault"
outage mount --fault 'crash op=write from_rgx=( timing=before' data mnt
check "so is a regular expression that does not compile" rejected '\('
outage mount --log mnt/log data mnt
check "so is a log in MNT" rejected "inside of"
outage mount --log nowhere/log data mnt
check "so is a log that cannot be" rejected "nowhere"
outage mount --trace nowhere/trace data mnt
check "so is such a trace" rejected "nowhere"
: >file
outage mount --socket file data mnt
check "so is a socket where a file is" rejected "no socket"
check "which stays" test -f file
outage mount --daemon --socket nowhere/s data mnt
check "in the background, it is refused in the same way" rejected "nowhere"
outage mount -o no_such_option data mnt
check "so is a mount option that is none" test $status = 2

config() {
	printf '%s\n' "$@" >config.toml
	outage mount --config config.toml data mnt
}
config '[faults' 'fifo_path = 1'
check "a configuration that is no TOML is refused" rejected "config.toml"
config '[cache]' 'apply_evicton = true'
check "so is an unknown key" rejected "apply_evicton"
config '[cache]' 'apply_eviction = "yes"'
check "so is a wrong type" rejected "apply_eviction"
config '[[injection]]' 'type = "torn-op"' 'file = "a"' 'parts = 2' 'persist = [3]'
check "so is a fault that cannot be" rejected "persist"
config '[faults]' "fifo_path = \"$dir/file\""
check "so is a FIFO where a file is" rejected "no FIFO"
config '[faults]' 'fifo_path = "/nowhere/fifo"'
check "so is a FIFO that cannot be made" rejected "/nowhere/fifo"
config '[faults]' "fifo_path = \"$dir/one.fifo\"" "fifo_path_completed = \"$dir/one.fifo\""
check "so are two FIFOs with one name" rejected "two names"
check "and no FIFO is left behind" test ! -e one.fifo
outage mount --config nowhere.toml data mnt
check "so is a configuration that is not there" rejected "nowhere.toml"

# ---- who may write to ROOT is not believed, nor let in ----

mkdir -m 755 data/.outage-stash
outage mount data mnt
check "a stash that others could write is refused" rejected "is not this user's own"
rmdir data/.outage-stash
outage mount -o allow_other data mnt
check "others are let in only with the kernel's checks" rejected "allow-other"

# ---- one ROOT in another ----

mkdir -p outer/inner/most sibling one two
outage mount --daemon --log nest.log outer one
outage mount outer/inner two
check "a ROOT inside of another mount's ROOT is refused" eval 'test $status = 2 && complains "is inside of $dir/outer, which is the ROOT of the mount on $dir/one" && ! mounted two'
outage mount --daemon --log nest2.log sibling two
check "one beside it is not" eval 'test $status = 0 && mounted two'
outage umount two
outage umount one
outage mount --daemon --log nest.log outer/inner one
outage mount outer two
check "nor may it have one inside" eval 'test $status = 2 && complains "$dir/outer/inner, the ROOT of the mount on $dir/one, is inside of it" && ! mounted two'
outage umount one
outage mount --daemon --log nest.log outer two
check "when that is gone it may be" test $status = 0
outage umount two
rm -rf outer sibling one two

# ---- MNT when nothing is mounted ----

mkdir bare_root bare_mnt
if chattr +i bare_mnt 2>/dev/null; then
	outage mount --daemon --log log bare_root bare_mnt
	check "on a directory that may not be changed can be mounted" test $status = 0
	check "and written there" touch bare_mnt/a
	outage ctl bare_mnt crash
	soon unmounted bare_mnt
	touch bare_mnt/b 2>/dev/null
	check "after a crash, who goes on gets an error" test $? != 0 -a ! -e bare_mnt/b
	chattr -i bare_mnt
else
	skip "directories cannot be made immutable here"
fi
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o ro tmpfs bare_mnt 2>/dev/null; then
	outage mount --daemon --log log bare_root bare_mnt
	touch bare_mnt/a
	outage ctl bare_mnt crash
	soon unmounted bare_mnt
	touch bare_mnt/b 2>/dev/null
	check "so it is above a file system that is read-only" test $? != 0 -a ! -e bare_mnt/b
	umount bare_mnt
else
	skip "a file system that is read-only needs root"
fi
rmdir bare_mnt

done_testing
