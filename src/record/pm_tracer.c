/* SPDX-License-Identifier: MIT */
/*
 * pm_tracer.c - finds the emulator or the library, and runs a program with it. The plugin and the
 * stream are files in memory, which children get as open descriptors: no file is left behind, and
 * only this program must be installed.
 */
#include "record/pm_tracer.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd_path.h"
#include "base/io.h"
#include "base/vec.h"
#include "record/pm_blob.h"
#include "record/pm_selftest.h"

#define STREAM_LIMIT ((uint64_t)1 << 30)

enum {
	VERSION_TIMEOUT_MS = 20000,
	FD_MIN = 500,	  /* above the descriptors that a program expects to get */
	API_4_FROM = 902, /* QEMU 9.2 */
	MAPS_MAX = 4 << 20,
};

static const char install[] =
	"install it with 'apt-get install qemu-user' (not qemu-user-static, which cannot load "
	"plugins), or give another with --qemu";

/* ---- files in memory ---- */

static int memory_file(const char *name, const void *data, uint64_t len, struct err *err)
{
	auto_fd low = memfd_create(name, 0);
	auto_fd fd = low < 0 ? -1 : fcntl(low, F_DUPFD, FD_MIN);

	if (fd < 0)
		return err_set(err, -errno, "cannot make a file in memory: %m");
	int rc = data ? io_write_full(fd, data, len) : ftruncate(fd, (off_t)len) ? -errno : 0;
	if (rc)
		return err_set(err, rc, "cannot write a file in memory: %s", strerror(-rc));
	return steal_fd(&fd);
}

/* ---- the emulator ---- */

static char *find_program(const char *name)
{
	if (!strchr(name, '/'))
		return proc_find(name);
	return access(name, X_OK) ? NULL : xstrdup(name);
}

static int parse_version(struct tracer *t, const char *text, unsigned *number, struct err *err)
{
	const char *v = strstr(text, "version ");
	unsigned major, minor;
	size_t n;

	if (!v || sscanf(v + 8, "%u.%u", &major, &minor) != 2)
		return err_set(err, -EINVAL, "%s does not say which version of QEMU it is: %s",
			       t->qemu, install);
	for (n = 0; isdigit((unsigned char)v[8 + n]) || v[8 + n] == '.'; n++)
		;
	t->version = xmemdupz(v + 8, n);
	*number = major * 100 + minor;
	return 0;
}

static int ask_version(struct tracer *t, unsigned *number, struct err *err)
{
	const char *const argv[] = { t->qemu, "--version", NULL };
	struct proc_opts o = { .argv = argv,
			       .timeout_ms = VERSION_TIMEOUT_MS,
			       .merge_stderr = true,
			       .output_limit = 4096 };
	auto_call(proc_result_release) struct proc_result r = { 0 };
	int rc = proc_run(&o, &r, err);

	if (!rc)
		rc = parse_version(t, strbuf_str(&r.out), number, err);
	return rc;
}

static int find_qemu(struct tracer *t, const char *given, struct err *err)
{
	t->qemu = find_program(given ? given : "qemu-x86_64");
	if (t->qemu)
		return 0;
	if (given)
		return err_set(err, -ENOENT,
			       "there is no program %s: --qemu names QEMU's user "
			       "emulation",
			       given);
	return err_set(err, -ENOENT, "there is no qemu-x86_64, which runs the program: %s",
		       install);
}

static int open_library(struct tracer *t, struct err *err)
{
	if (!pm_preload_size)
		return err_set(err, -ENOTSUP,
			       "this program was built where libpmem was not there, and has no "
			       "library to put in front of it: use --tracer qemu");
	t->plugin = memory_file("outage-preload.so", pm_preload, pm_preload_size, err);
	return t->plugin < 0 ? t->plugin : 0;
}

static int unpack(struct tracer *t, struct err *err)
{
	unsigned version = 0;
	int rc = ask_version(t, &version, err);

	if (rc)
		return rc;
	bool new = version >= API_4_FROM;
	t->plugin = memory_file("outage-pm.so", new ? pm_plugin_4 : pm_plugin_1,
				new ? pm_plugin_4_size : pm_plugin_1_size, err);
	return min(t->plugin, 0);
}

int tracer_unpack(struct tracer *t, const char *qemu, struct err *err)
{
	t->qemu = xstrdup(qemu);
	return unpack(t, err);
}

int tracer_open(struct tracer *t, const char *qemu, struct err *err)
{
	if (t->preload)
		return open_library(t, err);
	int rc = find_qemu(t, qemu, err);

	if (!rc)
		rc = unpack(t, err);
	return rc ? rc : pm_selftest_run(t, err);
}

void tracer_close(struct tracer *t)
{
	free(t->qemu);
	free(t->version);
	util_close(t->plugin);
	*t = (struct tracer)TRACER_INIT;
}

/* ---- a run ---- */

struct words_list vec_of(const char *);

/* Adds a path with doubled commas: a single comma ends an argument of the plugin. */
static void add_quoted(struct strbuf *sb, const char *s)
{
	for (; *s; s++) {
		strbuf_addch(sb, *s);
		if (*s == ',')
			strbuf_addch(sb, ',');
	}
}

/* The files of a run, in memory. */
struct files {
	int stream, maps;
};

static int run_emulated(const struct tracer *t, const struct files *f, const char *file,
			const char *program, const char *const *argv, uint64_t timeout_ms,
			struct traced *out, struct err *err)
{
	auto_strbuf plugin = STRBUF_INIT;
	auto_vec struct words_list list = { 0 };

	strbuf_addf(&plugin, "/proc/self/fd/%d,stream=/proc/self/fd/%d,maps=/proc/self/fd/%d",
		    t->plugin, f->stream, f->maps);
	strbuf_adds(&plugin, ",region=user:");
	add_quoted(&plugin, file);
	if (t->loads)
		strbuf_adds(&plugin, ",loads=on");
	if (t->stacks)
		strbuf_adds(&plugin, ",stacks=on");
	if (!t->filter)
		strbuf_adds(&plugin, ",filter=off");
	vec_push(&list, t->qemu);
	vec_push(&list, "-cpu");
	vec_push(&list, "max");
	vec_push(&list, "-plugin");
	vec_push(&list, strbuf_str(&plugin));
	/* The emulator searches no PATH, and gives no message if the program is missing. */
	for (size_t i = 0; argv[i]; i++)
		vec_push(&list, i ? argv[i] : program);
	vec_push(&list, NULL);
	struct proc_opts o = { .argv = list.v, .timeout_ms = timeout_ms, .merge_stderr = true };
	return proc_run(&o, &out->end, err);
}

static void set_path(const char *name, pid_t holder, int fd, const char *more)
{
	auto_free char *value =
		xasprintf("/proc/%d/fd/%d%s%s", holder, fd, more ? ":" : "", more ? more : "");

	setenv(name, value, 1);
}

/*
 * Starts a process that holds the descriptors, so that paths in /proc name them even if the program
 * closes its own. For an ordinary user the holder has no capabilities: this process has those of
 * its user namespace, so the kernel hides its descriptors from processes with fewer. Returns the
 * process, or -errno.
 */
static pid_t start_holder(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	int ready[2];
	char c;

	if (!geteuid())
		return getpid();
	if (pipe2(ready, O_CLOEXEC))
		return -errno;
	pid_t parent = getpid(), pid = fork();
	if (!pid) {
		proc_tie(parent);
		if (syscall(SYS_capset, &head, none) || prctl(PR_SET_DUMPABLE, 1) ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	int rc = pid < 0 ? -errno : pid;
	util_close(ready[1]);
	if (pid > 0 && io_read_full(ready[0], &c, 1) != 1) {
		waitpid(pid, NULL, 0);
		rc = -EPERM;
	}
	util_close(ready[0]);
	return rc;
}

static void end_holder(pid_t holder)
{
	if (holder == getpid())
		return;
	kill(holder, SIGKILL);
	while (waitpid(holder, NULL, 0) < 0 && errno == EINTR)
		;
}

static int run_preloaded(const struct tracer *t, const struct files *f, const char *file,
			 const char *const *argv, uint64_t timeout_ms, struct traced *out,
			 struct err *err)
{
	struct proc_opts o = { .argv = argv, .timeout_ms = timeout_ms, .merge_stderr = true };
	const char *was = getenv("LD_PRELOAD");
	auto_free char *before = was ? xstrdup(was) : NULL;

	pid_t holder = start_holder();

	if (holder < 0)
		return err_set(err, holder, "cannot start a process: %s", strerror(-holder));
	/* Without randomized addresses, findings of several runs can be compared. */
	int persona = personality(0xffffffff);
	if (persona >= 0)
		personality((unsigned long)persona | ADDR_NO_RANDOMIZE);
	set_path("LD_PRELOAD", holder, t->plugin, before);
	set_path("OUTAGE_PM_STREAM", holder, f->stream, NULL);
	set_path("OUTAGE_PM_MAPS", holder, f->maps, NULL);
	setenv("OUTAGE_PM_FILE", file, 1);
	int rc = proc_run(&o, &out->end, err);
	end_holder(holder);
	if (persona >= 0)
		personality((unsigned long)persona);
	unsetenv("OUTAGE_PM_STREAM");
	unsetenv("OUTAGE_PM_MAPS");
	unsetenv("OUTAGE_PM_FILE");
	if (before)
		setenv("LD_PRELOAD", before, 1);
	else
		unsetenv("LD_PRELOAD");
	return rc;
}

static int take(const struct files *f, struct traced *x, struct err *err)
{
	auto_strbuf maps = STRBUF_INIT;
	void *p = mmap(NULL, x->len, PROT_READ, MAP_SHARED | MAP_NORESERVE, f->stream, 0);

	if (p == MAP_FAILED)
		return err_set(err, -errno, "cannot map the tracer's stream: %m");
	x->stream = p;
	(void)!io_slurp(fd_path(f->maps).text, MAPS_MAX, &maps,
			NULL); /* without names the run goes on */
	x->maps = xstrdup(strbuf_str(&maps));
	return 0;
}

int tracer_run(const struct tracer *t, const char *file, const char *const *argv,
	       uint64_t timeout_ms, struct traced *out, struct err *err)
{
	uint64_t limit = t->limit ? t->limit : STREAM_LIMIT;
	auto_fd stream = memory_file("outage-pm-stream", NULL, limit, err);
	auto_fd maps = stream < 0 ? -1 : memory_file("outage-pm-maps", NULL, 0, err);
	struct files f = { stream, maps };
	struct traced x = { .len = limit };

	if (stream < 0 || maps < 0)
		return stream < 0 ? stream : maps;
	auto_free char *program = find_program(argv[0]);
	if (!program)
		return err_set(err, -ENOENT, "there is no program %s that can be run", argv[0]);
	int rc = t->preload ? run_preloaded(t, &f, file, argv, timeout_ms, &x, err)
			    : run_emulated(t, &f, file, program, argv, timeout_ms, &x, err);
	if (!rc)
		rc = take(&f, &x, err);
	if (rc)
		traced_release(&x);
	else
		*out = x;
	return rc;
}

void traced_release(struct traced *x)
{
	if (x->stream)
		munmap(x->stream, x->len);
	proc_result_release(&x->end);
	free(x->maps);
	*x = (struct traced){ 0 };
}
