/* SPDX-License-Identifier: MIT */
/*
 * kernel_image.h - the file of a kernel: its form, whether it is complete, and its content. The
 * file is checked before a boot, as a machine with half a kernel prints nothing.
 */
#ifndef GUEST_KERNEL_IMAGE_H
#define GUEST_KERNEL_IMAGE_H

#include "base/err.h"
#include "base/strbuf.h"

/* The form of a file that is named as a kernel. */
enum vm_kernel_form {
	VM_KERNEL_NONE,
	VM_KERNEL_BZIMAGE,
	VM_KERNEL_PLAIN,   /* a vmlinux that can be booted as it is */
	VM_KERNEL_PROGRAM, /* a program of this machine, such as user-mode Linux */
};

/* Reads `file`, which may be anything. */
int kernel_image_read(const char *file, struct strbuf *out, struct err *err) must_check;
enum vm_kernel_form kernel_image_form(const struct strbuf *text);
/* Checks the file: -EINVAL and a sentence if a part is missing or wrong; `file` is for messages. */
int kernel_image_check(const char *file, const struct strbuf *text, struct err *err) must_check;
/* Returns the release, "6.1.0-54-amd64"; NULL: unknown. */
char *kernel_image_release(const struct strbuf *text);
/*
 * Unpacks the kernel of a bzImage that was checked. Returns 1 if unpack() does not know its
 * compression, -EBADMSG if it is damaged.
 */
int kernel_image_unpack(const struct strbuf *text, struct strbuf *out, struct err *err) must_check;
/* Returns the compression: "xz"; NULL: none. */
const char *kernel_image_format(const struct strbuf *text);

/* Returns the word up to the first space, "6.1.0-54-amd64"; NULL if there is none before `end`. */
char *kernel_image_word(const char *p, const char *end);

/* The note "Xen", 18, has the entry point for loaders of an unpacked kernel. QEMU needs it. */
enum { KERNEL_NOTE_PVH = 18 };

#endif
