/* SPDX-License-Identifier: MIT */
/*
 * control.c - a test that loses what was not synced, over the socket of a mount.
 *
 *	outage mount --daemon --socket /tmp/forget.socket data mnt
 *	cc -o control control.c && ./control /tmp/forget.socket mnt
 *
 * A request is a line, the words of a command of outage-ctl(1). The answer is a line "ok N" or
 *"error N", and then N bytes of text.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static FILE *from, *to;

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static void connect_to(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		fail(path);
	from = fdopen(fd, "r");
	to = fdopen(dup(fd), "w");
	if (!from || !to)
		fail("fdopen");
}

/* Sends a command, prints what it answers, and ends if it was not done. */
static void command(const char *line)
{
	char how[8];
	size_t len;

	fprintf(to, "%s\n", line);
	fflush(to);
	if (fscanf(from, "%7s %zu", how, &len) != 2 || getc(from) != '\n')
		fail("no answer");
	printf("%s: %s: ", line, how);
	for (; len; len--)
		putchar(getc(from));
	if (strcmp(how, "ok") != 0)
		exit(1);
}

static long size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? -1 : (long)st.st_size;
}

int main(int argc, char **argv)
{
	char path[4096];

	if (argc != 3) {
		fprintf(stderr, "usage: control SOCKET MNT\n");
		return 2;
	}
	connect_to(argv[1]);
	snprintf(path, sizeof(path), "%s/journal", argv[2]);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, "synced", 6) != 6 || fsync(fd) < 0 || write(fd, " not", 4) != 4)
		fail(path);
	command("report");
	command("clear-cache");
	printf("%ld bytes are left of 10\n", size_of(path));
	close(fd);
	return size_of(path) == 6 ? 0 : 1;
}
