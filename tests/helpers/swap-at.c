/* SPDX-License-Identifier: MIT */
/*
 * swap-at.c - plays another user, who owns the directory that has a run, and exchanges two names in
 * it while a command uses the run; for t0458-trust-swapped.sh.
 *
 *	swap-at N A B COUNT DIR... -- COMMAND...
 *
 * When something is opened in one of DIR... for the Nth time, A and B are exchanged before that
 * open returns. The file COUNT gets how often something was opened there. The exit status is that
 * of COMMAND, or 77 if the kernel cannot hold an open up.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(int status, const char *what)
{
	perror(what);
	exit(status);
}

int main(int argc, char **argv)
{
	unsigned long n, opened = 0;
	int fan = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC), i, status;

	if (argc < 8)
		return 1;
	if (fan < 0)
		die(77, "fanotify_init");
	n = strtoul(argv[1], NULL, 10);
	for (i = 5; i < argc - 1 && strcmp(argv[i], "--") != 0; i++)
		if (fanotify_mark(fan, FAN_MARK_ADD, FAN_OPEN_PERM | FAN_EVENT_ON_CHILD | FAN_ONDIR,
				  AT_FDCWD, argv[i]))
			die(77, argv[i]);
	pid_t pid = fork();
	if (pid == 0) {
		execvp(argv[i + 1], argv + i + 1);
		die(127, argv[i + 1]);
	}
	struct pollfd p[] = { { .fd = fan, .events = POLLIN },
			      { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN } };
	while (poll(p, 2, -1) > 0 && !p[1].revents) {
		struct fanotify_event_metadata events[64], *e = events;
		ssize_t len = read(fan, events, sizeof(events));

		for (; FAN_EVENT_OK(e, len); e = FAN_EVENT_NEXT(e, len)) {
			struct fanotify_response yes = { e->fd, FAN_ALLOW };

			if (++opened == n &&
			    renameat2(AT_FDCWD, argv[2], AT_FDCWD, argv[3], RENAME_EXCHANGE))
				die(1, argv[2]);
			if (write(fan, &yes, sizeof(yes)) != sizeof(yes))
				die(1, "an answer to the kernel");
			close(e->fd);
		}
	}
	close(fan); /* what else waits is allowed */
	FILE *count = fopen(argv[4], "w");
	if (waitpid(pid, &status, 0) != pid || !count || fprintf(count, "%lu\n", opened) < 0 ||
	    fclose(count))
		die(1, argv[4]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
