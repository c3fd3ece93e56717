/* SPDX-License-Identifier: MIT */
/*
 * How the end of a guest is judged, from what it said, how its processes ended, and what its
 * emulator told: the kernel is to blame (0), or somebody else is.
 */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/guest_end.h"
#include "guest/guest_words.h"
#include "tap.h"

#define SYSRQ	 "Kernel panic - not syncing: sysrq triggered crash"
#define NO_MM	 "Kernel panic - not syncing: Segfault with no mm"
#define NO_INIT	 "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b"
#define OOPS	 "BUG: kernel NULL pointer dereference, address: 0000000000000000"
#define LOST	 "userspace - ptrace set regs failed, errno = 3"
#define TOLD	 "{\"event\": \"SHUTDOWN\", \"data\": {\"guest\": false, \"reason\": \"host-signal\"}}"
#define ITSELF	 "{\"event\": \"SHUTDOWN\", \"data\": {\"guest\": true, \"reason\": \"guest-reset\"}}"
#define EXITS(n) ((n) << 8)

/* A guest that has said these lines, and was ended so. */
static const struct {
	const char *name;
	bool emulated;
	const char *said[3];
	const char *event; /* of the emulator */
	struct guest_end how;
	int want;
} ends[] = {
	{ "a panic", false, { SYSRQ }, NULL, { .ended = true, .status = SIGABRT }, 0 },
	{ "a fault of its own", false, { NULL }, NULL, { .ended = true, .status = SIGSEGV }, 0 },
	{ "it is killed", false, { NULL }, NULL, { .ended = true, .status = SIGKILL }, -EINTR },
	{ "it is killed as it panics",
	  false,
	  { SYSRQ },
	  NULL,
	  { .ended = true, .status = SIGKILL },
	  -EINTR },
	{ "it is told to abort",
	  false,
	  { NULL },
	  NULL,
	  { .ended = true, .status = SIGABRT },
	  -EINTR },
	{ "it just ends", false, { NULL }, NULL, { .ended = true, .status = EXITS(1) }, -EIO },
	{ "a stub is lost",
	  false,
	  { LOST, NO_INIT },
	  NULL,
	  { .ended = true, .status = SIGABRT },
	  -EINTR },
	{ "the agent gets a signal",
	  false,
	  { NO_INIT },
	  NULL,
	  { .ended = true, .status = SIGABRT },
	  -EINTR },
	{ "its kernel faults for the agent",
	  false,
	  { OOPS, NO_INIT },
	  NULL,
	  { .ended = true, .status = SIGABRT },
	  0 },
	{ "a helper panics",
	  false,
	  { NO_MM },
	  NULL,
	  { .ended = true, .status = SIGABRT, .aborted = true },
	  -EINTR },
	{ "a helper aborts, and nothing is said",
	  false,
	  { NULL },
	  NULL,
	  { .ended = true, .status = SIGSEGV, .aborted = true },
	  -EINTR },
	{ "two panic",
	  false,
	  { OOPS, NO_MM, SYSRQ },
	  NULL,
	  { .ended = true, .status = SIGABRT },
	  -EINTR },
	{ "one panics, and its kernel goes on", false, { NO_MM }, NULL, { 0 }, -EINTR },
	{ "it hangs up", false, { NULL }, NULL, { 0 }, -EIO },
	{ "a machine: a panic", true, { SYSRQ }, ITSELF, { .ended = true }, 0 },
	{ "a machine: a panic without an end", true, { SYSRQ }, NULL, { 0 }, 0 },
	{ "a machine: a panic for the agent's end",
	  true,
	  { NO_INIT },
	  ITSELF,
	  { .ended = true },
	  0 },
	{ "a machine: what only user-mode Linux says",
	  true,
	  { LOST, SYSRQ },
	  ITSELF,
	  { .ended = true },
	  0 },
	{ "a machine: it is reset from within", true, { NULL }, ITSELF, { .ended = true }, 0 },
	{ "a machine: it just ends", true, { NULL }, NULL, { .ended = true }, -EIO },
	{ "a machine: told to end", true, { NULL }, TOLD, { .ended = true }, -EINTR },
	{ "a machine: told to end as it panics", true, { SYSRQ }, TOLD, { .ended = true }, -EINTR },
	{ "a machine: killed",
	  true,
	  { SYSRQ },
	  NULL,
	  { .ended = true, .status = SIGKILL },
	  -EINTR },
	{ "a machine: the emulator faults",
	  true,
	  { NULL },
	  NULL,
	  { .ended = true, .status = SIGSEGV },
	  -EIO },
	{ "a machine: it hangs up", true, { NULL }, NULL, { 0 }, -EIO },
};

static const char *first_panic(const char *const said[3])
{
	for (size_t k = 0; k < 3 && said[k]; k++)
		if (guest_panics(said[k]))
			return said[k];
	return "";
}

/* Whether a panic of user-mode Linux is put down to somebody who sent a signal, by guessing. */
static bool drops_panic(const struct guest *g, const struct guest_end *how, int rc)
{
	return rc == -EINTR && !g->emulated && g->heard == GUEST_PANIC && how->status != SIGKILL;
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct guest g = { .emulated = ends[i].emulated };
		struct err err = ERR_INIT;
		int pair[2];

		for (size_t k = 0; k < ARRAY_SIZE(ends[i].said) && ends[i].said[k]; k++) {
			g.heard |= guest_words(ends[i].said[k]);
			strbuf_addf(&g.said, "%s\n", ends[i].said[k]);
		}
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
			return ok(false, "a pair of sockets"), done_testing();
		if (ends[i].event)
			dprintf(pair[1], "%s\n", ends[i].event);
		g.monitor = pair[0];
		is_i(guest_judge_end(&g, &ends[i].how, &err), ends[i].want, "%s%s%s", ends[i].name,
		     *err.msg ? ": " : "", err.msg);
		if (drops_panic(&g, &ends[i].how, err.code))
			ok(strstr(err.msg, first_panic(ends[i].said)), "... with its words");
		close(pair[0]);
		close(pair[1]);
		strbuf_release(&g.said);
		strbuf_release(&g.last);
	}
	return done_testing();
}
