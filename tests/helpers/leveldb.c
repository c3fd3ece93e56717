/* SPDX-License-Identifier: MIT */
/*
 * leveldb.c - what an application does with LevelDB, for the tests of losses.
 *
 *	leveldb put DB N SIZE [sync]	puts N keys with values of SIZE bytes, closes, and ends
 *	leveldb rotate DB N SIZE	puts N keys unsynced and then "late" synced, in a new log if
 *					N * SIZE fills the write buffer of 64 KiB; says so, and
 *waits leveldb count DB N		how many of the N keys are there, and whether "late" is
 */
#include <leveldb/c.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WRITE_BUFFER = 64 << 10, KEY_SIZE = 32 };

static leveldb_t *db;

static void check(char *why)
{
	if (!why)
		return;
	printf("error %s\n", why);
	exit(1);
}

static void open_db(const char *path)
{
	leveldb_options_t *o = leveldb_options_create();
	char *why = NULL;

	leveldb_options_set_create_if_missing(o, 1);
	leveldb_options_set_write_buffer_size(o, WRITE_BUFFER);
	leveldb_options_set_compression(o, leveldb_no_compression);
	db = leveldb_open(o, path, &why);
	check(why);
	leveldb_options_destroy(o);
}

static void put(const char *key, size_t size, bool sync)
{
	leveldb_writeoptions_t *o = leveldb_writeoptions_create();
	char *value = calloc(1, size + 1), *why = NULL;

	if (!value)
		exit(1);
	memset(value, 'v', size);
	leveldb_writeoptions_set_sync(o, sync);
	leveldb_put(db, o, key, strlen(key), value, size, &why);
	check(why);
	leveldb_writeoptions_destroy(o);
	free(value);
}

static bool has(const char *key)
{
	leveldb_readoptions_t *o = leveldb_readoptions_create();
	char *why = NULL, *value;
	size_t len;

	value = leveldb_get(db, o, key, strlen(key), &len, &why);
	check(why);
	leveldb_readoptions_destroy(o);
	free(value);
	return value != NULL;
}

static const char *key_of(int i)
{
	static char key[KEY_SIZE];

	snprintf(key, sizeof(key), "key-%06d", i);
	return key;
}

static void put_all(int n, size_t size, bool sync)
{
	for (int i = 0; i < n; i++)
		put(key_of(i), size, sync);
}

static void count(int n)
{
	int there = 0;

	for (int i = 0; i < n; i++)
		there += has(key_of(i));
	printf("%d late=%s\n", there, has("late") ? "yes" : "no");
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	int n = atoi(argv[3]);
	size_t size = argc > 4 ? (size_t)atoi(argv[4]) : 0;

	open_db(argv[2]);
	if (strcmp(argv[1], "put") == 0) {
		put_all(n, size, argc > 5);
		printf("put\n");
	} else if (strcmp(argv[1], "rotate") == 0) {
		put_all(n, size, false);
		put("late", size, true);
		printf("synced\n");
		fflush(stdout);
		/* What the database does in the background goes on; the crash comes from outside.
		 */
		pause();
	} else if (strcmp(argv[1], "count") == 0) {
		count(n);
	}
	leveldb_close(db);
	return 0;
}
