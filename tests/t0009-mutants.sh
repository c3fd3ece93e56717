#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# t0009-mutants.sh - assertions notice what they are for: each entry of tests/mutant/assertions breaks one
# file in one place. The unit test of its room, linked with that file, has to end by an assertion which
# names the invariant of the entry; with the file as it is, the test passes.
# takes 25 s
# shellcheck disable=SC2016,SC2317 # words are expanded by eval, functions called by `check`
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

if [ ! -f "$build/compile_commands.json" ]; then
	echo "1..0 # SKIP $build is no build"
	exit 77
fi
for tool in python3 ninja; do
	if ! command -v "$tool" >/dev/null; then
		echo "1..0 # SKIP $tool is not there"
		exit 77
	fi
done
export CCACHE_DISABLE=1 # the name of this directory differs from run to run

# Makes ENTRY.c of every entry, a command that compiles and links it, and a line of the list.
cat >make.py <<'END'
import json, shlex, subprocess, sys
root, build, table = sys.argv[1:]
commands = {c['output']: c for c in json.load(open(build + '/compile_commands.json'))}

def replaced(lines, old, new, name):
    at = [i for i in range(len(lines)) if [l.strip() for l in lines[i:i + len(old)]] == old]
    if len(at) != 1:
        sys.exit('%s: %r is there %d times, not once' % (name, old, len(at)))
    return lines[:at[0]] + new + [''] * (len(old) - len(new)) + lines[at[0] + len(old):]

def link(test):
    words = subprocess.run(['ninja', '-C', build, '-t', 'commands', 'tests/unit/' + test],
                           stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1]
    return words

def compiled(source, out):
    room, name = source.split('/')
    c = commands['libroom_%s.a.p/src_%s_%s.o' % (room, room, name)]
    words = [w for w in shlex.split(c['command']) if w not in ('ccache', '-Werror', '-O2')]
    for option in ('-MD',):
        words.remove(option)
    for option in ('-MQ', '-MF', '-o', '-c'):
        at = words.index(option)
        del words[at:at + 2]
    return words + ['-O1', '-g0', '-w', '-o', out + '.o', '-c', out + '.c']

entries, hunk = [], None
for line in open(table):
    line = line.rstrip('\n')
    if line.startswith('#') or not line:
        continue
    if line[:2] == '- ':
        if not entries[-1]['hunks'] or entries[-1]['hunks'][-1][1]:
            entries[-1]['hunks'].append(([], []))
        entries[-1]['hunks'][-1][0].append(line[2:])
    elif line[:2] == '+ ':
        entries[-1]['hunks'][-1][1].append(line[2:])
    elif ': ' in line:
        name, words = line.split(': ', 1)
        entries.append({'name': name, 'words': words, 'hunks': []})
    else:
        entries[-1].update(zip(('test', 'file', 'invariant'), line.split()))
links = {test: link(test) for test in {e['test'] for e in entries}}
for e in entries:
    lines = open(root + '/src/' + e['file']).read().split('\n')
    for old, new in e['hunks']:
        lines = replaced(lines, old, new, e['name'])
    out = sys.path[0] + '/' + e['name']
    open(out + '.c', 'w').write('\n'.join(lines))
    words = shlex.split(links[e['test']])
    words[words.index('-o') + 1] = out
    # Before the libraries, so that the linker does not take the file from there.
    words.insert(words.index('-o') + 2, out + '.o')
    open(out + '.sh', 'w').write('cd %s &&\n%s &&\n%s\n' % (
        shlex.quote(build), shlex.join(compiled(e['file'], out)), shlex.join(words)))
    print(e['name'], e['test'], e['file'], e['invariant'], e['words'], sep='\t')
END
check 'every line that is to be replaced is there, once' \
	eval 'python3 make.py "$root" "$(realpath "$build")" "$root/tests/mutant/assertions" >list 2>err'

# stopped ENTRY INVARIANT: an assertion ended it, with the invariant in the comment beside it
stopped() {
	local where line
	{ timeout 900 "./$1" >out 2>err </dev/null; } 2>/dev/null # bash says that it was aborted
	where=$(grep -aoE "[a-z_0-9-]+\.[ch]:[0-9]+: [a-z_0-9]+: Assertion" err | tail -1)
	line=${where#*:}
	line=${line%%:*}
	case ${where%%:*} in
	"$1.c") cp "$1.c" source ;;
	[a-z]*) cp "$root"/src/*/"${where%%:*}" source || return 1 ;;
	*) return 1 ;;
	esac
	# The comment follows the assertion, which may take more than one line.
	tail -n "+$line" source | awk '{ print } /;/ { exit }' >beside
	grep -qE "/\*.*\b$2\b" beside || { cat beside >>err; return 1; }
}

while IFS=$'\t' read -r mutant test file invariant words; do
	check "$mutant ($words) is built" eval 'sh "$mutant.sh" >out 2>err'
	check "and $invariant of $file stops it in $test" stopped "$mutant" "$invariant"
done <list
while read -r test; do
	check "$test passes without" eval 'timeout 900 "$build/tests/unit/$test" >out 2>err'
done < <(cut -f 2 list | sort -u)
done_testing
