#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0439-again.sh - replay and shrink of findings of outage app and outage pm: options that they obey, and
# those that they refuse.
# takes 20 s
# shellcheck disable=SC2016,SC2317 # $1 is for the check; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_namespaces
requires_root
requires_fuse
requires_tools qemu-x86_64:qemu-user
pid=
trap '[ -z "$pid" ] || kill -KILL $pid 2>/dev/null; rm -rf "$dir"' EXIT
chmod 755 "$dir"
: >vmlinux
nap=6543.$$ # no other process sleeps for so long

# refuses FINDING: options for a guest, and those of a workload
refuses() {
	local command option
	for command in replay shrink; do
		for option in "--kernel vmlinux" "--modules /" "--guest-memory 1G"; do
			# shellcheck disable=SC2086 # words
			gives 2 $command "$1" $option && grep -q 'are for findings of uml: and vm: targets' err || return 1
		done
	done
	gives 2 replay "$1" --rerun && grep -q "run 'outage $2' again instead" err
}
# late FINDING COMMAND: while there is a file `hangs` its check does not end
late() {
	: >hangs
	gives 2 "$2" "$1" --time 1s && complains 'did not end within 1 s; it was killed' && no_nap
	local status=$?
	rm hangs
	return "$status"
}

# ---- outage app ----

# Each file must be there before the last one. The first state that fails is kept as it is, with all it lost.
cat >looks <<END
#!/bin/sh
[ ! -e '$dir/hangs' ] || sleep $nap
if [ -e '$dir/failed' ]; then
	: >'$dir/explaining'
	sleep $nap
fi
[ ! -e "\$OUTAGE_DIR/end" ] && exit 0
for i in 1 2 3 4 5 6; do
	[ "\$(cat "\$OUTAGE_DIR/f\$i")" = \$i ] && continue
	[ ! -e '$dir/first' ] || : >'$dir/failed'
	echo "f\$i is not there"
	exit 1
done
END
chmod 755 looks
mkdir data
: >first
"$OUTAGE" app -o run -p minimal -j 1 --timeout 1h --check "$dir/looks" \
	--run 'for i in 1 2 3 4 5 6; do echo $i >f$i; done; echo end >end' -- data >out 2>err &
pid=$!
check 'app: a check of a state that fails hangs' soon eval '[ -e explaining ]'
kill -TERM $pid
wait $pid
pid=
rm -f first failed explaining
app=run/findings/0
check 'app: the finding is not explained' grep -q "^unexplained" $app/case
check 'app: no guest, and no workload' refuses $app app
check 'app: replay has its time' late $app replay
check 'app: shrink has its time' late $app shrink
check 'app: nothing was made' test ! -e run/shrunk/0
check 'app: replay shows it' gives 1 replay $app
check 'app: it is made small' gives 0 shrink $app --json
check 'app: less is lost' test "$(json_value 'd["lost_before"] > d["lost"] > 0')" = True
check 'app: and the cause is known' eval '! grep -q "^unexplained" run/shrunk/0/case && grep -q "^cause " run/shrunk/0/case'
check 'app: it shows again' gives 1 replay run/shrunk/0
check 'app: it is not replaced' eval 'gives 2 shrink $app && complains "holds a finding already"'
check 'app: nor put where its run is not' eval 'gives 2 shrink $app -o alone && complains "needs its run"'
cp -a run another
check 'app: nor into another run' eval 'gives 2 shrink $app -o another/shrunk/1 && complains "needs its run, .*run: " && [ ! -e another/shrunk/1 ]'
check 'app: a small one stays as it is' gives 0 shrink run/shrunk/0 -o run/shrunk/1
check 'app: which is said' grep -q '^run/shrunk/1: \([0-9]*\) of \1 lost operations\?, .*nothing smaller was found$' out
check 'app: and is kept' eval 'cmp <(sed "/^acks/d" run/shrunk/0/case) <(sed "/^acks/d" run/shrunk/1/case)'
check 'app: a report has it' eval 'gives 0 report run/shrunk/1 && grep -q "f[1-6]" out'
printf '#!/bin/sh\n' >looks
check 'app: what does not show is not made small' eval 'gives 2 shrink $app --force && complains "does not show any more"'

# ---- outage pm ----

writer=$helpers/pm-writer reader=$helpers/pm-reader
truncate -s 64K pool
cat >verify <<END
#!/bin/sh
[ ! -e '$dir/hangs' ] || sleep $nap
exec '$reader' check "\$OUTAGE_FILE"
END
chmod 755 verify
check 'pm: a finding' gives 1 pm --file pool -o r --timeout 1h --check "$dir/verify" -- "$writer" pool late
pm=r/findings/0
check 'pm: no guest, and no workload' refuses $pm pm
check 'pm: replay has its time' late $pm replay
check 'pm: shrink has its time' late $pm shrink
check 'pm: replay shows it' gives 1 replay $pm
rm pool
check 'pm: without its file, too' gives 1 replay $pm
check 'pm: which is not made' test ! -e pool
check 'pm: nor when the time is up' eval 'late $pm replay && [ ! -e pool ]'
check 'pm: a small one stays as it is' eval 'gives 0 shrink $pm && grep -q "nothing smaller was found$" out'
check 'pm: it shows again' gives 1 replay r/shrunk/0
done_testing
