# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154,SC2016 # $dir is of lib.sh; for sed
# finding-lib.sh - for tests of outage export: findings of any kind, made of one real one, and what stands
# for the suite of xfstests.

# An image that is mounted by a test must not be there when its directory is removed.
trap '! mountpoint -q "$dir/mnt" || umount -l "$dir/mnt"; [ -z "$dir" ] || rm -rf "$dir"' EXIT

# real_finding: one of ext4 that never flushes. It is `template`; `healthy` is an image on which the same
# was done as in its workload, by `program`.
real_finding() {
	mkdir mnt x
	cat >workload <<-'END'
		workload kinds
		mkdir D
		write foo 0 16
		write baz 0 16
		creat bar
		symlink x D/l
		setxattr foo user.a bc
		mknod nod char 259
		fsync foo
	END
	timeout 900 "$OUTAGE" test -t ext4,barrier=0 --crash reorder --budget 10 -j 1 -o run workload >out 2>err
	template=run/findings/0-0
	[ -s $template/expected ] && timeout 900 "$OUTAGE" export $template -o x/template >out 2>err &&
		gcc -o program x/template/workload.c && new_image healthy
}

# new_image FILE MKE2FS-OPTIONS...
new_image() {
	local file=$1
	shift
	rm -f "$file" && truncate -s 16M "$file" && mke2fs -q -F -t ext4 -b 4096 "$@" "$file" &&
		mount -o loop "$file" mnt && ./program mnt >/dev/null && umount mnt
}

# set_key NAME KEY VALUE: in the case of that finding, which is made if it is not there
set_key() {
	[ -d "run/findings/$1" ] || cp -r "$template" "run/findings/$1"
	sed -i "/^$2 /d" "run/findings/$1/case"
	echo "$2 $3" >>"run/findings/$1/case"
}

# a_case NAME KIND PATH WORDS [SED]: the finding, as one of that kind, exported to x/NAME; SED makes of what
# was expected what was seen. The image, whose path is then in `img`, is the healthy one.
kinds=
a_case() {
	local of=run/findings/$1
	img=$dir/x/$1/crash.img
	kinds+=" $2"
	[ -d "$of" ] || cp -r "$template" "$of"
	printf '%s\t%s\t%s\tfsync foo (operation 7) had returned\n' "$2" "$3" "$4" >"$of/problems"
	sed "${5:-}" "$of/expected" >"$of/seen"
	timeout 900 "$OUTAGE" export "$of" -o "x/$1" >out 2>err && { [ ! -e "$img" ] || cp healthy "$img"; }
}

# every_kind: there was a case of each
every_kind() {
	local kind
	sed -n 's/^FINDING([A-Z_]*, "\([a-z-]*\)".*/\1/p' "$root/src/check/finding.def" >every
	while read -r kind; do
		case " $kinds " in *" $kind "*) ;; *) echo "# $kind was not tried"; return 1 ;; esac
	done <every
	[ -s every ]
}

# Problems of paths: KIND|PATH|WORDS|SED|COMMANDS. The last make the problem, in the directory.
# shellcheck disable=SC2034 # used by the tests
path_problems='missing|foo|foo: is missing|/^file foo/,/xattr/d|rm foo
lost|foo|there is neither foo nor old|/^file foo/,/xattr/d|rm foo
both-places|foo|one file is at foo and foo2|$a file foo2 mode=0644 uid=0 gid=0 nlink=1 size=0|touch foo2
back|gone|gone: is back|$a file gone mode=0644 uid=0 gid=0 nlink=1 size=0|touch gone
never-was|new|new: never was|$a file new mode=0644 uid=0 gid=0 nlink=1 size=0|touch new
type|D|D: is a fifo|s/^dir D.*/fifo D mode=0644 uid=0 gid=0 nlink=1/;/^symlink/d|rm -r D; mkfifo D
size|bar|bar: size is 5|s/^\(file bar.*\) size=0/\1 size=5 hash=00000000000000000000000000000000/|truncate -s 5 bar
content|foo|foo: has the bytes of baz|/^file baz/{h;s/baz/foo/;p;g};/^file foo/d|cat baz >foo
mode|foo|foo: mode is 0640|s/^\(file foo\) mode=0644/\1 mode=0640/|chmod 640 foo
owner|foo|foo: owner is 7|s/^\(file foo.*\) uid=0 gid=0/\1 uid=7 gid=8/|chown 7:8 foo
xattr|foo|foo: user.a is zz|s/user.a "bc"/user.a "zz"/|setfattr -n user.a -v zz foo
target|D/l|D/l: leads to y|s/target="x"/target="y"/|ln -sfn y D/l
rdev|nod|nod: is 1:5|s/rdev=1:3/rdev=1:5/|rm nod; mknod -m 644 nod c 1 5
blocks|foo|foo: 80 blocks|s/^tree 2$/tree 2 blocks/;/^symlink/d;s/ size=16/& blocks=80/;s/ size=0/& blocks=0/|fallocate -n -l 40960 foo'

# loops: how many devices are of this test
loops() { losetup -l -n -O NAME,BACK-FILE | grep -c "$dir"; }
of_kind() { # RUN KIND: the first finding with a problem of that kind
	local f
	for f in $(find "$1/findings" -name problems | sort -V); do
		if grep -q "^$2	" "$f"; then
			dirname "$f"
			return
		fi
	done
}
reproduces() { # DIR STATUS
	timeout 900 "$1/reproduce.sh" >out 2>err
	test $? -eq "$2"
}

# ---- xfstests ----

# make_suite: what a test of the suite calls, in the directory suite. The power does not fail: what a crash
# does is in DAMAGE, and the file system is the directory scratch.
make_suite() {
	mkdir -p suite/common scratch
	for part in preamble filter attr reflink; do
		: >"suite/common/$part"
	done
	cat >suite/common/dmflakey <<-'END'
		tmp=$PWD/tmp
		seqres=$PWD/seqres
		SCRATCH_DEV=none
		FLAKEY_DEV=/dev/none
		XFS_IO_PROG=xfs_io
		SETFATTR_PROG=setfattr
		GETFATTR_PROG=getfattr
		echo 'QA output created by NNN'
		_begin_fstest() { :; }
		_require_scratch() { :; }
		_require_dm_target() { :; }
		_require_attrs() { :; }
		_require_mknod() { :; }
		_require_symlinks() { :; }
		_scratch_mkfs() { rm -rf "${SCRATCH_MNT:?}"/*; }
		_require_metadata_journaling() { :; }
		_init_flakey() { :; }
		_mount_flakey() { :; }
		_unmount_flakey() { :; }
		_cleanup_flakey() { :; }
		_check_scratch_fs() { [ ! -e "$SCRATCH_MNT/wrong" ]; }
		_flakey_drop_and_remount() { (cd "$SCRATCH_MNT" && eval "$DAMAGE"); }
		_notrun() { echo "not run: $1"; exit 2; }
		_fail() { echo "$1"; exit 1; }
	END
}

# in_suite DIR [DAMAGE]: runs the exported test. 0: its output is as it should be; 2: it is not run; else 1
in_suite() {
	rm -rf suite/tmp.* suite/seqres.full
	sed 's/^_begin_fstest/# &/' "$1/generic-NNN" >suite/generic-NNN
	(cd suite && DAMAGE=${2:-:} SCRATCH_MNT=$dir/scratch bash ./generic-NNN) >out 2>err
	[ $? != 2 ] || return 2
	diff out "$1/generic-NNN.out" >/dev/null
}
