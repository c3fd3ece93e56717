/* SPDX-License-Identifier: MIT */
/*
 * kernel_image.h - the file of a kernel: what form it has, whether all of it is there, and what is
 * in it. The file is looked at before anything is booted, as a machine with half a kernel says
 * nothing.
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
	VM_KERNEL_PROGRAM, /* of this machine, such as a kernel of user-mode Linux */
};

/* Reads `file`, which may be anything. */
int kernel_image_read(const char *file, struct strbuf *out, struct err *err) must_check;
enum vm_kernel_form kernel_image_form(const struct strbuf *text);
/* -EINVAL, and how, if a part is missing or cannot be; `file` names it. */
int kernel_image_check(const char *file, const struct strbuf *text, struct err *err) must_check;
/* "6.1.0-54-amd64"; NULL: it does not tell. */
char *kernel_image_release(const struct strbuf *text);
/*
 * Of a bzImage that was checked, the kernel as it is in memory: 1 if it is compressed in a way that
 * unpack() does not know, -EBADMSG if it is damaged.
 */
int kernel_image_unpack(const struct strbuf *text, struct strbuf *out, struct err *err) must_check;
/* How it is compressed: "xz"; NULL: it is not. */
const char *kernel_image_format(const struct strbuf *text);

/* "6.1.0-54-amd64 (debian-kernel@...": up to the first space; NULL: there is none in time. */
char *kernel_image_word(const char *p, const char *end);

/* "Xen", 18: where to begin, for loaders that load a kernel as it is. QEMU needs it. */
enum { KERNEL_NOTE_PVH = 18 };

#endif
