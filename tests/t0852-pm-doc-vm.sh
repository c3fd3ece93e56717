#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0852-pm-doc-vm.sh - the examples of doc/pm.md that run in a guest with Debian's kernel, in their order:
# every line that is shown there is printed, but for numbers, and for "..." in it.
# shellcheck disable=SC2317 # functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guests.sh
. "$root/tests/guests.sh"
requires_qemu
requires_tools busybox:busybox-static

own_machines
mkdir -p "$kernels"
export OUTAGE_CACHE=$kernels
printf 'creat foo\n' >probe
outage test -t vm:ext4-dax -j 1 -o probed probe
requires_kernel $?
mkdir bin examples here
ln -s "$OUTAGE" bin/outage
export PATH=$dir/bin:$PATH

# Splits the document into commands and what is shown of their output: NNN.cmd and NNN.out.
awk '
	!/^    / && !/^$/ { open = 0; next }
	{ line = $0; sub(/^    /, "", line) }
	more { print line > cmd; more = line ~ /\\$/; next }
	line ~ /^\$ / {
		n++; open = 1; cmd = sprintf("examples/%03d.cmd", n); out = sprintf("examples/%03d.out", n)
		sub(/^\$ /, "", line); print line > cmd; printf "" > out; more = line ~ /\\$/; next
	}
	open { print line > out }
' "$root/doc/pm.md"

# What differs from run to run is left out: numbers, and how fast it was.
plain() { sed -E 's/ in [0-9.]+ s: .* a second$/ in N s/; s/0x[0-9a-f]+/X/g; s/[0-9]+(\.[0-9]+)?/N/g' | tr -s ' \t' '  '; }

# shows FILE: every line of it, whose parts may have anything between them, is in what was printed. There, lines
# are longer than in the document.
shows() {
	plain <printed | tr '\n' ' ' | tr -s ' ' >flat
	local line part rest all
	all=$(cat flat)
	while IFS= read -r line; do
		case $line in outage:\ booting*) continue ;; esac
		rest=$all
		while IFS= read -r part; do
			part=$(echo "$part" | sed -E 's/^ +//; s/ +$//')
			[ -n "$part" ] || continue
			case $rest in
			*"$part"*) rest=${rest#*"$part"} ;;
			*) echo "# not there: $part"; return 1 ;;
			esac
		done <<<"${line//.../$'\n'}"
	done < <(plain <"$1")
}

# Files first: one is used before it is shown.
for cmd in examples/*.cmd; do
	text=$(cat "$cmd")
	case $text in
	'cat '*/*) ;;
	'cat '*) sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' "${cmd%.cmd}.out" >"here/${text#cat }" ;;
	esac
done
ran=0
for cmd in examples/*.cmd; do
	text=$(cat "$cmd")
	shown=$dir/${cmd%.cmd}.out
	case $text in
	*nova* | 'outage pm '*) continue ;; # of another kernel; or t0849 runs it
	'cat '*/*) ;;
	'cat '*) continue ;;
	esac
	(cd here && timeout 900 bash -c "$text") >printed 2>&1 </dev/null
	rc=$?
	cp printed out
	case $text in
	'outage test '*)
		want=$(grep -q '^found ' "$shown" && echo 1 || echo 0)
		grep -q . "$shown" || want=any
		check "$text" [ "$want" = any -o "$want" = "$rc" ]
		ran=$((ran + 1))
		;;
	'outage '*) check "$text" [ $rc -le 1 ] ;;
	*) check "$text" [ $rc = 0 ] ;;
	esac
	if [ -s "$shown" ]; then check "prints what is shown" shows "$shown"; fi
done
check "there are examples to run" [ "$ran" -ge 7 ]
# The check can fail.
echo 'vm:ext4-dax: 1 workload, 3 different crash states of 4 tried in 1.0 s: 3.0 states a second' >printed
echo 'vm:ext4-dax: 9 workload, 5 different ... tried in 2.0 s: 3.0 workloads a second' >same
echo 'vm:ext4-dax: 1 workload, 3 states of 4 tried' >other
check "numbers may differ" shows same
check "words may not" eval '! shows other >/dev/null'
done_testing
