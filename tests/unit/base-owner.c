/* SPDX-License-Identifier: MIT */
/* Names that tell who made a thing: the living, the dead, and those nobody can tell. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/owner.h"
#include "tap.h"

/* Has a child make a name, and leaves the child as a zombie. */
static pid_t child_with_name(char name[OWNER_NAME_SIZE])
{
	int fds[2];
	pid_t pid;

	if (pipe(fds) < 0 || (pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		owner_name("disk", name);
		_exit(write(fds[1], name, OWNER_NAME_SIZE) != OWNER_NAME_SIZE);
	}
	siginfo_t info;
	bool got = read(fds[0], name, OWNER_NAME_SIZE) == OWNER_NAME_SIZE &&
		   waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0;
	close(fds[0]);
	close(fds[1]);
	return got ? pid : -1;
}

int main(void)
{
	char name[OWNER_NAME_SIZE], text[256];
	unsigned long long start, space;
	pid_t pid = 0;
	int number;

	owner_name("disk", name);
	ok(sscanf(name, "outage-disk-%d-%llu-%llu", &number, &start, &space) == 3 &&
		   number == getpid() && start && space,
	   "a name holds process, start and namespace: %s", name);
	snprintf(text, sizeof(text), "/memfd:%s (deleted)", name);
	ok(owner_state(text, &pid) == OWNER_ALIVE && pid == getpid(), "ours, inside a longer text");

	snprintf(text, sizeof(text), "outage-disk-%d-%llu-%llu", number, start + 1, space);
	ok(owner_state(text, NULL) == OWNER_GONE, "our number, but begun at another time");
	snprintf(text, sizeof(text), "outage-disk-%d-%llu-%llu", number, start + 1, space + 1);
	ok(owner_state(text, NULL) == OWNER_ALIVE, "another namespace: nobody can tell");
	snprintf(text, sizeof(text), "outage-disk-%d-0-%llu", number, space);
	ok(owner_state(text, NULL) == OWNER_ALIVE, "no time: nobody can tell");

	pid = child_with_name(name);
	ok(pid > 0 && owner_state(name, NULL) == OWNER_GONE, "a zombie owns nothing");
	waitpid(pid, NULL, 0);
	ok(owner_state(name, NULL) == OWNER_GONE, "nor does who was waited for");

	ok(owner_state("", NULL) == OWNER_NONE, "nothing");
	ok(owner_state("/tmp/outage-runs", NULL) == OWNER_NONE, "a name that is none");
	ok(owner_state("outage-disk-x-1-2", NULL) == OWNER_NONE, "not a number");
	ok(owner_state("outage-disk--5-1-2", NULL) == OWNER_NONE, "a negative number");
	snprintf(text, sizeof(text), "outage-runs/outage-tmp-%d-%llu-%llu", number, start + 1,
		 space);
	ok(owner_state(text, NULL) == OWNER_GONE, "the second of two that look like it");
	return done_testing();
}
