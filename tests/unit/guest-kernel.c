/* SPDX-License-Identifier: MIT */
/* The file of a kernel: a whole one is taken, and one that is cut off or damaged anywhere is not.
 */
#include "guest/kernel_image.h"
#include "packed.h"
#include "tap.h"

#include <elf.h>
#include <errno.h>

enum {
	SETUP = 1024,
	SYSTEM = 4096,
	PAYLOAD = 64,
	ELF_LEN = 8192,
	ELF_LOAD = 4096,
	ELF_LIST = 8000
};

static void put(struct strbuf *text, size_t at, uint32_t value, size_t bytes)
{
	memcpy(text->buf + at, &value, bytes);
}

/* One sector of setup behind the first, and a payload that begins as gzip does. */
static struct strbuf bzimage(void)
{
	struct strbuf text = STRBUF_INIT;

	for (size_t i = 0; i < SETUP + SYSTEM; i++)
		strbuf_addch(&text, '\0');
	put(&text, 0x1f1, 1, 1);
	put(&text, 0x1f4, SYSTEM / 16, 4);
	memcpy(text.buf + 0x202, "HdrS", 4);
	put(&text, 0x206, 0x20f, 2);
	put(&text, 0x20e, 0x100, 2);
	memcpy(text.buf + 0x300, "6.9.1-ours (me@here)", 21);
	put(&text, 0x248, PAYLOAD, 4);
	put(&text, 0x24c, SYSTEM - PAYLOAD, 4);
	memcpy(text.buf + SETUP + PAYLOAD, "\x1f\x8b", 2);
	return text;
}

static struct strbuf elf(void)
{
	struct strbuf text = STRBUF_INIT;
	Elf64_Ehdr head = { .e_ident = "\177ELF\2\1\1",
			    .e_phoff = sizeof(head),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 1,
			    .e_shoff = ELF_LIST,
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3 };
	Elf64_Phdr part = { .p_type = PT_LOAD, .p_offset = ELF_LOAD, .p_filesz = 2000 };

	for (size_t i = 0; i < ELF_LEN; i++)
		strbuf_addch(&text, '\0');
	memcpy(text.buf, &head, sizeof(head));
	memcpy(text.buf + sizeof(head), &part, sizeof(part));
	return text;
}

static void check(struct strbuf text, const char *wrong, const char *name)
{
	struct err err = ERR_INIT;
	int rc = kernel_image_check("it", &text, &err);

	if (!ok(wrong ? rc == -EINVAL && strstr(err.msg, wrong) : rc == 0, "%s", name))
		printf("#   %d %s\n", rc, err.msg);
	strbuf_release(&text);
}

/* With another number somewhere. */
static struct strbuf with(struct strbuf text, size_t at, uint32_t value, size_t bytes)
{
	put(&text, at, value, bytes);
	return text;
}

static struct strbuf first(struct strbuf text, size_t len)
{
	strbuf_cut(&text, len);
	return text;
}

static void test_bzimage(void)
{
	struct strbuf whole = bzimage(), more = bzimage();
	auto_free char *release = kernel_image_release(&whole);

	is_s(release, "6.9.1-ours", "it tells its release");
	is_u(kernel_image_form(&whole), VM_KERNEL_BZIMAGE, "and its form");
	check(whole, NULL, "a whole bzImage");
	strbuf_adds(&more, "a signature");
	check(more, NULL, "one with something behind it");
	check(first(bzimage(), SETUP + SYSTEM - 1), "cut off: by its header it has at least 5120",
	      "one that lacks a byte");
	check(first(bzimage(), 0x260), "cut off", "one that is little more than its header");
	check(with(bzimage(), 0x1f1, 0, 1), "cut off", "no sectors are four");
	check(with(bzimage(), 0x1f4, UINT32_MAX, 4), "cut off", "a size that is too large");
	check(with(bzimage(), 0x248, SYSTEM, 4), "more than there is", "a payload behind the end");
	check(with(bzimage(), 0x248, UINT32_MAX, 4), "more than there is", "far behind it");
	check(with(bzimage(), 0x24c, SYSTEM, 4), "more than there is", "one that is too long");
	check(with(bzimage(), 0x24c, 2, 4), "more than there is", "or too short");
	check(with(bzimage(), 0x248, 0, 4), "no packed kernel", "one that is something else");
	check(with(bzimage(), 0x206, 0x207, 2), "2.6.24", "a header that has no payload yet");
}

static void test_elf(void)
{
	struct strbuf whole = elf();

	is_u(kernel_image_form(&whole), VM_KERNEL_PROGRAM, "ELF without a note is a program");
	check(whole, NULL, "a whole one");
	check(first(elf(), ELF_LIST + 100), "cut off", "one without the end of its list");
	check(first(elf(), ELF_LOAD), "cut off", "one without its code");
	check(first(with(elf(), offsetof(Elf64_Ehdr, e_shnum), 0, 2), ELF_LOAD + 1999), "cut off",
	      "one that has no list, and lacks a byte");
	check(first(with(elf(), offsetof(Elf64_Ehdr, e_shnum), 0, 2), ELF_LOAD + 2000), NULL,
	      "or lacks none");
	check(with(elf(), offsetof(Elf64_Ehdr, e_phentsize), 7, 2), "cannot be",
	      "parts of 7 bytes");
	check(with(with(elf(), offsetof(Elf64_Ehdr, e_shoff), UINT32_MAX, 4),
		   offsetof(Elf64_Ehdr, e_shoff) + 4, UINT32_MAX, 4),
	      "cannot be", "a list behind all bytes");
}

static void test_damaged(void)
{
	struct strbuf text = bzimage(), out = STRBUF_INIT;
	struct err err = ERR_INIT;

	is_i(kernel_image_unpack(&text, &out, &err), -EBADMSG,
	     "what only begins as if it were packed is damaged");
	memcpy(text.buf + SETUP + PAYLOAD, "BZh", 3);
	is_i(kernel_image_unpack(&text, &out, &err), 1, "what nobody unpacks is not");
	is_s(kernel_image_format(&text), "bzip2", "it is told how it is compressed");
	strbuf_release(&text);
	strbuf_release(&out);
}

/* A payload that is compressed, with its length behind it, as in all formats but one. */
static void test_packed(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(packed_all); i++) {
		const struct packed *p = &packed_all[i];
		struct strbuf text = bzimage(), out = STRBUF_INIT;
		bool tells = !streq(p->format, "gzip");
		struct err err = ERR_INIT;

		memcpy(text.buf + SETUP + PAYLOAD, p->bytes, p->len);
		put(&text, SETUP + PAYLOAD + p->len, PACKED_LEN, 4);
		put(&text, 0x24c, (uint32_t)(p->len + (tells ? 4 : 0)), 4);
		is_s(kernel_image_format(&text), p->format, "it tells that it is %s", p->format);
		is_i(kernel_image_unpack(&text, &out, &err), 0, "it is unpacked: %s", err.msg);
		ok(out.len == PACKED_LEN && memcmp(out.buf, packed_text, PACKED_LEN) == 0,
		   "it is what it was");
		put(&text, SETUP + PAYLOAD + p->len, PACKED_LEN + 1, 4);
		is_i(kernel_image_unpack(&text, &out, &err), tells ? -EBADMSG : 0,
		     "another length than it tells of is an error: %s", err.msg);
		strbuf_release(&text);
		strbuf_release(&out);
	}
}

int main(void)
{
	test_bzimage();
	test_elf();
	test_damaged();
	test_packed();
	return done_testing();
}
