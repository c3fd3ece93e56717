#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0210-trace-posix.sh - outage trace with the calls of an application: lines, filters, runs,
# suggestions and the picture.
# shellcheck disable=SC2317,SC2016 # functions are called through check, words expanded by eval

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

make_trace=$helpers/posix-trace
requires_built "$make_trace"


events() { [ "$(grep -v '^#' out | awk '{ printf "%s ", $1 }')" = "$1 " ]; }
is_xml() { timeout 900 python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$1"; }
is_json() { timeout 900 python3 -c "import json; t = json.load(open('out')); $1"; }

# A database: a log that is synced, a table that is not, and a manifest that is published by a rename.
{
	echo 'mkdir ino=2 dir=1 name=db pid=7'
	echo 'create ino=10 dir=2 name=wal pid=7 arg=420'
	for i in 0 1 2; do
		for k in 0 1; do
			echo "write ino=10 offset=$((i * 1024 + k * 512)) len=512 pid=7 tid=8"
		done
		echo 'fsync ino=10 pid=7 tid=8'
	done
	echo 'create ino=11 dir=2 name=table pid=9'
	echo 'write ino=11 len=10000 pid=9 payload=hello'
	echo 'create ino=12 dir=2 name=tmp pid=7'
	echo 'write ino=12 len=20 pid=7'
	echo 'rename dir=2 name=tmp dir2=2 name2=MANIFEST ino=12 pid=7'
	echo 'fsyncdir ino=2 pid=7'
	echo 'fsync ino=12 pid=7 result=-5'
	echo 'text fault 1 struck'
	echo 'open ino=10 pid=9'
} >calls
check 'make a trace' eval '"$make_trace" db.trace <calls 2>err'

check 'show' status 0 trace show db.trace
cat >want <<'END'
# test, calls of an application
# event       seconds process     call      path
       0      0.001000 7           mkdir     db = 0
       1      0.002000 7           create    db/wal mode 0644 = 0
       2      0.003000 7/8         write     db/wal 0+512 = 512
       3      0.004000 7/8         write     db/wal 512+512 = 512
       4      0.005000 7/8         fsync     db/wal = 0
       5      0.006000 7/8         write     db/wal 1024+512 = 512
       6      0.007000 7/8         write     db/wal 1536+512 = 512
       7      0.008000 7/8         fsync     db/wal = 0
       8      0.009000 7/8         write     db/wal 2048+512 = 512
       9      0.010000 7/8         write     db/wal 2560+512 = 512
      10      0.011000 7/8         fsync     db/wal = 0
      11      0.012000 9           create    db/table = 0
      12      0.013000 9           write     db/table 0+10000 = 10000
      13      0.014000 7           create    db/tmp = 0
      14      0.015000 7           write     db/tmp 0+20 = 20
      15      0.016000 7           rename    db/tmp -> db/MANIFEST = 0
      16      0.017000 7           fsyncdir  db = 0
      17      0.018000 7           fsync     db/MANIFEST = -5 (EIO)
      18 text      fault 1 struck
      19      0.019000 9           open      db/wal = 0
END
check 'a line for each call, with its path' cmp -s want out
check 'standard input' eval 'timeout 900 "$OUTAGE" trace show - <db.trace | cmp -s want -'

check 'show --op' status 0 trace show --op fsync,rename db.trace
check 'only those' events '4 7 10 15 17'
check 'show --pid' status 0 trace show --pid 9 db.trace
check 'only its calls' events '11 12 19'
check 'show --pid of a thread' status 0 trace show --pid 8 --from 8 db.trace
check 'only those, from there on' events '8 9 10'
check 'show --file' status 0 trace show --file MANIFEST db.trace
check 'has the history of the file from before it had its name' events '13 14 15 17'
check 'and says what was never synced' says '0\+20 = 20 occurrence 1 never-synced$'
check 'show --file with a glob' status 0 trace show --file 'db/w*' --op write db.trace
check 'all its writes' events '2 3 5 6 8 9'
check 'which are counted' says '2560\+512 = 512 occurrence 6$'
check 'show --file of nothing' status 0 trace show --file nothing db.trace
check 'is empty' [ ! -s out ]
check 'show --large' status 0 trace show --large db.trace
check 'more than a page' events 12
check 'show --large SIZE' status 0 trace show --large 1k db.trace
check 'more than that' events 12
check 'show --large=SIZE' status 0 trace show --large=511 db.trace
check 'more than that' events '2 3 5 6 8 9 12'
check 'show --large 10k' status 0 trace show --large=10k db.trace
check 'nothing' [ ! -s out ]
check 'show --data --file' status 0 trace show --data --file table db.trace
check 'has the data' says '\|hello\|$'

check 'show --runs' status 0 trace show --runs db.trace
check 'what repeats is folded' says '^ *2-10  db/wal: write x2, fsync; 3 times; 3 KiB$'
check 'what is never synced is marked' says '^ *12  db/table: write \(never synced\); 10000 bytes$'
check 'what failed, too' says 'fsync \(failed: EIO\)$'
check 'what changes nothing is left out' lacks ' open'
check 'unless it is asked for' eval 'status 0 trace show --runs --op open db.trace && says "db/wal: open"'
check 'show --runs --json' status 0 trace show --runs --json db.trace
check 'the same' is_json '
g = t["groups"][2]
assert g["first"] == 2 and g["last"] == 10 and g["times"] == 3 and t["complete"]
assert [r["call"] for r in g["runs"]] == ["write", "fsync"] and g["runs"][0]["most"] == 2'

check 'show --suggest' status 0 trace show --suggest db.trace
check 'a rename before its sync' says '^crash timing=after op=rename from=db/tmp to=db/MANIFEST  # event 15: '
check 'a large write' says '^torn-op file=db/table parts=3 persist=3  # event 12: '
check 'a run' says '^torn-seq op=write file=db/wal persist=2  # event 3: '
check 'the sync of most' says '^crash timing=before op=fsync file=db/wal  # event 4: '
check 'data never synced' says '^crash timing=after op=write file=db/table  # event 12: '
check 'show --suggest --limit' status 0 trace show --suggest --limit 2 db.trace
check 'so many' [ "$(grep -vc '^#' out)" -eq 2 ]
check 'says what is left out' says '^# [0-9]* more; --limit N shows them$'
check 'show --suggest --json' status 0 trace show --suggest --json --file wal db.trace
check 'the same' is_json '
assert all("db/wal" in s["command"] for s in t["suggestions"]) and len(t["suggestions"]) == 2'
check 'every suggestion is one line of a shell' eval 'status 0 trace show --suggest db.trace && bash -n out'
printf 'create ino=2 dir=1 name=a\nwrite ino=2 len=9\nfsync ino=2\nfsyncdir ino=1\n' | "$make_trace" small.trace
check 'where all is synced' status 0 trace show --suggest small.trace
check 'the moment before is left' [ "$(grep -vc '^#' out)" -eq 1 ]

check 'show --json' status 0 trace show --json --file MANIFEST db.trace
check 'has paths and what became of the data' is_json '
e = t["events"]
assert [x["event"] for x in e] == [13, 14, 15, 17]
assert e[1]["path"] == "db/tmp" and e[1]["fate"] == "unsynced" and e[1]["occurrence"] == 1
assert e[2]["path2"] == "db/MANIFEST" and e[3]["result"] == -5 and e[3]["path"] == "db/MANIFEST"'
check 'show --json of all' status 0 trace show --json db.trace
check 'has paths, too' is_json 'assert t["events"][17]["path"] == "db/MANIFEST" and len(t["events"]) == 20'

check 'info' status 0 trace info db.trace
check 'counts calls' says '^    write  *8$'
check 'and bytes' says '^written  *13092 bytes$'

# Each suggestion, given to a mount that sees these calls, strikes at the event it names: also
# where names are taken by other files, contain anything, and calls fail.
# shellcheck disable=SC2034 # it is used below, by eval
strikes=${make_trace%trace}faults
check 'every suggestion strikes where it says' eval 'timeout 900 "$strikes" db.trace >out'
awk -v seed=9 'BEGIN {
	srand(seed)
	n = split("a b%20b c*d e[1] tmp it%27s $x", name, " ")
	print "mkdir ino=2 dir=1 name=d"
	for (i = 0; i < 1500; i++) {
		nm = name[1 + int(rand() * n)]; to = name[1 + int(rand() * n)]; r = rand()
		if (!(nm in ino)) {
			ino[nm] = 10 + i
			print "create ino=" ino[nm] " dir=2 name=" nm
		} else if (r < .6) {
			print "write ino=" ino[nm] " len=" int(rand() * 20000) " result=" (rand() < .2 ? -5 : 1)
		} else if (r < .8) {
			print (rand() < .5 ? "fsync" : "fdatasync") " ino=" ino[nm] " result=" (rand() < .2 ? -5 : 0)
		} else if (r < .9 && nm != to) {
			print "rename dir=2 name=" nm " dir2=2 name2=" to
			ino[to] = ino[nm]; delete ino[nm]
		} else if (r < .95) {
			print "unlink dir=2 name=" nm; delete ino[nm]
		} else {
			print "truncate ino=" ino[nm] " offset=3"
		}
	}
}' | "$make_trace" many.trace
check 'and those of a longer trace' eval 'timeout 900 "$strikes" many.trace >out'
check 'which are many' [ "$(grep -c "^right" out)" -gt 100 ]

# ---- the picture ----

check 'graph' status 0 trace graph db.trace -o db.svg
check 'is XML' is_xml db.svg
check 'nothing is said' [ ! -s err ]
check 'equal calls in one box' says '>write x2 1 KiB<' db.svg
check 'what repeats in a bracket' says '>x3<' db.svg
check 'an arrow' says 'class="arrow"' db.svg
check 'a barrier' says '<g class="sync"><title>event 4: fsync db/wal' db.svg
check 'a failure' says '>fsync EIO<' db.svg
check 'what was never synced' says 'never synced: 10000 bytes' db.svg
check 'what the recorder said' says '>fault 1 struck<' db.svg
check 'graph --file' status 0 trace graph --file wal db.trace -o wal.svg
check 'only that' eval 'is_xml wal.svg && says db/wal wal.svg && lacks table wal.svg'
check 'and nothing unsynced' lacks 'never synced:' wal.svg
check 'graph --limit --json' status 0 trace graph --limit 4 --json db.trace -o cut.svg
check 'says what was cut' is_json 'assert t["calls_not_drawn"] == 7 and t["calls"] == 18'
check 'in words' complains '7 calls are not drawn'
check 'and in the picture' says '7 further calls are not drawn' cut.svg
check 'graph to standard output' eval 'timeout 900 "$OUTAGE" trace graph db.trace -o - | cmp -s db.svg -'
check 'graph to nowhere' status 2 trace graph db.trace -o no/such/dir.svg
check 'is said' complains 'no/such/dir.svg'

# ---- hostile ones ----

{
	echo 'mkdir ino=2 dir=3 name=two'
	echo 'mkdir ino=3 dir=2 name=three'
	echo 'create ino=4 dir=2 name=%0aevil%1b%ff%3cscript%3e'
	echo 'write ino=4 len=9999'
	echo 'create ino=5 dir=2 name=a/b'
	echo 'write ino=99 len=1'
	echo 'rename dir=2 name=gone dir2=77 name2=x'
	echo 'unlink dir=2 name=nothing'
	echo 'link ino=0 dir=2 name=l'
} | "$make_trace" evil.trace
for how in '' --runs --suggest --large '--file=*' --json '--runs --json'; do
	# shellcheck disable=SC2086 # words are wanted
	check "show $how of a hostile trace" status 0 trace show $how evil.trace
	check 'no byte of it reaches a terminal' eval '! LC_ALL=C grep -q "[^ -~]" out'
done
check 'show' status 0 trace show evil.trace
check 'an unknown inode' says ' write  *#99 '
check 'a slash in a name' says '/a\\\\x2fb = 0$'
check 'show of a file that is not there' status 0 trace show --file nosuch db.trace
check 'says so' complains "named 'nosuch'"
check 'and shows nothing' test ! -s out
check 'show of one that is' status 0 trace show --file db/wal db.trace
check 'says nothing' test ! -s err
check 'graph of a file that is not there' status 0 trace graph --file nosuch db.trace -o none.svg
check 'says so, too' complains "named 'nosuch'"
check 'graph of a hostile trace' status 0 trace graph evil.trace -o evil.svg
check 'is XML' is_xml evil.svg
check 'without what it brought' lacks '<script>' evil.svg
: | "$make_trace" empty.trace
check 'show of an empty trace' status 0 trace show empty.trace
check 'graph of an empty trace' status 2 trace graph empty.trace -o empty.svg
check 'says that it has no calls' complains 'empty.trace holds no calls of an application'
check 'and leaves nothing' [ ! -e empty.svg ]
size=$(stat -c %s db.trace)
head -c $((size - 5)) db.trace >cut.trace
check 'a trace that is cut off' status 2 trace show --file wal cut.trace
check 'is shown as far as it goes' [ -s out ]
check 'and said to be' complains 'cut.trace is cut off'
check 'its picture, too' eval 'status 2 trace graph cut.trace -o cut.svg && is_xml cut.svg'

printf 'create ino=2 dir=77 name=a\nwrite ino=2 len=9999\n' | "$make_trace" root.trace
check 'a trace that does not name its root' status 0 trace show --suggest root.trace
check 'has paths from the first directory' says '^torn-op file=a '
check 'which is said' says '^# the trace does not tell the root'
printf 'lookup ino=5 name=.\ncreate ino=2 dir=77 name=a\nwrite ino=2 len=9999\n' | "$make_trace" root.trace
check 'one that does' status 0 trace show --suggest root.trace
check 'makes no guess' lacks 'does not tell the root'
check 'and no command of what has no path' lacks '^torn-op'

# ---- through a mount ----

work() {
	mkdir db
	for i in 1 2 3; do
		dd if=/dev/zero of=db/wal bs=8k count=2 oflag=append conv=notrunc,fsync status=none || return
	done
	echo x >db/tmp && mv db/tmp db/CURRENT && sync db
}

# mounted ARGS...: runs the work in a new mount; its log is in log
mounted() {
	local pid status=0
	rm -rf root
	mkdir -p root mnt
	timeout 900 "$OUTAGE" mount root mnt "$@" >log 2>&1 &
	pid=$!
	timeout 900 bash -c 'until mountpoint -q mnt; do sleep 0.1; done'
	(cd mnt && work) >/dev/null 2>&1
	timeout 900 bash -c 'while mountpoint -q mnt; do umount mnt 2>/dev/null; sleep 0.1; done'
	wait "$pid" || status=$?
	return "$status"
}

if [ "$(id -u)" != 0 ] || ! timeout 900 "$OUTAGE" mount --help >/dev/null 2>&1; then
	skip 'there is no mount here'
else
	check 'a mount records' mounted --trace m.trace
	check 'what was called' status 0 trace show --runs m.trace
	check 'with its paths' says 'db/wal: write x2, fsync; 3 times; 48 KiB$'
	status 0 trace show --suggest m.trace
	grep -v '^#' out | sed 's/  # .*//' >faults
	check 'there are faults to try' [ "$(wc -l <faults)" -ge 4 ]
	while read -r fault <&3; do
		mounted --fault "$fault"
		check "it strikes: $fault" says crashed log
	done 3<faults
	mounted --fault 'crash timing=after op=write file=db/other'
	check 'one that has nothing to wait for does not' lacks crashed log
fi

for wrong in 'show --op frobnicate db.trace' 'show --pid x db.trace' 'show --pid 0 db.trace' \
	'show --large=none db.trace' 'show --runs --suggest db.trace' 'show --limit 3 db.trace' \
	'show --kind write --op write db.trace' 'show --runs --data db.trace' 'graph db.trace' \
	'graph -o x.svg' 'graph --limit 0 db.trace -o x.svg' 'graph --limit 20k db.trace -o x.svg' 'graph --json db.trace -o -' \
	'graph --from 3 --to 2 db.trace -o x.svg'; do
	# shellcheck disable=SC2086 # words are wanted
	check "wrong: outage trace $wrong" status 2 trace $wrong
done
check 'graph --help' eval 'status 0 trace graph --help && says "^usage: outage trace graph"'
check 'a call that there is not' status 2 trace show --op frobnicate db.trace
check 'those that there are' complains "--op is a list of lookup, .* msync, not 'frobnicate'"

done_testing
