#!/bin/sh
# SPDX-License-Identifier: MIT
# redis.sh - what an administrator expects of Redis.
#
#	redis.sh acl	sets a password for everyone, and saves it with ACL SAVE
#	redis.sh check-acl	whoever has no password gets nothing, once that was acknowledged
#	redis.sh aof	three SETs, each acknowledged, with an append-only file synced always
#	redis.sh rdb	the same with SAVE after each
#	redis.sh check-aof, check-rdb	what was acknowledged is there
#
# The server's directory is the working directory; for acl, an empty users.acl is there.
# Several checks run at once, and in all of them $$ may be the same.
place=$(mktemp -d) || exit 2
socket=$place/socket
trap 'rm -rf "$place"' EXIT

start() {
	redis-server --port 0 --unixsocket "$socket" --dir "$PWD" --save '' --logfile '' \
		--daemonize no "$@" >/dev/null 2>&1 &
	server=$!
	i=0
	until [ "$(ask PING 2>&1 | cut -c 1-4)" = PONG ] || ask PING 2>&1 | grep -q NOAUTH; do
		i=$((i + 1))
		if [ $i = 500 ] || ! kill -0 "$server" 2>/dev/null; then
			echo "outage: unavailable"
			exit 1
		fi
		sleep 0.01
	done
}
ask() {
	redis-cli -s "$socket" "$@"
}
stop() {
	kill -9 "$server"
	wait "$server" 2>/dev/null || :
}

case $1 in
acl)
	start --aclfile "$PWD/users.acl"
	ask ACL SETUSER default on '>secret' >/dev/null
	[ "$(ask --no-auth-warning -a secret ACL SAVE)" = OK ] && echo saved
	;;
check-acl)
	start --aclfile "$PWD/users.acl"
	if grep -q saved "$OUTAGE_ACKED" && [ "$(ask PING 2>&1)" = PONG ]; then
		stop
		echo "outage: silent-loss"
		echo "everyone may do everything"
		exit 1
	fi
	;;
aof)
	start --appendonly yes --appendfsync always
	for i in 1 2 3; do
		[ "$(ask SET "k$i" v)" = OK ] && echo "k$i"
	done
	;;
rdb)
	start
	for i in 1 2 3; do
		ask SET "k$i" v >/dev/null
		[ "$(ask SAVE)" = OK ] && echo "k$i"
	done
	;;
check-aof | check-rdb)
	if [ "$1" = check-aof ]; then
		start --appendonly yes --appendfsync always
	else
		start
	fi
	while read -r key; do
		[ "$(ask GET "$key")" = v ] || bad=$key
	done <"$OUTAGE_ACKED"
	if [ -n "$bad" ]; then
		stop
		echo "outage: rolled-back"
		echo "$bad is gone"
		exit 1
	fi
	;;
esac
stop
