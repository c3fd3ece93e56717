#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0200-trace.sh - outage trace: import, show, info, export, and damaged files.
# shellcheck disable=SC2317,SC2016 # functions are called through check, words expanded by eval

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"


absent() { [ ! -e "$1" ]; }

# A little-endian number of 8 bytes.
le64() {
	local v=$1 shift
	for shift in 0 8 16 24 32 40 48 56; do
		printf '%b' "\\x$(printf %02x $((v >> shift & 255)))"
	done
}

# entry SECTOR COUNT FLAGS [MARK]: one entry of a log, filled up to its sector
entry() {
	local text=${4-}
	{
		le64 "$1"; le64 "$2"; le64 "$3"; le64 ${#text}
		printf %s "$text"
		head -c 512 /dev/zero
	} | head -c 512
}

data() { head -c $((512 * $1)) /dev/zero | tr '\0' "$2"; }

make_log() {
	{ le64 $((0x6a736677736872)); le64 1; le64 6; le64 512; head -c 480 /dev/zero; }
	entry 0 0 8 'outage:begin 0 write A/foo 0 4096'
	entry 8 2 16; data 2 A
	entry 0 0 1
	entry 16 1 3; data 1 B
	entry 0 0 8 'outage:end 0 4096'
	entry 64 128 4
}

make_log >log

check 'import' status 0 trace import log -o t.trace
check 'nothing is said' [ ! -s out ]
check 'on either' [ ! -s err ]

check 'show' status 0 trace show t.trace
cat >want <<'END'
# dm-log-writes, of unknown size, sectors of 512, completions not recorded
       0 begin     op 0: write A/foo 0 4096
       1 write     0x1000+1024 meta
       2 complete  1
       3 flush
       4 complete  3
       5 write     0x2000+512 preflush,fua
       6 complete  5
       7 end       op 0 = 4096
       8 discard   0x8000+65536
       9 complete  8
END
check 'every event has its line' cmp -s want out

check 'show some kinds' status 0 trace show --kind flush,end --from 3 t.trace
check 'two of them' [ "$(grep -vc '^#' out)" -eq 2 ]
check 'show a range' status 0 trace show --from 4 --to 6 t.trace
check 'both ends are included' [ "$(grep -v '^#' out | awk '{ printf "%s ", $1 }')" = '4 5 6 ' ]
check 'show data' status 0 trace show --data --to 1 t.trace
check 'as hex and text' says '^ *000003f0  41 41 .*\|AAAAAAAAAAAAAAAA\|$'
check 'show as JSON' status 0 trace show --json --data --kind write,begin t.trace
if command -v python3 >/dev/null; then
	check 'which is JSON' timeout 900 python3 -c '
import json
t = json.load(open("out"))
assert t["complete"] and t["damage"] is None and t["info"]["sector_size"] == 512
e = t["events"]
assert [x["event"] for x in e] == [0, 1, 5]
assert e[0]["text"] == "write A/foo 0 4096" and e[0]["operation"] == 0
assert e[1]["data"] == "41" * 1024 and e[2]["flags"] == ["preflush", "fua"]
'
else
	n=$((n + 1))
	echo "ok $n # SKIP no python3"
fi
check 'show reads standard input' eval 'timeout 900 "$OUTAGE" trace show - <t.trace | cmp -s want -'

check 'info' status 0 trace info t.trace
check 'complete' says '^complete  *yes$'
check 'counts' says '^  write  *2$'
check 'info as JSON' status 0 trace info --json t.trace
check 'with bytes' says '"bytes_written": 1536'

check 'export' status 0 trace export t.trace -o again.log
check 'import the export' status 0 trace import again.log -o again.trace
check 'show it' status 0 trace show again.trace
check 'the same events' cmp -s want out
check 'a size can be given' status 0 trace import --size 1M log -o sized.trace
check 'and is kept' eval 'status 0 trace info sized.trace && says "^size  *1048576 bytes$"'
check 'a size that is too small' status 2 trace import --size 8k log -o small.trace
check 'is refused' complains 'leaves the device of 8192 bytes'
check 'without a file' absent small.trace
check 'export to standard output' eval 'timeout 900 "$OUTAGE" trace export t.trace -o - | cmp -s again.log -'

size=$(stat -c %s t.trace)
head -c $((size - 5)) t.trace >cut.trace
check 'show a trace that is cut off' status 2 trace show cut.trace
check 'shows what there is' cmp -s want out
check 'and says so in one line' one_line
check 'with the place' complains 'cut.trace is cut off: frame 1 at byte [0-9]*: the file ends within the frame; 10 events before it are readable'
check 'info as well' status 2 trace info cut.trace
check 'not complete' says '^complete  *no, cut off$'
check 'as JSON' status 2 trace show --json cut.trace
check 'too' says '"complete":false,"damage":\{"text":"frame 1 at byte '
check 'export refuses it' status 2 trace export cut.trace -o cut.log
check 'and leaves no file' absent cut.log

{ head -c 140 t.trace; printf X; tail -c +142 t.trace; } >bad.trace
check 'show a damaged trace' status 2 trace show bad.trace
check 'says what' complains 'bad.trace is damaged: frame 0 at byte 104: checksum does not match; 0 events before it are readable'

# calls of an application
if "$build/tests/unit/core-posix" p.trace; then
	check 'show calls' status 0 trace show p.trace
	check 'a write' says '^       0      0.001000 7/8         write     foo 9223372036854775807\+5 .* = 5 sync append$'
	check 'a rename that failed' says '^       1             - -           rename    foo -> #2/bar = -28 \(ENOSPC\)$'
	check 'show --kind posix' status 0 trace show --kind posix --data p.trace
	check 'with the data' says '68 65 6c 00 6f .*\|hel.o\|$'
	check 'show --kind write shows no call' status 0 trace show --kind write p.trace
	check 'but the head' eval '! grep -v "^#" out'
	check 'show --json' status 0 trace show --json --data p.trace
	check 'is JSON' eval 'python3 -m json.tool <out >/dev/null'
	check 'with names' says '"call":"write".*"name":"foo".*"flags":\["sync","append"\],"data":"68656c006f"'
	check 'a log cannot hold them' status 0 trace export p.trace -o p.log
	check 'which is said' complains 'calls of an application: 2'
fi

check 'what is not a trace' status 2 trace show log
check 'is said to be none' complains '^outage: log is not a trace$'
check 'what is not a log' status 2 trace import t.trace -o x.trace
check 'is said to be none' complains 'not a dm-log-writes log'
head -c 1500 log >cut.log
check 'a log that is cut off' status 2 trace import cut.log -o x.trace
check 'says where' complains 'entry 1 at byte 1024: '
check 'leaves nothing' absent x.trace
check 'a file that is not there' status 2 trace info nowhere
check 'is named' complains 'cannot open nowhere: No such file'
check 'an output that cannot be' status 2 trace import log -o no/such/dir
check 'is named' complains 'cannot create no/such/dir'
check 'a full disk' eval '! timeout 900 "$OUTAGE" trace show t.trace >/dev/full 2>err'
check 'is noticed' [ -s err ]

for sub in show info import export; do
	check "$sub --help" status 0 trace $sub --help
	check "$sub --help: a usage" says "^usage: outage trace $sub"
done
check '--help' status 0 trace --help
for wrong in '' 'frobnicate' 'show' 'show a b' 'show --bogus t.trace' 'show --kind nothing t.trace' \
	'show --from x t.trace' 'show --from 2 --to 1 t.trace' 'import log' 'export t.trace' \
	'export t.trace -o' 'import log --size many -o x.trace' 'import --json log -o -'; do
	# shellcheck disable=SC2086 # words are wanted
	check "wrong: outage trace $wrong" status 2 trace $wrong
done
check 'no temporary files' [ "$(find . -name '*.??????' ! -name '*.trace' | wc -l)" -eq 0 ]

done_testing
