/* SPDX-License-Identifier: MIT */
/* Which lines of the kernel's log are complaints about a device, and which are routine. */
#include "target/kmsg.h"
#include "tap.h"

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
	"Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1]",
	"general protection fault, probably for non-canonical address 0xdead000000000100: 0000 "
	"[#1]",
	"INFO: task outage:4711 blocked for more than 120 seconds.",
	"INFO: task kworker/u4:2:33 blocked for more than 241 seconds.",
	"watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [outage:4711]",
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
	"usb 1-1: device descriptor read/64, error -71",
	"audit: type=1400 apparmor=\"DENIED\" operation=\"mount\" error=-13",
	"systemd[1]: foo.service: Failed with result 'exit-code'.",
	"BUGS are not bugs; WARNINGS are warnings",
	"",
};

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
	return done_testing();
}
