#!/bin/sh
# extern "C" is only in headers that a C++ file reaches through its includes; runner/torch/, the room
# of the C++ files, may have it anywhere.
#
# usage: check_linkage.sh [ROOT]; exit 0 when clean, 1 with one line per violation.
set -eu
cd "${1:-$(dirname "$0")/..}"

find . -type d \( -name .git -o -name build -o -name 'build-*' -o -name .venv \) -prune -o \
	-type f \( -name '*.h' -o -name '*.hpp' -o -name '*.cpp' \) -print | sed 's|^\./||' | LC_ALL=C sort |
	xargs awk '
FNR == 1 && FILENAME ~ /pp$/ { reached[FILENAME] = 1 }
/^#include "/ { split($0, quoted, "\""); includes[FILENAME] = includes[FILENAME] " " quoted[2] }
/^extern "C" \{/ && FILENAME ~ /\.h$/ && FILENAME !~ /^runner\/torch\// { line[FILENAME] = FNR }
END {
	do {
		more = 0
		for (file in reached) {
			n = split(includes[file], list, " ")
			for (i = 1; i <= n; i++)
				if (!(list[i] in reached))
					more = reached[list[i]] = 1
		}
	} while (more)
	for (file in line)
		if (!(file in reached)) {
			print file ":" line[file] ": no C++ file includes this: remove extern \"C\""
			bad = 1
		}
	exit bad
}' || exit 1
