/* SPDX-License-Identifier: MIT */
/* vm_trace.c - runs the machines whose stores to persistent memory are traced. */
#include <errno.h>

#include "base/log.h"
#include "base/proc.h"
#include "record/pm_disk.h"
#include "target/vm_impl.h"

enum { HELP_MS = 20000 };

/* The help of an emulator that was built without plugins does not mention them. */
int vm_needs_plugins(const char *qemu, struct err *err)
{
	const char *const argv[] = { qemu, "-help", NULL };
	struct proc_result r = { 0 };
	int rc = proc_run(&(struct proc_opts){ .argv = argv, .timeout_ms = HELP_MS }, &r, err);

	if (!rc && !strstr(strbuf_str(&r.out), "-plugin "))
		rc = err_set(err, -ENOTSUP,
			     "%s was built without plugins, by which persistent memory is traced; "
			     "Debian's has them: apt-get install qemu-system-x86",
			     qemu);
	proc_result_release(&r);
	return rc;
}

static int tell_tracer(struct target *t, enum agent_command command, uint32_t begin,
		       const char *text, struct err *err)
{
	struct strbuf *out = guest_target_begin(t, command);
	struct wire_in part;

	if (text)
		wire_put_text(out, text);
	else
		wire_put_u32(out, begin);
	int rc = guest_target_ask(t, command, &part, err);
	return rc > 0 ? err_set(err, -EIO, "the guest died when it was asked for a mark") : rc;
}

/* Runs the test program, which makes its own marks, in a stream of its own. */
static int run_test(void *ctx, struct err *err)
{
	struct target *t = ctx;
	struct wire_in part;

	guest_target_begin(t, AGENT_SELFTEST);
	int rc = guest_target_ask(t, AGENT_SELFTEST, &part, err);
	if (rc)
		return rc < 0 ? rc : err_set(err, -EIO, "the guest died of the tracer's test");
	uint32_t status = wire_u32(&part);
	rc = guest_part_ok(&part, err);
	return rc ? rc : status != 0;
}

static int start_traced(struct target *t, struct err *err)
{
	struct vm *v = vm_own(t);
	int rc = vm_start(t, err);

	if (rc)
		return rc;
	rc = pm_disk_test(t->disk, run_test, t, err);
	if (rc > 0)
		log_info("this kernel does not let programs map its persistent memory (/dev/mem), "
			 "so the "
			 "tracer is not tested in it");
	if (rc < 0)
		guest_stop(v->base.guest);
	return min(rc, 0);
}

/* Makes the traced machine the current one. */
static int begin_tracing(void *ctx, bool loads, struct err *err)
{
	struct target *t = ctx;
	struct vm *v = vm_own(t);
	int rc = 0;

	v->base.guest = &v->base.guests[loads ? TRACED_LOADS : TRACED];
	if (v->tracer.plugin < 0)
		rc = tracer_unpack(&v->tracer, v->qemu, err);
	if (!rc && !guest_runs(v->base.guest))
		rc = start_traced(t, err);
	if (!rc)
		rc = tell_tracer(t, AGENT_TRACE, 1, NULL, err);
	if (rc)
		v->base.guest = &v->base.guests[PLAIN];
	return rc;
}

static int mark_text(void *ctx, const char *text, struct err *err)
{
	return tell_tracer(ctx, AGENT_MARK, 0, text, err);
}

static int end_tracing(void *ctx, struct err *err)
{
	struct target *t = ctx;
	struct vm *v = vm_own(t);
	int rc = guest_runs(v->base.guest)
			 ? tell_tracer(t, AGENT_TRACE, 0, NULL, err)
			 : err_set(err, -EPIPE, "the guest ended while it was traced");

	v->base.guest = &v->base.guests[PLAIN];
	return rc;
}

static uint64_t traced_machine(void *ctx)
{
	return *vm_boot(vm_own(ctx));
}

void vm_drive_tracing(struct target *t)
{
	pm_disk_drive(t->disk, &(struct pm_disk_driver){ .ctx = t,
							 .start = begin_tracing,
							 .text = mark_text,
							 .stop = end_tracing,
							 .machine = traced_machine });
}
