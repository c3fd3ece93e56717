/* SPDX-License-Identifier: MIT */
/*
 * vhost-qemu.c - the disk of a guest, with QEMU as its front end: the firmware reads the first
 * sector, which is a program that writes itself to another one.
 *
 *	vhost-qemu QEMU		exit status 0 if both are in the record, and the content is right
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/vhost_disk.h"

enum { DISK_BYTES = 1 << 20, SECTOR = 512, TARGET = 5, SECONDS = 900 };

/* For the mode in which a PC starts: the firmware's function to write, and then nothing. */
static const unsigned char program[] = {
	0x31, 0xc0,	  /* ax = 0 */
	0x8e, 0xd8,	  /* ds = ax */
	0xbe, 0x20, 0x7c, /* si = where the order is */
	0xb8, 0x00, 0x43, /* write; dl is the drive already */
	0xcd, 0x13,	  /* do it */
	0xf4,		  /* sleep */
	0xeb, 0xfd,	  /* and again */
};
/* At 0x20: its length, one sector, from where this program is, to TARGET. */
static const unsigned char order[16] = { 16, 0, 1, 0, 0x00, 0x7c, 0, 0, TARGET };

static int fail(const char *what, const struct err *err)
{
	fprintf(stderr, "%s: %s\n", what, err->msg);
	return 1;
}

static pid_t start_qemu(const char *qemu, int place)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fcntl(place, F_SETFD, 0);
	auto_free char *chardev = xasprintf("socket,id=c,path=/proc/self/fd/%d", place);
	execl(qemu, qemu, "-nodefaults", "-display", "none", "-no-reboot", "-accel", "tcg", "-m",
	      "64", "-M", "pc,memory-backend=m", "-object",
	      "memory-backend-memfd,id=m,size=64M,share=on", "-chardev", chardev, "-device",
	      "vhost-user-blk-pci,chardev=c,num-queues=1", (char *)NULL);
	perror(qemu);
	_exit(127);
}

static bool has(const struct trace *t, enum event_kind kind, uint64_t addr)
{
	for (size_t i = 0; i < t->events.n; i++)
		if (t->events.v[i].kind == kind && t->events.v[i].addr == addr)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	unsigned char sector[SECTOR] = { 0 }, back[SECTOR];
	struct err err = ERR_INIT;
	struct image img;
	struct disk *d;
	auto_trace t;

	if (argc != 2)
		return 2;
	memcpy(sector, program, sizeof(program));
	memcpy(sector + 0x20, order, sizeof(order));
	sector[510] = 0x55;
	sector[511] = 0xaa;
	trace_init(&t);
	image_init(&img, DISK_BYTES);
	image_write(&img, 0, sector, SECTOR);
	if (vhost_disk_open(DISK_BYTES, &d, &err) || disk_load(d, &img, &err) ||
	    vhost_listen(vhost_disk_device(d), &err) || disk_start(d, &t, &err))
		return fail("the disk cannot be made", &err);
	struct vhost *v = vhost_disk_device(d);
	pid_t pid = start_qemu(argv[1], v->place);
	uint64_t start = util_now_ns();
	while (!has(&t, EV_WRITE, TARGET * SECTOR) && !waitpid(pid, NULL, WNOHANG) &&
	       util_now_ns() - start < SECONDS * 1000000000ULL) {
		struct pollfd fds[VHOST_POLL_MAX];

		poll(fds, vhost_poll(v, fds), 100);
		vhost_serve(v);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (disk_stop(d, &err))
		return fail("the record is not right", &err);
	image_read(disk_image(d), TARGET * SECTOR, back, SECTOR);
	bool right = has(&t, EV_READ, 0) && has(&t, EV_WRITE, TARGET * SECTOR) &&
		     memcmp(back, sector, SECTOR) == 0;
	printf("%zu events, %s%s\n", t.events.n, right ? "right" : "wrong", v->why);
	image_release(&img);
	disk_close(d);
	return !right;
}
