#!/bin/sh
# quickstart and runtests: help and mistyped options do nothing else. Both rounds of runtests run, and
# the exit code is right, whatever the first one does.
#
#   scripts.sh SOURCE
set -u
cd "$1" || exit 1
for script in quickstart runtests; do
	./$script --help >/dev/null || { echo "$script --help: exit $?" >&2; exit 1; }
	out=$(./$script --hlep 2>&1)
	code=$?
	[ $code -eq 2 ] && [ "$out" = "$script: unknown option '--hlep'; see ./$script --help" ] ||
		{ echo "$script --hlep: exit $code: $out" >&2; exit 1; }
done

scratch=$(mktemp -d "${TMPDIR:-/tmp}/roofline-scripts.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$scratch/cmake" "$scratch/tests/ci" "$scratch/bin" "$scratch/build/dev" "$scratch/build/asan"
cp runtests "$scratch" && cp tests/ci/skipped.py "$scratch/tests/ci" && cd "$scratch" || exit 1
echo 'rfl_install_packages() { :; }; rfl_print_missing() { :; }; RFL_PACKAGES=() RFL_TEST_PACKAGES=()' >cmake/packages.sh
echo '#!/bin/sh' >bin/cmake
cat >bin/ctest <<'END'
#!/bin/sh
# ctest --preset NAME -j3 --output-junit FILE ...; the round's FATE is ok, failed or killed
echo "$*" | sed 's/--output-junit [^ ]*//' >>rounds
case $2 in dev) fate=$DEV ;; *) fate=$ASAN ;; esac
[ "$fate" = killed ] ||
	echo "<a><testcase name='$2/t'><skipped/><system-out>skipped: no GPU</system-out></testcase></a>" >"$5"
[ "$fate" = ok ]
END
chmod +x bin/cmake bin/ctest
# rounds DEV ASAN EXIT MESSAGE
rounds() {
	rm -f rounds build/*/tests.xml
	DEV=$1 ASAN=$2 PATH=$scratch/bin:$PATH ./runtests -L cli >out 2>&1
	code=$?
	printf -- '--preset dev -j3  -L cli\n--preset asan -j3 \n' | cmp -s - rounds && [ $code -eq "$3" ] &&
		[ "$(tail -n 1 out)" = "$4" ] || { echo "rounds $*: exit $code" && cat rounds out; exit 1; } >&2
}
rounds ok ok 0 '  asan/t: no GPU'
rounds failed ok 1 'runtests: tests failed with preset dev; see above'
rounds killed ok 1 'runtests: tests failed with preset dev; see above'
rounds killed killed 1 'runtests: tests failed with preset dev asan; see above'
rounds ok failed 1 'runtests: tests failed with preset asan; see above'
