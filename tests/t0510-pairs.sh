#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0510-pairs.sh - outage explore: what can be compared and what cannot, references with a disk of their
# own, findings that begin with an image, and crashes that are made small.
# takes 61 s
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

requires_mounts

trial=("$OUTAGE" explore)

# one_sentence WORDS: that is all it said
one_sentence() {
	[ "$(wc -l <err)" -eq 1 ] && grep -q -e "$1" err
}

# ---- what cannot be compared ----

check 'a target that can only be read' tries 2 -t ext4,ro --limit 10
check 'is refused' one_sentence 'ext4,ro can only be read'
check 'and so is such a reference' tries 2 -t ext4 -r xfs,ro --limit 10
check 'by its name' one_sentence 'xfs,ro can only be read'
mkdir same other
check 'two names of the same files' tries 2 \
	-t "mounted:mount --bind $dir/same {mnt}; exec sleep 100" \
	-r "mounted:mount --bind $dir/same {mnt}; exec sleep 101" --order walk --limit 10
check 'are refused' one_sentence 'they are the same file system'
check 'and nothing is left there' test -z "$(ls -A same)"
check 'two servers that are not the same are compared' tries 0 \
	-t "mounted:find $dir/same -mindepth 1 -delete; mount --bind $dir/same {mnt}; exec sleep 100" \
	-r "mounted:find $dir/other -mindepth 1 -delete; mount --bind $dir/other {mnt}; exec sleep 101" \
	--order walk --limit 60 --inputs <(echo 'only mkdir creat unlink rmdir')
check 'blocks of different sizes can be compared' \
	tries 0 -t ext4 --mkfs '-b 1024' -r xfs --order walk --limit 1500

# ---- what xfs does with whiteouts is declared, and nothing else of them ----

cat >whiteouts <<'END'
only rename mkdir creat chmod chown
operation rename 40
combination rename FLAGS whiteout 2
combination rename FLAGS none 1
combination mkdir MODE 2775 1
combination mkdir MODE 0755 1
END
check 'whiteouts on xfs are as declared' tries 0 -t xfs --order walk --limit 4000 --inputs whiteouts --coverage c
check 'and were made' grep -q 'combinations 2 of 8: whiteout:[1-9]' c
check 'whiteouts on ext4 are as POSIX would have them' tries 0 -t ext4 --order walk --limit 3000 --inputs whiteouts
check 'where two differ, they are left alone' tries 0 -t ext4 -r xfs --order walk --limit 1000 --inputs whiteouts --coverage c
check 'and were not made' grep -q 'combinations [01] of 8:\( none:[0-9]*\)\?$' c

# ---- a finding that begins with an image ----

printf 'only mkdir chown creat\nnames files 1\nnames dirs 1\nnames depth 1\n' >few
check 'ext4 with another rule for groups' \
	tries 1 -t ext4,grpid --order walk --time 800s --findings 1 --inputs few
cp -r kept/findings/1-0 image
cp image/last.img image/start.img
echo 'creat A/zz 0644' >image/script
cp image/script image/workload
check 'without the image one operation does not show it' sh -c "
	timeout 900 '$OUTAGE' explore --replay image --trust >out 2>err; [ \$? = 0 ]"
echo 'start start.img' >>image/case
check 'with the image it does' sh -c "
	timeout 900 '$OUTAGE' explore --replay image --trust >out 2>err; [ \$? = 1 ]"
check 'each time' grep -q '^shown 3 of 3 times' out
check 'outage replay begins with it as well' sh -c "
	timeout 900 '$OUTAGE' replay image --trust >out 2>err; [ \$? = 1 ]"
check 'and tells the same' grep -q '^shown 3 of 3 times' out
cp -r image long
printf '%s\n' 'mkdir B' 'creat A/zz 0644' 'creat B/yy 0600' | tee long/script >long/workload
sed -i 's/^done .*/done 3/' long/case
check 'it is made small' sh -c "
	timeout 900 '$OUTAGE' shrink long --trust -o small --json >out 2>err; [ \$? = 0 ]"
check 'of three operations one is left' test "$(json_value '(d["operations_before"], d["operations"])')" = '(3, 1)'
check 'it begins with the same disk' cmp long/start.img small/start.img
check 'it shows again' sh -c "
	timeout 900 '$OUTAGE' replay small --trust >out 2>err; [ \$? = 1 ] && grep -q '^shown 3 of 3 times' out"
check 'a finding is not replaced' sh -c "
	timeout 900 '$OUTAGE' shrink long --trust -o small >out 2>err; [ \$? = 2 ] && grep -q -e --force err"
check 'unless that is said' sh -c "
	timeout 900 '$OUTAGE' shrink long --trust -o small --force >out 2>err; [ \$? = 0 ]"
check 'nor is anything else' sh -c "
	timeout 900 '$OUTAGE' shrink long --trust -o kept --force >out 2>err; [ \$? = 2 ] && [ -e kept/run ]"
check 'a finding of a run goes below it' sh -c "
	timeout 900 '$OUTAGE' shrink kept/findings/1-0 >out 2>err; [ \$? = 0 ] && [ -s kept/shrunk/1-0/script ]"
check 'and is trusted as the run is' sh -c "
	timeout 900 '$OUTAGE' replay kept/shrunk/1-0 >out 2>err; [ \$? = 1 ]"
sed 's/^signature .*/signature hang/' long/case >case && cp -r long hung && cp case hung/case
check 'a hang is not made small' sh -c "
	timeout 900 '$OUTAGE' shrink hung --trust -o none >out 2>err; [ \$? = 2 ] && [ ! -e none ]"
check 'which is said' one_sentence 'it cannot be made small'
sed -i 's/^\(creat\|mkdir\) .*/mkdir C/' long/script
check 'what does not show is not made small' sh -c "
	timeout 900 '$OUTAGE' shrink long --trust -o none >out 2>err; [ \$? = 2 ] && [ ! -e none ]"
check 'which is said, too' one_sentence 'long does not show any more'
sed 's/^target .*/target mounted:true {mnt}/' image/case >case && cp -r image foreign && cp case foreign/case
check 'a finding that was changed may not run programs' sh -c "
	timeout 900 '$OUTAGE' explore --replay foreign >out 2>err; [ \$? = 2 ]"
check 'which is said' grep -q "foreign was not made by you on this machine, or was changed.*run 'true {mnt}'.*--trust" err
check 'unless it is trusted' sh -c "
	timeout 900 '$OUTAGE' explore --replay foreign --trust >out 2>err; [ \$? = 2 ] && ! grep -q trust err"
check 'exported, it has the disk' sh -c "timeout 900 '$OUTAGE' export image -o given >out 2>err"
check 'which is the same' cmp image/start.img given/start.img
check 'and no test that would begin without it' test ! -e given/generic-NNN
mkdir there && cp given/start.img copy.img && mount -o loop,grpid copy.img there
timeout 900 sh given/workload.sh there >out 2>err
check 'its script shows it there' test $? = 1
check 'and shows what was found' test "$(stat -c %g there/A/zz)" = "$(stat -c %g there/A)"
umount there
rm image/start.img
check 'an image that is gone' sh -c "
	timeout 900 '$OUTAGE' explore --replay image >out 2>err; [ \$? = 2 ]"
check 'is missed' grep -q 'image/start.img is not there, and the finding begins with it' err
truncate -s 1M image/start.img
check 'an image of another size' sh -c "
	timeout 900 '$OUTAGE' explore --replay image --trust >out 2>err; [ \$? = 2 ]"
check 'is refused' grep -q 'the image has 1048576 bytes' err

# ---- one of many of its kind ----

check 'the same is found again and again' tries 1 -t ext4,grpid --order walk --limit 30000 --seed 3 --inputs few --json
check 'two are kept' test "$(json_value 'd["findings"]')" = 2 -a "$(find kept/findings -mindepth 1 -maxdepth 1 | wc -l)" = 2
check 'and the others are counted' test "$(json_value 'd["not_kept"]')" -gt 2
check 'without JSON, too' eval "tries 1 -t ext4,grpid --order walk --limit 30000 --seed 3 --inputs few &&
	grep -q '^[0-9]* more findings of the same kinds are counted, and not kept$' out"

# ---- FUSE ----

if [ -x "$seedfs" ] && [ -e /dev/fuse ]; then
	check 'a reference with a mkfs of its own' tries 0 -t ext4 \
		-r "fuse:$seedfs mount {disk} {mnt} -f" --ref-mkfs "$seedfs mkfs {disk}" --ref-size 4M \
		--order walk --limit 300
	check 'which is needed' tries 2 -t ext4 -r "fuse:$seedfs mount {disk} {mnt} -f" --order walk --limit 300
	check 'and belongs to a reference' tries 2 -t ext4 --ref-mkfs "$seedfs mkfs {disk}"
	check 'as is said' grep -q 'there is none' err
	check 'a crash that loses something' tries 1 \
		-t "fuse:$seedfs mount {disk} {mnt} -f -o bug=chmod-lost" --mkfs "$seedfs mkfs {disk}" \
		--size 4M --order walk --crash-every 3 --depth 20 --time 800s --findings 1
	check 'is made small' test "$(wc -l <kept/findings/1-0/workload)" -le 5
	check 'and tells how many operations are left' \
		grep -q "^       $(wc -l <kept/findings/1-0/workload) operations, kept/findings/1-0" out
	check 'the whole of it is kept as well' test "$(wc -l <kept/whole/1-0/workload)" -gt 5
	check 'it is shown again' sh -c "
		timeout 900 '$OUTAGE' replay kept/findings/1-0 >out 2>err; [ \$? = 1 ]"
	check 'also when it is run again' sh -c "
		timeout 900 '$OUTAGE' replay --rerun kept/findings/1-0 >out 2>err; [ \$? = 1 ]"

	# The kernel complains, of one task or of a process that nobody knows: not of the other task.
	cat >says <<'END'
# says WHO: once, from a process that is below a task
mkdir said-once 2>/dev/null || exit 0
pid=4194000
if [ "$1" = task ]; then
	pid=$$
	while [ "$(cut -d' ' -f4 "/proc/$pid/stat")" != "$(cat main)" ]; do
		pid=$(cut -d' ' -f4 "/proc/$pid/stat")
	done
fi
printf '4,77,1,-;%s\n' "WARNING: CPU: 0 PID: $pid at fs/fake.c:1 fake+0x0/0x1" 'Modules linked in:' \
	'---[ end trace 0000000000000000 ]---' >>/dev/kmsg
END
	# with_log STATUS WHO
	with_log() {
		rm -rf said-once kept
		: >log
		# shellcheck disable=SC2016 # for the shell that runs it
		timeout 900 unshare -m sh -c 'mount --bind log /dev/kmsg && echo $$ >main && exec "$@"' sh \
			"$OUTAGE" explore -t "fuse:$seedfs mount {disk} {mnt} -f" --mkfs "$seedfs mkfs {disk}" \
			--recover "cd $dir; sh $dir/says $2; true" --size 4M -j 2 --order walk --depth 20 --limit 300 \
			-o kept >out 2>err </dev/null
		[ $? -eq "$1" ]
	}
	if [ "$(stat -Lc %i /proc/self/ns/pid)" = 4026531836 ]; then
		check 'the kernel complains of one task' with_log 1 task
		check 'which is one finding' grep -q '^1 finding,' out
		check 'of that task' sh -c 'cat kept/findings/*/kernel-log | grep -c fake.c:1 | grep -qx 1'
		check 'so the run has no log itself' test ! -e kept/kernel-log
		check 'the kernel complains of nobody that is known' with_log 1 nobody
		check 'which is one finding, too' grep -q '^1 finding,' out
		check 'of no task' sh -c '! ls kept/findings/* >/dev/null 2>&1'
		check 'but of the run' grep -q 'fake.c:1' kept/kernel-log
	fi
else
	skip 'there is no /dev/fuse'
fi

done_testing
