#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0851-guest-file.sh - files of the user's in a guest: a static program is run there as an operation, and by
# --check and --dump; what it stores to persistent memory is traced; a machine that was kept is another one
# if they are; what cannot run there, or has no place, is refused at once.
# shellcheck disable=SC2016,SC2317 # functions are called through check; $ is for the commands
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"
prog=$helpers/guest-map

printf 'creat foo\nfsync foo\n' >short

# ---- what is refused, before a kernel is looked for ----

mkdir fetch
printf '#!/bin/sh\necho "$0 $*" >>%s/asked\nexit 1\n' "$dir" >fetch/apt-get
chmod +x fetch/apt-get
cp fetch/apt-get fetch/apt-cache
wrong_file() { # PATTERN ARGUMENTS
	local pattern=$1
	shift
	PATH=$dir/fetch:$PATH OUTAGE_CACHE=$dir/no-kernels outage test -t vm:ext4-dax -o x "$@" short
	check "wrong: $*" [ $? -eq 2 ]
	check "is said in one line" [ "$(grep -c . err)" -le 2 ]
	check "and what: $pattern" complains "$pattern"
	check "no run is begun" [ ! -e x ]
	rm -rf x
}
printf 'int main(void) { return 0; }\n' >main.c
if command -v cc >/dev/null && cc -o dynamic main.c 2>/dev/null && grep -q ld-linux dynamic; then
	wrong_file '/dynamic cannot run in a guest: it needs its libraries, and there are none; link it statically' --guest-file dynamic
else
	skip 'there is no compiler'
fi
: >data
printf '\177ELF\2\1\1 and no more' >broken
chmod +x broken
wrong_file '/broken cannot run in a guest: it is no whole program for x86-64' --guest-file broken
wrong_file 'cannot find nowhere' --guest-file nowhere
wrong_file 'cannot find ' --guest-file :/bin/x
mkdir folder
wrong_file '/folder is no regular file' --guest-file folder
mkfifo pipe
wrong_file '/pipe is no regular file' --guest-file pipe
for place in bin/x /bin/../init /bin/./x /bin//x / /bin/ '' "/bin/$(printf 'a\tb')" "/$(printf '%0250d' 0)"; do
	wrong_file 'wants the path of a file in the guest' --guest-file "data:$place"
done
for place in /init /init/x /modules/00 /proc/x /mnt/x /dev/x /bin /sbin /usr /usr/bin /usr/sbin /bin/sh /bin/busybox /bin/outage; do
	wrong_file "$place is the guest's own" --guest-file "data:$place"
done
wrong_file 'two files of the guest cannot be at /bin/data and /bin/data' --guest-file data --guest-file data
wrong_file 'cannot be at /etc/x and /etc/x/y' --guest-file data:/etc/x --guest-file data:/etc/x/y
truncate -s 70M large
wrong_file '/large is too much for the guest: its files may take a quarter of --guest-memory' --guest-file large
truncate -s 40M large
cp --sparse=always large second
wrong_file '/second is too much for the guest' --guest-file large --guest-file second
cp data "$(printf 'two\nlines')"
wrong_file 'line end in it' --guest-file "$(printf 'two\nlines'):/etc/two"
check "no kernel was fetched for that" test ! -e asked
check "a disk of this machine has its own programs" status 2 test -t ext4 --guest-file data short
check "which is said" complains '--guest-file is for uml: and vm: targets'

# ---- a guest ----

if ! command -v qemu-system-x86_64 >/dev/null || ! command -v busybox >/dev/null; then
	skip 'qemu-system-x86_64 or busybox is not there'
	done_testing
fi
own_machines
mkdir -p "$kernels" cache
OUTAGE_CACHE=$kernels outage test -t vm:ext4-dax -j 1 -o fetched short
fetched=$?
if [ $fetched != 0 ] && complains 'apt-get|apt-cache'; then
	skip 'no kernel can be fetched'
	done_testing
fi
ln -s "$kernels/kernels" cache/kernels
trial=("$OUTAGE" test -t vm:ext4-dax -j 1)

printf '#!/bin/sh\ntest -e /etc/ours && test "$(cat /etc/ours)" = "what we read" && echo fine\n' >looks
chmod 750 looks
printf 'what we read\n' >ours
see='test "$(looks)" = fine && test "$(stat -c %a /bin/looks /etc/ours | tr "\n" " ")" = "750 644 "'
chmod 644 ours
check 'a script and its data are there, as they were' tries 0 --guest-file looks --guest-file ours:/etc/ours --check "$see" short
check 'a check without them fails' tries 1 --check "$see" short
before=$(find cache -name 'vm-*.state' | sort | tr '\n' ' ')
printf 'what others read\n' >ours
check 'with another content' tries 1 --guest-file looks --guest-file ours:/etc/ours --check "$see" short
check 'it is another machine' [ "$(find cache -name 'vm-*.state' | sort | tr '\n' ' ')" != "$before" ]
given=$(grep '^guest-files-hash ' kept/findings/0-0/case)
check 'the finding names the files' grep -qx "guest-file $dir/looks:/bin/looks" kept/findings/0-0/case
check 'each' grep -qx "guest-file $dir/ours:/etc/ours" kept/findings/0-0/case
check 'and is shown again with them' status 1 replay kept/findings/0-0
check 'without a word' test ! -s err
printf 'what we read\n' >ours
check 'with what they hold now, it is gone' status 0 replay kept/findings/0-0
check 'which is said' eval 'cat out err | grep -q "other files in the guest (--guest-file): what they hold has changed"'
check 'export does not copy what holds something else' status 0 export kept/findings/0-0 -o other
check 'which is said' says '^guest/ is not written: the files hold something else than what the guest was given; reproduce.sh tells'
check 'none of them' test ! -e other/guest
check 'the script needs them' eval 'sh other/reproduce.sh >out 2>err; [ $? -eq 2 ]'
[ "$(id -u)" != 0 ] || check 'which it says' complains "commands need what the guest had as /bin/looks: put it there as $dir/other/guest/bin/looks"
printf 'what others read\n' >ours
check 'it copies what the guest was given' status 0 export kept/findings/0-0 -o other
check 'as it was' cmp ours other/guest/etc/ours
cp -r kept stranger
chmod o+w stranger/findings/0-0
check 'a case that is not ours alone' status 0 export stranger/findings/0-0 -o far
check 'does not say what is copied' eval "says '^guest/ is not written: .* was not made by you on this machine, and names files' && test ! -e far/guest"
chmod o-w stranger/findings/0-0
sed -i '/^guest-files-hash /d' stranger/findings/0-0/case
check 'nor one that does not know what they hold' status 0 export stranger/findings/0-0 --trust -o far
check 'which is said' eval "says '^guest/ is not written: .*/case does not tell what was in it' && test ! -e far/guest"
printf 'what we read\n' >ours
mv ours gone
check 'without one, it cannot be' status 2 replay kept/findings/0-0
check 'which is said' complains "the guest's file $dir/ours cannot be read: No such file"
mv gone ours

# What was built again while a guest runs is not what it was given.
mkdir wrap
printf '#!/bin/sh\n[ $# -lt 9 ] || echo "built again" >%s/ours\nexec %s "$@"\n' "$dir" \
	"$(command -v qemu-system-x86_64)" >wrap/qemu-system-x86_64
chmod +x wrap/qemu-system-x86_64
printf 'what others read\n' >ours
ours_path=$PATH
PATH=$dir/wrap:$PATH
check 'a file that changes once the guest starts' tries 1 --guest-file looks --guest-file ours:/etc/ours --check "$see" short
PATH=$ours_path
check 'has changed' grep -qx 'built again' ours
check 'the finding knows what the guest was given' [ "$(grep '^guest-files-hash ' kept/findings/0-0/case)" = "$given" ]

# ---- a program ----

if [ ! -x "$prog" ]; then
	skip 'programs cannot be linked statically here (apt-get install libc6-dev)'
	done_testing
fi
cat >right <<'END'
setup shell "dd if=/dev/zero of=pool bs=4096 count=1 2>/dev/null; sync"
shell "guest-map right pool"
END
sed 's/ right pool/ wrong pool/' right >wrong
whole='guest-map check pool'
check 'a static program runs as an operation, and as a check' tries 0 --guest-file "$prog" --check "$whole" right
check 'in several states' grep -Eq ' [1-9][0-9]* different' out
check 'what it stores in the wrong order is found' tries 1 --guest-file "$prog" --check "$whole" wrong
check 'by the check' grep -q '^check-failed	.*--check exited with status 1' kept/findings/0-0/problems
check 'as a flush that is missing' grep -q '^ordering: ' kept/findings/0-0/diagnosis
check 'and is shown again' status 1 replay kept/findings/0-0
check 'also by another run' status 1 replay --rerun kept/findings/0-0
check 'it is exported, with the program' status 0 export kept/findings/0-0 -o script
check 'as it was' cmp "$prog" script/guest/bin/guest-map
check 'and may be run' test -x script/guest/bin/guest-map
if [ "$(id -u)" = 0 ] && timeout 900 "$OUTAGE" doctor >out 2>err; then
	timeout 900 sh script/reproduce.sh >out 2>err
	check 'the script shows it by that' eval "[ $? -eq 1 ] && says '^shows: +--check exited with status 1'"
	rm script/guest/bin/guest-map
	printf '#!/bin/sh\nexit 0\n' >script/guest/bin/guest-map
	chmod +x script/guest/bin/guest-map
	timeout 900 sh script/reproduce.sh >out 2>err
	check 'and not by another' [ $? -eq 0 ]
else
	skip 'nothing can be mounted here'
fi
check 'what it dumps is a state' tries 1 --guest-file "$prog" --dump 'guest-map hello; guest-map check pool' wrong
check 'what it printed is kept' grep -rq 'hello from the guest' kept/findings --include=said
if command -v linux.uml >/dev/null; then
	check 'in user-mode Linux as well' keeps 0 "$OUTAGE" test -t uml:ext4 -j 1 --guest-file "$prog:/usr/bin/say" \
		--check 'say hello | grep -q hello' short
	check 'there, nobody else' keeps 1 "$OUTAGE" test -t uml:ext4 -j 1 --check 'say hello | grep -q hello' short
else
	skip 'linux.uml is not there'
fi
check 'no process is left' wait_for_none
done_testing
