#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every fuzz target gets a short run from seeds that are valid input. FUZZ_SECONDS makes it longer.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$(dirname "$0")/.." || exit 1

if [ -z "${OUTAGE_FUZZ:-}" ] || [ ! -d "$OUTAGE_FUZZ/tests/fuzz" ]; then
	echo "1..0 # SKIP the fuzz targets are not built (make fuzz)"
	exit 0
fi
seconds=${FUZZ_SECONDS:-8}
outage=${OUTAGE:-build/outage}

n=0
for source in tests/fuzz/fuzz_*.c; do
	name=$(basename "$source" .c)
	n=$((n + 1))
	mkdir -p "$work/$name"
	case $name in
	fuzz_workload) timeout 900 "$outage" gen --bounds seq-2 --sample 20 |
		split -l 8 - "$work/$name/seed" ;;
	fuzz_bounds) for set in seq-1 pm-seq-2; do
		timeout 900 "$outage" gen --show $set >"$work/$name/$set"
	done ;;
	*) cp tests/fuzz/seeds/"${name#fuzz_}"/* "$work/$name" ;;
	esac
	if [ -z "$(ls "$work/$name")" ]; then
		echo "not ok $n - $name has no seeds"
		continue
	fi
	if timeout $((seconds + 900)) "$OUTAGE_FUZZ/tests/fuzz/$name" -max_total_time="$seconds" \
		-timeout=100 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \
		-artifact_prefix="$work/" "$work/$name" >"$work/$name.log" 2>&1; then
		echo "ok $n - $name: $(grep -o 'number_of_executed_units: *[0-9]*' "$work/$name.log" |
			grep -o '[0-9]*$') inputs in $seconds s"
	else
		echo "not ok $n - $name"
		tail -n 30 "$work/$name.log" | sed 's/^/# /'
	fi
done
echo "1..$n"
