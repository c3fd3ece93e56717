#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The rooms keep to src/layers.txt, and the check that says so can fail.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1
work=$dir
report() { check "$2" test "$1" -eq 0; } # STATUS TEXT

tools/layers src >"$work/out" 2>&1
report $? "every include is allowed by layers.txt"
[ ! -s "$work/out" ] || sed 's/^/# /' "$work/out"

# A room that reaches up, a library in the wrong room, a room nobody listed.
try() { # FILE INCLUDE TEXT
	rm -rf "$work/src"
	mkdir -p "$work/src/base" "$work/src/core" "$work/src/$(dirname "$1")"
	printf 'base: lib:xxhash.h\ncore: base lib:zstd.h\n' >"$work/src/layers.txt"
	printf '#include %s\n' "$2" >"$work/src/$1"
	! tools/layers "$work/src" >"$work/out" 2>&1 && grep -q "$1" "$work/out"
	report $? "$3"
}
try base/a.c '"core/image.h"' "a room that includes one above it is caught"
try base/a.c '<zstd.h>' "a library in a room that may not see it is caught"
try core/a.c '"image.h"' "an include without its room is caught"
try attic/a.c '<stdio.h>' "a room that is not listed is caught"

mkdir -p "$work/ok/core"
printf 'base:\ncore: base lib:zstd.h\n' >"$work/ok/layers.txt"
printf '#include <zstd.h>\n#include "base/err.h"\n#include <linux/fs.h>\n' >"$work/ok/core/a.c"
tools/layers "$work/ok" >"$work/out" 2>&1
report $? "what is allowed passes"
done_testing
