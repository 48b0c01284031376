#!/usr/bin/env bash
# The C library in a scratch prefix: its symbols, its headers in C and C++, its manual page, and the programs of
# examples/library/ with the shared library and with the archive, under valgrind, compared with the program.
#
#   check.sh SOURCE BUILD
set -euo pipefail
source=$1 build=$2
for tool in pkg-config cc c++ valgrind nm groff lexgrog; do
  command -v $tool >/dev/null || { echo "no $tool" >&2; exit 77; }
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
fail() { echo "check.sh: $*" >&2; exit 1; }

cmake --install "$build" --prefix prefix --component dev >install.log
PKG_CONFIG_PATH=$(dirname "$(find "$PWD/prefix" -name rfl.pc)")
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
PATH=$build/bin:$PATH
export PKG_CONFIG_PATH LD_LIBRARY_PATH PATH LC_ALL=C
[ "roofline $(pkg-config --modversion rfl)" = "$(roofline --version)" ] || fail "the version of rfl.pc"
read -ra flags < <(pkg-config --cflags --libs rfl)
read -ra archive < <(pkg-config --static --cflags --libs rfl)
archive=(-Wl,--as-needed -l:librfl.a "${archive[@]}")
c=(cc -std=c17 -pedantic -Wall -Wextra -Wconversion -Wshadow -Werror)
cpp=(c++ -std=c++17 -pedantic -Wall -Wextra -Werror)

# Only rfl_ is visible, and what the headers declare is there.
nm -D --defined-only "$LD_LIBRARY_PATH/librfl.so" | awk '{ print $NF }' | sort >exported
nm -g --defined-only "$LD_LIBRARY_PATH/librfl.a" | awk 'NF == 3 { print $3 }' >archived
! grep -hv '^rfl_' exported archived || fail "symbols without rfl_"
(cd prefix/include/rfl && find . -name '*.h' ! -name rfl.h) >headers
while read -r header; do
  sed -n '/^RFL_API_BEGIN/,/^RFL_API_END/p' "prefix/include/rfl/$header" | grep -E '^[a-z]' |
    grep -vE '^(static|typedef)' | grep -oE '\brfl_[a-z0-9_]+\(' | tr -d '(' || :
done <headers | sort -u >declared
[ "$(wc -l <declared)" -gt 200 ] || fail "only $(wc -l <declared) functions were found in the headers"
[ -z "$(comm -23 declared exported)" ] || fail "not exported: $(comm -23 declared exported | xargs)"

# Each header alone, in both languages, and a C++ program.
echo rfl.h >>headers
while read -r header; do
  printf '#include "%s"\n#include "%s"\nextern int alone;\n' "$header" "$header" | tee alone.c >alone.cpp
  "${c[@]}" "${flags[@]}" -c alone.c -o alone.o
  "${cpp[@]}" "${flags[@]}" -c alone.cpp -o alone.o
done <headers
cat >program.cpp <<'END'
#include <cstdio>
#include <rfl.h>
int main() { std::puts(rfl_rc_text(RFL_EIO)); }
END
"${cpp[@]}" program.cpp "${flags[@]}" -o program
./program >/dev/null

# check COMMAND...: no error and no lost memory; the exit code is the command's
check() {
  valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect \
    --show-leak-kinds=definite,indirect --log-file=valgrind.log "$@" || {
    code=$?
    [ $code -ne 99 ] || { cat valgrind.log >&2; fail "$*"; }
    return $code
  }
}
cp "$source/tests/data/roofline/peaks.json" .
roofline -q points --metrics "$source/tests/data/roofline/metrics.csv" --peaks peaks.json --output points.csv >/dev/null
roofline -q plot --points points.csv --peaks peaks.json --env lab_gpu --no-data --format svg --output-dir . >/dev/null
# the example does not name its files in the figure
sed -E 's/points\.csv [0-9a-f]{8} · peaks\.json [0-9a-f]{8} · //' roofline_lab_gpu.svg >expected.svg
python3 - <<'END' >expected.bounds
import csv
for p in csv.DictReader(open("points.csv")):
    print("%(env)s %(model)s bs%(batch)s: %(bound)s, " % p + "%.1f %% of the roof" % float(p["percent_of_attainable"]))
END
roofline complexity --models resnet50 --batch-sizes 32 --train --format csv \
  --columns flops unfused_bytes fused_bytes compulsory_bytes | tail -n 1 | tr , '\n' >expected.counts
for linked in flags archive; do
  declare -n with=$linked
  for example in "$source"/examples/library/*.c; do
    [ "$(wc -l <"$example")" -le 40 ] || fail "$example is longer than 40 lines"
    "${c[@]}" "$example" "${with[@]}" -o "$(basename "$example" .c)"
  done
  needed=$(readelf -d draw | grep -c 'NEEDED.*librfl' || :)
  [ "$needed" -eq "$([ $linked = flags ] && echo 1 || echo 0)" ] || fail "$linked: another library was linked"
  check ./count resnet50 32 >counts
  awk 'NR == 1 { print $2 } { print $4 }' counts | diff expected.counts -
  check ./count "$source/examples/nets/small_resnet.json" 8 >/dev/null
  check ./draw peaks.json points.csv lab_gpu figure.svg | diff expected.bounds -
  cmp figure.svg expected.svg
  code=0; check ./count resnet5 32 2>err || code=$?
  [ $code -eq 1 ] && grep -q "did you mean resnet50" err || fail "count: exit $code: $(cat err)"
  code=0; check ./draw peaks.json points.csv lab_gp figure.svg 2>err || code=$?
  [ $code -eq 1 ] && grep -q "did you mean lab_gpu" err || fail "draw: exit $code: $(cat err)"
done

# In another locale the figure is the same.
if localedef -i de_DE -f UTF-8 "$PWD/de_DE.UTF-8" >localedef.log 2>&1; then
  cat >locale.c <<'END'
#include <locale.h>
#include <stdio.h>
int draw_main(int argc, char **argv);
int main(int argc, char **argv)
{
	char number[8];
	if (!setlocale(LC_ALL, "de_DE.UTF-8") || snprintf(number, sizeof(number), "%.1f", 0.5) != 3 || number[1] != ',')
		return 2;
	return draw_main(argc, argv);
}
END
  "${c[@]}" -Dmain=draw_main -Wno-missing-prototypes -c "$source/examples/library/draw.c" "${flags[@]}" -o draw.o
  "${c[@]}" locale.c draw.o "${flags[@]}" -o german
  LOCPATH=$PWD ./german peaks.json points.csv lab_gpu german.svg >/dev/null
  cmp german.svg expected.svg
fi

# The manual page: its form, the functions that it names, and its example.
page=$(find prefix -name librfl.3)
lexgrog "$page" >/dev/null
warnings=$(groff -man -ww -z "$page" 2>&1)
[ -z "$warnings" ] || fail "$warnings"
grep -oE '\\fBrfl_[a-z0-9_]+\\fR\(' "$page" | sed 's/\\fB//; s/\\fR(//' | sort -u >named
[ -s named ] && [ -z "$(comm -23 named exported)" ] || fail "the manual page names $(comm -23 named exported | xargs)"
{
  printf '#include <rfl.h>\n#include <stdio.h>\nint main(void)\n{\n'
  sed -n '/^\.EX/,/^\.EE/{//d; s/\\-/-/g; s/\\e/\\/g; p}' "$page"
  printf 'return err.rc != RFL_OK;\n}\n'
} >manual.c
"${c[@]}" manual.c "${flags[@]}" -o manual
check ./manual >manual.out
grep -q '^at least 0\.' manual.out && [ "$(wc -l <manual.out)" -eq 2 ] && grep -q '</svg>' figure.svg || fail "$(cat manual.out)"
