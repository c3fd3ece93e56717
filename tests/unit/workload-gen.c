/* SPDX-License-Identifier: MIT */
/*
 * Generation: the counts, addressing by number, symmetry against a naive enumeration, and that
 * what is generated can really be executed.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/rng.h"
#include "base/vec.h"
#include "tap.h"
#include "workload/exec.h"
#include "workload/gen.h"

struct texts vec_of(char *);

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void texts_sort(struct texts *t)
{
	if (t->n)
		qsort(t->v, t->n, sizeof(*t->v), compare_texts);
}

static void texts_release(struct texts *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i]);
	vec_release(t);
}

/* Number of entries that equal the one before them. */
static size_t texts_unique(struct texts *t)
{
	size_t doubles = 0, n = 0;

	texts_sort(t);
	for (size_t i = 0; i < t->n; i++) {
		if (n && streq(t->v[i], t->v[n - 1])) {
			doubles++;
			free(t->v[i]);
		} else {
			t->v[n++] = t->v[i];
		}
	}
	t->n = n;
	return doubles;
}

static struct gen *open_set(const char *text, struct bounds *b)
{
	struct err err = ERR_INIT;
	struct gen *g = NULL;

	bounds_init(b);
	if (bounds_parse(text, strlen(text), "test", b, &err) || gen_new(b, &g, &err))
		printf("# %s\n", err.msg);
	return g;
}

static void close_set(struct gen *g, struct bounds *b)
{
	gen_free(g);
	bounds_release(b);
}

/* ---- counts ---- */

static void test_counts(void)
{
	/* What doc/generation.md and the manual page say. */
	static const struct {
		const char *name;
		uint64_t count;
	} sets[] = {
		{ "seq-1", 344 },
		{ "seq-2", 236394 },
		{ "seq-3-data", 141376 },
		{ "seq-3-metadata", 1774012 },
		{ "seq-3-nested", 1686752 },
		{ "seq-1-sync", 550 },
		{ "seq-1-filled", 546 },
		{ "seq-2-sync", 507112 },
		{ "seq-2-filled", 105164 },
		{ "seq-2-direct", 40448 },
		{ "seq-2-wide", 173394 },
		{ "seq-2-nested", 148603 },
		{ "seq-3-wide", 4186378 },
		{ "seq-3-names", 381972 },
		{ "seq-3-dirs", 563240 },
		{ "seq-3-moves", 1827232 },
		{ "seq-3-renames", 523394 },
		{ "seq-3-mkdir", 189540 },
		{ "seq-3-caches", 316832 },
		{ "seq-3-special", 169552 },
		{ "seq-3-punch", 21952 },
		{ "seq-4-msync", 4096 },
		{ "all-1", 1440 },
		{ "all-2", 1211115 },
		{ "all-3", 11786328 },
		{ "pm-seq-1", 59 },
		{ "pm-seq-2", 3238 },
		{ "pm-seq-3-metadata", 54592 },
	};

	for (const struct bounds_set *set = bounds_sets; set->name; set++) {
		size_t i = 0;

		while (i < ARRAY_SIZE(sets) && !streq(sets[i].name, set->name))
			i++;
		ok(i < ARRAY_SIZE(sets), "how many workloads %s has is known", set->name);
	}
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		auto_free char *text = xasprintf("base %s\n", sets[i].name);
		struct bounds b;
		struct gen *g = open_set(text, &b);

		is_u(g ? gen_count(g) : 0, sets[i].count, "%s has %llu workloads", sets[i].name,
		     (unsigned long long)sets[i].count);
		close_set(g, &b);
	}
}

/* No persistence point of phase 3, though it may be one by itself. */
static bool is_core(const struct op_def *def)
{
	return !def->promise || def->flags & (OP_DATA | OP_MAPS | OP_UNMOUNTS);
}

/* The count is what comes out, all different, and each ends persisted. */
static void test_whole_set(const char *name, bool persists)
{
	auto_free char *bounds_text = xasprintf("base %s\n", name);
	struct bounds b;
	struct gen *g = open_set(bounds_text, &b);
	struct texts bodies = { 0 };
	auto_workload w;
	const char *text;
	size_t len, unpersisted = 0, bad = 0, wrong_length = 0;
	uint64_t n = 0;

	workload_init(&w);
	while (g && gen_next(g, &text, &len)) {
		struct err err = ERR_INIT;
		unsigned core = 0;

		n++;
		vec_push(&bodies,
			 xmemdupz(strchr(text, '\n'), len - (size_t)(strchr(text, '\n') - text)));
		if (workload_parse(text, len, "gen", &w, &err)) {
			bad++;
			continue;
		}
		const struct op *last = &vec_last(&w.ops);
		unpersisted += last->setup || (persists && !op_persists(last));
		for (size_t i = 0; i < w.ops.n; i++)
			core += !w.ops.v[i].setup && is_core(w.ops.v[i].def);
		wrong_length += core != b.length;
	}
	is_u(n, g ? gen_count(g) : 1, "%s: as many workloads as counted", name);
	is_u(bad, 0, "%s: all of them parse", name);
	is_u(unpersisted, 0, "%s: each ends with a persistence point", name);
	is_u(wrong_length, 0, "%s: each has %u operations", name, b.length);
	is_u(texts_unique(&bodies), 0, "%s: no two are the same", name);
	texts_release(&bodies);
	close_set(g, &b);
}

/* ---- any part at once ---- */

static void test_seek(const char *name)
{
	auto_free char *bounds_text = xasprintf("base %s\n", name);
	struct bounds b1, b2;
	struct gen *walk = open_set(bounds_text, &b1), *jump = open_set(bounds_text, &b2);
	struct rng rng;
	size_t differ = 0, misnamed = 0;

	rng_init(&rng, 1);
	for (int round = 0; round < 50; round++) {
		uint64_t at = rng_below(&rng, gen_count(walk) - 40);
		const char *a, *b;
		size_t a_len, b_len;

		if (round == 0)
			at = gen_count(walk) - 40; /* up to the very end */
		gen_seek(walk, at);
		for (uint64_t i = at; i < at + 40; i++) {
			auto_strbuf head = STRBUF_INIT;

			gen_seek(jump, i);
			if (!gen_next(walk, &a, &a_len) || !gen_next(jump, &b, &b_len) ||
			    a_len != b_len || memcmp(a, b, a_len) != 0)
				differ++;
			strbuf_adds(&head, "workload ");
			gen_name(walk, i, &head);
			misnamed += strncmp(a, strbuf_str(&head), head.len) != 0;
		}
	}
	is_u(differ, 0, "%s: going to a number and walking there give the same", name);
	is_u(misnamed, 0, "%s: names follow the numbers", name);
	gen_seek(walk, gen_count(walk));
	const char *text;
	size_t len;
	ok(!gen_next(walk, &text, &len), "%s: nothing after the last", name);
	close_set(walk, &b1);
	close_set(jump, &b2);
}

/* ---- symmetry, against every sequence there is ---- */

static const char *const all_files[] = { "foo", "bar", "A/foo", "A/bar", "B/foo", "B/bar" };

/* Every operation on every name, with no thought for symmetry. */
static void all_operations(struct texts *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(all_files); i++) {
		vec_push(out, xasprintf("creat %s", all_files[i]));
		vec_push(out, xasprintf("unlink %s", all_files[i]));
		for (size_t j = 0; j < ARRAY_SIZE(all_files); j++)
			if (i != j)
				vec_push(out,
					 xasprintf("rename %s %s", all_files[i], all_files[j]));
	}
	vec_push(out, xstrdup("rename A B"));
	vec_push(out, xstrdup("rename B A"));
	vec_push(out, xstrdup("mkdir A"));
	vec_push(out, xstrdup("mkdir B"));
}

/* One of the 16 renamings: bits 0-2 swap foo and bar in ., A, B; bit 3 swaps A and B. */
static void rename_all(const char *text, unsigned how, struct strbuf *out)
{
	for (const char *p = text; *p;) {
		size_t n = strcspn(p, " ;\n");
		const char *slash = memchr(p, '/', n);
		char dir = slash || n == 1 ? p[0] : '.';
		const char *file = slash ? slash + 1 : p;

		if ((dir == 'A' || dir == 'B') && how & 8)
			strbuf_addch(out, dir == 'A' ? 'B' : 'A');
		else if (dir != '.')
			strbuf_addch(out, dir);
		if (slash)
			strbuf_addch(out, '/');
		unsigned swap = how >> (dir == '.' ? 0 : dir == 'A' ? 1 : 2) & 1;
		size_t left = n - (size_t)(file - p);
		bool name = left == 3 && (!strncmp(file, "foo", 3) || !strncmp(file, "bar", 3));
		if (name && (slash || dir == '.'))
			strbuf_adds(out, swap ^ !strncmp(file, "foo", 3) ? "foo" : "bar");
		else if (!slash && n > 1)
			strbuf_add(out, p, n);
		p += n;
		if (*p)
			strbuf_addch(out, *p++);
	}
}

/* The least of all its renamings stands for a workload. */
static char *canonical(const char *text)
{
	char *best = NULL;

	for (unsigned how = 0; how < 16; how++) {
		struct strbuf renamed = STRBUF_INIT;

		rename_all(text, how, &renamed);
		char *s = strbuf_detach(&renamed);
		if (!best || strcmp(s, best) < 0) {
			free(best);
			best = s;
		} else {
			free(s);
		}
	}
	return best;
}

/* The operations of a generated text, joined by ";". */
static char *core_of(const char *text, size_t len)
{
	struct strbuf out = STRBUF_INIT;
	const char *end = text + len;

	for (const char *p = strchr(text, '\n') + 1; p < end;) {
		size_t n = strcspn(p, "\n");

		if (n && strncmp(p, "setup ", 6) != 0) {
			if (out.len)
				strbuf_addch(&out, ';');
			strbuf_add(&out, p, n);
		}
		p += n + 1;
	}
	return strbuf_detach(&out);
}

static void test_symmetry(unsigned length)
{
	auto_free char *text = xasprintf("operations creat unlink rename mkdir\nlength %u\n"
					 "files foo bar\ndirectories A B\npersist none\n",
					 length);
	struct bounds b;
	struct gen *g = open_set(text, &b);
	struct texts generated = { 0 }, naive = { 0 }, operations = { 0 };
	const char *t;
	size_t len;

	while (g && gen_next(g, &t, &len)) {
		auto_free char *core = core_of(t, len);
		vec_push(&generated, canonical(core));
	}
	all_operations(&operations);
	for (size_t i = 0; i < operations.n; i++) {
		if (length == 1)
			vec_push(&naive, canonical(operations.v[i]));
		for (size_t j = 0; length == 2 && j < operations.n; j++) {
			auto_free char *both = xasprintf("%s;%s", operations.v[i], operations.v[j]);
			vec_push(&naive, canonical(both));
		}
	}
	is_u(texts_unique(&generated), 0, "length %u: no two equal up to renaming", length);
	texts_unique(&naive);
	size_t same = 0;
	for (size_t i = 0; i < min(generated.n, naive.n); i++)
		same += streq(generated.v[i], naive.v[i]);
	ok(generated.n == naive.n && same == naive.n,
	   "length %u: the %zu workloads are those of the naive enumeration (%zu)", length,
	   generated.n, naive.n);
	texts_release(&generated);
	texts_release(&naive);
	texts_release(&operations);
	close_set(g, &b);
}

/* ---- they run ---- */

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

/* Runs one workload in a fresh directory; the index of the first operation that failed, or -1. */
static int64_t run_workload(const char *dir, const struct workload *w, int64_t *error)
{
	int64_t failed = -1;
	struct exec x;

	mkdir(dir, 0755);
	int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	exec_init(&x, root, w, NULL);
	for (size_t i = 0; i < w->ops.n; i++) {
		const struct op_def *def = w->ops.v[i].def;

		/* What is durable does not matter here, and the disk would be the bottleneck. */
		if (def->promise && !(def->flags & OP_DATA))
			continue;
		*error = exec_op(&x, i);
		if (*error == -EOPNOTSUPP)
			break; /* this file system has no reflinks, say; what follows may need it */
		if (*error < 0) {
			failed = (int64_t)i;
			break;
		}
	}
	exec_release(&x);
	close(root);
	nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return failed;
}

static void test_runs(const char *bounds_text, const char *name, uint64_t samples)
{
	char dir[] = "/tmp/outage-gen-XXXXXX";
	struct bounds b;
	struct gen *g = open_set(bounds_text, &b);
	auto_workload w;
	size_t failures = 0;
	uint64_t n = g ? min(samples, gen_count(g)) : 0;

	workload_init(&w);
	if (!mkdtemp(dir))
		n = 0;
	auto_free char *root = xasprintf("%s/root", dir);
	for (uint64_t i = 0; i < n; i++) {
		struct err err = ERR_INIT;
		const char *text;
		size_t len;
		int64_t error = 0;

		gen_seek(g, gen_count(g) * i / n);
		if (!gen_next(g, &text, &len) || workload_parse(text, len, "gen", &w, &err)) {
			failures++;
			continue;
		}
		int64_t at = run_workload(root, &w, &error);
		if (at >= 0 && failures++ < 3)
			printf("# operation %lld fails: %s\n# %.*s\n", (long long)at,
			       strerror((int)-error), (int)len, text);
	}
	nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	ok(n > 0 && failures == 0, "%s: %llu workloads, every operation succeeds", name,
	   (unsigned long long)n);
	close_set(g, &b);
}

/* ---- keys that the sets do not use ---- */

static void test_keys(void)
{
	struct bounds b;
	const char *text;
	size_t len;
	struct gen *g = open_set("base seq-1\noperations rename\ndurable-setup yes\n", &b);

	gen_next(g, &text, &len);
	ok(strstr(text, "setup sync\nrename"), "durable-setup syncs before the first operation");
	close_set(g, &b);

	auto_strbuf printed = STRBUF_INIT, again = STRBUF_INIT;
	g = open_set("base seq-3-nested\noperations +creat +symlink -link\nfiles a b c\n", &b);
	bounds_print(&b, &printed);
	uint64_t count = gen_count(g);
	close_set(g, &b);
	g = open_set(strbuf_str(&printed), &b);
	bounds_print(&b, &again);
	is_s(strbuf_str(&again), strbuf_str(&printed), "printed bounds give the same bounds");
	is_u(gen_count(g), count, "and the same count");
	close_set(g, &b);

	auto_strbuf every = STRBUF_INIT;
	strbuf_adds(&every, "base seq-2\nranges append start middle end extend beyond\n"
			    "direct-ranges append start middle end extend beyond\n"
			    "falloc-modes plain keep zero zero,keep punch,keep collapse insert\n"
			    "xattrs user.x1 user.x2\noperations");
	for (const struct op_def *def = op_table; def->name; def++)
		if (!(def->flags & (OP_MAKES_HANDLE | OP_COMMAND)) &&
		    def->args[0].kind != ARG_HANDLE && !streq(def->name, "remount") &&
		    !streq(def->name, "drop_caches") &&
		    (geteuid() == 0 || (!streq(def->name, "chown") && !streq(def->name, "mknod"))))
			strbuf_addf(&every, " %s", def->name);
	strbuf_addch(&every, '\n');
	test_runs(strbuf_str(&every), "every operation in pairs", 1000);
}

/* Whether some workload has this text, but for its name. */
static bool generates(const char *bounds_text, const char *body)
{
	struct bounds b;
	struct gen *g = open_set(bounds_text, &b);
	const char *text;
	size_t len;
	bool hit = false;

	while (g && !hit && gen_next(g, &text, &len)) {
		const char *begin = strchr(text, '\n') + 1;
		size_t n = len - (size_t)(begin - text) - 1; /* an empty line ends it */

		hit = n == strlen(body) && memcmp(begin, body, n) == 0;
	}
	close_set(g, &b);
	return hit;
}

static void test_more_keys(void)
{
	static const struct {
		const char *bounds, *body;
		bool want;
		const char *what;
	} cases[] = {
		{ "operations link\nlength 2\nfiles a b c d\npersist sync\nsetup-first yes\n",
		  "setup creat a\nsetup creat c\nlink a b\nlink c d\nsync\n", true,
		  "setup-first: all setup stands before the first operation" },
		{ "operations link\nlength 2\nfiles a b c d\npersist sync\n",
		  "setup creat a\nlink a b\nsetup creat c\nlink c d\nsync\n", true,
		  "without, before the operation that needs it" },
		{ "operations link\nlength 2\nfiles a b c d\npersist sync\nsetup-first yes\n"
		  "durable-setup yes\n",
		  "setup creat a\nsetup creat c\nsetup sync\nlink a b\nlink c d\nsync\n", true,
		  "and with durable-setup it is durable" },
		{ "operations link unlink\nlength 2\nfiles a b\npersist sync\nsetup-first yes\n",
		  "setup creat a\nunlink a\nsetup creat a\nlink a b\nsync\n", true,
		  "but not what an operation before takes away" },
		{ "operations mkdir creat\nlength 2\nfiles a\ndirectories D\npersist sync\n"
		  "setup-first yes\n",
		  "mkdir D\ncreat D/a\nsync\n", true, "or makes" },
		{ "operations write\nfiles a\nranges append\npersist sync\nsetup-first yes\n"
		  "existing yes\n",
		  "setup creat a\nwrite a 0 4096\nsync\n", true,
		  "existing: a write finds its file" },
		{ "operations rename\nfiles a b\npersist sync\nfilled yes\n",
		  "setup write a 0 16384\nrename a b\nsync\n", true,
		  "filled: the renamed file has data" },
		{ "operations rename link\nlength 2\nfiles a b\npersist sync\nfile-kind fifo\n",
		  "setup mkfifo a\nrename a b\nlink b a\nsync\n", true,
		  "file-kind: the renamed file is a pipe, and stays one" },
		{ "operations unlink\nfiles a\npersist sync\nfile-kind symlink\n",
		  "setup symlink target a\nunlink a\nsync\n", true, "or a symbolic link" },
		{ "operations rename\nfiles a b\npersist fsync\nlast-persist-on used\n"
		  "file-kind fifo\n",
		  "setup mkfifo a\nrename a b\nfsync b\n", false, "a pipe is not synced" },
		{ "operations rename\nfiles a b\npersist fsync\nlast-persist-on used\n"
		  "file-kind fifo\n",
		  "setup mkfifo a\nrename a b\nfsync .\n", true, "but its directory is" },
		{ "operations write dwrite\nlength 2\nfiles a\nranges append\n"
		  "direct-ranges append\ndirect-modes plain sync\npersist fsync\n"
		  "last-persist-on used\n",
		  "write a 0 4096\ndwrite a 4096 8192 sync\n", true,
		  "direct-modes: no point after a synchronous write" },
		{ "operations append\nfiles a\nwrite-modes dsync\n", "append a 4096 dsync\n", true,
		  "write-modes, where nothing follows the length" },
		{ "operations mmapwrite\nfiles a\ndirect-ranges append\nmap-modes nosync\n"
		  "persist fsync\nlast-persist-on used\n",
		  "mmapwrite a 0 8192 nosync\nfsync a\n", true,
		  "map-modes: a point after stores that were not synced" },
		{ "operations falloc\nfiles a\nfalloc-ranges later-pages\nfalloc-modes keep\n",
		  "setup write a 0 16384\nfalloc a keep 4096 12288\n", true, "later-pages" },
		{ "operations falloc\nfiles a\nfalloc-ranges over-end\nfalloc-modes keep\n",
		  "setup write a 0 16384\nfalloc a keep 8192 16384\n", true, "over-end" },
		{ "operations falloc\nfiles a\nfalloc-ranges last-page\nfalloc-modes keep\n",
		  "setup write a 0 16384\nfalloc a keep 12288 4096\n", true, "last-page" },
		{ "operations write\nfiles a\nranges gap\n", "write a 8192 8192\n", true,
		  "gap, in an empty file" },
		{ "operations dwrite\nfiles a\ndirect-ranges first-page\n",
		  "setup write a 0 16384\ndwrite a 0 4096\n", true, "first-page" },
		{ "operations rename\nfiles a b\ndirectories D E\npersist fsync\n"
		  "last-persist-on latest children\n",
		  "setup mkdir D\nrename D E\nsetup creat E/a\nfsync E/a\n", true,
		  "children: a file in the directory" },
		{ "operations creat\nfiles a\ndirectories D D/E\npersist fsync\n"
		  "last-persist-on latest ancestors\n",
		  "setup mkdir D\nsetup mkdir D/E\ncreat D/E/a\nfsync D\n", true,
		  "ancestors: directories above the parent" },
		{ "operations creat\nfiles a\ndirectories D D/E\npersist fsync\n"
		  "last-persist-on latest parents\n",
		  "setup mkdir D\nsetup mkdir D/E\ncreat D/E/a\nfsync D\n", false,
		  "which parents are not" },
		{ "operations creat\nfiles a\ndirectories D\npersist fsync\n"
		  "last-persist-on latest parents\npersist-twice always\n",
		  "setup mkdir D\ncreat D/a\nfsync D\nfsync D/a\n", true,
		  "persist-twice always: though no point was left out before" },
		{ "operations creat\nfiles a\ndirectories D\npersist fsync\n"
		  "last-persist-on latest parents\npersist-twice yes\n",
		  "setup mkdir D\ncreat D/a\nfsync D\nfsync D/a\n", false, "yes: not then" },
		{ "operations unlink drop_caches remount\nlength 3\nfiles a\npersist fsync\n"
		  "last-persist-on used\n",
		  "setup creat a\nunlink a\ndrop_caches\nremount\n", true,
		  "drop_caches and remount are operations" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (!ok(generates(cases[i].bounds, cases[i].body) == cases[i].want, "%s",
			cases[i].what))
			printf("#   %s\n", cases[i].body);
}

/* A union: the sets one after the other, with the names of each. */
static void test_union(void)
{
	struct bounds b;
	struct gen *g = open_set("base all-1\n", &b);
	struct err err = ERR_INIT;
	auto_strbuf name = STRBUF_INIT, printed = STRBUF_INIT;
	uint64_t index = 0;

	gen_name(g, 345, &name);
	ok(strncmp(strbuf_str(&name), "seq-1-sync.", 11) == 0 &&
		   streq(strchr(strbuf_str(&name), '/'), "/1"),
	   "a workload of a union has the name that it has in its set");
	ok(!gen_name_index(g, strbuf_str(&name), &index, &err) && index == 345,
	   "and is found by it");
	ok(gen_name_index(g, "seq-2.5ff4/0", &index, &err) == -EINVAL &&
		   strstr(err.msg, "is in no set of"),
	   "another set's is refused");
	err_clear(&err);
	ok(gen_name_index(g, "seq-1-sync.0000/0", &index, &err) == -EINVAL, "a stale one as well");
	bounds_print(&b, &printed);
	ok(strstr(strbuf_str(&printed), "union seq-1 seq-1-sync seq-1-filled\n"),
	   "printed, it names its sets");
	strbuf_clear(&name);
	gen_identity(g, &name);
	ok(strstr(strbuf_str(&name), "seq-1-filled."), "its identity has the last of them");
	close_set(g, &b);
}

static void test_bad_bounds(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "no operations" },
		{ "operations\n", "test:1: operations needs a value" },
		{ "operations creat\nlength 0\n", "test:2: length is a number from 1 to 8" },
		{ "operations creat\nlength 9\n", "test:2:" },
		{ "operations frobnicate\n", "unknown operation 'frobnicate'" },
		{ "operations open\n", "acts on handles" },
		{ "colour red\n", "unknown key 'colour'" },
		{ "operations creat\n", "no workload fits" },
		{ "operations mkdir\nfiles foo\n", "no workload fits" },
		{ "operations falloc\nfiles foo\nfalloc-modes keep\n", "no workload fits" },
		{ "operations creat\nfiles foo foo\n", "test:2: 'foo' is there already" },
		{ "operations creat\nfiles a/b\n", "without directory" },
		{ "operations creat\nfiles ..\n", "could leave the root" },
		{ "operations creat\nfiles foo\ndirectories A/B\n", "its parent 'A'" },
		{ "operations creat\nfiles A\ndirectories A\n", "both a file and a directory" },
		{ "operations creat\nfiles foo\npersist fsync\n", "fsync has nothing to act on" },
		{ "operations creat\nranges sideways\n", "'sideways' is none of append" },
		{ "operations truncate\nsizes 9T\n", "more than" },
		{ "base test\n", "leads back to itself" },
		{ "union seq-1 seq-9\n", "union takes named sets that are no unions, not 'seq-9'" },
		{ "union all-1\n", "that are no unions" },
		{ "union seq-1 seq-1\n", "is there already" },
		{ "union seq-1\noperations creat\n", "union goes with no key but name" },
		{ "base all-2\nfiles foo\n", "union goes with no key but name" },
		{ "operations creat\npersist-twice often\n", "'often' is none of no, yes, always" },
		{ "base no-such-file\n", "no-such-file" },
		{ "base seq-2\nlength 8\nfiles a b c d e f g\ndirectories A B C D E F\n",
		  "more workloads than can be counted" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = ERR_INIT;
		struct gen *g = NULL;
		auto_bounds b;

		bounds_init(&b);
		int rc = bounds_parse(bad[i].text, strlen(bad[i].text), "test", &b, &err);
		if (!rc)
			rc = gen_new(&b, &g, &err);
		if (!ok(rc < 0 && strstr(err.msg, bad[i].says), "refused: %s", bad[i].says))
			printf("#   said: %s\n", err.msg);
		gen_free(g);
	}
}

/* A workload may make and remove more than the generator's model has room for at once. */
static void test_many_nodes(void)
{
	struct strbuf text = { 0 };
	struct bounds b;
	struct rng rng;
	const char *t;
	size_t len, bad = 0;
	auto_workload w;

	strbuf_adds(&text, "operations rmdir\nlength 5\npersist fsync\npersist-on used\n"
			   "last-persist-on used\nfiles foo\ndirectories");
	for (int depth = 1; depth <= 30; depth++) {
		strbuf_addch(&text, ' ');
		for (int i = 0; i < depth; i++)
			strbuf_adds(&text, i ? "/d" : "d");
	}
	strbuf_addch(&text, '\n');
	struct gen *g = open_set(strbuf_str(&text), &b);
	workload_init(&w);
	rng_init(&rng, 1);
	for (int i = 0; g && i < 20000; i++) {
		struct err err = ERR_INIT;

		gen_seek(g, rng_below(&rng, gen_count(g)));
		bad += !gen_next(g, &t, &len) || workload_parse(t, len, "gen", &w, &err);
	}
	ok(g && !bad, "thirty nested directories, made and removed again and again");
	strbuf_release(&text);
	close_set(g, &b);
}

static void test_names(void)
{
	struct bounds b;
	struct gen *g = open_set("base seq-1\n", &b);
	struct err err = ERR_INIT;
	uint64_t index = 0;
	auto_strbuf name = STRBUF_INIT;

	gen_name(g, 17, &name);
	ok(!gen_name_index(g, strbuf_str(&name), &index, &err) && index == 17, "a name is found");
	ok(gen_name_index(g, "seq-1.xxxx/17", &index, &err) == -EINVAL &&
		   strstr(err.msg, "have changed"),
	   "a name of other bounds is refused");
	err_clear(&err);
	strbuf_clear(&name);
	gen_name(g, 344, &name);
	ok(gen_name_index(g, strbuf_str(&name), &index, &err) == -ERANGE, "so is one past the end");
	auto_free char *set = gen_name_set("my.set.0123/5");
	is_s(set, "my.set", "a name tells its set");
	ok(!gen_name_set("seq-1") && !gen_name_set("/5"), "other texts do not");
	close_set(g, &b);
}

int main(void)
{
	test_counts();
	test_whole_set("seq-1", true);
	test_whole_set("seq-2", true);
	test_whole_set("seq-1-sync", true);
	test_whole_set("seq-1-filled", true);
	test_whole_set("seq-2-direct", true);
	test_whole_set("seq-2-wide", true);
	test_whole_set("seq-3-caches", true);
	test_whole_set("seq-3-special", true);
	test_whole_set("seq-3-punch", true);
	test_whole_set("seq-4-msync", true);
	test_whole_set("pm-seq-1", false);
	test_whole_set("pm-seq-2", false);
	test_seek("seq-1");
	test_seek("seq-2");
	test_seek("seq-3-metadata");
	test_seek("seq-3-nested");
	test_seek("seq-2-wide");
	test_seek("seq-2-sync");
	test_seek("all-1");
	test_seek("all-2");
	test_symmetry(1);
	test_symmetry(2);
	test_runs("base seq-1\n", "seq-1", 1000);
	test_runs("base seq-2\n", "seq-2", 600);
	test_runs("base seq-3-data\n", "seq-3-data", 100);
	test_runs("base seq-3-metadata\n", "seq-3-metadata", 500);
	test_runs("base seq-3-nested\n", "seq-3-nested", 500);
	test_runs("base pm-seq-3-metadata\n", "pm-seq-3-metadata", 300);
	test_runs("base all-1\n", "all-1", 500);
	test_runs("base all-2\n", "all-2", 700);
	test_runs("base all-3\n", "all-3", 800);
	test_keys();
	test_more_keys();
	test_union();
	test_bad_bounds();
	test_many_nodes();
	test_names();
	return done_testing();
}
