# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034,SC2317 # dir, root: lib.sh; the rest: the tests
# app-lib.sh - for tests of outage app, and of programs in examples/apps. Sourced after lib.sh.
requires_namespaces
requires_root
requires_fuse
apps=$root/examples/apps
own_mounts
for_everybody

# app DIR OPTION...: one run, kept in run; its status is in $status. The usual budget takes minutes.
app() {
	rm -rf run
	run "$OUTAGE" app -o run --budget 1000 "${@:2}" -- "$1"
}
# said_like TEXT: in out, N being any number: when a file is closed is seen late, so that numbers vary
said_like() { sed 's/ [0-9][0-9]* \(of\|to\|and\) / N \1 /g' out | grep -qF -- "$1"; }
# compile NAME [LIBRARY...]: a program of the examples
compile() { cc -Wall -o "$1" "$apps/$1.c" "${@:2}" >out 2>&1; }
# fresh: the directory `data`, with settings
fresh() {
	rm -rf data
	mkdir data
	echo old >data/settings
}
