/* SPDX-License-Identifier: MIT */
/*
 * owner.c - makes the name of an owner from /proc, and tells whether the owner of a name still
 * lives.
 */
#include "base/owner.h"

#include <ctype.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"

#define PREFIX "outage-"

/* When the process began; with its number that identifies it. 0: no such process runs. */
static unsigned long long started(pid_t pid)
{
	struct proc_stat p;

	return proc_stat(pid, &p) && p.state != 'Z' ? p.started : 0;
}

/* Process numbers mean something only in their own namespace. */
static unsigned long long pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : llu(st.st_ino);
}

const char *owner_name(const char *kind, char name[OWNER_NAME_SIZE])
{
	assert(*kind && !strchr(kind, '-') && strlen(kind) < 16);
	snprintf(name, OWNER_NAME_SIZE, PREFIX "%s-%d-%llu-%llu", kind, (int)getpid(),
		 started(getpid()), pid_namespace());
	return name;
}

/* Reads what follows PREFIX: a word and three numbers. */
static bool parse(const char *p, int *pid, unsigned long long *start, unsigned long long *space)
{
	while (isalnum((unsigned char)*p))
		p++;
	return sscanf(p, "-%d-%llu-%llu", pid, start, space) == 3 && *pid > 0;
}

enum owner_state owner_state(const char *text, pid_t *pid)
{
	unsigned long long start, space;
	int number;

	for (const char *p = text; (p = strstr(p, PREFIX));) {
		p += strlen(PREFIX);
		if (!parse(p, &number, &start, &space))
			continue;
		if (pid)
			*pid = number;
		if (!start || space != pid_namespace() || started(number) == start)
			return OWNER_ALIVE;
		return OWNER_GONE;
	}
	return OWNER_NONE;
}
