/* SPDX-License-Identifier: MIT */
/*
 * app-log.c - an application with a log, which it copies from when it comes up: right, or in ways
 * that only a power cut meanwhile breaks.
 *
 *	app-log run          appends lines to "log", syncs each, and says it
 *	app-log up right     copies what "log" has to "data", syncs that, and empties the log
 *	app-log up wrong     the same without the sync
 *	app-log up remake    writes "data" anew in its place, and then as up right does
 *	app-log up fails     fails where "data" has lines already
 *	app-log check        is each acknowledged line in one of the two?
 *	app-log check HOW    comes up first
 *	app-log show         prints the lines of both
 *
 * Both files are in the working directory, and there before.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS = 3, LEN = 8, BYTES_MAX = 4096 };

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

/* Whole lines only. */
static size_t read_all(const char *name, char *out)
{
	int fd = open(name, O_RDONLY);

	must(fd >= 0, name);
	ssize_t n = read(fd, out, BYTES_MAX);
	must(n >= 0, name);
	close(fd);
	return (size_t)n / LEN * LEN;
}

static void append(const char *name, int flags, const char *data, size_t len, bool sync)
{
	int fd = open(name, O_WRONLY | O_APPEND | flags);

	must(fd >= 0, name);
	must(!len || write(fd, data, len) == (ssize_t)len, name);
	must(!sync || !fsync(fd), name);
	close(fd);
}

static bool has(const char *all, size_t len, const char *line)
{
	for (size_t i = 0; i + LEN <= len; i += LEN)
		if (memcmp(all + i, line, LEN) == 0)
			return true;
	return false;
}

static int run(void)
{
	for (int i = 1; i <= RECORDS; i++) {
		char line[LEN + 1];

		snprintf(line, sizeof(line), "line%03d\n", i);
		append("log", 0, line, LEN, true);
		fputs(line, stdout);
		fflush(stdout);
	}
	return 0;
}

static void up(const char *how)
{
	char log[BYTES_MAX], data[BYTES_MAX], more[BYTES_MAX];
	size_t n_log = read_all("log", log), n_data = read_all("data", data), n = 0;

	if (strcmp(how, "fails") == 0 && n_data) {
		fputs("there is something\n", stderr);
		exit(3);
	}
	if (strcmp(how, "remake") == 0)
		append("data", O_TRUNC, data, n_data, false);
	for (size_t i = 0; i < n_log; i += LEN)
		if (!has(data, n_data, log + i)) {
			memcpy(more + n, log + i, LEN);
			n += LEN;
		}
	if (!n_log)
		return;
	append("data", 0, more, n, strcmp(how, "wrong") != 0);
	append("log", O_TRUNC, NULL, 0, true);
}

static int check(void)
{
	char log[BYTES_MAX], data[BYTES_MAX], line[64];
	size_t n_log = read_all("log", log), n_data = read_all("data", data);
	const char *path = getenv("OUTAGE_ACKED");
	FILE *f = path && getenv("OUTAGE_CRASH_POINT") ? fopen(path, "r") : NULL;

	must(f != NULL, "OUTAGE_ACKED");
	while (fgets(line, sizeof(line), f))
		if (!has(log, n_log, line) && !has(data, n_data, line)) {
			printf("outage: rolled-back\n%.7s is gone\n", line);
			return 1;
		}
	fclose(f);
	return 0;
}

static int show(void)
{
	char all[BYTES_MAX];

	fwrite(all, 1, read_all("data", all), stdout);
	fwrite(all, 1, read_all("log", all), stdout);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *how = argc > 2 ? argv[2] : "";

	if (strcmp(what, "run") == 0)
		return run();
	if (strcmp(what, "show") == 0)
		return show();
	if (*how)
		up(how);
	return strcmp(what, "check") == 0 ? check() : 0;
}
