/* SPDX-License-Identifier: MIT */
/* inject-config.c - configuration files: every key with a right value and a wrong one. */
#include <errno.h>
#include <unistd.h>

#include "base/io.h"
#include "inject/internal.h"
#include "tap.h"

static int parse(const char *text, struct inject_config *c, struct err *err)
{
	return inject_config_parse(text, strlen(text), "f", "/root/dir", "/mnt/dir", c, err);
}

static bool good(const char *text, struct inject_config *c)
{
	struct err err = ERR_INIT;
	bool read = ok(parse(text, c, &err) == 0, "a configuration");

	if (!read)
		printf("#   %s\n", err.msg);
	return read;
}

static void refuses(const char *text, const char *want)
{
	struct inject_config c;
	struct err err = ERR_INIT;
	int rc = parse(text, &c, &err);

	is_i(rc, -EINVAL, "refused: %s", want);
	is_s(err.msg, want, "and the sentence");
	if (!rc)
		inject_config_release(&c);
}

/* In the form that LazyFS's own documentation gives, with everything in it. */
static void test_whole(void)
{
	static const char text[] =
		"[faults]\n"
		"fifo_path=\"/tmp/faults.fifo\"\n"
		"fifo_path_completed=\"/tmp/done.fifo\"\n"
		"[cache]\napply_eviction=true\n"
		"[cache.simple]\ncustom_size=\"0.5GB\"\nblocks_per_page=2\n"
		"[file system]\nlog_all_operations=true\nlogfile=\"/tmp/l.log\"\n"
		"[[injection]]\ntype=\"torn-seq\"\nop=\"write\"\n"
		"file=\"output.txt\"\npersist=[1,4]\noccurrence=2\n"
		"[[injection]]\ntype=\"torn-op\"\nfile=\"/root/dir/a/o.txt\"\n"
		"occurrence=5\nparts=3 # or\npersist=[3,1]\n"
		"[[injection]]\ntype=\"clear\"\nfrom=\"f1.txt\"\n"
		"timing=\"before\"\nop=\"fsync\"\noccurrence=6\ncrash=true\n";
	struct inject_config c;

	if (!good(text, &c))
		return;
	is_s(c.fifo, "/tmp/faults.fifo", "fifo_path");
	is_s(c.fifo_completed, "/tmp/done.fifo", "fifo_path_completed");
	is_s(c.logfile, "/tmp/l.log", "logfile");
	ok(c.log_all && c.evict, "log_all_operations, apply_eviction");
	is_u(c.cache_bytes, 512 << 20, "custom_size");
	ok(c.page_size == 8192 && c.block_size == 4096 && c.pages == 65536, "pages of two blocks");
	ok(!c.profile && !c.socket && !c.trace && !c.warnings.n, "nothing else");
	if (ok(c.faults.n == 3, "three faults")) {
		struct fault *seq = c.faults.v[0], *op = c.faults.v[1], *clear = c.faults.v[2];

		ok(seq->type == FAULT_TORN_SEQ && seq->op == POSIX_WRITE && seq->occurrence == 2 &&
			   seq->persist.n == 2 && seq->persist.v[0] == 1 && seq->persist.v[1] == 4,
		   "torn-seq");
		is_s(seq->from.text, "output.txt", "its file");
		ok(op->type == FAULT_TORN_OP && op->op == POSIX_WRITE && op->occurrence == 5 &&
			   op->parts == 3 && op->persist.n == 2 && op->persist.v[0] == 1,
		   "torn-op");
		is_s(op->from.text, "a/o.txt", "its file, below the root");
		ok(clear->type == FAULT_CLEAR && clear->op == POSIX_FSYNC && !clear->after &&
			   clear->crash && clear->occurrence == 6,
		   "clear");
		is_s(strbuf_str(&op->text),
		     "torn-op file=/root/dir/a/o.txt occurrence=5 parts=3 persist=3,1", "as words");
	}
	inject_config_release(&c);
}

static void test_empty(void)
{
	struct inject_config c;

	if (good("", &c)) {
		ok(!c.fifo && !c.logfile && !c.faults.n && !c.cache_bytes, "nothing is said");
		inject_config_release(&c);
	}
	if (good("[faults]\nfifo_path=''\n[filesystem]\nlogfile=''", &c)) {
		ok(!c.fifo && !c.logfile, "an empty path is none");
		inject_config_release(&c);
	}
}

static void test_cache(void)
{
	struct inject_config c;

	if (good("[cache.manual]\nio_block_size=512\npage_size=4096\nno_pages=10", &c)) {
		ok(c.page_size == 4096 && c.block_size == 512 && c.pages == 10, "manual");
		is_u(c.cache_bytes, 40960, "its size");
		inject_config_release(&c);
	}
	if (good("[cache.simple]\ncustom_size=\"100Mb\"", &c)) {
		ok(c.cache_bytes == 100 << 20 && c.page_size == 4096, "units in any case");
		inject_config_release(&c);
	}
	if (good("[cache.simple]\ncustom_size=8192\n[cache.manual]\nno_pages=1", &c)) {
		ok(c.pages == 2 && c.warnings.n == 1, "simple wins, with a warning");
		is_s(c.warnings.v[0], "f:3: [cache.manual] is left out, as there is [cache.simple]",
		     "that says it");
		inject_config_release(&c);
	}
	refuses("[cache.simple]\ncustom_size=\"1x\"",
		"f:2: custom_size is '1x', but must be a size, as in \"0.5GB\" or \"100Mb\"");
	refuses("[cache.simple]\ncustom_size=1.5",
		"f:2: custom_size must be a size in quotes, as in \"0.5GB\", not a float");
	refuses("[cache.simple]\ncustom_size='1k'",
		"f:2: custom_size is 1024 bytes, less than a page of 4096");
	refuses("[cache.simple]\nblocks_per_page=3",
		"f:2: blocks_per_page is 3, but must be a power of two up to 256");
	refuses("[cache.simple]\nblocks_per_page=0",
		"f:2: blocks_per_page is 0, but must be from 1 to 8796093022207");
	refuses("[cache.simple]\nblocks_per_page='1'",
		"f:2: blocks_per_page must be an integer, not a string");
	refuses("[cache.manual]\npage_size=1000",
		"f:2: page_size is 1000, but must be a power of two from 512 to 1048576");
	refuses("[cache.manual]\npage_size=4096\nio_block_size=1000",
		"f:3: io_block_size is 1000, but a page must be a whole number of blocks");
	refuses("[cache.manual]\nio_block_size=8192",
		"f:2: io_block_size is 8192, but a page must be a whole number of blocks");
	refuses("[cache.manual]\nno_pages=-1",
		"f:2: no_pages is -1, but must be from 1 to 8796093022207");
	refuses("[cache]\napply_eviction=1",
		"f:2: apply_eviction must be true or false, not an integer");
	refuses("cache=1", "f:1: cache must be a table, not an integer");
	refuses("[cache]\nsimple=1", "f:2: simple must be a table, not an integer");
}

static void test_ours(void)
{
	struct inject_config c;

	if (good("[outage]\nprofile='xfs'\nsocket='/s'\ntrace='/t'", &c)) {
		is_s(c.profile, "xfs", "profile");
		is_u(c.profile_line, 2, "and the line that says so");
		is_s(c.socket, "/s", "socket");
		is_s(c.trace, "/t", "trace");
		inject_config_release(&c);
	}
	refuses("[[injection]]\ntype='torn-op'\nfile='a'\nparts=2\n\npersist=[3]",
		"f:6: persist names part 3, but parts is only 2");
	refuses("[[injection]]\ntype='torn-op'\nfile='a'\nparts=2\npersist=[2, 2]",
		"f:5: persist names 2 twice; say it once");
	refuses("\n[[injection]]\ntype='torn-op'\nfile='a'\npersist=[3]",
		"f:2: torn-op needs parts, a number, or parts_bytes, a list of lengths");
	refuses("[outage]\nprofil='xfs'",
		"f:2: 'profil' is not known in [outage]; did you mean 'profile'?");
}

static void test_unknown(void)
{
	struct inject_config c;

	refuses("[fault]\n", "f:1: 'fault' is not known; did you mean 'faults'?");
	refuses("x=1", "f:1: 'x' is not known; known are faults, cache, filesystem, file system, "
		       "injection, outage");
	refuses("[faults]\nfifo_paht='x'",
		"f:2: 'fifo_paht' is not known in [faults]; did you mean 'fifo_path'?");
	refuses("[faults]\nfifo_path=1", "f:2: fifo_path must be a string, not an integer");
	refuses("[cache]\nsimpel={}",
		"f:2: 'simpel' is not known in [cache]; did you mean 'simple'?");
	refuses("[cache.simple]\nsize='1g'",
		"f:2: 'size' is not known in [cache.simple]; known are custom_size, "
		"blocks_per_page");
	refuses("[filesystem]\nlog_all=true",
		"f:2: 'log_all' is not known in [filesystem]; known are log_all_operations, "
		"logfile");
	refuses("[faults", "f:1: after the name faults there must be ]");
	if (good("[filesystem]\nsync_after_rename=true", &c)) {
		is_u(c.warnings.n, 1, "a key that LazyFS had");
		is_s(c.warnings.v[0], "f:2: sync_after_rename means nothing here and is left out",
		     "is a warning");
		inject_config_release(&c);
	}
}

/* The fault of one [[injection]]. */
static void fault_is(const char *keys, const char *words)
{
	auto_strbuf text = STRBUF_INIT;
	struct inject_config c;

	strbuf_addf(&text, "[[injection]]\n%s", keys);
	if (!good(strbuf_str(&text), &c))
		return;
	is_s(c.faults.n ? strbuf_str(&c.faults.v[0]->text) : NULL, words, "is %s", words);
	inject_config_release(&c);
}

static void fault_fails(const char *keys, const char *want)
{
	auto_strbuf text = STRBUF_INIT;

	strbuf_addf(&text, "[[injection]]\n%s", keys);
	refuses(strbuf_str(&text), want);
}

static void test_faults(void)
{
	fault_is("type='crash'\nop='write'\nfrom_rgx='a.*'", "crash op=write from_rgx=a.*");
	fault_is("type='clear-cache'\nop='rename'\nfrom='a'\nto='b'\ntiming='after'\ncrash=false",
		 "clear-cache op=rename from=a to=b timing=after crash=false");
	fault_is("type='torn-op'\nfile='a'\nparts_bytes=[4096,3600]\npersist=2",
		 "torn-op file=a parts_bytes=4096,3600 persist=2");
	fault_is("type='torn-op'\nfile='a'\nparts=2\npersist=[]\nop='write'",
		 "torn-op file=a parts=2 persist= op=write");
	fault_is("type='sync-pages'\nfrom='a'\nop='fsync'\npages='last-half'\nreturn=true\n"
		 "sync_other_files=false",
		 "sync-pages from=a op=fsync pages=last-half return=true sync_other_files=false");
	fault_is("type='sync-pages'\nfile='a'\nop='write'\npages=[1,3]",
		 "sync-pages file=a op=write pages=1,3");
	fault_is("type='error'\nop='fsync'\nfile='*.db'\nerror='ENOSPC'\nuntil='end'\n"
		 "keep_dirty=true",
		 "error op=fsync file=*.db error=ENOSPC until=end keep_dirty=true");
	fault_is("type='error'\nop='write'\nfile='a'\nerror=5", "error op=write file=a error=5");
	fault_is("type='short'\nop='write'\nfile='a'\nbytes='4k'\nuntil=3",
		 "short op=write file=a bytes=4k until=3");
	fault_is("type='delay'\nop='read'\nfile='a'\ndelay='20ms'",
		 "delay op=read file=a delay=20ms");
	fault_is("type='crash'\nop='write'\nfile='a'\nsurvive='random'\nseed=7",
		 "crash op=write file=a survive=random seed=7");
	fault_is("type='crash'\nop='write'\nfile='a'\nsurvivors='x*'",
		 "crash op=write file=a survivors=x*");
}

static void test_wrong_faults(void)
{
	fault_fails("op='write'", "f:1: this [[injection]] needs a type, as in type=\"torn-op\"");
	fault_fails("type=1", "f:2: type must be a string, not an integer");
	fault_fails("type='torn-sec'",
		    "f:2: there is no type 'torn-sec'; did you mean 'torn-seq'?");
	fault_fails("type='frobnicate'",
		    "f:2: there is no type 'frobnicate'; there are crash, clear-cache, torn-op, "
		    "torn-seq, sync-pages, error, short and delay");
	fault_fails("type='torn-op'\nocurence=1",
		    "f:3: 'ocurence' is nothing that torn-op takes; did you mean 'occurrence'?");
	fault_fails(
		"type='torn-op'\nxyzzy=1",
		"f:3: 'xyzzy' is nothing that torn-op takes; torn-op takes op, file, file_glob, "
		"file_rgx, occurrence, return, persist, parts, parts_bytes");
	fault_fails("type='torn-op'\npersist='1'",
		    "f:3: persist must be an array of integers, as in [1, 3], not a string");
	fault_fails("type='torn-op'\npersist=['1']",
		    "f:3: persist must be an array of integers, as in [1, 3], not an array");
	fault_fails("type='torn-op'\nparts='3'", "f:3: parts must be an integer, not a string");
	fault_fails("type='torn-op'\nparts=0", "f:3: parts is 0, but must be 1 or more");
	fault_fails("type='torn-op'\nparts=-1", "f:3: parts is '-1', but must be a number");
	fault_fails("type='torn-op'\nfile=3", "f:3: file must be a string, not an integer");
	fault_fails("type='torn-op'\nparts=2\npersist=[1]",
		    "f:1: torn-op needs file, the path of the file whose writes it tears");
	fault_fails("type='torn-op'\nfile='a'\nparts=2",
		    "f:1: torn-op needs persist, what of it is durable, as in persist=1,3");
	fault_fails("type='torn-op'\nfile='a'\npersist=[1]",
		    "f:1: torn-op needs parts, a number, or parts_bytes, a list of lengths");
	fault_fails("type='torn-op'\nfile='a'\npersist=[1]\nparts=1\nparts_bytes=[1]",
		    "f:1: torn-op takes either parts or parts_bytes, not both of them");
	fault_fails("type='torn-op'\nfile='a'\npersist=[4]\nparts=3",
		    "f:4: persist names part 4, but parts is only 3");
	fault_fails("type='torn-op'\nfile='a'\npersist=[3]\nparts_bytes=[1,2]",
		    "f:4: persist names part 3, but parts_bytes has only 2");
	fault_fails("type='torn-op'\nfile='a'\npersist=[0]\nparts=3",
		    "f:4: persist names part 0; parts and writes count from 1");
	fault_fails("type='torn-op'\nfile='a'\npersist=[1]\nparts_bytes=[0,2]",
		    "f:5: parts_bytes has a part of 0 bytes");
	fault_fails("type='torn-op'\nfile='a'\npersist=[1]\n"
		    "parts_bytes=[9223372036854775807,1]",
		    "f:5: parts_bytes is more than a file can hold");
	fault_fails("type='torn-op'\nfile='a'\npersist=[1]\nparts=3\nop='read'",
		    "f:1: torn-op tears a write, so op must be write");
	fault_fails("type='torn-seq'\nfile='a'\npersist=[]",
		    "f:1: torn-seq needs persist, the writes of a run that are kept; nothing would "
		    "ever end the run without it");
	fault_fails("type='torn-seq'\nfile='a'\npersist=[1]\nop='fsync'",
		    "f:1: torn-seq is about writes, so op must be write");
	fault_fails("type='torn-seq'\nfile='a'\npersist=[1]\noccurrence=0",
		    "f:5: occurrence counts from 1, not from 0");
	fault_fails("type='clear-cache'\ncrash='yes'",
		    "f:3: crash must be true or false, not a string");
	fault_fails("type='clear-cache'\nop='write'",
		    "f:1: clear-cache needs from, the path of the file that it is about");
	fault_fails("type='clear-cache'\nfrom='a'",
		    "f:1: clear-cache needs op, the operation that it waits for");
	fault_fails("type='clear-cache'", "f:1: clear-cache needs op, the operation that it waits "
					  "for");
	fault_fails("type='clear-cache'\nop='wriet'",
		    "f:3: op is 'wriet', which is no operation; did you mean 'write'?");
	fault_fails("type='clear-cache'\nop='write'\nfrom='a'\nto='b'",
		    "f:5: to is for rename, link and symlink; write has one path, which is from");
	fault_fails("type='clear-cache'\ntiming='now'",
		    "f:3: timing is 'now', but must be before or after");
	fault_fails("type='clear-cache'\nfrom='a'\nfrom_rgx='b'",
		    "f:4: from_rgx, but the path was given before; say it once");
	fault_fails("type='clear-cache'\noccurrence=1\nocurrence=2",
		    "f:4: occurrence is given twice; say it once");
	fault_fails("type='error'\nop='write'\nfile='a'",
		    "f:1: error needs error, what it fails with, as in error=EIO");
	fault_fails("type='error'\nerror='EFOO'",
		    "f:3: error is 'EFOO', which is no error; name it as in EIO, ENOSPC or EDQUOT");
	fault_fails("type='error'\nop='write'\nfile='a'\nerror='EIO'\nkeep_dirty=true",
		    "f:6: keep_dirty is for a sync that fails, so op must be one, as in op=fsync");
	fault_fails("type='error'\nop='write'\nfile='a'\nerror='EIO'\noccurrence=4\nuntil=3",
		    "f:7: until is 3, which is before occurrence, 4");
	fault_fails("type='short'\nop='fsync'\nfile='a'\nbytes=1",
		    "f:1: short is about op=write or op=read");
	fault_fails("type='short'\nop='write'\nfile='a'",
		    "f:1: short needs bytes, after how many it stops, as in bytes=512");
	fault_fails("type='delay'\nop='write'\nfile='a'", "f:1: delay needs how long, as in "
							  "delay=100ms");
	fault_fails("type='delay'\ndelay='2 weeks'",
		    "f:3: delay is '2 weeks', but must be a time up to a day, as in 100ms or 2s");
	fault_fails("type='sync-pages'\npages='some'",
		    "f:3: pages is 'some', but must be all, first, last, first-half, last-half, "
		    "first-and-last, interleaved, random, or numbers as in pages=1,3");
	fault_fails("type='sync-pages'\npages=[0]\nfrom='a'\nop='write'",
		    "f:3: pages count from 1, not from 0");
	fault_fails("type='sync-pages'\nop='write'",
		    "f:1: sync-pages needs file, the path of what becomes durable");
	fault_fails("type='crash'\nop='write'\nfile='a'\nsurvive='some'",
		    "f:5: survive is 'some', but must be none, data, metadata, listed or random");
	fault_fails("type='crash'\nop='write'\nfile='a'\nsurvive='listed'",
		    "f:1: survive=listed needs survivors, a path or a pattern");
	refuses("[injection]\ntype='crash'",
		"f:1: write [[injection]] with two brackets; there may be several");
	refuses("injection=[1]", "f:1: this must be a table, not an integer");
}

/* Old names are understood, and said to be old. */
static void test_old(void)
{
	struct inject_config c;

	if (!good("[[injection]]\ntype='split_write'\nfile='a'\nparts=2\npersist=[1]\nocurrence=3\n"
		  "[[injection]]\ntype='reorder'\nfile='a'\nop='write'\npersist=[1]",
		  &c))
		return;
	ok(c.faults.n == 2 && c.faults.v[0]->type == FAULT_TORN_OP &&
		   c.faults.v[0]->occurrence == 3 && c.faults.v[1]->type == FAULT_TORN_SEQ,
	   "split_write, reorder, ocurrence");
	is_u(c.warnings.n, 3, "three warnings");
	is_s(c.warnings.v[0], "f:2: 'split_write' is taken for 'torn-op'", "of a type");
	is_s(c.warnings.v[1], "f:6: 'ocurrence' is taken for 'occurrence'", "of a key");
	inject_config_release(&c);
}

static void test_conflicts(void)
{
	struct inject_config c;

	refuses("[[injection]]\ntype='torn-op'\nfile='a'\nparts=2\npersist=[1]\n"
		"[[injection]]\ntype='torn-op'\nfile='/mnt/dir/a'\nparts=3\npersist=[1]",
		"f:6: this torn-op is about the same file as the one in line 1; one file can have "
		"one");
	if (good("[[injection]]\ntype='torn-op'\nfile='a'\nparts=2\npersist=[1]\n"
		 "[[injection]]\ntype='torn-op'\nfile='b'\nparts=3\npersist=[1]\n"
		 "[[injection]]\ntype='torn-seq'\nfile='a'\npersist=[1]\n"
		 "[[injection]]\ntype='clear'\nfrom='a'\nop='write'\n"
		 "[[injection]]\ntype='clear'\nfrom='a'\nop='read'\n",
		 &c)) {
		is_u(c.faults.n, 5, "others do not");
		inject_config_release(&c);
	}
}

static void test_file(void)
{
	char path[] = "/tmp/inject-config.XXXXXX";
	static const char text[] = "[faults]\nfifo_path='/x'\n";
	int fd = mkstemp(path);
	struct inject_config c;
	struct err err = ERR_INIT;

	if (fd < 0 || io_write_full(fd, text, strlen(text)))
		abort();
	close(fd);
	is_i(inject_config_read(path, NULL, NULL, &c, &err), 0, "a file");
	is_s(c.fifo, "/x", "is read");
	inject_config_release(&c);
	unlink(path);
	is_i(inject_config_read(path, NULL, NULL, &c, &err), -ENOENT, "a file that is not there");
}

/* The part of the manual page between ``` that begins with `first`. */
static char *example(const char *page, const char *first)
{
	auto_free char *mark = xasprintf("```\n%s", first);
	const char *begin = strstr(page, mark);
	const char *end = begin ? strstr(begin + 4, "```") : NULL;

	return end ? xmemdupz(begin + 4, (size_t)(end - begin - 4)) : xstrdup("?");
}

/* What the manual page shows is understood, and it names every key. */
static void test_manual(void)
{
	static const char *const types[] = { "crash", "clear-cache", "torn-op", "torn-seq",
					     "sync",  "error",	     "short",	"delay" };
	auto_strbuf page = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct inject_config c;

	if (io_slurp(TEST_SOURCE_DIR "/../man/outage-faults.5.scd", 1 << 20, &page, &err))
		abort();
	auto_free char *file = example(strbuf_str(&page), "[faults]");
	auto_free char *fault = example(strbuf_str(&page), "[[injection]]");

	if (good(file, &c)) {
		ok(c.fifo && c.fifo_completed && c.logfile && c.profile && c.socket && c.trace &&
			   c.pages == 131072,
		   "the manual's file");
		inject_config_release(&c);
	}
	*strstr(fault, "$ ") = '\0';
	if (good(fault, &c)) {
		is_s(strbuf_str(&c.faults.v[0]->text),
		     "torn-op file=wal/0.log parts=3 persist=1,3 occurrence=5",
		     "the manual's fault");
		inject_config_release(&c);
	}
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct draft d;
		struct inject_places none = { 0 };
		auto_strbuf hint = STRBUF_INIT;
		bool all = draft_begin(&d, types[i], DIALECT_FILE, &none);

		draft_hint(&d, "xyzzy", &hint);
		char *rest = strstr(hint.buf, "takes ") + 6, *key;

		while ((key = strsep(&rest, ", "))) {
			auto_free char *word = xasprintf("*%s*", key);

			all &= !*key || strstr(strbuf_str(&page), word);
		}
		ok(all, "the manual has every key of %s", types[i]);
		draft_release(&d);
	}
}

int main(void)
{
	test_whole();
	test_empty();
	test_cache();
	test_ours();
	test_unknown();
	test_faults();
	test_wrong_faults();
	test_old();
	test_conflicts();
	test_file();
	test_manual();
	return done_testing();
}
