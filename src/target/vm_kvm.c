/* SPDX-License-Identifier: MIT */
/* vm_kvm.c - decides whether KVM is tried. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/kvm.h>

#include "base/io.h"
#include "base/log.h"
#include "guest/cache.h"
#include "target/vm_impl.h"

/* Adds the id of this machine's boot: after a failed start, KVM is not tried again in this boot. */
static void boot_id(struct strbuf *out)
{
	struct err ignored = ERR_INIT;

	if (io_slurp("/proc/sys/kernel/random/boot_id", 64, out, &ignored))
		strbuf_adds(out, "unknown");
}

static bool kvm_failed(void)
{
	auto_free char *dir = cache_dir();
	auto_strbuf now = STRBUF_INIT, then = STRBUF_INIT;
	struct err ignored = ERR_INIT;

	if (!dir || io_slurp_file(dir, "vm-no-kvm", 64, &then, &ignored))
		return false;
	boot_id(&now);
	return streq(strbuf_str(&now), strbuf_str(&then));
}

void vm_remember_kvm_failed(void)
{
	auto_free char *dir = cache_dir();
	auto_strbuf now = STRBUF_INIT;
	struct err ignored = ERR_INIT;

	boot_id(&now);
	if (dir && io_write_file(dir, "vm-no-kvm", now.buf, now.len, 0, &ignored))
		log_debug("%s", ignored.msg);
}

/* Returns why KVM is not tried, or NULL. */
const char *vm_why_no_kvm(void)
{
	auto_fd fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return errno == EACCES ? "this user may not open /dev/kvm, which the group kvm may"
				       : "there is no /dev/kvm that can be opened";
	if (ioctl(fd, KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
		return "/dev/kvm is of another kind";
	return kvm_failed() ? "KVM failed since this machine was booted" : NULL;
}
