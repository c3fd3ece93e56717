# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034,SC2016,SC2317 # dir: lib.sh; the rest: the tests; words for eval
# life-lib.sh - for tests of how long runs of outage test go: what is tested is seedfs, as `server`. Sourced after
# lib.sh.
requires_seedfs
requires_tools python3 pgrep

cp "$seedfs" server # so that its processes are known by their path
mkfs="$dir/server mkfs {disk}"
target() { echo "fuse:$dir/server mount {disk} {mnt} -f${1:+ -o $1}"; } # OPTIONS

sick() { # STATUS ARGUMENTS...: a file system that forgets the names of new files
	local want=$1
	shift
	status "$want" test -t "$(target bug=name-new)" --mkfs "$mkfs" --size 4M -j 2 "$@"
}
# What must be the same, however often it was interrupted.
totals() {
	python3 -c "import json; d = json.load(open('out')); print([d[k] for k in ('workloads',
		'workloads_total', 'crash_states', 'unique_states', 'findings', 'clusters', 'not_kept',
		'suppressed', 'errors')])"
}
done_in() { grep -c '^done ' "$1/progress" 2>/dev/null; } # RUN
no_server() { soon eval '! pgrep -f "$dir/server" >/dev/null'; }
kept() { find "$1/findings" -mindepth 1 -maxdepth 1 -type d | wc -l; } # RUN

bounds=(--bounds seq-1 --sample 90 --seed 3)
# whole_run: a run that is not interrupted is `whole`, with the totals $whole
whole_run() {
	check 'a run that is not interrupted' sick 1 "${bounds[@]}" --keep all -o whole --json
	whole=$(totals)
}
