#!/bin/sh
# Proves that check_layers.sh, check_banned.sh, check_linkage.sh, check_links.sh and
# check_language.sh fail on what they are for, name the line, and let pass what is allowed.
#
# usage: prove_checks.sh; exit 0 when every case behaves.
set -u
tests=$(cd "$(dirname "$0")/.." && pwd)
tree=$(mktemp -d "${TMPDIR:-/tmp}/rfl-layout-XXXXXX") || exit 2
trap 'rm -rf "$tree"' EXIT
failed=0
cases=0

# expect CHECK FILE LINE CODE: the check must refuse CODE, planted as the third line of FILE.
# LINE is what the message must contain; an empty LINE stands for "must pass".
expect()
{
	check=$1 file=$2 want=$3 code=$4
	cases=$((cases + 1))
	rm -rf "${tree:?}"/*
	mkdir -p "$tree/base" "$tree/$(dirname "$file")"
	printf '/* planted */\n\n%s\n' "$code" > "$tree/$file"
	out=$("$tests/$check" "$tree" 2>&1)
	rc=$?
	if [ -z "$want" ]; then
		if [ $rc -ne 0 ]; then
			echo "FAIL: $check refuses what is allowed: $code"
			echo "$out"
			failed=1
		fi
	elif [ $rc -ne 1 ]; then
		echo "FAIL: $check ends with $rc on: $file: $code"
		failed=1
	elif ! printf '%s\n' "$out" | grep -qF "$file:3: $want"; then
		echo "FAIL: $check does not say '$file:3: $want' but:"
		echo "$out"
		failed=1
	fi
}

layers=check_layers.sh
expect $layers base/a.c '"machine/b.h": base/ lies below machine/' '#include "machine/b.h"'
expect $layers peaks/a.c '"profile/b.h": peaks/ lies beside profile/' '#include "profile/b.h"'
expect $layers complexity/a.h '"peaks/b.h"' '#  include "peaks/b.h" // why not'
expect $layers plot/deep/a.c '"cli/cmd.h"' '#include "cli/cmd.h"'
expect $layers runner/a.cpp '"b.h": write includes from the root' '#include "b.h"'
expect $layers runner/a.c '"tests/b.h": tests/ is no room' '#include "tests/b.h"'
expect $layers runner/a.c '<base/b.h>: our own headers' '#include <base/b.h>'
expect $layers runner/a.cu 'names stderr' 'fprintf(stderr, "x");'
expect $layers plot/a.c 'names stdout' 'FILE *f = stdout;'
expect $layers plot/a.c 'calls exit()' 'exit (1);'
expect $layers machine/a.c 'calls getenv()' 'const char *e = getenv("HOME");'
expect $layers machine/a.c 'calls printf()' 'printf("x");'
expect $layers machine/a.c 'calls printf()' 'x = "/*"; printf("x"); /* */'
expect $layers plot/a.c '' '#include "runner/b.h"'
expect $layers plot/a.c '' '#include "plot/b.h"'
expect $layers plot/a.c '' '#include "rfl_config.h"'
expect $layers plot/a.c '' '#include <sys/stat.h>'
expect $layers plot/a.c '' '/* exit( stdout getenv( */ // stderr'
expect $layers plot/a.c '' 'f("say \"stdout\" to exit(1)"); _exit(127); r->exit_code = 1;'
expect $layers plot/a.c '' 'snprintf(a, n, "x"); on_exit_ = 1; my_getenv(x);'
expect $layers plot/a.c '' "char c = '\"'; // stdout"
expect $layers cli/a.c '' 'fprintf(stderr, "x"); exit(1); getenv("HOME");'
expect $layers tests/a.c '' 'printf("x"); exit(1);'
expect $layers tools/a.c '' 'printf("x"); exit(1);'

banned=check_banned.sh
for name in sprintf vsprintf strcpy strcat strtok atoi strtol gets; do
	expect $banned cli/a.c "$name is banned" "x = $name(a, b);"
	expect $banned tests/unit/a.c "$name is banned" "fn = &$name;"
	expect $banned tools/a.cpp "$name is banned" "std::$name (a);"
	expect $banned plot/a.c '' "rfl_$name(a); ${name}_x(b); /* $name(c) */ f(\"$name(d)\");"
done
expect $banned plot/a.c '' 'snprintf(a, n, "x"); strtoll(a, b, 10); fgets(a, n, f);'
expect $banned build/a.c '' 'strcpy(a, b);'
expect $banned cli/a.c 'texts of files' 'fprintf(cli->out, "x");'
expect $banned cli/a.c 'texts of files' 'fwrite(a, 1, n, job->cli->out);'
expect $banned cli/put.c '' 'fwrite(a, 1, n, cli->out);'

linkage=check_linkage.sh
expect $linkage base/a.h 'no C++ file includes this' 'extern "C" {'
expect $linkage runner/torch/a.h '' 'extern "C" {'

links=check_links.sh
expect $links docs/a.md 'no file b.md' 'see [b](b.md)'
expect $links docs/a.md 'no heading #b' 'see [b](#b)'
expect $links docs/a.md '' '# A `b`, c
see [a](a.md#a-b-c) and [d](https://example.org/d)'

language=check_language.sh
expect $language base/a.c 'in the folder logs   <- directory' '/* in the folder logs */'
expect $language base/a.h '@param x  y, and the row is told   <- reported' '/** @param x  y, and the row is told */'
expect $language cli/a.c '%s: the knee of it   <- ridge point' 'f("%s: the knee of it");'
expect $language docs/a.md 'the processor of Intel   <- CPU' 'the processor of Intel'
expect $language base/a.c '' 'char folder[9]; /* a directory */ x = at(r, "processor"); golden(knee, "knee");'
expect $language base/a.c '' '/* data/folder.c, folder/<run_id>.csv */'

# often N PHRASE: what the check prints on a page of 10,000 words that has a phrase N times
often()
{
	cases=$((cases + 1))
	rm -rf "${tree:?}"/*
	awk -v n="$1" -v phrase="$2" 'BEGIN {
		for (i = 0; i < 10000; i++) print i < n ? "and " phrase " rows" : "word"
	}' > "$tree/a.md"
	"$tests/$language" "$tree"
}
often 1 'that of' > /dev/null || { echo "FAIL: $language has no use for 'that of'"; failed=1; }
often 9 'that of' | grep -q "pages: 'that of' occurs 9 times" || {
	echo "FAIL: $language does not count"
	failed=1
}

# Without any room there is nothing to check, which is no pass.
rm -rf "${tree:?}"/*
"$tests/$layers" "$tree" > /dev/null 2>&1
if [ $? -ne 2 ]; then
	echo "FAIL: $layers passes an empty tree"
	failed=1
fi

[ $failed -eq 0 ] && echo "$cases planted cases behave"
exit $failed
