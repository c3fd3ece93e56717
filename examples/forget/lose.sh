#!/bin/sh
# SPDX-License-Identifier: MIT
# lose.sh - does a program keep its promise when the power goes out?
#
#	lose.sh COMMAND	runs it in a directory that forgets, and shows what is left
#
# COMMAND runs in an empty directory. When it has ended, everything that it did not sync is lost.
set -eu

if [ $# -eq 0 ]; then
	echo "usage: lose.sh COMMAND [ARGUMENT...]" >&2
	exit 2
fi

work=$(mktemp -d)
trap 'outage umount "$work/mnt" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
mkdir "$work/data" "$work/mnt"

outage mount --daemon --log "$work/log" "$work/data" "$work/mnt"
(cd "$work/mnt" && "$@")
echo "unsynced when it ended:"
outage ctl "$work/mnt" report
outage ctl "$work/mnt" clear-cache
echo "left after the power cut:"
ls -l "$work/mnt"
