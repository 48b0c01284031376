#!/bin/sh
# docs/reference/commands.md must be what the option rows say.
#   check_docs.sh [--update] ROOFLINE docs/reference/commands.md
set -u
if [ "$1" = --update ]; then
	"$2" help --markdown >"$3.new" && mv "$3.new" "$3"
	exit
fi
"$1" help --markdown | diff -u "$2" - && exit 0
echo "docs/reference/commands.md is not up to date: cmake --build <build> --target cli-update" >&2
exit 1
