# SPDX-License-Identifier: MIT
# uml-lib.sh - tests of user-mode Linux as root and as an ordinary user; sourced after guests.sh.
# shellcheck shell=bash disable=SC2034,SC2154,SC2317 # variables for the tests, $dir and $OUTAGE from lib.sh

requires_uml
own_umls
# The ordinary user has a copy of the program, and a directory that he may write to.
export HOME=$dir/home
chmod 755 "$dir"
mkdir -m 777 home nobody
cp "$OUTAGE" prog
printf 'creat foo\nwrite foo 0 8192\nfsync foo\n' >nobody/short
if [ "$(id -u)" = 0 ]; then
	users='root nobody' last=nobody where=nobody
else
	users=self last=self where=.
fi
release=$(linux.uml --version)
has() { command -v "$1" >/dev/null; }

# as USER ARGUMENTS: runs outage as that user, in the user's directory
as() {
	local user=$1
	shift
	case $user in
	nobody) (cd nobody && timeout --kill-after=5 900 setpriv --reuid=65534 --regid=65534 \
		--clear-groups env OUTAGE_CACHE="$HOME" XDG_STATE_HOME="$dir/nobody/state" "$dir/prog" "$@") >out 2>err </dev/null ;;
	*) timeout --kill-after=5 900 "$dir/prog" "$@" >out 2>err </dev/null ;;
	esac
}
# status_as STATUS USER ARGUMENTS
status_as() {
	local want=$1
	shift
	as "$@"
	[ $? -eq "$want" ]
}
# ours [PROGRAM]: prints the processes of this test that run PROGRAM, or a guest's kernel
ours() { pgrep -x "${1:-linux.uml}" | marked; }
