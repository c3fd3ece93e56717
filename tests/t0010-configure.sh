#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0010-configure.sh - a build is configured for the machine as it is now: what was missing when it was
# first configured is found after its package was installed, in any order of commands.
# shellcheck source=tests/lib.sh disable=SC2317 # functions are called through check
. "$(dirname "$0")/lib.sh"

requires_tools meson
configure=$root/tools/configure

# A project that looks for a header and a library, as ours does, and a machine whose list of packages
# this test writes.
mkdir -p bin include 'a project/source' && cd 'a project/source' || exit 1
cat >meson.build <<'END'
project('small', 'c')
cc = meson.get_compiler('c')
found = cc.has_header('small-library.h') and dependency('small-library', required: false).found()
configure_file(output: 'found', configuration: { 'FOUND': found })
END
cat >../../bin/dpkg-query <<END
#!/bin/sh
cat "$dir/packages"
END
chmod +x ../../bin/dpkg-query
export PATH=$dir/bin:$PATH C_INCLUDE_PATH=$dir/include PKG_CONFIG_PATH=$dir/include
echo 'one 1.0' >"$dir/packages"

configured() { timeout 900 "$configure" "$@" >"$dir/out" 2>"$dir/err"; }
found() { grep -q 'define FOUND$' build/found; }
silent() { configured build && [ ! -s "$dir/out" ]; }

check 'a new directory is set up' configured build -Dwerror=true "-Dprefix=$dir/first place"
check 'what is not there is not found' eval '! found'
check 'nothing changed: nothing is done' silent
touch "$dir/include/small-library.h"
printf 'Name: small\nDescription: small\nVersion: 1\n' >"$dir/include/small-library.pc"
echo 'small-library 1.0' >>"$dir/packages"
check 'a package was installed' configured build
check 'it says why it is configured anew' grep -q 'packages have changed' "$dir/out"
check 'what it brought is found' found
check 'and that once' silent
option() { meson introspect --buildoptions build | python3 -c '
import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == sys.argv[1]))' "$1"; }
prefix() { option prefix; }
check 'the options are those of before' [ "$(prefix), $(option werror)" = "$dir/first place, True" ]

check 'a prefix is given' configured build "-Dprefix=$dir/a place"
check 'and taken' [ "$(prefix)" = "$dir/a place" ]
check 'it stays where none is given' configured build
check 'as it was' [ "$(prefix)" = "$dir/a place" ]
check 'until another is given' configured build -Dprefix=/opt/small
check 'which is taken' [ "$(prefix)" = /opt/small ]

cat >>meson.build <<'END'
executable('program', 'program.c')
END
echo 'int main(void) { return 0; }' >program.c
configured build && ninja -C build >"$dir/out" 2>&1
echo 'two 1.0' >>"$dir/packages"
check 'packages that do not concern the build' configured build
ninja -C build >"$dir/out" 2>&1
check 'make nothing anew' grep -q 'no work to do' "$dir/out"

echo 'error("the end")' >>meson.build
check 'a set-up that fails' eval '! configured other'
check 'says why' grep -q 'the end' "$dir/err"
check 'and leaves no directory' [ ! -e other ]
done_testing
