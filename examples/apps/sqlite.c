/* SPDX-License-Identifier: MIT */
/*
 * sqlite.c - what an application expects of SQLite.
 *
 *	sqlite make JOURNAL	   an empty table; JOURNAL is delete, wal, truncate or persist
 *	sqlite insert JOURNAL SYNC inserts three rows, each acknowledged when it is committed; SYNC
 *				   is normal, full or extra
 *	sqlite check		   every row that was acknowledged is there, and nothing is broken
 *
 * The database is "db", in the working directory.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3 };

static sqlite3 *db;

static void wrong(const char *kind, const char *words)
{
	printf("outage: %s\n%s\n", kind, words);
	exit(1);
}

static void must(int rc)
{
	if (rc != SQLITE_OK)
		wrong("unavailable", sqlite3_errmsg(db));
}

static void execute(const char *text, const char *word, int number)
{
	char *sql = sqlite3_mprintf(text, word, number);

	must(sqlite3_exec(db, sql, NULL, NULL, NULL));
	sqlite3_free(sql);
}

static int take(void *ctx, int n, char **values, char **names)
{
	(void)names;
	if (n == 1)
		snprintf(ctx, 100, "%s", values[0] ? values[0] : "");
	return 0;
}

static void check(void)
{
	const char *path = getenv("OUTAGE_ACKED");
	FILE *f = path ? fopen(path, "r") : NULL;
	char answer[100] = "";
	int id;

	must(sqlite3_exec(db, "PRAGMA integrity_check", take, answer, NULL));
	if (strcmp(answer, "ok") != 0)
		wrong("corruption", answer);
	while (f && fscanf(f, "%d\n", &id) == 1) {
		char *sql = sqlite3_mprintf("SELECT count(*) FROM t WHERE id = %d", id);

		must(sqlite3_exec(db, sql, take, answer, NULL));
		sqlite3_free(sql);
		if (strcmp(answer, "1") != 0)
			wrong("rolled-back", "a row is gone");
	}
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	must(sqlite3_open("db", &db));
	if (strcmp(what, "make") == 0 && argc > 2) {
		execute("PRAGMA journal_mode=%s", argv[2], 0);
		execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)", NULL, 0);
	} else if (strcmp(what, "insert") == 0 && argc > 3) {
		execute("PRAGMA journal_mode=%s", argv[2], 0);
		execute("PRAGMA synchronous=%s", argv[3], 0);
		for (int i = 0; i < ROWS; i++) {
			execute("INSERT INTO t VALUES (%.0s%d, hex(zeroblob(100)))", "", i);
			printf("%d\n", i);
			fflush(stdout);
		}
	} else {
		check();
	}
	sqlite3_close(db);
	return 0;
}
