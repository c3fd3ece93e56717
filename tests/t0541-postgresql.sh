#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# PostgreSQL keeps what it acknowledged when the power fails under load, and a page that is torn is mended where
# it writes whole pages to its log, and only there.
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/database-lib.sh
. "$root/tests/database-lib.sh"

pgbin=/usr/lib/postgresql/15/bin
[ -x "$pgbin/initdb" ] || skip_all 'PostgreSQL 15 is not installed'
pg() {
	timeout 900 runuser -u postgres -- env HOME="$dir" PGHOST="$dir/pgsock" PATH="$pgbin:$PATH" "$@"
}
sql() {
	pg psql -qAtX -d postgres -c "$1" 2>&1
}
pg_start() {
	pg pg_ctl -D "$mnt/pg" -l "$dir/pgsock/log" -w -t 900 \
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

done_testing
