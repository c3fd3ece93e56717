#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# outage app: every crash of an application's run. Programs that are wrong are found, with what they
# did wrong; their twins that are right are not. What is found is kept, shown again, reported and exported.
# takes 20 s
# shellcheck disable=SC2016,SC2317 # commands for other shells; functions are called through check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/app-lib.sh
. "$root/tests/app-lib.sh"

# ---- replacing a file ----

compile replace
check "the example compiles" test -x replace
replace() {
	fresh
	app data "${@:2}" --run "$dir/replace $1" --check "$dir/replace check"
}

# forgets HOW PROFILE TEXT
forgets() {
	replace "$1" -p "$2"
	check "$1, $2: is found" test $status = 1
	check "$1, $2: and named: $3" said_like "$3"
	check "$1, $2: as one cause" test "$(grep -c ^found out)" = 1
}
forgets in-place ext4-ordered "a crash after truncate N of settings is one too many, with nothing lost: all is well only after write N to settings"
forgets no-sync minimal "write N to settings.tmp was not ordered before the rename N of settings.tmp to settings: an fsync of settings.tmp is missing"
forgets sync-after xfs "write N to settings.tmp was not ordered before the rename N of settings.tmp to settings: an fsync of settings.tmp is missing"
forgets unlink-first ext4-ordered "a crash after unlink N of settings is one too many"
forgets dir-only xfs "write N to settings.tmp was not ordered before the rename N of"
forgets no-dir ext4-ordered "rename N of settings.tmp to settings was not durable when 'replaced' was acknowledged: an fsync of the directory . is missing"
for profile in minimal ext4-ordered ext4-writeback xfs btrfs; do
	replace right -p $profile
	check "right, $profile: nothing is found" test $status = 0
	check "right, $profile: and states were checked" grep -q ' [1-9][0-9]* checked' out
done
replace no-sync -p ext4-ordered
check "no-sync, ext4-ordered: a rename brings its data along" test $status = 0
fresh
touch -d @1000 data data/settings
sum=$(tar -c data | cksum)
app data -p minimal --run "$dir/replace no-dir" --check "$dir/replace check"
check "the directory itself is never changed" test "$(tar -c data | cksum)" = "$sum"

# ---- what is kept ----

finding=run/findings/0
check "a finding is kept" test -s $finding/case -a -s $finding/trace -a -s $finding/said
timeout 900 "$OUTAGE" replay $finding >out 2>err
check "replay: it shows again" test $? = 1
check "replay: and says what" grep -q "shows again: acknowledged data is gone" out
timeout 900 "$OUTAGE" replay $finding --json >out 2>err
check "replay --json" test "$(json_value 'd["shown"] and d["harm"]')" = rolled-back
check "the missing call was tried" grep -q '^verified yes' $finding/case
sed -i "s,replace check,replace check || :," run/run
timeout 900 "$OUTAGE" replay $finding --trust >out 2>err
check "replay: with a check that accepts it, it does not show" test $? = 0
sed -i "s,replace check || :,replace check," run/run
chmod o+w run/run
timeout 900 "$OUTAGE" replay $finding >out 2>err
check "replay: commands that others could have written are not run" test $? = 2
check "replay: which is said" grep -q -- --trust err
chmod o-w run/run
timeout 900 "$OUTAGE" report run >out 2>err
check "report: the lost operation is marked" grep -q 'lost  *rename [0-9]* of settings.tmp to settings' out
check "report: and where the power fails" grep -q 'the power fails here' out
timeout 900 "$OUTAGE" report run --json >out 2>err
check 'report --json: the version that made it' test "outage $(json_value 'd["version"]')" = "$("$OUTAGE" --version)"
check "report --json: one finding" test "$(json_value 'len(d["findings"])')" = 1
check "report --json: the sequence has the lost one" \
	test "$(json_value '[e["op"] for e in d["findings"][0]["sequence"] if e["fate"] == "lost"]')" = "['rename']"
timeout 900 "$OUTAGE" report run --html page.html >out 2>err
check "report --html: a page with the lost one marked" grep -q 'class="lost"' page.html
check "report --html: also in the picture" grep -q '<g class="dead">' page.html
check "report --html: with the crash" grep -q '>the power fails</text>' page.html
check "report --html: the check, the directory, what to do, what was seen" \
	test "$(grep -cE "<p>check $dir/replace check|<p>directory $dir/data|>mend it with: an fsync|<p>seen: the check exited" page.html)" = 4
check "report --html: and nothing empty" test -z "$(grep -F '<pre></pre>' page.html)"
timeout 900 "$OUTAGE" export $finding -o exported >out 2>err
check "export: a script" test -x exported/reproduce.sh
sh exported/reproduce.sh rebuilt check >out 2>err
check "export: it builds a directory on which the check fails" test $? = 1
check "export: the old settings are there" test "$(cat rebuilt/settings)" = old
replace no-sync -p minimal
timeout 900 "$OUTAGE" export $finding -o lazy >out 2>err
check "export: a fault for LazyFS" grep -q 'op = "rename"' lazy/lazyfs.toml
mkdir -p root mnt
cp data/settings root/
timeout 900 "$OUTAGE" mount --daemon --config lazy/lazyfs.toml root mnt >out 2>err
(cd mnt && timeout 900 "$dir/replace" no-sync) >>out 2>&1
timeout 900 "$OUTAGE" umount mnt >>out 2>&1
check "export: that fault leads there" test -e root/settings -a ! -s root/settings
umount -l mnt 2>/dev/null

# ---- replay ----

fresh
app data -p minimal --run "$dir/replace no-dir" --check "$dir/replace check"
timeout 900 "$OUTAGE" replay run >out 2>err
check "replay: the only finding of a run is taken" test $? = 1
check "replay: which is said" grep -q '^run/findings/0 shows again' out
mv data away
timeout 900 "$OUTAGE" replay run/findings/0 >out 2>err
check "replay: the directory need not be there any more" test $? = 1
mv away data
cp run/run app.kept
sed -i "s,replace check,replace check || { echo outage: corruption; exit 1; }," run/run
timeout 900 "$OUTAGE" replay --trust run/findings/0 >out 2>err
check "replay: another failure is not this one" test $? = 0
check "replay: it is told" said "another failure shows, corruption"
sed "s,$dir/replace check,exit 1," app.kept >run/run
timeout 900 "$OUTAGE" replay --trust run/findings/0 >out 2>err
check "replay: a check that fails without a crash shows nothing" test $? = 2
check "replay: which is said" grep -q 'without any crash' err

# ---- as an ordinary user ----

if "${as_user[@]}" unshare --user true 2>/dev/null; then
	install -d -o 65534 -g 65534 user user/data
	(cd user && echo old >data/settings && chown 65534:65534 data/settings)
	for how in no-dir right; do
		(cd user && rm -rf run && "${as_user[@]}" timeout 900 "$OUTAGE" \
			app -o run -p minimal --run "$dir/replace $how" --check "$dir/replace check" -- data) >out 2>err
		check "as an ordinary user: $how" test $? = "$([ $how = right ] && echo 0 || echo 1)"
	done
else
	skip "no user namespaces for ordinary users"
fi

done_testing
