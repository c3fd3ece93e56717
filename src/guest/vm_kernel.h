/* SPDX-License-Identifier: MIT */
/*
 * vm_kernel.h - the kernel of a virtual machine: a file that the user names, or the one of Debian,
 * whose package is fetched by apt-get and unpacked into the cache, not installed.
 */
#ifndef GUEST_VM_KERNEL_H
#define GUEST_VM_KERNEL_H

#include "base/err.h"
#include "guest/kernel_image.h"

struct vm_kernel {
	char *file;    /* a bzImage, or a vmlinux */
	char *modules; /* the folder of its modules; NULL: there are none */
	char *release;
};

/*
 * `file` and `modules` may be NULL: Debian's, fetched if need be, with the file system `fs`.
 * Without `fetch`, -ENOENT where it would have to be.
 */
int vm_kernel_find(const char *file, const char *modules, const char *fs, bool fetch,
		   struct vm_kernel *out, struct err *err) must_check;
/*
 * If it is Debian's in the cache, and the file `module` of its package was left out there, fetches
 * the package once more.
 */
int vm_kernel_complete(const struct vm_kernel *k, const char *module, struct err *err) must_check;
void vm_kernel_release(struct vm_kernel *k);

/*
 * A descriptor of what to boot: the kernel as it is in memory, because an emulated machine takes
 * long to unpack it; or the file itself, where that cannot be. -EBADMSG: it is damaged.
 */
int vm_kernel_open(const struct vm_kernel *k, struct err *err) must_check;
/*
 * The same for a machine that goes on where another was. Its kernel is in its memory already: QEMU
 * looks only at the form of what it is given, and reads fifty megabytes less.
 */
int vm_kernel_open_stub(struct err *err) must_check;

/* The form of a file that is named as a kernel. */
enum vm_kernel_form vm_kernel_form(const char *file);

#endif
