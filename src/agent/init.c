/* SPDX-License-Identifier: MIT */
/*
 * init.c - the agent: a static program that is init in a guest, and performs the commands of the
 * host. The agent is made of the same rooms as the host's program, so an operation is performed,
 * and a tree walked, in the same way on both sides.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <outage/mark.h>

#include "agent/agent.h"
#include "base/io.h"

enum { DISKS = 4, ALIGN = 4096, WAIT_TRIES = 5000, MODULES_MAX = 32, KEEP_BYTES = 1 << 20 };

/* Prints a message, which the host reads on the console, and gives up. */
static void give_up(const char *what)
{
	fprintf(stderr, "outage-agent: %s: %s\n", what, strerror(errno));
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void make_place(const char *dir, const char *type)
{
	if ((mkdir(dir, 0755) < 0 && errno != EEXIST) ||
	    (type && mount(type, dir, type, 0, NULL) < 0 && errno != EBUSY))
		give_up(dir);
}

/* Disables programs that the kernel would start at each event of a device: there are none. */
static void start_no_programs(void)
{
	static const char *const names[] = { "/proc/sys/kernel/hotplug",
					     "/proc/sys/kernel/modprobe" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		auto_fd fd = open(names[i], O_WRONLY | O_CLOEXEC);

		if (fd >= 0 && write(fd, "\n", 1) < 0)
			fprintf(stderr, "outage-agent: %s: %s\n", names[i], strerror(errno));
	}
}

/* Reads a line of a file in /sys, without its line end; "" if there is none. */
static void read_line(const char *path, char *out, size_t size)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : io_read_full(fd, out, size - 1);

	out[n < 0 ? 0 : n] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

/*
 * Loads the modules /modules/00, /modules/01, ... in their order, with the parameters in
 * /modules/00.args and so on.
 */
static void load_modules(void)
{
	for (int i = 0; i < MODULES_MAX; i++) {
		char path[32], args[2048];

		snprintf(path, sizeof(path), "/modules/%02d.args", i);
		read_line(path, args, sizeof(args));
		snprintf(path, sizeof(path), "/modules/%02d", i);
		auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return;
		if (syscall(SYS_finit_module, fd, args, 0) < 0 && errno != EEXIST)
			give_up(path);
	}
}

/* Makes a node for the disk with the serial `id`; `name` gets the kernel's name for it. */
static bool find_disk(const char *id, const char *node, char name[16])
{
	char path[64], text[64];
	unsigned major_no, minor_no;

	for (int i = 0; i < DISKS; i++) {
		snprintf(path, sizeof(path), "/sys/block/vd%c/serial", 'a' + i);
		read_line(path, text, sizeof(text));
		if (!streq(text, id))
			continue;
		snprintf(name, 16, "vd%c", 'a' + i);
		snprintf(path, sizeof(path), "/sys/block/vd%c/dev", 'a' + i);
		read_line(path, text, sizeof(text));
		return sscanf(text, "%u:%u", &major_no, &minor_no) == 2 &&
		       mknod(node, S_IFBLK | 0600, makedev(major_no, minor_no)) == 0;
	}
	return false;
}

/* Finds persistent memory, which has no serial: there is one such device, ours. */
static bool find_pmem(const char *node, char name[16])
{
	char text[64];
	unsigned major_no, minor_no;

	read_line("/sys/block/pmem0/dev", text, sizeof(text));
	snprintf(name, 16, "pmem0");
	return sscanf(text, "%u:%u", &major_no, &minor_no) == 2 &&
	       mknod(node, S_IFBLK | 0600, makedev(major_no, minor_no)) == 0;
}

static void wait_for_disk(const char *id, const char *node, char name[16])
{
	bool is_mail = streq(id, MAIL_ID);

	for (int tries = 0; !find_disk(id, node, name) && (is_mail || !find_pmem(node, name));
	     tries++) {
		errno = ENODEV;
		if (tries == WAIT_TRIES)
			give_up(NO_DISK);
		usleep(1000);
	}
}

/* ---- the mailbox ---- */

struct mailbox {
	int fd;
	unsigned char *in, *out; /* aligned */
	size_t in_size, out_size;
};

static void make_room(unsigned char **buf, size_t *size, size_t want)
{
	void *p;

	if (want <= *size)
		return;
	want = (want + ALIGN - 1) / ALIGN * ALIGN;
	if (posix_memalign(&p, ALIGN, want))
		give_up("memory");
	if (*size)
		memcpy(p, *buf, *size);
	free(*buf);
	*buf = p;
	*size = want;
}

static void forget_large(unsigned char **buf, size_t *size)
{
	if (*size <= KEEP_BYTES)
		return;
	free(*buf);
	*buf = NULL;
	*size = 0;
}

/* Waits for a message. */
static void receive(struct mailbox *m, struct wire_head *head)
{
	struct err err = ERR_INIT;

	forget_large(&m->in, &m->in_size);
	make_room(&m->in, &m->in_size, MAIL_READ);
	if (io_pread_full(m->fd, m->in, MAIL_READ, MAIL_COMMANDS) != MAIL_READ)
		give_up("the mailbox cannot be read");
	errno = EPROTO;
	if (wire_head(m->in, head, &err))
		give_up(err.msg);
	size_t all = WIRE_HEAD + (size_t)head->len;
	if (all <= MAIL_READ)
		return;
	make_room(&m->in, &m->in_size, all);
	size_t rest = m->in_size - MAIL_READ;
	if (io_pread_full(m->fd, m->in + MAIL_READ, rest, MAIL_COMMANDS + MAIL_READ) !=
	    (ssize_t)rest)
		give_up("the mailbox cannot be read");
}

static void answer(struct mailbox *m, const struct strbuf *text)
{
	size_t all = (text->len + 511) / 512 * 512;

	make_room(&m->out, &m->out_size, all);
	assert(m->out && text->buf);
	memcpy(m->out, text->buf, text->len);
	memset(m->out + text->len, 0, all - text->len);
	if (io_pwrite_full(m->fd, m->out, all, MAIL_ANSWERS))
		give_up("the mailbox cannot be written");
	forget_large(&m->out, &m->out_size);
}

static void follow(struct agent *a, struct mailbox *m, struct wire_out *w)
{
	struct wire_head head;
	uint32_t command;
	int32_t status, rc = 0;
	struct wire_in part;

	receive(m, &head);
	struct wire_in in = { m->in + WIRE_HEAD, head.len, false };
	wire_start(w, head.serial);
	while (wire_next(&in, &command, &status, &part)) {
		wire_part(w, command, 0);
		if (!rc)
			rc = agent_do(a, command, &part, &w->text);
		else
			rc = AGENT_NOT_DONE;
		if (!rc && w->text.len > WIRE_MAX)
			rc = -EMSGSIZE;
		if (rc)
			wire_fail(w, rc);
	}
	wire_finish(w);
	answer(m, &w->text);
	/* A buffer that was long once is freed, as the file system could use the memory. */
	if (w->text.cap > KEEP_BYTES)
		wire_release(w);
}

/* ---- for commands of workloads ---- */

/*
 * Performs "outage mark text WORDS...", as outage-mark(1): marks a crash point in the trace. The
 * agent itself marks operations.
 */
static int be_outage(int argc, char **argv)
{
	auto_strbuf text = STRBUF_INIT;

	if (argc < 4 || !streq(argv[1], "mark") || !streq(argv[2], "text")) {
		fputs("outage: in a guest there is only: outage mark text TEXT\n", stderr);
		return 2;
	}
	for (int i = 3; i < argc; i++)
		strbuf_addf(&text, "%s%s", i > 3 ? " " : "", argv[i]);
	outage_mark_text(strbuf_str(&text), min(text.len, (size_t)OUTAGE_MARK_TEXT_MAX));
	return 0;
}

static bool called_outage(const char *name)
{
	const char *slash = name ? strrchr(name, '/') : NULL;

	return name && streq(slash ? slash + 1 : name, "outage");
}

int main(int argc, char **argv)
{
	if (called_outage(argv[0]))
		return be_outage(argc, argv);

	struct agent a = { .root = -1 };
	struct mailbox m = { 0 };
	struct wire_out w = { 0 };
	char mail[16];

	make_place("/proc", "proc");
	make_place("/sys", "sysfs");
	make_place("/dev", "devtmpfs");
	make_place("/host", NULL);
	make_place(AGENT_MNT, NULL);
	start_no_programs();
	load_modules();
	wait_for_disk(MAIL_ID, "/dev/mail", mail);
	wait_for_disk(DISK_ID, AGENT_DISK, a.disk);
	workload_init(&a.workload);
	signal(SIGPIPE, SIG_IGN);
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	m.fd = open("/dev/mail", O_RDWR | O_DIRECT | O_CLOEXEC);
	if (m.fd < 0)
		give_up("/dev/mail");
	for (;;)
		follow(&a, &m, &w);
}
