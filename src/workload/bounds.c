/* SPDX-License-Identifier: MIT */
/* bounds.c - reads and prints bounds. The text is hostile; messages name file and line. */
#include "workload/bounds.h"

#include <ctype.h>
#include <errno.h>

#include "base/io.h"
#include "base/number.h"
#include "workload/workload.h"

static const struct word range_words[] = {
	{ "append", 1 << RANGE_APPEND },
	{ "start", 1 << RANGE_START },
	{ "middle", 1 << RANGE_MIDDLE },
	{ "end", 1 << RANGE_END },
	{ "extend", 1 << RANGE_EXTEND },
	{ "beyond", 1 << RANGE_BEYOND },
	{ "first-page", 1 << RANGE_FIRST_PAGE },
	{ "last-page", 1 << RANGE_LAST_PAGE },
	{ "later-pages", 1 << RANGE_LATER_PAGES },
	{ "over-end", 1 << RANGE_OVER_END },
	{ "gap", 1 << RANGE_GAP },
	{ NULL, 0 },
};

static const struct word persist_words[] = {
	{ "fsync", 1 << PERSIST_FSYNC },
	{ "fdatasync", 1 << PERSIST_FDATASYNC },
	{ "sync", 1 << PERSIST_SYNC },
	{ "syncfs", 1 << PERSIST_SYNCFS },
	{ NULL, 0 },
};

static const struct word on_words[] = {
	{ "latest", ON_LATEST },
	{ "used", ON_USED },
	{ "siblings", ON_SIBLINGS },
	{ "parents", ON_PARENTS },
	{ "ancestors", ON_ANCESTORS },
	{ "children", ON_CHILDREN },
	{ NULL, 0 },
};

static const struct word twice_words[] = {
	{ "no", TWICE_NO },
	{ "yes", TWICE_SPARE },
	{ "always", TWICE_ALWAYS },
	{ NULL, 0 },
};

static const struct word write_mode_words[] = {
	{ "plain", MODE_PLAIN },
	{ "sync", MODE_SYNC },
	{ "dsync", MODE_DSYNC },
	{ NULL, 0 },
};

static const struct word map_mode_words[] = {
	{ "msync", MODE_MSYNC },
	{ "nosync", MODE_NOSYNC },
	{ NULL, 0 },
};

static const struct word kind_words[] = {
	{ "file", KIND_FILE },
	{ "fifo", KIND_FIFO },
	{ "symlink", KIND_SYMLINK },
	{ NULL, 0 },
};

static const struct word reuse_words[] = {
	{ "none", REUSE_NONE },
	{ "related", REUSE_RELATED },
	{ "same", REUSE_SAME },
	{ NULL, 0 },
};

static const struct word bool_words[] = { { "yes", 1 }, { "no", 0 }, { NULL, 0 } };

enum { NAME_MAX_BYTES = 64 };

/* A file that is being read, and the files that named it as their base. */
struct bounds_source {
	const char *name; /* as the user wrote it, or the set's name */
	unsigned line;
	unsigned depth;
	const struct bounds_source *derived;
	bool based; /* has named its own base */
};

/* The words after a key. */
struct bounds_values {
	char **v;
	size_t n;
};

#define complain(src, err, ...) err_in_line((err), (src)->name, (src)->line, __VA_ARGS__)

void bounds_init(struct bounds *b)
{
	*b = (struct bounds){ .name = "bounds",
			      .length = 1,
			      .write_modes = MODE_PLAIN,
			      .direct_modes = MODE_PLAIN,
			      .map_modes = MODE_MSYNC };
}

void bounds_release(struct bounds *b)
{
	vec_release(&b->operations);
	vec_release(&b->files);
	vec_release(&b->directories);
	vec_release(&b->falloc_modes);
	vec_release(&b->sizes);
	vec_release(&b->xattrs);
	vec_release(&b->parts);
	arena_release(&b->arena);
}

static const struct word *find_word(const struct word *words, const char *name)
{
	for (const struct word *w = words; w->name; w++)
		if (streq(w->name, name))
			return w;
	return NULL;
}

static int unknown_word(const struct bounds_source *src, const struct word *words, const char *got,
			struct err *err)
{
	auto_strbuf list = STRBUF_INIT;

	for (const struct word *w = words; w->name; w++)
		strbuf_addf(&list, "%s%s", w == words ? "" : ", ", w->name);
	return complain(src, err, "'%.40s' is none of %s", got, strbuf_str(&list));
}

/* Sets the value of one word, or, for a list, the bits of all. */
static int set_words(struct bounds_source *src, const struct bounds_values *vals,
		     const struct word *words, bool list, unsigned *out, struct err *err)
{
	unsigned value = 0;

	if (!list && vals->n != 1)
		return complain(src, err, "only one word goes here");
	for (size_t i = 0; i < vals->n; i++) {
		const struct word *w = find_word(words, vals->v[i]);

		if (!w)
			return unknown_word(src, words, vals->v[i], err);
		value |= w->value;
	}
	*out = value;
	return 0;
}

static int set_operations(struct bounds *b, struct bounds_source *src,
			  const struct bounds_values *vals, struct err *err)
{
	bool edits = vals->n && strchr("+-", vals->v[0][0]);

	if (!edits)
		vec_clear(&b->operations);
	for (size_t i = 0; i < vals->n; i++) {
		const char *name = vals->v[i];
		char sign = '+';
		size_t at = 0;

		if (strchr("+-", name[0]))
			sign = *name++;
		const struct op_def *def = op_find(name, strlen(name));
		if (!def)
			return complain(src, err,
					"unknown operation '%.40s' (outage gen --list-operations)",
					name);
		if (def->flags & OP_MAKES_HANDLE || def->args[0].kind == ARG_HANDLE)
			return complain(src, err, "'%s' acts on handles, which are not generated",
					name);
		if (def->flags & OP_COMMAND)
			return complain(src, err, "'%s' runs commands, which are not generated",
					name);
		while (at < b->operations.n && b->operations.v[at] != def)
			at++;
		if (sign == '+' && at == b->operations.n)
			vec_push(&b->operations, def);
		else if (sign == '-' && at < b->operations.n)
			vec_remove(&b->operations, at, 1);
	}
	return 0;
}

static bool has_text(const char *const *v, size_t n, const char *text)
{
	return any_of(i, n, streq(v[i], text));
}

static int set_files(struct bounds *b, struct bounds_source *src, const struct bounds_values *vals,
		     struct err *err)
{
	const char *why;

	vec_clear(&b->files);
	for (size_t i = 0; i < vals->n; i++) {
		const char *name = vals->v[i];

		if (strchr(name, '/'))
			return complain(src, err, "'%.60s': a file's name, without directory",
					name);
		if (!workload_path_ok(name, &why))
			return complain(src, err, "'%.60s' %s", name, why);
		if (streq(name, ".") || has_text(b->files.v, b->files.n, name))
			return complain(src, err, "'%.60s' is there already", name);
		vec_push(&b->files, arena_strdup(&b->arena, name));
	}
	return 0;
}

static int set_directories(struct bounds *b, struct bounds_source *src,
			   const struct bounds_values *vals, struct err *err)
{
	const char *why;

	vec_clear(&b->directories);
	for (size_t i = 0; i < vals->n; i++) {
		const char *path = vals->v[i];
		const char *slash = strrchr(path, '/');

		if (!workload_path_ok(path, &why))
			return complain(src, err, "'%.60s' %s", path, why);
		if (streq(path, ".") || has_text(b->directories.v, b->directories.n, path))
			return complain(src, err, "'%.60s' is there already", path);
		if (slash) {
			auto_free char *parent = xmemdupz(path, (size_t)(slash - path));
			if (!has_text(b->directories.v, b->directories.n, parent))
				return complain(src, err,
						"'%.60s': its parent '%.60s' must come before it",
						path, parent);
		}
		vec_push(&b->directories, arena_strdup(&b->arena, path));
	}
	return 0;
}

static int set_falloc_modes(struct bounds *b, struct bounds_source *src,
			    const struct bounds_values *vals, struct err *err)
{
	vec_clear(&b->falloc_modes);
	for (size_t i = 0; i < vals->n; i++) {
		auto_free char *copy = xstrdup(vals->v[i]);
		unsigned value = 0;
		char *rest = copy, *one;

		while ((one = strsep(&rest, ","))) {
			const struct word *w = find_word(op_falloc_words, one);
			if (!w)
				return unknown_word(src, op_falloc_words, one, err);
			value |= w->value;
		}
		vec_push(&b->falloc_modes,
			 (struct falloc_mode){ value, arena_strdup(&b->arena, vals->v[i]) });
	}
	return 0;
}

static int set_sizes(struct bounds *b, struct bounds_source *src, const struct bounds_values *vals,
		     struct err *err)
{
	vec_clear(&b->sizes);
	for (size_t i = 0; i < vals->n; i++) {
		uint64_t size;
		struct err why = ERR_INIT;

		if (number_parse_size(vals->v[i], &size, &why))
			return complain(src, err, "%s", why.msg);
		if (size > OP_DATA_MAX)
			return complain(src, err, "size %.40s is more than %d, the most here",
					vals->v[i], OP_DATA_MAX);
		vec_push(&b->sizes, size);
	}
	return 0;
}

static int set_xattrs(struct bounds *b, struct bounds_source *src, const struct bounds_values *vals,
		      struct err *err)
{
	vec_clear(&b->xattrs);
	for (size_t i = 0; i < vals->n; i++) {
		if (!strchr(vals->v[i], '.') || strlen(vals->v[i]) > 255)
			return complain(src, err, "'%.60s' is not an attribute such as user.x",
					vals->v[i]);
		vec_push(&b->xattrs, arena_strdup(&b->arena, vals->v[i]));
	}
	return vals->n <= 16 ? 0 : complain(src, err, "at most 16 attributes");
}

static int set_length(struct bounds *b, struct bounds_source *src, const struct bounds_values *vals,
		      struct err *err)
{
	uint64_t n;

	if (vals->n != 1 || number_parse(vals->v[0], &n) || n < 1 || n > BOUNDS_LENGTH_MAX)
		return complain(src, err, "length is a number from 1 to %d", BOUNDS_LENGTH_MAX);
	b->length = (unsigned)n;
	return 0;
}

static int set_name(struct bounds *b, struct bounds_source *src, const struct bounds_values *vals,
		    struct err *err)
{
	if (vals->n != 1 || strlen(vals->v[0]) > NAME_MAX_BYTES || strchr(vals->v[0], '/'))
		return complain(src, err, "name is one word without '/', at most %d bytes",
				NAME_MAX_BYTES);
	b->name = arena_strdup(&b->arena, vals->v[0]);
	return 0;
}

static int load_into(struct bounds *b, const char *spec, const struct bounds_source *from,
		     struct err *err);

static const struct bounds_set *find_set(const char *name)
{
	for (const struct bounds_set *set = bounds_sets; set->name; set++)
		if (streq(set->name, name))
			return set;
	return NULL;
}

static int set_parts(struct bounds *b, struct bounds_source *src, const struct bounds_values *vals,
		     struct err *err)
{
	vec_clear(&b->parts);
	for (size_t i = 0; i < vals->n; i++) {
		const struct bounds_set *set = find_set(vals->v[i]);

		if (!set || strncmp(set->text, "union ", 6) == 0)
			return complain(src, err,
					"union takes named sets that are no unions, not '%.40s'",
					vals->v[i]);
		if (any_of(j, b->parts.n, b->parts.v[j] == set))
			return complain(src, err, "'%.60s' is there already", vals->v[i]);
		vec_push(&b->parts, set);
	}
	return 0;
}

/* Resolves `spec`: a set's name stays as it is, a file is relative to the one that names it. */
static char *resolve(const struct bounds_source *from, const char *spec)
{
	const char *slash = strrchr(from->name, '/');

	if (find_set(spec) || spec[0] == '/' || !slash)
		return xstrdup(spec);
	return xasprintf("%.*s/%s", (int)(slash - from->name), from->name, spec);
}

static int set_base(struct bounds *b, struct bounds_source *src, const struct bounds_values *vals,
		    struct err *err)
{
	if (vals->n != 1)
		return complain(src, err, "base takes one set or file");
	if (src->based)
		return complain(src, err, "only one base");
	src->based = true;
	auto_free char *spec = resolve(src, vals->v[0]);
	for (const struct bounds_source *s = src; s; s = s->derived)
		if (streq(s->name, spec))
			return complain(src, err, "base %.60s leads back to itself", vals->v[0]);
	if (src->depth >= BOUNDS_DEPTH_MAX)
		return complain(src, err, "more than %d bases, one on the other", BOUNDS_DEPTH_MAX);
	return load_into(b, spec, src, err);
}

enum { ANY = ~0u };

#define WORDS(member_, words_)                                                                     \
	.words = (words_), .member = offsetof(struct bounds, member_), .usual = ANY
#define RARELY(member_, words_, usual_)                                                            \
	.words = (words_), .member = offsetof(struct bounds, member_), .usual = (usual_)

static const struct bounds_key {
	const char *name;
	bool list; /* takes any number of words; "none" alone empties it */
	int (*set)(struct bounds *b, struct bounds_source *src, const struct bounds_values *vals,
		   struct err *err);
	const struct word *words; /* instead: the words whose bits make the member, an unsigned */
	size_t member;
	unsigned usual; /* printed only if it is anything else; ANY: always */
} keys[] = {
	{ "base", false, .set = set_base },
	{ "name", false, .set = set_name },
	{ "union", true, .set = set_parts },
	{ "length", false, .set = set_length },
	{ "operations", true, .set = set_operations },
	{ "files", true, .set = set_files },
	{ "directories", true, .set = set_directories },
	{ "ranges", true, WORDS(ranges, range_words) },
	{ "direct-ranges", true, WORDS(direct_ranges, range_words) },
	{ "falloc-ranges", true, WORDS(falloc_ranges, range_words) },
	{ "falloc-modes", true, .set = set_falloc_modes },
	{ "sizes", true, .set = set_sizes },
	{ "xattrs", true, .set = set_xattrs },
	{ "persist", true, WORDS(persist, persist_words) },
	{ "persist-on", true, WORDS(persist_on, on_words) },
	{ "last-persist-on", true, WORDS(last_persist_on, on_words) },
	{ "persist-twice", false, WORDS(persist_twice, twice_words) },
	{ "reuse", false, WORDS(reuse, reuse_words) },
	{ "overlap", false, WORDS(overlap, bool_words) },
	{ "durable-setup", false, WORDS(durable_setup, bool_words) },
	{ "setup-first", false, RARELY(setup_first, bool_words, 0) },
	{ "existing", false, RARELY(existing, bool_words, 0) },
	{ "filled", false, RARELY(filled, bool_words, 0) },
	{ "file-kind", false, RARELY(file_kind, kind_words, KIND_FILE) },
	{ "write-modes", true, RARELY(write_modes, write_mode_words, MODE_PLAIN) },
	{ "direct-modes", true, RARELY(direct_modes, write_mode_words, MODE_PLAIN) },
	{ "map-modes", true, RARELY(map_modes, map_mode_words, MODE_MSYNC) },
};

static unsigned *member_of(const struct bounds *b, const struct bounds_key *key)
{
	return (unsigned *)((char *)b + key->member);
}

static int parse_line(struct bounds *b, char *line, struct bounds_source *src, struct err *err)
{
	enum { WORDS_MAX = 128 };
	char *words[WORDS_MAX];
	size_t n = 0;

	line[strcspn(line, "#\r")] = '\0';
	for (char *w; (w = strsep(&line, " \t"));) {
		if (!*w)
			continue;
		if (n == WORDS_MAX)
			return complain(src, err, "more than %d words", WORDS_MAX);
		for (const char *p = w; *p; p++)
			if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '\\' || *p == '"')
				return complain(src, err, "byte 0x%02x has no place here",
						(unsigned char)*p);
		words[n++] = w;
	}
	if (!n)
		return 0;
	for (const struct bounds_key *k = keys; k < keys + ARRAY_SIZE(keys); k++) {
		if (!streq(k->name, words[0]))
			continue;
		if (n == 1)
			return complain(src, err, "%s needs a value", words[0]);
		bool none = k->list && n == 2 && streq(words[1], "none");
		struct bounds_values vals = { words + 1, none ? 0 : n - 1 };

		return k->set ? k->set(b, src, &vals, err)
			      : set_words(src, &vals, k->words, k->list, member_of(b, k), err);
	}
	auto_strbuf list = STRBUF_INIT;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		strbuf_addf(&list, "%s%s", i ? ", " : "", keys[i].name);
	return complain(src, err, "unknown key '%.40s'; there are %s", words[0], strbuf_str(&list));
}

static int parse_text(struct bounds *b, const char *text, size_t len, struct bounds_source *src,
		      struct err *err)
{
	auto_free char *copy = xmemdupz(text, len);
	char *rest = copy, *line;

	if (strlen(copy) != len)
		return err_set(err, -EINVAL, "%s: a NUL byte; is this a text file?", src->name);
	while ((line = strsep(&rest, "\n"))) {
		src->line++;
		int rc = parse_line(b, line, src, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Names bounds after their set or file, as far as its characters are allowed in a name. */
static void name_after(struct bounds *b, const char *spec)
{
	const char *slash = strrchr(spec, '/');
	const char *last = slash ? slash + 1 : spec;
	char *name = arena_memdupz(&b->arena, last, min(strlen(last), (size_t)NAME_MAX_BYTES));

	for (char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._+-", *p))
			*p = '_';
	b->name = name;
}

static int load_into(struct bounds *b, const char *spec, const struct bounds_source *from,
		     struct err *err)
{
	struct bounds_source src = { .name = spec,
				     .depth = from ? from->depth + 1 : 0,
				     .derived = from };
	const struct bounds_set *set = find_set(spec);

	if (!from)
		name_after(b, spec);
	if (set)
		return parse_text(b, set->text, strlen(set->text), &src, err);
	auto_strbuf text = STRBUF_INIT;
	struct err why = ERR_INIT;
	int rc = io_slurp(spec, BOUNDS_FILE_MAX, &text, &why);
	if (rc == -ENOENT && !strchr(spec, '/')) {
		err_clear(&why);
		err_set(&why, rc, "'%.100s' is neither a named set (outage gen --list) nor a file",
			spec);
	}
	if (rc)
		return from ? complain(from, err, "%s", why.msg) : err_set(err, rc, "%s", why.msg);
	return parse_text(b, strbuf_str(&text), text.len, &src, err);
}

/* Checks the bounds as a whole, when every line was read. */
static int check(const struct bounds *b, const char *source, struct err *err)
{
	size_t names = 1 + b->directories.n + b->files.n * (b->directories.n + 1);

	if (b->parts.n && (b->operations.n || b->files.n || b->directories.n))
		return err_set(err, -EINVAL, "%s: union goes with no key but name", source);
	if (b->parts.n)
		return 0;
	if (!b->operations.n)
		return err_set(err, -EINVAL,
			       "%s: no operations; add a line such as "
			       "'operations creat rename' or 'base seq-1'",
			       source);
	if (names > BOUNDS_NAMES_MAX)
		return err_set(err, -EINVAL, "%s: %zu files and directories in all; %d is the most",
			       source, names, BOUNDS_NAMES_MAX);
	if (b->persist == 1 << PERSIST_FSYNC && !(b->last_persist_on & (ON_LATEST | ON_USED)))
		return err_set(err, -EINVAL,
			       "%s: fsync has nothing to act on; add 'last-persist-on used'",
			       source);
	for (size_t i = 0; i < b->directories.n; i++) {
		const char *slash = strrchr(b->directories.v[i], '/');
		const char *last = slash ? slash + 1 : b->directories.v[i];
		if (has_text(b->files.v, b->files.n, last))
			return err_set(err, -EINVAL, "%s: '%s' is both a file and a directory",
				       source, last);
	}
	return 0;
}

int bounds_parse(const char *text, size_t len, const char *source, struct bounds *out,
		 struct err *err)
{
	struct bounds_source src = { .name = source };
	int rc = parse_text(out, text, len, &src, err);

	return rc ? rc : check(out, source, err);
}

int bounds_load(const char *spec, struct bounds *out, struct err *err)
{
	int rc = load_into(out, spec, NULL, err);

	return rc ? rc : check(out, spec, err);
}

/* Prints the keys from FIRST to LAST. */
static void print_words(const struct bounds *b, const char *first, const char *last,
			struct strbuf *out)
{
	const struct bounds_key *k = keys;

	while (!streq(k->name, first))
		k++;
	for (;; k++) {
		unsigned value = *member_of(b, k);

		strbuf_adds(out, value == k->usual ? "" : k->name);
		for (const struct word *w = k->words; w->name && value != k->usual; w++)
			if (k->list ? value & w->value : value == w->value)
				strbuf_addf(out, " %s", w->name);
		strbuf_adds(out, value == k->usual ? "" : k->list && !value ? " none\n" : "\n");
		if (streq(k->name, last))
			return;
	}
}

void bounds_print(const struct bounds *b, struct strbuf *out)
{
	strbuf_addf(out, "name %s\n", b->name);
	for (size_t i = 0; i < b->parts.n; i++)
		strbuf_addf(out, "%s %s", i ? "" : "union", b->parts.v[i]->name);
	if (b->parts.n) {
		strbuf_addch(out, '\n');
		return;
	}
	strbuf_addf(out, "length %u\noperations", b->length);
	for (size_t i = 0; i < b->operations.n; i++)
		strbuf_addf(out, " %s", b->operations.v[i]->name);
	for (size_t i = 0; i < b->files.n; i++)
		strbuf_addf(out, "%s %s", i ? "" : "\nfiles", b->files.v[i]);
	strbuf_adds(out, "\ndirectories");
	for (size_t i = 0; i < b->directories.n; i++)
		strbuf_addf(out, " %s", b->directories.v[i]);
	strbuf_adds(out, b->directories.n ? "\n" : " none\n");
	print_words(b, "ranges", "falloc-ranges", out);
	for (size_t i = 0; i < b->falloc_modes.n; i++)
		strbuf_addf(out, "%s %s", i ? "" : "falloc-modes", b->falloc_modes.v[i].text);
	strbuf_adds(out, b->falloc_modes.n ? "\n" : "");
	for (size_t i = 0; i < b->sizes.n; i++)
		strbuf_addf(out, "%s %llu", i ? "" : "sizes", llu(b->sizes.v[i]));
	strbuf_adds(out, b->sizes.n ? "\n" : "");
	for (size_t i = 0; i < b->xattrs.n; i++)
		strbuf_addf(out, "%s %s", i ? "" : "xattrs", b->xattrs.v[i]);
	strbuf_adds(out, b->xattrs.n ? "\n" : "");
	print_words(b, "persist", "map-modes", out);
}
