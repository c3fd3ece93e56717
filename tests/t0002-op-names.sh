#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# No code asks for an operation by its name, and the check that says so can fail.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

"$root/tools/op-names" "$root/src" >out 2>err
check "nobody asks for an operation by its name" test $? -eq 0

# try STATUS TEXT: a file with the lines of standard input has that status
try() {
	rm -rf src
	mkdir -p src/check
	cat >src/check/a.c
	"$root/tools/op-names" src >out 2>err
	check "$2" test $? -eq "$1"
}
try 1 "a comparison with a literal is caught" <<<'	if (streq(op->def->name, "fsync"))'
check "with its place" grep -q '^src/check/a.c:1: .*streq' out
try 1 "in more than one line" <<'END'
	return op->setup ||
	       !strcmp(op->def->name,
		       "rename");
END
try 1 "with a list" <<<'		if (streq(w->ops.v[i].def->name, names[i]))'
try 1 "of an entry of the table" <<<'	if (!streq(op_table[i].name, "remount"))'
try 1 "a name that is kept for later" <<<'	const char *name = op->def->name;'
try 1 "a literal that is looked up" <<<'	op->def = op_find("write", 5);'
try 0 "what a user wrote may be looked up" <<<'	const struct op_def *def = op_find(word, strlen(word));'
try 0 "a name may be printed" <<'END'
	strbuf_addf(out, "%-16s %10llu done", def->name, done);
	auto_free char *title = xasprintf("%s %s", def->name, name ? name : "?");
END
try 0 "an identifier that the compiler checks is fine" <<<'	return x->op == OP_DEF(falloc) || op->def->promise == OP_PROMISES_ALL;'
done_testing
