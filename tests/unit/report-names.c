/* SPDX-License-Identifier: MIT */
/*
 * report-names.c - which path a file of a trace has: by its names as they come and go, whatever
 * they are, and however directories lie in each other.
 */
#include "app/posix_names.h"

#include "base/strbuf.h"
#include "hostile.h"
#include "app/posix_log.h"
#include "tap.h"

static struct posix_names n;

static void fresh(void)
{
	posix_names_release(&n);
	posix_names_init(&n);
	posix_names_root(&n, 100);
}

static uint32_t file_in(uint32_t dir, uint64_t ino, const char *name)
{
	uint32_t file = posix_names_file(&n, ino);

	posix_names_link(&n, file, dir, name);
	return file;
}

static void test_paths(void)
{
	fresh();
	uint32_t root = posix_names_file(&n, 100);
	uint32_t dir = file_in(root, 2, "A"), file = file_in(dir, 3, "foo");

	is_u(root, 0, "the root is the first");
	is_u(posix_names_file(&n, 0), POSIX_NO_FILE, "there is no inode 0");
	is_s(posix_names_path(&n, file), "A/foo", "a file in a directory");
	is_u(posix_names_entry(&n, dir, "foo"), file, "which has it under that name");
	is_u(posix_names_entry(&n, root, "foo"), POSIX_NO_FILE, "and the root has not");
	is_s(posix_names_path_in(&n, dir, "new"), "A/new", "what is not there yet");
	posix_names_link(&n, dir, root, "B");
	ok(!posix_names_unlink(&n, dir, root, "A"), "a directory that is moved keeps a name");
	is_s(posix_names_path(&n, file), "B/foo", "and what is in it moves along");
	is_s(posix_names_path(&n, posix_names_file(&n, 77)), "#77",
	     "what nobody named has its number");
	is_s(posix_names_path(&n, file_in(posix_names_file(&n, 78), 79, "x")), "#78/x",
	     "so has a directory");
	is_s(n.files.v[file].first_path, "A/foo", "the first path is not forgotten");
}

static void test_links(void)
{
	fresh();
	uint32_t file = file_in(0, 2, "a");

	posix_names_link(&n, file, 0, "b");
	is_s(posix_names_path(&n, file), "b", "the newest name counts");
	ok(!posix_names_unlink(&n, file, 0, "b"), "without it there is another");
	is_s(posix_names_path(&n, file), "a", "which counts then");
	ok(posix_names_unlink(&n, file, 0, "a"), "the last name is the end");
	ok(n.files.v[file].gone, "which is known");
	uint32_t next = posix_names_new(&n, 2);
	ok(next != file, "the number, given again, is another file");
	is_u(posix_names_file(&n, 2), next, "which has it from then on");
	uint32_t over = file_in(0, 5, "c"), by = file_in(0, 6, "d");
	posix_names_link(&n, by, 0, "c");
	ok(n.files.v[over].gone, "what is replaced is gone");
	is_u(posix_names_entry(&n, 0, "c"), by, "and the other is there");
	posix_names_link(&n, by, 0, "c");
	is_u(n.files.v[by].links, 2, "a name that is told twice counts once");
	ok(!posix_names_unlink(&n, 0, 0, "x"), "the root never goes");
}

static void test_strange(void)
{
	fresh();
	uint32_t a = file_in(0, 2, "a"), b = file_in(a, 3, "b");

	posix_names_link(&n, a, b, "a");
	posix_names_unlink(&n, a, 0, "a");
	ok(strlen(posix_names_path(&n, b)) < POSIX_PATH_MAX, "directories in a circle have a path");
	posix_names_link(&n, a, a, "self");
	ok(posix_names_entry(&n, a, "self") == POSIX_NO_FILE, "and none is in itself");
	fresh();
	uint32_t dir = 0, deep = 0;
	for (uint64_t i = 0; i < 3 * POSIX_DEPTH_MAX; i++, dir = deep)
		deep = file_in(dir, 1000 + i, "d");
	ok(strlen(posix_names_path(&n, deep)) < POSIX_PATH_MAX, "so have deep ones");
	char name[256] = "";
	memset(name, 'x', sizeof(name) - 1);
	for (uint64_t i = 0; i < 40; i++, dir = deep)
		deep = file_in(dir, 9000 + i, name);
	ok(strlen(posix_names_path(&n, deep)) < POSIX_PATH_MAX + sizeof(name),
	   "and such with long names");
	ok(strstr(posix_names_path(&n, deep), name), "of which the end is told");
	fresh();
	uint32_t many = posix_names_file(&n, 2);
	for (unsigned i = 0; i < 3 * POSIX_LINKS_KEPT; i++) {
		snprintf(name, sizeof(name), "name%u", i);
		posix_names_link(&n, many, 0, name);
	}
	is_u(n.files.v[many].links, 3 * POSIX_LINKS_KEPT, "all names are counted");
	is_u(n.files.v[many].n_kept, POSIX_LINKS_KEPT, "some are kept");
}

static void test_hostile(void)
{
	fresh();
	uint32_t dir = file_in(0, 2, "D");

	for (size_t i = 0; i < ARRAY_SIZE(hostile_names); i++) {
		auto_strbuf want = STRBUF_INIT, safe = STRBUF_INIT;
		uint32_t file = file_in(dir, 10 + i, hostile_names[i]);
		const char *path = posix_names_path(&n, file);
		bool fine = true;

		strbuf_addf(&want, "D/%s", hostile_names[i]);
		is_s(path, want.buf, "name %zu is a part of the path", i);
		is_u(posix_names_entry(&n, dir, hostile_names[i]), file, "name %zu is found again",
		     i);
		posix_add_safe(&safe, path, strlen(path));
		for (size_t k = 0; k < safe.len; k++)
			fine &= safe.buf[k] >= 0x20 && safe.buf[k] < 0x7f;
		ok(fine, "name %zu can be shown", i);
	}
	is_s(posix_names_path(&n, file_in(dir, 500, "a/b")), "D/a\\x2fb",
	     "a slash in a name is no way into another directory");
	ok(posix_names_text(&n, "abc", 3) == posix_names_text(&n, "abcd", 3),
	   "the same text is the same string");
	ok(posix_names_text(&n, "abc", 3) != posix_names_text(&n, "abd", 3), "another is another");
}

static void test_safe(void)
{
	auto_strbuf out = STRBUF_INIT;

	posix_add_safe(&out, "a\\b\nc\033\xff\0d", 9);
	is_s(strbuf_str(&out), "a\\\\b\\nc\\x1b\\xff\\x00d", "each byte can be told again");
}

int main(void)
{
	posix_names_init(&n);
	test_paths();
	test_links();
	test_strange();
	test_hostile();
	test_safe();
	posix_names_release(&n);
	return done_testing();
}
