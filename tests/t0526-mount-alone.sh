#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A mount that root has for itself, where the kernel does not look who may do what: everything is
# allowed and refused as in a plain directory, and as where the kernel looks; with fewer requests.
# shellcheck source=tests/lib.sh disable=SC2016,SC2317 # expanded by eval, called through check
. "$(dirname "$0")/lib.sh"

requires_root
requires_fuse
own_mounts
trap 'timeout 60 umount -l "$dir/mnt" "$dir/umnt" 2>/dev/null; rm -rf "$dir"' EXIT
mkdir data mnt plain
for_everybody


# What root is told about rights, a line each, in the directory $1.
cat >rights.py <<'END'
import os, struct, subprocess, sys

os.chdir(sys.argv[1])
os.umask(0o22)

def say(what, *result):
    print(what + ":", *result)

def tried(what, call, *args, **named):
    try:
        result = call(*args, **named)
        if what.startswith("open"):
            os.close(result)
            result = None
        say(what, result)
    except OSError as e:
        say(what, os.strerror(e.errno))

def make(path, mode=0o644, text="x"):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)

def look(what, path):
    st = os.lstat(path)
    say(what, oct(st.st_mode), st.st_uid, st.st_gid)

# who may do what
os.mkdir("d")
for mode in (0, 0o644, 0o100, 0o001, 0o755):
    make("d/f%o" % mode, mode, "#!/bin/sh\nexit 7\n")
    for name, how in (("r", os.R_OK), ("w", os.W_OK), ("x", os.X_OK), ("f", os.F_OK)):
        tried("access %o %s" % (mode, name), os.access, "d/f%o" % mode, how)
    tried("open %o" % mode, os.open, "d/f%o" % mode, os.O_RDWR)
    tried("exec %o" % mode, subprocess.call, ["./d/f%o" % mode])
os.mkdir("d/shut", 0)
for how in (os.R_OK, os.W_OK, os.X_OK):
    tried("access of a directory", os.access, "d/shut", how)
make("d/shut/in")
tried("chdir", os.chdir, "d/shut")
tried("listed", lambda: sorted(os.listdir(".")))
os.chdir("../..")
tried("access of nothing", os.access, "d/none", os.F_OK)

# owners, modes, times
make("suid", 0o6755)
os.chown("suid", 65534, 65534)
look("chown takes the bits", "suid")
os.chmod("suid", 0o6755)
look("chmod gives them", "suid")
with open("suid", "a") as f:
    f.write("y")
look("root's write leaves them", "suid")
os.truncate("suid", 1)
look("and shortening", "suid")
os.utime("suid", (5, 6))
say("times of another's file", os.stat("suid").st_mtime)
os.chmod("suid", 0o2644)
look("a bit without a meaning", "suid")

# directories with special bits
os.mkdir("sticky")
os.chmod("sticky", 0o1777)
os.chown("sticky", 65533, 65533)
make("sticky/other")
os.chown("sticky/other", 65534, 65534)
tried("rename in a sticky directory", os.rename, "sticky/other", "sticky/another")
tried("unlink in a sticky directory", os.unlink, "sticky/another")
os.mkdir("group")
os.chown("group", 0, 65534)
os.chmod("group", 0o2755)
make("group/file")
os.mkdir("group/sub")
look("the group of a file", "group/file")
look("the group of a directory", "group/sub")
os.umask(0o77)
os.close(os.open("masked", os.O_CREAT | os.O_WRONLY, 0o666))
look("the mask", "masked")
os.umask(0o22)

# access control lists: tag, rights, number
def acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)

NONE = 0xffffffff
wide = acl((1, 6, NONE), (2, 7, 65534), (4, 4, NONE), (16, 7, NONE), (32, 4, NONE))
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
make("list")
look("before a list", "list")
try:
    os.setxattr("list", ACCESS, wide)
except OSError:
    say("no lists here")
    sys.exit()
look("a list shows in the mode", "list")
os.chmod("list", 0o640)
look("the mode in the list", "list")
say("the list", os.getxattr("list", ACCESS).hex())
os.removexattr("list", ACCESS)
look("without it", "list")
os.mkdir("default")
os.setxattr("default", DEFAULT, wide)
look("a default shows nowhere", "default")
os.umask(0o77)
os.close(os.open("default/file", os.O_CREAT | os.O_WRONLY, 0o666))
os.mkdir("default/sub")
look("a default comes before the mask", "default/file")
look("also for a directory", "default/sub")
say("which has it, too", os.getxattr("default/sub", DEFAULT).hex())
END

# as_plain OPTION...: a mount with these tells the same, and so does ROOT, of which it is
as_plain() {
	rm -rf data
	mkdir data
	outage mount --daemon --no-real-sync --log log "$@" data mnt || return
	timeout 900 python3 rights.py mnt >rights.mnt 2>err
	[ "$status" = 0 ] && diff rights.plain rights.mnt >&2
}

check "a plain directory tells who may do what" eval 'timeout 900 python3 rights.py plain >rights.plain'
check "which is something" grep -q "access 644 x: False" rights.plain
check "root's own mount tells the same" as_plain
timeout 900 "${as_user[@]}" ls mnt >out 2>err
check "and nobody else comes in" grep -q "Permission denied" err
outage umount mnt
check "it ends" test $status = 0
check "so does one where the kernel looks" as_plain -o default_permissions
outage umount mnt
check "and one that lets others in" as_plain --allow-other
timeout 900 "${as_user[@]}" cat mnt/d/f0 >out 2>err
check "who may not read what is not his" grep -q "Permission denied" err
outage umount mnt

# ---- what a power cut takes back ----

if grep -q "no lists here" rights.plain; then
	skip "there are no access control lists here"
else
	rm -rf data
	mkdir data
	outage mount --daemon --no-real-sync --log log --profile minimal data mnt
	cat >list.py <<-'END'
		import os, struct
		entries = (1, 6, 0xffffffff), (2, 7, 65534), (4, 4, 0xffffffff), (16, 7, 0xffffffff), (32, 4, 0xffffffff)
		os.stat("mnt/a")
		os.setxattr("mnt/a", "system.posix_acl_access",
		            struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries))
	END
	echo x >mnt/a
	chmod 644 mnt/a
	outage ctl mnt sync
	timeout 900 python3 list.py
	check "a list changes the mode at once" test "$(stat -c %a mnt/a)" = 674
	outage ctl mnt clear-cache
	check "and a power cut brings the old one back" test "$(stat -c %a mnt/a)" = 644
	outage umount mnt
fi

# ---- requests ----

# asked OPTION...: how often the kernel asks for attributes while names are made and removed
asked() {
	local i

	rm -rf data
	mkdir data
	outage mount --daemon --no-real-sync --log log --trace trace --trace-reads "$@" data mnt
	mkdir mnt/d
	for ((i = 0; i < 20; i++)); do : >"mnt/d/$i"; done
	for ((i = 0; i < 20; i++)); do mv "mnt/d/$i" "mnt/d/x$i"; done
	rm mnt/d/x*
	outage umount mnt
	outage trace show trace
	grep -c getattr out
}
check "where the kernel looks, it asks after every change" test "$(asked -o default_permissions)" -ge 40
check "for root alone it does not" test "$(asked)" -lt 20
check "and the trace has the changes" test "$(grep -c ' unlink ' out)" = 20

# ---- a user's file that he may write and not read ----

rm -rf data umnt
mkdir data umnt
chown 65534:65534 data umnt
user=(timeout 900 "${as_user[@]}")
"${user[@]}" "$OUTAGE" mount --daemon --no-real-sync --log /dev/null data umnt >out 2>err
check "a user mounts" test $? = 0
"${user[@]}" sh -c 'printf "hello world" >umnt/f && chmod 200 umnt/f'
"${user[@]}" "$OUTAGE" ctl umnt sync >out 2>err
"${user[@]}" "$OUTAGE" umount umnt >out 2>err
"${user[@]}" "$OUTAGE" mount --daemon --no-real-sync --log /dev/null data umnt >out 2>err
"${user[@]}" sh -c 'printf XX | dd of=umnt/f bs=1 seek=2 conv=notrunc,fsync status=none' >out 2>err
check "and writes a part of a file that he may not read" test $? = 0
check "whose mode stays" test "$("${user[@]}" stat -c %a umnt/f)" = 200
"${user[@]}" cat umnt/f >out 2>err
check "and which he still may not read" grep -q "Permission denied" err
"${user[@]}" "$OUTAGE" umount umnt >out 2>err
check "the rest is as it was" test "$(cat data/f)" = "heXXo world"
check "also its mode in ROOT" test "$(stat -c %a data/f)" = 200

# ---- many removals ----

rm -rf data
mkdir data
few_files 300 timeout 900 "$OUTAGE" mount --daemon --no-real-sync --log log data mnt
timeout 900 python3 -c 'import os
for i in range(3000):
    os.close(os.open("mnt/%d" % i, os.O_CREAT | os.O_WRONLY))'
outage ctl mnt sync
timeout 900 python3 -c 'import os
for i in range(3000):
    os.unlink("mnt/%d" % i)'
check "what is removed is in ROOT until that is durable" test "$(find data -type f | wc -l)" = 3000
check "which has nothing else" test ! -e data/.outage-stash
outage ctl mnt sync
check "more than could be open becomes durable" test $status = 0
check "and nothing of it is left" test "$(find data -type f | wc -l)" = 0
outage umount mnt
check "which ends" test $status = 0
check "with an empty ROOT" test -z "$(ls -A data)"

done_testing
