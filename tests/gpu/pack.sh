#!/usr/bin/env bash
# A directory with everything that a measurement on another machine needs but PyTorch, which has to be
# there: program, engine plugin, the libraries of this distribution, reference files, the checks.
#
#   tests/gpu/pack.sh BUILD DIR
#
# BUILD is a build directory whose plugin was built against the PyTorch version of the other machine, DIR
# the directory to make. There, `DIR/use-torch PYTHON` links the PyTorch that this PYTHON imports; then
# `DIR/bin/roofline` runs, and `DIR/tests/gpu/first.sh` checks. See tests/gpu/README.md.
set -euo pipefail

if [ $# -ne 2 ]; then
  echo "usage: $0 BUILD DIR" >&2
  exit 2
fi
build=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../..")
mkdir -p "$2"
dir=$(realpath "$2")

ls "$build"/lib/roofline/plugins/engine_torch-*.so >/dev/null 2>&1 || {
  echo "$0: $build has no engine_torch-*.so: build it with a PyTorch first" >&2
  exit 1
}
for component in core bundle; do
  cmake --install "$build" --prefix "$dir" --strip --component $component >/dev/null
done

# The plugin is C++; the other machine's library may be older than our compiler.
for name in libstdc++.so.6 libgcc_s.so.1; do
  file=$(ldd "$dir"/lib/roofline/plugins/engine_torch-*.so | awk -v n="$name" '$1 == n { print $3; exit }')
  [ -n "$file" ] && cp -L "$file" "$dir/lib/roofline/$name"
done

mkdir -p "$dir/tests/gpu" "$dir/tests/bench" "$dir/tests/data/golden"
cp "$source"/tests/gpu/*.sh "$source"/tests/gpu/*.py "$source"/tests/gpu/README.md "$dir/tests/gpu/"
cp "$source"/tests/bench/torch_loop.py "$source"/tests/bench/torch_gpu.py "$dir/tests/bench/"
cp "$source"/tests/data/golden/*.json "$dir/tests/data/golden/"
[ ! -x "$build/bin/make_digits" ] || "$build/bin/make_digits" --train 3000 --test 500 "$dir/tests/data/digits"
cat >"$dir/use-torch" <<'USE'
#!/bin/sh
# use-torch PYTHON: from now on the engine works with the PyTorch that PYTHON imports.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
torch=$("${1:-python3}" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
[ -e "$torch/lib/libtorch_cpu.so" ] || { echo "use-torch: $torch has no lib/libtorch_cpu.so" >&2; exit 1; }
ln -sfn "$torch" "$here/lib/roofline/torch"
"$here/bin/roofline" list engines
USE
chmod +x "$dir/use-torch"
echo "$dir: $(du -sh "$dir" | cut -f1); there: use-torch PYTHON, then bin/roofline or tests/gpu/first.sh"
