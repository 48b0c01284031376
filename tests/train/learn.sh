#!/usr/bin/env bash
# The default network learns the generated digits: 97 % of the test images in three epochs on a CPU.
#
#   learn.sh ROOFLINE MAKE_DIGITS [OPTION...]
set -euo pipefail

roofline=$(readlink -f "$1")
make_digits=$(readlink -f "$2")
shift 2
export LC_ALL=C
"$roofline" list engines --format csv | grep -Eq '^engines,torch[^,]*,(ok|warn),' ||
	{ echo "skipped: no torch engine" >&2; exit 77; }

dir=$(mktemp -d "${TMPDIR:-/tmp}/roofline-learn.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
cd "$dir"
[ "$("$make_digits" --train 3000 --test 500 digits)" = "digits: wrote 3000 training and 500 test images" ]
"$roofline" train --data digits --epochs 3 --devices cpu --batch-size 32 "$@" --format csv >out 2>err ||
	{ cat err >&2; exit 1; }
cut -d, -f1-7 out
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
	NR > 1 && $at["epoch"] <= 3 && $at["test_accuracy"] >= 0.97 { learned = 1 }
	END { exit !learned }' out || { echo "FAILED: no epoch has 97 %" >&2; exit 1; }
