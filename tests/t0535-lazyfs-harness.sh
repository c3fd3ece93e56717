#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What harnesses do with LazyFS works, and wrong command lines are refused.
# shellcheck disable=SC2317,SC2016 # functions are called through check, words expanded by eval
export TMPDIR=/var/tmp
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lazyfs-lib.sh
. "$root/tests/lazyfs-lib.sh"

# ---- as harnesses do it ----

# etcd: in the foreground, with the log on standard output, as a child that is told to end
cat >config.toml <<'EOF'
[faults]
fifo_path="/tmp/sock.fifo"
[cache]
apply_eviction=false
[cache.simple]
custom_size="1gb"
blocks_per_page=1
[filesystem]
log_all_operations=false
EOF
lazyfs $mnt --config-path config.toml -o modules=subdir -o subdir=$data -f >etcd.log 2>&1 &
server=$!
check "etcd: it says when it is ready" soon quietly grep -q "waiting for fault commands" etcd.log
echo x >$mnt/etcd
python3 -c 'open("/tmp/sock.fifo", "w").write("lazyfs::clear-cache\n")'
check "etcd: it says when the cache is cleared" soon quietly grep -q "cache is cleared" etcd.log
check "etcd: and it is" test ! -s $mnt/etcd
kill -TERM $server
wait $server
check "etcd: a signal ends it well" test $? = 0
check "etcd: and nothing is mounted" gone

# Jepsen: fusermount -uz, and then all is removed at once
mkdir -p /tmp/db.lazyfs/data
cat >/tmp/db.lazyfs/config <<'EOF'
[faults]
fifo_path="/tmp/db.lazyfs/fifo"

[cache]
apply_eviction=false

[cache.simple]
custom_size="0.5GB"
blocks_per_page=1
EOF
(cd /tmp/db.lazyfs && exec lazyfs $mnt --config-path config -o allow_other -o modules=subdir \
	-o subdir=/tmp/db.lazyfs/data -f) >jepsen.log 2>&1 &
server=$!
check "Jepsen: findmnt shows the name" soon quietly serves
soon quietly test -p /tmp/db.lazyfs/fifo
echo x >$mnt/jepsen
timeout 900 sh -c 'echo lazyfs::clear-cache >/tmp/db.lazyfs/fifo'
check "Jepsen: a command is read" soon quietly grep -q "cache is cleared" jepsen.log
timeout 900 fusermount -uz $mnt
rm -rf /tmp/db.lazyfs
check "Jepsen: all can be removed at once" test ! -e /tmp/db.lazyfs
check "Jepsen: the server ends" timeout 900 tail --pid=$server -f /dev/null
wait $server

# A FIFO that the harness made stays.
mkfifo /tmp/sock.fifo
lazyfs $mnt --config-path config.toml -o modules=subdir,subdir=$data
check "a FIFO that is there is used" soon quietly serves
stop
check "and stays" test -p /tmp/sock.fifo

# ---- wrong command lines ----

wrong() { exits 2 lazyfs "$@" && one_line && gone; }
check "without ROOT it is refused" wrong $mnt --config-path config.toml -f
check "without a directory, too" wrong --config-path config.toml -o subdir=$data
check "without a configuration, too" wrong $mnt -o subdir=$data
check "an unknown option, too" wrong $mnt -x --config-path config.toml -o subdir=$data
check "a module that is not there, too" wrong $mnt --config-path config.toml -o modules=iconv -o subdir=$data
timeout 900 lazyfs --help >out 2>err
check "--help helps" grep -q subdir out

done_testing
