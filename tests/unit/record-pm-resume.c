/* SPDX-License-Identifier: MIT */
/* Copies that are interrupted stay one; what only looks like it stays two. */
#include "tap.h"

#include "record/pm_resume.h"

enum { PC = 0x1000, FAR = 0x9000, NEW = EV_NEW_CALL, NT = EV_NONTEMPORAL };

struct step {
	enum event_kind kind;
	uint64_t addr, pc;
	uint32_t flags, stack, cpu;
};

static void put(struct pm_resume *r, const struct step *s, size_t n)
{
	static const unsigned char data[8] = "a store";

	for (size_t i = 0; i < n; i++) {
		struct event ev = { .kind = s[i].kind,
				    .addr = s[i].addr,
				    .pc = s[i].pc,
				    .flags = s[i].flags,
				    .stack = s[i].stack,
				    .cpu = s[i].cpu };

		if (ev.kind == EV_STORE) {
			ev.len = 8;
			ev.data = data;
		}
		if (ev.kind == EV_STACK)
			trace_add_stack(r->t, (uint64_t[]){ 7, 8, ev.addr }, 3);
		else
			pm_resume_put(r, &ev);
	}
}

/* What became of it: S a store, N one of a new call, F a fence; the stack of each store. */
static const char *shape(const struct trace *t)
{
	static char text[100];
	size_t n = 0;

	for (size_t i = 0; i < t->events.n && n < sizeof(text) - 4; i++) {
		const struct event *ev = &t->events.v[i];

		if (ev->kind == EV_STORE)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%c%u",
					      ev->flags & NEW ? 'N' : 'S', (unsigned)ev->stack);
		else if (ev->kind == EV_FENCE)
			text[n++] = 'F';
		else if (ev->kind == EV_OP_END)
			text[n++] = '|';
		else if (ev->kind == EV_LINEFLUSH)
			text[n++] = 'L';
	}
	text[n] = '\0';
	return text;
}

static void try(const struct step *s, size_t n, const char *want, const char *what)
{
	struct trace t;
	struct pm_resume r = { .t = &t };
	uint64_t frames[EVENT_FRAMES_MAX];
	bool stacks = true;

	trace_init(&t);
	put(&r, s, n);
	is_s(shape(&t), want, "%s", what);
	for (uint32_t i = 1; i <= t.stacks.n; i++)
		stacks &= trace_stack(&t, i, frames) == 3 && frames[2] == i;
	ok(stacks, "and stacks are where they are said to be");
	trace_release(&t);
}

#define STACK(n)                                                                                   \
	{                                                                                          \
		.kind = EV_STACK, .addr = (n)                                                      \
	}
#define STORE(at, code, what, calls, number)                                                       \
	{                                                                                          \
		.kind = EV_STORE, .addr = (at), .pc = (code), .flags = (what), .stack = (calls),   \
		.cpu = (number)                                                                    \
	}
#define FENCE(code, calls)                                                                         \
	{                                                                                          \
		.kind = EV_FENCE, .pc = (code), .stack = (calls)                                   \
	}
#define FLUSH(at, code)                                                                            \
	{                                                                                          \
		.kind = EV_LINEFLUSH, .addr = (at), .pc = (code)                                   \
	}
#define END()                                                                                      \
	{                                                                                          \
		.kind = EV_OP_END                                                                  \
	}

#define TRY(want, what, ...)                                                                       \
	do {                                                                                       \
		static const struct step steps[] = { STACK(1), __VA_ARGS__ };                      \
		try(steps, ARRAY_SIZE(steps), want, what);                                         \
	} while (0)

int main(void)
{
	TRY("N1FN1S1S1S1", "a fence of an interrupt comes before the copy",
	    STORE(0, PC, NEW | NT, 1, 0), STORE(64, PC, NEW | NT, 1, 0),
	    STORE(72, PC + 4, NT, 1, 0), STACK(2), FENCE(FAR, 2), STORE(80, PC, NEW | NT, 0, 0),
	    STORE(88, PC + 4, NT, 0, 0));
	TRY("N1S1S1", "without a fence it is one copy as well", STORE(0, PC, NEW | NT, 1, 0),
	    STORE(8, PC, NEW | NT, 0, 0), STORE(16, PC, NT, 0, 0));
	TRY("FFN1S1S1", "two interrupts", STORE(64, PC, NEW, 1, 0), STACK(2), FENCE(FAR, 2),
	    STORE(72, PC, NEW, 0, 0), FENCE(FAR, 2), STORE(80, PC, NEW, 0, 0));
	TRY("FN1S1", "downwards", STORE(64, PC, NEW, 1, 0), FENCE(FAR, 0),
	    STORE(56, PC, NEW, 0, 0));
	TRY("FN1N1S1S1", "another processor stores meanwhile", STORE(64, PC, NEW, 1, 0),
	    STORE(640, PC, NEW, 1, 1), FENCE(FAR, 0), STORE(72, PC, NEW, 0, 0),
	    STORE(648, PC, NEW, 0, 1));

	TRY("N1FN1", "two calls that copy, and a fence between them", STORE(64, PC, NEW, 1, 0),
	    FENCE(FAR, 1), STORE(72, PC, NEW, 1, 0));
	TRY("N1FN0", "another place", STORE(64, PC, NEW, 1, 0), FENCE(FAR, 1),
	    STORE(128, PC, NEW, 0, 0));
	TRY("N1FN0", "other code", STORE(64, PC, NEW, 1, 0), FENCE(FAR, 1),
	    STORE(72, FAR, NEW, 0, 0));
	TRY("N1FN0", "another kind of store", STORE(64, PC, NEW | NT, 1, 0), FENCE(FAR, 1),
	    STORE(72, PC, NEW, 0, 0));
	TRY("N0FN0", "where no stack was known before", STORE(64, PC, NEW, 0, 0), FENCE(FAR, 1),
	    STORE(72, PC, NEW, 0, 0));
	TRY("N1|FN0", "an operation ended", STORE(64, PC, NEW, 1, 0), END(), FENCE(FAR, 1),
	    STORE(72, PC, NEW, 0, 0));
	TRY("N1LFN0", "it was flushed", STORE(64, PC, NEW, 1, 0), FLUSH(64, PC), FENCE(FAR, 1),
	    STORE(72, PC, NEW, 0, 0));
	TRY("FN1S1N0S0", "the next call after it is another copy", STORE(64, PC, NEW, 1, 0),
	    FENCE(FAR, 1), STORE(72, PC, NEW, 0, 0), STORE(640, PC, NEW, 0, 0),
	    STORE(648, PC, 0, 0, 0));
	TRY("N1FFN1S1", "a fence of the code before it stays where it is", STORE(0, PC, NEW, 1, 0),
	    FENCE(PC, 1), STORE(64, PC, NEW, 1, 0), FENCE(FAR, 1), STORE(72, PC, NEW, 0, 0));
	return done_testing();
}
