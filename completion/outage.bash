# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# outage.bash - completion for bash: commands, options, named sets and files.

# _outage_words LIST: what of the words in LIST begins with $cur.
_outage_words() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

_outage_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

# Named sets, as this very program lists them, and files.
_outage_bounds() {
	local sets

	sets=$("$program" gen --list 2>/dev/null | cut -d ' ' -f 1)
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -W "$sets" -- "$cur"; compgen -f -- "$cur")
}

_outage_gen() {
	case $prev in
	-b | --bounds | --show)
		_outage_bounds
		return
		;;
	-n | --limit | --skip | --shard | --sample | --seed | --name)
		return
		;;
	esac
	if [[ $cur == -* ]]; then
		_outage_words '--bounds --count --skip --limit --shard --sample --seed --name
			--import --list --show --list-operations --json --help'
	elif [[ " ${words[*]} " == *' --import '* ]]; then
		_outage_files
	else
		_outage_words '--bounds --name --import --list --show --list-operations'
	fi
}

# _outage_list WORDS: the last of comma-separated words; those before stay.
_outage_list() {
	local before='' word=$cur

	if [[ $cur == *,* ]]; then
		before=${cur%,*},
		word=${cur##*,}
	fi
	compopt -o nospace 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "$word")
}

_outage_trace() {
	case $prev in
	--kind)
		_outage_list 'write flush discard zero read complete store lineflush fence load begin end persist text posix stack'
		return
		;;
	--op)
		_outage_list 'create mkdir mknod symlink link unlink rmdir rename tmpfile write truncate fallocate
			copy_file_range chmod chown utimens setxattr removexattr fsync fdatasync fsyncdir syncfs msync
			open read release flush'
		return
		;;
	--from | --to | --size | --file | --pid | --limit)
		return
		;;
	-o | --output)
		_outage_files
		return
		;;
	esac
	if ((${#words[@]} == at + 1)); then
		_outage_words 'show info graph import export --help'
		return
	fi
	if [[ $cur != -* ]]; then
		_outage_files
		return
	fi
	case ${words[at]} in
	show)
		_outage_words '--kind --from --to --data --file --op --pid --large --runs --suggest --limit
			--json --help'
		;;
	graph) _outage_words '--output --file --op --pid --large --from --to --limit --json --help' ;;
	info) _outage_words '--json --help' ;;
	import) _outage_words '--output --size --json --help' ;;
	export) _outage_words '--output --json --help' ;;
	esac
}

_outage_test() {
	case $prev in
	-t | --target)
		_outage_words 'ext4 xfs btrfs ext3 ext2 fuse: uml:ext4 uml:xfs uml:btrfs uml:ext3 uml:ext2 uml:jfs
			uml:reiserfs uml:f2fs uml:nilfs2 vm:ext4 vm:xfs vm:btrfs vm:ext3 vm:ext2 vm:jfs vm:reiserfs
			vm:f2fs vm:nilfs2 vm:jffs2 vm:ubifs vm:bcachefs vm:ext4-dax vm:xfs-dax vm:nova vm:pm help'
		return
		;;
	-b | --bounds)
		_outage_bounds
		return
		;;
	--crash)
		_outage_words 'persist last prefix reorder torn recovery'
		return
		;;
	--guarantee)
		_outage_words 'unmount bare posix linux sync atomic'
		return
		;;
	--recorder)
		_outage_words 'bpf fuse'
		return
		;;
	--keep)
		_outage_words 'findings all none'
		return
		;;
	--prune)
		_outage_words 'reads none'
		return
		;;
	--suppress | --resume | -o | --output | --kernel | --modules | --guest-file)
		_outage_files
		return
		;;
	--model)
		_outage_words 'block pm pm-eadr'
		return
		;;
	--granularity)
		_outage_words '8 64'
		return
		;;
	--lose-flush | --hang-after | --max-subset | --budget | --mkfs | --fstype | --mount-options | --recover | --dump | --check | --size | --guest-memory | --skip | --limit | --sample | --seed | \
		--time | -j | --jobs)
		return
		;;
	esac
	if [[ $cur == -* ]]; then
		_outage_words '--target --bounds --crash --max-subset --budget --guarantee --recorder --mkfs --fstype --mount-options
			--recover --kernel --modules --guest-cpu --guest-pm --guest-file --media --media-max --guest-memory --deterministic --size --fsck --dump --check --paranoid --skip --limit --sample --seed --time --tune --jobs
			--torn --prune --lose-flush --model --eadr --granularity --split --hang-after --output --keep --suppress --resume
			--trust --json --help'
	else
		_outage_files
	fi
}

_outage_explore() {
	case $prev in
	-t | --target | -r | --ref)
		_outage_words 'reffs ext4 xfs btrfs ext3 ext2 fuse: uml:ext4 uml:xfs uml:btrfs uml:ext3 uml:ext2 uml:jfs
			uml:reiserfs uml:f2fs uml:nilfs2'
		return
		;;
	--order)
		_outage_words 'depth breadth walk'
		return
		;;
	--strategy)
		_outage_words 'sync remount'
		return
		;;
	--dist)
		_outage_words 'uniform rank inverse decay inverse-decay'
		return
		;;
	--crash-modes)
		_outage_words 'persist last prefix reorder'
		return
		;;
	--guarantee)
		_outage_words 'unmount bare posix linux sync atomic'
		return
		;;
	--recorder)
		_outage_words 'bpf fuse'
		return
		;;
	--inputs | --coverage | -o | --output | --resume | --replay | --kernel | --modules | --ref-kernel | --ref-modules)
		_outage_files
		return
		;;
	esac
	[[ $cur != -* ]] ||
		_outage_words '--target --ref --ref-mkfs --ref-recover --ref-size --ref-kernel --ref-modules --ref-guest-memory --order --depth --alphabet --round
			--inputs --dist --strategy
			--compare-every --crash --crash-modes --guarantee --memory --limit --time --seed
			--hang --findings --jobs --share --vary --swarm --coverage --mkfs --recover --size
			--recorder --kernel --modules --guest-memory --output --resume --replay --trust --overlap --json --help'
}

# _outage_finding OPTIONS: a command that takes a directory.
_outage_finding() {
	case $prev in
	--time | --runs | --guest-memory)
		return
		;;
	--kernel | --modules)
		_outage_files
		return
		;;
	esac
	if [[ $cur == -* ]]; then
		_outage_words "$1"
	else
		_outage_files
	fi
}

_outage_reffs() {
	case $prev in
	--atime)
		_outage_words 'none relative strict'
		return
		;;
	--size | --inodes | --mode | --key | save | restore | drop)
		return
		;;
	esac
	if [[ $cur == -* ]]; then
		_outage_words '--daemon --allow-other --size --inodes --mode --atime --direct --load
			--key --keep --help'
	elif ((${#words[@]} == at + 1)); then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -W 'save restore drop pickle load hash' -- "$cur"
			compgen -d -- "$cur")
	else
		_outage_files
	fi
}

_outage_mount() {
	case $prev in
	-p | --profile)
		_outage_words 'ext4-ordered ext4-writeback xfs btrfs minimal lazyfs'
		return
		;;
	-f | --fault | --cache-size | --page-size | --block-size | -o)
		return
		;;
	-c | --config | --log | --trace | --socket)
		_outage_files
		return
		;;
	esac
	if [[ $cur == -* ]]; then
		_outage_words '--config --profile --fault --daemon --log --trace --trace-data
			--trace-reads --cache-size --page-size --block-size --evict --allow-other
			--no-real-sync --socket --help'
	else
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
	fi
}

_outage_app() {
	case $prev in
	-p | --profile)
		_outage_words 'ext4-ordered ext4-writeback xfs btrfs minimal lazyfs'
		return
		;;
	--unit)
		_outage_words 'page sector'
		return
		;;
	--run | --check | --restart | --query | --stop | --ack-file | -o | --output)
		_outage_files
		return
		;;
	--max-subset | --budget | --time | --limit | -j | --jobs | --seed | --timeout)
		return
		;;
	esac
	if [[ $cur == -* ]]; then
		_outage_words '--run --check --restart --query --stop --kill --ack-file --stacks --profile --unit
			--max-subset --budget --time --limit --jobs --seed --timeout --output --json --help'
	else
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
	fi
}

_outage_pm() {
	case $prev in
	--promise)
		_outage_words 'sync,atomic sync atomic none'
		return
		;;
	--crash)
		_outage_words 'run recovery'
		return
		;;
	--media)
		_outage_words 'poison stale poison,stale'
		return
		;;
	--prune)
		_outage_words 'none reads'
		return
		;;
	--tracer)
		_outage_words 'qemu preload'
		return
		;;
	--model)
		_outage_words 'pm pm-eadr'
		return
		;;
	--granularity)
		_outage_words '64 8'
		return
		;;
	--size | --max-subset | --budget | --enough | --time | -j | --jobs | --timeout | --trace-limit | --recoveries | --media-max)
		return
		;;
	esac
	if [[ $cur == -* ]]; then
		_outage_words '--file --size --check --dump --recover --promise --crash --recoveries --media --media-max
			--prune --granularity --split --model --eadr --max-subset
			--budget --enough --time --jobs --timeout --trace-limit --tracer --stacks --qemu --output --json --help'
	else
		_outage_files
	fi
}

# Where something of ours is mounted.
_outage_mounts() {
	compopt -o filenames 2>/dev/null
	_outage_words "$(awk '$3 == "fuse.outage" || $3 == "fuse.lazyfs" { print $2 }' /proc/mounts)"
}

_outage_umount() {
	case $prev in
	--timeout) ;;
	*)
		if [[ $cur == -* ]]; then
			_outage_words '--lazy --timeout --help'
		else
			_outage_mounts
		fi
		;;
	esac
}

_outage_ctl() {
	local i given=0

	case $prev in
	--timeout)
		return
		;;
	--socket)
		_outage_files
		return
		;;
	esac
	if [[ $cur == -* ]]; then
		_outage_words '--json --socket --timeout --help'
		return
	fi
	for ((i = at; i < ${#words[@]} - 1; i++)); do
		[[ ${words[i]} == -* ]] || ((given++))
	done
	case $given in
	0) _outage_mounts ;;
	1) _outage_words "$("$program" ctl help 2>/dev/null | awk '/^[a-z]/ { print $1 }')" ;;
	esac
}

_outage() {
	local program=$1 cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local words=("${COMP_WORDS[@]:0:COMP_CWORD + 1}")
	local at=1

	COMPREPLY=()
	# bash cuts --option=value at the '='.
	if [[ $cur == '=' ]]; then
		cur=
	elif [[ $prev == '=' ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	while ((at < COMP_CWORD)) && [[ ${words[at]} == -* ]]; do
		((at++))
	done
	if ((at == COMP_CWORD)); then
		if [[ $cur == -* ]]; then
			_outage_words '-v -q --help --version'
		else
			_outage_words 'gen test explore report replay shrink export trace reffs mount ctl umount app ack pm mark doctor'
		fi
		return
	fi
	((at++)) # the word after the command
	case ${words[at - 1]} in
	gen) _outage_gen ;;
	test) _outage_test ;;
	explore) _outage_explore ;;
	report) _outage_finding '--text --json --suppressions --html --help' ;;
	replay) _outage_finding '--rerun --kernel --modules --guest-memory --time --trust --json --help' ;;
	shrink) _outage_finding '--output --force --runs --kernel --modules --guest-memory --time --trust --json --help' ;;
	export) _outage_finding '--output --trust --help' ;;
	trace) _outage_trace ;;
	doctor) _outage_words '--fix --json --help' ;;
	reffs) _outage_reffs ;;
	mount) _outage_mount ;;
	umount) _outage_umount ;;
	ctl) _outage_ctl ;;
	app) _outage_app ;;
	ack) _outage_words '--help' ;;
	pm) _outage_pm ;;
	mark) _outage_words 'begin end text --help' ;;
	esac
}

# The same program with LazyFS's command line.
_lazyfs() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	COMPREPLY=()
	if [[ $prev == --config-path ]]; then
		_outage_files
	elif [[ $cur == -* ]]; then
		_outage_words '--config-path -o -f -d -s --help --version'
	elif [[ $prev == -o ]]; then
		compopt -o nospace 2>/dev/null
		_outage_words 'allow_other modules=subdir subdir='
	else
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
	fi
}

complete -F _outage outage
complete -F _lazyfs lazyfs
