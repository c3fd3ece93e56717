/* SPDX-License-Identifier: MIT */
/*
 * leveldb.c - what an application expects of LevelDB.
 *
 *	leveldb rotate   13 unsynced puts, which fill the log; then a synced one, in a new log
 *	leveldb reopen   opens a database that is there, and closes it
 *	leveldb synced   puts, each of them synced and acknowledged
 *	leveldb check    opens it: each key that was acknowledged is there, and if the last one is,
 *	                 which was synced, so are all that were put before it
 *
 * The database is the working directory.
 */
#include <leveldb/c.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PUTS = 13, VALUE = 4800, WRITE_BUFFER = 64 << 10 };

static leveldb_t *db;

static void must(char *why)
{
	if (!why)
		return;
	printf("outage: unavailable\n%s\n", why);
	exit(1);
}

static void open_db(void)
{
	leveldb_options_t *o = leveldb_options_create();
	char *why = NULL;

	leveldb_options_set_create_if_missing(o, 1);
	leveldb_options_set_write_buffer_size(o, WRITE_BUFFER);
	leveldb_options_set_compression(o, leveldb_no_compression);
	db = leveldb_open(o, ".", &why);
	must(why);
	leveldb_options_destroy(o);
}

static const char *key_of(int i)
{
	static char key[32];

	snprintf(key, sizeof(key), "key-%02d", i);
	return key;
}

static void put(int i, bool sync)
{
	leveldb_writeoptions_t *o = leveldb_writeoptions_create();
	char value[VALUE], *why = NULL;

	memset(value, 'v', sizeof(value));
	leveldb_writeoptions_set_sync(o, sync);
	leveldb_put(db, o, key_of(i), strlen(key_of(i)), value, sizeof(value), &why);
	must(why);
	leveldb_writeoptions_destroy(o);
	if (!sync)
		return;
	printf("%s\n", key_of(i));
	fflush(stdout);
}

static bool has(int i)
{
	leveldb_readoptions_t *o = leveldb_readoptions_create();
	char *why = NULL, *value;
	size_t len;

	leveldb_readoptions_set_verify_checksums(o, 1);
	value = leveldb_get(db, o, key_of(i), strlen(key_of(i)), &len, &why);
	must(why);
	leveldb_readoptions_destroy(o);
	free(value);
	return value != NULL;
}

static int acknowledged(void)
{
	const char *path = getenv("OUTAGE_ACKED");
	FILE *f = path ? fopen(path, "r") : NULL;
	int n = -1, i;

	while (f && fscanf(f, "key-%d\n", &i) == 1)
		n = i;
	if (f)
		fclose(f);
	return n;
}

static int check(void)
{
	int acked = acknowledged();

	if (acked >= 0 && !has(acked)) {
		printf("outage: rolled-back\n%s was acknowledged\n", key_of(acked));
		return 1;
	}
	for (int i = 0; i < PUTS && has(PUTS); i++)
		if (!has(i)) {
			printf("outage: silent-loss\n%s is gone, and a later one is there\n",
			       key_of(i));
			return 1;
		}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int status = 0;

	open_db();
	if (strcmp(what, "rotate") == 0) {
		for (int i = 0; i < PUTS; i++)
			put(i, false);
		put(PUTS, true);
	} else if (strcmp(what, "synced") == 0) {
		for (int i = 0; i < 4; i++)
			put(i, true);
	} else if (strcmp(what, "check") == 0) {
		status = check();
	}
	leveldb_close(db);
	return status;
}
