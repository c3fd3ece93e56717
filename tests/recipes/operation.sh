# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154,SC2317 # for eval; t0020-recipes.sh has the variables, and calls it
# The operation `touch` is there wherever operations are, and no piece of it can be forgotten.

used() {
	printf 'setup creat foo\ntouch foo # now\nfsync foo\n' >workload
	check 'touch is listed' eval 'status 0 gen --list-operations && grep -qx "touch PATH" out'
	check 'parsed and printed' eval 'status 0 gen --import workload && cmp -s out workload'
	check 'refused if it is wrong' eval 'echo "touch a b" >bad && status 2 gen --import bad'
	check 'generated' eval 'status 0 gen --bounds tree/touch.bounds && grep -qx "touch A" out'
	check 'performed by the reference file system' \
		status 0 explore -t reffs --inputs tree/touch.inputs --limit 300 --coverage coverage -o reffs
	check 'which was asked to' grep -qE '^touch +[1-9]' coverage
	check 'in the manual page' eval 'build man/outage-workload.5 && grep -q touch tree/build/man/outage-workload.5'
	if [ "$(id -u)" = 0 ] && timeout 120 "$OUTAGE" doctor >out 2>err; then
		check 'performed by ext4 as by the reference' \
			status 0 explore -t ext4 --inputs tree/touch.inputs --limit 60 --coverage coverage -o ext4
		check 'which was asked to, too' grep -qE '^touch +[1-9]' coverage
		check 'tested with crashes' status 0 test -t ext4 -j 1 -o healthy workload
		check 'in a finding of a file system that is sick' \
			status 1 test -t ext4,barrier=0 --crash reorder --budget 10 -j 1 -o sick workload
		finding=$(find sick/findings -name case | sort | head -n 1)
		check 'which is exported' status 0 export "${finding%/case}" -o exported
		check 'with touch as a command' grep -qx 'touch -c foo' exported/workload.sh
		check 'and for xfstests' grep -qx 'touch -c \$SCRATCH_MNT/foo' exported/generic-NNN
		check 'and in C, which compiles' exits 0 cc -Wall -Wextra -Werror -o program exported/workload.c
		mkdir -p there
		check 'and does it' eval 'exits 0 ./program there && grep -q "touch foo" out && [ -e there/foo ]'
	else
		skip 'file systems cannot be mounted here'
	fi
}

left_out() {
	check 'without exec_touch it does not link' noticed 2 'undefined reference to .exec_touch' outage
	check 'nor without ref_touch' noticed 3 'undefined reference to .ref_touch' outage
	recipe steps "$document" "$section"
	read -r _ lines file <out
	check 'the first step is the entry' test "$file" = src/workload/ops.def
	for ((line = 1; line <= lines; line++)); do
		check "an entry without its line $line does not compile" \
			noticed "1:$line" 'error:' ../src/workload/optable.c^
	done
	check 'all of it is there again' whole
	# SHELL, the sixth line, and PROGRAM, the eighth, change places.
	entry=$(grep -n '^OP(touch,' tree/src/workload/ops.def | cut -d : -f 1)
	sed -i "$((entry + 5)){h;d};$((entry + 7)){s/))\$/),/;p;x;s/,\$/)/}" tree/src/workload/ops.def
	check 'pieces that changed places do not compile' \
		eval '! build ../src/report/program.c^ && grep -q "error:.*SHELL" out'
}
