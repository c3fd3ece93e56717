/* SPDX-License-Identifier: MIT */
/*
 * guest_files.c - reads the files that a guest gets, and checks that their programs can run there.
 */
#include "guest/guest_files.h"

#include <elf.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/hash.h"
#include "base/io.h"

enum {
	FILES_MAX = 64,
	NAME_MAX_BYTES = 200,
	FILE_MAX = 256 << 20,
	SHARE = 4, /* at most 1/4 of the guest's memory, in which they are twice during boot */
};

/* ---- names ---- */

static bool is_below(const char *path, const char *place)
{
	size_t n = strlen(place);

	return strncmp(path, place, n) == 0 && (!path[n] || path[n] == '/');
}

/* Whether the agent needs the path, or mounts something over it. */
static bool is_taken(const char *guest)
{
	static const char *const own[] = { "/init",	   "/selftest",	  "/modules", "/host",
					   "/proc",	   "/sys",	  "/dev",     AGENT_MNT,
					   "/bin/busybox", "/bin/outage", "/bin/sh" };

	/*
	 * The folders of the shell's commands: files in them may be replaced, the folders may not.
	 */
	static const char *const folders[] = { "/bin", "/sbin", "/usr/bin", "/usr/sbin" };

	return any_of(i, ARRAY_SIZE(own), is_below(guest, own[i]) || is_below(own[i], guest)) ||
	       any_of(i, ARRAY_SIZE(folders), is_below(folders[i], guest));
}

/* True if each part is a plain name: not empty, not "." or "..", and printable. */
static bool is_plain_path(const char *path)
{
	for (const char *p = path; *p;) {
		size_t n = strcspn(p + 1, "/");

		if (*p != '/' || !n || (n == 1 && p[1] == '.') ||
		    (n == 2 && p[1] == '.' && p[2] == '.'))
			return false;
		p += n + 1;
	}
	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return true;
}

static int check_place(const char *guest, struct err *err)
{
	if (*guest != '/' || !guest[1] || strlen(guest) > NAME_MAX_BYTES || !is_plain_path(guest))
		return err_set(
			err, -EINVAL,
			"--guest-file HOST:GUEST wants the path of a file in the guest, such "
			"as /bin/prog, with at most %d bytes and no dots to follow; not "
			"'%.40s'",
			NAME_MAX_BYTES, guest);
	if (is_taken(guest))
		return err_set(err, -EINVAL,
			       "%s is the guest's own: give another place with --guest-file "
			       "HOST:GUEST, such as /bin/prog",
			       guest);
	return 0;
}

int guest_file_name(const char *words, char **out, struct err *err)
{
	const char *colon = strrchr(words, ':');
	auto_free char *given = xmemdupz(words, colon ? (size_t)(colon - words) : strlen(words));
	auto_free char *host = realpath(given, NULL);

	if (!host)
		return err_set(err, -errno, "cannot find %s: %m", *given ? given : "the file");
	auto_free char *guest = colon ? xstrdup(colon + 1) : xasprintf("/bin/%s", basename(given));
	int rc = check_place(guest, err);
	if (!rc)
		*out = xasprintf("%s:%s", host, guest);
	return rc;
}

/* ---- programs ---- */

enum guest_program guest_program(const struct strbuf *text)
{
	const unsigned char *p = (const unsigned char *)text->buf;
	Elf64_Ehdr head;
	Elf64_Phdr part;

	if (text->len < SELFMAG || memcmp(p, ELFMAG, SELFMAG) != 0)
		return GUEST_NO_PROGRAM;
	if (text->len < sizeof(head) || p[EI_CLASS] != ELFCLASS64)
		return GUEST_OTHER;
	memcpy(&head, p, sizeof(head));
	if (head.e_machine != EM_X86_64)
		return GUEST_OTHER;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		uint64_t at = head.e_phoff + (uint64_t)i * sizeof(part);

		if (head.e_phoff > text->len || at > text->len || text->len - at < sizeof(part))
			return GUEST_OTHER;
		memcpy(&part, p + at, sizeof(part));
		if (part.p_type == PT_INTERP)
			return GUEST_DYNAMIC;
	}
	return GUEST_STATIC;
}

/* Checks that the guest can run a program. A file that is not executable may have any content. */
static int check_program(const struct guest_file *f, struct err *err)
{
	enum guest_program kind = f->mode & 0111 ? guest_program(&f->text) : GUEST_NO_PROGRAM;

	if (kind == GUEST_DYNAMIC)
		return err_set(err, -EINVAL,
			       "%s cannot run in a guest: it needs its libraries, and there are "
			       "none; link it statically (cc -static)",
			       f->host);
	if (kind == GUEST_OTHER)
		return err_set(err, -EINVAL,
			       "%s cannot run in a guest: it is no whole program for x86-64",
			       f->host);
	return 0;
}

/* ---- reading ---- */

static void release_one(struct guest_file *f)
{
	free(f->host);
	free(f->guest);
	strbuf_release(&f->text);
}

void guest_files_release(struct guest_files *f)
{
	vec_release_each(p, f, release_one(p));
}

static int read_one(const char *line, size_t len, uint64_t room, struct guest_file *f,
		    struct err *err)
{
	auto_free char *words = xmemdupz(line, len);
	char *colon = strrchr(words, ':');
	struct stat st;

	if (!colon)
		return err_set(err, -EINVAL, "'%.40s' is no HOST:GUEST", words);
	f->guest = xstrdup(colon + 1);
	f->host = xmemdupz(words, (size_t)(colon - words));
	int rc = check_place(f->guest, err);
	if (rc)
		return rc;
	if (stat(f->host, &st) < 0)
		return err_set(err, -errno, "the guest's file %s cannot be read: %m", f->host);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s is no regular file: --guest-file wants one",
			       f->host);
	if ((uint64_t)st.st_size > room)
		return err_set(err, -E2BIG,
			       "%s is too much for the guest: its files may take a quarter of "
			       "--guest-memory, and each %dM",
			       f->host, FILE_MAX >> 20);
	f->mode = st.st_mode & 0777;
	rc = io_slurp(f->host, (size_t)room, &f->text, err);
	return rc ? rc : check_program(f, err);
}

/* Checks that no file is in another's place, or below it. */
static int check_others(const struct guest_files *all, const struct guest_file *f, struct err *err)
{
	for (size_t i = 0; i < all->n; i++)
		if (is_below(f->guest, all->v[i].guest) || is_below(all->v[i].guest, f->guest))
			return err_set(err, -EINVAL,
				       "two files of the guest cannot be at %s and %s: give one "
				       "another place with --guest-file HOST:GUEST",
				       all->v[i].guest, f->guest);
	return all->n < FILES_MAX
		       ? 0
		       : err_set(err, -E2BIG, "a guest gets at most %d files (--guest-file)",
				 FILES_MAX);
}

int guest_files_read(const char *list, uint64_t memory, struct guest_files *out, struct err *err)
{
	struct guest_files all = { 0 };
	uint64_t limit = memory / SHARE, used = 0;
	int rc = 0;

	for (const char *line = list ? list : ""; *line && !rc;) {
		size_t n = strcspn(line, "\n");
		struct guest_file f = { .text = STRBUF_INIT };

		rc = read_one(line, n, min(limit - used, (uint64_t)FILE_MAX), &f, err);
		if (!rc)
			rc = check_others(&all, &f, err);
		if (rc) {
			release_one(&f);
			break;
		}
		used += f.text.len;
		vec_push(&all, f);
		line += n + (line[n] == '\n');
	}
	if (rc)
		guest_files_release(&all);
	else
		*out = all;
	return rc;
}

char *guest_files_hash(const struct guest_files *all)
{
	auto_strbuf text = STRBUF_INIT;
	char hex[HASH_HEX_SIZE];

	for (size_t i = 0; i < all->n; i++) {
		const struct strbuf *t = &all->v[i].text;

		strbuf_addf(&text, "%s %o %s\n", all->v[i].guest, all->v[i].mode,
			    hash_hex(hash_bytes(strbuf_str(t), t->len), hex));
	}
	return xstrdup(hash_hex(hash_bytes(strbuf_str(&text), text.len), hex));
}
