/* SPDX-License-Identifier: MIT */
#include "target/kmsg.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int kmsg_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

static bool has_word(const char *line, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = line; (p = strstr(p, word)); p += n)
		if ((p == line || !isalnum((unsigned char)p[-1])) && !isalnum((unsigned char)p[n]))
			return true;
	return false;
}

/* "errors=remount-ro" is an option, and no complaint. */
static bool mentions(const char *line, const char *what)
{
	size_t n = strlen(what);

	for (const char *p = line; (p = strcasestr(p, what)); p += n)
		if (strncmp(p + n, "s=", 2) != 0)
			return true;
	return false;
}

bool kmsg_complains(const char *line, const char *device)
{
	static const char *const always[] = {
		"BUG:",	  "WARNING:", "Oops:",	      "general protection",    "kernel BUG at",
		"UBSAN:", "KASAN:",   "Kernel panic", "blocked for more than",
	};
	/* No word that an id in hexadecimal could hold: "bad" is one. */
	static const char *const of_device[] = {
		"error",
		"corrupt",
		"critical",
		"failed",
		"shutting down",
		"inconsistent",
		"aborting journal",
		"forced readonly",
		"remounting filesystem read-only",
	};

	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		if (strstr(line, always[i]))
			return true;
	if (!device || !has_word(line, device))
		return false;
	/* What we asked for ourselves, before an unmount. */
	if (strstr(line, "shut down requested") || strstr(line, "User initiated shutdown") ||
	    strstr(line, "goingdown") || strstr(line, "Please unmount the filesystem"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(of_device); i++)
		if (mentions(line, of_device[i]))
			return true;
	return false;
}

bool kmsg_read(int fd, const char *device, struct strbuf *out)
{
	char record[8192];
	bool any = false;

	for (;;) {
		ssize_t n = read(fd, record, sizeof(record) - 1);

		if (n < 0 && errno == EPIPE)
			continue; /* the log has moved on; go on with the oldest that is there */
		if (n <= 0)
			return any;
		record[n] = '\0';
		char *text = strchr(record, ';');
		if (!text)
			continue;
		text++;
		text[strcspn(text, "\n")] = '\0';
		if (!kmsg_complains(text, device))
			continue;
		strbuf_addf(out, "%s\n", text);
		any = true;
	}
}
