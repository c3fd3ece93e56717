#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0020-recipes.sh - the recipes of CONTRIBUTING.md work: all of them are applied to one copy of the tree,
# which is built, and their commands are run there. What a recipe added is then used, and left out, by
# tests/recipes/NAME.sh, where NAME is "bounded-set" for "Add a bounded set". Such a file has two functions:
# used(), while all of it is there, and left_out(), which may leave a tree that cannot be built. They have
#
#	$section		the title
#	$OUTAGE			the program of the copy, which is below tree/
#	status N COMMAND...	it ends with that status, its words being in the files out and err
#	build TARGET...		of ninja, in the copy; its words are in the file out
#	noticed STEP[:LINE] WORDS TARGET	the target cannot be built without this step or line, and the
#				words, a pattern, are in what the compiler or linker says
#	become "$section" STEP[:LINE]	it is left out
#	whole			nothing is left out any more
#
# Compiling is what takes long: it checks first what leaves most of the objects as they are.
# takes 90 s
# shellcheck source=tests/lib.sh disable=SC2317,SC2016 # called through check; text of a document
. "$(dirname "$0")/lib.sh"

document=$root/CONTRIBUTING.md
recipe() { timeout 900 "$root/tools/recipe" "$@" >"$dir/out" 2>"$dir/err"; }
wrong() { local words=$1; shift; ! recipe "$@" && grep -q "$words" "$dir/err"; } # WORDS ARGUMENTS...

# ---- the tool ----

# tell LINE...: a document with one recipe, which adds the lines "two" and "2" where the last line says
tell() { { printf '## Add two\n\n'; printf '%s\n' "$@"; printf '\n```c\ntwo\n2\n```\n'; } >doc.md; }
# shows TEXT [OPTION...]: the file, after the recipe was applied to "one" and "three"
shows() {
	local text=$1
	shift
	printf '\tone\n\tthree\n' >file && recipe apply doc.md 'Add two' . "$@" && [ "$(tr -d '\t' <file | paste -sd,)" = "$text" ]
}
tell 'It is between. In `file`,' 'before `three`:'
check 'a block goes before a line' shows one,two,2,,three
check 'or it is left out' shows one,three --without 1
check 'or a line of it' shows one,two,,three --without 1:2
check 'the step has a number, lines and a file' eval 'recipe steps doc.md "Add two" && [ "$(cat out)" = "1 2 file" ]'
tell 'In `file`, after `one`:'
check 'a block goes after a line' shows one,two,2,three
tell 'At the end of `file`:'
check 'or to the end' shows one,three,,two,2
tell 'In the new file `new/file`:'
check 'or is a file' eval 'recipe apply doc.md "Add two" . && [ "$(paste -sd, new/file)" = two,2 ]'
check 'which must be new' wrong 'is there already' apply doc.md 'Add two' .
tell 'In `file`, after `four`:'
check 'a line that is not there is a mistake' wrong '0 lines, not one, begin with .four' apply doc.md 'Add two' .
tell 'In `file`, after `t`:'
printf 'two\nthree\n' >file
check 'and one that is there twice' wrong '2 lines, not one' apply doc.md 'Add two' .
tell 'In `../file`, after `one`:'
check 'and a file outside of the tree' wrong 'not inside' apply doc.md 'Add two' .
tell 'In `file`, after `one`:' '' 'But why?'
check 'and a block that has no place' wrong 'doc.md:7: where does' apply doc.md 'Add two' .
check 'and a section that is not there' wrong 'no section' steps doc.md 'Add three'
tell 'In `file`, after `one`:'
printf '```sh\ntrue\n```\n```text\nfor the reader\n```\n' >>doc.md
check 'commands are told apart' eval 'recipe commands doc.md "Add two" && [ "$(cat out)" = true ]'

# ---- a copy of the tree ----

for tool in meson ninja git cc; do
	if ! command -v "$tool" >/dev/null; then
		skip "$tool is not there"
		done_testing
	fi
done
git() { command git -c safe.directory='*' -C "$root" "$@"; }
if ! git rev-parse --git-dir >/dev/null 2>&1; then
	skip "this is no clone: which files belong to the tree is not known"
	done_testing
fi
unset PREFIX DESTDIR MAKEFLAGS MAKEOVERRIDES BUILD V
export CCACHE_NOHASHDIR=1 # the name of this directory differs from run to run
mkdir tree plain
git ls-files -z >files
tar -C "$root" -c --null -T files --ignore-failed-read 2>err | tar -C tree -x
recipe sections "$document"
mapfile -t sections <out
check 'there are recipes' test ${#sections[@]} -gt 0
for section in "${sections[@]}"; do
	recipe steps "$document" "$section" && cut -d ' ' -f 3- out
done | sort -u >changed
# As they were: a new file is not there.
while read -r file; do
	[ ! -e "tree/$file" ] || (cd tree && cp --parents "$file" ../plain)
done <changed

# apply TREE [SECTION STEP[:LINE]]: all recipes, but for what is left out of one
apply() {
	local one
	for one in "${sections[@]}"; do
		if [ "$one" = "${2:-}" ]; then
			recipe apply "$document" "$one" "$1" --without "$3" || return 1
		else
			recipe apply "$document" "$one" "$1" || return 1
		fi
	done
}
check 'every step of them finds its place' apply tree
configure() { (cd tree && timeout 600 tools/configure build -Dbuildtype=plain -Dc_args=-O0); }
check 'the copy is configured' eval 'configure >out 2>err'

# commands SECTION: those of the document, in the copy
commands() {
	recipe commands "$document" "$1" && mv out commands &&
		(cd tree && timeout 1200 sh -e ../commands >"$dir/out" 2>"$dir/err")
}
for section in "${sections[@]}"; do
	check "$section: the commands succeed" commands "$section"
done

# ---- what is added is used, and left out ----

build() { timeout 1200 ninja -C tree/build "$@" >"$dir/out" 2>"$dir/err"; }
# become [SECTION STEP[:LINE]]: the copy has all recipes but for that; files that stay keep their times
become() {
	local file
	rm -rf less && cp -r plain less && apply less "$@" || return 1
	while read -r file; do
		if [ ! -e "less/$file" ]; then
			rm -f "tree/$file"
		elif ! cmp -s "less/$file" "tree/$file"; then
			cp "less/$file" "tree/$file"
		fi
	done <changed
}
noticed() { become "$section" "$1" && ! build "$3" && grep -qE "$2" "$dir/out"; }
whole() { become; }

export OUTAGE=$dir/tree/build/outage
# load SECTION: its used and left_out
load() {
	section=$1
	name=$(sed -E 's/^Add an? //; s/ /-/g' <<<"$section")
	used() { false; }
	left_out() { false; }
	# shellcheck source=tests/recipes/operation.sh
	[ ! -f "$root/tests/recipes/$name.sh" ] || . "$root/tests/recipes/$name.sh"
}
for one in "${sections[@]}"; do
	load "$one"
	check "$section: there is tests/recipes/$name.sh" test -f "$root/tests/recipes/$name.sh"
	used
done
# The last ones first: leaving out what the first ones added changes most of the objects.
for ((s = ${#sections[@]} - 1; s >= 0; s--)); do
	load "${sections[s]}"
	left_out
	check "$section: nothing is left out" whole
done
done_testing
