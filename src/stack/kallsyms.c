/* SPDX-License-Identifier: MIT */
/* kallsyms.c - parses a list of symbols, and finds the one that an address belongs to. */
#include "stack/kallsyms.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/io.h"

enum { TEXT_MAX = 256 << 20, LINES_MAX = 8 << 20 };

void kallsyms_release(struct kallsyms *k)
{
	vec_release(&k->all);
	free(k->text);
	*k = (struct kallsyms)KALLSYMS_INIT;
}

static int wrong(uint32_t line, const char *what, struct err *err)
{
	return err_set(err, -EINVAL, "line %" PRIu32 " of the kernel's symbols %s", line, what);
}

/* Takes the word at `*at`, and moves to the next one; NULL if there is none. */
static char *word(char **at)
{
	char *from = *at + strspn(*at, " \t"), *end = from + strcspn(from, " \t");

	*at = end;
	if (end == from)
		return NULL;
	if (*end)
		*(*at)++ = '\0';
	return from;
}

static bool is_name(const char *s, size_t max)
{
	size_t n = strlen(s);

	return n && n <= max && all_of(i, n, isgraph((unsigned char)s[i]));
}

static bool is_address(const char *s, uint64_t *out)
{
	size_t n = strspn(s, "0123456789abcdefABCDEF");

	if (!n || n > 16 || s[n])
		return false;
	*out = strtoull(s, NULL, 16);
	return true;
}

/* True for "[name]", which becomes "name". */
static bool is_module(char **s)
{
	size_t n = strlen(*s);

	if (n < 3 || (*s)[0] != '[' || (*s)[n - 1] != ']')
		return false;
	(*s)[n - 1] = '\0';
	++*s;
	return is_name(*s, KALLSYMS_NAME_MAX);
}

static int add_line(struct kallsyms *k, char *line, uint32_t number, struct err *err)
{
	char *addr = word(&line), *type = word(&line), *name = word(&line), *module = word(&line);
	struct kallsym s = { .line = number };

	if (!addr)
		return 0;
	/*
	 * A symbol that is used but not defined has no address: nm prints such lines.
	 */
	if (addr[0] && !addr[1] && strchr("Uwv", addr[0]) && type && !name)
		return 0;
	if (!is_address(addr, &s.addr))
		return wrong(number, "does not begin with an address", err);
	if (!type || type[1] || !isalpha((unsigned char)type[0]))
		return wrong(number, "does not say of what kind its symbol is", err);
	if (!name || !is_name(name, KALLSYMS_NAME_MAX))
		return wrong(number, "has no name, or one that is too long", err);
	if (word(&line) || (module && !is_module(&module)))
		return wrong(number, "has something behind its name that is no module", err);
	if (!strchr("tTwW", type[0]))
		return 0;
	s.name = (uint32_t)(name - k->text);
	s.module = module ? (uint32_t)(module - k->text) : 0;
	s.global = type[0] == 'T';
	vec_push(&k->all, s);
	return 0;
}

DEFINE_ORDER(by_address, struct kallsym,
	     order(a->addr, b->addr) ?: order(b->global, a->global) ?: order(a->line, b->line))

/* Sorts by address. If an address has several names, the first global one is kept, or the first. */
static void sort(struct kallsyms *k)
{
	size_t n = 0;

	vec_sort(&k->all, by_address);
	for (size_t i = 0; i < k->all.n; i++)
		if (!n || k->all.v[n - 1].addr != k->all.v[i].addr)
			k->all.v[n++] = k->all.v[i];
	k->all.n = n;
}

static int add_lines(struct kallsyms *k, size_t len, struct err *err)
{
	char *end = k->text + len;
	uint32_t number = 0;
	int rc = 0;

	for (char *at = k->text, *next; at < end && !rc; at = next) {
		size_t n = strcspn(at, "\n");

		if (at + n < end && !at[n])
			return wrong(number + 1, "has a byte 0", err);
		next = at + n + 1;
		at[n] = '\0';
		if (++number > LINES_MAX)
			return err_set(err, -EFBIG,
				       "the kernel's symbols have more than %d lines: this is no "
				       "System.map",
				       LINES_MAX);
		rc = add_line(k, at, number, err);
	}
	return rc;
}

int kallsyms_parse(const char *text, size_t len, struct kallsyms *out, struct err *err)
{
	struct kallsyms k = KALLSYMS_INIT;

	if (len > TEXT_MAX)
		return err_set(err, -EFBIG,
			       "the kernel's symbols are %zu bytes long: this is no System.map",
			       len);
	k.text = xmemdupz(text, len);
	int rc = add_lines(&k, len, err);
	if (!rc)
		sort(&k);
	if (!rc && !k.all.n)
		rc = err_set(err, -ENOENT, "the kernel's symbols name no function");
	else if (!rc && !k.all.v[k.all.n - 1].addr)
		rc = err_set(err, -EACCES,
			     "the kernel's symbols have no addresses: read /proc/kallsyms as root, "
			     "with kernel.kptr_restrict at most 1");
	if (rc)
		kallsyms_release(&k);
	else
		*out = k;
	return rc;
}

int kallsyms_load(const char *path, struct kallsyms *out, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = io_slurp(path, TEXT_MAX, &text, err);

	return rc ? rc : kallsyms_parse(strbuf_str(&text), text.len, out, err);
}

bool kallsyms_find(const struct kallsyms *k, uint64_t addr, const char **name, const char **module,
		   uint64_t *offset)
{
	size_t behind = first_where(i, k->all.n, k->all.v[i].addr > addr);

	if (!behind || addr - k->all.v[behind - 1].addr >= KALLSYMS_REACH)
		return false;
	const struct kallsym *s = &k->all.v[behind - 1];
	*name = k->text + s->name;
	*module = s->module ? k->text + s->module : "";
	*offset = addr - s->addr;
	return true;
}
