#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0030-options.sh - the tables of options are what everything else is made from: --help, completion and manual
# pages know every option, and a mistake has the same sentence in every command.
# shellcheck source=tests/lib.sh disable=SC2317,SC2016 # called through check; for eval
. "$(dirname "$0")/lib.sh"

prints() { timeout 900 "$OUTAGE" "$@"; }

mapfile -t commands < <(prints --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' | grep -v '^trace$')
commands+=('trace show' 'trace info' 'trace graph' 'trace import' 'trace export')
check 'there are commands' test ${#commands[@]} -gt 20
check 'one that makes things for the build is not among them' eval '! prints --help | grep -q generate'

# options COMMAND: those that its --help all lists, one a line
# shellcheck disable=SC2086 # a subcommand is two words
options() { prints $1 --help all | sed -n 's/^  \(-., \|    \)\(--[a-z-]*[a-z]\).*/\2/p'; }

# ---- help ----

fits() { [ "$(wc -l <out)" -le 40 ] && ! grep -q '.\{81\}' out; }
check 'the help of the program fits on a screen' eval 'status 0 --help && fits'
check 'that of a command with others below it, too' eval 'status 0 trace --help && fits && grep -q "^  graph " out'
for command in "${commands[@]}"; do
	# shellcheck disable=SC2086 # a subcommand is two words
	check "$command --help" eval 'status 0 $command --help && head -n 1 out | grep -q "^usage: outage $command"'
	check '... fits on a screen' fits
	# shellcheck disable=SC2086
	check '... and is the same after other words' eval 'cp out before && { [ "$command" = ack ] || [ "$command" = mark ] ||
		{ status 0 $command --help nothing && cmp -s out before; }; }'
done
check 'rare options are told when all are' eval 'status 0 test --help && ! grep -q -e --paranoid out &&
	grep -q "test --help all. tells [0-9]* more" out && status 0 test --help all && grep -q -e --paranoid out'

# ---- mistakes ----

for command in "${commands[@]}"; do
	case $command in
	ack | mark) continue ;; # what they take is text
	esac
	# shellcheck disable=SC2086
	check "$command: an unknown option" refused "unknown option --frobnicate; try 'outage $command --help'" $command --frobnicate
	# shellcheck disable=SC2086
	check '... of one letter' refused "unknown option -X; try 'outage $command --help'" $command -X
	for option in $(options "$command"); do
		# shellcheck disable=SC2086
		case $option in
		--json | --trust)
			check "... $option=yes" refused "$option takes no value; try 'outage $command --help'" $command $option=yes
			;;
		--output | --time | --timeout | --jobs)
			check "... $option without a value" refused "$option needs a value, " $command $option
			;;
		esac
	done
done
for command in test explore app pm; do
	check "$command: no jobs" refused '--jobs is from 1 to' $command --jobs 0
	check '... or too many' refused '--jobs is from 1 to' $command --jobs 257
	check '... budget' eval '[ $command = explore ] || refused "--budget: '"'x'"' is not a count" $command --budget x'
done
for command in test explore app pm replay shrink; do
	check "$command: no time" refused '--time is more than 0, not 0' $command --time 0
done
for command in explore app; do
	check "$command: no findings" refused '--findings is at least 1, not 0' $command --findings 0
done
check 'one that is nearly right' refused 'unknown option --bugdet (did you mean --budget?)' app --bugdet 3
check 'a command that is nearly right' refused "there is no command 'tset' (did you mean test?)" tset
check 'a subcommand, too' refused "there is no command 'shwo' (did you mean show?); try 'outage trace --help'" trace shwo
check 'a target that is nearly right' refused "there is no target 'etx4' (did you mean ext4?); there are " test -t etx4 --bounds seq-1
check '... with a guest, and options' refused "'uml:etx4' (did you mean uml:ext4?)" explore -t uml:etx4,quota
check 'one word of a list' refused "not 'reordr' (did you mean reorder?)" test -t ext4 --crash last,reordr --bounds seq-1
check 'a word of a few' refused "not 'depht' (did you mean depth?)" explore -t reffs --order depht
check 'a name that another table has' refused "not 'posiks' (did you mean posix?)" test -t ext4 --guarantee posiks --bounds seq-1
check 'what nobody means' refused "not 'sideways'; try" explore -t reffs --order sideways
check 'none' refused 'a command is missing' trace
check 'the program itself' refused "unknown option --verzion (did you mean --version?); try 'outage --help'" --verzion

# ---- a target's options, wherever there is a target ----

: >given
for option in mkfs fstype mount-options recover kernel modules guest-cpu guest-pm guest-file guest-memory deterministic \
	size recorder; do
	for command in test explore; do
		check "$command --$option" eval 'options $command | grep -qx -e "--$option"'
	done
	[ $option = deterministic ] || set -- "$dir/given"
	check "explore --ref-$option" refused "about the --ref before them" explore "--ref-$option" "$@"
	set --
done

# ---- completion ----

for shell in bash zsh fish; do
	check "completion for $shell" eval 'status 0 generate $shell && mv out completion.$shell'
	if command -v "$shell" >/dev/null; then
		check '... can be read' timeout 900 "$shell" -n completion.$shell
	else
		skip "$shell is not there"
	fi
done
check 'not for others' refused 'csh is no shell that is known' generate csh
# complete LINE: what bash offers for the last word
complete_line() {
	timeout 900 bash -c '. ./completion.bash
		compopt() { :; }
		read -ra COMP_WORDS <<<"$1"
		[[ $1 != *" " ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_"${COMP_WORDS[0]}"
		printf "%s\n" "${COMPREPLY[@]}"' bash "$1" 2>err
}
offers() { local line=$1; shift; complete_line "$line" >out && for word in "$@"; do grep -qx -e "$word" out || return 1; done; }
for command in "${commands[@]}"; do
	missing=
	complete_line "outage $command --" >offered
	for option in $(options "$command") --help; do
		grep -qx -e "$option" offered || missing="$missing $option"
		grep -qE -e "(^|[,' {*])$option([=+' }[-]|$)" completion.zsh || missing="$missing $option(zsh)"
		grep -qE -e " -l ${option#--} " completion.fish || missing="$missing $option(fish)"
	done
	check "completion knows all options of $command$missing" test -z "$missing"
done
check 'commands' offers 'outage ' gen test trace doctor
check 'after an option' offers 'outage -v te' test
check 'of lazyfs' offers 'lazyfs --' --config-path --version
check 'subcommands' offers 'outage trace ' show graph
check 'words' offers 'outage explore --order ' walk depth breadth
check 'names that a table has' offers 'outage test -t uml:' uml:ext4 uml:xfs
check 'the last of several' offers 'outage trace show --kind write,fl' write,flush
check 'with =' eval "offers 'outage gen --bounds = seq' seq-1 seq-2"
: >a-file
check 'files' offers 'outage gen --import a-' a-file
check 'options of a reference' offers 'outage explore --ref-' --ref-kernel --ref-guest-memory

# ---- manual pages ----

page() { case $1 in trace\ *) echo outage-trace ;; *) echo "outage-$1" ;; esac; }
for command in "${commands[@]}"; do
	page=$(page "$command")
	check "$page tells options from the table" grep -qx "@options ${command%% *}" "$root/man/$page.1.scd"
	check '... and by hand none' eval '! awk "/^# /{ on = /OPTIONS/ } on" "$root/man/$page.1.scd" | grep -q "^\*-"'
	check '... all of them' eval 'status 0 generate man "$root/man/$page.1.scd" "$root/man/options.scd" &&
		for option in $(options "$command"); do grep -q "^.*\*$option\*" out || { echo "# $option"; exit 1; }; done'
done
printf 'before\n@options gen\n@--limit --skip\n\tSo many.\n\n@end\nafter\n' >page
printf '@--seed\n\tOf all pages.\n\n' >shared
check 'what a page says' eval 'status 0 generate man page shared && grep -qx "\*--skip\* _N_, \*-n\*, \*--limit\* _N_" out && grep -q "So many" out'
check 'goes before what all say' eval 'grep -A 1 "^\*--seed\*" out | grep -q "Of all pages"'
check 'and that before the help' grep -q 'N of them, spread evenly' out
check 'the rest stays' eval '[ "$(head -n 1 out)" = before ] && [ "$(tail -n 1 out)" = after ]'
printf '@options gen\n@--frob\n\tIt is gone.\n@end\n' >page
check 'an option that is gone is noticed' refused 'page: the page tells of --frob, which outage gen does not have' generate man page shared
printf '@options gone\n@end\n' >page
check 'and a command' refused "there is no command 'gone'" generate man page shared
printf '@options gen\n' >page
check 'and a page without an end' refused 'has no @end' generate man page shared
if [ -e "$build/man/outage-gen.1" ]; then
	check 'the build uses this' grep -q 'Print only the number of workloads' "$build/man/outage-gen.1.scd"
	check 'for completion, too' cmp completion.bash "$build/completion/outage"
else
	skip 'the manual pages are not built'
fi
done_testing
