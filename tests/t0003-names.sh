#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Names, heads of files and exports are as tools/names wants them, and each of its checks can fail.
# shellcheck disable=SC2016 # back quotes of documents
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

built=$(dirname "$OUTAGE")
if [ ! -f "$built/compile_commands.json" ]; then
	echo "1..0 # SKIP $built is no build"
	exit 77
fi
"$root/tools/names" "$built" >out 2>err
check "the tree has no dead export, no file without a head, no damaged list, no new twin" test $? -eq 0
check "it was looked at" grep -q '^core  *[1-9]' out
check "assertions are counted" grep -Eq '^core +[0-9]+ +[1-9][0-9]* ' out

# A tree of two rooms that is right: one function, which the other room uses.
fresh() {
	rm -rf tree
	mkdir -p tree/src/low tree/src/high tree/tests tree/tools tree/build
	cat >tree/src/low/one.h <<-'END'
		/* SPDX-License-Identifier: MIT */
		/*
		 * one.h - the number one.
		 *
		 * I1: it is one.
		 * I2: it stays one; see I1: always.
		 */
		int one(void);
		struct one {
			int n;
		};
	END
	cat >tree/src/low/one.c <<-'END'
		/* SPDX-License-Identifier: MIT */
		/* one.c - the number one. */
		#include "../low/one.h"
		int one(void) { return 1; }
	END
	cat >tree/src/high/two.c <<-'END'
		/* SPDX-License-Identifier: MIT */
		/* two.c - uses it. */
		#include "../low/one.h"
		int main(void) { return one(); }
	END
	printf '/* SPDX-License-Identifier: MIT */\n/* A test has no name in its head. */\n' >tree/tests/t.c
	printf '/* It may be used. */\nint main(void) { return 0; }\n' >>tree/tests/t.c
}

# The exceptions of the real tree are none here, nor are its rooms.
sed "/^\(twins\|floors\)='\$/,/^'\$/{/^[a-z]* /d}; s/^floors='\$/&\nlow 0\nhigh 0/" "$root/tools/names" >names
sed "/^\(others\|shared\)='\$/,/^'\$/{/^[a-z]* /d}" "$root/tools/prefixes" >prefixes
chmod +x names prefixes

# try STATUS TEXT [PATTERN]: builds the tree; the tool ends with STATUS, and says PATTERN
try() {
	local file
	echo '[' >tree/build/compile_commands.json
	for file in $(cd tree && echo src/*/*.c tests/*.c); do
		cc -c -o "tree/build/${file//\//_}.o" "tree/$file" || exit 1
		printf '"file": "../%s",\n"output": "%s.o"\n' "$file" "${file//\//_}" >>tree/build/compile_commands.json
	done
	./names tree/build tree >out 2>err
	check "$2" test $? -eq "$1"
	[ -z "${3:-}" ] || check "... and says where" grep -Eq -e "$3" out
}

fresh
try 0 "a tree that is right passes"

fresh
echo 'int one_nobody(void); int one_nobody(void) { return 2; }' >>tree/src/low/one.c
try 1 "a function that nobody uses is found" '^dead src/low/one.c: .* one_nobody$'
echo 'dead src/low/one.c' >tree/tools/names.later
try 0 "... but for what is put right later" ' 1 later'
rm tree/tools/names.later
cat >>tree/tests/t.c <<'END'
int one_nobody(void);
int (*variable)(void) = one_nobody;
END
try 1 "a variable that nobody uses is found" '^dead tests/t.c: .* variable$'
sed -i '/variable/d; s/return 0/int one_nobody(void); return one_nobody()/' tree/tests/t.c
try 0 "a function that only a test uses is listed" '^note src/low/one.c: only tests use one_nobody$'

fresh
# also LINE...: the room has one more file, of these lines, and the other room uses the function $name
also() {
	printf '%s\n' '/* SPDX-License-Identifier: MIT */' '/* more_words.c - the number once more. */' "$@" >tree/src/low/more_words.c
	sed -i "s/int main/int $name(void); int main/; s/one();/one() + $name();/" tree/src/high/two.c
}
for name in low_again more more_again more_words_again ones one_again; do
	fresh
	also "int $name(void); int $name(void) { return 1; }"
	try 0 "$name() begins with a name of its room"
done
for name in onerous mo_re again; do
	fresh
	also "int $name(void); int $name(void) { return 1; }"
	try 1 "$name() does not" "^prefix src/low/more_words.c: $name begins with no name of src/low\$"
done
sed -i "s/^others='\$/&\nlow again/" prefixes
try 0 "... but may where it is listed"
fresh
try 1 "... and needed" '^prefix tools/prefixes: "low again" is needed no more$'
sed -i '/^low again$/d' prefixes

fresh
name=low_again
also 'int low_again(void); int low_again(void) { return 1; }'
mv tree/src/high/two.c tree/src/high/low_two.c
sed -i 's/two.c/low_two.c/; s/^int low_again/int low_high(void) { return 1; }\n&/' tree/src/high/low_two.c
echo 'int low_high(void);' >>tree/src/low/one.h
sed -i 's/return 1/int low_high(void); return low_high()/' tree/src/low/more_words.c
try 1 "two rooms whose symbols begin alike are found" '^shared src/high/low_two.c: low_ begins symbols of these rooms: '
sed -i "s/^shared='\$/&\nlow high low/" prefixes
try 0 "... but for what is listed"
fresh
try 1 "... and is so" '^shared tools/prefixes: "low high" is needed no more$'
sed -i '/^low high low$/d' prefixes

fresh
sed -i 's/^low 0$/low 1/' names
try 1 "a room that lost an assertion is found" '^floor src/low: 0 assertions, not 1$'
sed -i 's/return 1/assert(1); return 1/; s/^#include.*/#include <assert.h>\n&/' tree/src/low/one.c
try 0 "one that has it is not"
sed -i '/^low 1$/d' names
try 1 "nor is a room forgotten" '^floor src/low: has none'
sed -i "s/^floors='\$/&\nlow 0/" names

fresh
sed -i 2d tree/src/low/one.c
try 1 "a file without a head is found" '^head src/low/one.c: its second'
fresh
sed -i '2s/one.c/two.c/' tree/src/low/one.c
try 1 "and one whose head has another name" '^head src/low/one.c: its second'
fresh
sed -i '2s/uses it. //' tree/src/high/two.c
try 1 "and one whose head says nothing" '^head src/high/two.c: its second'
fresh
sed -i '2s/uses it/see one.h/' tree/src/high/two.c
try 1 "and one whose head refers to another file" '^head src/high/two.c: its second'
fresh
sed -i 1d tree/src/low/one.h
try 1 "and one without a licence" '^head src/low/one.h: its first'

fresh
sed -i 's/ \* I2: it stays.*/ * always. I2: it stays one./' tree/src/low/one.h
try 1 "items that were run together are found" '^list src/low/one.h: I2: .* line 6$'
fresh
sed -i 's/ \* I1: .*/ * 1. it is one, 2. and stays it/' tree/src/low/one.h
try 1 "with numbers alone, too" '^list src/low/one.h: 2\. .* line 5$'
fresh
sed -i 's/ \* I1: .*/ * The number one. I1: it is one./' tree/src/low/one.h
try 1 "and an item that follows a sentence" '^list src/low/one.h: I1: .* line 5$'
fresh
sed -i 's/ \* I1: .*/ * See I2: the number is 2. It has version 3. That is all./' tree/src/low/one.h
try 0 "what is said of an item, or ends with a number, is no item"

fresh
mkdir tree/doc
printf 'Read `low/one.h`, then src/high/two.c; of others, see linux/fs.h.\n' >tree/doc/a.md
printf 'In the new file `low/new.c`:\n\n    low/three.c\n```\nlow/three.c\n```\n' >>tree/doc/a.md
try 0 "a document that names what is there is right"
printf 'Start at `low/two.h`.\n' >>tree/doc/a.md
try 1 "one that names a file that is gone is not" '^path doc/a.md: line 8: there is no low/two.h$'

fresh
sed 's/two.c/one.c/' tree/src/high/two.c >tree/src/high/one.c
rm tree/src/high/two.c
try 1 "two files of one name in different rooms are found" '^twin stem one high low: '
fresh
cat >>tree/src/high/two.c <<'END'
union one {
	int n;
};
END
sed -i /include/d tree/src/high/two.c
sed -i 's/main/one(void); int main/' tree/src/high/two.c
try 0 "a struct and a union are two kinds"
sed -i s/union/struct/ tree/src/high/two.c
try 1 "and two structs" '^twin struct one high low: '
sed -i "s/^twins='\$/&\nstruct one high low/" names
try 0 "... but for those that are listed"
fresh
try 1 "which have to be there" '^twin struct one high low: is not so any more'
done_testing
