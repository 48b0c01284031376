#!/bin/sh
# Includes point down the tower or stay at home, and only cli/ prints, exits or reads the
# environment.
#
#   base < machine < complexity | peaks | profile < data | ledger < runner < roofline < plot < report < cli
#
# usage: check_layers.sh [ROOT]; exit 0 when clean, 1 with one line per violation.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$here/..}"

rooms="base machine complexity peaks profile data ledger runner roofline plot report cli"
dirs=""
for room in $rooms; do
	if [ -d "$room" ]; then dirs="$dirs $room"; fi
done
if [ -z "$dirs" ]; then
	echo "check_layers.sh: no room under $PWD" >&2
	exit 2
fi

# shellcheck disable=SC2086 # the list of rooms is meant to be split
find $dirs -type f \( -name '*.[ch]' -o -name '*.inc' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' \) |
	LC_ALL=C sort | while IFS= read -r file; do
		awk -f "$here/layout/code.awk" "$file"
	done | awk '
BEGIN {
	split("base 0 machine 1 complexity 2 peaks 2 profile 2 data 3 ledger 3 runner 4 roofline 5 plot 6 report 7 cli 8", r, " ")
	for (i = 1; i in r; i += 2) rank[r[i]] = r[i + 1]
}

function refuse(why) { print where ": " why; bad = 1 }

{
	match($0, /^[^:]*:[0-9]+:/)
	where = substr($0, 1, RLENGTH - 1)
	code = substr($0, RLENGTH + 1)
	home = where
	sub(/\/.*/, "", home)
}

code ~ /^[ \t]*#[ \t]*include[ \t]*["<]/ {
	file = code
	sub(/^[ \t]*#[ \t]*include[ \t]*/, "", file)
	quoted = substr(file, 1, 1) == "\""
	file = substr(file, 2)
	sub(/[">].*/, "", file)
	room = file
	sub(/\/.*/, "", room)
	if (!quoted) {
		if (file ~ /\// && room in rank)
			refuse("<" file ">: our own headers are included with quotes")
	} else if (file == "rfl_config.h") {
		; # written by the build
	} else if (file !~ /\//) {
		refuse("\"" file "\": write includes from the root, as \"" home "/" file "\"")
	} else if (!(room in rank)) {
		refuse("\"" file "\": " room "/ is no room")
	} else if (room != home && rank[room] >= rank[home]) {
		refuse("\"" file "\": " home "/ lies " \
		       (rank[room] == rank[home] ? "beside" : "below") " " room \
		       "/ and must not know of it")
	}
	next
}

home != "cli" {
	n = split("stdout stderr", names, " ")
	for (i = 1; i <= n; i++)
		if (code ~ ("(^|[^A-Za-z0-9_])" names[i] "([^A-Za-z0-9_]|$)"))
			refuse("names " names[i] ": only cli/ may")
	n = split("exit quick_exit getenv secure_getenv printf vprintf puts putchar perror", names, " ")
	for (i = 1; i <= n; i++)
		if (code ~ ("(^|[^A-Za-z0-9_])" names[i] "[ \t]*\\("))
			refuse("calls " names[i] "(): only cli/ may")
}

END { exit bad }
'
