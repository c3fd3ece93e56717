# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154,SC2317 # for eval; t0020-recipes.sh has the variables, and calls it
# mail.txt is exported with a finding, such as that of the recipe for an operation.

used() {
	finding=$(find sick/findings -name case 2>/dev/null | sort | head -n 1)
	if [ -n "$finding" ]; then
		check 'the mail is exported' status 0 export "${finding%/case}" -o with-mail
		check 'with a subject' grep -q '^Subject: ext4,barrier=0: ' with-mail/mail.txt
		check 'and the workload' grep -q 'touch foo' with-mail/mail.txt
		check 'beside the others' test -s with-mail/workload.sh -a -s with-mail/workload.c -a -x with-mail/reproduce.sh
	else
		skip 'there is no finding: file systems cannot be mounted here'
	fi
}

left_out() {
	check 'an exporter that is not listed does not compile' noticed 3 'no previous prototype' ../src/report/mail.c^
}
