/* SPDX-License-Identifier: MIT */
/* guest_args.c - splits the user's words for a kernel or for QEMU, and finds those of a module. */
#include "guest/guest_args.h"

#include <ctype.h>
#include <errno.h>

#include "base/util.h"
#include "guest/modules.h"

static int check_text(const char *words, const char *option, struct err *err)
{
	if (strlen(words) > GUEST_ARGS_BYTES_MAX)
		return err_set(err, -E2BIG, "%s has %zu bytes; it may have %d", option,
			       strlen(words), GUEST_ARGS_BYTES_MAX);
	for (const char *p = words; *p; p++)
		if (iscntrl((unsigned char)*p))
			return err_set(err, -EINVAL,
				       "%s has a control character, such as a line end", option);
	return 0;
}

int guest_args_split(const char *words, const char *option, struct guest_args *out, struct err *err)
{
	struct guest_args a = { 0 };
	int rc = words ? check_text(words, option, err) : 0;

	if (rc || !words)
		return rc;
	a.text = xstrdup(words);
	for (char *rest = a.text, *word; !rc && (word = strsep(&rest, " "));) {
		if (!*word)
			continue;
		if (a.n == GUEST_ARGS_MAX)
			rc = err_set(err, -E2BIG, "%s has more than %d words", option,
				     GUEST_ARGS_MAX);
		else
			a.v[a.n++] = word;
	}
	if (rc)
		guest_args_release(&a);
	else
		*out = a;
	return rc;
}

void guest_args_release(struct guest_args *a)
{
	free(a->text);
	*a = (struct guest_args){ 0 };
}

void guest_args_of_module(const struct guest_args *a, const char *path, struct strbuf *out)
{
	for (unsigned i = 0; i < a->n; i++) {
		size_t n = strcspn(a->v[i], ".=");
		auto_free char *module = xmemdupz(a->v[i], n);

		if (a->v[i][n] == '.' && modules_is(path, strlen(path), module))
			strbuf_addf(out, "%s%s", out->len ? " " : "", a->v[i] + n + 1);
	}
}
