#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0100-gen.sh - outage gen: counts, parts, names, samples, import, and what cannot be done.
# shellcheck disable=SC2317,SC2016 # functions are called through check, words expanded by eval

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

gen() { timeout 900 "$OUTAGE" gen "$@"; }



workloads() { grep -c '^workload ' "$1"; }
names() { sed -n 's/^workload //p' "$1"; }

# ---- numbers and parts

for set in seq-1 pm-seq-2; do
	check "$set: count" status 0 gen --bounds $set --count
	check "$set: one number" [ "$(grep -cE '^[0-9]+$' out)$(wc -l <out)" = 11 ]
	count=$(cat out)
	check "$set: all of it" status 0 gen --bounds $set
	cp out $set.all
	check "$set: as many as counted" [ "$(workloads out)" = "$count" ]
	check "$set: no name twice" [ -z "$(names out | sort | uniq -d)" ]
	names out | sed 's|.*/||' >numbers
	seq 0 $((count - 1)) >want
	check "$set: numbered in order" same numbers want
	awk '/^workload /{ if (t) print t; t = ""; next } { t = t $0 ";" } END { print t }' out |
		sort | uniq -d >twice
	check "$set: no text twice" [ ! -s twice ]

	: >joined
	for skip in 0 $((count / 3)) $((count / 2)) "$count" 999999999; do
		head=$(gen --bounds $set --limit "$skip" | workloads /dev/stdin)
		{ gen --bounds $set --limit "$skip"; gen --bounds $set --skip "$skip"; } >joined
		check "$set: --limit $skip and --skip $skip are the whole" same joined $set.all
		check "$set: --limit $skip" [ "$head" = $((skip < count ? skip : count)) ]
	done
	for shards in 1 2 7 $((count + 5)); do
		[ "$shards" -gt 100 ] && [ $set != seq-1 ] && continue
		for ((i = 1; i <= shards; i++)); do gen --bounds $set --shard $i/"$shards"; done >joined
		check "$set: $shards shards are the whole" same joined $set.all
	done
	check "$set: a part of a shard is counted" \
		[ "$(gen --bounds $set --shard 2/3 --skip 5 --limit 7 --count)" = 7 ]
	gen --bounds $set --shard 2/3 | awk '/^workload /{ k++ } k > 5 && k <= 12' >want
	status 0 gen --bounds $set --shard 2/3 --skip 5 --limit 7
	check "$set: and is what it should be" same out want
done
check 'counts have units' [ "$(gen --bounds pm-seq-2 --limit 1k --count)" = 1000 ]
check 'nothing is asked for' status 0 gen --bounds seq-1 --limit 0
check 'nothing comes' [ ! -s out ]

# ---- names

bad=0
for set in seq-1 pm-seq-2; do
	for name in $(names $set.all | awk 'NR % 97 == 1'; names $set.all | tail -n 1); do
		gen --name "$name" >out 2>err || bad=$((bad + 1))
		awk -v "line=workload $name" '/^workload /{ on = $0 == line } on' $set.all >want
		same out want && [ -s out ] || bad=$((bad + 1))
	done
done
check 'a name gives its workload again' [ $bad -eq 0 ]
first=$(names seq-1.all | head -n 1)
print=${first%/*} # seq-1.FINGERPRINT
check 'a name that is none' refused "'nothing' is not the name of a workload" gen --name nothing
check 'a name without a number' refused 'does not end with a number' gen --name "$print/x"
check 'a number that is too large' refused 'numbered from 0; there is no' gen --name "$print/344000"
check 'a stale fingerprint' refused 'have changed since it was named' gen --name seq-1.0000/0
check 'a set that is gone' refused "'gone' is not a named set" gen --name gone.1234/0
printf 'base seq-1\nfiles foo\n' >mine
check 'bounds of my own' status 0 gen --bounds mine
own=$(names out | sed -n 3p)
check 'are named after the file' eval '[[ $own == mine.*/2 ]]'
cp out mine.all
check 'a name of them' status 0 gen --bounds mine --name "$own"
awk -v "line=workload $own" '/^workload /{ on = $0 == line } on' mine.all >want
check 'gives that workload' same out want
printf 'base seq-1\nfiles bar\n' >mine
check 'not after the bounds have changed' refused 'have changed since' gen --bounds mine --name "$own"

# ---- samples

check 'a sample' status 0 gen --bounds seq-2 --sample 200 --seed 5
cp out sample
check 'has its size' [ "$(workloads sample)" = 200 ]
check 'and nothing twice' [ -z "$(names sample | sort | uniq -d)" ]
check 'again with the same seed' status 0 gen --bounds seq-2 --sample 200 --seed 5
check 'is the same' same out sample
check 'with another seed' status 0 gen --bounds seq-2 --sample 200 --seed 6
check 'is another' eval '! same out sample'
names sample | sed 's|.*/||' >numbers
check 'spread over the whole' [ "$(tail -n 1 numbers)" -gt $(($(gen --bounds seq-2 --count) * 98 / 100)) ]
check 'a sample larger than the set' status 0 gen --bounds seq-1 --sample 100000
check 'is the set' same out seq-1.all
check 'the count of a sample' [ "$(gen --bounds seq-1 --sample 10 --count)" = 10 ]

# ---- lists

check 'list' status 0 gen --list
check 'the sets' says "^seq-1  *$(workloads seq-1.all)  "
check 'list the operations' status 0 gen --list-operations
check 'how to write one' says '^rename OLD NEW \[FLAGS\]$'
for set in $(gen --list | awk '{ print $1 }'); do
	gen --show "$set" >shown
	check "$set: what --show prints are the same bounds" \
		[ "$(gen --bounds shown --count)" = "$(gen --bounds "$set" --count)" ]
done
check 'list as JSON' status 0 gen --list --json
cp out list.json
check 'count as JSON' status 0 gen --bounds seq-1 --count --json
if command -v python3 >/dev/null; then
	check 'the count is JSON' timeout 900 python3 -m json.tool out /dev/null
	check 'the list is JSON' timeout 900 python3 -m json.tool list.json /dev/null
else
	skip 'no python3 to read JSON'
	skip 'no python3 to read JSON'
fi
check 'with the number' says "\"workloads\": $(workloads seq-1.all)\$"

# ---- import

gen --bounds seq-1 | timeout 900 "$OUTAGE" gen --import - >out 2>err
check 'import of standard input is the identity' same out seq-1.all
check 'import of a file' status 0 gen --import seq-1.all
check 'is the identity' same out seq-1.all
printf '# define\nA\n# run\nmkdir A 0755\nsync\n' >old-form
printf 'workload old-form\nmkdir A 0755\nsync\n\n' >want
check 'import of j-lang' status 0 gen --import old-form
check 'gives a workload' same out want
check 'import of a mistake' status 2 gen --import mine
check 'names its place' complains "mine:1:1: unknown operation 'base'"
check 'import of nothing' refused '--import needs a file' gen --import
check 'import of what is not there' refused 'cannot open nowhere' gen --import nowhere
check 'import of a directory' refused 'Is a directory' gen --import .
check 'import of an endless file' refused 'a NUL byte' gen --import /dev/zero

# ---- as tests of xfstests; a few functions stand for the suite

mkdir -p suite/common suite/mnt
for name in filter attr reflink dmflakey; do : >suite/common/$name; done
cat >suite/common/preamble <<'END'
seqres=$PWD/seqres tmp=$PWD/tmp SCRATCH_MNT=$PWD/mnt SCRATCH_DEV=none XFS_IO_PROG=true GETFATTR_PROG=
rm -rf mnt "$tmp".* && mkdir mnt
_begin_fstest() { echo "QA output created by ${0##*/}"; }
_flakey_drop_and_remount() { (cd mnt && eval "${DAMAGE:-:}"); }
for name in require_scratch require_dm_target scratch_mkfs require_metadata_journaling init_flakey mount_flakey \
	unmount_flakey require_attrs require_xfs_io_command; do
	eval "_$name() { :; }"
done
END
in_suite() { # NUMBER [DAMAGE]: the test prints what it should
	(cd suite && DAMAGE=${2:-} timeout 60 bash "../tests-of-it/$1") >out 2>err
	same out "tests-of-it/$1.out"
}
printf 'operations link\nfiles foo bar\ndirectories A\npersist fsync sync\nlast-persist-on latest parents\n' >few
check 'as xfstests' status 0 gen --bounds few --as xfstests --output tests-of-it
check 'nothing is printed' [ ! -s out ]
check 'a test for each' [ "$(find tests-of-it -name '???' | wc -l)" = "$(gen --bounds few --count)" ]
check 'and what it prints' [ "$(find tests-of-it -name '???.out' | wc -l)" = "$(gen --bounds few --count)" ]
check 'it tells its workload' grep -q '^# After a crash.* few\.[0-9a-f]*/0$' tests-of-it/001
bad=0
for test in tests-of-it/???; do
	in_suite "${test#*/}" || bad=$((bad + 1))
	if in_suite "${test#*/}" 'rm -rf ./*'; then bad=$((bad + 1)); fi
done
check 'they pass, and fail where all is lost' [ $bad = 0 ]
printf 'base few\noperations creat\npersist-twice always\npersist fsync\n' >twice
check 'two points at the end' status 0 gen --bounds twice --as xfstests -o tests-of-it
test=$(grep -lx '	promised all A' tests-of-it/* | xargs grep -lx '	promised all A/foo' | head -n 1)
check 'both are looked at' [ -n "$test" ]
check 'bytes of a mapping' eval 'printf "operations mmapwrite\nfiles foo\ndirect-ranges append\n" >mapped &&
	gen --bounds mapped --as xfstests -o tests-of-it && grep -qx "	promised bytes foo 0 8192" tests-of-it/001'
check 'a directory is needed' refused '--as xfstests and --output go together' gen --bounds few --as xfstests
check 'and a form' refused '--as xfstests and --output go together' gen --bounds few -o tests-of-it
check 'a directory that cannot be made' refused 'cannot make no/where' gen --bounds few --as xfstests -o no/where

# ---- what cannot be done

check 'no bounds' refused '--bounds is missing' gen
check 'an unknown set' refused "'seq-9' is neither a named set (outage gen --list) nor a file" gen --bounds seq-9
printf 'base seq-1\nlenght 2\n' >b
check 'an unknown key' refused "b:2: unknown key 'lenght'" gen --bounds b
printf 'operations creat\ndirectories none\n' >b
check 'an empty set' refused 'no workload fits these bounds' gen --bounds b
printf 'files a\n' >b
check 'no operations' refused 'b: no operations' gen --bounds b
printf 'base c2\n' >c1
printf 'base c1\n' >c2
check 'bases in a circle' refused 'base c1 leads back to itself' gen --bounds c1
printf 'base ././c4\n' >c3
printf 'base .//c3\n' >c4
check 'a circle in other words' refused 'c3:1: ' gen --bounds ./c3
printf 'base nowhere\n' >b
check 'a base that is not there' refused 'nowhere' gen --bounds b
check 'a directory' refused '. is a directory, not a file' gen --bounds .
printf 'operations creat\0\n' >b
check 'a NUL byte' refused 'a NUL byte' gen --bounds b
for shard in 0/2 3/2 1/0 1 /2 1/ -1/2 a/b 1/2/3 ''; do
	check "--shard '$shard'" refused '--shard is I/N with 1 <= I <= N' gen --bounds seq-1 --shard "$shard"
done
check 'a limit that is none' refused "'many' is not a count" gen --bounds seq-1 --limit many
check 'a seed that is none' refused '--seed is a number' gen --bounds seq-1 --sample 1 --seed x
check 'an unknown option' refused "unknown option --bogus" gen --bogus
check 'one that is nearly right' refused 'unknown option --buonds (did you mean --bounds?)' gen --buonds
check 'a value that is too much' refused '--json takes no value' gen --json=yes
check 'a missing value' refused "--bounds needs a value, SET|FILE" gen --bounds
check 'too much' refused "'extra' is not expected here" gen --bounds seq-1 extra

# ---- output that does not arrive

for what in '--bounds seq-2' '--bounds seq-2 --sample 100k' '--import many'; do
	[ "$what" = '--import many' ] && gen --bounds seq-2 --limit 50k >many
	# shellcheck disable=SC2086 # words are wanted
	gen $what 2>err | head -n 1 >out
	status=${PIPESTATUS[0]}
	check "a reader that goes away: $what" [ "$status" -eq 2 ]
	check 'one sentence' eval '[ "$(wc -l <err)" -eq 1 ] && complains "^outage: standard output was closed"'
done
for what in '--bounds seq-1' '--bounds seq-1 --count' '--list' '--list-operations' '--show seq-1' \
	'--import old-form' '--import seq-1.all' '--help'; do
	# shellcheck disable=SC2086 # words are wanted
	gen $what >/dev/full 2>err
	status=$?
	check "a full disk: $what" [ "$status" -eq 2 ]
	check 'one sentence' eval '[ "$(wc -l <err)" -eq 1 ] && complains "No space left"'
done

# ---- memory

if (ulimit -v 65536 && gen --bounds seq-1 --count) >out 2>err; then
	(ulimit -v 65536 && timeout 900 "$OUTAGE" gen --bounds seq-3-nested) >/dev/null 2>err
	status=$?
	check 'more than a million workloads in 64 MiB' [ $status -eq 0 ]
	gen --bounds seq-3-nested --limit 300k >many
	(ulimit -v 65536 && timeout 900 "$OUTAGE" gen --import many) >out 2>err
	status=$?
	check 'import of many in 64 MiB' [ $status -eq 0 ]
	check 'all of them' same out many
else
	skip 'the program does not start in 64 MiB (a sanitizer needs more)'
fi

done_testing
