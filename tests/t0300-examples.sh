#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the documents show is what the program prints: every "$ outage ..." example is run, and its
# output compared. "$ cat FILE" in an example makes that file.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$(dirname "$0")/.." || exit 1
root=$PWD
outage=${OUTAGE:-$root/build/outage}
mkdir "$work/bin" "$work/dir"
ln -s "$outage" "$work/bin/outage"
export PATH="$work/bin:$PATH"

n=0
# Splits a document into examples: files NNN.cmd and NNN.out, in order.
split_examples() {
	awk -v to="$1" '
		function finish() { if (open) { close(cmd); close(out) } open = 0 }
		/^```/ { fenced = !fenced; finish(); next }
		# An example is in a fence, or indented by four blanks.
		!fenced && !/^    / && !/^$/ { finish(); next }
		{ line = $0; if (!fenced) sub(/^    /, "", line) }
		line ~ /^\$ (build\/)?(outage|cat) / {
			finish(); open = 1; n++
			cmd = sprintf("%s/%03d.cmd", to, n); out = sprintf("%s/%03d.out", to, n)
			sub(/^\$ (build\/)?/, "", line); print line > cmd; printf "" > out; next
		}
		open { print line > out }
	' "$2"
}

for doc in README.md man/outage.1.scd man/outage-gen.1.scd man/outage-bounds.5.scd; do
	rm -rf "$work/examples"
	mkdir "$work/examples"
	split_examples "$work/examples" "$doc"
	for cmd in "$work"/examples/*.cmd; do
		[ -f "$cmd" ] || continue
		shown=${cmd%.cmd}.out
		text=$(cat "$cmd")
		case $text in
		cat\ *)
			sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' "$shown" >"$work/dir/${text#cat }"
			continue
			;;
		esac
		n=$((n + 1))
		# Output is compared without the empty lines at its end, which documents drop.
		(cd "$work/dir" && timeout 900 bash -c "$text") >"$work/got" 2>&1
		if [ "$(cat "$work/got")" = "$(cat "$shown")" ]; then
			echo "ok $n - $doc: $text"
		else
			echo "not ok $n - $doc: $text"
			diff "$shown" "$work/got" | head -n 20 | sed 's/^/# /'
		fi
	done
done
if [ $n -lt 8 ]; then
	n=$((n + 1))
	echo "not ok $n - there are examples to run"
fi
echo "1..$n"
