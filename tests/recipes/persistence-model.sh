# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154,SC2317 # for eval; t0020-recipes.sh has the variables, and calls it
# The model `plp` judges a run, and what a run found keeps its model.

used() {
	printf 'setup creat foo\nfsync .\nwrite foo 0 4096\nfsync foo\n' >plp.workload
	check 'the model is known' eval 'status 2 test --model none && grep -q "model is block, plp, pm or pm-eadr, not .none" err'
	check 'it is not for persistent memory' eval 'status 2 test -t vm:ext4-dax --model plp plp.workload && grep -q "is for a disk" err'
	if [ "$(id -u)" = 0 ] && timeout 120 "$OUTAGE" doctor >out 2>err; then
		without_barriers() { status "$1" test -t ext4,barrier=0 --crash reorder --model "$2" -j 1 -o "model-$2" plp.workload; }
		check 'ext4 without flushes loses what a cache held' without_barriers 1 block
		check 'and nothing with power-loss protection' without_barriers 0 plp
		check 'the run says by which model' grep -qx 'model plp' model-plp/run
		finding=$(find model-block/findings -name case | sort | head -n 1)
		check 'and so does a finding' grep -qx 'model block' "$finding"
		check 'which is replayed by it' status 1 replay "${finding%/case}"
		sed -i 's/^model block/model nothing/' "$finding"
		check 'and refused if there is none such' eval 'status 2 replay --trust "${finding%/case}" && grep -q "none of block" err'
	else
		skip 'file systems cannot be mounted here'
	fi
}

left_out() {
	check 'a model without its rule does not compile' \
		noticed "1:$(grep -n 'apply = plp_apply' tree/src/core/model_plp.c | cut -d : -f 1)" 'plp_apply.* defined but not used|unused function' \
		../src/core/model_plp.c^
}
