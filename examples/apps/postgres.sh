#!/bin/sh
# SPDX-License-Identifier: MIT
# postgres.sh - what an application expects of PostgreSQL 15. As root: it runs as the user postgres.
#
#	postgres.sh make DIR	a new cluster, with a table
#	postgres.sh insert	inserts three rows, each acknowledged when it is committed
#	postgres.sh check	it starts, and every row that was acknowledged is there
#
# The cluster is the working directory, which belongs to postgres.
bin=/usr/lib/postgresql/15/bin
socket=$(mktemp -d /tmp/outage-pg.XXXXXX)
chown postgres "$socket"
trap 'rm -rf "$socket"' EXIT

pg() {
	runuser -u postgres -- env HOME="$socket" PGHOST="$socket" PATH="$bin:$PATH" "$@"
}
sql() {
	pg psql -qAtX -d postgres -c "$1" 2>&1
}
start() {
	if ! pg pg_ctl -D . -l "$socket/log" -w -t 60 \
		-o "-k $socket -c listen_addresses= -c autovacuum=off -c shared_buffers=1MB" start >/dev/null; then
		echo "outage: unavailable"
		cat "$socket/log"
		exit 1
	fi
}
stop() {
	pg pg_ctl -D . -m immediate -w stop >/dev/null 2>&1
}

case $1 in
make)
	install -d -o postgres -g postgres -m 700 "$2"
	pg initdb -D "$2" -k -A trust -U postgres --no-sync --locale=C -E UTF8 --wal-segsize=1 >/dev/null || exit
	cd "$2" || exit
	start
	sql "CREATE TABLE t (id int PRIMARY KEY)"
	pg pg_ctl -D . -m fast -w stop >/dev/null
	;;
insert)
	start
	for i in 1 2 3; do
		[ "$(sql "INSERT INTO t VALUES ($i) RETURNING id")" = $i ] && echo $i
	done
	stop
	;;
check)
	# A crash right after the start leaves an empty one, and the server says that a person has to
	# remove it.
	[ -s postmaster.pid ] || rm -f postmaster.pid
	start
	there=$(sql "SELECT id FROM t")
	stop
	while read -r id; do
		case "
$there
" in
		*"
$id
"*) ;;
		*)
			echo "outage: rolled-back"
			echo "row $id is gone"
			exit 1
			;;
		esac
	done <"$OUTAGE_ACKED"
	;;
esac
