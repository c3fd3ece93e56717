/* SPDX-License-Identifier: MIT */
/* jlang.c - parses CrashMonkey's files, and translates each line into operations. */
#include "workload/jlang.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>

#include "base/number.h"

enum { LINE_MAX_BYTES = 4096, WORDS_MAX = 8, NAMES_MAX = 4096 };

enum section { SECTION_NONE, SECTION_DEFINE, SECTION_DECLARE, SECTION_SETUP, SECTION_RUN };

struct jname {
	const char *spelled; /* slashes dropped */
	const char *path;
	const char *handle;
	bool open; /* the handle is open */
};

struct jfile {
	const char *source;
	unsigned line;
	enum section section;
	struct vec_of(struct jname) names;
	struct workload *out;
	struct err *err;
	char text[LINE_MAX_BYTES]; /* the current line */
	char *word[WORDS_MAX];	   /* the words of the line */
	size_t n_words;
};

#define complain(f, ...) err_in_line((f)->err, (f)->source, (f)->line, __VA_ARGS__)

static bool is_heading(const char *line, enum section *out)
{
	static const char *const headings[] = {
		[SECTION_DEFINE] = "define",
		[SECTION_DECLARE] = "declare",
		[SECTION_SETUP] = "setup",
		[SECTION_RUN] = "run",
	};
	char word[16];

	if (sscanf(line, "# %15s", word) != 1)
		return false;
	for (int s = SECTION_DEFINE; s <= SECTION_RUN; s++)
		if (streq(word, headings[s])) {
			*out = (enum section)s;
			return true;
		}
	return false;
}

bool jlang_recognise(FILE *in)
{
	char line[LINE_MAX_BYTES];
	enum section section;
	bool define = false, run = false;
	long start = ftell(in);

	if (start < 0)
		return false;
	while (!run && fgets(line, sizeof(line), in))
		if (is_heading(line, &section)) {
			define |= section == SECTION_DEFINE;
			run |= section == SECTION_RUN;
		} else if (!define && !strchr("#\r\n", line[strspn(line, " \t")])) {
			break; /* another section begins here; its lines may be long */
		} else if (!line[0]) {
			break;
		}
	return fseek(in, start, SEEK_SET) == 0 && define && run;
}

/* ---- names ---- */

/* Makes a handle for a name: without dots and dashes, with a number if it were not unique. */
static const char *make_handle(struct jfile *f, const char *spelled)
{
	auto_free char *handle = xasprintf("f%.60s", spelled);

	for (char *p = handle; *p; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	for (size_t i = 0; i < f->names.n; i++)
		if (streq(f->names.v[i].handle, handle)) {
			free(handle);
			handle = xasprintf("g%zu", f->names.n);
			break;
		}
	return arena_strdup(&f->out->arena, handle);
}

static int define_name(struct jfile *f, const char *path)
{
	struct arena *arena = &f->out->arena;
	const char *why;
	auto_strbuf spelled = STRBUF_INIT;

	if (!workload_path_ok(path, &why))
		return complain(f, "path '%.60s' %s", path, why);
	if (f->names.n >= NAMES_MAX)
		return complain(f, "more than %d names", NAMES_MAX);
	for (const char *p = path; *p; p++)
		if (*p != '/')
			strbuf_addch(&spelled, *p);
	/* Before the push, whose right side may see the vector already grown. */
	const char *handle = make_handle(f, strbuf_str(&spelled));
	vec_push(&f->names, (struct jname){
				    .spelled = arena_strdup(arena, strbuf_str(&spelled)),
				    .path = streq(path, "test") ? "." : arena_strdup(arena, path),
				    .handle = handle,
			    });
	return 0;
}

static struct jname *find_name(struct jfile *f, const char *spelled)
{
	for (size_t i = 0; i < f->names.n; i++)
		if (streq(f->names.v[i].spelled, spelled))
			return &f->names.v[i];
	(void)complain(f, "'%.60s' is not in the define section", spelled);
	return NULL;
}

/* ---- writing operations ---- */

static int emit(struct jfile *f, const char *fmt, ...) printf_like(2, 3);

static int emit(struct jfile *f, const char *fmt, ...)
{
	char line[4 * LINE_MAX_BYTES]; /* three words of a line, and our own */
	struct err err = ERR_INIT;
	va_list ap;

	va_start(ap, fmt);
	int len = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= sizeof(line))
		return complain(f, "the operation is longer than %zu bytes", sizeof(line) - 1);
	if (workload_add_line(f->out, line, &err)) {
		const char *what = strstr(err.msg, ": "); /* without the place in our text */
		return complain(f, "%s", what ? what + 2 : err.msg);
	}
	vec_last(&f->out->ops).setup = f->section == SECTION_SETUP;
	return 0;
}

/* Gives the handle for a name; the file must be open. */
static int need_open(struct jfile *f, const struct jname *name)
{
	return name->open ? 0 : complain(f, "'%s' is used before it is opened", name->spelled);
}

/* ---- the operations; word[0] is the operation, word[1] a name ---- */

struct translation {
	const char *from, *to; /* NULL ends a table */
};

/* Translates the third word, "O_RDWR|O_CREAT", to "rdwr,creat". */
static int translate(struct jfile *f, const struct translation *table, const char *what,
		     struct strbuf *out)
{
	auto_free char *copy = xstrdup(f->word[2]);
	char *rest = copy;

	for (const char *one; (one = strsep(&rest, "|"));) {
		const struct translation *t = table;

		while (t->from && !streq(t->from, one))
			t++;
		if (!t->from)
			return complain(f, "unknown %s '%.40s'", what, one);
		strbuf_addf(out, "%s%s", out->len ? "," : "", t->to);
	}
	return 0;
}

static int in_open(struct jfile *f, struct jname *name)
{
	static const struct translation flags[] = {
		{ "O_RDONLY", "rdonly" }, { "O_WRONLY", "wronly" },	  { "O_RDWR", "rdwr" },
		{ "O_CREAT", "creat" },	  { "O_EXCL", "excl" },		  { "O_TRUNC", "trunc" },
		{ "O_APPEND", "append" }, { "O_DIRECT", "direct" },	  { "O_SYNC", "sync" },
		{ "O_DSYNC", "dsync" },	  { "O_DIRECTORY", "directory" }, { NULL, NULL },
	};
	auto_strbuf list = STRBUF_INIT;
	int rc = translate(f, flags, "open flag", &list);

	if (rc)
		return rc;
	name->open = true;
	return emit(f, "%s = open %s %s %s", name->handle, name->path, strbuf_str(&list),
		    f->n_words > 3 ? f->word[3] : "0644");
}

static int in_opendir(struct jfile *f, struct jname *name)
{
	name->open = true;
	return emit(f, "%s = open %s rdonly,directory", name->handle, name->path);
}

static int in_close(struct jfile *f, struct jname *name)
{
	/* The generator closes a file once more after a direct write has closed it. */
	if (!name->open)
		return 0;
	name->open = false;
	return emit(f, "close %s", name->handle);
}

static int in_path_op(struct jfile *f, struct jname *name)
{
	return emit(f, "%s %s", f->word[0], name->path);
}

static int in_mkdir(struct jfile *f, struct jname *name)
{
	return emit(f, "mkdir %s %s", name->path, f->n_words > 2 ? f->word[2] : "0777");
}

static int in_mknod(struct jfile *f, struct jname *name)
{
	bool block = strstr(f->word[2], "S_IFBLK"); /* CHR and BLK together have BLK's value */
	bool character = strstr(f->word[2], "S_IFCHR"), fifo = strstr(f->word[2], "S_IFIFO");

	return emit(f, "mknod %s %s 0", name->path,
		    block	? "block"
		    : character ? "char"
		    : fifo	? "fifo"
				: "regular");
}

static int in_two_paths(struct jfile *f, struct jname *name)
{
	const struct jname *to = find_name(f, f->word[2]);

	return to ? emit(f, "%s %s %s", f->word[0], name->path, to->path) : -EINVAL;
}

/* The old name is relative to the root, wherever the new name is. */
static int in_symlink(struct jfile *f, struct jname *name)
{
	const struct jname *to = find_name(f, f->word[2]);
	auto_strbuf target = STRBUF_INIT;

	if (!to)
		return -EINVAL;
	for (const char *p = to->path; *p; p++)
		if (p[0] == '/' && p[1] && p[1] != '/')
			strbuf_adds(&target, "../");
	strbuf_adds(&target, name->path);
	return emit(f, "symlink %s %s", strbuf_str(&target), to->path);
}

static int in_write(struct jfile *f, struct jname *name)
{
	int rc = need_open(f, name);

	return rc ? rc : emit(f, "pwrite %s %s %s", name->handle, f->word[2], f->word[3]);
}

static int in_mmapwrite(struct jfile *f, struct jname *name)
{
	int rc = need_open(f, name);

	return rc ? rc : emit(f, "mmapwrite %s %s %s", name->handle, f->word[2], f->word[3]);
}

/* Closes the file, writes through another descriptor (O_DIRECT and O_SYNC), and closes that. */
static int in_dwrite(struct jfile *f, struct jname *name)
{
	int rc = in_close(f, name);

	return rc ? rc : emit(f, "dwrite %s %s %s sync", name->path, f->word[2], f->word[3]);
}

static int in_falloc(struct jfile *f, struct jname *name)
{
	static const struct translation modes[] = {
		{ "FALLOC_FL_KEEP_SIZE", "keep" },
		{ "FALLOC_FL_PUNCH_HOLE", "punch" },
		{ "FALLOC_FL_ZERO_RANGE", "zero" },
		{ "FALLOC_FL_COLLAPSE_RANGE", "collapse" },
		{ "FALLOC_FL_INSERT_RANGE", "insert" },
		{ "0", "plain" },
		{ "FALLOC_FL_UNSHARE_RANGE", "unshare" },
		{ NULL, NULL },
	};
	auto_strbuf list = STRBUF_INIT;
	int rc = need_open(f, name);

	if (!rc)
		rc = translate(f, modes, "fallocate mode", &list);
	if (rc)
		return rc;
	return emit(f, "falloc %s %s %s %s", name->handle, strbuf_str(&list), f->word[3],
		    f->word[4]);
}

static int in_truncate(struct jfile *f, struct jname *name)
{
	return emit(f, "truncate %s %s", name->path, f->word[2]);
}

static int in_fsetxattr(struct jfile *f, struct jname *name)
{
	int rc = need_open(f, name);

	return rc ? rc : emit(f, "setxattr %s user.xattr1 val1", name->handle);
}

static int in_removexattr(struct jfile *f, struct jname *name)
{
	return emit(f, "removexattr %s user.xattr1", name->path);
}

static int in_fsync(struct jfile *f, struct jname *name)
{
	int rc = need_open(f, name);

	return rc ? rc : emit(f, "%s %s", f->word[0], name->handle);
}

static int in_sync(struct jfile *f, struct jname *name)
{
	(void)name;
	return emit(f, "sync");
}

/* Crash points follow from the persistence operations themselves. */
static int in_nothing(struct jfile *f, struct jname *name)
{
	(void)f;
	(void)name;
	return 0;
}

static const struct joperation {
	const char *name;
	size_t words;	 /* the least number, with the operation */
	bool names_path; /* word 1 is a name */
	int (*emit)(struct jfile *f, struct jname *name);
} operations[] = {
	{ "open", 3, true, in_open },		{ "opendir", 2, true, in_opendir },
	{ "close", 2, true, in_close },		{ "mkdir", 2, true, in_mkdir },
	{ "rmdir", 2, true, in_path_op },	{ "mknod", 3, true, in_mknod },
	{ "unlink", 2, true, in_path_op },	{ "remove", 2, true, in_path_op },
	{ "rename", 3, true, in_two_paths },	{ "link", 3, true, in_two_paths },
	{ "symlink", 3, true, in_symlink },	{ "write", 4, true, in_write },
	{ "dwrite", 4, true, in_dwrite },	{ "mmapwrite", 4, true, in_mmapwrite },
	{ "falloc", 5, true, in_falloc },	{ "truncate", 3, true, in_truncate },
	{ "fsetxattr", 2, true, in_fsetxattr }, { "removexattr", 2, true, in_removexattr },
	{ "fsync", 2, true, in_fsync },		{ "fdatasync", 2, true, in_fsync },
	{ "sync", 1, false, in_sync },		{ "checkpoint", 1, false, in_nothing },
	{ "none", 1, false, in_nothing },
};

static int import_operation(struct jfile *f)
{
	const struct joperation *op = operations;
	const struct joperation *end = operations + ARRAY_SIZE(operations);
	struct jname *name = NULL;

	while (op < end && !streq(op->name, f->word[0]))
		op++;
	if (op == end)
		return complain(f, "unknown j-lang operation '%.40s'", f->word[0]);
	if (f->n_words < op->words)
		return complain(f, "%s needs %zu words after it", op->name, op->words - 1);
	if (op->names_path) {
		name = find_name(f, f->word[1]);
		if (!name)
			return -EINVAL;
	}
	return op->emit(f, name);
}

static int import_line(struct jfile *f, char *line)
{
	char *rest = line, *word;

	if (is_heading(line, &f->section))
		return 0;
	f->n_words = 0;
	while ((word = strsep(&rest, " \t\r\n"))) {
		if (!*word)
			continue;
		if (f->n_words == WORDS_MAX)
			return complain(f, "more than %d words", WORDS_MAX);
		f->word[f->n_words++] = word;
	}
	if (!f->n_words || f->word[0][0] == '#')
		return 0;
	switch (f->section) {
	case SECTION_DEFINE:
		return define_name(f, f->word[0]);
	case SECTION_SETUP:
	case SECTION_RUN:
		return import_operation(f);
	case SECTION_DECLARE:
		return 0;
	case SECTION_NONE:
		break;
	}
	return complain(f, "expected a section such as '# define'");
}

/* Closes the files, and syncs: CrashMonkey's setup is unmounted and mounted before it records. */
static int end_setup(struct jfile *f)
{
	if (!f->out->ops.n)
		return 0;
	for (size_t i = 0; i < f->names.n; i++)
		if (f->names.v[i].open && in_close(f, &f->names.v[i]))
			return -EINVAL;
	return emit(f, "sync");
}

/* Reads the next line, without its line end. Returns 1, 0 at the end of the file, or -errno. */
static int next_line(struct jfile *f, FILE *in, char line[LINE_MAX_BYTES])
{
	size_t n = 0;
	int c;

	f->line++;
	while ((c = getc(in)) != EOF && c != '\n') {
		if (n == LINE_MAX_BYTES - 1)
			return complain(f, "the line is longer than %d bytes", LINE_MAX_BYTES - 1);
		if (!c)
			return complain(f, "a NUL byte; is this a text file?");
		line[n++] = (char)c;
	}
	line[n] = '\0';
	return n || c != EOF;
}

static int import_lines(struct jfile *f, FILE *in)
{
	char *line = f->text;
	int more;

	while ((more = next_line(f, in, line)) > 0) {
		enum section before = f->section, next = before;

		if (f->out->ops.n >= WORKLOAD_OPS_MAX)
			return complain(f, "more than %d operations", WORKLOAD_OPS_MAX);
		if (before == SECTION_SETUP && is_heading(line, &next) && next != before) {
			int rc = end_setup(f);
			if (rc)
				return rc;
		}
		int rc = import_line(f, line);
		if (rc)
			return rc;
	}
	return !more && ferror(in) ? complain(f, "cannot read") : more;
}

int jlang_import(FILE *in, const char *source, struct workload *out, struct err *err)
{
	struct jfile f = { .source = source, .out = out, .err = err };
	const char *slash = strrchr(source, '/');

	workload_clear(out);
	int rc = import_lines(&f, in);
	vec_release(&f.names);
	if (rc) {
		workload_clear(out);
		return rc;
	}
	const char *name = slash && slash[1] ? slash + 1 : source;
	out->name = arena_memdupz(&out->arena, name, min(strlen(name), (size_t)WORKLOAD_NAME_MAX));
	out->named = true;
	return 0;
}
