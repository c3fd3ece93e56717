/* SPDX-License-Identifier: MIT */
/* Which lines of the kernel's log are complaints, which are routine, and whose they are. */
#include "check/kmsg.h"
#include "tap.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const complaints[] = {
	/* of the device */
	"EXT4-fs error (device loop3): ext4_lookup:1791: inode #2: comm outage: iget: checksum "
	"invalid",
	"EXT4-fs (loop3): warning: mounting fs with errors, running e2fsck is recommended",
	"EXT4-fs (loop3): failed to parse options in superblock",
	"EXT4-fs (loop3): Remounting filesystem read-only",
	"EXT4-fs (loop3): delayed block allocation failed for inode 13 at logical offset 0",
	"JBD2: Detected IO errors 5 while flushing file data on loop3-8",
	"Aborting journal on device loop3-8.",
	"JBD2: journal checksum error on device loop3-8, but continuing",
	"EXT2-fs (loop3): error: ext2_check_page: bad entry in directory #12",
	"XFS (loop3): Corruption detected. Unmount and run xfs_repair",
	"XFS (loop3): Metadata CRC error detected at xfs_agi_read_verify+0x9e/0x110 [xfs], xfs_agi "
	"block 0x2",
	"XFS (loop3): Internal error xfs_trans_cancel at line 954 of file fs/xfs/xfs_trans.c.",
	"XFS (loop3): Metadata corruption detected at xfs_dinode_verify, inode 0x83 dinode",
	"XFS (loop3): log mount failed",
	"XFS (loop3): Filesystem has been shut down due to log error (0x2).",
	"XFS (loop3): log recovery write I/O error at daddr 0x20 len 4096 error -5",
	"BTRFS critical (device loop3): corrupt leaf: root=1 block=30490624 slot=0, invalid key",
	"BTRFS error (device loop3): parent transid verify failed on logical 30408704 mirror 1",
	"BTRFS error (device loop3 state EA): open_ctree failed: -5",
	"BTRFS: error (device loop3) in btrfs_replay_log:2519: errno=-22 unknown (Failed to "
	"recover)",
	"BTRFS warning (device loop3): checksum verify failed on logical 30408704 mirror 1 wanted",
	"BTRFS info (device loop3: state EA): forced readonly",
	"I/O error, dev loop3, sector 16 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
	"Buffer I/O error on dev loop3, logical block 2, lost async page write",
	"F2FS-fs (loop3): inconsistent node block, nid:3",
	/* of the kernel itself, whatever it is about */
	"BUG: kernel NULL pointer dereference, address: 0000000000000008",
	"kernel BUG at fs/ext4/inode.c:2721!",
	"WARNING: CPU: 1 PID: 4711 at fs/btrfs/inode.c:1234 btrfs_evict_inode+0x1/0x2 [btrfs]",
	"Oops: 0000 [#1] PREEMPT SMP NOPTI",
	"divide error: 0000 [#1] PREEMPT SMP NOPTI",
	"Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1]",
	"general protection fault, probably for non-canonical address 0xdead000000000100: 0000 "
	"[#1]",
	"INFO: task outage:4711 blocked for more than 120 seconds.",
	"INFO: task kworker/u4:2:33 blocked for more than 241 seconds.",
	"UBSAN: array-index-out-of-bounds in fs/ext4/super.c:1:2",
	"KASAN: slab-use-after-free in xfs_iget+0x1/0x2",
	"WARNING: possible recursive locking detected",
	"Kernel panic - not syncing: Fatal exception",
};

static const char *const routine[] = {
	"EXT4-fs (loop3): recovery complete",
	"EXT4-fs (loop3): mounted filesystem 6f3bad00-e440-4000-8000-00000000dead r/w with "
	"ordered "
	"data mode. Quota mode: none.",
	"EXT4-fs (loop3): mounted filesystem 0badbad0-bad0-4bad-8bad-badbadbadbad r/w with ordered "
	"data "
	"mode. Quota mode: none.",
	"EXT4-fs (loop3): unmounting filesystem 0a7a6e00-0000-4000-8000-000000000001.",
	"EXT4-fs (loop3): shut down requested (2)",
	"EXT4-fs (loop3): 1 orphan inode deleted",
	"EXT4-fs (loop3): orphan cleanup on readonly fs",
	"EXT4-fs (loop3): mounting ext3 file system using the ext4 subsystem",
	"EXT4-fs (loop3): Mount option \"data=journal\" disables delayed allocation, ...",
	"EXT4-fs (loop3): mounted filesystem without journal. Opts: errors=remount-ro.",
	"EXT2-fs (loop3): mounted filesystem, errors=continue",
	"XFS (loop3): Mounting V5 Filesystem 61c0dead-beef-4bad-9bad-00000badc0de",
	"XFS (loop3): Starting recovery (logdev: internal)",
	"XFS (loop3): Ending recovery (logdev: internal)",
	"XFS (loop3): Ending clean mount",
	"XFS (loop3): Unmounting Filesystem 61c0dead-beef-4bad-9bad-00000badc0de",
	"XFS (loop3): User initiated shutdown (0x4) received. Shutting down filesystem",
	"XFS (loop3): Please unmount the filesystem and rectify the problem(s)",
	"XFS (loop3): EXPERIMENTAL online scrub feature in use. Use at your own risk!",
	"BTRFS: device fsid 0a7a6e00-0000-4000-8000-000000000001 devid 1 transid 6 /dev/loop3 "
	"(7:3) "
	"scanned by outage (4711)",
	"BTRFS info (device loop3): first mount of filesystem 0badbad0-bad0-4bad-8bad-badbadbadbad",
	"BTRFS info (device loop3): using crc32c (crc32c-lib) checksum algorithm",
	"BTRFS info (device loop3): start tree-log replay",
	"BTRFS info (device loop3): checking UUID tree",
	"BTRFS info (device loop3): enabling ssd optimizations",
	"BTRFS info (device loop3): last unmount of filesystem "
	"0a7a6e00-0000-4000-8000-000000000001",
	"loop3: detected capacity change from 0 to 32768",
	" loop3: p1 p2",
	/* other devices */
	"EXT4-fs error (device loop31): ext4_lookup:1791: inode #2: comm outage: iget: checksum "
	"invalid",
	"EXT4-fs error (device loop1): ext4_lookup:1791: inode #2: comm outage: iget: checksum "
	"invalid",
	"XFS (loop30): Corruption detected. Unmount and run xfs_repair",
	"BTRFS critical (device loop13): corrupt leaf: root=1 block=30490624 slot=0",
	"I/O error, dev sdloop3, sector 16 op 0x1:(WRITE) flags 0x800",
	"JBD2: journal checksum error on device loop33-8",
	"EXT4-fs (loop13): mounting failed of a disk once known as xloop3x",
	/* nothing to do with file systems; a machine with too much to do stalls by itself */
	"rcu: INFO: rcu_preempt self-detected stall on CPU",
	"watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [outage:4711]",
	"BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 33s!",
	"watchdog: Watchdog detected hard LOCKUP on cpu 1",
	"usb 1-1: device descriptor read/64, error -71",
	"audit: type=1400 apparmor=\"DENIED\" operation=\"mount\" error=-13",
	"systemd[1]: foo.service: Failed with result 'exit-code'.",
	"BUGS are not bugs; WARNINGS are warnings",
	"traps: fsx[4711] general protection fault ip:55b0d78bc810 sp:7ffe2d974490 error:0 in fsx",
	"",
};

/* ---- whose it is ---- */

static void test_pids(void)
{
	static const struct {
		const char *line;
		pid_t pid;
	} cases[] = {
		{ "WARNING: CPU: 1 PID: 4711 at fs/btrfs/inode.c:1234 btrfs_evict_inode+0x1/0x2",
		  4711 },
		{ "WARNING: fs/ext4/inode.c:12 at ext4_x+0x1/0x2, CPU#1: kworker/u4:2/33", 33 },
		{ "WARNING: fs/ext4/inode.c:12 at ext4_x+0x1/0x2 [ext4], CPU#0: outage/4711",
		  4711 },
		{ "CPU: 0 UID: 0 PID: 4711 Comm: outage Not tainted 6.18.0 #1 PREEMPT", 4711 },
		{ "CPU: 0 PID: 12 Comm: PID: 13 Not tainted", 12 },
		{ "INFO: task outage:4711 blocked for more than 120 seconds.", 4711 },
		{ "INFO: task kworker/u4:2:33 blocked for more than 241 seconds.", 33 },
		{ "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [outage:4711]", 4711 },
		{ "BUG: kernel NULL pointer dereference, address: 0000000000000008", 0 },
		{ "kernel BUG at fs/ext4/inode.c:2721!", 0 },
		{ "WARNING: possible recursive locking detected", 0 },
		{ "WARNING: x at y, CPU#0: name/4x", 0 },
		{ "WARNING: x at y, CPU#0: name/99999999999999999999", 0 },
		{ "task blocked for more than", 0 },
		{ "stuck for ]", 0 },
		{ "", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		is_i(kmsg_pid(cases[i].line), cases[i].pid, "the process of: %.60s", cases[i].line);
}

/* A log of our own: each reader gets every record, as from /dev/kmsg. */
static int write_to[2];

static void open_reader(unsigned i, struct kmsg *k, struct kmsg_shared *shared)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds))
		printf("# no socket\n");
	*k = (struct kmsg){ .fd = fds[0], .shared = shared };
	write_to[i] = fds[1];
}

static void say(unsigned seq, const char *text)
{
	auto_free char *record = xasprintf("4,%u,12345,-;%s\n SUBSYSTEM=x\n", seq, text);

	for (size_t i = 0; i < 2; i++)
		if (write(write_to[i], record, strlen(record)) < 0)
			printf("# cannot write\n");
}

static void warn(unsigned seq, pid_t pid, const char *queue)
{
	auto_free char *header = xasprintf("WARNING: CPU: 0 PID: %d at fs/x.c:%u", (int)pid, seq);
	auto_free char *more = xasprintf("Workqueue: %s", queue);

	say(seq, header);
	say(seq + 1, "Modules linked in:");
	say(seq + 2, more);
	say(seq + 3, "---[ end trace 0000000000000000 ]---");
}

static bool first_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == 0xEFFFFFFC;
}

/* One reader that is this process, and its parent; both hear everything. */
static void test_blocks(void)
{
	static struct kmsg_shared shared;
	struct kmsg worker, parent;
	struct kmsg_block b;
	auto_strbuf own = STRBUF_INIT;
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	open_reader(0, &worker, &shared);
	open_reader(1, &parent, &shared);
	say(1, "EXT4-fs error (device loop3): x");
	say(2, "EXT4-fs error (device loop4): x");
	warn(10, getpid(), "none");
	warn(20, child, "none");
	warn(30, 1, "none");	       /* of somebody who has nothing to do with this */
	warn(40, 2, "xfs-conv/loop3"); /* kthreadd stands for all threads of the kernel */
	warn(50, 2, "xfs-conv/loop4");
	say(60, "BUG: kernel NULL pointer dereference, address: 0000000000000008");
	say(61, "#PF: supervisor read access in kernel mode");
	say(62, "Oops: 0000 [#1] PREEMPT SMP NOPTI");
	say(63, "CPU: 0 UID: 0 PID: 2 Comm: kthreadd Not tainted");
	ok(kmsg_read(&worker, "loop3", true, &own), "there are complaints");
	ok(strstr(own.buf, "(device loop3)") && !strstr(own.buf, "(device loop4)"),
	   "those of the device");
	ok(strstr(own.buf, "x.c:10\n") && strstr(own.buf, "Modules linked in"),
	   "what we ran into ourselves, whole");
	ok(strstr(own.buf, "x.c:20\n"), "and a process below us");
	ok(!strstr(own.buf, "x.c:30\n"), "not what another did");
	ok(strstr(own.buf, "x.c:40\n"), "a thread of the kernel that names our device");
	ok(!strstr(own.buf, "x.c:50\n") && !strstr(own.buf, "BUG:"), "and none that does not");
	kmsg_watch(&parent);
	ok(kmsg_next_unclaimed(&parent, &b) && b.seq == 50 && strstr(b.text, "x.c:50\n"),
	   "the parent has what nobody took");
	kmsg_block_release(&b);
	ok(kmsg_next_unclaimed(&parent, &b) && b.seq == 60 && b.pid == 2 && b.lines == 4 &&
		   strstr(b.text, "Oops"),
	   "a bug and its oops are one");
	kmsg_block_release(&b);
	ok(!kmsg_next_unclaimed(&parent, &b), "and no more");
	strbuf_clear(&own);
	ok(!kmsg_read(&worker, "loop3", true, &own), "nothing is told twice");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	say(70, "EXT4-fs error (device loop3): x");
	warn(80, child, "none");
	ok(!kmsg_read(&worker, "loop3", false, &own), "cut off, the device may complain");
	kmsg_watch(&parent);
	ok(kmsg_next_unclaimed(&parent, &b) && b.seq == 80,
	   "of a process that is gone nobody knows whose it was");
	kmsg_block_release(&b);
	shared.lost = true;
	kmsg_read(&worker, NULL, true, &own);
	kmsg_watch(&parent);
	ok(!worker.told_lost && parent.told_lost, "the parent tells that something was lost");
	kmsg_close(&worker);
	kmsg_close(&parent);
}

/* Without others that listen, what is nobody's is ours; what is another's is not. */
static void test_alone(void)
{
	struct kmsg one, other;
	auto_strbuf own = STRBUF_INIT;

	open_reader(0, &one, NULL);
	open_reader(1, &other, NULL);
	warn(10, 2, "none");
	warn(20, 1, "none");
	say(30, "Kernel panic - not syncing: Fatal exception");
	kmsg_read(&one, "loop3", true, &own);
	ok(strstr(strbuf_str(&own), "x.c:10\n") && strstr(own.buf, "Kernel panic"),
	   "alone, what is nobody's is ours");
	ok(!strstr(strbuf_str(&own), "x.c:20\n"), "but not what another ran into");
	kmsg_close(&one);
	kmsg_close(&other);
}

/* What readers claim takes no room from what nobody does; and of that not all is kept. */
static void test_many(void)
{
	static struct kmsg_shared shared;
	struct kmsg worker, parent;
	struct kmsg_block b;
	auto_strbuf own = STRBUF_INIT;
	unsigned seq = 10, last, kept = 0;

	open_reader(0, &worker, &shared);
	open_reader(1, &parent, &shared);
	for (unsigned i = 0; i < 3 * KMSG_KEPT; i++, seq += 10) {
		warn(seq, getpid(), "none");
		kmsg_read(&worker, "loop3", true, &own);
		kmsg_watch(&parent);
	}
	last = seq;
	for (unsigned i = 0; i < 2 * KMSG_KEPT; i++, seq += 10) {
		warn(seq, 2, "none");
		kmsg_read(&worker, "loop3", true, &own);
		kmsg_watch(&parent);
	}
	ok(kmsg_next_unclaimed(&parent, &b) && b.seq == last,
	   "one of nobody is kept after many that were claimed");
	do {
		kmsg_block_release(&b);
		kept++;
	} while (kmsg_next_unclaimed(&parent, &b));
	is_u(kept, KMSG_KEPT, "but not without end");
	kmsg_close(&worker);
	kmsg_close(&parent);
}

static void test_append(void)
{
	char dir[] = "/tmp/kmsg-XXXXXX", text[64] = "";
	char first[] = "BUG: one\n", second[] = "BUG: two\n";
	struct err err = ERR_INIT;

	if (!mkdtemp(dir)) {
		ok(false, "a directory");
		return;
	}
	auto_free char *log = xasprintf("%s/log", dir), *link = xasprintf("%s/link", dir);
	int rc = kmsg_block_append(&(struct kmsg_block){ .text = first }, dir, "log", &err);

	if (!rc)
		rc = kmsg_block_append(&(struct kmsg_block){ .text = second }, dir, "log", &err);
	FILE *f = fopen(log, "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	ok(!rc && n && streq(text, "BUG: one\nBUG: two\n"), "blocks are kept one after the other");
	if (f)
		fclose(f);
	ok(!symlink(log, link) &&
		   kmsg_block_append(&(struct kmsg_block){ .text = first }, dir, "link", &err) <
			   0 &&
		   strstr(err.msg, link),
	   "not by way of a link, and the error names the file");
	unlink(link);
	unlink(log);
	rmdir(dir);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(complaints); i++)
		ok(kmsg_complains(complaints[i], "loop3"), "a complaint: %.70s", complaints[i]);
	for (size_t i = 0; i < ARRAY_SIZE(routine); i++)
		ok(!kmsg_complains(routine[i], "loop3"), "routine: %.70s", routine[i]);

	ok(!kmsg_complains(complaints[0], NULL),
	   "without a device, what is said of one is not ours");
	ok(kmsg_complains("BUG: kernel NULL pointer dereference", NULL),
	   "but bugs are everybody's");
	ok(kmsg_complains("EXT4-fs error (device loop11): x", "loop11"), "loop11 is loop11");
	ok(!kmsg_complains("EXT4-fs error (device loop11): x", "loop1"), "and not loop1");
	ok(!kmsg_complains("EXT4-fs error (device loop1): x", "loop11"), "nor the other way round");
	test_pids();
	test_append();
	if (first_namespace()) {
		test_blocks();
		test_many();
		test_alone();
	} else {
		skip("numbers of processes mean nothing in this namespace");
	}
	return done_testing();
}
