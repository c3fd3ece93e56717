#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage app finds what LevelDB, SQLite, LMDB, Redis and PostgreSQL are known to lose, and nothing where they
# lose nothing.
# takes 30 s
# shellcheck disable=SC2016,SC2317 # commands for other shells; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/app-lib.sh
. "$root/tests/app-lib.sh"

# can_lose: the last put was written before LevelDB's other thread had the table, which holds all that was in the
# old log, in a MANIFEST that was synced. Otherwise the old log was not needed any more, and no crash loses a key.
can_lose() {
	timeout 900 "$OUTAGE" trace show run/trace >calls && awk '
		$4 == "write" && $5 == "000004.log" { put = NR }
		$4 == "fdatasync" && $5 == "000005.ldb" { table = NR }
		$4 == "fdatasync" && $5 ~ /^MANIFEST/ && table && !safe { safe = NR }
		END { exit !(put && (!safe || put < safe)) }' calls
}
if compile leveldb -lleveldb; then
	rm -rf db && mkdir db
	for _ in {1..20}; do
		app db --budget 4000 --findings 1 --run "$dir/leveldb rotate" --check "$dir/leveldb check"
		! can_lose || break
	done
	check "LevelDB: the log that was rotated and not synced is found" \
		grep -q 'write [0-9]* to 000003.log was not ordered before the write [0-9]* to 000004.log: an fsync of 000003.log is missing' out
	check "LevelDB: it is a silent loss" said "silent-loss"
	app db -p minimal --budget 400 --run "$dir/leveldb reopen" --check "$dir/leveldb check"
	check "LevelDB: CURRENT and the old MANIFEST are found" \
		grep -q 'rename [0-9]* of 000002.dbtmp to CURRENT was not ordered before the unlink [0-9]* of MANIFEST-000001: an fsync of the directory . is missing' out
	app db --run "$dir/leveldb synced" --check "$dir/leveldb check"
	check "LevelDB: synced puts lose nothing, on ext4" test $status = 0
else
	skip "LevelDB is not installed"
fi

# sqlite PROFILE JOURNAL SYNC
sqlite() {
	rm -rf db && mkdir db && (cd db && "$dir/sqlite" make "$2") >out
	app db -p "$1" --run "$dir/sqlite insert $2 $3" --check "$dir/sqlite check"
}
if compile sqlite -lsqlite3; then
	sqlite minimal delete full
	check "SQLite: the lost unlink of the journal is found" \
		grep -q "unlink [0-9]* of db-journal was not durable when '0' was acknowledged: an fsync of the directory . is missing" out
	check "SQLite: and nothing else" test "$(grep -c ^found out)" = 1
	sqlite minimal delete extra
	check "SQLite: with synchronous=EXTRA nothing is" test $status = 0
	sqlite ext4-ordered wal full
	check "SQLite: nor with a write-ahead log and synchronous=FULL" test $status = 0
	check "SQLite: mappings are said" said mappings
else
	skip "SQLite is not installed"
fi

if compile lmdb -llmdb; then
	rm -rf db && mkdir db && (cd db && "$dir/lmdb" make)
	app db --run "$dir/lmdb put" --check "$dir/lmdb check"
	check "LMDB: nothing is found" test $status = 0
	app db --run "$dir/lmdb put nosync" --check "$dir/lmdb check" --findings 1
	check "LMDB: with MDB_NOSYNC it is" said "an fsync of data.mdb is missing"
else
	skip "LMDB is not installed"
fi

if command -v redis-server >/dev/null; then
	rm -rf db && mkdir db && : >db/users.acl
	app db -p minimal --run "$apps/redis.sh acl" --check "$apps/redis.sh check-acl"
	check "Redis: ACL SAVE renames what it did not sync" \
		grep -q "write [0-9]* to users.acl.tmp-[0-9-]* was not durable when 'saved' was acknowledged: an fsync of users.acl.tmp" out
	rm -rf db && mkdir db
	app db --run "$apps/redis.sh aof" --check "$apps/redis.sh check-aof"
	check "Redis: an append-only file that is synced always loses nothing" test $status = 0
else
	skip "Redis is not installed"
fi

if [ -x /usr/lib/postgresql/15/bin/initdb ]; then
	"$apps/postgres.sh" make "$dir/pg" >out 2>err
	app pg --budget 60 --run "$apps/postgres.sh insert" --check "$apps/postgres.sh check"
	check "PostgreSQL: nothing is found" test $status = 0
	check "PostgreSQL: and every pattern of operations was tried" grep -q '^\([0-9]*\) of \1 patterns of operations covered' out
else
	skip "PostgreSQL 15 is not installed"
fi

done_testing
