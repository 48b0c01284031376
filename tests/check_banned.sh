#!/bin/sh
# Functions that are not called here: they overrun their target, or cannot report an error. And
# standard output is written in one place, which masks control characters.
#
# usage: check_banned.sh [ROOT]; exit 0 when clean, 1 with one line per violation.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$here/..}"

find . -type d \( -name .git -o -name build -o -name 'build-*' -o -name .venv \) -prune -o \
	-type f \( -name '*.[ch]' -o -name '*.inc' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print |
	sed 's|^\./||' | LC_ALL=C sort | while IFS= read -r file; do
		awk -f "$here/layout/code.awk" "$file"
	done | awk '
BEGIN {
	instead["sprintf"] = instead["vsprintf"] = "snprintf or rfl_buf_printf"
	instead["strcpy"] = instead["strcat"] = "snprintf or rfl_buf_puts"
	instead["strtok"] = "strcspn or strchr"
	instead["atoi"] = instead["strtol"] = "rfl_num_parse_int"
	instead["gets"] = "fgets or rfl_file_read"
}

{
	match($0, /^[^:]*:[0-9]+:/)
	where = substr($0, 1, RLENGTH - 1)
	code = substr($0, RLENGTH + 1)
	for (name in instead)
		if (code ~ ("(^|[^A-Za-z0-9_])" name "([^A-Za-z0-9_]|$)")) {
			print where ": " name " is banned: use " instead[name]
			bad = 1
		}
	if (code ~ /(^|[^A-Za-z0-9_])f(printf|puts|putc|write)[ (].*cli->out/ && where !~ /^cli\/put\.c:/) {
		print where ": texts of files must not steer the terminal: use rfl_cli_printf or rfl_cli_put"
		bad = 1
	}
}

END { exit bad }
'
