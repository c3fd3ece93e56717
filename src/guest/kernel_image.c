/* SPDX-License-Identifier: MIT */
/* kernel_image.c - recognises, checks and unpacks the formats of a kernel's file. */
#include "guest/kernel_image.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/io.h"
#include "guest/unpack.h"

enum {
	KERNEL_MAX = 512 << 20,
	RELEASE_MAX = 100,
	/* Offsets in a bzImage, by the x86 boot protocol. */
	AT_SETUP_SECTS = 0x1f1,
	AT_SYSSIZE = 0x1f4, /* size behind the setup, in units of 16 bytes */
	AT_MAGIC = 0x202,
	AT_PROTOCOL = 0x206,
	AT_VERSION = 0x20e,
	AT_PAYLOAD = 0x248,
	AT_PAYLOAD_LEN = 0x24c,
	HEAD_BYTES = 0x250,
	PROTOCOL_PAYLOAD = 0x208, /* the first version with a payload: Linux 2.6.24 */
};

int kernel_image_read(const char *file, struct strbuf *out, struct err *err)
{
	struct stat st;

	if (stat(file, &st) < 0)
		return err_set(err, -errno, "cannot look at %s: %m", file);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL,
			       "%s is %s, and no kernel: --kernel wants a bzImage (vmlinuz) or a "
			       "vmlinux",
			       file, S_ISDIR(st.st_mode) ? "a directory" : "no regular file");
	return io_slurp(file, KERNEL_MAX, out, err);
}

static uint32_t number(const struct strbuf *text, size_t at, size_t bytes)
{
	uint32_t n = 0;

	if (at + bytes <= text->len)
		memcpy(&n, text->buf + at, bytes);
	return n;
}

static bool is_bzimage(const struct strbuf *text)
{
	return text->len > HEAD_BYTES && memcmp(text->buf + AT_MAGIC, "HdrS", 4) == 0;
}

static bool is_elf(const struct strbuf *text)
{
	return text->len > HEAD_BYTES && memcmp(text->buf, "\177ELF\2\1", 6) == 0;
}

char *kernel_image_word(const char *p, const char *end)
{
	size_t n = 0;

	while (p + n < end && isgraph((unsigned char)p[n]) && n < RELEASE_MAX)
		n++;
	return n && n < RELEASE_MAX ? xmemdupz(p, n) : NULL;
}

char *kernel_image_release(const struct strbuf *text)
{
	static const char banner[] = "Linux version ";
	const char *end = text->buf + text->len, *p;

	if (is_bzimage(text)) {
		size_t at = 0x200 + (size_t)number(text, AT_VERSION, 2);

		return at < text->len ? kernel_image_word(text->buf + at, end) : NULL;
	}
	for (p = text->buf; (p = memmem(p, (size_t)(end - p), banner, sizeof(banner) - 1)); p++) {
		const char *word = p + sizeof(banner) - 1;

		if (word < end && isdigit((unsigned char)*word))
			return kernel_image_word(word, end);
	}
	return NULL;
}

static bool has_note(const struct strbuf *text, size_t at, size_t len)
{
	Elf64_Nhdr n;

	while (len >= sizeof(n)) {
		memcpy(&n, text->buf + at, sizeof(n));
		uint64_t name = ((uint64_t)n.n_namesz + 3) & ~3ULL;
		uint64_t all = sizeof(n) + name + (((uint64_t)n.n_descsz + 3) & ~3ULL);

		if (all > len)
			return false;
		if (n.n_type == KERNEL_NOTE_PVH && n.n_namesz == 4 &&
		    memcmp(text->buf + at + sizeof(n), "Xen", 4) == 0)
			return true;
		at += all;
		len -= all;
	}
	return false;
}

static bool is_plain(const struct strbuf *text)
{
	Elf64_Ehdr head;
	Elf64_Phdr part;

	if (!is_elf(text))
		return false;
	memcpy(&head, text->buf, sizeof(head));
	for (unsigned i = 0; i < head.e_phnum; i++) {
		uint64_t at = head.e_phoff + (uint64_t)i * sizeof(part);

		if (head.e_phoff > text->len || at > text->len || text->len - at < sizeof(part))
			return false;
		memcpy(&part, text->buf + at, sizeof(part));
		if (part.p_type == PT_NOTE && part.p_offset <= text->len &&
		    part.p_filesz <= text->len - part.p_offset &&
		    has_note(text, part.p_offset, part.p_filesz))
			return true;
	}
	return false;
}

enum vm_kernel_form kernel_image_form(const struct strbuf *text)
{
	return is_bzimage(text) ? VM_KERNEL_BZIMAGE
	       : is_plain(text) ? VM_KERNEL_PLAIN
	       : is_elf(text)	? VM_KERNEL_PROGRAM
				: VM_KERNEL_NONE;
}

/* ---- checking for completeness ---- */

/* The offset behind the setup. */
static uint64_t after_setup(const struct strbuf *text)
{
	uint32_t sectors = number(text, AT_SETUP_SECTS, 1);

	return ((uint64_t)(sectors ? sectors : 4) + 1) * 512;
}

static int cut_off(const char *file, uint64_t wanted, uint64_t got, struct err *err)
{
	return err_set(err, -EINVAL,
		       "the kernel %s is cut off: by its header it has at least %llu bytes, and "
		       "there are %llu; copy or build it again",
		       file, (unsigned long long)wanted, (unsigned long long)got);
}

static int damaged(const char *file, const char *how, struct err *err)
{
	return err_set(err, -EINVAL, "the kernel %s is damaged: %s; copy or build it again", file,
		       how);
}

static int check_bzimage(const char *file, const struct strbuf *text, struct err *err)
{
	uint64_t setup = after_setup(text), rest = (uint64_t)number(text, AT_SYSSIZE, 4) * 16;
	uint64_t at = number(text, AT_PAYLOAD, 4), len = number(text, AT_PAYLOAD_LEN, 4);

	if (number(text, AT_PROTOCOL, 2) < PROTOCOL_PAYLOAD)
		return damaged(file, "its header is of no kernel since 2.6.24", err);
	if (setup + rest > text->len)
		return cut_off(file, setup + rest, text->len, err);
	if (len < 8 || at + len > rest)
		return damaged(file, "its header tells of more than there is", err);
	const char *payload = text->buf + setup + at;
	if (!unpack_format(payload, len) && memcmp(payload, ELFMAG, SELFMAG) != 0)
		return damaged(file, "its header points to no packed kernel", err);
	return 0;
}

/* Checks that all segments are there, and the list of sections, which comes last. */
static int check_elf(const char *file, const struct strbuf *text, struct err *err)
{
	Elf64_Ehdr head;
	Elf64_Phdr part;

	memcpy(&head, text->buf, sizeof(head));
	uint64_t wanted = (uint64_t)head.e_shnum * head.e_shentsize;
	uint64_t parts = (uint64_t)head.e_phnum * sizeof(part);

	if (__builtin_add_overflow(wanted, head.e_shnum ? head.e_shoff : 0, &wanted) ||
	    __builtin_add_overflow(parts, head.e_phoff, &parts) ||
	    (head.e_phnum && head.e_phentsize != sizeof(part)))
		return damaged(file, "its header cannot be", err);
	if (max(wanted, parts) > text->len)
		return cut_off(file, max(wanted, parts), text->len, err);
	for (unsigned i = 0; i < head.e_phnum; i++) {
		uint64_t end;

		memcpy(&part, text->buf + head.e_phoff + i * sizeof(part), sizeof(part));
		if (part.p_type != PT_LOAD && part.p_type != PT_NOTE)
			continue;
		if (__builtin_add_overflow(part.p_offset, part.p_filesz, &end))
			return damaged(file, "one of its parts cannot be", err);
		if (end > text->len)
			return cut_off(file, end, text->len, err);
	}
	return 0;
}

int kernel_image_check(const char *file, const struct strbuf *text, struct err *err)
{
	return is_bzimage(text) ? check_bzimage(file, text, err)
	       : is_elf(text)	? check_elf(file, text, err)
				: 0;
}

/* Returns the packed kernel. */
static const char *payload_of(const struct strbuf *text, size_t *len)
{
	*len = number(text, AT_PAYLOAD_LEN, 4);
	return text->buf + after_setup(text) + number(text, AT_PAYLOAD, 4);
}

int kernel_image_unpack(const struct strbuf *text, struct strbuf *out, struct err *err)
{
	size_t len;
	const char *at = payload_of(text, &len);
	const char *format = unpack_format(at, len);

	if (!format) {
		strbuf_add(out, at, len);
		return 0;
	}
	/* All formats but gzip are followed by the unpacked length. Some have no checksum. */
	size_t packed = streq(format, "gzip") ? len : len - 4, begin = out->len;
	int rc = unpack(at, packed, KERNEL_MAX, out, err);
	uint32_t told = packed < len ? number(text, (size_t)(at - text->buf) + packed, 4)
				     : (uint32_t)(out->len - begin);
	if (!rc && out->len - begin != told)
		rc = err_set(
			err, -EBADMSG,
			"it is damaged: its %s data has %zu bytes unpacked, and should have %u",
			format, out->len - begin, told);
	return rc;
}

const char *kernel_image_format(const struct strbuf *text)
{
	size_t len;
	const char *at = payload_of(text, &len);

	return unpack_format(at, len);
}
