/* SPDX-License-Identifier: MIT */
/*
 * replace.c - a program that replaces a file, in six ways that a power cut breaks and one that it
 * does not; and the check for all of them.
 *
 *	replace in-place      overwrites the file itself
 *	replace no-sync       writes a new file and renames it over the old one, and syncs nothing
 *	replace sync-after    syncs the file, but only after the rename
 *	replace unlink-first  removes the old file before the new one takes its name
 *	replace dir-only      syncs the directory, and not the file
 *	replace no-dir        syncs the file, and not the directory
 *	replace right         syncs the file, renames it, syncs the directory
 *	replace check         is the file whole, and what was acknowledged there?
 *
 * Each says "replaced" when it is done: from then on the new content must survive. The file is
 * "settings", in the working directory; it is there before.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 10000 };

static const char file[] = "settings", tmp[] = "settings.tmp";

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static void fill(const char *name, bool truncate, bool sync)
{
	char data[SIZE];
	int fd = open(name, O_WRONLY | O_CREAT | (truncate ? O_TRUNC : 0), 0644);

	must(fd >= 0, name);
	memset(data, 'n', sizeof(data));
	must(write(fd, data, sizeof(data)) == SIZE, "write");
	must(!sync || !fsync(fd), "fsync");
	close(fd);
}

static void sync_name(const char *name)
{
	int fd = open(name, O_RDONLY);

	must(fd >= 0 && !fsync(fd), "fsync");
	close(fd);
}

static void done(void)
{
	printf("replaced\n");
	fflush(stdout);
}

static bool was_acknowledged(void)
{
	const char *path = getenv("OUTAGE_ACKED");
	FILE *f = path ? fopen(path, "r") : NULL;
	char line[64] = "";

	must(f != NULL, "OUTAGE_ACKED");
	bool acked = fgets(line, sizeof(line), f) && strcmp(line, "replaced\n") == 0;
	fclose(f);
	return acked;
}

static int wrong(const char *kind, const char *words)
{
	printf("outage: %s\n%s\n", kind, words);
	return 1;
}

static int check(void)
{
	char data[SIZE + 1];
	int fd = open(file, O_RDONLY);

	if (fd < 0)
		return wrong("unavailable", "there are no settings");
	ssize_t n = read(fd, data, sizeof(data));
	close(fd);
	if (n == 4 && memcmp(data, "old\n", 4) == 0)
		return was_acknowledged() ? wrong("rolled-back", "the settings are old") : 0;
	if (n != SIZE)
		return wrong("corruption", "the settings are neither old nor new: another size");
	for (int i = 0; i < SIZE; i++)
		if (data[i] != 'n')
			return wrong("corruption", "the settings are neither old nor new");
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (strcmp(how, "check") == 0)
		return check();
	if (strcmp(how, "in-place") == 0) {
		fill(file, true, true);
		done();
		return 0;
	}
	bool sync = strcmp(how, "right") == 0 || strcmp(how, "no-dir") == 0 ||
		    strcmp(how, "unlink-first") == 0;
	fill(tmp, true, sync);
	if (strcmp(how, "unlink-first") == 0)
		must(!unlink(file), "unlink");
	must(!rename(tmp, file), "rename");
	if (strcmp(how, "sync-after") == 0)
		sync_name(file);
	if (strcmp(how, "no-dir") != 0 && strcmp(how, "no-sync") != 0)
		sync_name(".");
	if (strcmp(how, "no-sync") != 0)
		done();
	return 0;
}
