# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # root, dir, build: lib.sh
# requires.sh - what a test cannot do without: where that is missing the test is skipped, and says what it
# is. Sourced by lib.sh.

# skip_all WHY: nothing of this test can be done here
skip_all() {
	echo "1..0 # SKIP $1"
	exit 77
}

# requires_root [WHY]
requires_root() { [ "$(id -u)" = 0 ] || skip_all "this needs root${1:+: $1}"; }

# requires_fuse: who runs the test can be a FUSE server
requires_fuse() {
	[ -c /dev/fuse ] || skip_all '/dev/fuse is not there'
	{ [ -r /dev/fuse ] && [ -w /dev/fuse ]; } || skip_all '/dev/fuse may not be opened'
}

# requires_tools TOOL[:PACKAGE]...: programs of others
requires_tools() {
	local tool
	for tool; do
		command -v "${tool%:*}" >/dev/null && continue
		case $tool in
		*:*) skip_all "${tool%:*} is not there (apt-get install ${tool#*:})" ;;
		*) skip_all "$tool is not there" ;;
		esac
	done
}

# requires_built FILE...: programs of ours, some of which are not built everywhere
requires_built() {
	local file
	for file; do
		[ -x "$file" ] || skip_all "$file is not there"
	done
}

# requires_seedfs: the file system with bugs, served by root
requires_seedfs() {
	requires_root
	requires_fuse
	requires_built "$seedfs"
}

# requires_mounts: the test mounts file systems; where doctor says that cannot be done, it is skipped.
# A machine on which it should work, and does not, is a failure and no reason to skip.
requires_mounts() {
	requires_root 'it mounts file systems'
	timeout 900 "$OUTAGE" doctor >out 2>err || skip_all "$(grep -m 1 '^missing' out)"
}

# requires_namespaces: the test runs commands in a mount namespace of their own, for which an ordinary user
# needs a user namespace. In a chroot the kernel makes none, and a sysctl may forbid them.
has_namespaces() { [ "$(id -u)" = 0 ] || unshare -Um true 2>/dev/null; }
requires_namespaces() { has_namespaces || skip_all 'an ordinary user gets no user namespace here'; }

# own_mounts: the test goes on, from its beginning, in a mount namespace of its own, where every user may
# open /dev/fuse. udev sees to that on most machines; on one without it the kernel's mode is 0600. For
# root; another user must find a machine that lets him.
own_mounts() {
	if [ "${OUTAGE_TEST_MOUNTS:-}" != "$(basename "$0")" ]; then
		unshare -m --propagation private true 2>/dev/null || skip_all 'no mount namespace can be made here'
		cd / && rm -rf "$dir"
		OUTAGE_TEST_MOUNTS=$(basename "$0") exec unshare -m --propagation private "$root/tests/$(basename "$0")"
	fi
	if [ -c /dev/fuse ] && [ "$(stat -c %a /dev/fuse)" != 666 ]; then
		mknod -m 666 "$dir/.fuse" c 10 229 && mount --bind "$dir/.fuse" /dev/fuse
	fi
}
