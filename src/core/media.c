/* SPDX-License-Identifier: MIT */
/* media.c - reads and writes media faults as text, and puts them into an image. */
#include "core/media.h"

#include <errno.h>
#include <inttypes.h>

static const char *const kind_names[] = { [MEDIA_POISON] = "poison", [MEDIA_STALE] = "stale" };

int media_parse_kinds(const char *text, unsigned *kinds, struct err *err)
{
	auto_free char *copy = xstrdup(text);
	char *rest = copy;
	unsigned all = 0;

	for (char *word; !streq(text, "none") && (word = strsep(&rest, ","));) {
		size_t i = 0;

		while (i < ARRAY_SIZE(kind_names) && !streq(word, kind_names[i]))
			i++;
		if (i == ARRAY_SIZE(kind_names))
			return err_set(err, -EINVAL,
				       "--media is poison, stale or poison,stale, not '%.40s'",
				       text);
		all |= 1u << i;
	}
	*kinds = all;
	return 0;
}

void media_faults_release(struct media_faults *f)
{
	vec_release(f);
}

void media_lines(const struct trace *t, uint64_t from, uint64_t to, struct media_lines *out)
{
	assert(from <= to && to <= t->events.n);
	vec_clear(out);
	for (uint64_t i = from; i < to; i++) {
		const struct event *ev = &t->events.v[i];
		uint64_t line = ev->addr / PM_LINE * PM_LINE;

		/* A line that is copied word by word is listed once. */
		for (; ev->kind == EV_STORE && line < ev->addr + ev->len; line += PM_LINE)
			if (!out->n || vec_last(out) != line)
				vec_push(out, line);
	}
	vec_sort_unique(out, by_u64);
}

void media_apply(const struct media_faults *f, const struct image *old, struct image *img)
{
	char pattern[PM_LINE];

	for (size_t i = 0; i < PM_LINE; i++)
		pattern[i] = MEDIA_PATTERN[i % (sizeof(MEDIA_PATTERN) - 1)];
	for (size_t i = 0; i < f->n; i++) {
		uint64_t line = f->v[i].line;
		uint64_t len = min((uint64_t)PM_LINE, img->size - line);

		assert(line % PM_LINE == 0 && line < img->size && old->size == img->size);
		if (f->v[i].kind == MEDIA_POISON)
			image_write(img, line, pattern, len);
		else
			image_copy(img, old, line, len);
	}
}

void media_format(const struct media_faults *f, struct strbuf *out)
{
	for (size_t i = 0; i < f->n; i++)
		strbuf_addf(out, "%s%s:%" PRIu64, i ? "," : "", kind_names[f->v[i].kind],
			    f->v[i].line);
}

static int bad_fault(struct err *err, const char *text)
{
	return err_set(err, -EINVAL,
		       "'%.80s' is no media fault; one is poison:ADDRESS or stale:ADDRESS, where "
		       "the address is that of a line in the region",
		       text);
}

static bool parse_fault(const char **text, uint64_t size, struct media_fault *f)
{
	for (unsigned k = 0; k < ARRAY_SIZE(kind_names); k++) {
		size_t len = strlen(kind_names[k]);
		const char *s = *text;
		char *end;

		if (strncmp(s, kind_names[k], len) != 0 || s[len] != ':')
			continue;
		s += len + 1;
		if (*s < '0' || *s > '9')
			return false;
		errno = 0;
		*f = (struct media_fault){ (enum media_kind)k, strtoull(s, &end, 10) };
		*text = end;
		return !errno && f->line < size && f->line % PM_LINE == 0;
	}
	return false;
}

int media_parse(const char *text, uint64_t size, struct media_faults *out, struct err *err)
{
	auto_media_faults f = { 0 };
	const char *at = text;

	for (;; at++) {
		struct media_fault one;

		if (!parse_fault(&at, size, &one) || (*at && *at != ','))
			return bad_fault(err, text);
		vec_push(&f, one);
		if (!*at)
			break;
	}
	*out = f;
	f = (struct media_faults){ 0 };
	return 0;
}
