/* SPDX-License-Identifier: MIT */
#include "check/finding.h"

#include <ctype.h>

#include "base/strbuf.h"

enum { WORDS_LEN = 300 };

static const struct {
	const char *name, *words;
} kinds[FINDING_KIND_END] = {
	[FINDING_UNMOUNTABLE] = { "unmountable", "the file system cannot be mounted" },
	[FINDING_KERNEL_LOG] = { "kernel-log", "the kernel complained" },
	[FINDING_HANG] = { "hang", "the file system did not answer" },
	[FINDING_MISSING] = { "missing", "what was persisted is missing" },
	[FINDING_LOST] = { "lost", "a file is under neither its old nor its new name" },
	[FINDING_BOTH] = { "both-places", "a renamed file is in both places" },
	[FINDING_BACK] = { "back", "what was removed is back" },
	[FINDING_NEVER] = { "never-was", "there is a name that never was" },
	[FINDING_TYPE] = { "type", "it is of another type" },
	[FINDING_SIZE] = { "size", "the size is wrong" },
	[FINDING_CONTENT] = { "content", "the content is wrong" },
	[FINDING_MODE] = { "mode", "the permissions are wrong" },
	[FINDING_OWNER] = { "owner", "the owner is wrong" },
	[FINDING_NLINK] = { "nlink", "the link count is wrong" },
	[FINDING_XATTR] = { "xattr", "an extended attribute is wrong" },
	[FINDING_TARGET] = { "target", "a symbolic link leads elsewhere" },
	[FINDING_RDEV] = { "rdev", "a device number is wrong" },
	[FINDING_BLOCKS] = { "blocks", "allocated blocks are lost" },
	[FINDING_UNREADABLE] = { "unreadable", "something cannot be read" },
	[FINDING_DOUBLED] = { "doubled", "a directory lists a name twice" },
	[FINDING_UNUSABLE] = { "unusable", "what is there cannot be used or removed" },
	[FINDING_FSCK] = { "fsck", "the file system's own checker complains" },
	[FINDING_RECOVERY] = { "recovery", "recovering again gives another state" },
	[FINDING_LIVE] = { "live", "it differs from the reference before any crash" },
	[FINDING_HALF_DONE] = { "not-atomic", "an operation is done in part" },
	[FINDING_UNSETTLED] = { "not-single", "an operation that returned has no single result" },
	[FINDING_TIME] = { "time", "a time of a file is wrong" },
	[FINDING_DUMP] = { "dump-failed", "the command that tells what is there failed" },
	[FINDING_CHECK] = { "check-failed", "the command that checks it failed" },
};

const char *finding_kind_name(enum finding_kind kind)
{
	assert((unsigned)kind < FINDING_KIND_END);
	return kinds[kind].name;
}

const char *finding_kind_words(enum finding_kind kind)
{
	assert((unsigned)kind < FINDING_KIND_END);
	return kinds[kind].words;
}

const char *finding_kind_why(enum finding_kind kind)
{
	switch (kind) {
	case FINDING_SIZE:
	case FINDING_MODE:
	case FINDING_OWNER:
	case FINDING_XATTR:
	case FINDING_TARGET:
	case FINDING_RDEV:
		return "no operation ever gave it that value";
	case FINDING_CONTENT:
		return "no operation ever put these bytes there";
	case FINDING_TYPE:
		return "no operation ever made it so";
	case FINDING_NEVER:
		return "no operation ever made it";
	case FINDING_BOTH:
		return "it never had all these names at one time";
	default:
		return "";
	}
}

enum finding_kind finding_kind_find(const char *name)
{
	int k = 0;

	while (k < FINDING_KIND_END && !streq(kinds[k].name, name))
		k++;
	return (enum finding_kind)k;
}

/*
 * What programs and the kernel say has lines; the words of a finding are one. What is too long is
 * cut between words. Takes the text over.
 */
static char *one_line(char *text)
{
	struct strbuf out = { 0 };

	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		size_t len = strlen(line);

		while (len && isspace((unsigned char)line[len - 1]))
			len--;
		if (len && out.len)
			strbuf_adds(&out, "; ");
		strbuf_add(&out, line, len);
	}
	free(text);
	if (out.len > WORDS_LEN) {
		size_t cut = WORDS_LEN;

		while (cut > WORDS_LEN / 2 && out.buf[cut] != ' ')
			cut--;
		strbuf_cut(&out, cut);
		strbuf_adds(&out, " ...");
	}
	return out.buf ? strbuf_detach(&out) : xstrdup("");
}

void findings_add(struct findings *list, enum finding_kind kind, char *path, char *words,
		  char *promise)
{
	vec_push(list, (struct finding){
			       .kind = kind,
			       .path = path ? path : xstrdup(""),
			       .words = words ? one_line(words) : xstrdup(finding_kind_words(kind)),
			       .promise = promise ? promise : xstrdup(""),
		       });
}

void findings_clear(struct findings *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->v[i].path);
		free(list->v[i].words);
		free(list->v[i].promise);
	}
	vec_clear(list);
}

void findings_release(struct findings *list)
{
	findings_clear(list);
	vec_release(list);
}
