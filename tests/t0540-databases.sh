#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real databases lose what they did not sync, and keep what they did. Each loss has a twin that is
# right: the same with a sync, or by a database that knows how.
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/database-lib.sh
. "$root/tests/database-lib.sh"

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

done_testing
