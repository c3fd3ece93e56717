/* SPDX-License-Identifier: MIT */
/* vm_monitor.c - sends commands to a running QEMU, in its machine protocol. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "target/vm_impl.h"

#define HELLO "{\"execute\":\"qmp_capabilities\"}\n"
/* A capability: memory that is a shared file is no part of the state. */
#define IGNORE_SHARED                                                                              \
	"{\"execute\":\"migrate-set-capabilities\",\"arguments\":{\"capabilities\":"               \
	"[{\"capability\":\"x-ignore-shared\",\"state\":true}]}}\n"
#define GO_ON                                                                                      \
	"{\"execute\":\"migrate-incoming\",\"arguments\":{\"uri\":"                                \
	"\"exec:cat /proc/%d/fd/%d\"}}\n"

enum {
	SAVE_MS = 30000,
	POLL_MS = 5,
};

void vm_greet(struct vm *v, enum vm_start_kind kind)
{
	/*
	 * The command waits there until QEMU reads it. If QEMU rejects it, the guest does not
	 * answer. After the greeting QEMU reports why it ends.
	 */
	if (kind == START_CLONE)
		dprintf(*vm_monitor(v), HELLO IGNORE_SHARED GO_ON, (int)getpid(),
			v->template.state);
	else
		dprintf(*vm_monitor(v), HELLO);
}

/* Sends a command, and reads its answer, a line; serves the guest meanwhile. */
static int monitor_ask(struct vm *v, const char *command, struct strbuf *line, struct err *err)
{
	uint64_t start = util_now_ns();

	if (send(*vm_monitor(v), command, strlen(command), MSG_NOSIGNAL) !=
	    (ssize_t)strlen(command))
		return err_set(err, -EIO, "QEMU does not listen: %m");
	strbuf_clear(line);
	for (;;) {
		char c;
		ssize_t n = recv(*vm_monitor(v), &c, 1, MSG_DONTWAIT);

		if (n == 1 && c != '\n') {
			strbuf_addch(line, c);
			continue;
		}
		if (n == 1 && strstr(strbuf_str(line), "\"error\""))
			return err_set(err, -EIO, "QEMU refuses: %.200s", strbuf_str(line));
		if (n == 1 && strncmp(strbuf_str(line), "{\"return\"", 9) == 0)
			return 0;
		if (n == 1)
			strbuf_clear(line); /* a greeting, or an event */
		else if (n == 0 || util_now_ns() - start > SAVE_MS * 1000000ULL)
			return err_set(err, -EIO, "QEMU does not answer");
		else if (guest_serve(v->base.guest, *vm_monitor(v), POLL_MS))
			return err_set(err, -EIO, "QEMU has ended");
	}
}

/*
 * Saves the state of a machine, all but its memory, to `state`. The machine is stopped afterwards.
 */
int vm_save_state(struct vm *v, int state, struct err *err)
{
	auto_free char *save = xasprintf("{\"execute\":\"migrate\",\"arguments\":{\"uri\":"
					 "\"exec:cat >/proc/%d/fd/%d\"}}\n",
					 (int)getpid(), state);
	const char *commands[] = {
		"", /* the answer to the greeting at the start */
		"{\"execute\":\"stop\"}\n",
		IGNORE_SHARED,
		save,
	};
	auto_strbuf line = STRBUF_INIT;
	int rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(commands) && !rc; i++)
		rc = monitor_ask(v, commands[i], &line, err);
	for (uint64_t start = util_now_ns(); !rc;) {
		rc = monitor_ask(v, "{\"execute\":\"query-migrate\"}\n", &line, err);
		if (!rc && strstr(strbuf_str(&line), "\"status\": \"completed\""))
			return 0;
		if (!rc && (strstr(strbuf_str(&line), "\"status\": \"failed\"") ||
			    util_now_ns() - start > SAVE_MS * 1000000ULL))
			rc = err_set(err, -EIO, "QEMU cannot save its state: %.200s",
				     strbuf_str(&line));
		if (!rc)
			guest_serve(v->base.guest, -1, POLL_MS);
	}
	return rc;
}
