#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage app --stacks: each operation with who made it, down to the line of the source.
# shellcheck disable=SC2016,SC2317 # commands for other shells, and what check calls
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
requires_namespaces

requires_root
requires_fuse
[ "$(uname -m)" = x86_64 ] || skip_all 'this needs x86-64'
own_mounts
for_everybody

# app OPTION...: one run, kept in run
app() {
	rm -rf run
	timeout 900 "$OUTAGE" app -o run "$@" >out 2>err
	status=$?
}
# line TEXT FILE: where it is
line() {
	grep -nF -- "$1" "$2" | head -n 1 | cut -d: -f1
}

# A store that renames what it has not synced. Its functions are called in a row, one of them is put
# into another by the compiler, and one is called through a pointer.
cat >store.c <<'END'
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int file;

static inline __attribute__((always_inline)) void put(const char *text)
{
	if (write(file, text, strlen(text)) < 0) /* the write */
		_exit(1);
}

static __attribute__((noinline)) void append_record(const char *text)
{
	char room[3000];

	memset(room, 0, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	put(text); /* put is in here */
	__asm__ volatile("" : : "r"(room) : "memory");
}

static __attribute__((noinline)) int publish(const char *from, const char *to)
{
	int rc = rename(from, to); /* the rename */

	__asm__ volatile("" ::: "memory");
	return rc;
}

static void *in_thread(void *ctx)
{
	append_record(ctx); /* of the thread */
	return NULL;
}

int main(int argc, char **argv)
{
	int (*how)(const char *, const char *) = publish;
	pthread_t t;

	file = open("table.tmp", O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (argc > 1 && strcmp(argv[1], "thread") == 0) {
		pthread_create(&t, NULL, in_thread, "new\n");
		pthread_join(t, NULL);
	} else if (argc > 1 && strcmp(argv[1], "map") == 0) {
		char *m;

		if (ftruncate(file, 4))
			return 1;
		m = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		memcpy(m, "new\n", 4);
		if (msync(m, 4, MS_SYNC))
			return 1;
	} else {
		append_record("new\n"); /* of the main one */
	}
	__asm__ volatile("" : "+r"(how));
	return how("table.tmp", "table"); /* through a pointer */
}
END
mkdir data
echo old >data/table
look="grep -q '^old\$\|^new\$' table"
write=store.c:$(line '/* the write */' store.c)
rename=store.c:$(line '/* the rename */' store.c)

# wrong NAME: what must be said of a program with lines
wrong() {
	check "$1: the missing sync is found" test $status = 1
	check "$1: the write is named with its line" said "write 4 to table.tmp, at $write in put, was not ordered before"
	check "$1: and the rename" said "rename 5 of table.tmp to table, at $rename in publish: an fsync of table.tmp is missing"
	timeout 900 "$OUTAGE" report run >out 2>>err
	check "$1: who called the write" said "at store.c:$(line 'put(text)' store.c) in append_record"
	check "$1: and who called that" said "at store.c:$(line "$2" store.c) in "
	check "$1: through a pointer, too" said "at store.c:$(line '/* through a pointer */' store.c) in main"
}
for how in '-O2' '-O0' '-O2 -fno-omit-frame-pointer' '-O1 -no-pie'; do
	# shellcheck disable=SC2086 # options
	cc -g $how -pthread -o store store.c
	app --stacks -p minimal --run "$dir/store" --check "$look" -- data
	wrong "$how" '/* of the main one */'
done
# Another compiler, which writes no index of what is where.
if command -v clang >/dev/null; then
	clang -g -O1 -pthread -o store store.c
	app --stacks -p minimal --run "$dir/store" --check "$look" -- data
	wrong clang '/* of the main one */'
else
	skip "clang is not installed"
fi
cc -g -O2 -pthread -o store store.c
app --stacks -p minimal --run "$dir/store thread" --check "$look" -- data
wrong "in a thread" '/* of the thread */'

timeout 900 "$OUTAGE" report run --json >out 2>>err
check "--json: the frames of the lost write" test "$(python3 -c '
import json
d = json.load(open("out"))["findings"][0]
e = [e for e in d["sequence"] if e["fate"] == "lost"][0]
print([f.get("function") for f in e["stack"] if "store" in f["module"]], d["verified"],
      all(len(f.get("build_id", "")) == 40 for f in e["stack"]))')" = "['put', 'append_record', 'in_thread'] True True"
timeout 900 "$OUTAGE" report run --html page.html >out 2>>err
check "--html: the place" grep -qF "$write in put" page.html
app --stacks -p minimal --run 'for i in 1 2 3 4 5 6 7 8; do echo $i; done >many' --check true -- data
check "the same stack is kept once" test "$(grep -c '^call' run/stacks)" -gt "$(($(grep -c '^stack	' run/stacks) + 4))"

app -p minimal --run "$dir/store" --check "$look" -- data
check "without --stacks nothing of this is said" eval '! grep -q store.c out && [ ! -e run/stacks ]'

# Without lines: names, if there are any; else the file and the place in it.
cc -O2 -pthread -o store store.c
app --stacks -p minimal --run "$dir/store" --check "$look" -- data
check "without -g: the function is named" grep -q 'write 4 to table.tmp, at append_record (store+0x[0-9a-f]*), was not' out
cc -O2 -s -pthread -o store store.c
app --stacks -p minimal --run "$dir/store" --check "$look" -- data
check "stripped: the place in the program is" grep -q 'write 4 to table.tmp, at store+0x[0-9a-f]*, was not' out
at=$(grep -o 'write 4 to table.tmp, at store+0x[0-9a-f]*' out | head -n 1 | sed 's/.*+//')
cc -g -O2 -pthread -o full store.c
check "stripped: and it is the right one" test "$(addr2line -e full "$at" | sed 's/.*\///; s/ .*//')" = "$write"

# What is stored in memory comes by the kernel, and late.
cc -g -O2 -pthread -o store store.c
app --stacks -p minimal --run "$dir/store map" --check "$look" -- data
check "a mapping: what has no stack is said" grep -q 'note: 1 operation has no call stack: the kernel wrote later' out
timeout 900 "$OUTAGE" trace show run/trace >out 2>>err
check "a mapping: the write is there" grep -q ' write ' out

# A program below the directory is read by who answers for that directory.
cp store data/store
app --stacks -p minimal --run ./store --check "$look" -- data
check "a program in the directory itself" said "at $write in put"
rm data/store

# Another user, in another process of the run.
chmod 777 data
chmod 666 data/table
app --stacks -p minimal --run "${as_user[*]} '$dir/store'" --check "$look" -- data
check "as another user" said "at $write in put"

# An ordinary user may not look into a program that may be run and not be read.
if "${as_user[@]}" unshare --user true 2>/dev/null; then
	install -d -o 65534 -g 65534 user user/data
	echo old >user/data/table
	chown 65534:65534 user/data/table
	cp store hidden
	chmod 711 hidden
	for program in store hidden; do
		(cd user && rm -rf run && "${as_user[@]}" timeout 900 "$OUTAGE" \
			app --stacks -o run -p minimal --run "$dir/$program" --check "$look" -- data) >out 2>err
		if [ $program = store ]; then
			check "as an ordinary user" said "at $write in put"
		else
			check "a program that cannot be looked at: the finding is the same" \
				said "write 4 to table.tmp was not ordered before the rename 5 of table.tmp to table: an fsync"
			check "a program that cannot be looked at: that is said once" \
				test "$(grep -c 'no call stack: the caller could not be looked at' out)" = 1
		fi
	done
else
	skip "no user namespaces for ordinary users"
fi

# What is kept is input, too.
app --stacks -p minimal --run "$dir/store" --check "$look" -- data
echo 'call	1	99' >>run/stacks
timeout 900 "$OUTAGE" report run >out 2>err
check "a damaged table is refused" test $? = 2
check "which is said" grep -q 'stacks: line [0-9]* of the table' err
done_testing
