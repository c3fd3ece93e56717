#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0011-install.sh - `make install` goes below the prefix that is given, whatever the build was configured
# with, and `make uninstall` takes all of it away again. The Makefile is ours, the project a small one
# that installs the same kinds of files, so that the build of this tree is left alone.
# shellcheck source=tests/lib.sh disable=SC2317 # functions are called through check
. "$(dirname "$0")/lib.sh"

requires_tools meson
unset PREFIX DESTDIR MAKEFLAGS MAKEOVERRIDES

mkdir -p 'a project/tools' && cd 'a project' || exit 1
cp "$root/Makefile" .
cp "$root"/tools/configure "$root"/tools/aloud "$root"/tools/uninstall tools/
cat >meson.build <<'END'
project('small')
install_data('outage', install_dir: get_option('bindir'), install_mode: 'rwxr-xr-x')
custom_target('page', output: 'outage.1', command: ['echo', 'page'], capture: true, install: true,
  install_dir: get_option('mandir') / 'man1')
install_data('list', install_dir: get_option('datadir') / 'outage')
install_headers('mark.h', subdir: 'outage')
install_symlink('lazyfs', pointing_to: 'outage', install_dir: get_option('bindir'))
install_symlink('lazyfs', pointing_to: 'list', install_dir: get_option('datadir') / 'outage')
END
printf '#!/bin/sh\n' >outage
touch list mark.h

run_make() { timeout 900 make "$@" >"$dir/out" 2>"$dir/err"; }
files='/bin/lazyfs /bin/outage /include/outage/mark.h /share/man/man1/outage.1 /share/outage/lazyfs /share/outage/list'
# below DIR: what there is, in one line
below() { (cd "$1" 2>/dev/null && find . ! -type d | cut -c 2- | LC_ALL=C sort | paste -sd ' '); }

check 'a build without a prefix' run_make
check 'is installed' run_make install "DESTDIR=$dir/stage"
check 'below /usr/local, behind DESTDIR' [ "$(below "$dir/stage/usr/local")" = "$files" ]
check 'and nowhere else' [ "$(find "$dir/stage" ! -type d | wc -l)" = 6 ]
check 'a prefix is given' run_make install PREFIX=/some/where "DESTDIR=$dir/other"
check 'and is where it goes' [ "$(below "$dir/other/some/where")" = "$files" ]
check 'and nowhere else' [ "$(find "$dir/other" ! -type d | wc -l)" = 6 ]
check 'another one, without DESTDIR' run_make install "PREFIX=$dir/a place"
check 'has them' [ "$(below "$dir/a place")" = "$files" ]
check 'the program runs there' "$dir/a place/bin/lazyfs"
rm "$dir/a place/bin/outage"
check 'without a prefix' run_make install
check 'it is the last one' [ "$(below "$dir/a place")" = "$files" ]
check 'relative names' run_make install PREFIX=here DESTDIR=stage
check 'are of this directory' [ "$(below "stage$PWD/here")" = "$files" ]

touch "$dir/a place/share/outage/mine"
check 'it is removed' run_make uninstall "PREFIX=$dir/a place"
check 'but for what is not ours' [ "$(below "$dir/a place")" = /share/outage/mine ]
check 'a directory of ours that is empty goes' [ ! -e "$dir/a place/include/outage" ]
check 'others stay' [ -d "$dir/a place/include" ]
check 'what is elsewhere stays' [ "$(below "$dir/other/some/where")" = "$files" ]
check 'behind DESTDIR, too' run_make uninstall PREFIX=/some/where "DESTDIR=$dir/other"
check 'nothing is left' [ -z "$(below "$dir/other")" ]
check 'once more is no error' run_make uninstall PREFIX=/some/where "DESTDIR=$dir/other"
cd "$dir" || exit 1

# What `make demo` installs is enough for every command that it and the README show.
mkdir bin
printf '#!/bin/sh\nexit 1\n' >bin/dpkg-query
cp bin/dpkg-query bin/apt-get
chmod +x bin/dpkg-query bin/apt-get
cp "$root/tools/setup" setup
printf '#!/bin/sh\necho 1000\n' >bin/id # as a user, so that it only tells
chmod +x bin/id
told() { ! PATH=$dir/bin:$PATH ./setup build >out 2>err; }
check 'what is missing is told to a user' told
for package in fuse3 liblz4-dev liblzma-dev zlib1g-dev libzstd-dev; do
	check "$package is needed to build or run" grep -qE " $package( |')" err
done
done_testing
