#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real databases lose what they did not sync, and keep what they did. Each loss has a twin that is
# right: the same with a sync, or by a database that knows how.
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

requires_root
requires_fuse
trap 'clean_up; rm -rf "$dir"' EXIT
servers=()

clean_up() {
	local pid

	for pid in "${servers[@]}"; do
		kill -9 "$pid" 2>/dev/null
	done
	cd / || return
	umount -l "$dir/mnt" 2>/dev/null
	wait 2>/dev/null
}

chmod 755 "$dir"
mkdir mnt
mnt=$dir/mnt

gone() {
	! mountpoint -q "$mnt"
}
# begin OPTION...: an empty mount
begin() {
	rm -rf data
	mkdir data
	again "$@"
}
# again OPTION...: what survived, mounted
again() {
	# Out of sight is not yet gone: the server before may still be clearing up.
	soon flock -n data true
	timeout 900 "$OUTAGE" mount --daemon --no-real-sync --allow-other --log log "$@" data mnt >out 2>err ||
		sed 's/^/# /' err
}
ctl() {
	timeout 900 "$OUTAGE" ctl mnt "$@" >out 2>err || sed 's/^/# /' err
}
crash() {
	ctl crash
	soon quietly gone
}
end() {
	timeout 900 "$OUTAGE" umount mnt >out 2>err || sed 's/^/# /' err
}
# stop PID: it has had its chance
stop() {
	kill -9 "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}

# ---- LevelDB ----

leveldb=$helpers/leveldb
count() {
	timeout 900 "$leveldb" count "mnt/$1" "$2" 2>&1
}

test_leveldb() {
	local profile

	for profile in lazyfs ext4-ordered; do
		begin --profile $profile
		timeout 900 "$leveldb" put mnt/db 100 100 >out 2>err
		check "LevelDB, $profile: 100 puts are acknowledged, and the program ends well" grep -q put out
		check "LevelDB, $profile: and all are there" test "$(count db 100)" = "100 late=no"
		end
		begin --profile $profile
		timeout 900 "$leveldb" put mnt/db 100 100 >out 2>err
		ctl clear-cache
		check "LevelDB, $profile: after a power cut none is, and no error is told" \
			test "$(count db 100)" = "0 late=no"
		end
		begin --profile $profile
		timeout 900 "$leveldb" put mnt/db 100 100 sync >out 2>err
		ctl clear-cache
		check "LevelDB, $profile: synced ones are all there" test "$(count db 100)" = "100 late=no"
		end
	done
}

# The writer of tables is held up, so that the power goes out before the memory table is one.
rotate() {
	local writer

	begin --fault 'delay op=fsync file_glob=db/*.ldb delay=60s'
	: >rotate.out # what the run before said is not of this one
	"$leveldb" rotate mnt/db 13 4800 >rotate.out 2>&1 &
	writer=$!
	servers+=("$writer")
	soon quietly grep -q synced rotate.out
	find mnt/db -name '*.log' >out
	cp rotate.out err
	check "LevelDB: 13 puts, and a synced one in a new log" test "$(wc -l <out)" = 2
	[ -z "${1:-}" ] || ctl "$1"
	crash
	stop "$writer"
	again
	check "LevelDB: $2" test "$(count db 13)" = "$3"
	end
}

if [ -x "$leveldb" ]; then
	test_leveldb
	rotate '' "the later, synced one survives, and of the 13 before it none" "0 late=yes"
	rotate sync "if everything is synced, all survive" "13 late=yes"
else
	skip "LevelDB is not installed"
fi

# ---- Redis ----

redis=
redis_start() {
	: >redis.log # not later than it is looked at
	redis-server --port 0 --unixsocket "$dir/redis.sock" --dir "$mnt" --save '' --logfile '' \
		--daemonize no "$@" >>redis.log 2>&1 &
	redis=$!
	servers+=("$redis")
	soon quietly grep -q 'ready to accept\|Bad file format\|FATAL' redis.log
}
ask() {
	timeout 900 redis-cli -s "$dir/redis.sock" "$@" 2>&1
}

# acl SYNC: an administrator sets a password, and saves it
acl() {
	begin --profile lazyfs
	: >mnt/users.acl
	redis_start --aclfile "$mnt/users.acl"
	ask ACL SETUSER default on '>secret' >out
	check "Redis: ACL SAVE is acknowledged" test "$(ask --no-auth-warning -a secret ACL SAVE)" = OK
	check "Redis: the password is needed" grep -q NOAUTH <(ask PING)
	stop $redis
	[ -z "${1:-}" ] || ctl "$1"
	ctl clear-cache
	redis_start --aclfile "$mnt/users.acl"
}

# aof PARTS: of the write of a SET, this half is durable
aof() {
	begin --profile lazyfs
	redis_start --appendonly yes --appendfsync always
	ask SET a 1 >out
	ctl torn-op file=appendonlydir/appendonly.aof.1.incr.aof parts=2 persist="$1"
	ask SET b "$(printf '%0200d' 7)" >out
	soon quietly gone
	stop $redis
	check "Redis: the log has something of the torn write" \
		test "$(stat -c %s data/appendonlydir/appendonly.aof.1.incr.aof)" -gt 100
	again --profile lazyfs
	redis_start --appendonly yes --appendfsync always
}

if command -v redis-server >/dev/null; then
	acl
	check "Redis: after a power cut the file of users is empty" test -e mnt/users.acl -a ! -s mnt/users.acl
	check "Redis: and everybody may do everything" test "$(ask PING)" = PONG
	stop $redis
	end
	acl sync
	check "Redis: if it was synced, the password is still needed" grep -q NOAUTH <(ask PING)
	stop $redis
	end

	aof 1
	check "Redis: if the first half of a write survives, it recovers" test "$(ask GET a)" = 1
	check "Redis: without the torn command" test -z "$(ask GET b)"
	stop $redis
	end
	aof 2
	check "Redis: if only the second does, it does not" grep -q "Bad file format" redis.log
	wait $redis
	check "Redis: and ends with an error" test $? != 0
	end
else
	skip "Redis is not installed"
fi

# ---- PostgreSQL ----

pgbin=/usr/lib/postgresql/15/bin
pg() {
	timeout 900 runuser -u postgres -- env HOME="$dir" PGHOST="$dir/pgsock" PATH="$pgbin:$PATH" "$@"
}
sql() {
	pg psql -qAtX -d postgres -c "$1" 2>&1
}
pg_start() {
	pg pg_ctl -D "$mnt/pg" -l "$dir/pgsock/log" -w -t 60 \
		-o "-k $dir/pgsock -c listen_addresses= $*" start >out 2>err
	status=$?
	[ $status != 0 ] || servers+=("$(head -n 1 mnt/pg/postmaster.pid)")
}
# After a crash: who was served by it must be gone before it is mounted again.
pg_kill() {
	local pid

	pid=${servers[-1]}
	kill -QUIT "$pid" 2>/dev/null
	soon quietly sh -c "! kill -0 $pid" || kill -9 "$pid"
}
pg_begin() {
	rm -rf data
	install -d -o postgres -g postgres data
	cp -a pgbase data/pg
	again
}
# All ids that were acknowledged are there.
acknowledged() {
	sql 'SELECT id FROM acked' | sort >there
	[ -s acked ] && [ -z "$(sort acked | comm -23 - there)" ]
}

# writer: inserts one row after the other, and writes down each that was acknowledged
writer() {
	local i

	for ((i = 0; i < 100000; i++)); do
		echo "INSERT INTO acked VALUES ($i) RETURNING id;"
	done | pg psql -qAtX -d postgres 2>/dev/null | grep -v '^$' >acked
}

survives() {
	local bench inserts

	pg_begin
	pg_start
	check "PostgreSQL starts" test $status = 0
	sql 'CREATE TABLE acked (id int PRIMARY KEY)' >out
	pg pgbench -i -q -s 1 postgres >out 2>&1
	pg pgbench -c 4 -j 2 -T 900 postgres >bench.out 2>&1 &
	bench=$!
	writer &
	inserts=$!
	soon quietly test -s acked
	soon quietly eval '[ "$(sql "SELECT count(*) FROM pgbench_history")" -gt 100 ]'
	crash
	pg_kill
	wait $bench $inserts 2>/dev/null
	echo "# $(wc -l <acked) rows were acknowledged"
	again
	pg_start
	check "PostgreSQL: after a crash under load it starts again" test $status = 0
	check "PostgreSQL: every row that was acknowledged is there" acknowledged
	check "PostgreSQL: the balances agree" test "$(sql 'SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(bbalance) FROM pgbench_branches) AND (SELECT sum(delta) FROM pgbench_history) = (SELECT sum(tbalance) FROM pgbench_tellers)')" = t
	pg pg_ctl -D "$mnt/pg" -m fast -w stop >out 2>err
	pg pg_checksums --check -D "$mnt/pg" >out 2>err
	check "PostgreSQL: and no page is damaged" test $? = 0
	end
}

# torn FULL_PAGE_WRITES: a page of a table is torn while a checkpoint writes it
torn() {
	local path

	pg_begin
	pg_start "-c full_page_writes=$1 -c checkpoint_timeout=1h -c bgwriter_lru_maxpages=0 -c autovacuum=off"
	sql "CREATE TABLE t AS SELECT g AS id, repeat('x', 100) AS v FROM generate_series(1, 500) g" >out
	path=$(sql "SELECT pg_relation_filepath('t')")
	sql CHECKPOINT >out
	sql "UPDATE t SET v = repeat('y', 100)" >out
	ctl torn-op file="pg/$path" parts=2 persist=1
	sql CHECKPOINT >out
	soon quietly gone
	check "PostgreSQL: a checkpoint tears a page" gone
	pg_kill
	: >pgsock/log
	again
	pg_start
}

if [ -x "$pgbin/initdb" ]; then
	mkdir pgsock
	chown postgres:postgres pgsock
	install -d -o postgres -g postgres -m 700 pgbase
	pg initdb -D "$dir/pgbase" -k -A trust -U postgres --no-sync --locale=C -E UTF8 >out 2>&1
	survives
	torn on
	check "PostgreSQL: with whole pages in its log it starts again" test $status = 0
	check "PostgreSQL: and has what was committed" \
		test "$(sql "SELECT count(*) FROM t WHERE v = repeat('y', 100)")" = 500
	pg pg_ctl -D "$mnt/pg" -m immediate -w stop >out 2>err
	end
	torn off
	check "PostgreSQL: without them it cannot" test $status != 0
	check "PostgreSQL: because of the torn page" grep -q 'invalid page in block' pgsock/log
	end
else
	skip "PostgreSQL 15 is not installed"
fi

done_testing
