#!/bin/sh
# Runs the commands of docs/tutorials.md in an empty folder, and checks those in its tables.
#
#   tutorials.sh ROOFLINE MAKE_DIGITS PAGE
#
# The fake engine runs the networks, if it was built. Commands of the full size are not executed: those
# of sweeps and studies print what they would do, of the others the options must exist.
set -u

roofline=$1
page=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
examples=$(dirname "$page")/../examples
plugins=$(cd "$(dirname "$roofline")/../tests/engines" && pwd)
[ -f "$plugins/engine_fake-1.0-test.so" ] || { echo "no fake engine" >&2; exit 77; }
PATH=$(cd "$(dirname "$roofline")" && pwd):$(cd "$(dirname "$2")" && pwd):$PATH
export PATH ROOFLINE_PLUGIN_PATH="$plugins"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/roofline-tutorials.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
cp -r "$examples" "$scratch/examples"
cd "$scratch" || exit 1
peaks=$scratch/examples/peaks.json
printf '{"here": {"peak_gflops": {"fp32": 100}, "peak_gbps": 20}}\n' >"$peaks"
export peaks

# The blocks of commands. The engine is that of a matrix, too. Ceilings are not measured.
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$page" |
	sed -e '/^roofline peaks measure/s/.*/cp "$peaks" peaks.json/' \
		-e 's/^roofline \(run\|train\|bench lm\|bench attention\) /&--engine fake /' \
		-e 's/"synthetic": true/&, "engine": "fake"/' >commands.sh
[ "$(grep -c '^roofline ' commands.sh)" -ge 24 ] || { echo "$page: too few commands" >&2; exit 1; }
sh -ex commands.sh >out 2>&1 || { tail -n 20 out >&2; exit 1; }
for file in report.html project.md project.html lm.html attention.pdf training.html; do
	[ -s $file ] || { echo "$file: not written" >&2; exit 1; }
done

# The commands in the tables and in the text.
awk '/^```/ { on = !on } !on' "$page" | grep -o '`roofline [^`]*`' | tr -d '\140' | sort -u >others
failed=0
while read -r command; do
	case $command in
	*"roofline bench lm "* | *"roofline bench attention "*) try="$command --engine fake --dry-run" ;;
	*"roofline study "*) try="$command --dry-run" ;;
	*"roofline complexity --models"* | *"roofline plot "*" --metrics "* | "roofline bench accumulate")
		try=$command ;;
	*) # a name, or one that needs more options
		words=$(echo "$command" | sed 's/ --.*//; s/ [A-Z].*//')
		$words --help >help 2>&1 || { echo "$command: no such command" >&2; failed=1; }
		for option in $(echo "$command" | grep -o -e '--[a-z-]*'); do
			grep -q -e "$option" help || { echo "$command: no $option" >&2; failed=1; }
		done
		continue
		;;
	esac
	$try >out 2>&1 </dev/null || { echo "$command: exit $?" >&2; tail -n 3 out >&2; failed=1; }
done <others
exit $failed
