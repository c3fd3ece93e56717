/* SPDX-License-Identifier: MIT */
/*
 * lmdb.c - what an application expects of LMDB.
 *
 *	lmdb make           an empty environment: making one is nothing that LMDB is careful about
 *	lmdb put [nosync]   three transactions, each acknowledged when it is committed
 *	lmdb check          every one that was acknowledged is there
 *
 * The environment is the working directory.
 */
#include <lmdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PUTS = 3, VALUE = 1500 };

static MDB_env *env;

static void must(int rc)
{
	if (!rc)
		return;
	printf("outage: unavailable\n%s\n", mdb_strerror(rc));
	exit(1);
}

static void open_env(unsigned flags)
{
	must(mdb_env_create(&env));
	must(mdb_env_set_mapsize(env, 1 << 20));
	must(mdb_env_open(env, ".", flags, 0644));
}

static void put(int i)
{
	char value[VALUE];
	MDB_val k = { sizeof(i), &i }, v = { sizeof(value), value };
	MDB_txn *txn;
	MDB_dbi dbi;

	memset(value, 'v', sizeof(value));
	must(mdb_txn_begin(env, NULL, 0, &txn));
	must(mdb_dbi_open(txn, NULL, 0, &dbi));
	must(mdb_put(txn, dbi, &k, &v, 0));
	must(mdb_txn_commit(txn));
	printf("%d\n", i);
	fflush(stdout);
}

static bool has(int i)
{
	MDB_val k = { sizeof(i), &i }, v;
	MDB_txn *txn;
	MDB_dbi dbi;

	must(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	must(mdb_dbi_open(txn, NULL, 0, &dbi));
	int rc = mdb_get(txn, dbi, &k, &v);
	mdb_txn_abort(txn);
	if (rc != MDB_NOTFOUND)
		must(rc);
	return rc == 0;
}

static int check(void)
{
	const char *path = getenv("OUTAGE_ACKED");
	FILE *f = path ? fopen(path, "r") : NULL;
	int i;

	while (f && fscanf(f, "%d\n", &i) == 1)
		if (!has(i)) {
			printf("outage: rolled-back\n%d is gone\n", i);
			return 1;
		}
	return 0;
}

int main(int argc, char **argv)
{
	int status = 0;

	open_env(argc > 2 ? MDB_NOSYNC : 0);
	if (argc > 1 && strcmp(argv[1], "check") == 0)
		status = check();
	else if (argc > 1 && strcmp(argv[1], "put") == 0)
		for (int i = 0; i < PUTS; i++)
			put(i);
	mdb_env_close(env);
	return status;
}
