/* SPDX-License-Identifier: MIT */
/*
 * forget-model.c - drives a mount that forgets with random operations of several threads, and
 * compares it with a model (forget-model.h) after each of them and after each power cut.
 *
 *	forget-model [profile=NAME] [seed=N] [lives=N] [time=SECONDS] [server=PATH] DIR
 *	forget-model cases [case=N] [server=PATH] DIR
 *
 * A life is a new ROOT below DIR with one profile: rounds of operations, in which each thread works
 * in a directory of its own, and between them faults and power cuts. Threads work at the same time;
 * only syncs that make durable what belongs to others wait for everything else, so that the model
 *is exact. At the end come rounds without turns, of which only the live state and what must hold
 *under races is compared; in the last one the server is killed in the middle.
 *
 * The operations of each thread follow from seed and profile. The first difference ends the program
 * with status 1; it says what is needed to see it again. FORGET_MODEL_HISTORY=N in the environment
 * shows N operations of each thread then, and FORGET_MODEL_LOG what the server says. With
 * patience=SECONDS it waits so long for what the kernel is told late, and not five minutes.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "forget-world.h"
#include "forget/forget.h"

enum { ROUNDS = 8, OPERATIONS = 80, STRIKES = 3, STUCK_S = 600 };

static struct world world;
static uint64_t patience_s = 300; /* until something comes right */
static pthread_mutex_t speaking = PTHREAD_MUTEX_INITIALIZER;

/* ---- telling ---- */

void note(struct worker *k, const char *fmt, ...)
{
	char *line = k->history[k->n_history++ % HISTORY];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, TEXT, fmt, ap);
	va_end(ap);
}

/* Without a look at the mount, which may hang. A number that was ours may be another mount's now.
 */
static bool is_mounted_as(const char *mnt, unsigned minor_number)
{
	auto_strbuf text = STRBUF_INIT;
	auto_free char *line = xasprintf(" 0:%u / %s ", minor_number, mnt);

	return !io_slurp("/proc/self/mountinfo", 64 << 20, &text, NULL) &&
	       strstr(strbuf_str(&text), line);
}

static void end_by_force(void)
{
	char path[64];

	if (is_mounted_as(world.mnt, world.minor)) {
		snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/abort", world.minor);
		auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, "1", 1) != 1)
			fprintf(stderr, "# the connection cannot be aborted\n");
	}
	if (world.pid > 0)
		kill(world.pid, SIGKILL);
	umount2(world.mnt, MNT_DETACH);
}

static void tell_history(const struct worker *k)
{
	const char *more = getenv("FORGET_MODEL_HISTORY");
	unsigned n = more ? (unsigned)strtoul(more, NULL, 10) : SHOWN;

	n = min(min(n, k->n_history), (unsigned)HISTORY);

	fprintf(stderr, "# the last operations of thread %d, the last one at the end:\n", k->id);
	for (unsigned i = k->n_history - n; i < k->n_history; i++)
		fprintf(stderr, "#   %u: %s\n", i, k->history[i % HISTORY]);
}

/* Others of this machine look at every mount now and then, and one is busy while they do. */
void unmount(struct worker *k)
{
	int rc = umount2(world.mnt, 0);

	for (int i = 0; rc && errno == EBUSY && i < 3000; i++) {
		util_sleep_ms(100);
		rc = umount2(world.mnt, 0);
	}
	if (rc)
		differs(k, "it failed: %s", strerror(errno));
}

void comes_right(struct worker *k, void (*fn)(struct worker *k, void *ctx), void *ctx)
{
	volatile unsigned tries = 0;
	jmp_buf again;

	if (setjmp(again))
		util_sleep_ms(++tries < 50 ? 5 : 1000);
	k->again = tries < 50 + patience_s ? &again : NULL;
	fn(k, ctx);
	k->again = NULL;
}

noreturn void differs(struct worker *k, const char *fmt, ...)
{
	va_list ap;

	if (world.over) /* the mount was killed under this thread */
		pthread_exit(NULL);
	if (k->again)
		longjmp(*k->again, 1);
	pthread_mutex_lock(&speaking); /* for ever: the first one speaks */
	fprintf(stderr, "# seed=%llu profile=%s%s: thread %d, operation %u, %s\n# ",
		(unsigned long long)world.seed, world.model.profile->name,
		world.race ? " (in a race)" : "", k->id, k->n_history - 1,
		k->n_history ? k->history[(k->n_history - 1) % HISTORY] : "at the start");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	tell_history(k);
	for (int i = 0; i < WORKERS && getenv("FORGET_MODEL_HISTORY"); i++)
		if (&world.workers[i] != k)
			tell_history(&world.workers[i]);
	end_by_force();
	_exit(1);
}

static noreturn void give_up(const char *what)
{
	fprintf(stderr, "# seed=%llu: %s: %s\n", (unsigned long long)world.seed, what,
		strerror(errno));
	end_by_force();
	_exit(2);
}

/* A mount that hangs is ended by force, so that nothing waits for ever. */
static void *watch(void *ctx)
{
	unsigned long last = 0;
	unsigned quiet = 0;

	(void)ctx;
	for (;;) {
		util_sleep_ms(1000);
		quiet = world.done == last ? quiet + 1 : 0;
		last = world.done;
		if (quiet < STUCK_S)
			continue;
		fprintf(stderr, "# seed=%llu profile=%s: nothing has happened for %d seconds\n",
			(unsigned long long)world.seed, world.model.profile->name, STUCK_S);
		for (int i = 0; i < WORKERS; i++)
			tell_history(&world.workers[i]);
		end_by_force();
		_exit(1);
	}
}

/* ---- the server ---- */

static bool read_line(struct world *w, char *line, size_t size)
{
	size_t n = 0;

	while (n + 1 < size && read(w->from, &line[n], 1) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
	return n;
}

bool command(struct world *w, char *answer, size_t size, const char *fmt, ...)
{
	char line[2048];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	line[n++] = '\n';
	if (write(w->to, line, (size_t)n) != n)
		give_up("the server does not listen");
	snprintf(answer, size, "it gave no answer");
	while (read_line(w, line, sizeof(line))) {
		if (streq(line, "ok"))
			return true;
		snprintf(answer, size, "%s", line);
		if (!strncmp(line, "error: ", 7))
			return false;
	}
	return false;
}

void server_start(struct world *w, struct worker *k)
{
	int in[2], out[2];
	char line[256];
	struct stat st;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		give_up("pipe");
	w->pid = fork();
	if (w->pid < 0)
		give_up("fork");
	if (!w->pid) {
		auto_fd null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(in[0], 0);
		dup2(out[1], 1);
		if (!getenv("FORGET_MODEL_LOG"))
			dup2(null, 2);
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		execl(w->server, w->server, w->model.profile->name, w->root, w->mnt, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	w->to = in[1];
	w->from = out[0];
	if (!read_line(w, line, sizeof(line)) || !streq(line, "mounted"))
		differs(k, "the mount does not start: '%s'", line);
	if (!stat(w->mnt, &st))
		w->minor = minor(st.st_dev);
	atomic_fetch_add(&w->done, 1);
}

void server_kill(struct world *w)
{
	kill(w->pid, SIGKILL);
}

static void check_stash(struct world *w, struct worker *k)
{
	auto_free char *path = xasprintf("%s/.outage-stash", w->root);

	if (!w->has_kept && !access(path, F_OK))
		differs(k, "%s is left behind", path);
}

void server_end(struct world *w, struct worker *k, int status)
{
	struct err err = ERR_INIT;
	int got = 0;

	for (int i = 0; i < 3000 && !waitpid(w->pid, &got, WNOHANG); i++) {
		if (i == 2999)
			differs(k, "the server does not end");
		util_sleep_ms(i < 100 ? 5 : 100);
	}
	w->pid = -1;
	close(w->to);
	close(w->from);
	if (status >= 0 && (!WIFEXITED(got) || WEXITSTATUS(got) != status))
		differs(k, "the server ended with status %x, and should with %d", (unsigned)got,
			status);
	/* A guardian may be about to, and a busy machine lets it wait; then nothing is left to do.
	 */
	int rc = forget_recover(w->root, &err);
	for (int i = 0; i < 300 && rc == -EBUSY; i++) {
		err_clear(&err);
		util_sleep_ms(100);
		rc = forget_recover(w->root, &err);
	}
	if (rc < 0)
		differs(k, "what the server left cannot be undone: %s", err.msg);
	umount2(w->mnt, MNT_DETACH);
	check_stash(w, k);
	atomic_fetch_add(&w->done, 1);
}

/* ---- rounds ---- */

static void *exact_round(void *ctx)
{
	struct worker *k = ctx;

	for (int i = 0; i < k->w->operations; i++) {
		work_once(k);
		step_end(k);
	}
	return NULL;
}

static void *race_round(void *ctx)
{
	struct worker *k = ctx;

	for (int i = 0; i < k->w->operations && !k->w->over; i++) {
		if (below(k, 3))
			work_once(k);
		else if (below(k, 3))
			share_once(k);
		else if (!keep_one(k))
			break;
	}
	return NULL;
}

static void run_round(struct world *w, void *(*fn)(void *ctx), int kill_after_ms)
{
	pthread_t threads[WORKERS];

	w->steps = fn == exact_round;
	w->operations = OPERATIONS / 10 + (int)below(&w->workers[0], OPERATIONS);
	w->few_syncs = below(&w->workers[0], 2);
	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&threads[i], NULL, fn, &w->workers[i]))
			give_up("pthread_create");
	if (kill_after_ms >= 0) {
		util_sleep_ms((unsigned)kill_after_ms);
		w->over = true;
		server_kill(w);
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	w->steps = false;
}

static void set_up(struct world *w, struct worker *k)
{
	char path[PATH], answer[256];

	server_start(w, k);
	for (int i = 0; i < WORKERS; i++) {
		snprintf(path, sizeof(path), "%s/n%d", w->mnt, i);
		if (mkdir(path, 0755))
			differs(k, "mkdir of %s failed: %s", path, strerror(errno));
		w->workers[i].home = model_inode(&w->model, S_IFDIR, 0755);
		model_make(&w->model, w->model.root, i, w->workers[i].home);
	}
	snprintf(path, sizeof(path), "%s/shared", w->mnt);
	if (mkdir(path, 0755) || !command(w, answer, sizeof(answer), "checkpoint"))
		differs(k, "it cannot be set up: %s", answer);
	model_sync_all(&w->model);
}

static void race(struct world *w, struct worker *k)
{
	char answer[256];

	w->race = true;
	run_round(w, race_round, -1);
	for (int i = 0; i < WORKERS; i++)
		check_shared(&w->workers[i], w->mnt);
	check_all(k, w->mnt);
	/* What a failed sync left is said, and nothing more can be done about it. */
	if (!command(w, answer, sizeof(answer), "checkpoint") && !strstr(answer, "a sync of "))
		differs(k, "not everything becomes durable: %s", answer);
	model_sync_all(&w->model);
	w->race = false;
}

static void last_race(struct world *w, struct worker *k)
{
	w->race = true;
	run_round(w, race_round, (int)below(k, 60));
	w->over = false;
	server_end(w, k, -1);
	for (int i = 0; i < WORKERS; i++) {
		check_kept(&w->workers[i], w->root);
		check_shared(&w->workers[i], w->root);
	}
	w->race = false;
}

static void last_unmount(struct world *w, struct worker *k)
{
	for (int i = 0; i < WORKERS; i++)
		close_all(&w->workers[i]);
	note(k, "unmount for the last time");
	unmount(k);
	model_sync_all(&w->model);
	model_lose(&w->model, SURVIVE_NONE);
	server_end(w, k, 0);
	check_all(k, w->root);
}

static void live_once(struct world *w)
{
	struct worker *k = &w->workers[0];

	set_up(w, k);
	for (int r = 0; r < ROUNDS; r++) {
		run_round(w, exact_round, -1);
		check_all(k, w->mnt);
		for (int i = 0; i < STRIKES; i++) {
			k = &w->workers[below(k, WORKERS)];
			strike_once(k);
		}
		if (below(k, 2))
			end_once(k);
	}
	race(w, k);
	run_round(w, exact_round, -1);
	check_all(k, w->mnt);
	switch (below(k, 4)) {
	case 0:
		last_unmount(w, k);
		break;
	case 1:
		end_by_chance(k);
		for (int i = 0; i < WORKERS; i++) {
			check_kept(&w->workers[i], w->root);
			check_shared(&w->workers[i], w->root);
		}
		break;
	default:
		last_race(w, k);
	}
}

/* ---- lives ---- */

static void run_command(const char *fmt, const char *a)
{
	auto_free char *line = xasprintf(fmt, a);

	if (system(line))
		give_up(line);
}

/* Whether directories count the ones in them. */
static bool counts_dirs(const char *root)
{
	struct stat st;

	return !stat(root, &st) && st.st_nlink == 2;
}

static void case_once(struct world *w, const struct forget_case *c)
{
	struct worker *k = &w->workers[0];

	note(k, "%s", c->name);
	server_start(w, k);
	c->fn(k);
	unmount(k);
	server_end(w, k, 0);
	printf("%s\n", c->name);
}

static void life(struct world *w, const struct profile *p, uint64_t seed,
		 const struct forget_case *c)
{
	static struct worker workers[WORKERS];

	char root[PATH];

	/* A new one each time: a guardian of the last may still be busy. */
	snprintf(root, sizeof(root), "%s/root-%d-%llu", w->dir, getpid(),
		 (unsigned long long)w->life++);
	w->root = root;
	if (mkdir(root, 0755))
		give_up(root);
	w->dir_links = counts_dirs(w->root);
	w->seed = seed;
	model_init(&w->model, p);
	w->workers = workers;
	for (int i = 0; i < WORKERS; i++) {
		struct worker *k = &workers[i];

		*k = (struct worker){ .w = w, .id = i };
		rng_init(&k->rng, hash64(p->name, strlen(p->name)) ^ (seed * WORKERS + i));
		for (int o = 0; o < OPENS; o++)
			k->open[o].fd = -1;
	}
	if (c)
		case_once(w, c);
	else
		live_once(w);
	for (int i = 0; i < WORKERS; i++)
		close_all(&workers[i]);
	model_release(&w->model);
	if (w->has_kept)
		model_release(&w->kept);
	w->has_kept = false;
	run_command("rm -rf '%s'", root);
}

/* Mounts are nobody else's; what is left of them goes with us. */
static void own_mounts(void)
{
	struct stat st;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		give_up("a mount namespace (this needs root)");
	/* for the file that ends a connection by force */
	if (stat("/sys/fs/fuse/connections", &st) == 0)
		mount("fusectl", "/sys/fs/fuse/connections", "fusectl", 0, NULL);
}

static bool number(const char *arg, const char *key, uint64_t *out)
{
	size_t n = strlen(key);

	if (strncmp(arg, key, n))
		return false;
	*out = strtoull(arg + n, NULL, 10);
	return true;
}

static char *near_us(const char *name)
{
	char self[PATH];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		give_up("/proc/self/exe");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	return xasprintf("%s/%s", self, name);
}

static void start_watching(void)
{
	static struct worker nobody[WORKERS];
	pthread_t watcher;

	world.workers = nobody; /* there must be something to speak of */
	world.model.profile = profile_at(0);
	if (pthread_create(&watcher, NULL, watch, NULL))
		give_up("pthread_create");
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, only_case = 0, lives = 0, seconds = 0, n = 0, start = util_now_ns();
	const struct profile *only = NULL;
	auto_free char *server = near_us("forget-server"), *mnt = NULL;
	size_t profiles = 0;

	world.server = server;
	for (int i = 1; i < argc - 1; i++) {
		if (i == 1 && streq(argv[i], "cases"))
			continue;
		if (number(argv[i], "seed=", &seed) || number(argv[i], "lives=", &lives) ||
		    number(argv[i], "patience=", &patience_s) ||
		    number(argv[i], "time=", &seconds) || number(argv[i], "case=", &only_case))
			continue;
		if (!strncmp(argv[i], "profile=", 8) && (only = profile_find(argv[i] + 8)))
			continue;
		if (!strncmp(argv[i], "server=", 7)) {
			world.server = argv[i] + 7;
			continue;
		}
		fprintf(stderr, "forget-model: '%s' means nothing\n", argv[i]);
		return 2;
	}
	if (argc < 2)
		return 2;
	mnt = xasprintf("%s/mnt", argv[argc - 1]);
	world.dir = argv[argc - 1];
	world.mnt = mnt;
	mkdir(mnt, 0755);
	umask(0);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGBUS, on_bus_error);
	own_mounts();
	pthread_barrier_init(&world.together, NULL, WORKERS);
	pthread_barrier_init(&world.apart, NULL, WORKERS);
	pthread_mutex_init(&world.turn_lock, NULL);
	pthread_cond_init(&world.turn_done, NULL);
	start_watching();
	if (argc > 2 && streq(argv[1], "cases")) {
		for (const struct forget_case *c = forget_cases; c->name; c++)
			if (!only_case || only_case == (uint64_t)(c - forget_cases) + 1)
				life(&world, profile_find(c->profile), 0, c);
		return 0;
	}
	while (profile_at(profiles))
		profiles++;
	for (; n < lives || (!lives && (util_now_ns() - start) / 1000000000 < seconds); n++)
		life(&world, only ? only : profile_at(n % profiles),
		     only ? seed + n : seed + n / profiles, NULL);
	printf("%llu lives, %lu operations, %lu losses, %lu faults, no difference\n",
	       (unsigned long long)n, world.done, world.losses, world.faults);
	return 0;
}
