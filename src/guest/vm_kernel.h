/* SPDX-License-Identifier: MIT */
/*
 * vm_kernel.h - the kernel of a virtual machine: a file that the user names, or Debian's kernel,
 * whose package apt-get fetches; it is unpacked into the cache, not installed.
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
 * Finds a kernel. `file` and `modules` may be NULL: Debian's kernel with the file system `fs`,
 * fetched if needed; without `fetch`, -ENOENT instead.
 */
int vm_kernel_find(const char *file, const char *modules, const char *fs, bool fetch,
		   struct vm_kernel *out, struct err *err) must_check;
/*
 * Fetches the package once more if the kernel is Debian's in the cache, and `module` of its package
 * was left out there.
 */
int vm_kernel_complete(const struct vm_kernel *k, const char *module, struct err *err) must_check;
void vm_kernel_release(struct vm_kernel *k);

/*
 * Returns a descriptor of the file to boot: the unpacked kernel, because an emulated machine takes
 * long to unpack it; or the file itself, if it cannot be unpacked. -EBADMSG if it is damaged.
 */
int vm_kernel_open(const struct vm_kernel *k, struct err *err) must_check;
/*
 * vm_kernel_open() for a clone, whose kernel is in its memory: QEMU checks only the form of the
 * file, and reads fifty megabytes less.
 */
int vm_kernel_open_stub(struct err *err) must_check;

/* The form of a file that is named as a kernel. */
enum vm_kernel_form vm_kernel_form(const char *file);

#endif
